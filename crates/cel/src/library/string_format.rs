//! `'%s and %d'.format([a, b])`.
//!
//! Contract: cel-go `ext/formatting.go` before version 4, whose floats are printed for readers of
//! `en_US`: groups of three digits, and powers of ten in superscript.

use crate::evaluate::{Fault, Meter};
use crate::value::{List, Map, Value, quoted, to_string};

/// How many digits follow the point unless the clause says so.
const PRECISION: usize = 6;

/// The most digits after the point that are printed.
const PRECISION_MAX: usize = 1_000;

/// Values nested deeper than this are not printed.
const DEPTH_MAX: u32 = 64;

/// A clause such as `%s` or `%.2f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    Text,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hexadecimal { upper: bool },
    Octal,
}

/// A piece of a format.
pub(crate) enum Piece<'a> {
    Literal(&'a str),
    Clause(Clause),
}

/// Splits a format into its pieces; a mistake is found when it is reached.
pub(crate) struct Pieces<'a>(pub(crate) &'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Result<Piece<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let Some(after) = self.0.strip_prefix('%') else {
            let end = self.0.find('%').unwrap_or(self.0.len());
            let (literal, rest) = self.0.split_at(end);
            self.0 = rest;
            return Some(Ok(Piece::Literal(literal)));
        };
        if let Some(rest) = after.strip_prefix('%') {
            self.0 = rest;
            return Some(Ok(Piece::Literal("%")));
        }
        match clause(after) {
            Ok((clause, rest)) => {
                self.0 = rest;
                Some(Ok(Piece::Clause(clause)))
            }
            Err(message) => {
                self.0 = "";
                Some(Err(message))
            }
        }
    }
}

fn clause(text: &str) -> Result<(Clause, &str), String> {
    let failed = |why: String| format!("could not parse formatting clause: {why}");
    if text.is_empty() {
        return Err("unexpected end of string".to_owned());
    }
    let (precision, rest) = match text.strip_prefix('.') {
        None => (PRECISION, text),
        Some(after) => {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            if digits == after.len() {
                return Err(failed(
                    "error while parsing precision: could not find end of precision specifier"
                        .to_owned(),
                ));
            }
            let number = after[..digits].parse().map_err(|_| {
                failed(format!(
                    "error while parsing precision: error while converting precision to \
                     integer: strconv.Atoi: parsing {}: invalid syntax",
                    quoted(&after[..digits])
                ))
            })?;
            (number, &after[digits..])
        }
    };
    let letter = rest
        .chars()
        .next()
        .expect("something follows the precision");
    let clause = match letter {
        's' => Clause::Text,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision.min(PRECISION_MAX)),
        'e' => Clause::Scientific(precision.min(PRECISION_MAX)),
        'b' => Clause::Binary,
        'x' => Clause::Hexadecimal { upper: false },
        'X' => Clause::Hexadecimal { upper: true },
        'o' => Clause::Octal,
        other => {
            return Err(failed(format!(
                "unrecognized formatting clause \"{other}\""
            )));
        }
    };
    Ok((clause, &rest[letter.len_utf8()..]))
}

impl Clause {
    /// The complaint about a value that the clause cannot print.
    pub(crate) fn complaint(self, of: &str) -> String {
        match self {
            Clause::Text => format!(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
                 lists, types, durations, and timestamps, was given {of}"
            ),
            Clause::Decimal => {
                format!("decimal clause can only be used on integers, was given {of}")
            }
            Clause::Fixed(_) => {
                format!("fixed-point clause can only be used on doubles, was given {of}")
            }
            Clause::Scientific(_) => {
                format!("scientific clause can only be used on doubles, was given {of}")
            }
            Clause::Binary => {
                format!("only integers and bools can be formatted as binary, was given {of}")
            }
            Clause::Hexadecimal { .. } => format!(
                "only integers, byte buffers, and strings can be formatted as hex, was given {of}"
            ),
            Clause::Octal => format!("octal clause can only be used on integers, was given {of}"),
        }
    }
}

/// Prints values into a format.
pub(crate) fn format(text: &str, values: &List<'_>, meter: &Meter) -> Result<String, Fault> {
    let mut out = String::with_capacity(text.len());
    let mut index = 0;
    for piece in Pieces(text) {
        // The value is looked for before the clause is read.
        let needs_value = !matches!(piece, Ok(Piece::Literal(_)));
        let value = match needs_value {
            true => values.get(index)?,
            false => None,
        };
        if needs_value && value.is_none() {
            return Err(Fault::from(format!("index {index} out of range")));
        }
        match (piece.map_err(Fault::from)?, value) {
            (Piece::Literal(literal), _) => out.push_str(literal),
            (Piece::Clause(clause), Some(value)) => {
                index += 1;
                let printed = print(clause, &value)
                    .map_err(|why| Fault::from(format!("error during formatting: {why}")))?;
                out.push_str(&printed);
            }
            _ => {}
        }
        meter.allow_bytes(out.len() as u64)?;
    }
    Ok(out)
}

