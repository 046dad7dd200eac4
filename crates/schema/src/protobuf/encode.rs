//! From the value tree to a message.
//!
//! The tree is one that its type prints; what does not fit the type is written as nothing.

use object::{Map, Value};

use super::message::{Content, Layout, Message, Messages, Shape};
use super::scalar;
use super::wire::Backward;
use crate::decode::DECODE_DEPTH_MAX;
use crate::{InsteadOfSchema, MapType, TypeId, Types};

/// Most structs have at most so many fields; the places of more are kept on the heap.
const FIELDS_ON_STACK: usize = 48;

/// How many bytes are set aside at first.
const CAPACITY: usize = 4096;

/// Appends the message of `object`, which is of the type `root`.
pub fn encode(types: &Types, root: TypeId, object: &Value, out: &mut Vec<u8>) {
    let mut writer = Writer {
        types,
        messages: types.messages(),
        out: Backward::with_capacity(CAPACITY),
    };
    writer.message(root, object.as_object(), 0);
    out.extend_from_slice(writer.out.written());
}

struct Writer<'t> {
    types: &'t Types,
    messages: &'t Messages,
    out: Backward,
}

impl Writer<'_> {
    /// Writes the fields of a struct. What lies deeper than anything that was ever read is left
    /// out, so that no stack overflows.
    fn message(&mut self, ty: TypeId, map: Option<&Map>, depth: usize) {
        let (Some(message), Some(shape)) = (self.messages.get(ty), &self.types.get(ty).map) else {
            return;
        };
        if depth > DECODE_DEPTH_MAX {
            return;
        }
        if shape.fields.len() <= FIELDS_ON_STACK {
            let mut values = [None; FIELDS_ON_STACK];
            find(shape, map, &mut values);
            self.slots(message, &values, depth);
        } else {
            let mut values = vec![None; shape.fields.len()];
            find(shape, map, &mut values);
            self.slots(message, &values, depth);
        }
    }

    fn slots(&mut self, message: &Message, values: &[Option<&Value>], depth: usize) {
        for slot in message.slots.iter().rev() {
            match &slot.content {
                Content::Embedded(message) => {
                    let mark = self.out.open();
                    self.slots(message, values, depth);
                    self.out.close(slot.number, mark);
                }
                Content::Field(field) => match values[field.at] {
                    Some(value) => self.field(slot.number, &field.shape, value, depth),
                    None if field.always => {
                        self.field(slot.number, &field.shape, &Value::Null, depth);
                    }
                    None => {}
                },
            }
        }
    }

    fn field(&mut self, number: u32, shape: &Shape, value: &Value, depth: usize) {
        match (shape, value) {
            (Shape::One(layout), value) => self.one(number, layout, value, depth),
            (Shape::List(layout), Value::Array(items)) => {
                for item in items.iter().rev() {
                    self.one(number, layout, item, depth + 1);
                }
            }
            (Shape::Dictionary(layout, _), Value::Object(map)) => {
                for (key, value) in map.iter().rev() {
                    let mark = self.out.open();
                    self.one(2, layout, value, depth + 1);
                    self.out.bytes(1, key.as_bytes());
                    self.out.close(number, mark);
                }
            }
            (Shape::List(_) | Shape::Dictionary(_, _), _) => {}
        }
    }

    fn one(&mut self, number: u32, layout: &Layout, value: &Value, depth: usize) {
        match layout {
            Layout::Text => {
                let text = value.as_str().unwrap_or_default();
                self.out.bytes(number, text.as_bytes());
            }
            Layout::Int32 | Layout::Int64 => {
                self.out.number(number, value.as_int().unwrap_or_default());
            }
            Layout::Bool => {
                let flag = value.as_bool().unwrap_or_default();
                self.out.number(number, flag.into());
            }
            Layout::Double => {
                let double = value.as_float().unwrap_or_default();
                self.out.double(number, double);
            }
            Layout::Bytes => scalar::write_bytes(number, value, &mut self.out),
            layout => {
                let mark = self.out.open();
                self.nested(layout, value, depth);
                self.out.close(number, mark);
            }
        }
    }

    /// Writes what stands in a message of its own.
    fn nested(&mut self, layout: &Layout, value: &Value, depth: usize) {
        let out = &mut self.out;
        match layout {
            Layout::Time => scalar::write_time(value, out),
            Layout::MicroTime => scalar::write_micro_time(value, out),
            Layout::Duration => scalar::write_duration(value, out),
            Layout::Quantity => out.bytes(1, value.as_str().unwrap_or("0").as_bytes()),
            Layout::IntOrString => scalar::write_int_or_string(value, out),
            Layout::Json { .. } => scalar::write_json(value, out),
            Layout::SchemaOr { schema, other } => self.schema_or(*schema, *other, value, depth),
            Layout::Wrapped(item) => {
                for value in value.as_array().unwrap_or_default().iter().rev() {
                    self.one(1, item, value, depth);
                }
            }
            Layout::Message(ty) => self.message(*ty, value.as_object(), depth + 1),
            _ => {}
        }
    }

    /// Contract: apiextensions `pkg/apis/apiextensions/v1/types_jsonschema.go`. A schema in the
    /// place of a boolean also says `true`.
    fn schema_or(&mut self, schema: TypeId, other: InsteadOfSchema, value: &Value, depth: usize) {
        let schema_number = match other {
            InsteadOfSchema::Bool => 2,
            InsteadOfSchema::Schemas | InsteadOfSchema::Strings => 1,
        };
        match value {
            Value::Object(map) => {
                let mark = self.out.open();
                self.message(schema, Some(map), depth + 2);
                self.out.close(schema_number, mark);
            }
            Value::Array(items) if other == InsteadOfSchema::Strings => {
                for item in items.iter().rev() {
                    self.one(2, &Layout::Text, item, depth);
                }
            }
            Value::Array(items) => {
                for item in items.iter().rev() {
                    self.one(2, &Layout::Message(schema), item, depth + 1);
                }
            }
            _ => {}
        }
        if other == InsteadOfSchema::Bool {
            let allows = !matches!(value, Value::Null | Value::Bool(false));
            self.out.number(1, allows.into());
        }
    }
}

/// Finds the value of each declared field; `null` is nothing. Both sides are sorted by name.
fn find<'v>(shape: &MapType, map: Option<&'v Map>, values: &mut [Option<&'v Value>]) {
    let Some(map) = map else { return };
    let mut next = 0;
    for (key, value) in map.entries() {
        next = match shape.fields.search_from(next, key) {
            Ok(at) => {
                values[at] = (!value.is_null()).then_some(value);
                at + 1
            }
            Err(at) => at,
        };
    }
}
