//! The document of version 2 in protobuf, as older clients ask for it.
//!
//! The messages are gnostic's `openapi.v2`; tables say which keyword is which field. What a
//! decoder merges may be written in pieces: each path and each definition is a `Document` of its
//! own, so that no more than one of them is in memory.

use std::io::{self, Write};

use object::{Map, Value, json};

/// How the value of a keyword is written.
enum Form {
    Text,
    Texts,
    Flag,
    Count,
    Number,
    /// Any value, as a text that YAML reads.
    Any,
    Anys,
    /// A message.
    One(&'static Shape),
    /// Messages of this form, one for each item.
    Many(&'static Form),
    /// A message that holds only this, in this field.
    Within(u32, &'static Form),
    /// A message of named values of this form.
    Named(&'static Form),
    /// One text or several, in a message.
    Types,
    /// A schema, or whether there may be anything.
    SchemaOrFlag,
    /// A parameter, in the message for its place.
    Parameter,
}

/// A message: its keywords, and the field for extensions.
struct Shape {
    keywords: &'static [(&'static str, u32, Form)],
    extensions: u32,
}

static SCHEMA: Shape = Shape {
    keywords: &[
        ("$ref", 1, Form::Text),
        ("format", 2, Form::Text),
        ("title", 3, Form::Text),
        ("description", 4, Form::Text),
        ("default", 5, Form::Any),
        ("multipleOf", 6, Form::Number),
        ("maximum", 7, Form::Number),
        ("exclusiveMaximum", 8, Form::Flag),
        ("minimum", 9, Form::Number),
        ("exclusiveMinimum", 10, Form::Flag),
        ("maxLength", 11, Form::Count),
        ("minLength", 12, Form::Count),
        ("pattern", 13, Form::Text),
        ("maxItems", 14, Form::Count),
        ("minItems", 15, Form::Count),
        ("uniqueItems", 16, Form::Flag),
        ("maxProperties", 17, Form::Count),
        ("minProperties", 18, Form::Count),
        ("required", 19, Form::Texts),
        ("enum", 20, Form::Anys),
        ("additionalProperties", 21, Form::SchemaOrFlag),
        ("type", 22, Form::Types),
        ("items", 23, Form::Within(1, &Form::One(&SCHEMA))),
        ("allOf", 24, Form::Many(&Form::One(&SCHEMA))),
        ("properties", 25, Form::Named(&Form::One(&SCHEMA))),
        ("discriminator", 26, Form::Text),
        ("readOnly", 27, Form::Flag),
        ("example", 30, Form::Any),
    ],
    extensions: 31,
};

static RESPONSE: Shape = Shape {
    keywords: &[
        ("description", 1, Form::Text),
        ("schema", 2, Form::Within(1, &Form::One(&SCHEMA))),
    ],
    extensions: 5,
};

static OPERATION: Shape = Shape {
    keywords: &[
        ("tags", 1, Form::Texts),
        ("summary", 2, Form::Text),
        ("description", 3, Form::Text),
        ("operationId", 5, Form::Text),
        ("produces", 6, Form::Texts),
        ("consumes", 7, Form::Texts),
        ("parameters", 8, Form::Many(&Form::Parameter)),
        (
            "responses",
            9,
            Form::Named(&Form::Within(1, &Form::One(&RESPONSE))),
        ),
        ("schemes", 10, Form::Texts),
        ("deprecated", 11, Form::Flag),
    ],
    extensions: 13,
};

static PATH_ITEM: Shape = Shape {
    keywords: &[
        ("get", 2, Form::One(&OPERATION)),
        ("put", 3, Form::One(&OPERATION)),
        ("post", 4, Form::One(&OPERATION)),
        ("delete", 5, Form::One(&OPERATION)),
        ("options", 6, Form::One(&OPERATION)),
        ("head", 7, Form::One(&OPERATION)),
        ("patch", 8, Form::One(&OPERATION)),
        ("parameters", 9, Form::Many(&Form::Parameter)),
    ],
    extensions: 10,
};

static BODY_PARAMETER: Shape = Shape {
    keywords: &[
        ("description", 1, Form::Text),
        ("name", 2, Form::Text),
        ("in", 3, Form::Text),
        ("required", 4, Form::Flag),
        ("schema", 5, Form::One(&SCHEMA)),
    ],
    extensions: 6,
};

static QUERY_PARAMETER: Shape = Shape {
    keywords: &[
        ("required", 1, Form::Flag),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 6, Form::Text),
        ("format", 7, Form::Text),
        ("uniqueItems", 20, Form::Flag),
    ],
    extensions: 23,
};

static PATH_PARAMETER: Shape = Shape {
    keywords: &[
        ("required", 1, Form::Flag),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 5, Form::Text),
        ("format", 6, Form::Text),
        ("uniqueItems", 19, Form::Flag),
    ],
    extensions: 22,
};

static INFO: Shape = Shape {
    keywords: &[("title", 1, Form::Text), ("version", 2, Form::Text)],
    extensions: 7,
};

static API_KEY: Shape = Shape {
    keywords: &[
        ("type", 1, Form::Text),
        ("name", 2, Form::Text),
        ("in", 3, Form::Text),
        ("description", 4, Form::Text),
    ],
    extensions: 5,
};

static DOCUMENT: Shape = Shape {
    keywords: &[
        ("swagger", 1, Form::Text),
        ("info", 2, Form::One(&INFO)),
        ("definitions", 9, Form::Named(&Form::One(&SCHEMA))),
        (
            "security",
            12,
            Form::Many(&Form::Named(&Form::Within(1, &Form::Texts))),
        ),
        (
            "securityDefinitions",
            13,
            Form::Named(&Form::Within(2, &Form::One(&API_KEY))),
        ),
    ],
    extensions: 16,
};

