//! The type graph as messages: which field has which number, and how its value is laid out.
//!
//! The messages of an arena are worked out once, when the first of them is needed, and kept beside
//! its types. Fields stand in the order of their numbers here and in the order of their names in
//! the type graph; a [`Slot`] knows its place in both.

use crate::decode::prints_when_absent;
use crate::{Empty, Field, Form, InsteadOfSchema, MapType, Scalar, Type, TypeId, Types};

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
    /// The places of the declared fields that are printed when they are absent, in order.
    pub(super) printed: Vec<usize>,
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
    Field {
        /// Its place among the declared fields.
        at: usize,
        shape: Shape,
        /// Whether it is written even when it holds nothing.
        always: bool,
        /// Whether it is left out of the tree when it holds nothing.
        drops: bool,
    },
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
        let fields = map.fields.iter().enumerate();
        let printed = fields.filter(|(_, field)| prints_when_absent(field));
        message.printed = printed.map(|(at, _)| at).collect();
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
            Content::Field { .. } => unreachable!("an embedded message was found or made"),
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
    let shape = shape(types, field);
    let is_plain = matches!(field.empty, Empty::Drop | Empty::Print);
    // A byte slice or a list that is nil is not written, plain though it is.
    let may_be_nil = matches!(shape, Shape::One(Layout::Bytes | Layout::Wrapped(_)));
    Content::Field {
        at,
        always: is_plain && !may_be_nil,
        drops: field.empty == Empty::Drop,
        shape,
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
