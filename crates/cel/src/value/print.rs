//! How values print: doubles as Go's `%g`, and everything as `%v` in messages.

use super::{Value, time};
use std::fmt;

/// From this exponent on, `%g` in its shortest form writes one.
const EXPONENT_FROM: i32 = 6;

/// A double as Go's `%g` prints it.
pub(crate) fn print_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..EXPONENT_FROM).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

/// Text in quotes, as Go's `%q` writes it.
pub(crate) fn quoted(text: &str) -> String {
    object::field::quote(text)
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => out.write_str("NULL_VALUE"),
            Value::Bool(flag) => write!(out, "{flag}"),
            Value::Int(number) => write!(out, "{number}"),
            Value::Uint(number) => write!(out, "{number}"),
            Value::Double(number) => out.write_str(&print_double(*number)),
            Value::String(text) => out.write_str(text),
            Value::Bytes(bytes) => write!(out, "{bytes:?}"),
            Value::Duration(nanos) => out.write_str(&time::print_duration(*nanos)),
            Value::Timestamp(time) => write!(out, "{time}"),
            Value::Type(of) => out.write_str(&of.name()),
            Value::Optional(None) => out.write_str("optional.none()"),
            Value::Optional(Some(value)) => write!(out, "optional({value})"),
            other => write!(out, "{}", other.type_of().name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_go_prints_them() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (1.5, "1.5"),
            (100000.0, "100000"),
            (1000000.0, "1e+06"),
            (1234567.0, "1.234567e+06"),
            (123456789.0, "1.23456789e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
            (1e21, "1e+21"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
        ];
        for (number, expected) in cases {
            assert_eq!(print_double(number), expected);
        }
    }
}
