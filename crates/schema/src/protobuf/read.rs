//! From a message to the value tree.
//!
//! Rules of protobuf: a field that is unknown is left out; of a scalar that comes twice the last
//! one counts; a message that comes in several pieces is the sum of them. So a message is not read
//! before all its pieces are known, and the work stays in proportion to the bytes.

use object::{Map, Text, Value};

use super::DecodeError;
use super::message::{Content, Layout, Message, Messages, Shape};
use super::scalar::{self, wrong_wire_type};
use super::wire::{BYTES, FIXED64, Fields, Key, VARINT};
use crate::decode::{DECODE_DEPTH_MAX, normalize};
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
        held: Vec::new(),
    };
    let mut value = reader.message(root, &[bytes], 0)?;
    normalize(types, root, &mut value);
    Ok(value)
}

struct Reader<'t, 'b> {
    types: &'t Types,
    messages: &'t Messages,
    /// What was read of the messages that are open, by the place of the field in its struct.
    held: Vec<(usize, Held<'b>)>,
}

/// What was read of a field so far.
enum Held<'b> {
    /// A value, or the items of a list.
    Value(Value),
    /// The entries of a dictionary, in the order in which they came.
    Entries(Vec<(Text, Value)>),
    /// The pieces of a struct; the first one apart, because there is seldom another.
    Pieces(TypeId, &'b [u8], Vec<&'b [u8]>),
}