/// Everything of a document but its paths, or some of it.
pub(super) fn write_part(part: &Value, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    write_shape(&DOCUMENT, part, &mut bytes);
    out.write_all(&bytes)
}

/// One path of a document.
pub(super) fn write_path(path: &str, item: &Value, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = Vec::new();
    nest(8, &mut bytes, |paths| {
        nest(2, paths, |named| {
            write_bytes(1, path.as_bytes(), named);
            nest(2, named, |inner| write_shape(&PATH_ITEM, item, inner));
        });
    });
    out.write_all(&bytes)
}

fn write_shape(shape: &Shape, value: &Value, out: &mut Vec<u8>) {
    for (key, value) in value.as_object().into_iter().flat_map(Map::iter) {
        if key.starts_with("x-") {
            nest(shape.extensions, out, |named| {
                write_bytes(1, key.as_bytes(), named);
                write_form(2, &Form::Any, value, named);
            });
            continue;
        }
        let keyword = shape.keywords.iter().find(|(name, ..)| *name == key);
        if let Some((_, number, form)) = keyword {
            write_form(*number, form, value, out);
        }
    }
}

fn write_form(number: u32, form: &Form, value: &Value, out: &mut Vec<u8>) {
    let items = value.as_array().unwrap_or_default();
    match form {
        Form::Text => write_text(number, value, out),
        Form::Texts => items.iter().for_each(|item| write_text(number, item, out)),
        Form::Flag => {
            if value.as_bool() == Some(true) {
                write_count(number, 1, out);
            }
        }
        Form::Count => write_count(number, value.as_int().unwrap_or(0), out),
        Form::Number => {
            let float = match value {
                Value::Int(number) => *number as f64,
                other => other.as_float().unwrap_or(0.0),
            };
            write_varint(u64::from(number) << 3 | 1, out);
            out.extend_from_slice(&float.to_le_bytes());
        }
        Form::Any => nest(number, out, |any| {
            let mut text = json::to_vec(value);
            text.push(b'\n');
            write_bytes(2, &text, any);
        }),
        Form::Anys => {
            for item in items {
                write_form(number, &Form::Any, item, out);
            }
        }
        Form::One(shape) => nest(number, out, |inner| write_shape(shape, value, inner)),
        Form::Many(form) => {
            for item in items {
                write_form(number, form, item, out);
            }
        }
        Form::Within(place, form) => {
            nest(number, out, |inner| write_form(*place, form, value, inner));
        }
        Form::Named(form) => nest(number, out, |inner| {
            for (name, value) in value.as_object().into_iter().flat_map(Map::iter) {
                nest(1, inner, |named| {
                    write_bytes(1, name.as_bytes(), named);
                    write_form(2, form, value, named);
                });
            }
        }),
        Form::Types => nest(number, out, |inner| match value {
            Value::Array(items) => items.iter().for_each(|item| write_text(1, item, inner)),
            one => write_text(1, one, inner),
        }),
        Form::SchemaOrFlag => nest(number, out, |inner| match value.as_bool() {
            Some(flag) => write_count(2, flag.into(), inner),
            None => write_form(1, &Form::One(&SCHEMA), value, inner),
        }),
        Form::Parameter => nest(number, out, |item| {
            nest(1, item, |parameter| write_parameter(value, parameter));
        }),
    }
}

fn write_parameter(value: &Value, out: &mut Vec<u8>) {
    let (place, shape) = match value.str_at(&["in"]) {
        Some("body") => return write_form(1, &Form::One(&BODY_PARAMETER), value, out),
        Some("path") => (4, &PATH_PARAMETER),
        _ => (3, &QUERY_PARAMETER),
    };
    nest(2, out, |other| {
        nest(place, other, |inner| write_shape(shape, value, inner));
    });
}

/// Writes a message as a field.
fn nest(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    write_bytes(number, &inner, out);
}

fn write_text(number: u32, value: &Value, out: &mut Vec<u8>) {
    write_bytes(number, value.as_str().unwrap_or_default().as_bytes(), out);
}

fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | 2, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn write_count(number: u32, count: i64, out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3, out);
    write_varint(count as u64, out);
}

fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number as u8) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::value;

    fn written(part: Value) -> Vec<u8> {
        let mut out = Vec::new();
        write_part(&part, &mut out).expect("writing to memory does not fail");
        out
    }

    #[test]
    fn keywords_become_the_fields_of_their_messages() {
        assert_eq!(written(value!({"swagger": "2.0"})), b"\x0a\x032.0");
        // definitions { additional_properties { name: "A" value { type { value: "object" } } } }
        let definition = written(value!({"definitions": {"A": {"type": "object"}}}));
        let expected = b"\x4a\x12\x0a\x10\x0a\x01A\x12\x0b\xb2\x01\x08\x0a\x06object";
        assert_eq!(definition, expected);
        // Extensions carry their value as text.
        let extended = written(value!({"x-a": {"b": [1]}}));
        assert!(extended.ends_with(b"\x12\x0c\x12\x0a{\"b\":[1]}\n"));
    }

    #[test]
    fn a_path_is_a_document_of_its_own() {
        let mut out = Vec::new();
        let item = value!({"get": {"operationId": "x", "parameters": [
            {"name": "q", "in": "query", "type": "string"},
        ]}});
        write_path("/a", &item, &mut out).expect("writing to memory does not fail");
        assert_eq!(out[0], 8 << 3 | 2);
        assert_eq!(usize::from(out[1]), out.len() - 2);
        assert!(out.windows(4).any(|bytes| bytes == b"\x2a\x01x\x42"));
    }
}
