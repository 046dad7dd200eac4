//! Definitions as upstream prints them in messages: as its internal structs, which have no JSON
//! names, with every field.

use object::{Map, Value, json};

use crate::validation::read::{Read, maps};

/// How the value of a field prints.
#[derive(Clone, Copy)]
enum Kind {
    /// As it is; this text if it is absent.
    Plain(&'static str),
    /// A schema, or nothing.
    Schema,
    /// A list of schemas.
    Schemas,
    /// Schemas by name.
    Named,
    /// A schema or a list of them.
    SchemaOrList,
    /// A schema or a boolean.
    SchemaOrBool,
    /// Rules.
    Rules,
}

const NULL: Kind = Kind::Plain("null");
const FALSE: Kind = Kind::Plain("false");
const TEXT: Kind = Kind::Plain("\"\"");

/// The fields of a schema in the order of upstream's struct: name there, key here.
const FIELDS: [(&str, &str, Kind); 44] = [
    ("ID", "id", TEXT),
    ("Schema", "$schema", TEXT),
    ("Ref", "$ref", NULL),
    ("Description", "description", TEXT),
    ("Type", "type", TEXT),
    ("Nullable", "nullable", FALSE),
    ("Format", "format", TEXT),
    ("Title", "title", TEXT),
    ("Default", "default", NULL),
    ("Maximum", "maximum", NULL),
    ("ExclusiveMaximum", "exclusiveMaximum", FALSE),
    ("Minimum", "minimum", NULL),
    ("ExclusiveMinimum", "exclusiveMinimum", FALSE),
    ("MaxLength", "maxLength", NULL),
    ("MinLength", "minLength", NULL),
    ("Pattern", "pattern", TEXT),
    ("MaxItems", "maxItems", NULL),
    ("MinItems", "minItems", NULL),
    ("UniqueItems", "uniqueItems", FALSE),
    ("MultipleOf", "multipleOf", NULL),
    ("Enum", "enum", NULL),
    ("MaxProperties", "maxProperties", NULL),
    ("MinProperties", "minProperties", NULL),
    ("Required", "required", NULL),
    ("Items", "items", Kind::SchemaOrList),
    ("AllOf", "allOf", Kind::Schemas),
    ("OneOf", "oneOf", Kind::Schemas),
    ("AnyOf", "anyOf", Kind::Schemas),
    ("Not", "not", Kind::Schema),
    ("Properties", "properties", Kind::Named),
    (
        "AdditionalProperties",
        "additionalProperties",
        Kind::SchemaOrBool,
    ),
    ("PatternProperties", "patternProperties", Kind::Named),
    ("Dependencies", "dependencies", NULL),
    ("AdditionalItems", "additionalItems", Kind::SchemaOrBool),
    ("Definitions", "definitions", Kind::Named),
    ("ExternalDocs", "externalDocs", NULL),
    ("Example", "example", NULL),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        NULL,
    ),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", FALSE),
    ("XIntOrString", "x-kubernetes-int-or-string", FALSE),
    ("XListMapKeys", "x-kubernetes-list-map-keys", NULL),
    ("XListType", "x-kubernetes-list-type", NULL),
    ("XMapType", "x-kubernetes-map-type", NULL),
    ("XValidations", "x-kubernetes-validations", Kind::Rules),
];

/// The names of a schema's fields in upstream's struct with their keys, in its order.
pub(super) fn schema_fields() -> impl Iterator<Item = (&'static str, &'static str)> {
    FIELDS.iter().map(|(name, key, _)| (*name, *key))
}

/// A schema.
pub(super) fn schema(schema: &Map) -> String {
    let mut out = String::new();
    write_schema(schema, &mut out);
    out
}

/// The items of a schema.
pub(super) fn items(items: &Value) -> String {
    let mut out = String::new();
    write(Some(items), Kind::SchemaOrList, &mut out);
    out
}

/// The versions of a definition.
pub(super) fn versions(list: &Value) -> String {
    let mut out = String::from("[");
    let list = list.as_array().unwrap_or_default();
    for (index, version) in maps(list) {
        if index > 0 {
            out.push(',');
        }
        write_version(version, &mut out);
    }
    out.push(']');
    out
}

fn write_version(version: &Map, out: &mut String) {
    out.push_str("{\"Name\":");
    plain(version.get("name"), "\"\"", out);
    for (name, key, absent) in [
        ("Served", "served", "false"),
        ("Storage", "storage", "false"),
        ("Deprecated", "deprecated", "false"),
        ("DeprecationWarning", "deprecationWarning", "null"),
    ] {
        label(name, out);
        plain(version.get(key), absent, out);
    }
    label("Schema", out);
    match version.object("schema") {
        None => out.push_str("null"),
        Some(parent) => {
            out.push_str("{\"OpenAPIV3Schema\":");
            write(parent.get("openAPIV3Schema"), Kind::Schema, out);
            out.push('}');
        }
    }
    label("Subresources", out);
    write_subresources(version.object("subresources"), out);
    for (name, key, fields) in [
        (
            "AdditionalPrinterColumns",
            "additionalPrinterColumns",
            &COLUMN[..],
        ),
        ("SelectableFields", "selectableFields", &SELECTABLE[..]),
    ] {
        label(name, out);
        match version.get(key).and_then(Value::as_array) {
            None => out.push_str("null"),
            Some(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    write_record(item, fields, out);
                }
                out.push(']');
            }
        }
    }
    out.push('}');
}

