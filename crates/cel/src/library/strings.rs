//! Functions over text.
//!
//! Contract: cel-go `ext/strings.go` in version 2, and the tests of the standard library. Places
//! and lengths count code points.

use super::string_format;
use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{Text, Value};

type Outcome<'v> = Result<Value<'v>, Fault>;

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "contains",
        overloads: &[("contains_string", "string.(string) -> bool")],
        native: |arguments, _| test(arguments, |text, part| text.contains(part)),
    },
    Declaration {
        name: "startsWith",
        overloads: &[("starts_with_string", "string.(string) -> bool")],
        native: |arguments, _| test(arguments, |text, part| text.starts_with(part)),
    },
    Declaration {
        name: "endsWith",
        overloads: &[("ends_with_string", "string.(string) -> bool")],
        native: |arguments, _| test(arguments, |text, part| text.ends_with(part)),
    },
    Declaration {
        name: "charAt",
        overloads: &[("string_char_at_int", "string.(int) -> string")],
        native: char_at,
    },
    Declaration {
        name: "indexOf",
        overloads: &[
            ("string_index_of_string", "string.(string) -> int"),
            ("string_index_of_string_int", "string.(string, int) -> int"),
        ],
        native: index_of,
    },
    Declaration {
        name: "lastIndexOf",
        overloads: &[
            ("string_last_index_of_string", "string.(string) -> int"),
            (
                "string_last_index_of_string_int",
                "string.(string, int) -> int",
            ),
        ],
        native: last_index_of,
    },
    Declaration {
        name: "lowerAscii",
        overloads: &[("string_lower_ascii", "string.() -> string")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => Ok(Value::owned_text(text.to_ascii_lowercase())),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "upperAscii",
        overloads: &[("string_upper_ascii", "string.() -> string")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => Ok(Value::owned_text(text.to_ascii_uppercase())),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "replace",
        overloads: &[
            (
                "string_replace_string_string",
                "string.(string, string) -> string",
            ),
            (
                "string_replace_string_string_int",
                "string.(string, string, int) -> string",
            ),
        ],
        native: replace,
    },
    Declaration {
        name: "split",
        overloads: &[
            ("string_split_string", "string.(string) -> list(string)"),
            (
                "string_split_string_int",
                "string.(string, int) -> list(string)",
            ),
        ],
        native: split,
    },
    Declaration {
        name: "substring",
        overloads: &[
            ("string_substring_int", "string.(int) -> string"),
            ("string_substring_int_int", "string.(int, int) -> string"),
        ],
        native: substring,
    },
    Declaration {
        name: "trim",
        overloads: &[("string_trim", "string.() -> string")],
        native: trim,
    },
    Declaration {
        name: "join",
        overloads: &[
            ("list_join", "list(string).() -> string"),
            ("list_join_string", "list(string).(string) -> string"),
        ],
        native: join,
    },
    Declaration {
        name: "strings.quote",
        overloads: &[("strings_quote", "(string) -> string")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => Ok(Value::owned_text(quote(text))),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "format",
        overloads: &[("string_format", "string.(list(dyn)) -> string")],
        native: |arguments, meter| match arguments {
            [Value::String(format), Value::List(values)] => {
                string_format::format(format, values, meter).map(Value::owned_text)
            }
            _ => Err(Fault::no_overload()),
        },
    },
];

fn test<'v>(arguments: &[Value<'v>], holds: fn(&str, &str) -> bool) -> Outcome<'v> {
    match arguments {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text, part))),
        _ => Err(Fault::no_overload()),
    }
}

fn out_of_range(index: i64) -> Fault {
    Fault::from(format!("index out of range: {index}"))
}

/// The byte at which the code point `index` starts; the end counts as one more.
fn byte_at(text: &str, index: i64) -> Result<usize, Fault> {
    let wanted = usize::try_from(index).map_err(|_| out_of_range(index))?;
    let mut starts = text
        .char_indices()
        .map(|(at, _)| at)
        .chain(std::iter::once(text.len()));
    starts.nth(wanted).ok_or_else(|| out_of_range(index))
}

/// Part of a text, borrowed if the text is.
fn part<'v>(text: &Text<'v>, from: usize, to: usize) -> Value<'v> {
    match text {
        Text::Borrowed(text) => Value::text(&text[from..to]),
        Text::Owned(text) => Value::owned_text(&text[from..to]),
    }
}

fn char_at<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let [Value::String(text), Value::Int(index)] = arguments else {
        return Err(Fault::no_overload());
    };
    let from = byte_at(text, *index)?;
    let length = text[from..].chars().next().map_or(0, char::len_utf8);
    Ok(part(text, from, from + length))
}

