//! Lists that are sets or maps hold nothing twice.
//!
//! Contract: `apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go`: of values that
//! stand several times, the second is reported.

use std::collections::HashMap;

use object::field::{FieldError, Path};
use object::{Map, Value, json};

use super::{ListMarker, Structural};

/// Reports what stands twice in the sets and list maps of an object.
pub fn check_unique(schema: &Structural, object: &Map) -> Vec<FieldError> {
    let mut errors = Vec::new();
    map(schema, object, &Path::root(), &mut errors);
    errors
}

/// Reports what stands twice in a value at a path.
pub fn check_unique_value(
    schema: &Structural,
    checked: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    value(schema, checked, path, errors);
}

fn map(schema: &Structural, object: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(below) = schema.additional_schema() {
        for (key, entry) in object.iter() {
            value(below, entry, &path.key(key), errors);
        }
    }
    if schema.properties.is_empty() {
        return;
    }
    for (key, entry) in object.iter() {
        if let Some(property) = schema.properties.get(key) {
            value(property, entry, &path.field(key), errors);
        }
    }
}

fn value(schema: &Structural, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(object) => map(schema, object, path, errors),
        Value::Array(items) => list(schema, items, path, errors),
        _ => {}
    }
}

fn list(schema: &Structural, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match schema.list_type {
        Some(ListMarker::Set) => {
            for index in repeats(items) {
                errors.push(FieldError::duplicate(&path.index(index), &items[index]));
            }
        }
        Some(ListMarker::Map) => list_map(schema, items, path, errors),
        Some(ListMarker::Atomic) | None => {}
    }
    if let Some(below) = schema.items.as_deref() {
        for (index, item) in items.iter().enumerate() {
            value(below, item, &path.index(index), errors);
        }
    }
}

fn list_map(schema: &Structural, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let odd = |item: &Value| !matches!(item, Value::Null | Value::Object(_));
    if let Some(index) = items.iter().position(odd) {
        let detail = "must be an object for an array of list-type map";
        let error = FieldError::invalid(&path.index(index), &items[index], detail);
        errors.push(error);
        return;
    }
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let entries = schema.list_map_keys.iter();
            let present = entries.filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(present.collect())
        })
        .collect();
    for index in repeats(&keys) {
        errors.push(FieldError::duplicate(&path.index(index), &keys[index]));
    }
}

/// The positions at which a value stands for the second time.
fn repeats(items: &[Value]) -> Vec<usize> {
    if items.len() <= 1 {
        return Vec::new();
    }
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::with_capacity(items.len());
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        // An integer and a float are two values in Go, but print alike.
        let mut key = json::to_vec(item);
        if matches!(item, Value::Float(_)) {
            key.push(b'f');
        }
        let times = seen.entry(key).or_default();
        *times += 1;
        if *times == 2 {
            found.push(index);
        }
    }
    found
}
