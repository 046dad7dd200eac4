//! The type graph: how the value at each place of an object is shaped, merged and identified.
//!
//! One model serves built-in kinds and custom resources. Types live in a [`Types`] arena and refer
//! to each other by [`TypeId`], so recursive schemas need no reference counting and a whole
//! catalogue is a few flat vectors. As upstream's merge schema, a type may carry up to three
//! alternatives at once: scalar, list, map; which one applies depends on the value met.

use std::collections::HashMap;
use std::sync::OnceLock;

use object::{Text, Value};

use crate::fields::Fields;
use crate::protobuf::Messages;

/// A place in a [`Types`] arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// All types of one schema.
#[derive(Clone, Debug, Default)]
pub struct Types {
    types: Vec<Type>,
    schema_or: Vec<(TypeId, SchemaOr)>,
    /// Worked out when the first message is read or written.
    messages: OnceLock<Messages>,
    names: Option<Namer>,
}

/// Finds out what upstream calls a struct, such as `v1.PodSpec`.
pub type Namer = fn(TypeId) -> Option<String>;

/// A place that holds a JSON schema or something simpler instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaOr {
    /// The type of the schema.
    pub schema: TypeId,
    /// What may stand in its place.
    pub other: InsteadOfSchema,
}

/// What may stand in the place of a JSON schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsteadOfSchema {
    /// `true` or `false`.
    Bool,
    /// A list of schemas.
    Schemas,
    /// A list of strings.
    Strings,
}

/// The shape of one value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Type {
    /// Set if the value may be a scalar.
    pub scalar: Option<Scalar>,
    /// Set if the value may be a list.
    pub list: Option<ListType>,
    /// Set if the value may be a map.
    pub map: Option<MapType>,
    /// What the value means beyond its shape; decides how typed kinds read and print it.
    pub form: Form,
}

/// Which scalars a place takes. `null` is always taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    String,
    /// An integer or a float.
    Numeric,
    /// A boolean.
    Boolean,
    /// Any scalar.
    Untyped,
}

/// The meaning of a value beyond its shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Nothing beyond the shape.
    #[default]
    Plain,
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// A floating point number.
    Double,
    /// Base64 text that stands for bytes.
    Bytes,
    /// RFC 3339 to the second.
    Time,
    /// RFC 3339 with six fractional digits.
    MicroTime,
    /// A Go duration such as `5m0s`.
    Duration,
    /// A resource quantity, kept in canonical form.
    Quantity,
    /// An integer or a string.
    IntOrString,
    /// Any JSON object, kept as it came.
    RawExtension,
    /// Any JSON, kept as it came.
    AnyJson,
    /// A field set in its wire form.
    FieldsV1,
}

/// A list and how its items are told apart.
#[derive(Clone, Debug, PartialEq)]
pub struct ListType {
    /// The type of every item.
    pub element: TypeId,
    /// What identifies an item.
    pub topology: ListTopology,
}

/// What identifies a list item when two lists are merged.
#[derive(Clone, Debug, PartialEq)]
pub enum ListTopology {
    /// The list is replaced whole.
    Atomic,
    /// The item's own scalar value.
    Set,
    /// The values of these keys, in schema order.
    Map(Vec<Text>),
}

/// A struct, a dictionary, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapType {
    /// Declared fields, sorted by name.
    pub fields: Fields,
    /// The type of undeclared keys; `None` makes them illegal.
    pub element: Option<TypeId>,
    /// Whether the map is replaced whole.
    pub atomic: bool,
}

/// A declared field of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name in JSON.
    pub name: Text,
    /// The type of its value.
    pub ty: TypeId,
    /// The schema's default. It completes the identity of list items, and fills custom resources.
    pub default: Option<Value>,
    /// How a typed kind prints the field when it holds nothing.
    pub empty: Empty,
    /// How a strategic merge patch treats the field.
    pub patch: Patch,
    /// The field's number in the protobuf message; 0 where there is none. The fields of an
    /// embedded struct stand among those of the outer one in JSON but in a message of their own in
    /// protobuf; the number of that message is in the next higher byte, and so on outward. See
    /// [`Field::numbers`] and [`Field::is_wrapped`].
    pub tag: u32,
}

/// What a typed kind prints for a field that is absent or holds its zero value.
///
/// This is where Go's types show on the wire: pointers, `omitempty` and plain structs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Empty {
    /// Absent stays absent; a present zero value (`0`, `""`, `false`) is kept: a Go pointer.
    #[default]
    Keep,
    /// Absent stays absent; a zero value, an empty list or an empty map is dropped: `omitempty`.
    Drop,
    /// Always printed: absent becomes the zero value (`""`, `0`, `false`, `{}`), and for lists and
    /// dictionaries `null`.
    Print,
    /// Absent becomes `null`; a present zero value is kept: a Go pointer without `omitempty`.
    Null,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// Lists are merged by this key, or as sets if it is empty.
    pub merge: bool,
    /// The key that tells list items apart.
    pub merge_key: Text,
    /// `$retainKeys` is honoured.
    pub retain_keys: bool,
    /// A map is replaced by the patch's as it stands, directives and all.
    pub replace: bool,
}

