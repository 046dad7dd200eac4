//! Whether a schema is structural: whether it says what every value is, outside of logic.
//!
//! Contract: `apiextensions-apiserver/pkg/apiserver/schema/validation.go` and `complete.go`.

use object::field::{FieldError, Path};
use object::{Map, Value};
use schema::structural::Pattern;

use crate::validation::check::{Errors, Report};
use crate::validation::read::{Read, maps};

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The rules that a schema breaks, sorted by their text.
pub(crate) fn violations(schema: &Map, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Errors::new();
    invariants(schema, Level::Root, path, &mut errors);
    complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// A keyword that no structural schema has, anywhere in this one, in upstream's words.
pub(super) fn unsupported(schema: &Map) -> Option<String> {
    let named = |key: &str| format!("OpenAPIV3Schema '{key}' is not supported");
    for (key, name) in [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ] {
        if schema.has(key) && !is_forgotten(key, schema.value(key)) {
            return Some(named(name));
        }
    }
    if schema.choice("x-kubernetes-preserve-unknown-fields") == Some(false) {
        let key = "x-kubernetes-preserve-unknown-fields";
        return Some(format!("internal error: '{key}' must be true or undefined"));
    }
    if matches!(schema.value("items"), Value::Array(_)) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    below(schema).find_map(unsupported)
}

/// Every schema directly inside a schema.
pub(super) fn below(schema: &Map) -> impl Iterator<Item = &Map> {
    let one = ["items", "not", "additionalProperties"];
    let many = ["allOf", "anyOf", "oneOf"];
    let single = one.into_iter().filter_map(|key| schema.object(key));
    let listed = many
        .into_iter()
        .flat_map(|key| maps(schema.list(key)).map(|(_, branch)| branch));
    let named = schema.object_or_empty("properties").iter();
    single
        .chain(listed)
        .chain(named.filter_map(|(_, property)| property.as_object()))
}

fn invariants(schema: &Map, level: Level, path: &Path<'_>, errors: &mut Errors) {
    let items = schema.object("items");
    let kind = schema.text("type");
    if kind == "array" && items.is_none() {
        errors.required(&path.field("items"), "must be specified");
    }
    if let Some(items) = items {
        invariants(items, Level::Item, &path.field("items"), errors);
    }
    let properties = schema.object_or_empty("properties");
    for (name, property) in properties.iter() {
        let at = path.field("properties");
        let property = property
            .as_object()
            .unwrap_or(crate::validation::read::empty());
        invariants(property, Level::Field, &at.key(name), errors);
    }
    let additional = path.field("additionalProperties");
    if schema.has("additionalProperties") && level == Level::Root {
        errors.forbidden(&additional, "must not be used at the root");
    }
    if let Some(below) = schema.object("additionalProperties") {
        invariants(below, Level::Field, &additional, errors);
    }
    extensions(schema, path, errors);
    let skip_any_of = is_int_or_string(schema.list("anyOf"));
    let first = maps(schema.list("allOf")).next();
    let skip_all_of = first.is_some_and(|(_, first)| is_int_or_string(first.list("anyOf")));
    logic(schema, skip_any_of, skip_all_of, path, errors);
    types(schema, level, path, errors);
    let checked = level == Level::Root || schema.flag("x-kubernetes-embedded-resource");
    metadata(properties, level, checked, path, errors);
}

fn extensions(schema: &Map, path: &Path<'_>, errors: &mut Errors) {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    for key in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ] {
        if schema.flag("x-kubernetes-int-or-string") && schema.flag(key) {
            errors.invalid(&path.field(key), true, detail);
        }
    }
}

fn types(schema: &Map, level: Level, path: &Path<'_>, errors: &mut Errors) {
    let kind = schema.text("type");
    let at = path.field("type");
    let embedded = schema.flag("x-kubernetes-embedded-resource");
    let preserves = schema.flag("x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        match kind {
            "" => errors.required(&at, detail),
            _ => errors.invalid(&at, kind, detail),
        }
    } else if kind.is_empty() && !schema.flag("x-kubernetes-int-or-string") && !preserves {
        errors.required(
            &at,
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        );
    }
    if embedded && schema.has("additionalProperties") {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.forbidden(&path.field("additionalProperties"), detail);
    }
    if level == Level::Root && !matches!(kind, "" | "object") {
        errors.invalid(&at, kind, "must be object at the root");
    }
    if embedded && !preserves && schema.object_or_empty("properties").is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.required(&path.field("properties"), detail);
    }
}

/// Metadata is what it is; a schema may only restrict names.
fn metadata(properties: &Map, level: Level, checked: bool, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("properties");
    for key in ["kind", "apiVersion"] {
        if let Some(property) = properties.object(key).filter(|_| checked)
            && property.text("type") != "string"
        {
            let at = path.key(key);
            errors.invalid(&at.field("type"), property.text("type"), "must be string");
        }
    }
    let Some(metadata) = properties.object("metadata") else {
        return;
    };
    let at = path.key("metadata");
    if checked && metadata.text("type") != "object" {
        errors.invalid(&at.field("type"), metadata.text("type"), "must be object");
    }
    if level != Level::Root {
        return;
    }
    let names = metadata.object_or_empty("properties");
    let only_names = names
        .iter()
        .all(|(key, _)| matches!(key.as_str(), "name" | "generateName"));
    let plain = metadata
        .iter()
        .filter(|(key, value)| !is_forgotten(key, value))
        .all(|(key, _)| matches!(key.as_str(), "type" | "default" | "properties"));
    if !only_names || !plain {
        let detail = "must not specify anything other than name and generateName, but metadata is \
                      implicitly specified";
        errors.forbidden(&at, detail);
    }
}

