//! The catalogue against golden facts, and the shapes that clients depend on most.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use object::Value;
use schema::{Empty, Form, InsteadOfSchema, ListTopology, Scalar, Type};

use schema::decode::Unknown;

use super::Catalogue;
use crate::Kind;

fn kind(group: &str, version: &str, resource: &str) -> &'static Kind {
    Catalogue::builtin()
        .resource(group, version, resource)
        .expect("the resource is served")
}

/// The type at a path of field names from a kind's root; `[]` steps into items, `{}` into values.
fn at(kind: &Kind, path: &[&str]) -> Type {
    let mut ty = kind.types.get(kind.root);
    for step in path {
        let next = match *step {
            "[]" => ty.list.as_ref().expect("a list").element,
            "{}" => ty
                .map
                .as_ref()
                .expect("a map")
                .element
                .expect("a dictionary"),
            name => field(ty, name).ty,
        };
        ty = kind.types.get(next);
    }
    ty.clone()
}

fn field<'a>(ty: &'a Type, name: &str) -> &'a schema::Field {
    let map = ty.map.as_ref().expect("a struct");
    map.field(name).unwrap_or_else(|| panic!("no field {name}"))
}

fn keys(ty: &Type) -> Vec<&str> {
    match &ty.list.as_ref().expect("a list").topology {
        ListTopology::Map(keys) => keys.iter().map(|key| key.as_str()).collect(),
        other => panic!("{other:?} is not a map list"),
    }
}

#[test]
fn does_the_catalogue_serve_what_the_golden_file_lists() {
    let mut listed = String::new();
    for group in Catalogue::builtin().groups() {
        let _ = writeln!(
            listed,
            "group {:?} {}",
            group.name,
            group.versions.join(",")
        );
    }
    for kind in Catalogue::builtin().kinds() {
        let _ = writeln!(
            listed,
            "{} {} {} singular={} namespaced={} short={} categories={} verbs={} at={} stored={}",
            kind.api_version(),
            kind.resource,
            kind.kind,
            kind.singular,
            kind.namespaced,
            kind.short_names.join(","),
            kind.categories.join(","),
            kind.verbs.join(","),
            kind.collection,
            kind.storage_version,
        );
        for sub in &kind.subresources {
            let verbs = sub.verbs.join(",");
            let _ = writeln!(
                listed,
                "  /{} {}/{} {} {verbs}",
                sub.name, sub.group, sub.version, sub.kind
            );
        }
        for column in kind.columns() {
            let _ = writeln!(
                listed,
                "  | {} | {} | {} | {}",
                column.name, column.kind, column.format, column.priority
            );
        }
    }
    check_golden("served.golden.txt", &listed);
}

#[test]
fn which_keys_tell_list_items_apart() {
    let cases: &[(&Kind, &[&str], &[&str])] = &[
        (kind("", "v1", "pods"), &["spec", "containers"], &["name"]),
        (
            kind("", "v1", "pods"),
            &["spec", "containers", "[]", "ports"],
            &["containerPort", "protocol"],
        ),
        (
            kind("apps", "v1", "deployments"),
            &["spec", "template", "spec", "topologySpreadConstraints"],
            &["topologyKey", "whenUnsatisfiable"],
        ),
        (
            kind("", "v1", "pods"),
            &["spec", "containers", "[]", "volumeMounts"],
            &["mountPath"],
        ),
        (
            kind("", "v1", "services"),
            &["spec", "ports"],
            &["port", "protocol"],
        ),
        (
            kind("apps", "v1", "deployments"),
            &["status", "conditions"],
            &["type"],
        ),
        (
            kind("", "v1", "secrets"),
            &["metadata", "ownerReferences"],
            &["uid"],
        ),
    ];
    for (kind, path, expected) in cases {
        assert_eq!(keys(&at(kind, path)), *expected, "{} {path:?}", kind.kind);
    }
}

#[test]
fn which_defaults_complete_an_identity() {
    let port = at(
        kind("", "v1", "pods"),
        &["spec", "containers", "[]", "ports", "[]"],
    );
    assert_eq!(
        field(&port, "protocol").default,
        Some(Value::String("TCP".into()))
    );
    assert_eq!(field(&port, "containerPort").default, Some(Value::Int(0)));
    assert_eq!(field(&port, "hostIP").default, None);
    let container = at(kind("", "v1", "pods"), &["spec", "containers", "[]"]);
    assert_eq!(
        field(&container, "name").default,
        Some(Value::String("".into()))
    );
    let port = at(kind("", "v1", "services"), &["spec", "ports", "[]"]);
    assert_eq!(
        field(&port, "protocol").default,
        Some(Value::String("TCP".into()))
    );
    // Published zero defaults of other fields say how Go prints them, not what they default to.
    let reference = at(
        kind("", "v1", "pods"),
        &["metadata", "ownerReferences", "[]"],
    );
    assert_eq!(field(&reference, "name").default, None);
}

