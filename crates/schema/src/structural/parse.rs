//! From the JSON of an `openAPIV3Schema` to its nodes.
//!
//! Lenient: what is not of the expected type is taken as absent, because the definition was read as
//! its own kind and checked before.

use object::{Map, Text, Value};

use super::{
    Additional, Checks, ListMarker, MapMarker, Pattern, Properties, SCHEMA_DEPTH_MAX, Structural,
    Validation, ValueType,
};

impl Structural {
    /// Reads a schema. What is nested deeper than [`SCHEMA_DEPTH_MAX`] takes any value.
    pub fn parse(schema: &Map) -> Structural {
        parse(schema, 0)
    }
}

fn parse(schema: &Map, depth: usize) -> Structural {
    if depth > SCHEMA_DEPTH_MAX {
        return Structural {
            preserve_unknown: true,
            ..Structural::default()
        };
    }
    let below = |value: &Value| match value {
        Value::Object(schema) => Some(Box::new(parse(schema, depth + 1))),
        _ => None,
    };
    let fields = schema.get("properties").and_then(Value::as_object);
    let properties = fields.into_iter().flat_map(Map::iter).map(|(name, value)| {
        let schema = below(value).map_or_else(Structural::default, |schema| *schema);
        (name.clone(), schema)
    });
    let additional = schema.get("additionalProperties");
    Structural {
        value_type: text(schema, "type").and_then(ValueType::from_name),
        nullable: flag(schema, "nullable"),
        default: schema.get("default").cloned().map(Box::new),
        items: schema.get("items").and_then(below),
        properties: Properties::new(properties.collect()),
        additional: additional.and_then(|value| match value {
            Value::Bool(allowed) => Some(Additional::Allowed(*allowed)),
            value => below(value).map(Additional::Schema),
        }),
        preserve_unknown: flag(schema, "x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag(schema, "x-kubernetes-embedded-resource"),
        int_or_string: flag(schema, "x-kubernetes-int-or-string"),
        list_type: text(schema, "x-kubernetes-list-type").and_then(list_marker),
        list_map_keys: texts(schema, "x-kubernetes-list-map-keys"),
        map_type: text(schema, "x-kubernetes-map-type").and_then(map_marker),
        validations: validations(schema),
        checks: checks(schema, depth),
    }
}

fn checks(schema: &Map, depth: usize) -> Option<Box<Checks>> {
    const KEYS: [&str; 20] = [
        "allOf",
        "anyOf",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "required",
        "uniqueItems",
    ];
    if !KEYS.iter().any(|key| schema.contains_key(key)) {
        return None;
    }
    let float = |key: &str| schema.get(key).and_then(Value::as_float);
    let int = |key: &str| schema.get(key).and_then(Value::as_int);
    let branches = |key: &str| -> Vec<Structural> {
        let list = schema.get(key).and_then(Value::as_array);
        let maps = list.unwrap_or_default().iter().filter_map(Value::as_object);
        maps.map(|branch| parse(branch, depth + 1)).collect()
    };
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    Some(Box::new(Checks {
        format: text(schema, "format").unwrap_or_default().into(),
        maximum: float("maximum"),
        exclusive_maximum: flag(schema, "exclusiveMaximum"),
        minimum: float("minimum"),
        exclusive_minimum: flag(schema, "exclusiveMinimum"),
        multiple_of: float("multipleOf"),
        max_length: int("maxLength"),
        min_length: int("minLength"),
        pattern: text(schema, "pattern")
            .filter(|pattern| !pattern.is_empty())
            .map(Pattern::new),
        max_items: int("maxItems"),
        min_items: int("minItems"),
        unique_items: flag(schema, "uniqueItems"),
        max_properties: int("maxProperties"),
        min_properties: int("minProperties"),
        one_of_values: list("enum").unwrap_or_default().to_vec(),
        required: texts(schema, "required"),
        all_of: branches("allOf"),
        any_of: branches("anyOf"),
        one_of: branches("oneOf"),
        not: schema
            .get("not")
            .and_then(Value::as_object)
            .map(|schema| Box::new(parse(schema, depth + 1))),
    }))
}

fn validations(schema: &Map) -> Vec<Validation> {
    let list = schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array);
    let maps = list.unwrap_or_default().iter().filter_map(Value::as_object);
    maps.map(|rule| {
        let text = |key: &str| Text::from(text(rule, key).unwrap_or_default());
        Validation {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: rule.get("reason").and_then(Value::as_str).map(Text::from),
            field_path: text("fieldPath"),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
        }
    })
    .collect()
}

fn text<'a>(schema: &'a Map, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}

fn texts(schema: &Map, key: &str) -> Vec<Text> {
    let list = schema.get(key).and_then(Value::as_array);
    let texts = list.unwrap_or_default().iter().filter_map(Value::as_str);
    texts.map(Text::from).collect()
}

fn flag(schema: &Map, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn list_marker(name: &str) -> Option<ListMarker> {
    match name {
        "atomic" => Some(ListMarker::Atomic),
        "set" => Some(ListMarker::Set),
        "map" => Some(ListMarker::Map),
        _ => None,
    }
}

fn map_marker(name: &str) -> Option<MapMarker> {
    match name {
        "granular" => Some(MapMarker::Granular),
        "atomic" => Some(MapMarker::Atomic),
        _ => None,
    }
}