/// What upstream forgets on the way to a structural schema if it is there and has no entries.
const FORGOTTEN: [&str; 7] = [
    "allOf",
    "anyOf",
    "definitions",
    "dependencies",
    "enum",
    "oneOf",
    "patternProperties",
];

/// Whether upstream forgets a keyword because its list or dictionary has no entries.
pub(super) fn is_forgotten(key: &str, value: &Value) -> bool {
    FORGOTTEN.contains(&key) && has_no_entries(value)
}

fn has_no_entries(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Whether branches say nothing but that a value is an integer or a string.
fn is_int_or_string(branches: &[Value]) -> bool {
    let is = |branch: &Value, kind: &str| {
        branch.as_object().is_some_and(|branch| {
            branch.text("type") == kind
                && branch
                    .iter()
                    .all(|(key, value)| key == "type" || is_forgotten(key, value))
        })
    };
    matches!(branches, [first, second] if is(first, "integer") && is(second, "string"))
}

/// Checks what stands inside logic, and the pattern beside it.
fn logic(
    schema: &Map,
    skip_any_of: bool,
    skip_first_any_of: bool,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && skip_any_of {
            continue;
        }
        let at = path.field(key);
        for (index, branch) in maps(schema.list(key)) {
            let skip = key == "allOf" && skip_first_any_of && index == 0;
            nested(branch, skip, &at.index(index), errors);
        }
    }
    if let Some(branch) = schema.object("not") {
        nested(branch, false, &path.field("not"), errors);
    }
    let pattern = schema.text("pattern");
    if let Err(error) = Pattern::check(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.invalid(&path.field("pattern"), pattern, detail);
    }
}

/// What may not stand inside logic: whatever says what a value is.
const OUTSIDE_ONLY: [(&str, &str); 12] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-embedded-resource",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-int-or-string",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-list-map-keys",
        "must be empty to be structural",
    ),
    (
        "x-kubernetes-list-type",
        "must be undefined to be structural",
    ),
    (
        "x-kubernetes-map-type",
        "must be undefined to be structural",
    ),
];

fn nested(branch: &Map, skip_any_of: bool, path: &Path<'_>, errors: &mut Errors) {
    logic(branch, skip_any_of, false, path, errors);
    if let Some(items) = branch.object("items") {
        nested(items, false, &path.field("items"), errors);
    }
    let at = path.field("properties");
    for (name, property) in branch.object_or_empty("properties").iter() {
        if let Some(property) = property.as_object() {
            nested(property, false, &at.key(name), errors);
        }
    }
    for (key, detail) in OUTSIDE_ONLY {
        let value = branch.value(key);
        let absent = matches!(value, Value::Null | Value::Bool(false));
        let is_blank = key == "x-kubernetes-list-map-keys" && has_no_entries(value);
        if !absent && !is_blank {
            errors.forbidden(&path.field(key), detail);
        }
    }
    if !branch.list("x-kubernetes-validations").is_empty() {
        let detail = "must be empty to be structural";
        errors.forbidden(&path.field("x-kubernetes-validations"), detail);
    }
    if branch.object_or_empty("properties").has("metadata") {
        errors.forbidden(
            &at.key("metadata"),
            "must not be specified in a nested context",
        );
    }
}

/// Checks that what logic speaks of is declared outside of it.
fn complete(
    branch: &Map,
    declared: Option<&Map>,
    outside: &Path<'_>,
    inside: &Path<'_>,
    errors: &mut Errors,
) {
    if let Some(not) = branch.object("not") {
        complete_branch(not, declared, outside, &inside.field("not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let at = inside.field(key);
        for (index, branch) in maps(branch.list(key)) {
            complete_branch(branch, declared, outside, &at.index(index), errors);
        }
    }
}

fn complete_branch(
    branch: &Map,
    declared: Option<&Map>,
    outside: &Path<'_>,
    inside: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(schema) = declared else {
        let detail = format!("because it is defined in {inside}");
        errors.required(outside, &detail);
        return;
    };
    complete(branch, declared, outside, inside, errors);
    if let Some(items) = branch.object("items") {
        let (outside, inside) = (outside.field("items"), inside.field("items"));
        complete_branch(items, schema.object("items"), &outside, &inside, errors);
    }
    let (outside, inside) = (outside.field("properties"), inside.field("properties"));
    for (name, property) in branch.object_or_empty("properties").iter() {
        let property = property
            .as_object()
            .unwrap_or(crate::validation::read::empty());
        let declared = schema.object_or_empty("properties").object(name);
        let (outside, inside) = (outside.key(name), inside.key(name));
        complete_branch(property, declared, &outside, &inside, errors);
    }
}
