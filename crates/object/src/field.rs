//! What is wrong with a field, in the words that clients know.
//!
//! Contract: apimachinery `util/validation/field`. Every invalid field of an object is reported at
//! once, as a list of [`FieldError`]s.

use std::fmt;

use crate::{Value, json};

/// Where a field is. A path is a chain of borrowed steps, so walking an object that has no
/// mistake allocates nothing.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The object itself.
    pub const fn root() -> Path<'static> {
        Path {
            parent: None,
            step: Step::Root,
        }
    }

    /// A field of the struct at this path.
    pub const fn field(&'a self, name: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    /// An item of the list at this path.
    pub const fn index(&'a self, index: usize) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// An entry of the dictionary at this path.
    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        Path {
            parent: Some(self),
            step: Step::Key(key),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nested = match self.parent {
            Some(parent) => {
                fmt::Display::fmt(parent, out)?;
                !matches!(parent.step, Step::Root)
            }
            None => false,
        };
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if nested => write!(out, ".{name}"),
            Step::Field(name) => out.write_str(name),
            Step::Index(index) => write!(out, "[{index}]"),
            Step::Key(key) => write!(out, "[{key}]"),
        }
    }
}

/// The kinds of mistake, each with a reason that clients switch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A value is missing.
    Required,
    /// A value is not acceptable in itself.
    Invalid,
    /// A value has the wrong type.
    TypeInvalid,
    /// A value is none of the known ones.
    NotSupported,
    /// A value that must be unique stands twice.
    Duplicate,
    /// A value names something that does not exist.
    NotFound,
    /// A value may not be set here.
    Forbidden,
    /// A value has too many bytes.
    TooLong,
    /// A value has too few bytes.
    TooShort,
    /// A list has too many items.
    TooMany,
    /// A list has too few items.
    TooFew,
    /// The server could not tell.
    Internal,
}

impl Mistake {
    /// The machine-readable reason, as `status.details.causes[].reason` carries it.
    pub fn reason(self) -> &'static str {
        match self {
            Mistake::Required => "FieldValueRequired",
            Mistake::Invalid => "FieldValueInvalid",
            Mistake::TypeInvalid => "FieldValueTypeInvalid",
            Mistake::NotSupported => "FieldValueNotSupported",
            Mistake::Duplicate => "FieldValueDuplicate",
            Mistake::NotFound => "FieldValueNotFound",
            Mistake::Forbidden => "FieldValueForbidden",
            Mistake::TooLong => "FieldValueTooLong",
            Mistake::TooShort => "FieldValueTooShort",
            Mistake::TooMany => "FieldValueTooMany",
            Mistake::TooFew => "FieldValueTooFew",
            Mistake::Internal => "InternalError",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Mistake::Required => "Required value",
            Mistake::Invalid | Mistake::TypeInvalid => "Invalid value",
            Mistake::NotSupported => "Unsupported value",
            Mistake::Duplicate => "Duplicate value",
            Mistake::NotFound => "Not found",
            Mistake::Forbidden => "Forbidden",
            Mistake::TooLong => "Too long",
            Mistake::TooShort => "Too short",
            Mistake::TooMany => "Too many",
            Mistake::TooFew => "Too few",
            Mistake::Internal => "Internal error",
        }
    }

    fn prints_value(self) -> bool {
        !matches!(
            self,
            Mistake::Required
                | Mistake::Forbidden
                | Mistake::TooLong
                | Mistake::TooShort
                | Mistake::Internal
        )
    }
}

/// One invalid field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What kind of mistake it is.
    pub mistake: Mistake,
    /// The path, such as `spec.containers[0].name`; `<nil>` for the object itself.
    pub field: String,
    /// The offending value as it is printed: strings quoted, numbers plain, the rest as JSON.
    pub value: Option<String>,
    /// What to do about it; may be empty.
    pub detail: String,
}

impl FieldError {
    fn new(mistake: Mistake, path: &Path<'_>, value: Option<String>, detail: String) -> FieldError {
        let field = match path.to_string() {
            field if field.is_empty() => "<nil>".to_owned(),
            field => field,
        };
        FieldError {
            mistake,
            field,
            value,
            detail,
        }
    }

