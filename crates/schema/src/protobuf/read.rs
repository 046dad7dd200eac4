//! From a message to the value tree.
//!
//! Rules of protobuf: a field that is unknown is left out; of a scalar that comes twice the last
//! one counts; a message that comes in several pieces is the sum of them. So the pieces of a
//! message are first collected as they stand in the bytes, then sorted into the order of names,
//! and only then read, each into its place. The work stays in proportion to the bytes.

use std::ops::Range;

use object::{Map, Text, Value};

use super::DecodeError;
use super::message::{Content, Layout, Message, Messages, Shape};
use super::scalar::{self, wrong_wire_type};
use super::wire::{BYTES, FIXED64, Fields, Key, VARINT};
use crate::decode::{Blank, DECODE_DEPTH_MAX, print_declared, printed_when_absent, zero};
use crate::{Field, InsteadOfSchema, MapType, TypeId, Types};

/// Reads a message of the type `root` and gives back what that type prints, without `apiVersion`
/// and `kind`.
///
/// # Errors
/// If the bytes are not such a message.
pub fn decode(types: &Types, root: TypeId, bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut reader = Reader {
        types,
        messages: types.messages(),
        pieces: Vec::with_capacity(PIECES_CAPACITY),
    };
    let mut value = Value::Null;
    reader.message(root, &[bytes], 0, &mut value)?;
    Ok(value)
}

/// Room for the pieces of the messages that are usually open at once.
const PIECES_CAPACITY: usize = 64;

struct Reader<'t, 'b> {
    types: &'t Types,
    messages: &'t Messages,
    /// The pieces of all messages that are open; those of the innermost one are the last.
    pieces: Vec<Piece<'t, 'b>>,
}

/// One occurrence of a field.
#[derive(Clone, Copy)]
struct Piece<'t, 'b> {
    /// The place of the field among those that its struct declares.
    at: u32,
    /// When it came.
    sequence: u32,
    shape: &'t Shape,
    raw: Raw<'b>,
}

/// A value as it stands in the bytes.
#[derive(Clone, Copy)]
enum Raw<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// The part of the pieces that belongs to the innermost open message.
struct Frame {
    start: usize,
    /// One bit for each of the first fields that there is a piece of.
    seen: u64,
}

impl<'t, 'b> Reader<'t, 'b> {
    fn message(
        &mut self,
        ty: TypeId,
        bytes: &[&'b [u8]],
        depth: usize,
        out: &mut Value,
    ) -> Result<(), DecodeError> {
        *out = Value::Object(Map::new());
        if depth > DECODE_DEPTH_MAX {
            // Writing stops here, too, and leaves an empty message.
            let is_empty = bytes.iter().all(|bytes| bytes.is_empty());
            return is_empty.then_some(()).ok_or(DecodeError::TooDeep);
        }
        let (Some(message), Some(shape)) = (self.messages.get(ty), &self.types.get(ty).map) else {
            return Ok(());
        };
        let mut frame = Frame {
            start: self.pieces.len(),
            seen: 0,
        };
        for bytes in bytes {
            self.collect(message, shape, bytes, &mut frame)?;
        }
        let (mut next, end) = (frame.start, self.pieces.len());
        // Numbers and names have different orders.
        self.pieces[next..].sort_unstable_by_key(|piece| (piece.at, piece.sequence));
        let room = frame.seen.count_ones() as usize + message.printed.len();
        let mut entries: Vec<(Text, Value)> = Vec::with_capacity(room);
        let mut absent = message.printed.iter().copied().peekable();
        while next < end {
            let at = self.pieces[next].at;
            let same = self.pieces[next..end]
                .iter()
                .take_while(|piece| piece.at == at);
            let pieces = next..next + same.count();
            next = pieces.end;
            while let Some(before) = absent.next_if(|before| *before < at as usize) {
                self.print_absent(&shape.fields[before], &mut entries);
            }
            absent.next_if_eq(&(at as usize));
            let field = &shape.fields[at as usize];
            entries.push((field.name.clone(), Value::Null));
            let (_, place) = entries.last_mut().expect("one was pushed just above");
            self.field(pieces, depth, place)
                .map_err(|wrong| wrong.at(&field.name))?;
            if !print_declared(self.types, field, Blank::AsStored, place) {
                entries.pop();
            }
        }
        for after in absent {
            self.print_absent(&shape.fields[after], &mut entries);
        }
        self.pieces.truncate(frame.start);
        *out = Value::Object(Map::from_entries(entries));
        Ok(())
    }

    fn print_absent(&self, field: &Field, entries: &mut Vec<(Text, Value)>) {
        if let Some(value) = printed_when_absent(self.types, field) {
            entries.push((field.name.clone(), value));
        }
    }

    /// Collects the pieces of a message; those of an embedded one are among them.
    fn collect(
        &mut self,
        message: &'t Message,
        shape: &MapType,
        bytes: &'b [u8],
        frame: &mut Frame,
    ) -> Result<(), DecodeError> {
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match message.slot(key.number).map(|slot| &slot.content) {
                None => fields.skip(key.wire)?,
                Some(Content::Embedded(inner)) => {
                    let bytes = bytes_of(key, &mut fields)
                        .map_err(|wrong| wrong.at("of an embedded message"))?;
                    self.collect(inner, shape, bytes, frame)?;
                }
                Some(Content::Field {
                    at,
                    shape: many,
                    drops,
                    ..
                }) => {
                    if *drops && !frame.has(*at) && is_zero(many, key, &mut fields) {
                        continue;
                    }
                    let raw = raw_field(many, key, &mut fields)
                        .map_err(|wrong| wrong.at(&shape.fields[*at].name))?;
                    frame.see(*at);
                    let sequence = self.pieces.len() - frame.start;
                    self.pieces.push(Piece {
                        at: *at as u32,
                        sequence: sequence as u32,
                        shape: many,
                        raw,
                    });
                }
            }
        }
        Ok(())
    }

