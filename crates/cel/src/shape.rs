//! The declared shape of data: what an expression may see of an object, and how large it can be.
//!
//! A shape serves twice. The checker takes types from it and the cost estimate takes sizes; the
//! evaluator reads raw values through it, which turns a string of format `date-time` into a
//! timestamp and hides what no schema describes.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/common/schemas.go`, `types.go` and `escaping.go`.

use crate::types::Type;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The largest request, which bounds whatever the schema leaves unbounded.
pub const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// The shape of a value.
#[derive(Clone, Debug)]
pub struct Shape {
    pub(crate) kind: ShapeKind,
    pub(crate) nullable: bool,
    /// How long the keys of a map are at most; 0 if nothing is said of them.
    pub(crate) key_bytes_max: u32,
    /// How long the string, or how many items or entries, at most.
    pub(crate) elements_max: u64,
    /// The fewest bytes that the value takes in JSON.
    pub(crate) size_min: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum ShapeKind {
    /// Whatever JSON holds.
    Any,
    /// A value under `x-kubernetes-preserve-unknown-fields` without a type: nothing can read it.
    Hidden,
    IntOrString,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Date,
    DateTime,
    List(Arc<Shape>, ListKind),
    Map(Arc<Shape>),
    Object(ObjectShape),
    /// A value that is declared by its type alone, which no data is read through.
    Declared(Type),
}

/// How the items of a list are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// By their place.
    Atomic,
    /// By their value; order does not count in comparisons.
    Set,
    /// By the values of these properties.
    Map(Arc<[String]>),
}

/// An object with named fields.
#[derive(Clone, Debug)]
pub(crate) struct ObjectShape {
    /// The name of its type, once it has one.
    pub(crate) name: Arc<str>,
    fields: Vec<Field>,
}

#[derive(Clone, Debug)]
struct Field {
    property: String,
    shape: Arc<Shape>,
}

static ANY: LazyLock<Arc<Shape>> = LazyLock::new(|| Arc::new(Shape::of(ShapeKind::Any, 1)));

impl Shape {
    fn of(kind: ShapeKind, size_min: u64) -> Shape {
        Shape {
            kind,
            nullable: false,
            key_bytes_max: 0,
            elements_max: 0,
            size_min,
        }
    }

    fn sized(kind: ShapeKind, size_min: u64, elements_max: u64) -> Shape {
        Shape {
            elements_max,
            ..Shape::of(kind, size_min)
        }
    }

