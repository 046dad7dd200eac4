//! The type graph as messages: which field has which number, and how its value is laid out.
//!
//! The messages of an arena are worked out once, when the first of them is needed, and kept beside
//! its types. Fields stand in the order of their numbers here and in the order of their names in
//! the type graph; a [`Slot`] knows its place in both.

use super::wire::{BYTES, FIXED64, VARINT};
use crate::decode::prints_when_absent;
use crate::{Empty, Field, Form, InsteadOfSchema, MapType, Scalar, Type, TypeId, Types};

/// A struct that has messages has at most so many fields; the most in Kubernetes is 44.
const FIELDS_MAX: usize = u64::BITS as usize;

/// The message of each type of an arena; `None` where the type is no struct.
#[derive(Clone, Debug)]
pub(crate) struct Messages(Vec<Option<Message>>);

/// A message.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    /// Sorted by number.
    pub(super) slots: Vec<Slot>,
    /// For each number the place in `slots` and one more; 0 where there is no such field.
    places: Vec<u8>,
    /// One bit for each declared field that is printed when it is absent.
    pub(super) printed: u64,
}

/// A field of a message.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) number: u32,
    pub(super) content: Content,
}

/// What a field of a message holds.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// Fields that JSON has among those of the outer struct.
    Embedded(Message),
    /// A field of the struct.
    Field(FieldSlot),
}

/// A field of a struct, as its message has it.
#[derive(Clone, Debug)]
pub(super) struct FieldSlot {
    /// Its place among the declared fields.
    pub(super) at: usize,
    pub(super) shape: Shape,
    /// How its bytes are laid out, unless they are several numbers that stand together.
    pub(super) wire: u8,
    /// Whether it is written even when it holds nothing.
    pub(super) always: bool,
    /// Whether a zero byte in its place holds nothing that the tree would show.
    pub(super) skips_zero: bool,
}

/// How often a field occurs.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Once.
    One(Layout),
    /// Once for each item.
    List(Layout),
    /// Once for each entry, as a message of key and value, which is of this type.
    Dictionary(Layout, TypeId),
}

/// How one value is laid out.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    Text,
    Int32,
    Int64,
    Bool,
    Double,
    Bytes,
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    /// JSON text in a message of its own; a field set must be an object.
    Json {
        object: bool,
    },
    /// A JSON schema or what may stand in its place.
    SchemaOr {
        schema: TypeId,
        other: InsteadOfSchema,
    },
    /// A list in a message of its own.
    Wrapped(Box<Layout>),
    /// A struct.
    Message(TypeId),
    /// A struct that has no fields.
    Nothing,
}

impl Messages {
    /// Works out the messages of all types.
    pub(crate) fn of(types: &Types) -> Messages {
        let ids = (0..types.len()).map(|id| TypeId(u32::try_from(id).expect("ids have 32 bits")));
        Messages(
            ids.map(|id| match &types.get(id).map {
                Some(map) if !map.fields.is_empty() => Some(Message::of(types, map)),
                _ => None,
            })
            .collect(),
        )
    }

    /// The message of a struct.
    pub(super) fn get(&self, id: TypeId) -> Option<&Message> {
        self.0.get(id.0 as usize)?.as_ref()
    }
}

impl Message {
    fn of(types: &Types, map: &MapType) -> Message {
        let mut message = Message::default();
        for (at, field) in map.fields.iter().enumerate() {
            let numbers: Vec<u32> = field.numbers().collect();
            if let Some((last, outer)) = numbers.split_last() {
                let content = content(types, at, field);
                message.embedded(outer).slots.push(Slot {
                    number: *last,
                    content,
                });
            }
        }
        message.sort();
        for (at, field) in map.fields.iter().enumerate() {
            // A place beyond is one of a custom resource, which has no numbers and no messages.
            if prints_when_absent(field) && at < FIELDS_MAX {
                message.printed |= 1 << at;
            }
        }
        message
    }

    /// The message at the end of a path of numbers, made where it is missing.
    fn embedded(&mut self, path: &[u32]) -> &mut Message {
        let Some((number, rest)) = path.split_first() else {
            return self;
        };
        let is_it =
            |slot: &Slot| slot.number == *number && matches!(slot.content, Content::Embedded(_));
        let at = self.slots.iter().position(is_it).unwrap_or_else(|| {
            self.slots.push(Slot {
                number: *number,
                content: Content::Embedded(Message::default()),
            });
            self.slots.len() - 1
        });
        match &mut self.slots[at].content {
            Content::Embedded(message) => message.embedded(rest),
            Content::Field(_) => unreachable!("an embedded message was found or made"),
        }
    }

