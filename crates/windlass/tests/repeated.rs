//! The same apply, again and again: answered as it was, until something has changed.

use testkit::Launch;

use crate::raw::{Answer, Connection};

const APPLY: &str = "application/apply-patch+yaml";
const SETTINGS: &str = "/api/v1/namespaces/default/configmaps";

/// Applies the same twice and checks that nothing tells the answers apart.
async fn apply_twice(admin: &mut Connection, request: &str, body: &str) -> Answer {
    let first = admin.ask_typed(request, APPLY, body).await;
    let second = admin.ask_typed(request, APPLY, body).await;
    assert_eq!(first.code, second.code);
    assert_eq!(first.body, second.body);
    assert_eq!(warnings(&first), warnings(&second));
    first
}

fn warnings(answer: &Answer) -> Vec<&str> {
    let lines = answer.head.lines();
    lines
        .filter(|line| line.to_ascii_lowercase().starts_with("warning:"))
        .collect()
}

fn settings(value: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "one"}},
            "data": {{"level": "{value}"}}}}"#
    )
}

#[tokio::test]
async fn a_refusal_is_repeated_until_the_object_changes() {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    let by = |manager: &str| format!("PATCH {SETTINGS}/one?fieldManager={manager}");
    let made = admin.ask_typed(&by("first"), APPLY, &settings("low")).await;
    assert_eq!(made.code, 201, "{}", made.body);

    let refused = apply_twice(&mut admin, &by("second"), &settings("high")).await;
    assert_eq!(refused.code, 409, "{}", refused.body);
    assert!(refused.body.contains(r#"conflict with \"first\""#));
    let told = warnings(&refused).join("\n");
    assert!(told.contains(r#"data.level is \"low\""#), "{told}");

    // Another wish, manager or way to ask is another apply.
    let other = apply_twice(&mut admin, &by("second"), &settings("highest")).await;
    assert!(warnings(&other).join("\n").contains("highest"));
    let same = apply_twice(&mut admin, &by("first"), &settings("low")).await;
    assert_eq!(same.code, 200, "{}", same.body);
    let dry = format!("{}&dryRun=All&force=true", by("second"));
    let forced = apply_twice(&mut admin, &dry, &settings("high")).await;
    assert_eq!(forced.code, 200, "{}", forced.body);

    let changed = admin
        .ask_typed(&by("first"), APPLY, &settings("middle"))
        .await;
    assert_eq!(changed.code, 200, "{}", changed.body);
    let refused = apply_twice(&mut admin, &by("second"), &settings("high")).await;
    let told = warnings(&refused).join("\n");
    assert!(told.contains(r#"data.level is \"middle\""#), "{told}");
    let agreed = admin
        .ask_typed(&by("second"), APPLY, &settings("middle"))
        .await;
    assert_eq!(agreed.code, 200, "{}", agreed.body);
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition whose objects have a size of this type.
fn definition(size: &str) -> String {
    format!(
        r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {{"name": "boxes.example.org"}},
            "spec": {{"group": "example.org", "scope": "Cluster",
                "names": {{"plural": "boxes", "kind": "Box"}},
                "versions": [{{"name": "v1", "served": true, "storage": true,
                    "schema": {{"openAPIV3Schema": {{"type": "object", "properties":
                        {{"size": {{"type": "{size}"}}}}}}}}}}]}}}}"#
    )
}

#[tokio::test]
async fn an_apply_is_judged_anew_when_its_definition_changes() {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    let define = format!("PATCH {DEFINITIONS}/boxes.example.org?fieldManager=author");
    let defined = admin
        .ask_typed(&define, APPLY, &definition("integer"))
        .await;
    assert_eq!(defined.code, 201, "{}", defined.body);

    let apply = "PATCH /apis/example.org/v1/boxes/one?fieldManager=first";
    let body = r#"{"apiVersion": "example.org/v1", "kind": "Box",
        "metadata": {"name": "one"}, "size": 7}"#;
    let made = admin.ask_typed(apply, APPLY, body).await;
    assert_eq!(made.code, 201, "{}", made.body);
    let same = apply_twice(&mut admin, apply, body).await;
    assert_eq!(same.code, 200, "{}", same.body);

    let changed = admin.ask_typed(&define, APPLY, &definition("string")).await;
    assert_eq!(changed.code, 200, "{}", changed.body);
    let refused = apply_twice(&mut admin, apply, body).await;
    assert_eq!(refused.code, 400, "{}", refused.body);
}
