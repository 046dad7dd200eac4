//! What the schema of a version may say.

use object::field::{FieldError, Path};
use object::{Map, Value};
use schema::structural::{SCHEMA_DEPTH_MAX, Structural};

use super::{defaults, expressions, go_print, lists, structural};
use crate::validation::check::{Errors, Report};
use crate::validation::print;
use crate::validation::read::{Read, maps};

/// The only types there are.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What may stand at the root beside a status that is checked alone.
const AT_ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// What is asked of schemas. On an update nothing is asked that the stored definition does not
/// meet, so that rules can be tightened without locking people out.
pub(super) struct Demands<'a> {
    /// Every version has a schema.
    pub(super) schemas: bool,
    /// Only known types are named.
    types: bool,
    /// Schemas are structural.
    structural: bool,
    /// Defaults hold nothing that would be dropped.
    pruned_defaults: bool,
    /// The items of sets are scalars or atomic.
    pub(super) atomic_sets: bool,
    /// The keys of list maps are always there.
    pub(super) list_keys: bool,
    /// The stored definition, if it is an update.
    old: Option<&'a Map>,
}

impl<'a> Demands<'a> {
    /// What is asked of a definition's spec, given the stored definition if it is an update.
    pub(super) fn of(spec: &Map, old: Option<&'a Map>) -> Demands<'a> {
        let stored = old.map(|old| old.object_or_empty("spec"));
        let met = |fails: fn(&Map) -> bool| {
            !stored.is_some_and(|spec| schemas(spec).any(|schema| anywhere(schema, fails)))
        };
        let root_met =
            |fails: fn(&Map) -> bool| !stored.is_some_and(|spec| schemas(spec).any(fails));
        let versions = stored.map_or(0, |spec| spec.list("versions").len());
        Demands {
            schemas: stored.is_none_or(|spec| schemas(spec).count() == versions),
            types: met(has_unknown_type),
            structural: !spec.flag("preserveUnknownFields") || root_met(is_not_structural),
            pruned_defaults: root_met(defaults::has_unpruned),
            atomic_sets: met(|schema| {
                schema.text("x-kubernetes-list-type") == "set"
                    && schema.object("items").is_some_and(lists::has_parts)
            }),
            list_keys: met(|schema| {
                let mut errors = Errors::new();
                lists::keys_are_there(schema, &Path::root(), &mut errors);
                !errors.is_empty()
            }),
            old,
        }
    }

    /// The version of this name in the stored definition.
    pub(super) fn old_version(&self, name: &str) -> Option<&'a Map> {
        let versions = self.old?.object_or_empty("spec").list("versions");
        maps(versions)
            .find(|(_, version)| version.text("name") == name)
            .map(|(_, version)| version)
    }
}

fn has_unknown_type(schema: &Map) -> bool {
    !schema.text("type").is_empty() && !TYPES.contains(&schema.text("type"))
}

fn is_not_structural(schema: &Map) -> bool {
    structural::unsupported(schema).is_some()
        || !structural::violations(schema, &Path::root()).is_empty()
}

/// The schemas of all versions that have one.
fn schemas(spec: &Map) -> impl Iterator<Item = &Map> {
    maps(spec.list("versions"))
        .filter_map(|(_, version)| version.object_or_empty("schema").object("openAPIV3Schema"))
}

/// Whether a schema or one inside it is of some sort.
fn anywhere(schema: &Map, is: fn(&Map) -> bool) -> bool {
    is(schema) || structural::below(schema).any(|below| anywhere(below, is))
}

/// Whether a schema of the spec has a default.
pub(super) fn has_defaults(spec: &Map) -> bool {
    schemas(spec).any(|schema| anywhere(schema, |schema| schema.has("default")))
}

/// Checks the schema of a version; the path is that of its wrapper.
pub(super) fn validation(
    version: &Map,
    status: bool,
    demands: &Demands<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let parent = version.object_or_empty("schema");
    let Some(schema) = parent.object("openAPIV3Schema") else {
        return;
    };
    let at = path.field("openAPIV3Schema");
    if depth_exceeds(schema, SCHEMA_DEPTH_MAX) {
        let detail = format!("must not be nested deeper than {SCHEMA_DEPTH_MAX} levels");
        errors.forbidden(&at, detail);
        return;
    }
    let mut found = Errors::new();
    if status {
        found.extend(beside_status(schema, path));
    }
    if schema.flag("nullable") {
        let at = path.field("openAPIV3Schema.nullable");
        found.forbidden(&at, "nullable cannot be true at the root");
    }
    let mut unsupported = None;
    let mut sound = false;
    if demands.structural {
        unsupported = structural::unsupported(schema);
        if unsupported.is_none() {
            let mut violations = structural::violations(schema, &at);
            if violations.is_empty() {
                let parsed = Structural::parse(schema);
                violations = defaults::check(&parsed, demands.pruned_defaults, &at);
            }
            sound = violations.is_empty();
            found.extend(violations);
        }
    }
    let before = found.len();
    let place = Place {
        root: true,
        ..Place::default()
    };
    keywords(schema, &place, demands, &at, &mut found);
    if sound {
        let old = demands.old_version(version.text("name"));
        let keyword_errors = found.split_off(before);
        let rules = expressions::check(schema, old, &at, &keyword_errors);
        found.extend(keyword_errors);
        found.extend(rules);
    }
    if let Some(text) = unsupported.filter(|_| found.is_empty()) {
        found.invalid(&at, "", text);
    }
    errors.extend(found);
}

