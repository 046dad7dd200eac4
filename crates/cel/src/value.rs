//! Values while an expression is evaluated.
//!
//! A value borrows from the objects that it was read from: lists and maps of data are never
//! copied, their elements are turned into values when they are looked at.
//!
//! Contract: cel-go `common/types` and `k8s.io/apiserver/pkg/cel/common/valuesunstructured.go`.

mod compare;
mod convert;
mod list;
mod map;
mod print;
mod time;
mod zone;

pub(crate) use compare::{equal, equal_within, order};
pub(crate) use convert::{to_bool, to_bytes, to_double, to_duration, to_int, to_string};
pub(crate) use convert::{to_timestamp, to_uint};
pub(crate) use list::ITEMS_MAX;
pub use list::List;
pub use map::{Entries, Key, Made, Map};
pub(crate) use print::{print_double, quoted};
pub use time::Timestamp;
pub(crate) use time::{Zone, parse_date, parse_date_time, parse_schema_duration};
pub use zone::{ZoneSource, provide_zones};

use crate::authorize::{Authorizer, Decision, GroupCheck, PathCheck, ResourceCheck};
use crate::evaluate::Fault;
use crate::library::{format::Format, network::Cidr, semver::Semver, url::Url};
use crate::shape::{Shape, ShapeKind};
use crate::types::Type;
use object::quantity::Quantity;
use std::net::IpAddr;
use std::sync::Arc;

