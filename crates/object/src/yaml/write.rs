//! Writing of YAML.
//!
//! Contract: `sigs.k8s.io/yaml` `JSONToYAML`: keys in the natural order of its sorter, two spaces
//! for each level, list items not indented under their key, strings in quotes only when they would
//! read back as something else, long lines folded behind column 80.

mod scalar;
mod sort;

use crate::{Map, Value, json};

/// Deeper values are written in flow style, as JSON. Indenting every line of a tree that nests ten
/// thousand levels would make gigabytes of spaces out of one object.
const BLOCK_LEVELS_MAX: usize = 200;

/// A longer key is written behind a question mark.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

/// Writes a tree as YAML that ends with a line break.
pub fn to_string(value: &Value) -> String {
    let mut writer = Writer {
        out: String::new(),
        column: 0,
        after_space: true,
        in_indent: true,
    };
    writer.node(value, Place::Root, -2, 0);
    writer.start_line(0);
    writer.out
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Item,
    Value,
    /// The value of a key that needs a question mark.
    LongKeyValue,
}

struct Writer {
    out: String,
    /// The column in characters.
    column: usize,
    /// Whether the last thing written separates what comes next.
    after_space: bool,
    /// Whether the line has nothing yet but spaces and the signs of list items.
    in_indent: bool,
}

impl Writer {
    /// Writes a node whose container is indented by `indent`, -2 for the root.
    fn node(&mut self, value: &Value, place: Place, indent: isize, level: usize) {
        match value {
            Value::Null => self.plain_word("null"),
            Value::Bool(flag) => self.plain_word(if *flag { "true" } else { "false" }),
            Value::Int(number) => self.plain_word(&number.to_string()),
            Value::Float(number) => self.plain_word(&float(*number)),
            Value::String(text) => self.string(text, (indent + 2).max(2) as usize),
            Value::Array(items) if items.is_empty() => self.plain_word("[]"),
            Value::Object(map) if map.is_empty() => self.plain_word("{}"),
            _ if level == BLOCK_LEVELS_MAX => self.flow(value),
            Value::Array(items) => {
                let indent = if place == Place::Value {
                    indent
                } else {
                    indent + 2
                };
                self.sequence(items, indent, level + 1);
            }
            Value::Object(map) => self.mapping(map, indent + 2, level + 1),
        }
    }

    fn sequence(&mut self, items: &[Value], indent: isize, level: usize) {
        for item in items {
            self.start_line(indent as usize);
            self.indicator("-", true);
            self.node(item, Place::Item, indent, level);
        }
    }

    fn mapping(&mut self, map: &Map, indent: isize, level: usize) {
        for (key, value) in sort::natural(map) {
            self.start_line(indent as usize);
            if key.len() <= SIMPLE_KEY_BYTES_MAX && !key.chars().any(scalar::is_break) {
                self.simple_key(key);
                self.put(":");
                (self.after_space, self.in_indent) = (false, false);
                self.node(value, Place::Value, indent, level);
            } else {
                self.indicator("?", true);
                self.string(key, indent as usize + 2);
                self.start_line(indent as usize);
                self.indicator(":", true);
                self.node(value, Place::LongKeyValue, indent, level);
            }
        }
    }

    /// Writes a sign that may be followed by a collection on the same line.
    fn indicator(&mut self, sign: &str, stays_in_indent: bool) {
        self.separate();
        self.put(sign);
        self.after_space = false;
        self.in_indent = self.in_indent && stays_in_indent;
    }

    fn plain_word(&mut self, word: &str) {
        self.separate();
        self.put(word);
        (self.after_space, self.in_indent) = (false, false);
    }

    fn flow(&mut self, value: &Value) {
        self.separate();
        let text = json::to_vec(value);
        for character in String::from_utf8_lossy(&text).chars() {
            // Such characters stand only in strings.
            if super::is_refused(character) {
                self.put(&format!("\\u{:04x}", u32::from(character)));
            } else {
                self.put_char(character);
            }
        }
        (self.after_space, self.in_indent) = (false, false);
    }

    fn separate(&mut self) {
        if !self.after_space {
            self.put(" ");
        }
    }

    /// Goes to column `indent`, on a new line unless this one has nothing yet.
    fn start_line(&mut self, indent: usize) {
        if !self.in_indent || self.column > indent || (self.column == indent && !self.after_space) {
            self.line_break();
        }
        while self.column < indent {
            self.put(" ");
        }
        (self.after_space, self.in_indent) = (true, true);
    }

    fn line_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn put_char(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }
}

/// Prints a float as it comes out after a round through JSON and YAML.
fn float(number: f64) -> String {
    let mut literal = Vec::new();
    json::write_float(number, &mut literal);
    let literal = String::from_utf8(literal).unwrap_or_default();
    if let Ok(integer) = literal.parse::<i64>() {
        return integer.to_string();
    }
    if literal.parse::<u64>().is_ok() || !number.is_finite() {
        return literal;
    }
    general(&format!("{number:e}"))
}

/// Makes of Rust's exponent form what Go's `%g` prints: plain digits for exponents from -4 to 5,
/// and else an exponent of at least two digits with its sign.
pub(super) fn general(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let point = exponent + 1;
    if point <= 0 {
        return format!(
            "{sign}0.{}{digits}",
            "0".repeat(point.unsigned_abs() as usize)
        );
    }
    let point = point as usize;
    if point >= digits.len() {
        format!("{sign}{digits}{}", "0".repeat(point - digits.len()))
    } else {
        format!("{sign}{}.{}", &digits[..point], &digits[point..])
    }
}