#[test]
fn which_maps_are_replaced_whole() {
    let cases: &[(&Kind, &[&str], bool)] = &[
        (
            kind("apps", "v1", "deployments"),
            &["spec", "selector"],
            true,
        ),
        (kind("", "v1", "services"), &["spec", "selector"], true),
        (kind("", "v1", "pods"), &["spec", "nodeSelector"], true),
        (
            kind("", "v1", "pods"),
            &["metadata", "ownerReferences", "[]"],
            true,
        ),
        (
            kind("", "v1", "persistentvolumes"),
            &["spec", "claimRef"],
            false,
        ),
        (kind("", "v1", "bindings"), &["target"], true),
        (kind("", "v1", "configmaps"), &["data"], false),
        (kind("", "v1", "pods"), &["metadata", "labels"], false),
    ];
    for (kind, path, atomic) in cases {
        let map = at(kind, path).map.expect("a map");
        assert_eq!(map.atomic, *atomic, "{} {path:?}", kind.kind);
    }
    let claim = at(kind("", "v1", "persistentvolumes"), &["spec", "claimRef"]);
    assert_eq!(field(&claim, "name").ty, field(&claim, "kind").ty);
}

#[test]
fn which_meaning_has_a_scalar() {
    let pod = kind("", "v1", "pods");
    let cases: &[(&Kind, &[&str], Scalar, Form)] = &[
        (
            pod,
            &["metadata", "creationTimestamp"],
            Scalar::Untyped,
            Form::Time,
        ),
        (
            pod,
            &["spec", "containers", "[]", "resources", "limits", "{}"],
            Scalar::Untyped,
            Form::Quantity,
        ),
        (
            kind("", "v1", "secrets"),
            &["data", "{}"],
            Scalar::String,
            Form::Bytes,
        ),
        (
            kind("", "v1", "services"),
            &["spec", "ports", "[]", "targetPort"],
            Scalar::Untyped,
            Form::IntOrString,
        ),
        (
            kind("", "v1", "services"),
            &["spec", "ports", "[]", "port"],
            Scalar::Numeric,
            Form::Int32,
        ),
        (
            kind("coordination.k8s.io", "v1", "leases"),
            &["spec", "renewTime"],
            Scalar::Untyped,
            Form::MicroTime,
        ),
        (
            kind("apps", "v1", "controllerrevisions"),
            &["data"],
            Scalar::Untyped,
            Form::RawExtension,
        ),
    ];
    for (kind, path, scalar, form) in cases {
        let ty = at(kind, path);
        assert_eq!(
            (ty.scalar, ty.form),
            (Some(*scalar), *form),
            "{} {path:?}",
            kind.kind
        );
    }
    let fields = at(pod, &["metadata", "managedFields", "[]", "fieldsV1"]);
    assert_eq!((fields.scalar, fields.form), (None, Form::FieldsV1));
    assert!(fields.map.is_some_and(|map| map.element.is_some()));
}

#[test]
fn how_do_strategic_patches_treat_fields() {
    let deployment = kind("apps", "v1", "deployments");
    let spec = at(deployment, &["spec"]);
    assert!(field(&spec, "strategy").patch.retain_keys);
    let budget = at(kind("policy", "v1", "poddisruptionbudgets"), &["spec"]);
    assert!(field(&budget, "selector").patch.replace);
    let pod = at(deployment, &["spec", "template", "spec"]);
    let volumes = &field(&pod, "volumes").patch;
    assert!(volumes.merge && volumes.retain_keys);
    assert_eq!(volumes.merge_key, "name");
    let metadata = at(deployment, &["metadata"]);
    let finalizers = &field(&metadata, "finalizers").patch;
    assert!(finalizers.merge && finalizers.merge_key.is_empty());
    let finalizers = at(deployment, &["metadata", "finalizers"])
        .list
        .expect("a list");
    assert_eq!(finalizers.topology, ListTopology::Set);
}

#[test]
fn how_many_lists_of_each_topology_are_there() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in published_fields() {
        for part in line
            .split('\t')
            .nth(2)
            .unwrap_or_default()
            .split('[')
            .skip(1)
        {
            let topology = match part.split(']').next().unwrap_or_default() {
                "!" => "atomic",
                "=" => "set",
                "" => "unannotated",
                _ => "map",
            };
            *counts.entry(topology).or_default() += 1;
        }
    }
    let expected = [
        ("atomic", 224),
        ("map", 59),
        ("set", 16),
        ("unannotated", 65),
    ];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn which_form_of_a_kind_is_stored() {
    let catalogue = Catalogue::builtin();
    let cases = [
        (
            ("autoscaling", "v1", "horizontalpodautoscalers"),
            ("autoscaling", "v2"),
        ),
        (
            ("autoscaling", "v2", "horizontalpodautoscalers"),
            ("autoscaling", "v2"),
        ),
        (("events.k8s.io", "v1", "events"), ("", "v1")),
        (("", "v1", "events"), ("", "v1")),
        (("apps", "v1", "deployments"), ("apps", "v1")),
    ];
    for ((group, version, resource), expected) in cases {
        let kind = catalogue
            .resource(group, version, resource)
            .expect("the resource is served");
        let stored = catalogue.stored_kind(kind);
        assert_eq!(
            (stored.group.as_str(), stored.version.as_str()),
            expected,
            "{resource}"
        );
        assert_eq!(stored.collection, kind.collection);
    }
}

