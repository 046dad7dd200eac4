//! Reading a definition.

use std::sync::{Arc, LazyLock};

use object::{Map, Text, Value};
use schema::structural::{ListMarker, Structural, compile};

use super::{Conversion, ConversionWebhook, Custom, ScalePaths, Selectable};
use crate::catalogue::Catalogue;
use crate::generation::Generation;
use crate::kind::{Kind, Rules, Subresource};
use crate::table::custom_columns;
use crate::validation::read::{Read, maps, texts};

/// The verbs of a custom resource, in the order in which upstream publishes them.
const VERBS: &[&str] = &[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];
/// What is left while the definition is being deleted.
const TERMINATING_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "watch"];

/// The kinds that a definition declares, one per version, in the order of the definition.
///
/// Names are those that were accepted; before that, those that are asked for. The definition was
/// created at the revision `since`.
pub fn kinds(definition: &Map, since: u64) -> Vec<Kind> {
    let spec = definition.object_or_empty("spec");
    let accepted = definition
        .object_or_empty("status")
        .object_or_empty("acceptedNames");
    let names = match accepted.text("plural") {
        "" => spec.object_or_empty("names"),
        _ => accepted,
    };
    let shared = Shared {
        since,
        definition,
        spec,
        names,
        conversion: conversion(spec.object_or_empty("conversion")),
        verbs: match is_terminating(definition) {
            true => list(TERMINATING_VERBS),
            false => list(VERBS),
        },
    };
    let versions = maps(spec.list("versions"));
    versions
        .map(|(_, version)| shared.version(version))
        .collect()
}

/// Whether the resources of a definition appear in discovery.
pub fn is_established(definition: &Map) -> bool {
    has_condition(definition, "Established")
}

/// Whether requests for the resources of a definition are answered.
pub fn is_served(definition: &Map) -> bool {
    has_condition(definition, "NamesAccepted") || is_established(definition)
}

/// Whether a definition is being deleted, so that nothing new can be made.
pub fn is_terminating(definition: &Map) -> bool {
    has_condition(definition, "Terminating")
}

pub(super) fn has_condition(definition: &Map, kind: &str) -> bool {
    let conditions = definition.object_or_empty("status").list("conditions");
    maps(conditions)
        .any(|(_, condition)| condition.text("type") == kind && condition.text("status") == "True")
}

/// What all versions of a definition have in common.
struct Shared<'a> {
    since: u64,
    definition: &'a Map,
    spec: &'a Map,
    names: &'a Map,
    conversion: Conversion,
    verbs: Vec<Text>,
}

impl Shared<'_> {
    fn version(&self, version: &Map) -> Kind {
        let (group, name) = (self.spec.text("group"), version.text("name"));
        let kind = self.spec.object_or_empty("names").text("kind");
        let plural = self.names.text("plural");
        let parent = version.object_or_empty("schema");
        let schema = Structural::parse(parent.object_or_empty("openAPIV3Schema"));
        let builtin = Catalogue::builtin();
        let (types, root) = compile(&schema, (builtin.types(), *OBJECT_META));
        let custom = self.custom(version, schema);
        Kind {
            group: group.into(),
            version: name.into(),
            kind: kind.into(),
            list_kind: match self.names.text("listKind") {
                "" => [kind, "List"].concat().into(),
                given => given.into(),
            },
            resource: plural.into(),
            singular: self.names.text("singular").into(),
            namespaced: self.spec.text("scope") == "Namespaced",
            short_names: text_list(self.names.list("shortNames")),
            categories: text_list(self.names.list("categories")),
            verbs: self.verbs.clone(),
            subresources: subresources(&custom, kind),
            types: Arc::new(types),
            root,
            collection: ["/registry/", group, "/", plural, "/"].concat().into(),
            storage_version: self.storage_version().into(),
            columns: custom_columns(version.list("additionalPrinterColumns")),
            rules: Rules {
                generation: match custom.status {
                    true => Generation::AllButStatus,
                    false => Generation::All,
                },
                unconditional_update: false,
                ..Rules::default()
            },
            custom: Some(Arc::new(custom)),
            unwritten: Default::default(),
        }
    }

    fn custom(&self, version: &Map, schema: Structural) -> Custom {
        let subresources = version.object_or_empty("subresources");
        let deprecation =
            version
                .flag("deprecated")
                .then(|| match version.get("deprecationWarning") {
                    Some(Value::String(text)) => text.clone(),
                    _ => self.deprecation(version.text("name")).into(),
                });
        Custom {
            definition: self
                .definition
                .object_or_empty("metadata")
                .text("name")
                .into(),
            tag: tag(version),
            since: self.since,
            has_embedded: has_embedded(&schema),
            rules: Arc::default(),
            has_unique: has_unique(&schema),
            schema: Arc::new(schema),
            served: version.flag("served"),
            terminating: is_terminating(self.definition),
            storage: version.flag("storage"),
            deprecation,
            status: subresources.has("status"),
            scale: subresources.object("scale").map(scale_paths),
            conversion: self.conversion.clone(),
            selectable: maps(version.list("selectableFields"))
                .map(|(_, field)| selectable(field.text("jsonPath")))
                .collect(),
        }
    }

    fn storage_version(&self) -> &str {
        maps(self.spec.list("versions"))
            .find(|(_, version)| version.flag("storage"))
            .map_or("", |(_, version)| version.text("name"))
    }

    /// The warning about a deprecated version, which names the best one to move to.
    fn deprecation(&self, version: &str) -> String {
        let (group, kind) = (
            self.spec.text("group"),
            self.spec.object_or_empty("names").text("kind"),
        );
        let better = maps(self.spec.list("versions"))
            .filter(|(_, other)| other.flag("served") && !other.flag("deprecated"))
            .map(|(_, other)| other.text("name"))
            .filter(|other| object::group::compare_versions(version, other).is_lt())
            .max_by(|left, right| object::group::compare_versions(left, right));
        let text = format!("{group}/{version} {kind} is deprecated");
        match better {
            Some(better) => format!("{text}; use {group}/{better} {kind}"),
            None => text,
        }
    }
}

