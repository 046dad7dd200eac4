//! From a message to the value tree.
//!
//! Rules of protobuf: a field that is unknown is left out; of a scalar that comes twice the last
//! one counts; lists, dictionaries and messages are the sum of their pieces. Fields come in the
//! order of their numbers and the tree has them in the order of their names. So a message is read
//! twice: first each field is found in the bytes and noted in a table that has one place for each
//! declared field, then the table is walked and what was found is read into the tree. The work
//! stays in proportion to the bytes.

use std::ops::Range;

use object::{Map, Text, Value};

use super::message::{Content, FieldSlot, Layout, Message, Messages, Shape, wire_of};
use super::scalar::{self, wrong_wire_type};
use super::wire::{BYTES, FIXED64, Fields, Key, VARINT};
use super::{DecodeError, Failure};
use crate::decode::{Blank, DECODE_DEPTH_MAX, print_declared, printed_when_absent, zero};
use crate::{InsteadOfSchema, MapType, TypeId, Types};

/// Reads a message of the type `root` and gives back what that type prints, without `apiVersion`
/// and `kind`.
///
/// # Errors
/// If the bytes are not such a message.
pub fn decode(types: &Types, root: TypeId, bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut reader = Reader {
        types,
        messages: types.messages(),
        found: vec![Found::NOTHING; FOUND_AT_FIRST],
        open: 0,
        earlier: Vec::new(),
    };
    Ok(reader.message(root, &[bytes], 0)?)
}

/// How many places there are at first: enough for the messages that are usually open at once.
const FOUND_AT_FIRST: usize = 128;

struct Reader<'t, 'b> {
    types: &'t Types,
    messages: &'t Messages,
    /// One place for each declared field of each open message, the innermost last, and places
    /// that are free.
    found: Vec<Found<'t, 'b>>,
    /// Where the free places begin.
    open: usize,
    /// The pieces of open messages that are not the last ones of their fields.
    earlier: Vec<Earlier<'b>>,
}

/// What the bytes hold of a declared field. It counts only if the frame has seen the field.
#[derive(Clone, Copy)]
struct Found<'t, 'b> {
    shape: &'t Shape,
    /// The last piece.
    raw: Raw<'b>,
    /// How many pieces of it came earlier and count, too.
    earlier: u32,
}

/// A piece of a field that comes in several pieces.
struct Earlier<'b> {
    /// The place of the field among the declared ones.
    at: u32,
    raw: Raw<'b>,
}

/// A value as it stands in the bytes.
#[derive(Clone, Copy)]
enum Raw<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// Where the parts of the tables begin that belong to the innermost open message.
struct Frame {
    found: usize,
    earlier: usize,
    /// One bit for each declared field that there is a piece of.
    seen: u64,
}

