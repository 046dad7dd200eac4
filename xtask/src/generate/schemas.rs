//! Definitions of the published schemas, one line per field.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{items, text, texts};

/// Renders `definitions.txt`.
pub(super) fn render(schemas: &Value) -> Result<String, String> {
    let mut packages: BTreeMap<&str, Vec<(&str, &Value)>> = BTreeMap::new();
    for (name, schema) in schemas.as_object().ok_or("schemas.json is not an object")? {
        let (package, short) = name
            .rsplit_once('.')
            .ok_or_else(|| format!("odd name {name}"))?;
        packages.entry(package).or_default().push((short, schema));
    }
    let keys = identity_fields(schemas);
    let mut out = String::new();
    let mut aliases = HashSet::new();
    for (package, mut definitions) in packages {
        if !aliases.insert(alias(package)) {
            return Err(format!("two packages are called {}", alias(package)));
        }
        let _ = writeln!(out, "@{}\t{package}", alias(package));
        definitions.sort_by_key(|(short, _)| *short);
        for (short, schema) in definitions {
            definition(&mut out, package, short, schema, &keys)
                .map_err(|message| format!("{package}.{short}: {message}"))?;
        }
    }
    Ok(out)
}

/// Fields that tell the items of some list apart, as definition and field.
///
/// For these a published zero default is behaviour: it completes the identity of an item.
fn identity_fields(schemas: &Value) -> HashSet<(String, String)> {
    let mut found = HashSet::new();
    for schema in schemas
        .as_object()
        .into_iter()
        .flatten()
        .map(|(_, schema)| schema)
    {
        let properties = schema.get("properties").and_then(Value::as_object);
        for property in properties
            .into_iter()
            .flatten()
            .map(|(_, property)| property)
        {
            let element = property
                .get("items")
                .map(|items| text(items, "ref"))
                .unwrap_or_default();
            for key in texts(property, "x-kubernetes-list-map-keys") {
                found.insert((element.to_string(), key.to_string()));
            }
        }
    }
    found
}

/// `core/v1.Pod` for `io.k8s.api.core.v1.Pod`.
pub(super) fn short_name(name: &str) -> String {
    let (package, short) = name.rsplit_once('.').unwrap_or(("", name));
    format!("{}.{short}", alias(package))
}

/// The last two parts of a package's name.
fn alias(package: &str) -> String {
    let mut parts: Vec<&str> = package.rsplit('.').take(2).collect();
    parts.reverse();
    parts.join("/")
}

fn definition(
    out: &mut String,
    package: &str,
    short: &str,
    schema: &Value,
    keys: &HashSet<(String, String)>,
) -> Result<(), String> {
    let _ = write!(out, "={short}");
    for kind in items(schema.get("x-kubernetes-group-version-kind")) {
        let (group, version) = (text(kind, "group"), text(kind, "version"));
        let _ = write!(out, "\tkind:{group}/{version}/{}", text(kind, "kind"));
    }
    if let Some(relationship) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
        let _ = write!(out, "\tmap:{relationship}");
    }
    for union in items(schema.get("x-kubernetes-unions")) {
        let fields: Vec<String> = union["fields-to-discriminateBy"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(field, value)| format!("{field}={}", value.as_str().unwrap_or_default()))
            .collect();
        let _ = write!(
            out,
            "\tunion:{}:{}",
            text(union, "discriminator"),
            fields.join(",")
        );
    }
    if let Some(form) = special_form(schema, package, short) {
        let _ = writeln!(out, "\tform:{form}");
        return Ok(());
    }
    if text(schema, "type") != "object" {
        return Err(format!("neither an object nor a known form: {schema}"));
    }
    let empty = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let required = texts(schema, "required");
    if !required.is_sorted() {
        let _ = write!(out, "\trequired:{}", required.join(","));
    }
    out.push('\n');
    let sorted: BTreeMap<&String, &Value> = properties.iter().collect();
    for (name, property) in sorted {
        let is_required = required.contains(&name.as_str());
        field(out, package, name, property, is_required)
            .map_err(|message| format!("{name}: {message}"))?;
        let is_key = keys.contains(&(format!("{package}.{short}"), name.clone()));
        default_and_patch(out, property, is_key);
        out.push('\n');
    }
    Ok(())
}