fn index_of<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let (text, wanted, offset) = match arguments {
        [Value::String(text), Value::String(wanted)] => (text, wanted, 0),
        [
            Value::String(text),
            Value::String(wanted),
            Value::Int(offset),
        ] => (text, wanted, *offset),
        _ => return Err(Fault::no_overload()),
    };
    if wanted.is_empty() {
        return Ok(Value::Int(offset));
    }
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let Ok(from) = byte_at(text, offset) else {
        return Ok(Value::Int(-1));
    };
    let found = text[from..].find(&**wanted);
    Ok(Value::Int(found.map_or(-1, |at| {
        offset + text[from..from + at].chars().count() as i64
    })))
}

fn last_index_of<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let (text, wanted, offset) = match arguments {
        [Value::String(text), Value::String(wanted)] => (text, wanted, None),
        [
            Value::String(text),
            Value::String(wanted),
            Value::Int(offset),
        ] => (text, wanted, Some(*offset)),
        _ => return Err(Fault::no_overload()),
    };
    let length = text.chars().count() as i64;
    if wanted.is_empty() {
        return Ok(Value::Int(offset.unwrap_or(length)));
    }
    let end = match offset {
        None => text.len(),
        Some(offset) if offset < 0 => return Err(out_of_range(offset)),
        Some(offset) if offset >= length => return Ok(Value::Int(-1)),
        Some(offset) => {
            // A match may start at the offset and go on from there.
            let start = byte_at(text, offset)?;
            (start + wanted.len()).min(text.len())
        }
    };
    let end = (end..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let mut found = text[..end].rfind(&**wanted);
    if let (Some(offset), Some(at)) = (offset, found) {
        let limit = byte_at(text, offset)?;
        if at > limit {
            found = text[..limit].rfind(&**wanted);
        }
    }
    Ok(Value::Int(
        found.map_or(-1, |at| text[..at].chars().count() as i64),
    ))
}

fn replace<'v>(arguments: &[Value<'v>], meter: &mut Meter) -> Outcome<'v> {
    let (text, old, new, count) = match arguments {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [
            Value::String(text),
            Value::String(old),
            Value::String(new),
            Value::Int(count),
        ] => (text, old, new, *count),
        _ => return Err(Fault::no_overload()),
    };
    let possible = match old.is_empty() {
        true => text.len() + 1,
        false => text.len() / old.len(),
    };
    let count = usize::try_from(count).unwrap_or(possible).min(possible);
    meter.allow_bytes((text.len() as u64).saturating_add((count as u64) * new.len() as u64))?;
    Ok(Value::owned_text(text.replacen(&**old, new, count)))
}

/// What making one part of a text takes, in nanoseconds.
const PART: u64 = 60;

fn split<'v>(arguments: &[Value<'v>], meter: &mut Meter) -> Outcome<'v> {
    let (text, separator, count) = match arguments {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [
            Value::String(text),
            Value::String(separator),
            Value::Int(count),
        ] => (text, separator, *count),
        _ => return Err(Fault::no_overload()),
    };
    if count == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut from = 0;
    // Every character is a part of its own if nothing separates them.
    let characters = text.char_indices().skip(1).map(|(at, _)| (at, 0));
    let characters = characters.take_while(|_| separator.is_empty());
    let separators = text.match_indices(&**separator);
    let separators = separators.map(|(at, found)| (at, found.len()));
    let separators = separators.take_while(|_| !separator.is_empty());
    for (end, skipped) in characters.chain(separators) {
        if parts.len() + 1 >= most {
            break;
        }
        meter.work.spend(PART)?;
        parts.push(part(text, from, end));
        from = end + skipped;
    }
    if !(separator.is_empty() && text.is_empty()) {
        parts.push(part(text, from, text.len()));
    }
    Ok(Value::list(parts))
}

fn substring<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    match arguments {
        [Value::String(text), Value::Int(start)] => {
            let from = byte_at(text, *start)?;
            Ok(part(text, from, text.len()))
        }
        [Value::String(text), Value::Int(start), Value::Int(end)] => {
            if start > end {
                return Err(Fault::from(format!(
                    "invalid substring range. start: {start}, end: {end}"
                )));
            }
            let from = byte_at(text, *start)?;
            Ok(part(text, from, byte_at(text, *end)?))
        }
        _ => Err(Fault::no_overload()),
    }
}

fn trim<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let [Value::String(text)] = arguments else {
        return Err(Fault::no_overload());
    };
    let from = text.len() - text.trim_start().len();
    Ok(part(text, from, from + text.trim().len()))
}

fn join<'v>(arguments: &[Value<'v>], meter: &mut Meter) -> Outcome<'v> {
    let (list, separator) = match arguments {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return Err(Fault::no_overload()),
    };
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        match item? {
            Value::String(text) => out.push_str(&text),
            other => return Err(Fault::from(format!("join: invalid input: {other}"))),
        }
        meter.allow_bytes(out.len() as u64)?;
    }
    Ok(Value::owned_text(out))
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
