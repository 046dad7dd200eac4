//! Indenting of text that is JSON already.

/// Lines deeper than this are indented no further. Indenting every line of a text that nests ten
/// thousand levels would make gigabytes of spaces out of one body.
const INDENT_LEVELS_MAX: usize = 500;

/// Appends compact JSON again with two spaces for each level, as Go's `json.Indent` does.
///
/// Works on the text alone, without a tree. `compact` is what [`write`](super::write) makes; of
/// text that is no JSON it makes text that is no JSON.
pub fn pretty(compact: &[u8], out: &mut Vec<u8>) {
    out.reserve(compact.len() * 2);
    let mut depth: usize = 0;
    let mut at = 0;
    while let Some(&byte) = compact.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(compact, at);
                out.extend_from_slice(&compact[at..end]);
                at = end;
                continue;
            }
            b'{' | b'[' => {
                out.push(byte);
                if let Some(&close @ (b'}' | b']')) = compact.get(at + 1) {
                    out.push(close);
                    at += 1;
                } else {
                    depth += 1;
                    new_line(depth, out);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(depth, out);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(depth, out);
            }
            b':' => out.extend_from_slice(b": "),
            b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => out.push(byte),
        }
        at += 1;
    }
}

fn new_line(depth: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth.min(INDENT_LEVELS_MAX), b' ');
}

/// Where the string that begins at `at` ends, behind its closing quote.
fn end_of_string(compact: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = compact.get(end) {
        match byte {
            b'"' => return end + 1,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    compact.len()
}