    fn sort(&mut self) {
        self.slots.sort_by_key(|slot| slot.number);
        let largest = self.slots.last().map_or(0, |slot| slot.number as usize);
        self.places = vec![0; largest + 1];
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let place = u8::try_from(at + 1).expect("numbers are bytes, so slots are at most 255");
            self.places[slot.number as usize] = place;
            if let Content::Embedded(message) = &mut slot.content {
                message.sort();
            }
        }
    }

    /// The field of this number.
    pub(super) fn slot(&self, number: u32) -> Option<&Slot> {
        let place = *self.places.get(number as usize)?;
        self.slots.get(usize::from(place).checked_sub(1)?)
    }
}

fn content(types: &Types, at: usize, field: &Field) -> Content {
    assert!(
        at < FIELDS_MAX,
        "a struct has more than {FIELDS_MAX} fields"
    );
    let shape = shape(types, field);
    let is_plain = matches!(field.empty, Empty::Drop | Empty::Print);
    // A byte slice or a list that is nil is not written, plain though it is.
    let may_be_nil = matches!(shape, Shape::One(Layout::Bytes | Layout::Wrapped(_)));
    let has_zero = matches!(
        shape,
        Shape::One(Layout::Text | Layout::Bytes | Layout::Int32 | Layout::Int64 | Layout::Bool)
    );
    Content::Field(FieldSlot {
        at,
        wire: match &shape {
            Shape::One(layout) | Shape::List(layout) => wire_of(layout),
            Shape::Dictionary(_, _) => BYTES,
        },
        always: is_plain && !may_be_nil,
        skips_zero: field.empty == Empty::Drop && has_zero,
        shape,
    })
}

/// How the bytes of a value are laid out.
pub(super) fn wire_of(layout: &Layout) -> u8 {
    match layout {
        Layout::Int32 | Layout::Int64 | Layout::Bool => VARINT,
        Layout::Double => FIXED64,
        _ => BYTES,
    }
}

fn shape(types: &Types, field: &Field) -> Shape {
    let ty = types.get(field.ty);
    if ty.form == Form::Plain {
        if let Some(list) = &ty.list {
            let item = layout(types, list.element);
            return if field.is_wrapped() {
                Shape::One(Layout::Wrapped(Box::new(item)))
            } else {
                Shape::List(item)
            };
        }
        if let Some(element) = dictionary_element(types, ty) {
            return Shape::Dictionary(layout(types, element), element);
        }
    }
    Shape::One(layout(types, field.ty))
}

/// The type of a dictionary's values. A struct without fields is also a map of free keys, but
/// their values are of no type, which no dictionary of a message has.
fn dictionary_element(types: &Types, ty: &Type) -> Option<TypeId> {
    let element = ty.map.as_ref()?.element?;
    let is_free = types.get(element).form == Form::AnyJson && types.schema_or(element).is_none();
    (!is_free).then_some(element)
}

fn layout(types: &Types, id: TypeId) -> Layout {
    let ty = types.get(id);
    match ty.form {
        Form::Int32 => Layout::Int32,
        Form::Int64 => Layout::Int64,
        Form::Double => Layout::Double,
        Form::Bytes => Layout::Bytes,
        Form::Time => Layout::Time,
        Form::MicroTime => Layout::MicroTime,
        Form::Duration => Layout::Duration,
        Form::Quantity => Layout::Quantity,
        Form::IntOrString => Layout::IntOrString,
        Form::FieldsV1 => Layout::Json { object: true },
        Form::RawExtension => Layout::Json { object: false },
        Form::AnyJson => match types.schema_or(id) {
            None => Layout::Json { object: false },
            Some(either) => Layout::SchemaOr {
                schema: either.schema,
                other: either.other,
            },
        },
        Form::Plain => match (&ty.list, &ty.map, ty.scalar) {
            (Some(list), _, _) => Layout::Wrapped(Box::new(layout(types, list.element))),
            (None, Some(map), _) if map.fields.is_empty() => Layout::Nothing,
            (None, Some(_), _) => Layout::Message(id),
            (None, None, Some(Scalar::Boolean)) => Layout::Bool,
            (None, None, Some(Scalar::Numeric)) => Layout::Int64,
            (None, None, _) => Layout::Text,
        },
    }
}