/// The version's name and a digest (64-bit FNV-1a) of its schema and selectable fields.
fn tag(version: &Map) -> Text {
    let mut text = Vec::new();
    for part in ["schema", "selectableFields"] {
        object::json::write(version.get(part).unwrap_or(&Value::Null), &mut text);
    }
    let digest = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{}/{digest:016x}", version.text("name")).into()
}

/// The type of metadata in the built-in catalogue.
pub(super) static OBJECT_META: LazyLock<schema::TypeId> = LazyLock::new(|| {
    Catalogue::builtin()
        .definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        .expect("every built-in kind has metadata")
});

fn has_unique(schema: &Structural) -> bool {
    let here = matches!(schema.list_type, Some(ListMarker::Set | ListMarker::Map));
    here || schema.children().any(has_unique)
}

fn has_embedded(schema: &Structural) -> bool {
    schema.embedded_resource || schema.children().any(has_embedded)
}

fn subresources(custom: &Custom, kind: &str) -> Vec<Subresource> {
    let verbs = list(&["get", "patch", "update"]);
    let mut found = Vec::new();
    if custom.status {
        found.push(Subresource {
            name: "status".into(),
            group: Text::default(),
            version: Text::default(),
            kind: kind.into(),
            verbs: verbs.clone(),
        });
    }
    if custom.scale.is_some() {
        found.push(Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs,
        });
    }
    found
}

fn conversion(conversion: &Map) -> Conversion {
    let webhook = conversion.object("webhook");
    match (conversion.text("strategy"), webhook) {
        ("Webhook", Some(webhook)) => Conversion::Webhook(Arc::new(ConversionWebhook {
            client_config: webhook.object_or_empty("clientConfig").clone(),
            review_versions: text_list(webhook.list("conversionReviewVersions")),
        })),
        _ => Conversion::None,
    }
}

fn scale_paths(scale: &Map) -> ScalePaths {
    let selector = scale.text("labelSelectorPath");
    ScalePaths {
        spec_replicas: steps(scale.text("specReplicasPath")),
        status_replicas: steps(scale.text("statusReplicasPath")),
        label_selector: (!selector.is_empty()).then(|| steps(selector)),
    }
}

fn selectable(path: &str) -> Selectable {
    Selectable {
        name: path.strip_prefix('.').unwrap_or(path).into(),
        steps: steps(path),
    }
}

/// The fields that a simple path such as `.spec.replicas` names.
fn steps(path: &str) -> Vec<Text> {
    let path = path.strip_prefix('.').unwrap_or(path);
    path.split('.').map(Text::from).collect()
}

fn text_list(values: &[Value]) -> Vec<Text> {
    texts(values).map(|(_, text)| text.into()).collect()
}

fn list(texts: &[&str]) -> Vec<Text> {
    texts.iter().map(|text| Text::from(*text)).collect()
}