impl<'t, 'b> Reader<'t, 'b> {
    fn message(&mut self, ty: TypeId, pieces: &[&'b [u8]], depth: usize) -> Result<Value, Failure> {
        if depth > DECODE_DEPTH_MAX {
            // Writing stops here, too, and leaves an empty message.
            let is_empty = pieces.iter().all(|bytes| bytes.is_empty());
            let nothing = is_empty.then(|| Value::Object(Map::new()));
            return nothing.ok_or_else(|| DecodeError::TooDeep.into());
        }
        let (Some(message), Some(shape)) = (self.messages.get(ty), &self.types.get(ty).map) else {
            return Ok(Value::Object(Map::new()));
        };
        let mut frame = Frame {
            found: self.open,
            earlier: self.earlier.len(),
            seen: 0,
        };
        self.open += shape.fields.len();
        if self.found.len() < self.open {
            self.found.resize(self.open * 2, Found::NOTHING);
        }
        for bytes in pieces {
            self.find(message, shape, bytes, &mut frame)?;
        }
        // The pieces of one field come one after the other, unless somebody takes pains.
        let earlier = &mut self.earlier[frame.earlier..];
        if !earlier.is_sorted_by_key(|piece| piece.at) {
            earlier.sort_by_key(|piece| piece.at);
        }
        let entries = self.entries(message, shape, &frame, depth)?;
        self.open = frame.found;
        self.earlier.truncate(frame.earlier);
        Ok(Value::Object(Map::from_sorted(entries)))
    }

    /// Notes where the fields of a message are; those of an embedded one are among them.
    fn find(
        &mut self,
        message: &'t Message,
        shape: &MapType,
        bytes: &'b [u8],
        frame: &mut Frame,
    ) -> Result<(), Failure> {
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match message.slot(key.number).map(|slot| &slot.content) {
                None => fields.skip(key.wire)?,
                Some(Content::Embedded(inner)) => {
                    let bytes = bytes_of(key, &mut fields)
                        .map_err(|wrong| named(wrong, "of an embedded message"))?;
                    self.find(inner, shape, bytes, frame)?;
                }
                Some(Content::Field(field)) => {
                    let bit = 1 << field.at;
                    let is_first = frame.seen & bit == 0;
                    if field.skips_zero && is_first && key.wire == field.wire {
                        // Messages are full of plain fields that hold nothing.
                        if fields.take_zero_byte() {
                            continue;
                        }
                    }
                    let raw = raw_of(field, key, &mut fields)
                        .map_err(|wrong| named(wrong, &shape.fields[field.at].name))?;
                    let found = &mut self.found[frame.found + field.at];
                    if is_first {
                        frame.seen |= bit;
                        found.shape = &field.shape;
                        found.earlier = 0;
                    } else if is_sum(&field.shape) {
                        found.earlier += 1;
                        self.earlier.push(Earlier {
                            at: field.at as u32,
                            raw: found.raw,
                        });
                    }
                    found.raw = raw;
                }
            }
        }
        Ok(())
    }