/// The name of the form of definitions that no struct describes.
fn special_form(schema: &Value, package: &str, short: &str) -> Option<&'static str> {
    let form = match (package.rsplit('.').next().unwrap_or_default(), short) {
        ("resource", "Quantity") => "quantity",
        ("intstr", "IntOrString") => "int-or-string",
        ("runtime", "RawExtension") => "raw-extension",
        ("v1", "Time") => "time",
        ("v1", "MicroTime") => "micro-time",
        ("v1", "FieldsV1") => "fields",
        ("v1", "JSON") => "json",
        ("v1", "JSONSchemaPropsOrArray") => "schema-or-array",
        ("v1", "JSONSchemaPropsOrBool") => "schema-or-bool",
        ("v1", "JSONSchemaPropsOrStringArray") => "schema-or-strings",
        _ => return None,
    };
    schema.get("properties").is_none().then_some(form)
}

fn field(
    out: &mut String,
    package: &str,
    name: &str,
    property: &Value,
    required: bool,
) -> Result<(), String> {
    let _ = write!(out, "\t{name}\t{}\t", shape(package, property)?);
    out.push(guess_empty(property, required));
    if required {
        out.push('!');
    }
    Ok(())
}

fn default_and_patch(out: &mut String, property: &Value, is_key: bool) {
    match property.get("default") {
        Some(default) if is_key || !is_zero(default) => {
            let printed = default
                .as_str()
                .map_or_else(|| default.to_string(), str::to_string);
            let _ = write!(out, "\t={printed}");
        }
        _ => {}
    }
    if let Some(strategy) = property
        .get("x-kubernetes-patch-strategy")
        .and_then(Value::as_str)
    {
        let key = text(property, "x-kubernetes-patch-merge-key");
        let _ = write!(out, "\tpatch:{strategy}:{key}");
    }
    // One published string carries a list type, because its Go type is a list of bytes.
    if text(property, "type") == "string" && property.get("x-kubernetes-list-type").is_some() {
        let _ = write!(out, "\tlist:{}", text(property, "x-kubernetes-list-type"));
    }
}

/// What the schema alone tells about printing an empty field.
fn guess_empty(property: &Value, required: bool) -> char {
    let container = property
        .get("items")
        .or(property.get("additionalProperties"))
        .is_some();
    if required || property.get("default").is_some_and(is_zero) {
        'P'
    } else if container {
        'D'
    } else {
        'K'
    }
}

fn is_zero(value: &Value) -> bool {
    *value == json!({}) || *value == json!("") || *value == json!(0) || *value == json!(false)
}

fn shape(package: &str, schema: &Value) -> Result<String, String> {
    let mut out = String::new();
    if let Some(target) = schema.get("ref").and_then(Value::as_str) {
        if let Some(relationship) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
            let _ = write!(out, "{relationship}:");
        }
        out.push_str(&match target.rsplit_once('.') {
            Some((home, short)) if home == package => short.to_string(),
            _ => short_name(target),
        });
    } else {
        out.push_str(&match (text(schema, "type"), text(schema, "format")) {
            ("array", "") => list(package, schema)?,
            ("object", "") => dictionary(package, schema)?,
            ("string", "") => "string".to_string(),
            ("string", "byte") => "bytes".to_string(),
            ("boolean", "") => "bool".to_string(),
            ("integer", format @ ("int32" | "int64")) => format.to_string(),
            ("number", "double") => "double".to_string(),
            (other, format) => return Err(format!("type {other:?} with format {format:?}")),
        });
    }
    if schema.get("enum").is_some() {
        let _ = write!(out, "({})", texts(schema, "enum").join("|"));
    }
    if schema.get("default").is_some_and(is_zero) {
        out.push('~');
    }
    Ok(out)
}

fn list(package: &str, schema: &Value) -> Result<String, String> {
    let element = shape(package, schema.get("items").ok_or("a list without items")?)?;
    let keys = texts(schema, "x-kubernetes-list-map-keys");
    Ok(match text(schema, "x-kubernetes-list-type") {
        "map" => format!("[{}]{element}", keys.join(",")),
        "atomic" => format!("[!]{element}"),
        "set" => format!("[=]{element}"),
        "" => format!("[]{element}"),
        other => return Err(format!("list type {other:?}")),
    })
}

fn dictionary(package: &str, schema: &Value) -> Result<String, String> {
    let values = schema
        .get("additionalProperties")
        .ok_or("an object without value type")?;
    let element = shape(package, values)?;
    Ok(match text(schema, "x-kubernetes-map-type") {
        "" => format!("{{}}{element}"),
        "atomic" => format!("{{!}}{element}"),
        "granular" => format!("{{:}}{element}"),
        other => return Err(format!("map type {other:?}")),
    })
}
