//! Definitions of the published schemas, one line per field.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use serde_json::{Value, json};

use super::go::{GoField, Structs};
use super::{items, text, texts, unpublished};

/// Renders `definitions.txt`.
pub(super) fn render(schemas: &Value, structs: &Structs) -> Result<String, String> {
    let unpublished = unpublished::definitions();
    let mut packages: BTreeMap<&str, Vec<(&str, &Value)>> = BTreeMap::new();
    for (name, schema) in members(schemas).chain(members(&unpublished)) {
        let (package, short) = split_name(name);
        packages.entry(package).or_default().push((short, schema));
    }
    let mut renderer = Renderer {
        out: String::new(),
        keys: identity_fields(schemas),
        structs,
    };
    let mut aliases = HashSet::new();
    for (package, mut definitions) in packages {
        if !aliases.insert(alias(package)) {
            return Err(format!("two packages are called {}", alias(package)));
        }
        let _ = writeln!(renderer.out, "@{}\t{package}", alias(package));
        definitions.sort_by_key(|(short, _)| *short);
        for (short, schema) in definitions {
            renderer
                .definition(package, short, schema)
                .map_err(|message| format!("{package}.{short}: {message}"))?;
        }
    }
    Ok(renderer.out)
}

/// `core/v1.Pod` for `io.k8s.api.core.v1.Pod`.
pub(super) fn short_name(name: &str) -> String {
    let (package, short) = split_name(name);
    format!("{}.{short}", alias(package))
}

/// Fields that tell the items of some list apart, as definition and field.
///
/// For these a published zero default is behaviour: it completes the identity of an item.
fn identity_fields(schemas: &Value) -> HashSet<(String, String)> {
    let mut found = HashSet::new();
    for (_, schema) in members(schemas) {
        for (_, property) in schema.get("properties").into_iter().flat_map(members) {
            let element = property.get("items").map(|items| text(items, "ref"));
            for key in texts(property, "x-kubernetes-list-map-keys") {
                found.insert((element.unwrap_or_default().to_string(), key.to_string()));
            }
        }
    }
    found
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn split_name(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or(("", name))
}

/// The last two parts of a package's name.
fn alias(package: &str) -> String {
    let mut parts: Vec<&str> = package.rsplit('.').take(2).collect();
    parts.reverse();
    parts.join("/")
}

struct Renderer<'a> {
    out: String,
    keys: HashSet<(String, String)>,
    structs: &'a Structs,
}

impl Renderer<'_> {
    fn definition(&mut self, package: &str, short: &str, schema: &Value) -> Result<(), String> {
        let _ = write!(self.out, "={short}");
        self.definition_facts(schema);
        if let Some(form) = special_form(schema, package, short) {
            let _ = writeln!(self.out, "\tform:{form}");
            return Ok(());
        }
        if text(schema, "type") != "object" {
            return Err(format!("neither an object nor a known form: {schema}"));
        }
        let required = texts(schema, "required");
        if !required.is_sorted() {
            let _ = write!(self.out, "\trequired:{}", required.join(","));
        }
        self.out.push('\n');
        let properties: BTreeMap<&String, &Value> = schema
            .get("properties")
            .into_iter()
            .flat_map(members)
            .collect();
        if properties.is_empty() {
            return Ok(());
        }
        let fields = self
            .structs
            .fields(package, short)
            .ok_or("no Go struct of this name, or one that it embeds is missing")?;
        for (name, property) in properties {
            let go = fields
                .get(name)
                .ok_or_else(|| format!("Go has no field {name}"))?;
            let _ = write!(self.out, "\t{name}\t{}\t", shape(package, property)?);
            self.field_facts(package, property, go);
            if required.contains(&name.as_str()) {
                self.out.push('!');
            }
            let key = (format!("{package}.{short}"), name.clone());
            self.default_and_patch(property, self.keys.contains(&key));
            self.out.push('\n');
        }
        Ok(())
    }

    fn definition_facts(&mut self, schema: &Value) {
        for kind in items(schema.get("x-kubernetes-group-version-kind")) {
            let (group, version) = (text(kind, "group"), text(kind, "version"));
            let _ = write!(self.out, "\tkind:{group}/{version}/{}", text(kind, "kind"));
        }
        if let Some(relationship) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
            let _ = write!(self.out, "\tmap:{relationship}");
        }
        for union in items(schema.get("x-kubernetes-unions")) {
            let fields: Vec<String> = members(&union["fields-to-discriminateBy"])
                .map(|(field, value)| format!("{field}={}", value.as_str().unwrap_or_default()))
                .collect();
            let discriminator = text(union, "discriminator");
            let _ = write!(self.out, "\tunion:{discriminator}:{}", fields.join(","));
        }
        if schema.get("unpublished").is_some() {
            self.out.push_str("\tunpublished");
        }
    }

    fn field_facts(&mut self, package: &str, property: &Value, go: &GoField) {
        if go.tag != 0 {
            let _ = write!(self.out, "{}", go.tag);
        }
        self.out.push(empty(property, go));
        // A list whose Go type has a name of its own may be a message around the list.
        let name = go.type_name.as_deref().unwrap_or_default();
        if property.get("items").is_some() && self.structs.is_message(package, name) {
            self.out.push('w');
        }
    }

    fn default_and_patch(&mut self, property: &Value, is_key: bool) {
        match property.get("default") {
            Some(default) if is_key || !is_zero(default) => {
                let plain = default.as_str().map(str::to_string);
                let _ = write!(
                    self.out,
                    "\t={}",
                    plain.unwrap_or_else(|| default.to_string())
                );
            }
            _ => {}
        }
        let strategy = text(property, "x-kubernetes-patch-strategy");
        if !strategy.is_empty() {
            let key = text(property, "x-kubernetes-patch-merge-key");
            let _ = write!(self.out, "\tpatch:{strategy}:{key}");
        }
        // One published string carries a list type, because its Go type is a list of bytes.
        let list_type = text(property, "x-kubernetes-list-type");
        if text(property, "type") == "string" && !list_type.is_empty() {
            let _ = write!(self.out, "\tlist:{list_type}");
        }
    }
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

