//! Cases: config maps, secrets and namespaces, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
     (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
     '[-._a-zA-Z0-9]+')";

#[test]
fn keys_and_sizes_of_config_maps_are_checked() {
    let new = map(value!({"data": {"a": "x", "bad key": "y"}, "binaryData": {"a": "AAAA"}}));
    assert_eq!(
        printed(config_map(&new, None, "")),
        [
            "data[a]: Invalid value: \"a\": duplicate of key present in binaryData".to_owned(),
            format!("data[bad key]: Invalid value: \"bad key\": {KEY}"),
        ]
    );
    let big = map(value!({"data": {"a": ("x".repeat(1024 * 1024 + 1))}}));
    assert_eq!(
        printed(config_map(&big, None, "")),
        ["[]: Too long: may not be more than 1048576 bytes"]
    );
}

#[test]
fn what_is_immutable_stays() {
    let meta = value!({"name": "a", "namespace": "b"});
    let old = map(value!({"metadata": (meta.clone()), "immutable": true, "data": {"a": "x"}}));
    let new = map(value!({"metadata": meta, "data": {"a": "y"}}));
    assert_eq!(
        printed(config_map(&new, Some(&old), "")),
        [
            "immutable: Forbidden: field is immutable when `immutable` is set",
            "data: Forbidden: field is immutable when `immutable` is set",
        ]
    );
    assert!(config_map(&old, Some(&old), "").is_empty());
}

#[test]
fn secrets_hold_what_their_type_promises() {
    let cases: Vec<(Value, &[&str])> = vec![
        (value!({"type": "Opaque", "data": {"a": "AA=="}}), &[]),
        (
            value!({"type": "kubernetes.io/tls"}),
            &[
                "data[tls.crt]: Required value",
                "data[tls.key]: Required value",
            ],
        ),
        (
            value!({"type": "kubernetes.io/basic-auth"}),
            &[
                "data[username]: Required value",
                "data[password]: Required value",
            ],
        ),
        (
            value!({"type": "kubernetes.io/ssh-auth"}),
            &["data[ssh-privatekey]: Required value"],
        ),
        (
            value!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "bm90IGpzb24="}}),
            &[
                "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'o' in literal null (expecting 'u')",
            ],
        ),
        (
            value!({"type": "kubernetes.io/service-account-token"}),
            &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
    ];
    for (given, expected) in cases {
        assert_eq!(printed(secret(&map(given), None, "")), expected);
    }
    let meta = value!({"name": "a", "namespace": "b"});
    let old = map(value!({"metadata": (meta.clone()), "type": "Opaque"}));
    let new = map(value!({"metadata": meta, "type": "other"}));
    assert_eq!(
        printed(secret(&new, Some(&old), "")),
        ["type: Invalid value: \"other\": field is immutable"]
    );
}

#[test]
fn a_namespace_is_as_its_deletion_says() {
    let old = map(value!({"status": {"phase": "Active"}}));
    let new = map(value!({"status": {"phase": "Terminating"}}));
    assert_eq!(
        printed(namespace(&new, Some(&old), "status")),
        [
            "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
        ]
    );
}