impl Types {
    /// An empty arena.
    pub fn new() -> Types {
        Types::default()
    }

    /// Adds a type.
    pub fn add(&mut self, ty: Type) -> TypeId {
        let id = u32::try_from(self.types.len()).expect("a schema has far fewer than 2^32 types");
        self.messages.take();
        self.types.push(ty);
        TypeId(id)
    }

    /// Replaces a type; with [`Types::add`] this ties the knot of recursive schemas.
    pub fn set(&mut self, id: TypeId, ty: Type) {
        self.messages.take();
        self.types[id.0 as usize] = ty;
    }

    /// The type at `id`.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there is no type.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Gives the structs the names that messages call them by.
    pub fn set_names(&mut self, names: Namer) {
        self.names = Some(names);
    }

    /// What upstream calls the struct at `id`, if it has a name.
    pub fn name_of(&self, id: TypeId) -> Option<String> {
        self.names.and_then(|name| name(id))
    }

    /// Notes that the value at `id`, whose form is any JSON, is a schema or something simpler.
    pub fn set_schema_or(&mut self, id: TypeId, either: SchemaOr) {
        self.messages.take();
        self.schema_or.push((id, either));
    }

    /// What the value at `id` is, if it is a schema or something simpler.
    pub fn schema_or(&self, id: TypeId) -> Option<SchemaOr> {
        let found = self.schema_or.iter().find(|(known, _)| *known == id);
        found.map(|(_, either)| *either)
    }

    /// The types as protobuf messages.
    pub(crate) fn messages(&self) -> &Messages {
        self.messages.get_or_init(|| Messages::of(self))
    }

    /// Copies a type and all that it refers to from another arena.
    pub fn import(&mut self, from: &Types, root: TypeId) -> TypeId {
        let mut copies: HashMap<TypeId, TypeId> = HashMap::new();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if copies.contains_key(&id) {
                continue;
            }
            copies.insert(id, self.add(Type::default()));
            from.get(id).references(|below| open.push(*below));
        }
        for (id, copy) in &copies {
            let mut ty = from.get(*id).clone();
            ty.references_mut(|below| *below = copies[below]);
            self.set(*copy, ty);
        }
        copies[&root]
    }

    /// Adds the type of a value about which nothing is declared: every scalar, lists and maps as a
    /// whole.
    pub fn add_untyped_atomic(&mut self) -> TypeId {
        let id = self.add(Type::default());
        self.set(
            id,
            Type {
                scalar: Some(Scalar::Untyped),
                list: Some(ListType {
                    element: id,
                    topology: ListTopology::Atomic,
                }),
                map: Some(MapType {
                    fields: Fields::default(),
                    element: Some(id),
                    atomic: true,
                }),
                form: Form::AnyJson,
            },
        );
        id
    }

    /// Adds the type that is deduced from the value: every scalar, lists as a whole, maps key by
    /// key.
    pub fn add_untyped_deduced(&mut self) -> TypeId {
        let atomic = self.add_untyped_atomic();
        let id = self.add(Type::default());
        self.set(
            id,
            Type {
                scalar: Some(Scalar::Untyped),
                list: Some(ListType {
                    element: atomic,
                    topology: ListTopology::Atomic,
                }),
                map: Some(MapType {
                    fields: Fields::default(),
                    element: Some(id),
                    atomic: false,
                }),
                form: Form::AnyJson,
            },
        );
        id
    }
}

impl Type {
    fn references(&self, mut visit: impl FnMut(&TypeId)) {
        if let Some(list) = &self.list {
            visit(&list.element);
        }
        if let Some(map) = &self.map {
            map.element.iter().for_each(&mut visit);
            map.fields.iter().for_each(|field| visit(&field.ty));
        }
    }

    fn references_mut(&mut self, mut visit: impl FnMut(&mut TypeId)) {
        if let Some(list) = &mut self.list {
            visit(&mut list.element);
        }
        if let Some(map) = &mut self.map {
            map.element.iter_mut().for_each(&mut visit);
            map.fields.types_mut().for_each(visit);
        }
    }
}

impl MapType {
    /// The declared field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.search(name).map(|at| &self.fields[at])
    }
}

impl Field {
    /// Marks a [`Field::tag`] whose list is wrapped.
    pub const WRAPPED: u32 = 1 << 31;

    /// The protobuf numbers that lead to the field: those of the embedded messages around it, the
    /// outermost first, then its own. Empty where protobuf has no such field.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        let bytes = (self.tag & !Field::WRAPPED).to_be_bytes();
        bytes.into_iter().filter(|byte| *byte != 0).map(u32::from)
    }

    /// Whether protobuf has the list in a message of its own, as its field 1. This is so for a few
    /// fields, and for every list that is the value of a dictionary.
    pub fn is_wrapped(&self) -> bool {
        self.tag & Field::WRAPPED != 0
    }
}