/// How Go prints the field when it holds nothing: `K`eep, `D`rop, `P`rint or `N`ull.
///
/// `omitempty` leaves out empty scalars, lists and maps but never a struct; only `omitzero` does.
fn empty(property: &Value, go: &GoField) -> char {
    let is_struct = property.get("ref").is_some();
    match (go.pointer, go.omit_empty || go.omit_zero) {
        (true, true) => 'K',
        (true, false) => 'N',
        (false, true) if go.omit_zero || !is_struct => 'D',
        (false, _) => 'P',
    }
}

fn is_zero(value: &Value) -> bool {
    [json!({}), json!(""), json!(0), json!(false)].contains(value)
}

fn shape(package: &str, schema: &Value) -> Result<String, String> {
    let mut out = String::new();
    if let Some(target) = schema.get("ref").and_then(Value::as_str) {
        if let Some(relationship) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
            let _ = write!(out, "{relationship}:");
        }
        let (home, short) = split_name(target);
        out.push_str(&if home == package {
            short.to_string()
        } else {
            short_name(target)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_is_a_schema_written_as_a_shape() {
        let cases = [
            (json!({"type": "string"}), "string"),
            (json!({"type": "string", "format": "byte"}), "bytes"),
            (
                json!({"type": "integer", "format": "int32", "default": 0}),
                "int32~",
            ),
            (
                json!({"type": "string", "enum": ["A", "B"], "default": ""}),
                "string(A|B)~",
            ),
            (
                json!({"ref": "io.k8s.api.core.v1.Pod", "default": {}}),
                "Pod~",
            ),
            (json!({"ref": "io.k8s.api.apps.v1.Scale"}), "apps/v1.Scale"),
            (
                json!({"ref": "io.k8s.api.core.v1.Pod", "x-kubernetes-map-type": "granular"}),
                "granular:Pod",
            ),
            (
                json!({
                    "type": "array",
                    "items": {"ref": "io.k8s.api.core.v1.Pod"},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["a", "b"],
                }),
                "[a,b]Pod",
            ),
            (
                json!({"type": "array", "items": {"type": "boolean"}}),
                "[]bool",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                "{}string",
            ),
        ];
        for (schema, expected) in cases {
            let written = shape("io.k8s.api.core.v1", &schema);
            assert_eq!(written.as_deref(), Ok(expected), "{schema}");
        }
        let odd = shape("io.k8s.api.core.v1", &json!({"type": "number"}));
        assert!(odd.is_err());
    }

    #[test]
    fn how_does_go_print_an_empty_field() {
        let value = json!({"type": "string"});
        let list = json!({"type": "array", "items": {"type": "string"}});
        let reference = json!({"ref": "io.k8s.api.core.v1.Pod"});
        let cases = [
            (&value, (true, true, false), 'K'),
            (&value, (true, false, false), 'N'),
            (&value, (false, true, false), 'D'),
            (&value, (false, false, false), 'P'),
            (&list, (false, true, false), 'D'),
            (&reference, (false, true, false), 'P'),
            (&reference, (false, true, true), 'D'),
        ];
        for (property, (pointer, omit_empty, omit_zero), expected) in cases {
            let go = GoField {
                pointer,
                omit_empty,
                omit_zero,
                type_name: None,
                tag: 1,
            };
            assert_eq!(empty(property, &go), expected, "{property} {go:?}");
        }
    }
}