fn depth_exceeds(schema: &Map, limit: usize) -> bool {
    let Some(limit) = limit.checked_sub(1) else {
        return true;
    };
    structural::below(schema).any(|below| depth_exceeds(below, limit))
}

/// Only some keywords stay in force when the status is checked alone.
fn beside_status(schema: &Map, path: &Path<'_>) -> Option<FieldError> {
    for (name, key) in go_print::schema_fields() {
        if !schema.has(key) {
            continue;
        }
        if name == "Type" && schema.text("type") != "object" {
            let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                          status subresource is enabled";
            let at = path.field("openAPIV3Schema.type");
            return Some(FieldError::invalid(&at, schema.value("type"), detail));
        }
        if !AT_ROOT.contains(&name) {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource \
                 is enabled",
                AT_ROOT.join(" ")
            );
            let at = path.field("openAPIV3Schema");
            return Some(print::invalid_text(&at, go_print::schema(schema), detail));
        }
    }
    None
}

/// Where a schema stands, as far as that decides what it may say.
#[derive(Clone, Default)]
struct Place {
    root: bool,
    /// Inside the metadata of the object, or of an object inside it.
    inside_meta: bool,
    /// Why defaults are not allowed here, if they are not.
    no_defaults: Option<String>,
}

/// Checks the keywords of a schema and of all inside it.
fn keywords(
    schema: &Map,
    place: &Place,
    demands: &Demands<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    forbidden_keywords(schema, place, demands, path, errors);
    if schema.flag("uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes \
                      quadratic";
        errors.forbidden(&path.field("uniqueItems"), detail);
    }
    additional_properties(schema, place, demands, path, errors);
    properties(schema, place, demands, path, errors);
    let inside = Place {
        root: false,
        ..place.clone()
    };
    if let Some(not) = schema.object("not") {
        keywords(not, &inside, demands, &path.field("not"), errors);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        let at = path.field(key);
        for (index, branch) in maps(schema.list(key)) {
            keywords(branch, &inside, demands, &at.index(index), errors);
        }
    }
    for key in ["definitions", "dependencies"] {
        let at = path.field(key);
        for (name, below) in schema.object_or_empty(key).iter() {
            if let Some(below) = below.as_object() {
                keywords(below, &inside, demands, &at.key(name), errors);
            }
        }
    }
    let at = path.field("items");
    match schema.value("items") {
        Value::Object(items) => keywords(items, &inside, demands, &at, errors),
        Value::Array(list) => {
            for (index, items) in maps(list) {
                keywords(items, &inside, demands, &at.index(index), errors);
            }
        }
        _ => {}
    }
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema.choice(preserve) == Some(false) {
        errors.invalid(&path.field(preserve), false, "must be true or undefined");
    }
    lists::marks(schema, demands, path, errors);
    expressions::texts(schema, path, errors);
}

fn additional_properties(
    schema: &Map,
    place: &Place,
    demands: &Demands<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let at = path.field("additionalProperties");
    let additional = schema.value("additionalProperties");
    let declared = !schema.object_or_empty("properties").is_empty();
    if declared && !matches!(additional, Value::Null | Value::Bool(true)) {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.forbidden(&at, detail);
    }
    if let Value::Object(below) = additional {
        let mut inside = Place {
            root: false,
            ..place.clone()
        };
        if place.inside_meta {
            let reason = "inside additionalProperties applying to object metadata";
            inside.no_defaults = Some(reason.to_owned());
        }
        keywords(below, &inside, demands, &at, errors);
    }
}

fn properties(
    schema: &Map,
    place: &Place,
    demands: &Demands<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let at = path.field("properties");
    let has_meta = place.root || schema.flag("x-kubernetes-embedded-resource");
    for (name, property) in schema.object_or_empty("properties").iter() {
        let mut inside = Place {
            root: false,
            ..place.clone()
        };
        if has_meta && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
            inside.inside_meta = true;
            if place.root {
                inside.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        if let Some(property) = property.as_object() {
            keywords(property, &inside, demands, &at.key(name), errors);
        }
    }
}

fn forbidden_keywords(
    schema: &Map,
    place: &Place,
    demands: &Demands<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if demands.types && has_unknown_type(schema) {
        errors.unsupported(&path.field("type"), schema.text("type"), &TYPES);
    }
    if let Some(reason) = place
        .no_defaults
        .as_deref()
        .filter(|_| schema.has("default"))
    {
        errors.forbidden(&path.field("default"), format!("must not be set {reason}"));
    }
    for key in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        // Dependencies are forbidden even if there are none.
        let is_forgotten =
            key != "dependencies" && structural::is_forgotten(key, schema.value(key));
        if schema.has(key) && !is_forgotten {
            errors.forbidden(&path.field(key), format!("{key} is not supported"));
        }
    }
    if schema.text("type") == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.forbidden(&path.field("type"), detail);
    }
    if matches!(schema.value("items"), Value::Array(_)) {
        let detail = "items must be a schema object and not an array";
        errors.forbidden(&path.field("items"), detail);
    }
    if place.inside_meta && schema.flag("x-kubernetes-embedded-resource") {
        let at = path.field("x-kubernetes-embedded-resource");
        errors.forbidden(&at, "must not be used inside of resource meta");
    }
}
