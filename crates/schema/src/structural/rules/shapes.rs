//! What expressions see of a schema.
//!
//! Contract: `SchemaDeclType` of `k8s.io/apiserver/pkg/cel/common/schemas.go`.

use std::sync::Arc;

use cel::{ListKind, Property, Shape};
use object::Value;

use crate::structural::{ListMarker, Structural, ValueType};

/// The name of the object types; those below add their path.
pub(super) const TYPE_NAME: &str = "selfType0";

/// The shape of a whole object or embedded resource.
pub(super) fn of_resource(schema: &Structural) -> Arc<Shape> {
    shape(schema, true).shared(TYPE_NAME)
}

impl Structural {
    /// What expressions see of an object of this schema.
    pub fn shape(&self) -> Shape {
        shape(self, true)
    }
}

/// The shape of a value.
pub(super) fn of_value(schema: &Structural) -> Arc<Shape> {
    shape(schema, schema.embedded_resource).shared(TYPE_NAME)
}

fn shape(schema: &Structural, is_resource: bool) -> Shape {
    let checks = schema.checks.as_deref();
    let at_least_zero = |limit: Option<i64>| limit.map(|it| u64::try_from(it).unwrap_or(0));
    let length = at_least_zero(checks.and_then(|it| it.max_length));
    if schema.int_or_string {
        return Shape::int_or_string(length).nullable(schema.nullable);
    }
    let shape = match schema.value_type {
        Some(ValueType::Array) => match schema.items.as_deref() {
            None => Shape::hidden(),
            Some(items) => {
                let most = at_least_zero(checks.and_then(|it| it.max_items));
                let item = Arc::new(shape(items, items.embedded_resource));
                Shape::list(item, list_kind(schema), most)
            }
        },
        Some(ValueType::Object) if is_resource => resource(schema),
        Some(ValueType::Object) => match schema.additional_schema() {
            Some(values) => {
                let most = at_least_zero(checks.and_then(|it| it.max_properties));
                let value = Arc::new(shape(values, values.embedded_resource));
                Shape::map(value, most)
            }
            None => Shape::object(properties(schema)),
        },
        Some(ValueType::String) => {
            let format = checks.map_or("", |it| it.format.as_str());
            Shape::string(format, length, longest(schema))
        }
        Some(ValueType::Boolean) => Shape::bool(),
        Some(ValueType::Number) => Shape::double(),
        Some(ValueType::Integer) => Shape::int(),
        None => Shape::hidden(),
    };
    shape.nullable(schema.nullable)
}

fn list_kind(schema: &Structural) -> ListKind {
    match schema.list_type {
        Some(ListMarker::Set) => ListKind::Set,
        Some(ListMarker::Map) => {
            let keys = schema.list_map_keys.iter();
            ListKind::Map(keys.map(ToString::to_string).collect())
        }
        Some(ListMarker::Atomic) | None => ListKind::Atomic,
    }
}

fn properties(schema: &Structural) -> Vec<Property> {
    let required = schema
        .checks
        .as_deref()
        .map(|checks| checks.required.as_slice())
        .unwrap_or_default();
    let declared = schema.properties.iter().map(|(name, below)| Property {
        name: name.to_string(),
        shape: Arc::new(shape(below, below.embedded_resource)),
        required: below.default.is_none() && required.contains(name),
    });
    declared.collect()
}

/// An object whose kind and name can be seen, whatever the schema says of them.
fn resource(schema: &Structural) -> Shape {
    let text = |name: &str| Property {
        name: name.to_owned(),
        shape: Arc::new(Shape::string("", None, None)),
        required: false,
    };
    let is_text = |schema: Option<&Structural>| {
        schema.is_some_and(|it| it.value_type == Some(ValueType::String))
    };
    let metadata = schema.property("metadata");
    let is_known = is_text(schema.property("kind"))
        && is_text(schema.property("apiVersion"))
        && metadata.is_some_and(|it| {
            it.value_type == Some(ValueType::Object)
                && is_text(it.property("name"))
                && is_text(it.property("generateName"))
        });
    let mut properties = properties(schema);
    if !is_known {
        let replaced = ["kind", "apiVersion", "metadata"];
        properties.retain(|it| !replaced.contains(&it.name.as_str()));
        let metadata = Shape::object(vec![text("name"), text("generateName")]);
        properties.extend([text("kind"), text("apiVersion")]);
        properties.push(Property {
            name: "metadata".to_owned(),
            shape: Arc::new(metadata),
            required: false,
        });
    }
    Shape::object(properties)
}

/// The bytes of the longest value of an enumeration.
fn longest(schema: &Structural) -> Option<u64> {
    let values = &schema.checks.as_deref()?.one_of_values;
    let lengths = values.iter().filter_map(Value::as_str).map(str::len);
    match values.is_empty() {
        true => None,
        false => Some(lengths.max().unwrap_or(0) as u64),
    }
}
