//! Values as Go's `fmt` prints them, for messages that clients match on.

use object::{Value, field::quote};

/// Deeper values are cut short in messages.
const LEVELS_MAX: u32 = 32;

/// A float as `%v` prints it.
pub(crate) fn float(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let scientific = format!("{number:e}");
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    number.to_string()
}

/// A value as `%v` prints it.
pub(crate) fn plain(value: &Value) -> String {
    let mut out = String::new();
    write_plain(value, LEVELS_MAX, &mut out);
    out
}

/// A value as `%#v` prints it.
pub(crate) fn syntax(value: &Value) -> String {
    let mut out = String::new();
    write_syntax(value, LEVELS_MAX, &mut out);
    out
}

/// The type of a value as `%T` prints it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn write_plain(value: &Value, levels: u32, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::String(text) => out.push_str(text),
        Value::Array(_) | Value::Object(_) if levels == 0 => out.push_str("..."),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { " " });
                write_plain(item, levels - 1, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (at, (key, item)) in map.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { " " });
                out.push_str(key);
                out.push(':');
                write_plain(item, levels - 1, out);
            }
            out.push(']');
        }
    }
}

fn write_syntax(value: &Value, levels: u32, out: &mut String) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::String(text) => out.push_str(&quote(text)),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => write_plain(value, levels, out),
        Value::Array(_) | Value::Object(_) if levels == 0 => out.push_str("..."),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_syntax(item, levels - 1, out);
            }
            out.push('}');
        }
        Value::Object(map) => {
            out.push_str("map[string]interface {}{");
            for (at, (key, item)) in map.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                out.push_str(&quote(key));
                out.push(':');
                write_syntax(item, levels - 1, out);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    #[test]
    fn values_print_as_go_prints_them() {
        let nested = value!({"a": [1, "x", null], "b": {"c": 1.5}});
        assert_eq!(plain(&nested), "map[a:[1 x <nil>] b:map[c:1.5]]");
        assert_eq!(
            syntax(&nested),
            "map[string]interface {}{\"a\":[]interface {}{1, \"x\", interface {}(nil)}, \
             \"b\":map[string]interface {}{\"c\":1.5}}"
        );
    }

    #[test]
    fn floats_switch_to_exponents_where_go_does() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
        ];
        for (number, text) in cases {
            assert_eq!(float(number), text);
        }
    }
}
