//! Values as Go's `%v` prints them, which is how upstream quotes a patch in its messages.

use std::fmt::Write;

use object::Value;

/// Prints a value as Go's `%v` does: `map[metadata:map[name:a] list:[1 2] none:<nil>]`.
pub fn go_text(value: &Value) -> String {
    let mut out = String::new();
    let mut waiting = vec![Piece::Value(value)];
    while let Some(piece) = waiting.pop() {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Value(Value::Array(items)) => {
                out.push('[');
                waiting.push(Piece::Text("]"));
                for (index, item) in items.iter().enumerate().rev() {
                    waiting.push(Piece::Value(item));
                    waiting.push(Piece::Text(if index == 0 { "" } else { " " }));
                }
            }
            Piece::Value(Value::Object(map)) => {
                out.push_str("map[");
                waiting.push(Piece::Text("]"));
                for (index, (key, item)) in map.iter().enumerate().rev() {
                    waiting.push(Piece::Value(item));
                    waiting.push(Piece::Text(":"));
                    waiting.push(Piece::Text(key));
                    waiting.push(Piece::Text(if index == 0 { "" } else { " " }));
                }
            }
            Piece::Value(scalar) => write_scalar(scalar, &mut out),
        }
    }
    out
}

enum Piece<'v> {
    Value(&'v Value),
    Text(&'v str),
}

fn write_scalar(scalar: &Value, out: &mut String) {
    let written = match scalar {
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Int(number) => write!(out, "{number}"),
        Value::Float(number) => write_float(*number, out),
        Value::String(text) => out.write_str(text),
        Value::Null | Value::Array(_) | Value::Object(_) => out.write_str("<nil>"),
    };
    written.expect("writing to a string cannot fail");
}

/// The shortest digits that read back as the same number; with an exponent of two digits or more
/// if it is below -4 or above 5.
fn write_float(number: f64, out: &mut String) -> std::fmt::Result {
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        write!(out, "{number}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{digits}e{sign}{:02}", exponent.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    #[test]
    fn how_does_go_print_a_value() {
        for (value, text) in [
            (
                value!({"metadata": {"colour": "red"}}),
                "map[metadata:map[colour:red]]",
            ),
            (
                value!({"b": [], "a": [1, "two", null, true]}),
                "map[a:[1 two <nil> true] b:[]]",
            ),
            (value!([{}, [[]]]), "[map[] [[]]]"),
            (value!(1.5), "1.5"),
            (value!(-0.25), "-0.25"),
            (value!(100000.0), "100000"),
            (value!(1234567.0), "1.234567e+06"),
            (value!(2.5e-7), "2.5e-07"),
            (value!(""), ""),
        ] {
            assert_eq!(go_text(&value), text);
        }
    }

    #[test]
    fn a_deep_value_needs_no_deep_stack() {
        let mut value = value!([]);
        for _ in 1..5_000 {
            value = Value::Array(vec![value]);
        }
        assert_eq!(
            go_text(&value),
            format!("{}{}", "[".repeat(5_000), "]".repeat(5_000))
        );
    }
}
