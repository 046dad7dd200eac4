//! The wire form of a set: `{"f:spec":{"f:replicas":{}}}`.
//!
//! Contract: structured-merge-diff `fieldpath` serialization, to the byte. Three layers of
//! escaping meet here: key values are JSON with HTML escaping, the element is then a JSON key with
//! minimal escaping, and typed objects print that text with HTML escaping once more.

use object::{Map, Text, Value, json};

use super::{Entry, FieldSet, size_of};
use crate::{path::PathElement, scan::Scanner};

/// Why a text is no field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// Not a JSON object, or null.
    #[error("expected a JSON object of fields")]
    NotAnObject,
    /// A key that names no path element.
    #[error("parsing key {key:?} as path element: {reason}")]
    Element {
        /// The key as it was written.
        key: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Not JSON at all.
    #[error("{0}")]
    Json(String),
}

/// How keys are ordered and escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is stored: in path order, with minimal escaping.
    Stored,
    /// As typed objects print it: in path order, with HTML escaping.
    Typed,
    /// As custom resources print it: keys sorted bytewise, with HTML escaping.
    Custom,
}

impl FieldSet {
    /// The wire form as it is stored, before any HTML escaping.
    pub fn to_fields_v1(&self) -> String {
        let mut out = Vec::new();
        self.write_fields_v1(Form::Stored, &mut out);
        String::from_utf8(out).expect("keys are text and everything else is ASCII")
    }

    /// Reads the wire form from its text.
    pub fn from_fields_v1(text: &[u8]) -> Result<FieldSet, FieldsError> {
        if let Ok(text) = std::str::from_utf8(text) {
            let mut scanner = Scanner::new(text);
            if let Some(set) = scanner.fields().filter(|_| scanner.is_done()) {
                return Ok(set);
            }
        }
        let tree = json::parse(text).map_err(|error| FieldsError::Json(error.to_string()))?;
        FieldSet::from_value(&tree)
    }

    /// Reads the wire form from a tree. Keys may come in any order, unknown kinds of keys are
    /// dropped, and `null` stands for no fields.
    pub fn from_value(tree: &Value) -> Result<FieldSet, FieldsError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut open: Vec<(usize, std::vec::IntoIter<Child<'_>>)> = Vec::new();
        let (mut level, _) = children(tree)?;
        loop {
            let Some(child) = level.next() else {
                let Some((at, outer)) = open.pop() else { break };
                entries[at].size = size_of(entries.len() - at);
                level = outer;
                continue;
            };
            let (below, marked) = children(child.tree)?;
            let member = marked || below.len() == 0;
            open.push((entries.len(), std::mem::replace(&mut level, below)));
            entries.push(Entry {
                element: child.element,
                size: 0,
                member,
            });
        }
        Ok(FieldSet::from_entries(entries))
    }

    /// The wire form as a tree, whose keys are sorted bytewise.
    pub fn to_value(&self) -> Value {
        let entries = self.entries();
        let mut open: Vec<(usize, Text, Level)> = Vec::new();
        let mut level: Level = Vec::new();
        let mut key = Vec::new();
        let mut at = 0;
        loop {
            while open.last().is_some_and(|(end, _, _)| *end == at) {
                let (_, name, outer) = open.pop().expect("the loop's condition");
                let below = std::mem::replace(&mut level, outer);
                level.push((name, Value::Object(Map::from_entries(below))));
            }
            let Some(entry) = entries.get(at) else { break };
            key.clear();
            write_element(&entry.element, &mut key);
            let name = Text::from_utf8_lossy(&key);
            let below = match entry.member && entry.size > 1 {
                true => vec![(Text::from("."), Value::Object(Map::new()))],
                false => Vec::new(),
            };
            open.push((
                at + entry.size as usize,
                name,
                std::mem::replace(&mut level, below),
            ));
            at += 1;
        }
        Value::Object(Map::from_entries(level))
    }

    /// Appends the wire form.
    pub(crate) fn write_fields_v1(&self, form: Form, out: &mut Vec<u8>) {
        let Some(kept) = self.kept_text(form) else {
            return self.write_anew(form, out);
        };
        let text = kept.get_or_init(|| {
            let mut text = Vec::new();
            self.write_anew(form, &mut text);
            text.into()
        });
        out.extend_from_slice(text);
    }

    fn write_anew(&self, form: Form, out: &mut Vec<u8>) {
        if form == Form::Custom {
            json::write(&self.to_value(), out);
            return;
        }
        let mut ends: Vec<usize> = Vec::new();
        let mut key = Vec::new();
        out.push(b'{');
        let mut first = true;
        for (at, entry) in self.entries().iter().enumerate() {
            while ends.last() == Some(&at) {
                ends.pop();
                out.push(b'}');
                first = false;
            }
            if !first {
                out.push(b',');
            }
            match &entry.element {
                PathElement::Field(name) => {
                    out.extend_from_slice(b"\"f:");
                    write_escaped(name.as_bytes(), form, out);
                }
                element => {
                    key.clear();
                    write_element(element, &mut key);
                    out.push(b'"');
                    write_escaped(&key, form, out);
                }
            }
            out.extend_from_slice(b"\":{");
            first = true;
            if entry.size == 1 {
                out.push(b'}');
                first = false;
            } else {
                ends.push(at + entry.size as usize);
                if entry.member {
                    out.extend_from_slice(b"\".\":{}");
                    first = false;
                }
            }
        }
        out.resize(out.len() + ends.len() + 1, b'}');
    }
}

