//! What marks on lists and maps ask of their schemas.

use object::Map;
use object::Value;
use object::field::Path;

use super::go_print;
use super::schema::Demands;
use crate::validation::check::{Errors, Report};
use crate::validation::print;
use crate::validation::read::{Read, texts};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const KEYS: &str = "x-kubernetes-list-map-keys";

/// Checks the marks of one schema.
pub(super) fn marks(schema: &Map, demands: &Demands<'_>, path: &Path<'_>, errors: &mut Errors) {
    map_type(schema, path, errors);
    let marked = schema.has(LIST_TYPE);
    let list_type = schema.text(LIST_TYPE);
    if marked && schema.text("type") != "array" {
        let detail = "must be array if x-kubernetes-list-type is specified";
        wrong_type(schema, detail, path, errors);
    } else if demands.atomic_sets && list_type == "set" {
        atomic_items(schema, path, errors);
    }
    if marked && !matches!(list_type, "atomic" | "set" | "map") {
        let supported = ["atomic", "set", "map"];
        errors.unsupported(&path.field(LIST_TYPE), list_type, &supported);
    }
    if !schema.list(KEYS).is_empty() && list_type != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match marked {
            false => errors.required(&path.field(LIST_TYPE), detail),
            true => errors.invalid(&path.field(LIST_TYPE), list_type, detail),
        }
    }
    if list_type == "map" {
        list_map(schema, path, errors);
    }
    if demands.list_keys {
        keys_are_there(schema, path, errors);
    }
}

fn map_type(schema: &Map, path: &Path<'_>, errors: &mut Errors) {
    if !schema.has(MAP_TYPE) {
        return;
    }
    if schema.text("type") != "object" {
        let detail = "must be object if x-kubernetes-map-type is specified";
        wrong_type(schema, detail, path, errors);
    }
    let text = schema.text(MAP_TYPE);
    if !matches!(text, "atomic" | "granular") {
        errors.unsupported(&path.field(MAP_TYPE), text, &["atomic", "granular"]);
    }
}

fn wrong_type(schema: &Map, detail: &str, path: &Path<'_>, errors: &mut Errors) {
    match schema.text("type") {
        "" => errors.required(&path.field("type"), detail),
        other => errors.invalid(&path.field("type"), other, detail),
    }
}

/// Whether the items of a set could be told apart by parts.
pub(super) fn has_parts(items: &Map) -> bool {
    match items.text("type") {
        "array" => items.has(LIST_TYPE) && items.text(LIST_TYPE) != "atomic",
        "object" => items.text(MAP_TYPE) != "atomic",
        _ => false,
    }
}

fn atomic_items(schema: &Map, path: &Path<'_>, errors: &mut Errors) {
    let Some(items) = schema.object("items").filter(|items| has_parts(items)) else {
        return;
    };
    let key = match items.text("type") {
        "array" => LIST_TYPE,
        _ => MAP_TYPE,
    };
    let at = path.field("items");
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    // Upstream shows the list type in both cases.
    errors.invalid_value(&at.field(key), items.value(LIST_TYPE), detail);
}

fn list_map(schema: &Map, path: &Path<'_>, errors: &mut Errors) {
    let keys_path = path.field(KEYS);
    let items_path = path.field("items");
    let keys = schema.list(KEYS);
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.required(&keys_path, detail);
    }
    let items = match schema.value("items") {
        Value::Null => {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.required(&items_path, detail);
            return;
        }
        Value::Object(items) => items,
        list => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            let shown = go_print::items(list);
            errors.push(print::invalid_text(&items_path, shown, detail));
            return;
        }
    };
    let kind = items.text("type");
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.invalid(&items_path.field("type"), kind, detail);
        return;
    }
    let shown = schema.value(KEYS);
    for (index, key) in texts(keys) {
        match items.object_or_empty("properties").object(key) {
            Some(property) if matches!(property.text("type"), "array" | "object") => {
                let at = items_path.field("properties");
                let at = at.key(key);
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.invalid(&at.field("type"), kind, detail);
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.invalid_value(&keys_path, shown, detail);
            }
        }
        if texts(&keys[..index]).any(|(_, other)| other == key) {
            errors.invalid_value(&keys_path, shown, "must not contain duplicate entries");
        }
    }
}

/// Items of sets and maps are never null, and the keys of maps are always there.
pub(super) fn keys_are_there(schema: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list_type = schema.text(LIST_TYPE);
    let Some(items) = schema
        .object("items")
        .filter(|_| matches!(list_type, "set" | "map"))
    else {
        return;
    };
    let items_path = path.field("items");
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.forbidden(&items_path.field("nullable"), detail);
    }
    if list_type == "set" {
        return;
    }
    let at = items_path.field("properties");
    for (_, key) in texts(schema.list(KEYS)) {
        let Some(property) = items.object_or_empty("properties").object(key) else {
            continue;
        };
        let at = at.key(key);
        let required = texts(items.list("required")).any(|(_, name)| name == key);
        if !required && !property.has("default") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                          default or be a required property";
            errors.required(&at.field("default"), detail);
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.forbidden(&at.field("nullable"), detail);
        }
    }
}