    /// Whatever JSON holds, typed dyn.
    pub fn any() -> &'static Arc<Shape> {
        &ANY
    }

    /// A value that expressions cannot read.
    pub fn hidden() -> Shape {
        Shape::of(ShapeKind::Hidden, 1)
    }

    /// An integer or a string, typed dyn.
    pub fn int_or_string(length_max: Option<u64>) -> Shape {
        let elements = length_max.map_or(REQUEST_BYTES_MAX - 2, |it| it.saturating_mul(4));
        Shape::sized(ShapeKind::IntOrString, 1, elements)
    }

    /// `true` or `false`.
    pub fn bool() -> Shape {
        Shape::of(ShapeKind::Bool, 4)
    }

    /// An integer.
    pub fn int() -> Shape {
        Shape::of(ShapeKind::Int, 1)
    }

    /// A number.
    pub fn double() -> Shape {
        Shape::of(ShapeKind::Double, 1)
    }

    /// A string; its format may make another type of it. `longest_value` is the length of the
    /// longest value of an enumeration, in bytes.
    pub fn string(format: &str, length_max: Option<u64>, longest_value: Option<u64>) -> Shape {
        let unbounded = REQUEST_BYTES_MAX - 2;
        match format {
            "byte" => Shape::sized(ShapeKind::Bytes, 2, length_max.unwrap_or(unbounded)),
            "duration" => Shape::sized(ShapeKind::Duration, 3, 32),
            "date" => Shape::sized(ShapeKind::Date, 12, 12),
            "date-time" => Shape::sized(ShapeKind::DateTime, 21, 32),
            _ => {
                let bytes = length_max.map(|it| it.saturating_mul(4));
                let elements = bytes.or(longest_value).unwrap_or(unbounded);
                Shape::sized(ShapeKind::String, 2, elements)
            }
        }
    }

    /// A list.
    pub fn list(items: Arc<Shape>, kind: ListKind, items_max: Option<u64>) -> Shape {
        let fitting = (REQUEST_BYTES_MAX - 2) / (items.size_min + 1);
        let elements = items_max.unwrap_or(fitting);
        Shape::sized(ShapeKind::List(items, kind), 2, elements)
    }

    /// A map from strings.
    pub fn map(values: Arc<Shape>, properties_max: Option<u64>) -> Shape {
        let fitting = (REQUEST_BYTES_MAX - 2) / (values.size_min + 6);
        let elements = properties_max.unwrap_or(fitting);
        Shape::sized(ShapeKind::Map(values), 2, elements)
    }

    /// An object with these properties; `required` ones without default make it larger.
    pub fn object(properties: Vec<Property>) -> Shape {
        let mut size_min = 2;
        let mut fields = Vec::with_capacity(properties.len());
        for property in properties {
            if property.required && property.shape.is_visible() {
                size_min += property.name.len() as u64 + property.shape.size_min + 4;
            }
            fields.push(Field {
                property: property.name,
                shape: property.shape,
            });
        }
        fields.sort_by(|a, b| a.property.cmp(&b.property));
        let object = ObjectShape {
            name: "object".into(),
            fields,
        };
        Shape::of(ShapeKind::Object(object), size_min)
    }

    /// A value of a type, for checks and estimates only: data cannot be read through it.
    pub fn declared(of: Type, elements_max: u64) -> Shape {
        Shape::sized(ShapeKind::Declared(of), 1, elements_max)
    }

    /// The same map with keys that are known to be short.
    #[must_use]
    pub fn with_keys(mut self, bytes_max: u32) -> Shape {
        self.key_bytes_max = bytes_max;
        self
    }

    /// The same shape, which may also be `null`.
    #[must_use]
    pub fn nullable(mut self, nullable: bool) -> Shape {
        self.nullable = nullable;
        self
    }

    /// The same shape with names for the object types in it, which a type needs to be told from
    /// others: `name`, `name.field`, `name.field.@idx`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Shape {
        match &mut self.kind {
            ShapeKind::List(items, _) => rename(items, format!("{name}.@idx")),
            ShapeKind::Map(values) => rename(values, format!("{name}.@elem")),
            ShapeKind::Object(object) => {
                object.name = name.into();
                for field in &mut object.fields {
                    let escaped = escape(&field.property);
                    let part = escaped.as_deref().unwrap_or(&field.property);
                    rename(&mut field.shape, format!("{name}.{part}"));
                }
            }
            _ => {}
        }
        self
    }

    /// What the names of all object types in this shape begin with, if there are any.
    pub fn type_prefix(&self) -> Option<&str> {
        match &self.kind {
            ShapeKind::List(of, _) => of.type_prefix()?.strip_suffix(".@idx"),
            ShapeKind::Map(of) => of.type_prefix()?.strip_suffix(".@elem"),
            ShapeKind::Object(object) => Some(&object.name),
            _ => None,
        }
    }

    /// Whether expressions can see values of this shape. A list or map of what cannot be seen
    /// cannot be seen either.
    pub fn is_visible(&self) -> bool {
        match &self.kind {
            ShapeKind::Hidden => false,
            ShapeKind::List(of, _) | ShapeKind::Map(of) => of.is_visible(),
            _ => true,
        }
    }

    /// The type of the values.
    pub fn of_type(&self) -> Type {
        match &self.kind {
            ShapeKind::Any | ShapeKind::Hidden | ShapeKind::IntOrString => Type::Dyn,
            ShapeKind::Bool => Type::Bool,
            ShapeKind::Int => Type::Int,
            ShapeKind::Double => Type::Double,
            ShapeKind::String => Type::String,
            ShapeKind::Bytes => Type::Bytes,
            ShapeKind::Duration => Type::Duration,
            ShapeKind::Date | ShapeKind::DateTime => Type::Timestamp,
            ShapeKind::List(items, _) => Type::list(items.of_type()),
            ShapeKind::Map(values) => Type::map(Type::String, values.of_type()),
            ShapeKind::Object(object) => Type::Object(object.name.clone()),
            ShapeKind::Declared(of) => of.clone(),
        }
    }

    /// How many of these a request can hold at most.
    pub fn cardinality_max(&self) -> u64 {
        REQUEST_BYTES_MAX / (self.size_min + 1)
    }

    /// The fewest bytes that the value takes in JSON.
    pub fn size_min(&self) -> u64 {
        self.size_min
    }

    /// How long the string, or how many items or entries, at most.
    pub fn elements_max(&self) -> u64 {
        self.elements_max
    }

    /// The shape of the items of a list or the values of a map.
    pub fn element(&self) -> Option<&Arc<Shape>> {
        match &self.kind {
            ShapeKind::List(of, _) | ShapeKind::Map(of) => Some(of),
            _ => None,
        }
    }

    /// The shape of a property, by the name that the data has.
    pub fn property(&self, name: &str) -> Option<&Arc<Shape>> {
        match &self.kind {
            ShapeKind::Object(object) => object.by_property(name),
            _ => None,
        }
    }

    /// The shape of a field that expressions can see, by the name that they write.
    pub(crate) fn field(&self, name: &str) -> Option<&Arc<Shape>> {
        match &self.kind {
            ShapeKind::Object(object) => object.by_name(name),
            _ => None,
        }
    }

    /// All object types in this shape by name.
    pub(crate) fn collect_objects(self: &Arc<Shape>, into: &mut HashMap<Arc<str>, Arc<Shape>>) {
        match &self.kind {
            ShapeKind::List(of, _) | ShapeKind::Map(of) => of.collect_objects(into),
            ShapeKind::Object(object) => {
                into.insert(object.name.clone(), self.clone());
                for field in &object.fields {
                    field.shape.collect_objects(into);
                }
            }
            _ => {}
        }
    }
}