    /// Reads the fields that were found, in the order of their names.
    fn entries(
        &mut self,
        message: &Message,
        shape: &MapType,
        frame: &Frame,
        depth: usize,
    ) -> Result<Vec<(Text, Value)>, Failure> {
        let mut rest = frame.seen | message.printed;
        let mut entries = Vec::with_capacity(rest.count_ones() as usize);
        let mut earlier = frame.earlier;
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let field = &shape.fields[at];
            if frame.seen & (1 << at) == 0 {
                let absent = printed_when_absent(self.types, field);
                entries.extend(absent.map(|value| (field.name.clone(), value)));
                continue;
            }
            let found = self.found[frame.found + at];
            let pieces = earlier..earlier + found.earlier as usize;
            earlier = pieces.end;
            match self.field(found.shape, pieces, found.raw, depth) {
                Ok(value) => entries.push((field.name.clone(), value)),
                Err(wrong) => return Err(named(wrong, &field.name)),
            }
            let (_, value) = entries.last_mut().expect("one was pushed just above");
            if !print_declared(self.types, field, Blank::AsStored, value) {
                entries.pop();
            }
        }
        Ok(entries)
    }

    /// Reads the pieces of one field: those that came earlier, and the last one.
    fn field(
        &mut self,
        shape: &Shape,
        earlier: Range<usize>,
        last: Raw<'b>,
        depth: usize,
    ) -> Result<Value, Failure> {
        match shape {
            Shape::One(Layout::Message(ty)) if !earlier.is_empty() => {
                let earlier = self.earlier[earlier].iter().map(|piece| piece.raw);
                let pieces = earlier.chain([last]).map(Raw::bytes);
                self.message(*ty, &pieces.collect::<Vec<_>>(), depth + 1)
            }
            Shape::One(layout) => self.one(layout, last, depth),
            Shape::List(layout) => {
                let mut items = Vec::with_capacity(earlier.len() + 1);
                for index in earlier {
                    self.item(layout, self.earlier[index].raw, depth + 1, &mut items)?;
                }
                self.item(layout, last, depth + 1, &mut items)?;
                Ok(Value::Array(items))
            }
            Shape::Dictionary(layout, element) => {
                let mut entries = Vec::with_capacity(earlier.len() + 1);
                for index in earlier {
                    let bytes = self.earlier[index].raw.bytes();
                    entries.push(self.entry(layout, *element, bytes, depth + 1)?);
                }
                entries.push(self.entry(layout, *element, last.bytes(), depth + 1)?);
                Ok(Value::Object(Map::from_entries(entries)))
            }
        }
    }

    /// Reads an item of a list, or several numbers that stand together.
    fn item(
        &mut self,
        layout: &Layout,
        raw: Raw<'b>,
        depth: usize,
        items: &mut Vec<Value>,
    ) -> Result<(), Failure> {
        match raw {
            Raw::Bytes(packed) if wire_of(layout) != BYTES => {
                let mut numbers = Fields::new(packed);
                while !numbers.is_at_end() {
                    let number = raw_value(wire_of(layout), &mut numbers)?;
                    items.push(self.one(layout, number, depth)?);
                }
            }
            raw => items.push(self.one(layout, raw, depth)?),
        }
        Ok(())
    }

    /// Reads an entry of a dictionary: key and value.
    fn entry(
        &mut self,
        layout: &Layout,
        element: TypeId,
        bytes: &'b [u8],
        depth: usize,
    ) -> Result<(Text, Value), Failure> {
        let (mut name, mut value) = (Text::default(), Value::Null);
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match key.number {
                1 => name = scalar::read_text(bytes_of(key, &mut fields)?),
                2 => {
                    let raw = raw_one(layout, key, &mut fields)?;
                    value = self.one(layout, raw, depth)?;
                }
                _ => fields.skip(key.wire)?,
            }
        }
        if value.is_null() {
            value = zero(self.types, element);
        }
        Ok((name, value))
    }

    fn one(&mut self, layout: &Layout, raw: Raw<'b>, depth: usize) -> Result<Value, Failure> {
        let bytes = match raw {
            Raw::Number(number) => {
                return Ok(match layout {
                    Layout::Int32 => (number as i32).into(),
                    Layout::Int64 => (number as i64).into(),
                    Layout::Double => scalar::read_double(number)?,
                    _ => (number != 0).into(),
                });
            }
            Raw::Bytes(bytes) => bytes,
        };
        Ok(match layout {
            Layout::Text => Value::String(scalar::read_text(bytes)),
            Layout::Message(ty) => return self.message(*ty, &[bytes], depth + 1),
            Layout::Bytes => scalar::read_bytes(bytes),
            Layout::Time => scalar::read_time(bytes)?,
            Layout::MicroTime => scalar::read_micro_time(bytes)?,
            Layout::Duration => scalar::read_duration(bytes)?,
            Layout::Quantity => scalar::read_quantity(bytes)?,
            Layout::IntOrString => scalar::read_int_or_string(bytes)?,
            Layout::Json { object } => scalar::read_json(bytes, *object)?,
            Layout::SchemaOr { schema, other } => self.schema_or(*schema, *other, bytes, depth)?,
            Layout::Wrapped(item) => self.wrapped(item, bytes, depth)?,
            _ => Value::Object(Map::new()),
        })
    }

    /// Reads a list that stands in a message of its own. An empty one cannot be told from none.
    fn wrapped(
        &mut self,
        layout: &Layout,
        bytes: &'b [u8],
        depth: usize,
    ) -> Result<Value, Failure> {
        let mut items = Vec::new();
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match key.number {
                1 => {
                    let raw = raw_one(layout, key, &mut fields)?;
                    self.item(layout, raw, depth, &mut items)?;
                }
                _ => fields.skip(key.wire)?,
            }
        }
        Ok(match items.is_empty() {
            true => Value::Null,
            false => Value::Array(items),
        })
    }

    /// Contract: apiextensions `pkg/apis/apiextensions/v1/marshal.go`.
    fn schema_or(
        &mut self,
        schema: TypeId,
        other: InsteadOfSchema,
        bytes: &'b [u8],
        depth: usize,
    ) -> Result<Value, Failure> {
        let (mut allows, mut whole, mut items) = (false, None, Vec::new());
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match (key.number, other) {
                (1, InsteadOfSchema::Bool) if key.wire == VARINT => allows = fields.varint()? != 0,
                (1, InsteadOfSchema::Schemas | InsteadOfSchema::Strings)
                | (2, InsteadOfSchema::Bool) => {
                    let bytes = bytes_of(key, &mut fields)?;
                    whole = Some(self.message(schema, &[bytes], depth + 2)?);
                }
                (2, InsteadOfSchema::Schemas) => {
                    let raw = Raw::Bytes(bytes_of(key, &mut fields)?);
                    self.item(&Layout::Message(schema), raw, depth + 1, &mut items)?;
                }
                (2, InsteadOfSchema::Strings) => {
                    let text = scalar::read_text(bytes_of(key, &mut fields)?);
                    items.push(Value::String(text));
                }
                (1, InsteadOfSchema::Bool) => return Err(wrong_wire_type(key.wire, "allows")),
                _ => fields.skip(key.wire)?,
            }
        }
        Ok(match (whole, other) {
            (_, InsteadOfSchema::Schemas | InsteadOfSchema::Strings) if !items.is_empty() => {
                Value::Array(items)
            }
            (Some(whole), _) => whole,
            (None, InsteadOfSchema::Bool) => Value::Bool(allows),
            (None, _) => Value::Null,
        })
    }
}

