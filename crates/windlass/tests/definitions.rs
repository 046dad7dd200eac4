//! What those notice who use a definition that goes.

use std::time::Duration;

use testkit::Launch;

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
