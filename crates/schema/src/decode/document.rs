//! Putting reports of strict decoding in the order in which the body has the fields.
//!
//! The tree sorts its keys, so the order of a JSON text is lost when it is read. Upstream reports
//! in that order; the text is scanned once more when there are several reports to sort. (A YAML
//! body is converted with sorted keys before it is decoded, so its reports are in order already.)

use std::borrow::Cow;
use std::collections::HashMap;

use object::json;

/// Sorts the reports of [`decode`](super::decode()) and of duplicate fields, such as
/// `duplicate field "spec.a"`, as the JSON text has the fields. A duplicate stands where the field
/// comes for the second time; one inside an unknown field is left out, as nobody reads it there.
pub fn in_document_order(body: &[u8], reports: Vec<String>) -> Vec<String> {
    if reports.len() < 2 {
        return reports;
    }
    let mut wanted = Wanted::new(&reports);
    Scanner::new(body).scan(&mut wanted);
    let mut order: Vec<(usize, String)> = Vec::with_capacity(reports.len());
    for (report, place) in reports.into_iter().zip(wanted.places) {
        match place {
            Place::Unseen => order.push((usize::MAX, report)),
            Place::At(offset) => order.push((offset, report)),
            Place::Hidden => {}
        }
    }
    order.sort_by_key(|(offset, _)| *offset);
    order.into_iter().map(|(_, report)| report).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Unseen,
    Hidden,
    At(usize),
}

/// What is looked for, by a hash of the path that can be kept up to date step by step.
struct Wanted {
    by_hash: HashMap<u64, Vec<Report>>,
    places: Vec<Place>,
}

struct Report {
    number: usize,
    path: String,
    is_unknown: bool,
    /// How often the path came by.
    met: usize,
}

impl Wanted {
    fn new(reports: &[String]) -> Wanted {
        let mut by_hash: HashMap<u64, Vec<Report>> = HashMap::new();
        for (number, report) in reports.iter().enumerate() {
            let unknown = report.strip_prefix("unknown field ");
            let Some(quoted) = unknown.or_else(|| report.strip_prefix("duplicate field ")) else {
                continue;
            };
            // A path with control characters is not looked for; its report comes last.
            if let Some(path) = unquoted(quoted) {
                let is_unknown = unknown.is_some();
                let found = Report {
                    number,
                    path,
                    is_unknown,
                    met: 0,
                };
                by_hash
                    .entry(hash(HASH_START, found.path.as_bytes()))
                    .or_default()
                    .push(found);
            }
        }
        Wanted {
            by_hash,
            places: vec![Place::Unseen; reports.len()],
        }
    }

    /// Notes that a field stands at `offset`, and says whether it is an unknown one.
    fn meet(&mut self, path: &str, path_hash: u64, offset: usize, hidden: bool) -> bool {
        let mut is_unknown = false;
        for report in self.by_hash.get_mut(&path_hash).into_iter().flatten() {
            if report.path != path {
                continue;
            }
            report.met += 1;
            let place = &mut self.places[report.number];
            let is_due = report.is_unknown || report.met == 2;
            if hidden && *place == Place::Unseen {
                *place = Place::Hidden;
            } else if !hidden && is_due && !matches!(place, Place::At(_)) {
                *place = Place::At(offset);
            }
            is_unknown |= report.is_unknown;
        }
        is_unknown
    }
}

/// The text between quotes, if nothing in it but quotes and backslashes is escaped.
fn unquoted(quoted: &str) -> Option<String> {
    let mut characters = quoted.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut plain = String::with_capacity(quoted.len());
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => characters
                .next()
                .filter(|next| matches!(next, '"' | '\\'))?,
            other => other,
        });
    }
    Some(plain)
}

const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, which can go on from any prefix.
fn hash(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// An open list or map.
struct Frame {
    /// How much of the path leads to it, and the hash of that much.
    path_length: usize,
    path_hash: u64,
    /// The index of the current item; `None` in a map.
    index: Option<usize>,
}

/// A walk over a text that is known to be JSON.
struct Scanner<'b> {
    body: &'b [u8],
    at: usize,
    path: String,
    path_hash: u64,
    open: Vec<Frame>,
    /// How many lists and maps were open at the unknown field that hides what follows.
    hidden_below: Option<usize>,
}