impl PathElement {
    /// Reads one element such as `f:name`; `None` if its kind is unknown.
    pub fn parse(key: &str) -> Result<Option<PathElement>, FieldsError> {
        let wrong = |reason| FieldsError::Element {
            key: key.to_owned(),
            reason,
        };
        let bytes = key.as_bytes();
        if bytes.len() < 2 {
            return Err(wrong("key must be 2 characters long"));
        }
        if bytes[1] != b':' {
            return Err(wrong("missing colon"));
        }
        let content = &bytes[2..];
        match bytes[0] {
            b'f' => Ok(Some(PathElement::Field(key[2..].into()))),
            b'v' => match json::parse(content) {
                Ok(value) => Ok(Some(PathElement::Value(value))),
                Err(_) => Err(wrong("the value is not JSON")),
            },
            b'k' => match json::parse(content) {
                Ok(Value::Object(pairs)) => Ok(Some(PathElement::Key(pairs.into_iter().collect()))),
                _ => Err(wrong("the keys are not a JSON object")),
            },
            b'i' => match key[2..].parse() {
                Ok(index) => Ok(Some(PathElement::Index(index))),
                Err(_) => Err(wrong("the index is not an integer")),
            },
            _ => Ok(None),
        }
    }

    /// The element as it stands in a field set, such as `k:{"port":80}`.
    pub fn to_wire(&self) -> String {
        let mut out = Vec::new();
        write_element(self, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// The entries of one node of a tree.
type Level = Vec<(Text, Value)>;

struct Child<'a> {
    element: PathElement,
    tree: &'a Value,
}

/// The elements of one node in order, and whether it is marked as a member.
fn children(tree: &Value) -> Result<(std::vec::IntoIter<Child<'_>>, bool), FieldsError> {
    let map = match tree {
        Value::Object(map) => map,
        Value::Null => return Ok((Vec::new().into_iter(), false)),
        _ => return Err(FieldsError::NotAnObject),
    };
    let mut children: Vec<Child<'_>> = Vec::with_capacity(map.len());
    let mut member = false;
    for (key, tree) in map.iter() {
        if key == "." {
            member = true;
        } else if let Some(element) = PathElement::parse(key)? {
            children.push(Child { element, tree });
        }
    }
    if !children.is_sorted_by(|left, right| left.element < right.element) {
        children.sort_by(|left, right| left.element.cmp(&right.element));
        // Two spellings of one element, such as `v:1` and `v:1.0`: the later one stands.
        children.dedup_by(|later, earlier| {
            let repeated = later.element == earlier.element;
            if repeated {
                std::mem::swap(later, earlier);
            }
            repeated
        });
    }
    Ok((children.into_iter(), member))
}

/// Appends an element before it is escaped as a JSON key.
fn write_element(element: &PathElement, out: &mut Vec<u8>) {
    match element {
        PathElement::Field(name) => {
            out.extend_from_slice(b"f:");
            out.extend_from_slice(name.as_bytes());
        }
        PathElement::Key(pairs) => {
            out.extend_from_slice(b"k:{");
            for (at, (name, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.push(b'"');
                write_escaped(name.as_bytes(), Form::Stored, out);
                out.extend_from_slice(b"\":");
                json::write(value, out);
            }
            out.push(b'}');
        }
        PathElement::Value(value) => {
            out.extend_from_slice(b"v:");
            json::write(value, out);
        }
        PathElement::Index(index) => {
            out.extend_from_slice(b"i:");
            out.extend_from_slice(index.to_string().as_bytes());
        }
    }
}

/// Which bytes of a string may need an escape.
static MAY_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = byte < 0x20 || matches!(byte as u8, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
        byte += 1;
    }
    table
};

/// Appends text with the escapes of a JSON string, without the quotes.
fn write_escaped(text: &[u8], form: Form, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| MAY_ESCAPE[usize::from(*byte)]) {
        out.extend_from_slice(&rest[..at]);
        let taken = write_escape(&rest[at..], form, out);
        rest = &rest[at + taken..];
    }
    out.extend_from_slice(rest);
}

/// Appends the first character of `text`, escaped if need be, and gives its length.
fn write_escape(text: &[u8], form: Form, out: &mut Vec<u8>) -> usize {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let html = form != Form::Stored;
    match text[0] {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0xe2 if html && is_line_separator(text) => {
            out.extend_from_slice(b"\\u202");
            out.push(if text[2] == 0xa8 { b'8' } else { b'9' });
            return 3;
        }
        byte @ (b'<' | b'>' | b'&' | 0xe2) if !html || byte == 0xe2 => out.push(byte),
        byte => {
            out.extend_from_slice(b"\\u00");
            out.push(DIGITS[usize::from(byte >> 4)]);
            out.push(DIGITS[usize::from(byte & 15)]);
        }
    }
    1
}

fn is_line_separator(text: &[u8]) -> bool {
    text.starts_with(&[0xe2, 0x80, 0xa8]) || text.starts_with(&[0xe2, 0x80, 0xa9])
}