impl<'b> Raw<'b> {
    /// The bytes; a number has none.
    fn bytes(self) -> &'b [u8] {
        match self {
            Raw::Bytes(bytes) => bytes,
            Raw::Number(_) => b"",
        }
    }
}

impl Found<'_, '_> {
    /// Stands in a place that is free.
    const NOTHING: Self = Found {
        shape: &Shape::One(Layout::Nothing),
        raw: Raw::Number(0),
        earlier: 0,
    };
}

/// Whether all pieces of a field count; otherwise only the last one does.
fn is_sum(shape: &Shape) -> bool {
    match shape {
        Shape::List(_) | Shape::Dictionary(_, _) => true,
        Shape::One(layout) => matches!(layout, Layout::Message(_)),
    }
}

/// Takes one occurrence of a field. Numbers of a list may stand together.
#[inline(always)]
fn raw_of<'b>(field: &FieldSlot, key: Key, fields: &mut Fields<'b>) -> Result<Raw<'b>, Failure> {
    let is_packed = key.wire == BYTES && matches!(field.shape, Shape::List(_));
    if key.wire == field.wire || is_packed {
        raw_value(key.wire, fields)
    } else {
        Err(wrong_wire_type(key.wire, ""))
    }
}

/// Takes one value that is laid out in one way only.
fn raw_one<'b>(layout: &Layout, key: Key, fields: &mut Fields<'b>) -> Result<Raw<'b>, Failure> {
    if key.wire == wire_of(layout) {
        raw_value(key.wire, fields)
    } else {
        Err(wrong_wire_type(key.wire, ""))
    }
}

#[inline(always)]
fn raw_value<'b>(wire: u8, fields: &mut Fields<'b>) -> Result<Raw<'b>, Failure> {
    match wire {
        VARINT => fields.varint().map(Raw::Number),
        FIXED64 => fields.fixed64().map(Raw::Number),
        _ => fields.bytes().map(Raw::Bytes),
    }
}

/// Names the field whose layout is wrong, unless something inside it was named already.
#[cold]
fn named(mut wrong: Failure, name: &str) -> Failure {
    if let DecodeError::WrongWireType { field, .. } = &mut *wrong
        && field.is_empty()
    {
        name.clone_into(field);
    }
    wrong
}

fn bytes_of<'b>(key: Key, fields: &mut Fields<'b>) -> Result<&'b [u8], Failure> {
    match key.wire {
        BYTES => fields.bytes(),
        wire => Err(wrong_wire_type(wire, "")),
    }
}
