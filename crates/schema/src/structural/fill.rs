//! Filling in the defaults of a schema.
//!
//! Contract: `apiextensions-apiserver/pkg/apiserver/schema/defaulting/algorithm.go`. A default is
//! put where a field is absent, or null although the schema takes no null; what it brings in is
//! filled in turn.

use object::{Map, Value};

use super::Structural;

/// Fills in what is absent.
pub fn fill_defaults(schema: &Structural, object: &mut Map) {
    for (name, property) in schema.properties.iter() {
        let Some(default) = property.default.as_deref().filter(|it| !it.is_null()) else {
            continue;
        };
        match object.get_mut(name) {
            Some(Value::Null) if !property.nullable => {
                object.insert(name.clone(), default.clone());
            }
            Some(_) => {}
            None => {
                object.insert(name.clone(), default.clone());
            }
        }
    }
    for (key, value) in object.iter_mut() {
        if let Some(property) = schema.properties.get(key) {
            fill_value(property, value);
        } else if let Some(below) = schema.additional_schema() {
            replace_null(below, value);
            fill_value(below, value);
        }
    }
}

/// Fills in what is absent inside a value.
pub fn fill_value(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(map) => fill_defaults(schema, map),
        Value::Array(items) => {
            let Some(below) = schema.items.as_deref() else {
                return;
            };
            for item in items {
                replace_null(below, item);
                fill_value(below, item);
            }
        }
        _ => {}
    }
}

fn replace_null(schema: &Structural, value: &mut Value) {
    if value.is_null() && !schema.nullable {
        *value = schema.default.as_deref().cloned().unwrap_or_default();
    }
}