    /// Reads the pieces of one field.
    fn field(
        &mut self,
        pieces: Range<usize>,
        depth: usize,
        out: &mut Value,
    ) -> Result<(), DecodeError> {
        let last = self.pieces[pieces.end - 1];
        match last.shape {
            Shape::One(Layout::Message(ty)) if pieces.len() > 1 => {
                let all = self.pieces[pieces].iter().map(|piece| piece.raw.bytes());
                let all: Vec<&'b [u8]> = all.collect();
                self.message(*ty, &all, depth + 1, out)
            }
            Shape::One(layout) => self.one(layout, last.raw, depth, out),
            Shape::List(layout) => {
                let mut items = Vec::with_capacity(pieces.len());
                for index in pieces {
                    self.item(layout, self.pieces[index].raw, depth + 1, &mut items)?;
                }
                *out = Value::Array(items);
                Ok(())
            }
            Shape::Dictionary(layout, element) => {
                let mut entries = Vec::with_capacity(pieces.len());
                for index in pieces {
                    entries.push((Text::default(), Value::Null));
                    let entry = entries.last_mut().expect("one was pushed just above");
                    let bytes = self.pieces[index].raw.bytes();
                    self.entry(layout, *element, bytes, depth + 1, entry)?;
                }
                *out = Value::Object(Map::from_entries(entries));
                Ok(())
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
    ) -> Result<(), DecodeError> {
        let mut push = |raw| {
            items.push(Value::Null);
            let item = items.last_mut().expect("one was pushed just above");
            self.one(layout, raw, depth, item)
        };
        match raw {
            Raw::Bytes(packed) if wire_of(layout) != BYTES => {
                let mut numbers = Fields::new(packed);
                while !numbers.is_at_end() {
                    push(raw_value(wire_of(layout), &mut numbers)?)?;
                }
                Ok(())
            }
            raw => push(raw),
        }
    }

    /// Reads an entry of a dictionary: key and value.
    fn entry(
        &mut self,
        layout: &Layout,
        element: TypeId,
        bytes: &'b [u8],
        depth: usize,
        (name, value): &mut (Text, Value),
    ) -> Result<(), DecodeError> {
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match key.number {
                1 => *name = scalar::read_text(bytes_of(key, &mut fields)?),
                2 => {
                    let raw = raw_of(layout, key, &mut fields)?;
                    self.one(layout, raw, depth, value)?;
                }
                _ => fields.skip(key.wire)?,
            }
        }
        if value.is_null() {
            *value = zero(self.types, element);
        }
        Ok(())
    }

    fn one(
        &mut self,
        layout: &Layout,
        raw: Raw<'b>,
        depth: usize,
        out: &mut Value,
    ) -> Result<(), DecodeError> {
        let bytes = match raw {
            Raw::Number(number) => {
                *out = match layout {
                    Layout::Int32 => (number as i32).into(),
                    Layout::Int64 => (number as i64).into(),
                    Layout::Double => scalar::read_double(number)?,
                    _ => (number != 0).into(),
                };
                return Ok(());
            }
            Raw::Bytes(bytes) => bytes,
        };
        *out = match layout {
            Layout::Text => Value::String(scalar::read_text(bytes)),
            Layout::Message(ty) => return self.message(*ty, &[bytes], depth + 1, out),
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
        };
        Ok(())
    }

    /// Reads a list that stands in a message of its own. An empty one cannot be told from none.
    fn wrapped(
        &mut self,
        layout: &Layout,
        bytes: &'b [u8],
        depth: usize,
    ) -> Result<Value, DecodeError> {
        let mut items = Vec::new();
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match key.number {
                1 => {
                    let raw = raw_of(layout, key, &mut fields)?;
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
    ) -> Result<Value, DecodeError> {
        let (mut allows, mut whole, mut items) = (false, None, Vec::new());
        let mut fields = Fields::new(bytes);
        while let Some(key) = fields.next_key()? {
            match (key.number, other) {
                (1, InsteadOfSchema::Bool) if key.wire == VARINT => allows = fields.varint()? != 0,
                (1, InsteadOfSchema::Schemas | InsteadOfSchema::Strings)
                | (2, InsteadOfSchema::Bool) => {
                    let bytes = bytes_of(key, &mut fields)?;
                    self.message(schema, &[bytes], depth + 2, whole.insert(Value::Null))?;
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

impl Frame {
    /// Whether there may be a piece of a field; sure for the first 64 fields of a struct.
    fn has(&self, at: usize) -> bool {
        bit(at).is_none_or(|bit| self.seen & bit != 0)
    }

    fn see(&mut self, at: usize) {
        self.seen |= bit(at).unwrap_or_default();
    }
}

fn bit(at: usize) -> Option<u64> {
    1u64.checked_shl(u32::try_from(at).ok()?)
}

/// Steps over a plain field that holds nothing, of which messages are full.
fn is_zero(shape: &Shape, key: Key, fields: &mut Fields<'_>) -> bool {
    match (shape, key.wire) {
        (Shape::One(Layout::Text | Layout::Bytes), BYTES)
        | (Shape::One(Layout::Int32 | Layout::Int64 | Layout::Bool), VARINT) => {
            fields.take_zero_byte()
        }
        _ => false,
    }
}

/// Takes one occurrence of a field. Numbers of a list may stand together.
fn raw_field<'b>(shape: &Shape, key: Key, fields: &mut Fields<'b>) -> Result<Raw<'b>, DecodeError> {
    match shape {
        Shape::One(layout) => raw_of(layout, key, fields),
        Shape::List(_) if key.wire == BYTES => fields.bytes().map(Raw::Bytes),
        Shape::List(layout) => raw_of(layout, key, fields),
        Shape::Dictionary(_, _) => bytes_of(key, fields).map(Raw::Bytes),
    }
}

fn raw_of<'b>(layout: &Layout, key: Key, fields: &mut Fields<'b>) -> Result<Raw<'b>, DecodeError> {
    if key.wire == wire_of(layout) {
        raw_value(key.wire, fields)
    } else {
        Err(wrong_wire_type(key.wire, ""))
    }
}

fn raw_value<'b>(wire: u8, fields: &mut Fields<'b>) -> Result<Raw<'b>, DecodeError> {
    match wire {
        VARINT => fields.varint().map(Raw::Number),
        FIXED64 => fields.fixed64().map(Raw::Number),
        _ => fields.bytes().map(Raw::Bytes),
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
