//! Maps: data, made by the expression, objects that the expression made, and what is computed when
//! it is asked for.

use super::{Text, Value, adapt, adapt_json};
use crate::Lazy;
use crate::evaluate::Fault;
use crate::shape::{Shape, ShapeKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A map from keys to values.
#[derive(Clone, Debug)]
pub enum Map<'v> {
    /// Data and its shape.
    Data(&'v object::Map, &'v Shape),
    /// Made by the expression.
    Owned(Arc<Entries<'v>>),
    /// An object that the expression made.
    Made(Arc<Made<'v>>),
    /// Fields that are computed when they are read.
    Lazy(&'v dyn Lazy),
}

/// The entries of a map that the expression made, in the order of their keys.
pub type Entries<'v> = BTreeMap<Key, Value<'v>>;

/// An object that the expression made.
#[derive(Clone, Debug)]
pub struct Made<'v> {
    /// The name of its type.
    pub name: Arc<str>,
    /// Its fields.
    pub fields: BTreeMap<String, Value<'v>>,
}

/// The key of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `true` or `false`.
    Bool(bool),
    /// A signed or unsigned integer; both find each other.
    Number(i128, Sign),
    /// Text.
    String(Arc<str>),
}

/// Which integer a key was.
#[derive(Clone, Copy, Debug)]
pub enum Sign {
    /// An `int`.
    Signed,
    /// A `uint`.
    Unsigned,
}

impl PartialEq for Sign {
    fn eq(&self, _: &Sign) -> bool {
        true
    }
}

impl Eq for Sign {}

impl PartialOrd for Sign {
    fn partial_cmp(&self, other: &Sign) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sign {
    fn cmp(&self, _: &Sign) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Key {
    pub(crate) fn from_value(value: &Value<'_>) -> Option<Key> {
        match value {
            Value::Bool(flag) => Some(Key::Bool(*flag)),
            Value::Int(number) => Some(Key::Number((*number).into(), Sign::Signed)),
            Value::Uint(number) => Some(Key::Number((*number).into(), Sign::Unsigned)),
            // A float finds the integer that it is equal to.
            Value::Double(number) if number.fract() == 0.0 && number.abs() < 1e19 => {
                Some(Key::Number(*number as i128, Sign::Signed))
            }
            Value::String(Text::Owned(text)) => Some(Key::String(text.clone())),
            Value::String(text) => Some(Key::String((&**text).into())),
            _ => None,
        }
    }

    pub(crate) fn to_value(&self) -> Value<'static> {
        match self {
            Key::Bool(flag) => Value::Bool(*flag),
            Key::Number(number, Sign::Signed) => Value::Int(*number as i64),
            Key::Number(number, Sign::Unsigned) => Value::Uint(*number as u64),
            Key::String(text) => Value::owned_text(text.clone()),
        }
    }
}

impl<'v> Map<'v> {
    /// How many entries there are, if that can be said.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Map::Data(map, _) => Some(map.len() as u64),
            Map::Owned(entries) => Some(entries.len() as u64),
            Map::Made(_) | Map::Lazy(_) => None,
        }
    }

    /// The value under a key. An object of a schema shows the fields that the schema names, and
    /// takes `null` for absent.
    pub(crate) fn find(&self, key: &Value<'v>) -> Result<Option<Value<'v>>, Fault> {
        match self {
            Map::Owned(entries) => {
                Ok(Key::from_value(key).and_then(|it| entries.get(&it).cloned()))
            }
            Map::Data(_, shape) if shape.is_any() => match key {
                Value::String(text) => self.find_text(text),
                _ => Ok(None),
            },
            _ => match key {
                Value::String(text) => self.find_text(text),
                _ => Err(Fault::no_overload()),
            },
        }
    }

    /// As [`Map::find`] for a text.
    pub(crate) fn find_text(&self, key: &str) -> Result<Option<Value<'v>>, Fault> {
        match self {
            Map::Data(map, shape) => find_data(map, shape, key),
            Map::Owned(entries) => Ok(entries.get(&Key::String(key.into())).cloned()),
            Map::Made(made) => Ok(made.fields.get(key).cloned()),
            Map::Lazy(lazy) => lazy.field(key).transpose().map_err(Fault::from),
        }
    }

    /// The value under the name that the data has, to tell the items of a list apart.
    pub(super) fn raw(&self, property: &str) -> Result<Option<Value<'v>>, Fault> {
        match self {
            Map::Data(map, _) => Ok(map.get(property).map(adapt_json)),
            other => other.find_text(property),
        }
    }

    /// The keys in order. Of data that a schema describes, those that it names.
    pub(crate) fn keys(&self) -> Vec<Value<'v>> {
        match self {
            Map::Data(map, shape) => match &shape.kind {
                ShapeKind::Object(object) => {
                    let named = map.keys().filter(|it| object.by_property(it).is_some());
                    let escaped = named.map(|it| match crate::shape::escape(it) {
                        Some(escaped) if escaped != it.as_str() => Value::owned_text(escaped),
                        _ => Value::text(it),
                    });
                    escaped.collect()
                }
                _ => map.keys().map(|it| Value::text(it)).collect(),
            },
            Map::Owned(entries) => entries.keys().map(Key::to_value).collect(),
            Map::Made(made) => {
                let names = made.fields.keys();
                names.map(|it| Value::owned_text(it.as_str())).collect()
            }
            Map::Lazy(_) => Vec::new(),
        }
    }
}

fn find_data<'v>(
    map: &'v object::Map,
    shape: &'v Shape,
    key: &str,
) -> Result<Option<Value<'v>>, Fault> {
    match &shape.kind {
        ShapeKind::Object(object) => {
            let Some(property) = crate::shape::unescape(key) else {
                return Ok(None);
            };
            let value = map.get(&property).filter(|it| !it.is_null());
            let (Some(value), Some(shape)) = (value, object.by_property(&property)) else {
                return Ok(None);
            };
            adapt(value, shape).map(Some)
        }
        ShapeKind::Map(values) => map.get(key).map(|it| adapt(it, values)).transpose(),
        _ => Ok(map.get(key).map(adapt_json)),
    }
}