/// A field of a Go struct: its name, its key in JSON, and what it prints when it is absent.
type Printed = (&'static str, &'static str, &'static str);

const COLUMN: [Printed; 6] = [
    ("Name", "name", "\"\""),
    ("Type", "type", "\"\""),
    ("Format", "format", "\"\""),
    ("Description", "description", "\"\""),
    ("Priority", "priority", "0"),
    ("JSONPath", "jsonPath", "\"\""),
];
const SELECTABLE: [Printed; 1] = [("JSONPath", "jsonPath", "\"\"")];
const SCALE: [Printed; 3] = [
    ("SpecReplicasPath", "specReplicasPath", "\"\""),
    ("StatusReplicasPath", "statusReplicasPath", "\"\""),
    ("LabelSelectorPath", "labelSelectorPath", "null"),
];

fn write_subresources(nested: Option<&Map>, out: &mut String) {
    let Some(nested) = nested else {
        out.push_str("null");
        return;
    };
    out.push_str("{\"Status\":");
    out.push_str(if nested.object("status").is_some() {
        "{}"
    } else {
        "null"
    });
    label("Scale", out);
    match nested.get("scale") {
        Some(scale @ Value::Object(_)) => write_record(scale, &SCALE, out),
        _ => out.push_str("null"),
    }
    out.push('}');
}

fn write_record(item: &Value, fields: &[Printed], out: &mut String) {
    out.push('{');
    for (place, (name, key, absent)) in fields.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        plain(item.get(key), absent, out);
    }
    out.push('}');
}

fn label(name: &str, out: &mut String) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
}

fn write_schema(schema: &Map, out: &mut String) {
    out.push('{');
    for (place, (name, key, kind)) in FIELDS.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        write(schema.get(key), *kind, out);
    }
    out.push('}');
}

fn write(value: Option<&Value>, kind: Kind, out: &mut String) {
    match (kind, value) {
        (Kind::Plain(absent), value) => plain(value, absent, out),
        (Kind::Schema, Some(Value::Object(schema))) => write_schema(schema, out),
        (Kind::Schemas, Some(Value::Array(list))) => write_list(list, out),
        (Kind::Named, Some(Value::Object(named))) => {
            out.push('{');
            for (place, (name, schema)) in named.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                plain(Some(&Value::String(name.clone())), "", out);
                out.push(':');
                write(Some(schema), Kind::Schema, out);
            }
            out.push('}');
        }
        (Kind::SchemaOrList, Some(Value::Object(schema))) => {
            out.push_str("{\"Schema\":");
            write_schema(schema, out);
            out.push_str(",\"JSONSchemas\":null}");
        }
        (Kind::SchemaOrList, Some(Value::Array(list))) => {
            out.push_str("{\"Schema\":null,\"JSONSchemas\":");
            write_list(list, out);
            out.push('}');
        }
        (Kind::SchemaOrBool, Some(Value::Object(schema))) => {
            out.push_str("{\"Allows\":true,\"Schema\":");
            write_schema(schema, out);
            out.push('}');
        }
        (Kind::SchemaOrBool, Some(Value::Bool(allows))) => {
            out.push_str(&format!("{{\"Allows\":{allows},\"Schema\":null}}"));
        }
        (Kind::Rules, Some(Value::Array(rules))) => {
            out.push('[');
            for (index, rule) in maps(rules) {
                if index > 0 {
                    out.push(',');
                }
                write_rule(rule, out);
            }
            out.push(']');
        }
        _ => out.push_str("null"),
    }
}

fn write_list(list: &[Value], out: &mut String) {
    out.push('[');
    for (index, schema) in maps(list) {
        if index > 0 {
            out.push(',');
        }
        write_schema(schema, out);
    }
    out.push(']');
}

fn write_rule(rule: &Map, out: &mut String) {
    out.push_str("{\"Rule\":");
    plain(rule.get("rule"), "\"\"", out);
    for (name, key, absent) in [
        ("Message", "message", "\"\""),
        ("MessageExpression", "messageExpression", "\"\""),
        ("Reason", "reason", "null"),
        ("FieldPath", "fieldPath", "\"\""),
        ("OptionalOldSelf", "optionalOldSelf", "null"),
    ] {
        label(name, out);
        plain(rule.get(key), absent, out);
    }
    out.push('}');
}

fn plain(value: Option<&Value>, absent: &str, out: &mut String) {
    match value {
        None | Some(Value::Null) => out.push_str(absent),
        Some(value) => out.push_str(&String::from_utf8_lossy(&json::to_vec(value))),
    }
}