impl<'b> Scanner<'b> {
    fn new(body: &'b [u8]) -> Scanner<'b> {
        let (path, open) = (String::new(), Vec::new());
        Scanner {
            body,
            at: 0,
            path,
            path_hash: HASH_START,
            open,
            hidden_below: None,
        }
    }

    fn scan(mut self, wanted: &mut Wanted) {
        let mut key_follows = false;
        while let Some(&byte) = self.body.get(self.at) {
            match byte {
                b'{' | b'[' => {
                    let index = (byte == b'[').then_some(0);
                    let (path_length, path_hash) = (self.path.len(), self.path_hash);
                    self.open.push(Frame {
                        path_length,
                        path_hash,
                        index,
                    });
                    key_follows = byte == b'{';
                    self.enter_item();
                    self.at += 1;
                }
                b'}' | b']' => {
                    self.open.pop();
                    key_follows = false;
                    self.at += 1;
                }
                b',' => {
                    if let Some(index) = self.open.last_mut().and_then(|open| open.index.as_mut()) {
                        *index += 1;
                    } else {
                        key_follows = true;
                    }
                    self.enter_item();
                    self.at += 1;
                }
                b'"' if key_follows => {
                    key_follows = false;
                    self.enter_field(wanted);
                }
                b'"' => {
                    self.string();
                }
                _ => self.at += 1,
            }
        }
    }

    /// Goes back to the path of the innermost open list or map.
    fn leave_item(&mut self) {
        if let Some(open) = self.open.last() {
            self.path.truncate(open.path_length);
            self.path_hash = open.path_hash;
        }
    }

    fn extend_path(&mut self, text: &str) {
        self.path.push_str(text);
        self.path_hash = hash(self.path_hash, text.as_bytes());
    }

    fn enter_item(&mut self) {
        self.leave_item();
        if let Some(index) = self.open.last().and_then(|open| open.index) {
            self.extend_path(&format!("[{index}]"));
        }
    }

    fn enter_field(&mut self, wanted: &mut Wanted) {
        let offset = self.at;
        let key = self.string();
        self.leave_item();
        if !self.path.is_empty() {
            self.extend_path(".");
        }
        self.extend_path(&key);
        if self
            .hidden_below
            .is_some_and(|depth| self.open.len() <= depth)
        {
            self.hidden_below = None;
        }
        let hidden = self.hidden_below.is_some();
        if wanted.meet(&self.path, self.path_hash, offset, hidden) && !hidden {
            self.hidden_below = Some(self.open.len());
        }
    }

    /// Reads the string that begins here.
    fn string(&mut self) -> Cow<'b, str> {
        let start = self.at;
        let mut escaped = false;
        self.at += 1;
        while let Some(&byte) = self.body.get(self.at) {
            match byte {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
        let end = self.at.min(self.body.len());
        self.at += 1;
        if escaped {
            let text = self
                .body
                .get(start..=end)
                .and_then(|text| json::parse(text).ok());
            return Cow::Owned(
                text.as_ref()
                    .and_then(object::Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
        String::from_utf8_lossy(&self.body[start + 1..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, reports: &[&str], wanted: &[&str]) {
        let reports = reports.iter().map(|&report| report.to_owned()).collect();
        assert_eq!(
            in_document_order(body.as_bytes(), reports),
            wanted,
            "{body}"
        );
    }

    #[test]
    fn in_which_order_are_fields_reported() {
        check(
            r#"{"z": 1, "spec": {"b": [{"y": 2, "x": 1}, {"y": {"z": 3}}], "a": 1}, "c": 1}"#,
            &[
                r#"unknown field "c""#,
                r#"unknown field "spec.a""#,
                r#"unknown field "spec.b[0].x""#,
                r#"unknown field "spec.b[1].y.z""#,
                r#"unknown field "z""#,
            ],
            &[
                r#"unknown field "z""#,
                r#"unknown field "spec.b[0].x""#,
                r#"unknown field "spec.b[1].y.z""#,
                r#"unknown field "spec.a""#,
                r#"unknown field "c""#,
            ],
        );
    }

    #[test]
    fn a_duplicate_stands_where_the_field_comes_again() {
        check(
            r#"{"data": {"a": "}", "b": "\"", "a": "2"}, "extra": 1, "data": {}}"#,
            &[
                r#"unknown field "extra""#,
                r#"duplicate field "data""#,
                r#"duplicate field "data.a""#,
            ],
            &[
                r#"duplicate field "data.a""#,
                r#"unknown field "extra""#,
                r#"duplicate field "data""#,
            ],
        );
    }

    #[test]
    fn duplicates_inside_unknown_fields_are_left_out() {
        check(
            r#"{"no": {"a": 1, "a": [{"b": 1}]}, "data": 1, "data": 2}"#,
            &[
                r#"unknown field "no""#,
                r#"duplicate field "no.a""#,
                r#"duplicate field "data""#,
            ],
            &[r#"unknown field "no""#, r#"duplicate field "data""#],
        );
    }

    #[test]
    fn escaped_keys_are_found_and_unprintable_ones_come_last() {
        check(
            r#"{"\u0062": 1, "\n": 2, "\"\\": 4, "a": 3, "list": [1, "x", [2, 3]]}"#,
            &[
                r#"unknown field "\n""#,
                r#"unknown field "a""#,
                r#"unknown field "\"\\""#,
                r#"unknown field "b""#,
            ],
            &[
                r#"unknown field "b""#,
                r#"unknown field "\"\\""#,
                r#"unknown field "a""#,
                r#"unknown field "\n""#,
            ],
        );
    }

    #[test]
    fn a_text_that_is_no_json_is_no_problem() {
        for body in ["", "\"", "{\"a\\", "{\"", "}]}", "[,,,", "{\"a\":{\"b\""] {
            let report = [r#"unknown field "b""#, r#"unknown field "a""#];
            let sorted = in_document_order(body.as_bytes(), report.map(str::to_owned).to_vec());
            assert_eq!(sorted.len(), 2, "{body}");
        }
    }
}