impl<'b> Reader<'_, 'b> {
    fn message(
        &mut self,
        ty: TypeId,
        pieces: &[&'b [u8]],
        depth: usize,
    ) -> Result<Value, DecodeError> {
        if depth > DECODE_DEPTH_MAX {
            // Writing stops here, too, and leaves an empty message.
            let is_empty = pieces.iter().all(|piece| piece.is_empty());
            let nothing = is_empty.then(|| Value::Object(Map::new()));
            return nothing.ok_or(DecodeError::TooDeep);
        }
        let (Some(message), Some(shape)) = (self.messages.get(ty), &self.types.get(ty).map) else {
            return Ok(Value::Object(Map::new()));
        };
        let frame = self.held.len();
        for piece in pieces {
            self.fields(message, shape, piece, frame, depth)?;
        }
        // Numbers and names have different orders.
        self.held[frame..].sort_unstable_by_key(|(at, _)| *at);
        let mut entries = Vec::with_capacity(self.held.len() - frame);
        for index in frame..self.held.len() {
            let (at, held) = &mut self.held[index];
            let name = shape.fields[*at].name.clone();
            let value = match std::mem::replace(held, Held::Value(Value::Null)) {
                Held::Value(value) => value,
                Held::Entries(entries) => Value::Object(Map::from_entries(entries)),
                Held::Pieces(ty, first, rest) if rest.is_empty() => {
                    self.message(ty, &[first], depth + 1)?
                }
                Held::Pieces(ty, first, mut rest) => {
                    rest.insert(0, first);
                    self.message(ty, &rest, depth + 1)?
                }
            };
            entries.push((name, value));
        }
        self.held.truncate(frame);
        Ok(Value::Object(Map::from_entries(entries)))
    }

    /// Reads one piece of a message into the frame.
    fn fields(
        &mut self,
        message: &Message,
        shape: &MapType,
        bytes: &'b [u8],
        frame: usize,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match message.slot(key.number).map(|slot| &slot.content) {
                None => fields.skip(key.wire)?,
                Some(Content::Embedded(inner)) if key.wire == BYTES => {
                    self.fields(inner, shape, fields.bytes()?, frame, depth)?;
                }
                Some(Content::Embedded(_)) => {
                    return Err(wrong_wire_type(key.wire, "of an embedded message"));
                }
                Some(Content::Field {
                    at, shape: many, ..
                }) => {
                    let name = &shape.fields[*at].name;
                    self.field(*at, many, key, &mut fields, frame, depth)
                        .map_err(|wrong| wrong.at(name))?;
                }
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        at: usize,
        shape: &Shape,
        key: Key,
        fields: &mut Fields<'b>,
        frame: usize,
        depth: usize,
    ) -> Result<(), DecodeError> {
        match shape {
            Shape::One(Layout::Message(ty)) => {
                let piece = bytes_of(key, fields)?;
                match self.held_at(at, frame) {
                    Some(Held::Pieces(_, _, rest)) => rest.push(piece),
                    _ => self.hold(at, Held::Pieces(*ty, piece, Vec::new())),
                }
            }
            Shape::One(layout) => {
                let value = self.one(layout, key, fields, depth)?;
                match self.held_at(at, frame) {
                    Some(held) => *held = Held::Value(value),
                    None => self.hold(at, Held::Value(value)),
                }
            }
            Shape::List(layout) => {
                let packed = key.wire == BYTES && wire_of(layout) != BYTES;
                if packed {
                    return self.packed(at, layout, fields.bytes()?, frame);
                }
                let item = self.one(layout, key, fields, depth + 1)?;
                self.items(at, frame).push(item);
            }
            Shape::Dictionary(layout) => {
                let entry = bytes_of(key, fields)?;
                let entry = self.entry(layout, entry, depth + 1)?;
                match self.held_at(at, frame) {
                    Some(Held::Entries(entries)) => entries.push(entry),
                    _ => self.hold(at, Held::Entries(vec![entry])),
                }
            }
        }
        Ok(())
    }

    /// Reads numbers that stand together in one field.
    fn packed(
        &mut self,
        at: usize,
        layout: &Layout,
        bytes: &'b [u8],
        frame: usize,
    ) -> Result<(), DecodeError> {
        let key = Key {
            number: 0,
            wire: wire_of(layout),
        };
        let mut numbers = Fields::new(bytes);
        while !numbers.is_at_end() {
            let item = self.one(layout, key, &mut numbers, 0)?;
            self.items(at, frame).push(item);
        }
        Ok(())
    }

    fn items(&mut self, at: usize, frame: usize) -> &mut Vec<Value> {
        if self.held_at(at, frame).is_none() {
            self.hold(at, Held::Value(Value::Array(Vec::new())));
        }
        match self.held_at(at, frame) {
            Some(Held::Value(Value::Array(items))) => items,
            _ => unreachable!("a list is held as a list, and one is held"),
        }
    }

    /// What is held of a field. A struct has few fields, and the one that repeats is the last.
    fn held_at(&mut self, at: usize, frame: usize) -> Option<&mut Held<'b>> {
        let mut open = self.held[frame..].iter_mut().rev();
        open.find(|(known, _)| *known == at).map(|(_, held)| held)
    }

    fn hold(&mut self, at: usize, held: Held<'b>) {
        self.held.push((at, held));
    }

    /// Reads an entry of a dictionary: key and value.
    fn entry(
        &mut self,
        layout: &Layout,
        bytes: &'b [u8],
        depth: usize,
    ) -> Result<(Text, Value), DecodeError> {
        let mut name = Text::default();
        let mut value = Value::Null;
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match key.number {
                1 => name = scalar::read_text(bytes_of(key, &mut fields)?),
                2 => value = self.one(layout, key, &mut fields, depth)?,
                _ => fields.skip(key.wire)?,
            }
        }
        Ok((name, value))
    }

    fn one(
        &mut self,
        layout: &Layout,
        key: Key,
        fields: &mut Fields<'b>,
        depth: usize,
    ) -> Result<Value, DecodeError> {
        if key.wire != wire_of(layout) {
            return Err(wrong_wire_type(key.wire, ""));
        }
        match layout {
            Layout::Int32 => Ok((fields.varint()? as i32).into()),
            Layout::Int64 => Ok((fields.varint()? as i64).into()),
            Layout::Bool => Ok((fields.varint()? != 0).into()),
            Layout::Double => scalar::read_double(fields.fixed64()?),
            layout => self.of_bytes(layout, fields.bytes()?, depth),
        }
    }

    fn of_bytes(
        &mut self,
        layout: &Layout,
        bytes: &'b [u8],
        depth: usize,
    ) -> Result<Value, DecodeError> {
        match layout {
            Layout::Bytes => Ok(scalar::read_bytes(bytes)),
            Layout::Time => scalar::read_time(bytes),
            Layout::MicroTime => scalar::read_micro_time(bytes),
            Layout::Duration => scalar::read_duration(bytes),
            Layout::Quantity => scalar::read_quantity(bytes),
            Layout::IntOrString => scalar::read_int_or_string(bytes),
            Layout::Json { object } => scalar::read_json(bytes, *object),
            Layout::SchemaOr { schema, other } => self.schema_or(*schema, *other, bytes, depth),
            Layout::Message(ty) => self.message(*ty, &[bytes], depth + 1),
            Layout::Wrapped(item) => self.wrapped(item, bytes, depth),
            Layout::Nothing => Ok(Value::Object(Map::new())),
            _ => Ok(Value::String(scalar::read_text(bytes))),
        }
    }

    /// Reads a list that stands in a message of its own.
    fn wrapped(
        &mut self,
        item: &Layout,
        bytes: &'b [u8],
        depth: usize,
    ) -> Result<Value, DecodeError> {
        let mut items = Vec::new();
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match key.number {
                1 => items.push(self.one(item, key, &mut fields, depth)?),
                _ => fields.skip(key.wire)?,
            }
        }
        Ok(Value::Array(items))
    }

    /// Contract: apiextensions `pkg/apis/apiextensions/v1/marshal.go`.
    fn schema_or(
        &mut self,
        schema: TypeId,
        other: InsteadOfSchema,
        bytes: &'b [u8],
        depth: usize,
    ) -> Result<Value, DecodeError> {
        let (mut allows, mut whole, mut items) = (false, None, Vec::new());
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match (key.number, other) {
                (1, InsteadOfSchema::Bool) if key.wire == VARINT => allows = fields.varint()? != 0,
                (1, InsteadOfSchema::Schemas | InsteadOfSchema::Strings)
                | (2, InsteadOfSchema::Bool) => {
                    whole =
                        Some(self.message(schema, &[bytes_of(key, &mut fields)?], depth + 2)?);
                }
                (2, InsteadOfSchema::Schemas) => {
                    items.push(self.message(schema, &[bytes_of(key, &mut fields)?], depth + 2)?);
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

impl DecodeError {
    /// Names the field whose layout is wrong, unless something inside it was named already.
    fn at(self, name: &str) -> DecodeError {
        match self {
            DecodeError::WrongWireType { wire, field } if field.is_empty() => {
                wrong_wire_type(wire, name)
            }
            other => other,
        }
    }
}

fn bytes_of<'b>(key: Key, fields: &mut Fields<'b>) -> Result<&'b [u8], DecodeError> {
    match key.wire {
        BYTES => fields.bytes(),
        wire => Err(wrong_wire_type(wire, "")),
    }
}

fn wire_of(layout: &Layout) -> u8 {
    match layout {
        Layout::Int32 | Layout::Int64 | Layout::Bool => VARINT,
        Layout::Double => FIXED64,
        _ => BYTES,
    }
}
