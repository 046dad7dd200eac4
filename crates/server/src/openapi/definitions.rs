//! The definitions of a document, as text, with what each refers to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kinds::{Catalogue, Kind};
use object::{Map, Value, json};

use super::custom::{self, Source};
use super::document::Version;
use super::operations::Target;

const SCHEMAS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/definitions/";

/// Every definition that is published, in the form of one version of OpenAPI.
#[derive(Clone)]
pub(super) struct Definitions {
    version: Version,
    by_name: BTreeMap<String, Arc<Definition>>,
    by_kind: HashMap<Target, String>,
}

struct Definition {
    text: Vec<u8>,
    /// The definitions that it refers to.
    references: Vec<String>,
}

impl Definitions {
    pub(super) fn new(catalogue: &Catalogue, version: Version) -> Definitions {
        let mut definitions = Definitions {
            version,
            by_name: BTreeMap::new(),
            by_kind: HashMap::new(),
        };
        for (name, schema) in catalogue.published() {
            definitions.add(name, schema);
        }
        definitions
    }

    /// Adds a definition, given as it stands in a document of version 3.
    pub(super) fn add(&mut self, name: String, mut schema: Value) {
        for target in targets(&schema) {
            self.by_kind.entry(target).or_insert_with(|| name.clone());
        }
        let mut references = Vec::new();
        collect(&schema, &mut references);
        if self.version == Version::Two {
            to_version2(&mut schema);
        }
        let text = json::to_vec(&schema);
        let definition = Arc::new(Definition { text, references });
        self.by_name.insert(name, definition);
    }

    /// These definitions and those of custom kinds.
    pub(super) fn with_custom<'k>(
        &self,
        kinds: impl Iterator<Item = &'k Arc<Kind>>,
        source: &Source,
    ) -> Definitions {
        let mut all = self.clone();
        for kind in kinds {
            let schema = source.schema(kind).unwrap_or_default();
            for (name, schema) in custom::definitions(kind, schema, self.version) {
                all.add(name, schema);
            }
        }
        all
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// The definition of a kind.
    pub(super) fn of_kind(&self, target: &Target) -> Option<&str> {
        self.by_kind.get(target).map(String::as_str)
    }

    /// How a document refers to a definition.
    pub(super) fn reference(&self, name: &str) -> Value {
        let prefix = match self.version {
            Version::Two => DEFINITIONS,
            Version::Three => SCHEMAS,
        };
        let target = Value::from(format!("{prefix}{name}"));
        Value::Object(Map::from_entries(vec![("$ref".into(), target)]))
    }

    /// These definitions and all that they refer to, with their texts, in order.
    pub(super) fn closure(&self, wanted: BTreeSet<String>) -> Vec<(&str, &[u8])> {
        let mut open: Vec<String> = wanted.into_iter().collect();
        let mut found: BTreeMap<&str, &[u8]> = BTreeMap::new();
        while let Some(name) = open.pop() {
            let Some((name, definition)) = self.by_name.get_key_value(&name) else {
                continue;
            };
            if found.insert(name, &definition.text).is_none() {
                open.extend(definition.references.iter().cloned());
            }
        }
        found.into_iter().collect()
    }
}

/// The kinds that a definition is the schema of.
fn targets(schema: &Value) -> Vec<Target> {
    let kinds = schema.get("x-kubernetes-group-version-kind");
    let kinds = kinds.and_then(Value::as_array).unwrap_or_default();
    let text = |kind: &Value, name| kind.str_at(&[name]).unwrap_or_default().to_owned();
    kinds
        .iter()
        .map(|kind| Target {
            group: text(kind, "group"),
            version: text(kind, "version"),
            kind: text(kind, "kind"),
        })
        .collect()
}

fn collect(schema: &Value, references: &mut Vec<String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        Value::Object(map) => {
            for (key, value) in map.iter() {
                match (key.as_str(), value.as_str()) {
                    ("$ref", Some(target)) => {
                        references.extend(target.strip_prefix(SCHEMAS).map(str::to_owned));
                    }
                    _ => collect(value, references),
                }
            }
        }
        _ => {}
    }
}

/// Leaves out what version 2 does not have: defaults, choices between schemas, and anything
/// beside a reference but extensions.
fn to_version2(schema: &mut Value) {
    let Value::Object(map) = schema else {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(to_version2);
        }
        return;
    };
    map.remove("default");
    if map.remove("oneOf").is_some() {
        map.insert("type", "string".into());
    }
    if let Some(Value::Array(parts)) = map.remove("allOf") {
        for (key, value) in parts.into_iter().filter_map(into_map).flatten() {
            map.insert(key, value);
        }
    }
    for (key, value) in map.iter_mut() {
        match key.as_str() {
            "$ref" => {
                let target = value.as_str().unwrap_or_default();
                let name = target.strip_prefix(SCHEMAS).unwrap_or(target);
                *value = format!("{DEFINITIONS}{name}").into();
            }
            // The names of fields are no keywords.
            "properties" => {
                for (_, field) in value.as_object_mut().into_iter().flat_map(Map::iter_mut) {
                    to_version2(field);
                }
            }
            _ => to_version2(value),
        }
    }
}

fn into_map(value: Value) -> Option<Map> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}