/// A value of an expression.
#[derive(Clone, Debug)]
pub enum Value<'v> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A float.
    Double(f64),
    /// Text.
    String(Text<'v>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Timestamp),
    /// A list.
    List(List<'v>),
    /// A map, or an object with fields.
    Map(Map<'v>),
    /// A type.
    Type(Arc<Type>),
    /// A value that may be absent.
    Optional(Option<Arc<Value<'v>>>),
    /// A value of one of the Kubernetes libraries.
    Library(Library<'v>),
    /// Data that no schema describes; it can be compared only.
    Hidden(&'v object::Value),
}

/// Values of the Kubernetes libraries.
#[derive(Clone, Debug)]
pub enum Library<'v> {
    /// A parsed URL.
    Url(Arc<Url>),
    /// An address.
    Ip(IpAddr),
    /// A network.
    Cidr(Cidr),
    /// An amount.
    Quantity(Arc<Quantity>),
    /// A version.
    Semver(Arc<Semver>),
    /// A format by name.
    Format(&'static Format),
    /// Who to ask whether something is allowed.
    Authorizer(Authorizer<'v>),
    /// A question about a path.
    PathCheck(Arc<PathCheck<'v>>),
    /// The group of a question.
    GroupCheck(Arc<GroupCheck<'v>>),
    /// A question about a resource.
    ResourceCheck(Arc<ResourceCheck<'v>>),
    /// The answer.
    Decision(Arc<Decision>),
}

/// Text that is borrowed from data or made by the expression.
#[derive(Clone, Debug)]
pub enum Text<'v> {
    /// Of the data.
    Borrowed(&'v str),
    /// Made by the expression.
    Owned(Arc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Owned(text) => text,
        }
    }
}

impl<'v> Value<'v> {
    /// Text that lives as long as the data.
    pub fn text(text: &'v str) -> Value<'v> {
        Value::String(Text::Borrowed(text))
    }

    /// Text that the value keeps.
    pub fn owned_text(text: impl Into<Arc<str>>) -> Value<'static> {
        Value::String(Text::Owned(text.into()))
    }

    /// Data seen through its shape.
    ///
    /// # Errors
    /// The data does not have the shape.
    pub fn from_data(data: &'v object::Value, shape: &'v Shape) -> Result<Value<'v>, crate::Error> {
        adapt(data, shape).map_err(crate::Error::from)
    }

    /// Data that is typed when it is looked at.
    pub fn from_json(data: &'v object::Value) -> Value<'v> {
        adapt_json(data)
    }

    /// A list of values.
    pub fn list(items: Vec<Value<'v>>) -> Value<'v> {
        Value::List(List::owned(items))
    }

    /// An optional with a value.
    pub fn some(value: Value<'v>) -> Value<'v> {
        Value::Optional(Some(Arc::new(value)))
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The type, without what lists and maps hold.
    pub fn type_of(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::Duration(_) => Type::Duration,
            Value::Timestamp(_) => Type::Timestamp,
            Value::List(_) => Type::list(Type::Dyn),
            Value::Map(Map::Made(made)) => Type::Object(made.name.clone()),
            Value::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Value::Type(_) => Type::Type(None),
            Value::Optional(_) => Type::optional(Type::Dyn),
            Value::Library(value) => value.type_of(),
            Value::Hidden(_) => Type::Dyn,
        }
    }

    /// How large the value is to the cost rules, if it has a size.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Value::String(text) => Some(text.chars().count() as u64),
            Value::Bytes(bytes) => Some(bytes.len() as u64),
            Value::List(list) => Some(list.len()),
            Value::Map(map) => map.len(),
            Value::Library(Library::Ip(IpAddr::V4(_))) => Some(4),
            Value::Library(Library::Ip(IpAddr::V6(_))) => Some(16),
            Value::Library(Library::Cidr(cidr)) => Some(u64::from(cidr.length).div_ceil(8)),
            _ => None,
        }
    }

    /// Whether the value is what `optional.ofNonZeroValue` takes for nothing.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(flag) => !flag,
            Value::Int(number) => *number == 0,
            Value::Uint(number) => *number == 0,
            Value::Double(number) => *number == 0.0,
            Value::String(text) => text.is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Duration(nanos) => *nanos == 0,
            Value::Timestamp(time) => time.is_zero(),
            // Data of a schema does not say whether it is empty.
            Value::List(List::Data(_, shape)) if !shape.is_any() => false,
            Value::List(list) => list.len() == 0,
            Value::Map(Map::Data(_, shape)) if !shape.is_any() => false,
            Value::Map(map) => map.len() == Some(0),
            _ => false,
        }
    }
}

impl Library<'_> {
    fn type_of(&self) -> Type {
        let name = match self {
            Library::Ip(_) => return Type::Opaque(crate::types::IP, Arc::new([])),
            Library::Cidr(_) => return Type::Opaque(crate::types::CIDR, Arc::new([])),
            Library::Url(_) => crate::types::URL,
            Library::Quantity(_) => crate::types::QUANTITY,
            Library::Semver(_) => crate::types::SEMVER,
            Library::Format(_) => crate::types::NAMED_FORMAT,
            Library::Authorizer(_) => crate::types::AUTHORIZER,
            Library::PathCheck(_) => crate::types::PATH_CHECK,
            Library::GroupCheck(_) => crate::types::GROUP_CHECK,
            Library::ResourceCheck(_) => crate::types::RESOURCE_CHECK,
            Library::Decision(_) => crate::types::DECISION,
        };
        Type::object(name)
    }
}

impl Shape {
    pub(crate) fn is_any(&self) -> bool {
        matches!(self.kind, ShapeKind::Any)
    }
}

/// Looks at data through a shape.
pub(crate) fn adapt<'v>(data: &'v object::Value, shape: &'v Shape) -> Result<Value<'v>, Fault> {
    use object::Value as Json;
    let invalid = |text: &'static str| Err(Fault::new(text));
    match (&shape.kind, data) {
        (ShapeKind::Any, data) => Ok(adapt_json(data)),
        (_, Json::Null) if shape.nullable => Ok(Value::Null),
        (_, Json::Null) => invalid("invalid data, got null for schema with nullable=false"),
        (ShapeKind::Hidden, data) => Ok(Value::Hidden(data)),
        (ShapeKind::IntOrString, Json::Int(number)) => Ok(Value::Int(*number)),
        (ShapeKind::IntOrString | ShapeKind::String, Json::String(text)) => Ok(Value::text(text)),
        (ShapeKind::Bool, Json::Bool(flag)) => Ok(Value::Bool(*flag)),
        (ShapeKind::Int, Json::Int(number)) => Ok(Value::Int(*number)),
        (ShapeKind::Double, Json::Int(number)) => Ok(Value::Double(*number as f64)),
        (ShapeKind::Double, Json::Float(number)) => Ok(Value::Double(*number)),
        (ShapeKind::List(..), Json::Array(items)) => Ok(Value::List(List::Data(items, shape))),
        (ShapeKind::Map(_) | ShapeKind::Object(_), Json::Object(map)) => {
            Ok(Value::Map(Map::Data(map, shape)))
        }
        (kind, Json::String(text)) => adapt_format(kind, text),
        (ShapeKind::IntOrString, _) => {
            invalid("invalid data, expected XIntOrString value to be either a string or integer")
        }
        (ShapeKind::List(..), _) => {
            invalid("invalid data, expected an array for the provided schema with type=array")
        }
        (ShapeKind::Map(_) | ShapeKind::Object(_), _) => {
            invalid("invalid data, expected a map for the provided schema with type=object")
        }
        (kind, data) => Err(Fault::from(format!(
            "invalid data, expected {}, got {}",
            expected_name(kind),
            go_type(data)
        ))),
    }
}

fn expected_name(kind: &ShapeKind) -> &'static str {
    match kind {
        ShapeKind::Bool => "bool",
        ShapeKind::Int => "int",
        ShapeKind::Double => "float",
        _ => "string",
    }
}

fn go_type(data: &object::Value) -> &'static str {
    match data {
        object::Value::Null => "<nil>",
        object::Value::Bool(_) => "bool",
        object::Value::Int(_) => "int64",
        object::Value::Float(_) => "float64",
        object::Value::String(_) => "string",
        object::Value::Array(_) => "[]interface {}",
        object::Value::Object(_) => "map[string]interface {}",
    }
}

fn adapt_format<'v>(kind: &ShapeKind, text: &'v str) -> Result<Value<'v>, Fault> {
    let parsed = match kind {
        ShapeKind::Bytes => convert::decode_base64(text).map(|it| Value::Bytes(it.into())),
        ShapeKind::Duration => parse_schema_duration(text).map(Value::Duration),
        ShapeKind::Date => parse_date(text).map(Value::Timestamp),
        ShapeKind::DateTime => parse_date_time(text).map(Value::Timestamp),
        other => {
            let expected = expected_name(other);
            let message = format!("invalid data, expected {expected}, got string");
            return Err(Fault::from(message));
        }
    };
    let name = match kind {
        ShapeKind::Bytes => "Invalid byte formatted string",
        ShapeKind::Duration => "Invalid duration",
        ShapeKind::Date => "Invalid date formatted string",
        _ => "Invalid date-time formatted string",
    };
    parsed.ok_or_else(|| Fault::from(format!("{name} {text}: invalid")))
}

pub(crate) fn adapt_json(data: &object::Value) -> Value<'_> {
    match data {
        object::Value::Null => Value::Null,
        object::Value::Bool(flag) => Value::Bool(*flag),
        object::Value::Int(number) => Value::Int(*number),
        object::Value::Float(number) => Value::Double(*number),
        object::Value::String(text) => Value::text(text),
        object::Value::Array(items) => Value::List(List::Data(items, Shape::any())),
        object::Value::Object(map) => Value::Map(Map::Data(map, Shape::any())),
    }
}
