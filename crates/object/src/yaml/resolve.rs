//! What a scalar means under the rules of YAML 1.1.
//!
//! Contract: `go.yaml.in/yaml/v2` `resolve.go`. Sexagesimal numbers are strings, `y` and `n` are
//! booleans, `0777` is octal and so is `0o777`, and underscores in numbers do not count.

use super::Error;
use super::parse::{Scalar, TAG_PREFIX};

/// A scalar with its meaning.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that only fits without a sign.
    Unsigned(u64),
    Float(f64),
    /// A point in time, which stays the text it is.
    Timestamp,
    String,
}

impl Meaning {
    fn tag(&self) -> &'static str {
        match self {
            Meaning::Null => "null",
            Meaning::Bool(_) => "bool",
            Meaning::Int(_) | Meaning::Unsigned(_) => "int",
            Meaning::Float(_) => "float",
            Meaning::Timestamp => "timestamp",
            Meaning::String => "str",
        }
    }
}

/// Resolves a scalar by its tag or, without one, by its look.
///
/// A tag that is not one of the simple ones leaves the text as it is.
pub(super) fn resolve(scalar: &Scalar) -> Result<Meaning, Error> {
    if scalar.tag.is_empty() {
        let by_look = || plain(&scalar.text);
        return Ok(if scalar.is_implicit {
            by_look()
        } else {
            Meaning::String
        });
    }
    let tag = match scalar.tag.strip_prefix(TAG_PREFIX) {
        Some(tag @ ("bool" | "int" | "float" | "null" | "timestamp")) => tag,
        _ => return Ok(Meaning::String),
    };
    let meaning = plain(&scalar.text);
    match meaning {
        Meaning::Int(number) if tag == "float" => Ok(Meaning::Float(number as f64)),
        Meaning::Timestamp if tag != "timestamp" => Err(mismatch("str", &scalar.text, tag)),
        meaning if meaning.tag() == tag => Ok(meaning),
        meaning => Err(mismatch(meaning.tag(), &scalar.text, tag)),
    }
}

fn mismatch(is: &str, text: &str, tag: &str) -> Error {
    Error::Document {
        problem: format!("cannot decode !!{is} `{text}` as a !!{tag}"),
    }
}

/// What a text without quotes and tag means.
pub(super) fn plain(text: &str) -> Meaning {
    let Some(&first) = text.as_bytes().first() else {
        return Meaning::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => match text {
            ".nan" | ".NaN" | ".NAN" => Meaning::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" => Meaning::Float(f64::INFINITY),
            _ => float(text),
        },
        b'+' | b'-' | b'0'..=b'9' => number(text),
        _ => Meaning::String,
    }
}

fn word(text: &str) -> Meaning {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" => Meaning::Bool(true),
        "true" | "True" | "TRUE" => Meaning::Bool(true),
        "on" | "On" | "ON" => Meaning::Bool(true),
        "n" | "N" | "no" | "No" | "NO" => Meaning::Bool(false),
        "false" | "False" | "FALSE" => Meaning::Bool(false),
        "off" | "Off" | "OFF" => Meaning::Bool(false),
        "~" | "null" | "Null" | "NULL" => Meaning::Null,
        _ => Meaning::String,
    }
}

fn number(text: &str) -> Meaning {
    match text {
        "+.inf" | "+.Inf" | "+.INF" => return Meaning::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Meaning::Float(f64::NEG_INFINITY),
        _ => {}
    }
    if is_timestamp(text) {
        return Meaning::Timestamp;
    }
    let digits: String;
    let text = if text.contains('_') {
        digits = text.replace('_', "");
        digits.as_str()
    } else {
        text
    };
    integer(text).unwrap_or_else(|| float(text))
}