    /// A value is missing.
    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::new(Mistake::Required, path, None, detail.into())
    }

    /// A value is not acceptable in itself.
    pub fn invalid(path: &Path<'_>, value: &Value, detail: impl Into<String>) -> FieldError {
        FieldError::new(Mistake::Invalid, path, Some(print(value)), detail.into())
    }

    /// A value has the wrong type.
    pub fn type_invalid(path: &Path<'_>, value: &Value, detail: impl Into<String>) -> FieldError {
        FieldError::new(
            Mistake::TypeInvalid,
            path,
            Some(print(value)),
            detail.into(),
        )
    }

    /// A value is none of `supported`, which are listed in the order given.
    pub fn not_supported(path: &Path<'_>, value: &Value, supported: &[&str]) -> FieldError {
        let quoted: Vec<String> = supported.iter().map(|text| quote(text)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        FieldError::new(Mistake::NotSupported, path, Some(print(value)), detail)
    }

    /// A value that must be unique stands twice.
    pub fn duplicate(path: &Path<'_>, value: &Value) -> FieldError {
        FieldError::new(Mistake::Duplicate, path, Some(print(value)), String::new())
    }

    /// A value names something that does not exist.
    pub fn not_found(path: &Path<'_>, value: &Value) -> FieldError {
        FieldError::new(Mistake::NotFound, path, Some(print(value)), String::new())
    }

    /// A value may not be set here.
    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::new(Mistake::Forbidden, path, None, detail.into())
    }

    /// The server could not tell whether a value is right.
    pub fn internal(path: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::new(Mistake::Internal, path, None, detail.into())
    }

    /// A value has more than `limit` bytes.
    pub fn too_long(path: &Path<'_>, limit: usize) -> FieldError {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {limit} {bytes}");
        FieldError::new(Mistake::TooLong, path, None, detail)
    }

    /// A list has `count` items, more than `limit`.
    pub fn too_many(path: &Path<'_>, count: usize, limit: usize) -> FieldError {
        let items = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {items}");
        FieldError::new(Mistake::TooMany, path, Some(count.to_string()), detail)
    }

    /// A list has `count` items, fewer than `limit`.
    pub fn too_few(path: &Path<'_>, count: usize, limit: usize) -> FieldError {
        let items = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at least {limit} {items}");
        FieldError::new(Mistake::TooFew, path, Some(count.to_string()), detail)
    }

    /// The message without the field, as `causes[].message` carries it.
    pub fn message(&self) -> String {
        let mut message = self.mistake.text().to_owned();
        if let (true, Some(value)) = (self.mistake.prints_value(), &self.value) {
            message.push_str(": ");
            message.push_str(value);
        }
        if !self.detail.is_empty() {
            message.push_str(": ");
            message.push_str(&self.detail);
        }
        message
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, self.message())
    }
}

/// Prints several errors as one text: a single one bare, more in brackets, repeats once.
pub fn summary<E: fmt::Display>(errors: &[E]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", texts.join(", ")),
    }
}

fn print(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Null => "null".to_owned(),
        other => String::from_utf8_lossy(&json::to_vec(other)).into_owned(),
    }
}

/// Quotes text as Go's `%q` does: printable characters stay, the rest is escaped.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", c as u32));
            }
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x10000 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push_str(&format!("\\U{:08x}", c as u32)),
        }
    }
    out.push('"');
    out
}

/// Whether Go's `strconv.IsPrint` lets the character stand: letters, marks, numbers, punctuation,
/// symbols and the ASCII space, approximated by excluding controls, other spaces and formats.
pub fn is_printable(character: char) -> bool {
    match character {
        ' ' => true,
        c if c.is_control() || c.is_whitespace() => false,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {
            false
        }
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' => false,
        c => (c as u32) < 0xe0000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn a_path_prints_as_upstream_prints_it() {
        let root = Path::root();
        let (spec, annotations) = (root.field("spec"), root.field("metadata"));
        let (list, map) = (spec.field("containers"), annotations.field("annotations"));
        assert_eq!(
            list.index(0).field("name").to_string(),
            "spec.containers[0].name"
        );
        assert_eq!(map.key("a/b").to_string(), "metadata.annotations[a/b]");
    }

    #[test]
    fn messages_name_value_and_detail() {
        let root = Path::root();
        let name = root.field("name");
        let invalid = FieldError::invalid(&name, &value!("a\"b"), "must be good");
        assert_eq!(
            invalid.to_string(),
            r#"name: Invalid value: "a\"b": must be good"#
        );
        let unsupported = FieldError::not_supported(&name, &value!("x"), &["a", "b"]);
        assert_eq!(
            unsupported.to_string(),
            r#"name: Unsupported value: "x": supported values: "a", "b""#
        );
        let errors = [
            FieldError::required(&name, ""),
            FieldError::required(&name, ""),
        ];
        assert_eq!(summary(&errors), "name: Required value");
        assert_eq!(
            FieldError::forbidden(&root, "no").to_string(),
            "<nil>: Forbidden: no"
        );
    }
}
