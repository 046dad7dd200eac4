//! Cases: metadata of a ConfigMap or a Namespace, and the mistakes that are listed.

use object::{Map, Value, value};

use super::*;
use crate::Catalogue;

fn metadata(value: Value) -> Map {
    Map::from_entries(vec![("metadata".into(), value)])
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn kind(resource: &str) -> &'static Kind {
    Catalogue::builtin()
        .resource("", "v1", resource)
        .expect("it is built in")
}

const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must \
     start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
     regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

#[test]
fn a_new_object_names_every_mistake_in_upstreams_order() {
    let cases = [
        (value!({"name": "good", "namespace": "here"}), vec![]),
        (
            value!({"namespace": "here"}),
            vec!["metadata.name: Required value: name or generateName is required".to_owned()],
        ),
        (
            value!({"name": "good"}),
            vec!["metadata.namespace: Required value".to_owned()],
        ),
        (
            value!({"name": "good", "namespace": "here", "generation": (-1), "labels": {"a b": "c"},
                "annotations": {"A/b!": ""}}),
            vec![
                "metadata.generation: Invalid value: -1: must be greater than or equal to 0"
                    .to_owned(),
                format!("metadata.labels: Invalid value: \"a b\": {KEY}"),
                format!("metadata.annotations: Invalid value: \"A/b!\": {KEY}"),
            ],
        ),
        (
            value!({"name": "good", "namespace": "here", "annotations": {"Big": ("x".repeat(262_144))}}),
            vec![
                "metadata.annotations: Too long: may not be more than 262144 bytes".to_owned(),
            ],
        ),
        (
            value!({"name": "good", "namespace": "here", "finalizers": ["alone", "orphan", "foregroundDeletion", "a.b/c"]}),
            vec![
                "metadata.finalizers: Invalid value: [\"alone\",\"orphan\",\"foregroundDeletion\",\"a.b/c\"]: \
                 finalizer orphan and foregroundDeletion cannot be both set".to_owned(),
                "metadata.finalizers[0]: Invalid value: \"alone\": name is neither a standard \
                 finalizer name nor is it fully qualified".to_owned(),
            ],
        ),
    ];
    for (given, expected) in cases {
        let errors = validate_create(kind("configmaps"), &metadata(given));
        assert_eq!(printed(errors), expected);
    }
    let given = metadata(value!({"name": "a.b", "namespace": "here"}));
    assert_eq!(
        printed(validate_create(kind("nodes"), &given)),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
}

#[test]
fn owners_are_checked_one_by_one_and_together() {
    let given = metadata(
        value!({"name": "good", "namespace": "here", "ownerReferences": [
            {"apiVersion": "a/b/c", "kind": "", "name": "", "uid": ""},
            {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1", "controller": true},
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "2", "controller": true}
        ]}),
    );
    let all = "[{\"apiVersion\":\"a/b/c\",\"kind\":\"\",\"name\":\"\",\"uid\":\"\"},\
        {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"e\",\"uid\":\"1\",\"controller\":true},\
        {\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"2\",\"controller\":true}]";
    assert_eq!(
        printed(validate_create(kind("configmaps"), &given)),
        [
            "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty"
                .to_owned(),
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty".to_owned(),
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty".to_owned(),
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty".to_owned(),
            "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\
             \"name\":\"e\",\"uid\":\"1\",\"controller\":true}: /v1, Kind=Event is disallowed from \
             being an owner"
                .to_owned(),
            format!(
                "metadata.ownerReferences: Invalid value: {all}: Only one reference can have \
                 Controller set to true. Found \"true\" in references for Event/e and Pod/p"
            ),
        ]
    );
}

#[test]
fn a_change_lists_most_mistakes_twice() {
    let old = metadata(value!({"name": "good", "namespace": "here", "uid": "1",
        "finalizers": ["a.b/c"], "deletionTimestamp": "2020-01-01T00:00:00Z"}));
    let cases = [
        (
            value!({"name": "good", "namespace": "here", "uid": "2",
                "finalizers": ["a.b/c"], "deletionTimestamp": "2020-01-01T00:00:00Z"}),
            "metadata.uid: Invalid value: \"2\": field is immutable",
        ),
        (
            value!({"name": "good", "namespace": "here", "uid": "1", "finalizers": ["z.y/x", "b.c/d"],
                "deletionTimestamp": "2020-01-01T00:00:00Z"}),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
             being deleted, found new finalizers []string{\"b.c/d\", \"z.y/x\"}",
        ),
        (
            value!({"name": "good", "namespace": "here", "uid": "1", "finalizers": ["a.b/c"],
                "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3}),
            "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
        ),
    ];
    for (given, expected) in cases {
        let errors = validate_update(kind("configmaps"), &metadata(given), &old, "");
        assert_eq!(printed(errors), [expected, expected]);
    }
}

#[test]
fn the_code_of_some_kinds_does_not_look_again() {
    let old = metadata(value!({"name": "good", "namespace": "here", "uid": "1"}));
    let new = metadata(value!({"name": "good", "namespace": "here", "uid": "2"}));
    for (group, resource, subresource, times) in [
        ("batch", "cronjobs", "", 2),
        ("batch", "cronjobs", "status", 1),
        ("", "persistentvolumes", "", 1),
        ("", "persistentvolumes", "status", 2),
    ] {
        let kind = Catalogue::builtin().resource(group, "v1", resource);
        let kind = kind.expect("it is built in");
        let (mut new, mut old) = (new.clone(), old.clone());
        if !kind.namespaced {
            new.object_at("metadata").remove("namespace");
            old.object_at("metadata").remove("namespace");
        }
        let errors = validate_update(kind, &new, &old, subresource);
        assert_eq!(errors.len(), times, "{resource} {subresource}: {errors:?}");
    }
}

#[test]
fn what_a_name_was_made_from_is_looked_at_by_the_code_of_some_kinds() {
    let old = metadata(value!({"name": "good", "namespace": "here"}));
    let mut new = old.clone();
    new.object_at("metadata")
        .insert("generateName", "G_".into());
    for (group, resource, times) in [
        ("", "configmaps", 1),
        ("batch", "cronjobs", 0),
        // Their names are no domains.
        ("rbac.authorization.k8s.io", "roles", 0),
    ] {
        let kind = Catalogue::builtin().resource(group, "v1", resource);
        let kind = kind.expect("it is built in");
        let (errors, _) = kind.validate_after(Vec::new(), &new, Some(&old), "");
        let found = errors
            .iter()
            .filter(|it| it.field == "metadata.generateName");
        assert_eq!(found.count(), times, "{resource}: {errors:?}");
    }
}

#[test]
fn kinds_that_do_not_look_at_metadata_tell_their_own_mistakes_alone() {
    let kind = Catalogue::builtin()
        .resource("policy", "v1", "poddisruptionbudgets")
        .expect("it is built in");
    let budget = |minimum: i64| {
        let spec = value!({"minAvailable": minimum, "selector": {"matchLabels": {"a": "b"}}});
        let mut object = metadata(value!({"namespace": "here"}));
        object.insert("spec", spec);
        object
    };
    let required = "metadata.name: Required value: name or generateName is required";
    let negative = "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0";
    for (minimum, expected) in [(1, required), (-1, negative)] {
        let new = budget(minimum);
        let errors = validate_create(kind, &new);
        let (errors, _) = kind.validate_after(errors, &new, None, "");
        assert_eq!(printed(errors), [expected]);
    }
}

#[test]
fn some_kinds_look_at_the_name_and_not_at_what_it_was_made_from() {
    let new = metadata(value!({"generateName": "A", "name": "Ab", "namespace": "here"}));
    let fields = |resource: &str| {
        let errors = validate_create(kind(resource), &new);
        errors.into_iter().map(|it| it.field).collect::<Vec<_>>()
    };
    assert_eq!(fields("replicationcontrollers"), ["metadata.name"]);
    assert_eq!(
        fields("configmaps"),
        ["metadata.generateName", "metadata.name"]
    );
}