/// Reads an integer with the prefixes of Go: `0x`, `0o`, `0b` and a bare `0` for octal.
fn integer(text: &str) -> Option<Meaning> {
    let (is_signed, is_negative, size) = match text.as_bytes().first()? {
        b'-' => (true, true, &text[1..]),
        b'+' => (true, false, &text[1..]),
        _ => (false, false, text),
    };
    let (radix, digits) = match size.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &size[2..]),
        [b'0', b'o' | b'O', ..] => (8, &size[2..]),
        [b'0', b'b' | b'B', ..] => (2, &size[2..]),
        [b'0', _, ..] => (8, &size[1..]),
        _ => (10, size),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| char::from(byte).is_digit(radix)) {
        return None;
    }
    let size = u64::from_str_radix(digits, radix).ok()?;
    match i64::try_from(size) {
        Ok(number) => Some(Meaning::Int(if is_negative { -number } else { number })),
        Err(_) if is_negative && size == i64::MIN.unsigned_abs() => Some(Meaning::Int(i64::MIN)),
        Err(_) if !is_signed => Some(Meaning::Unsigned(size)),
        Err(_) => None,
    }
}

/// Reads a decimal float; one that is out of range stays a string.
fn float(text: &str) -> Meaning {
    if is_float(text)
        && let Ok(number) = text.parse::<f64>()
        && number.is_finite()
    {
        return Meaning::Float(number);
    }
    Meaning::String
}

fn is_float(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (size, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let (whole, fraction) = match size.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (size, ""),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    !(whole.is_empty() && fraction.is_empty())
        && all_digits(whole)
        && all_digits(fraction)
        && exponent_fits
}

/// Whether a text is a date, or a date and a time, in one of the forms that upstream knows.
fn is_timestamp(text: &str) -> bool {
    timestamp(text).is_some()
}

fn timestamp(text: &str) -> Option<()> {
    let (year, rest) = text.split_at_checked(4)?;
    let year: u32 = all_digits(year)?.parse().ok()?;
    let rest = rest.strip_prefix('-')?;
    let (month, rest) = short_number(rest)?;
    let (day, rest) = short_number(rest.strip_prefix('-')?)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in(month, year) {
        return None;
    }
    if rest.is_empty() {
        return Some(());
    }
    let is_spaced = rest.starts_with(' ');
    let rest = match rest.strip_prefix(['T', 't']) {
        Some(rest) => rest,
        None => rest.strip_prefix(' ')?.trim_start_matches(' '),
    };
    let (hour, rest) = short_number(rest)?;
    let (minute, rest) = short_number(rest.strip_prefix(':')?)?;
    let (second, rest) = short_number(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let zone = without_fraction(rest);
    let fits = if is_spaced {
        zone.is_empty()
    } else {
        is_zone(zone)
    };
    fits.then_some(())
}

/// Passes the fraction of a second: at most nine digits after a full stop or comma.
fn without_fraction(text: &str) -> &str {
    let Some(digits) = text.strip_prefix(['.', ',']) else {
        return text;
    };
    let count = digits
        .bytes()
        .take(9)
        .take_while(u8::is_ascii_digit)
        .count();
    if count == 0 { text } else { &digits[count..] }
}

fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let number = |text: &str| all_digits(text).and_then(|text| text.parse::<u32>().ok());
    text.len() == 6
        && text.is_ascii()
        && text.starts_with(['+', '-'])
        && text.as_bytes()[3] == b':'
        && number(&text[1..3]).is_some_and(|hours| hours <= 24)
        && number(&text[4..]).is_some_and(|minutes| minutes <= 60)
}

fn all_digits(text: &str) -> Option<&str> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(text)
}

/// Reads one or two digits.
fn short_number(text: &str) -> Option<(u32, &str)> {
    let count = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(count);
    Some((digits.parse().ok()?, rest))
}

fn days_in(month: u32, year: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(400) => 29,
        2 if year.is_multiple_of(4) && !year.is_multiple_of(100) => 29,
        2 => 28,
        _ => 31,
    }
}