/// A property of an object shape.
#[derive(Clone, Debug)]
pub struct Property {
    /// Its name in the data.
    pub name: String,
    /// Its shape.
    pub shape: Arc<Shape>,
    /// Whether it is always there: required, and not filled in by a default.
    pub required: bool,
}

impl ObjectShape {
    pub(crate) fn by_property(&self, property: &str) -> Option<&Arc<Shape>> {
        let fields = &self.fields;
        let at = fields.binary_search_by(|it| it.property.as_str().cmp(property));
        at.ok().map(|at| &fields[at].shape)
    }

    /// The shape behind the name of an expression, if it can see it.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Shape>> {
        let property = unescape(name)?;
        // A property whose name needs an escape cannot be called without one.
        if property.contains("__") && escape(&property).as_deref() != Some(name) {
            return None;
        }
        let shape = self.by_property(&property)?;
        shape.is_visible().then_some(shape)
    }
}

fn rename(shape: &mut Arc<Shape>, name: String) {
    if shape.has_objects() {
        let renamed = Shape::clone(shape).named(&name);
        *shape = Arc::new(renamed);
    }
}

impl Shape {
    fn has_objects(&self) -> bool {
        match &self.kind {
            ShapeKind::List(of, _) | ShapeKind::Map(of) => of.has_objects(),
            // A name that was given stays.
            ShapeKind::Object(object) => &*object.name == "object",
            _ => false,
        }
    }
}

/// Words of the language, which a property of that name is escaped to avoid.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a name is a word of the language.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The name by which an expression calls a property, if there can be one.
pub fn escape(property: &str) -> Option<String> {
    let first = property.bytes().next()?;
    if first.is_ascii_digit() {
        return None;
    }
    if is_reserved(property) {
        return Some(format!("__{property}__"));
    }
    let mut out = String::with_capacity(property.len());
    let mut rest = property;
    while let Some(character) = rest.chars().next() {
        let (escaped, length) = match character {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => (&rest[..1], 1),
            _ => return None,
        };
        out.push_str(escaped);
        rest = &rest[length..];
    }
    Some(out)
}

/// The property that an expression calls by this name, if the name is escaped well.
pub fn unescape(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find("__") {
        // An escape is two underscores, a word without any, and two underscores.
        let after = &rest[open + 2..];
        let length = after.find('_').unwrap_or(after.len());
        if length == 0 || !after[length..].starts_with("__") {
            out.push_str(&rest[..open + 1]);
            rest = &rest[open + 1..];
            continue;
        }
        out.push_str(&rest[..open]);
        match &after[..length] {
            "underscores" => out.push_str("__"),
            "dot" => out.push('.'),
            "dash" => out.push('-'),
            "slash" => out.push('/'),
            word if is_reserved(word) && name.len() == length + 4 => out.push_str(word),
            _ => return None,
        }
        rest = &after[length + 2..];
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        let cases = [
            ("a", "a"),
            ("a-b", "a__dash__b"),
            ("c.d", "c__dot__d"),
            ("e/f", "e__slash__f"),
            ("x__y", "x__underscores__y"),
            ("namespace", "__namespace__"),
            ("_a", "_a"),
            ("if", "__if__"),
        ];
        for (property, name) in cases {
            assert_eq!(escape(property).as_deref(), Some(name));
            assert_eq!(unescape(name).as_deref(), Some(property));
        }
        for property in ["", "1a", "a$", "\u{e4}"] {
            assert_eq!(escape(property), None, "{property}");
        }
        for name in ["a__if__", "__nothing__"] {
            assert_eq!(unescape(name), None, "{name}");
        }
    }

    #[test]
    fn a_list_of_large_items_holds_fewer() {
        let item = Arc::new(Shape::string("", None, None));
        let list = Shape::list(item, ListKind::Atomic, None);
        assert_eq!(list.elements_max(), (REQUEST_BYTES_MAX - 2) / 3);
        assert_eq!(Shape::int().cardinality_max(), REQUEST_BYTES_MAX / 2);
    }
}
