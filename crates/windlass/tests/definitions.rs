//! What those notice who use a definition that goes.

use std::time::Duration;

use testkit::{Launch, TestServer};

use crate::raw::Connection;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str = r#"{"metadata": {"name": "widgets.example.org"},
    "spec": {"group": "example.org", "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#;
const WIDGETS: &str = "/apis/example.org/v1/widgets";
const WIDGET: &str = r#"{"apiVersion": "example.org/v1", "kind": "Widget",
    "metadata": {"name": "one", "finalizers": ["example.org/hold"]}}"#;

#[tokio::test]
async fn a_watch_sees_objects_go_with_their_definition() {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    for (path, object) in [(DEFINITIONS, DEFINITION), (WIDGETS, WIDGET)] {
        let answer = admin.ask(&format!("POST {path}"), &[], object).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
    }
    let mut watcher = Connection::open(&server).await;
    let watch = format!("GET {WIDGETS}?watch=1&resourceVersion=0");
    watcher.send(&watch, &[], "").await;
    let told = async {
        watcher.receive_until("ADDED").await;
        let delete = format!("DELETE {DEFINITIONS}/widgets.example.org");
        assert_eq!(admin.ask(&delete, &[], "").await.code, 200);
        watcher.receive_until("MODIFIED").await;
        let patch = format!("PATCH {WIDGETS}/one");
        let body = r#"{"metadata": {"finalizers": null}}"#;
        let merge = "application/merge-patch+json";
        assert_eq!(admin.ask_typed(&patch, merge, body).await.code, 200);
        watcher.receive_until("DELETED").await;
    };
    let patience = Duration::from_secs(30);
    tokio::time::timeout(patience, told).await.unwrap();
}

/// So many that they are written to in rounds.
const WATCHERS: usize = 60;
const OBJECTS: usize = 40;

#[tokio::test]
async fn many_watchers_all_see_every_object_go_with_its_definition() {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    let create = format!("POST {DEFINITIONS}");
    assert_eq!(admin.ask(&create, &[], DEFINITION).await.code, 201);
    for number in 0..OBJECTS {
        let object = format!(
            r#"{{"apiVersion": "example.org/v1", "kind": "Widget",
                "metadata": {{"name": "widget-{number}"}}}}"#
        );
        let answer = admin.ask(&format!("POST {WIDGETS}"), &[], &object).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
    }
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut watcher = Connection::open(&server).await;
        let watch = format!("GET {WIDGETS}?watch=1&resourceVersion=0");
        watcher.send(&watch, &[], "").await;
        watchers.push(watcher);
    }
    let told = async {
        for watcher in &mut watchers {
            watcher.receive_times("ADDED", OBJECTS).await;
        }
        let delete = format!("DELETE {DEFINITIONS}/widgets.example.org");
        assert_eq!(admin.ask(&delete, &[], "").await.code, 200);
        for watcher in &mut watchers {
            watcher.receive_times("DELETED", OBJECTS).await;
        }
    };
    let patience = Duration::from_secs(60);
    tokio::time::timeout(patience, told).await.unwrap();
}

#[tokio::test]
async fn rules_wait_for_metadata_and_empty_metadata_is_left_out() {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    let ruled = DEFINITION.replace(
        r#"{"type": "object"}"#,
        r#"{"type": "object", "x-kubernetes-validations": [{"rule": "has(self.spec)"}],
            "properties": {"spec": {"type": "object"}}}"#,
    );
    let answer = admin.ask(&format!("POST {DEFINITIONS}"), &[], &ruled).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    let post = format!("POST {WIDGETS}");
    let nameless = r#"{"apiVersion": "example.org/v1", "kind": "Widget"}"#;
    let answer = admin.ask(&post, &[], nameless).await;
    for said in ["[metadata.name: Required", "rules were not checked"] {
        assert!(answer.body.contains(said), "{}", answer.body);
    }

    let apply = "application/apply-patch+yaml";
    let body = r#"{"apiVersion": "example.org/v1", "kind": "Widget", "spec": {},
        "metadata": {"name": "one", "labels": {}, "finalizers": []}}"#;
    let by = |manager| format!("PATCH {WIDGETS}/one?fieldManager={manager}");
    let answer = admin.ask_typed(&by("first"), apply, body).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    assert!(!answer.body.contains(r#""labels""#), "{}", answer.body);
    assert!(!answer.body.contains(r#""finalizers""#), "{}", answer.body);
    // What is not there is set by the second as it was by the first.
    let answer = admin.ask_typed(&by("second"), apply, body).await;
    assert_eq!(answer.code, 409, "{}", answer.body);
    assert!(answer.body.contains(".metadata.labels"), "{}", answer.body);
}

#[tokio::test]
async fn an_applied_null_that_no_one_reads_is_owned_but_not_kept() {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    let open = DEFINITION.replace(
        r#"{"type": "object"}"#,
        r#"{"type": "object", "properties": {
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "none": {"type": "string", "nullable": true}}}"#,
    );
    let answer = admin.ask(&format!("POST {DEFINITIONS}"), &[], &open).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    let body = r#"{"apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "one"}, "any": null, "none": null}"#;
    let apply = format!("PATCH {WIDGETS}/one?fieldManager=first");
    let mut versions = Vec::new();
    for _ in 0..2 {
        let answer = admin
            .ask_typed(&apply, "application/apply-patch+yaml", body)
            .await;
        let object: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(object.get("any"), None, "{}", answer.body);
        assert_eq!(object.get("none"), Some(&serde_json::Value::Null));
        assert!(answer.body.contains("f:any"), "{}", answer.body);
        versions.push(object["metadata"]["resourceVersion"].clone());
    }
    assert_eq!(versions[0], versions[1], "the second apply changes nothing");
}

const GADGETS: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.org"},
    "spec": {"group": "example.org", "scope": "Cluster",
        "names": {"plural": "gadgets", "kind": "Gadget"}, "versions": [VERSION("v1", true),
            VERSION("v2", false)]}}"#;