#[test]
fn which_storage_version_does_discovery_hash() {
    let cases = [
        (("", "v1", "pods"), ("", "v1")),
        (("events.k8s.io", "v1", "events"), ("", "v1")),
        (
            ("autoscaling", "v1", "horizontalpodautoscalers"),
            ("autoscaling", "v2"),
        ),
        (
            ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
            ("apiextensions.k8s.io", "v1beta1"),
        ),
    ];
    for ((group, version, resource), expected) in cases {
        let kind = kind(group, version, resource);
        assert_eq!(kind.published_storage(), expected, "{resource}");
    }
}

#[test]
fn are_bodies_without_a_collection_found_by_name() {
    let catalogue = Catalogue::builtin();
    for name in [
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
        "io.k8s.api.autoscaling.v1.Scale",
        "io.k8s.api.policy.v1.Eviction",
        "io.k8s.api.authentication.v1.TokenRequest",
        "io.k8s.api.core.v1.PodList",
        "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList",
        "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList",
    ] {
        let id = catalogue
            .definition(name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        assert!(catalogue.types().get(id).map.is_some(), "{name}");
    }
    assert_eq!(catalogue.definition("io.k8s.api.core.v1.Nothing"), None);
    assert_eq!(catalogue.definition("Pod"), None);
}

#[test]
fn what_does_an_empty_field_print() {
    let pod = kind("", "v1", "pods");
    let claim = kind("", "v1", "persistentvolumeclaims");
    let deployment = kind("apps", "v1", "deployments");
    let crd = kind("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let cases: &[(&Kind, &[&str], &str, Empty)] = &[
        // Structs are printed whatever their tags say.
        (pod, &[], "status", Empty::Print),
        (
            pod,
            &["spec", "containers", "[]"],
            "resources",
            Empty::Print,
        ),
        (deployment, &["spec"], "strategy", Empty::Print),
        (
            deployment,
            &["status", "conditions", "[]"],
            "lastUpdateTime",
            Empty::Print,
        ),
        // Only one time is left out when it is zero.
        (pod, &["metadata"], "creationTimestamp", Empty::Drop),
        (pod, &["metadata"], "deletionTimestamp", Empty::Keep),
        (pod, &["spec"], "containers", Empty::Print),
        (pod, &["spec"], "tolerations", Empty::Drop),
        (pod, &["spec"], "hostNetwork", Empty::Drop),
        (pod, &["spec"], "terminationGracePeriodSeconds", Empty::Keep),
        (pod, &["spec", "containers", "[]"], "name", Empty::Print),
        (pod, &["spec", "containers", "[]"], "image", Empty::Drop),
        (claim, &["spec", "dataSource"], "apiGroup", Empty::Null),
        (deployment, &["status"], "replicas", Empty::Drop),
        (
            kind("apps", "v1", "statefulsets"),
            &["status"],
            "replicas",
            Empty::Print,
        ),
        (crd, &["spec", "names"], "plural", Empty::Print),
        (
            kind("apps", "v1", "controllerrevisions"),
            &[],
            "data",
            Empty::Print,
        ),
        (
            kind("apps", "v1", "controllerrevisions"),
            &[],
            "revision",
            Empty::Print,
        ),
        (pod, &[], "kind", Empty::Drop),
    ];
    for (kind, path, name, expected) in cases {
        let empty = field(&at(kind, path), name).empty;
        assert_eq!(empty, *expected, "{} {path:?} {name}", kind.kind);
    }
}

#[test]
fn does_a_read_object_print_what_upstream_prints() {
    let claim = kind("", "v1", "persistentvolumeclaims");
    let body = br#"{"spec":{"dataSource":{"kind":"A","name":"","apiGroup":null},
        "accessModes":[],"volumeName":"","storageClassName":"","other":1}}"#;
    let body = object::json::parse(body).unwrap();
    let (read, unknown) =
        schema::decode::decode(&claim.types, claim.root, body, Unknown::Report).unwrap();
    let printed = claim.print(read.as_object().unwrap().clone()).into();
    let printed = String::from_utf8(object::json::to_vec(&printed)).unwrap();
    let expected = concat!(
        r#"{"metadata":{},"spec":{"dataSource":{"apiGroup":null,"kind":"A","name":""},"#,
        r#""resources":{},"storageClassName":""},"status":{}}"#
    );
    assert_eq!(printed, expected);
    assert_eq!(unknown, [r#"unknown field "spec.other""#]);
}

#[test]
fn which_numbers_lead_to_a_field_in_protobuf() {
    let pod = kind("", "v1", "pods");
    let policy = kind(
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicies",
    );
    let rules: &[&str] = &["spec", "matchConstraints", "resourceRules", "[]"];
    let cases: &[(&Kind, &[&str], &str, &[u32])] = &[
        (pod, &[], "kind", &[]),
        (pod, &[], "spec", &[2]),
        (pod, &["metadata"], "creationTimestamp", &[8]),
        (pod, &["spec", "volumes", "[]"], "name", &[1]),
        (pod, &["spec", "volumes", "[]"], "configMap", &[2, 19]),
        (
            pod,
            &["spec", "containers", "[]", "livenessProbe"],
            "httpGet",
            &[1, 2],
        ),
        (policy, rules, "resourceNames", &[1]),
        (policy, rules, "operations", &[2, 1]),
        (policy, rules, "apiGroups", &[2, 2, 1]),
    ];
    for (kind, path, name, expected) in cases {
        let ty = at(kind, path);
        let numbers: Vec<u32> = field(&ty, name).numbers().collect();
        assert_eq!(numbers, *expected, "{} {path:?} {name}", kind.kind);
        assert!(!field(&ty, name).is_wrapped());
    }
    let catalogue = Catalogue::builtin();
    let resource = catalogue
        .definition("io.k8s.apimachinery.pkg.apis.meta.v1.APIResource")
        .expect("it is defined");
    let verbs = field(catalogue.types().get(resource), "verbs");
    assert!(verbs.is_wrapped());
    assert_eq!(verbs.numbers().collect::<Vec<_>>(), [4]);
}

#[test]
fn what_stands_in_the_place_of_a_schema() {
    let crd = kind("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let schema: &[&str] = &["spec", "versions", "[]", "schema", "openAPIV3Schema"];
    let cases = [
        ("items", Some(InsteadOfSchema::Schemas)),
        ("additionalProperties", Some(InsteadOfSchema::Bool)),
        ("default", None),
    ];
    for (name, expected) in cases {
        let id = field(&at(crd, schema), name).ty;
        let found = crd.types.schema_or(id);
        assert_eq!(found.map(|either| either.other), expected, "{name}");
        if let Some(either) = found {
            assert_eq!(*crd.types.get(either.schema), at(crd, schema));
        }
    }
}

#[test]
fn are_fields_sorted_so_that_lookup_finds_them() {
    let types = Catalogue::builtin().types();
    for id in 0..types.len() {
        let id = schema::TypeId(u32::try_from(id).unwrap());
        let Some(map) = &types.get(id).map else {
            continue;
        };
        assert!(
            map.fields
                .is_sorted_by(|left, right| left.name < right.name)
        );
    }
}

#[test]
fn what_is_published_about_a_definition() {
    let catalogue = Catalogue::builtin();
    assert_eq!(catalogue.published().count(), 581);
    let mut listed = String::new();
    for name in [
        "io.k8s.api.apps.v1.ControllerRevisionList",
        "io.k8s.api.core.v1.AppArmorProfile",
        "io.k8s.api.core.v1.ContainerPort",
        "io.k8s.api.core.v1.LocalObjectReference",
        "io.k8s.api.core.v1.NFSVolumeSource",
        "io.k8s.api.core.v1.ResourceRequirements",
        "io.k8s.api.core.v1.ServiceAccount",
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    ] {
        let schema = catalogue.published_schema(name).expect("it is published");
        let printed = String::from_utf8(object::json::to_vec(&schema)).unwrap();
        let _ = writeln!(listed, "{name} {printed}");
    }
    check_golden("published.golden.txt", &listed);
    let unpublished = "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata";
    assert!(catalogue.definition(unpublished).is_some());
    assert!(catalogue.published_schema(unpublished).is_none());
}

/// Compares with a golden file, or rewrites it when `UPDATE_GOLDEN` is set.
fn check_golden(name: &str, printed: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/catalogue")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, printed).unwrap();
    }
    assert_eq!(printed, std::fs::read_to_string(&golden).unwrap());
}

/// The lines of fields that belong to published definitions.
fn published_fields() -> impl Iterator<Item = &'static str> {
    let mut published = true;
    super::text::DEFINITIONS.lines().filter(move |line| {
        if line.starts_with('=') {
            published = !line.ends_with("\tunpublished");
        }
        published && line.starts_with('\t')
    })
}
