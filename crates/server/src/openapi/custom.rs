//! The definitions of custom kinds, from the schemas that their authors wrote.
//!
//! The whole text of a schema, with its descriptions, is nowhere but in the stored definition: it
//! is read when a document is made. Contract: `apiextensions-apiserver/pkg/controller/openapi`.

use kinds::{Catalogue, Kind};
use object::{Map, Value, value};
use resources::Resources;
use resources::record::Stored;

use super::document::Version;

const META: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1";
const SCHEMAS: &str = "#/components/schemas/";

/// Where the schemas of custom kinds come from.
pub(super) struct Source {
    pub(super) resources: Resources,
    pub(super) runtime: tokio::runtime::Handle,
}

impl Source {
    /// The schema of a custom kind as its author wrote it. Must not be called by an async task.
    pub(super) fn schema(&self, kind: &Kind) -> Option<Map> {
        let custom = kind.custom.as_ref()?;
        let definitions = Catalogue::builtin().resource(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
        )?;
        let read = self
            .resources
            .get(definitions, "", &custom.definition, None);
        let record = self.runtime.block_on(read).ok()?;
        let definition = Stored::new(&record.value).ok()?.tree(None).ok()?;
        let versions = definition.get("spec")?.get("versions")?.as_array()?;
        let mut versions = versions.iter();
        let version = versions.find(|it| it.str_at(&["name"]) == Some(&kind.version))?;
        let schema = version.get("schema")?.get("openAPIV3Schema")?;
        schema.as_object().cloned()
    }
}

/// What documents call a custom kind: `com.example.v1.Widget`.
pub(super) fn name(group: &str, version: &str, kind: &str) -> String {
    let parts: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", parts.join("."))
}

/// The definitions of a custom kind and of its list, as they stand in a document of version 3
/// except that what version 2 cannot say is left out for it.
pub(super) fn definitions(kind: &Kind, schema: Map, version: Version) -> [(String, Value); 2] {
    let mut object = schema;
    if version == Version::Two {
        simplify(&mut object);
    }
    embed(&mut object, version);
    add_type(&mut object, "ObjectMeta");
    mark(kind, &kind.kind, &mut object);
    let own = name(&kind.group, &kind.version, &kind.kind);
    let mut list = Map::new();
    let text = format!("{} is a list of {}", kind.list_kind, kind.kind);
    list.insert("description", text.into());
    list.insert("type", "object".into());
    list.insert("required", value!(["items"]));
    let item = format!("{SCHEMAS}{own}");
    let items = value!({"items": {"type": "array", "items": {"$ref": item}}});
    list.insert("properties", items);
    add_type(&mut list, "ListMeta");
    mark(kind, &kind.list_kind, &mut list);
    let list_name = name(&kind.group, &kind.version, &kind.list_kind);
    [(own, object.into()), (list_name, list.into())]
}

/// Declares what every object has.
fn add_type(schema: &mut Map, metadata: &str) {
    let properties = schema.object_at("properties");
    properties.insert("apiVersion", value!({"type": "string"}));
    properties.insert("kind", value!({"type": "string"}));
    let reference = format!("{META}.{metadata}");
    properties.insert("metadata", value!({"allOf": [{"$ref": reference}]}));
}

fn mark(kind: &Kind, name: &str, schema: &mut Map) {
    schema.insert(
        "x-kubernetes-group-version-kind",
        value!([{
            "group": (kind.group.as_str()),
            "version": (kind.version.as_str()),
            "kind": name,
        }]),
    );
    let custom = kind.custom.as_ref();
    let fields = custom.into_iter().flat_map(|custom| custom.selectable());
    let fields: Vec<Value> = fields.map(|path| value!({"fieldPath": path})).collect();
    if !fields.is_empty() {
        schema.insert("x-kubernetes-selectable-fields", fields.into());
    }
}

/// Declares what the objects inside an object have.
fn embed(schema: &mut Map, version: Version) {
    each_below(schema, |below| embed(below, version));
    let embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    // A field that takes anything has no properties in version 2.
    if embedded && !(version == Version::Two && is_preserving(schema)) {
        add_type(schema, "ObjectMeta");
        schema.insert("required", value!(["kind", "apiVersion"]));
    }
}

/// Leaves out what clients of version 2 cannot read: choices between schemas, and the shape of
/// what may be null or anything.
fn simplify(schema: &mut Map) {
    each_below(schema, simplify);
    for junctor in ["allOf", "anyOf", "oneOf", "not", "default"] {
        schema.remove(junctor);
    }
    let nullable_below = nullable_properties(schema);
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| {
            let name = name.as_str().unwrap_or_default();
            !nullable_below.iter().any(|nullable| nullable == name)
        });
        if required.is_empty() {
            schema.remove("required");
        }
    }
    let nullable = schema.get("nullable") == Some(&Value::Bool(true));
    if nullable || is_preserving(schema) {
        schema.remove("items");
        schema.remove("properties");
    }
    let bare_list = schema.get("items").is_none();
    let untyped = match schema.get("type").and_then(Value::as_str) {
        Some("array") => bare_list,
        Some("object") => is_preserving(schema),
        _ => false,
    };
    // The mark of its own stays until its parent has looked at it.
    if nullable || untyped {
        schema.remove("type");
    }
}

fn nullable_properties(schema: &mut Map) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            if let Some(property) = property.as_object_mut()
                && property.remove("nullable") == Some(Value::Bool(true))
            {
                found.push(name.to_string());
            }
        }
    }
    found
}

fn is_preserving(schema: &Map) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
}

/// Visits the schemas of fields, values and items.
fn each_below(schema: &mut Map, mut visit: impl FnMut(&mut Map)) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (_, property) in properties.iter_mut() {
            property.as_object_mut().into_iter().for_each(&mut visit);
        }
    }
    for place in ["items", "additionalProperties"] {
        if let Some(Value::Object(below)) = schema.get_mut(place) {
            visit(below);
        }
    }
}