const VERSION: &str = r#"{"name": "NAME", "served": true, "storage": STORED,
    "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"a": {"type": "string"}}},
        "status": {"type": "object", "properties": {"b": {"type": "string"}}}}}}}"#;

/// A definition of two versions that differ in their names alone.
fn gadgets() -> String {
    let version = |name, stored| VERSION.replace("NAME", name).replace("STORED", stored);
    GADGETS
        .replace(r#"VERSION("v1", true)"#, &version("v1", "true"))
        .replace(r#"VERSION("v2", false)"#, &version("v2", "false"))
}

async fn server_with_gadgets() -> (TestServer, Connection) {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    let line = format!("POST {DEFINITIONS}");
    let answer = admin.ask(&line, &[], &gadgets()).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    (server, admin)
}

#[tokio::test]
async fn who_owns_a_status_in_two_versions() {
    let (_server, mut admin) = server_with_gadgets().await;
    let body = |version: &str, rest: &str| {
        format!(
            r#"{{"apiVersion": "example.org/{version}", "kind": "Gadget",
                "metadata": {{"name": "one"}}, {rest}}}"#
        )
    };
    let apply = "application/apply-patch+yaml";
    let one = "/apis/example.org/VERSION/gadgets/one";
    for (version, part, manager, rest, code) in [
        ("v1", "", "first", r#""spec": {"a": "x"}"#, 201),
        ("v1", "/status", "second", r#""status": {"b": "x"}"#, 200),
        // Through the object itself a status is passed over, but only in the version asked for.
        ("v1", "", "third", r#""status": {"b": "y"}"#, 200),
        ("v2", "", "third", r#""status": {"b": "y"}"#, 409),
    ] {
        let path = one.replace("VERSION", version);
        let line = format!("PATCH {path}{part}?fieldManager={manager}");
        let answer = admin.ask_typed(&line, apply, &body(version, rest)).await;
        assert_eq!(answer.code, code, "{line}: {}", answer.body);
    }
    // What the status cannot change is not validated, and the owners stay.
    let line = format!("PATCH {}/status", one.replace("VERSION", "v1"));
    let merge = "application/merge-patch+json";
    let answer = admin.ask_typed(&line, merge, r#"{"spec": {"a": 5}}"#).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    for owner in ["first", "second"] {
        let entry = format!(r#""manager":"{owner}""#);
        assert!(answer.body.contains(&entry), "{}", answer.body);
    }
    assert!(answer.body.contains(r#"{"a":"x"}"#), "{}", answer.body);
}

#[tokio::test]
async fn another_schema_alone_changes_no_object() {
    let (_server, mut admin) = server_with_gadgets().await;
    let gadget =
        r#"{"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": "one"}}"#;
    let path = "/apis/example.org/v1/gadgets";
    let made = admin.ask(&format!("POST {path}"), &[], gadget).await;
    assert_eq!(made.code, 201, "{}", made.body);
    let merge = "application/merge-patch+json";
    let line = format!("PATCH {DEFINITIONS}/gadgets.example.org");
    let versions = gadgets().replace(r#""a": {"#, r#""c": {"type": "string"}, "a": {"#);
    let start = versions.find(r#""versions""#).unwrap();
    let patch = format!(r#"{{"spec": {{{}"#, &versions[start..]);
    let answer = admin.ask_typed(&line, merge, &patch).await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    let answer = admin
        .ask_typed(&format!("PATCH {path}/one"), merge, "{}")
        .await;
    assert_eq!(answer.body, made.body);
}
