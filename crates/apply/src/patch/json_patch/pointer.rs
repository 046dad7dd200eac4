//! Paths of JSON patch operations (RFC 6901).

use std::borrow::Cow;
use std::fmt;
use std::num::{IntErrorKind, ParseIntError};

use object::Value;

/// A path as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pointer<'p>(pub(super) &'p str);

impl<'p> Pointer<'p> {
    /// Whether this is the whole document.
    pub(super) fn is_root(self) -> bool {
        self.0.is_empty()
    }

    /// How many steps lead to the place.
    pub(super) fn len(self) -> usize {
        self.0.bytes().filter(|&byte| byte == b'/').count()
    }

    /// The value that contains the place, and the last step. `None` if the way is barred, or if
    /// there is no step at all.
    pub(super) fn parent(self, document: &mut Value) -> Option<(&mut Value, Cow<'p, str>)> {
        let (_, steps) = self.0.split_once('/')?;
        let (way, key) = steps
            .rsplit_once('/')
            .map_or((None, steps), |(a, b)| (Some(a), b));
        let mut here = document;
        for step in way.into_iter().flat_map(|way| way.split('/')) {
            let step = unescape(step);
            here = match here {
                Value::Object(map) => map.get_mut(&step)?,
                Value::Array(items) => {
                    let at = index(&step, items.len()).ok()?;
                    &mut items[at]
                }
                _ => return None,
            };
        }
        match here {
            Value::Object(_) | Value::Array(_) => Some((here, unescape(key))),
            _ => None,
        }
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

/// Reads an index below `limit`; a negative one counts back from it.
pub(super) fn index(text: &str, limit: usize) -> Result<usize, BadIndex> {
    let number: i64 = text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        let quoted = object::field::quote(text);
        BadIndex::NoNumber(format!("strconv.Atoi: parsing {quoted}: {why}"))
    })?;
    let limit = i64::try_from(limit).expect("no list has 2^63 items");
    let at = if number < 0 {
        limit.checked_add(number).unwrap_or(-1)
    } else {
        number
    };
    match usize::try_from(at) {
        Ok(at) if (at as i64) < limit => Ok(at),
        _ => Err(BadIndex::Outside(number)),
    }
}

/// A step that is no index of a list.
#[derive(Debug, PartialEq)]
pub(super) enum BadIndex {
    NoNumber(String),
    Outside(i64),
}

impl BadIndex {
    /// The text with what is being read in front, if the step is no number.
    pub(super) fn within(&self, what: &str) -> String {
        match self {
            BadIndex::NoNumber(why) => format!("{what}: {why}"),
            BadIndex::Outside(_) => self.to_string(),
        }
    }
}

impl fmt::Display for BadIndex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadIndex::NoNumber(why) => out.write_str(why),
            BadIndex::Outside(number) => write!(
                out,
                "Unable to access invalid index: {number}: invalid index referenced"
            ),
        }
    }
}

/// Turns `~1` into a slash and `~0` into a tilde, in one pass.
fn unescape(step: &str) -> Cow<'_, str> {
    if !step.contains('~') {
        return Cow::Borrowed(step);
    }
    let mut plain = String::with_capacity(step.len());
    let mut rest = step;
    while let Some(at) = rest.find('~') {
        let (before, after) = rest.split_at(at);
        plain.push_str(before);
        let (text, used) = match after.as_bytes().get(1) {
            Some(b'1') => ("/", 2),
            Some(b'0') => ("~", 2),
            _ => ("~", 1),
        };
        plain.push_str(text);
        rest = &after[used..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_escapes_are_undone() {
        for (step, plain) in [
            ("a", "a"),
            ("a~1b", "a/b"),
            ("~0", "~"),
            ("~01", "~1"),
            ("~2~", "~2~"),
            ("é~1~0é", "é/~é"),
        ] {
            assert_eq!(unescape(step), plain);
        }
    }

    #[test]
    fn which_indices_fit_a_list() {
        for (text, limit, at) in [
            ("0", 2, Some(0)),
            ("1", 2, Some(1)),
            ("2", 2, None),
            ("-1", 2, Some(1)),
            ("-2", 2, Some(0)),
            ("-3", 2, None),
            ("+1", 2, Some(1)),
            ("01", 2, Some(1)),
            ("", 2, None),
            ("-", 2, None),
            ("x", 2, None),
            ("0", 0, None),
            ("-9223372036854775808", 2, None),
            ("9223372036854775807", 2, None),
            ("9223372036854775808", 2, None),
        ] {
            assert_eq!(index(text, limit).ok(), at, "{text} of {limit}");
        }
    }
}
