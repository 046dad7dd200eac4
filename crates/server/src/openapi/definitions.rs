//! The definitions of a document, as text, with what each refers to.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kinds::{Catalogue, Kind};
use object::{Map, Value, json, value};

use super::custom::{self, Source};
use super::document::Version;
use super::known::{SHARED, Sharing, UNDESCRIBED, discovery};
use super::operations::Target;

/// The extension that names the kinds of a definition.
const KINDS: &str = "x-kubernetes-group-version-kind";
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
    /// Its kind in every group, if it belongs to many.
    shared: Option<&'static str>,
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
        for (name, schema) in catalogue.published().chain(discovery()) {
            definitions.add_builtin(name, schema);
        }
        definitions
    }

    fn add_builtin(&mut self, name: String, mut schema: Value) {
        if self.version == Version::Three {
            let undescribed = UNDESCRIBED.iter().find(|(known, _)| *known == name);
            wrap_references(&mut schema, undescribed.map_or(&[], |(_, fields)| *fields));
        }
        self.add(name, schema);
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
        let shared = SHARED.iter().find(|(shared, _)| *shared == name);
        if let (Some(_), Value::Object(map)) = (shared, &mut schema) {
            map.remove(KINDS);
        }
        let definition = Definition {
            text: json::to_vec(&schema),
            shared: shared.map(|(_, kind)| *kind),
            references,
        };
        self.by_name.insert(name, Arc::new(definition));
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
    pub(super) fn closure(
        &self,
        wanted: BTreeSet<String>,
        sharing: Sharing<'_>,
    ) -> Vec<(&str, Cow<'_, [u8]>)> {
        let mut open: Vec<String> = wanted.into_iter().collect();
        let mut found: BTreeMap<&str, Cow<'_, [u8]>> = BTreeMap::new();
        while let Some(name) = open.pop() {
            let Some((name, definition)) = self.by_name.get_key_value(&name) else {
                continue;
            };
            if found.insert(name, definition.text(sharing)).is_none() {
                open.extend(definition.references.iter().cloned());
            }
        }
        found.into_iter().collect()
    }
}

impl Definition {
    fn text(&self, sharing: Sharing<'_>) -> Cow<'_, [u8]> {
        let (Some(kind), Some(open)) = (self.shared, self.text.strip_suffix(b"}")) else {
            return Cow::Borrowed(&self.text);
        };
        let kinds = sharing
            .versions()
            .map(|(group, version)| value!({"group": group, "kind": kind, "version": version}));
        let mut text = open.to_vec();
        text.push(b',');
        json::write_string(KINDS, &mut text);
        text.push(b':');
        json::write(&Value::Array(kinds.collect()), &mut text);
        text.push(b'}');
        Cow::Owned(text)
    }
}

/// Puts references that have something beside them into `allOf`; these fields have no description.
fn wrap_references(schema: &mut Value, undescribed: &[&str]) {
    let Value::Object(map) = schema else {
        return;
    };
    if let Some(Value::Object(fields)) = map.get_mut("properties") {
        for (name, field) in fields.iter_mut() {
            wrap(field, !undescribed.contains(&name.as_str()));
            wrap_references(field, &[]);
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(inner) {
            wrap(inner, false);
            wrap_references(inner, &[]);
        }
    }
}

fn wrap(schema: &mut Value, described: bool) {
    let Value::Object(map) = schema else {
        return;
    };
    if (described || map.contains_key("default"))
        && let Some(target) = map.remove("$ref")
    {
        map.insert("allOf", value!([{"$ref": target}]));
    }
}

/// The kinds that a definition is the schema of.
fn targets(schema: &Value) -> Vec<Target> {
    let kinds = schema.get(KINDS);
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
