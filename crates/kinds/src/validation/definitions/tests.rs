//! Cases: definitions of custom resources, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn crd(name: &str, changed: Value) -> Map {
    let mut spec = map(value!({"group": "demo.example", "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "conversion": {"strategy": "None"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}));
    for (key, value) in map(changed) {
        match value {
            Value::Null => spec.remove(&key),
            value => spec.insert(key, value),
        };
    }
    map(value!({"metadata": {"name": name}, "spec": spec, "status": {"storedVersions": ["v1"]}}))
}

#[test]
fn names_and_versions_are_checked() {
    let cases: Vec<(&str, Value, &[&str])> = vec![
        ("things.demo.example", value!({}), &[]),
        (
            "others.demo.example",
            value!({}),
            &[
                "metadata.name: Invalid value: \"others.demo.example\": must be spec.names.plural+\".\"+spec.group",
            ],
        ),
        (
            "things.demo.example",
            value!({"scope": null}),
            &["spec.scope: Required value"],
        ),
        (
            "things.demo.example",
            value!({"scope": "Global"}),
            &[
                "spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\"",
            ],
        ),
        (
            "things.demo.example",
            value!({"preserveUnknownFields": true}),
            &[
                "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
            ],
        ),
        (
            "things.demo.example",
            value!({"versions": [{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}]}),
            &[
                "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must have exactly one version marked as storage version",
            ],
        ),
        (
            "things.demo.example",
            value!({"versions": [{"name": "v1", "served": true, "storage": true}]}),
            &["spec.versions[0].schema.openAPIV3Schema: Required value"],
        ),
        (
            "things.demo.example",
            value!({"versions": [{"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}),
            &[
                "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2",
                "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
            ],
        ),
    ];
    for (name, changed, expected) in cases {
        assert_eq!(printed(definition(&crd(name, changed), None, "")), expected);
    }
}

#[test]
fn protected_groups_need_approval() {
    let given = crd("things.demo.k8s.io", value!({"group": "demo.k8s.io"}));
    assert_eq!(
        printed(definition(&given, None, "")),
        [
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        ]
    );
}
