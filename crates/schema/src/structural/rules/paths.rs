//! The field that a broken rule blames: a path from the schema beside it.
//!
//! Contract: `ValidFieldPath` in upstream's `schema/cel/validation.go`.

use crate::structural::Structural;

/// The path as messages print it, if it leads to a field of the schema.
pub(super) fn normalized(path: &str, schema: &Structural) -> Option<String> {
    let mut out = String::new();
    let mut rest = path;
    let mut current = schema;
    while !rest.is_empty() {
        let (name, after) = step(rest)?;
        let is_named = !current.properties.is_empty();
        current = match is_named {
            true => current.property(&name)?,
            false => current.additional_schema()?,
        };
        match is_named {
            true if out.is_empty() => out.push_str(&name),
            true => {
                out.push('.');
                out.push_str(&name);
            }
            false => {
                out.push('[');
                out.push_str(&name);
                out.push(']');
            }
        }
        rest = after;
    }
    Some(out)
}

/// The name of the first step, `.name` or `['name']`, and what follows.
fn step(path: &str) -> Option<(String, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        return (end > 0).then(|| (rest[..end].to_owned(), &rest[end..]));
    }
    let rest = path.strip_prefix("['")?;
    let mut name = String::new();
    let mut characters = rest.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => {
                let after = rest[at + 1..].strip_prefix(']')?;
                return Some((name, after));
            }
            '\\' => name.push(match characters.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                quoted @ ('\'' | '\\') => quoted,
                _ => return None,
            }),
            other => name.push(other),
        }
    }
    None
}