fn print(clause: Clause, value: &Value<'_>) -> Result<String, String> {
    let complaint = || clause.complaint(&value.type_of().name());
    match (clause, value) {
        (Clause::Text, value) => print_text(value, 0),
        (Clause::Decimal, Value::Int(number)) => Ok(number.to_string()),
        (Clause::Decimal, Value::Uint(number)) => Ok(number.to_string()),
        (Clause::Binary, Value::Int(number)) => Ok(signed(*number, |it| format!("{it:b}"))),
        (Clause::Binary, Value::Uint(number)) => Ok(format!("{number:b}")),
        (Clause::Binary, Value::Bool(flag)) => Ok(u8::from(*flag).to_string()),
        (Clause::Octal, Value::Int(number)) => Ok(signed(*number, |it| format!("{it:o}"))),
        (Clause::Octal, Value::Uint(number)) => Ok(format!("{number:o}")),
        (Clause::Hexadecimal { upper }, value) => {
            let text = match value {
                Value::Int(number) => signed(*number, |it| format!("{it:x}")),
                Value::Uint(number) => format!("{number:x}"),
                Value::String(text) => hexadecimal(text.as_bytes()),
                Value::Bytes(bytes) => hexadecimal(bytes),
                _ => return Err(complaint()),
            };
            Ok(if upper { text.to_uppercase() } else { text })
        }
        (Clause::Fixed(precision), value) => {
            let number = double(value).ok_or_else(complaint)?;
            Ok(fixed(number, precision))
        }
        (Clause::Scientific(precision), value) => {
            let number = double(value).ok_or_else(complaint)?;
            Ok(scientific(number, precision))
        }
        _ => Err(complaint()),
    }
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn signed(number: i64, magnitude: fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", magnitude(number.unsigned_abs()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unusual(number: f64) -> Option<&'static str> {
    match number {
        it if it.is_nan() => Some("NaN"),
        f64::INFINITY => Some("\u{221e}"),
        f64::NEG_INFINITY => Some("-\u{221e}"),
        _ => None,
    }
}

/// `1,234.50`
fn fixed(number: f64, precision: usize) -> String {
    if let Some(name) = unusual(number) {
        return name.to_owned();
    }
    let text = format!("{:.precision$}", number.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if number.is_sign_negative() {
        out.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// `1.234500×10⁰³`
fn scientific(number: f64, precision: usize) -> String {
    if let Some(name) = unusual(number) {
        return name.to_owned();
    }
    // The clause gives a width instead of a precision, so there are always six digits.
    let _ = precision;
    let text = format!("{number:.PRECISION$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { "\u{207b}" } else { "" };
    let raised: String = format!("{:02}", exponent.abs())
        .chars()
        .map(superscript)
        .collect();
    format!("{digits}\u{d7}10{sign}{raised}")
}

fn superscript(digit: char) -> char {
    const DIGITS: [char; 10] = [
        '\u{2070}', '\u{b9}', '\u{b2}', '\u{b3}', '\u{2074}', '\u{2075}', '\u{2076}', '\u{2077}',
        '\u{2078}', '\u{2079}',
    ];
    DIGITS[digit.to_digit(10).unwrap_or(0) as usize]
}

fn print_text(value: &Value<'_>, depth: u32) -> Result<String, String> {
    if depth > DEPTH_MAX {
        return Err("value is nested too deep".to_owned());
    }
    match value {
        Value::Null => Ok("null".to_owned()),
        Value::List(list) => print_list(list, depth),
        Value::Map(map @ (Map::Data(..) | Map::Owned(_))) => print_map(map, depth),
        Value::Type(of) => Ok(of.name()),
        other => match to_string(other) {
            Ok(Value::String(text)) if !matches!(other, Value::Library(_)) => Ok(text.to_string()),
            Err(Fault::Message(message)) => Err(format!(
                "could not convert argument {} to string",
                quoted(&message)
            )),
            _ => Err(Clause::Text.complaint(&value.type_of().name())),
        },
    }
}

/// A value inside a list or map, quoted where CEL quotes it.
fn print_element(value: &Value<'_>, depth: u32) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => quoted(text),
        Value::Bytes(_) => format!("b{}", quoted(&print_text(value, depth)?)),
        Value::Double(number) if number.is_finite() => format!("{number:.PRECISION$}"),
        Value::Double(number) => {
            let name = match *number {
                f64::INFINITY => "+Inf",
                f64::NEG_INFINITY => "-Inf",
                _ => "NaN",
            };
            quoted(name)
        }
        Value::Timestamp(_) => format!("timestamp({})", quoted(&print_text(value, depth)?)),
        Value::Duration(_) => format!("duration({})", quoted(&print_text(value, depth)?)),
        Value::Optional(_) | Value::Library(_) | Value::Hidden(_) => {
            return Err(format!(
                "no formatting function for {}",
                value.type_of().name()
            ));
        }
        other => print_text(other, depth)?,
    })
}

fn print_list(list: &List<'_>, depth: u32) -> Result<String, String> {
    let mut parts = Vec::new();
    for item in list.iter() {
        let item = item.map_err(|fault| fault.to_string())?;
        parts.push(print_element(&item, depth + 1)?);
    }
    Ok(format!("[{}]", parts.join(", ")))
}

fn print_map(map: &Map<'_>, depth: u32) -> Result<String, String> {
    let mut parts = Vec::new();
    for key in map.keys() {
        let value = map.find(&key).map_err(|fault| fault.to_string())?;
        let value = value.unwrap_or(Value::Null);
        parts.push((
            print_element(&key, depth + 1)?,
            print_element(&value, depth + 1)?,
        ));
    }
    parts.sort();
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    Ok(format!("{{{}}}", parts.join(", ")))
}
