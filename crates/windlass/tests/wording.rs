//! Requests that are wrong in a small way, and what the server says about each.
//!
//! People and programs match on these texts, so they are upstream's to the letter. A case is a
//! request, the type of its body, the body, and the code and text of the answer.

use serde_json::Value;
use testkit::Launch;

use crate::raw::Connection;

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

const DEFINITION: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.org"},
    "spec": {"group": "example.org", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}
            }}}}]}}"#;
const WIDGET: &str = r#"{"apiVersion": "example.org/v1", "kind": "Widget",
    "metadata": {"name": "one"}, "spec": {"replicas": 1}}"#;

/// Objects that the cases are about.
async fn set_up(admin: &mut Connection) {
    let objects = [
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            DEFINITION,
        ),
        (
            "/api/v1/namespaces/default/configmaps",
            r#"{"metadata": {"name": "one"}}"#,
        ),
        (
            "/api/v1/namespaces/default/replicationcontrollers",
            r#"{"metadata": {"name": "one"}, "spec": {"selector": {"a": "b"}, "template":
                {"metadata": {"labels": {"a": "b"}}, "spec": {"containers":
                    [{"name": "main", "image": "x"}]}}}}"#,
        ),
        ("/apis/example.org/v1/namespaces/default/widgets", WIDGET),
    ];
    for (path, object) in objects {
        let answer = admin.ask(&format!("POST {path}"), &[], object).await;
        assert_eq!(answer.code, 201, "{path}: {}", answer.body);
    }
}

type Case = (&'static str, &'static str, &'static str, u16, &'static str);

async fn check(admin: &mut Connection, cases: &[Case]) {
    for (request, content_type, body, code, text) in cases {
        let (method, path) = request.split_once(' ').unwrap();
        let place = if path.starts_with("widgets") {
            "/apis/example.org/v1/namespaces/default"
        } else {
            "/api/v1/namespaces/default"
        };
        let line = format!("{method} {place}/{path}");
        let answer = admin.ask_typed(&line, content_type, body).await;
        assert_eq!(answer.code, *code, "{line} {body}: {}", answer.body);
        let status: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let message = status["message"].as_str().unwrap_or_default();
        assert!(message.contains(text), "{line} {body}: {message}");
    }
}

#[tokio::test]
async fn what_is_said_about_small_mistakes() {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    set_up(&mut admin).await;
    check(&mut admin, BODIES).await;
    check(&mut admin, PATCHES).await;
    check(&mut admin, PARTS).await;
    check(&mut admin, CUSTOM).await;
    check(&mut admin, MISFITS).await;
    check(&mut admin, DELETIONS).await;
}

#[tokio::test]
async fn an_empty_list_of_managers_clears_those_of_built_in_objects_alone() {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    set_up(&mut admin).await;
    let cleared = r#"{"metadata": {"managedFields": []}}"#;
    for (path, remain) in [
        (
            "/api/v1/namespaces/default/replicationcontrollers/one",
            false,
        ),
        ("/apis/example.org/v1/namespaces/default/widgets/one", true),
    ] {
        let line = format!("PATCH {path}");
        let answer = admin.ask_typed(&line, MERGE, cleared).await;
        assert_eq!(answer.code, 200, "{path}: {}", answer.body);
        assert_eq!(answer.body.contains("managedFields"), remain, "{path}");
    }
}

/// Giving up a field in one version leaves it there if the other version always prints it.
#[tokio::test]
async fn what_does_a_manager_give_up_by_way_of_another_version() {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    let spec = r#""spec": {"maxReplicas": 5, "minReplicas": 2, "scaleTargetRef":
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}"#;
    let nothing = r#""spec": {}"#;
    for (version, spec, code) in [("v2", spec, 201), ("v1", nothing, 200)] {
        let path = format!("/apis/autoscaling/{version}/namespaces/default");
        let line = format!("PATCH {path}/horizontalpodautoscalers/one?fieldManager=m");
        let body = format!(
            r#"{{"apiVersion": "autoscaling/{version}", "kind": "HorizontalPodAutoscaler",
                "metadata": {{"name": "one"}}, {spec}}}"#
        );
        let answer = admin.ask_typed(&line, APPLY, &body).await;
        assert_eq!(answer.code, code, "{version}: {}", answer.body);
        let object: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(object["spec"]["maxReplicas"], 5);
        assert_eq!(object["spec"]["scaleTargetRef"]["name"], "d");
        let expected = if version == "v1" { 1 } else { 2 };
        assert_eq!(object["spec"]["minReplicas"], expected);
    }
}

const MISFITS: &[Case] = &[
    (
        "POST serviceaccounts",
        JSON,
        r#"{"metadata": {"name": "one"}, "secrets": [{}]}"#,
        201,
        "",
    ),
    (
        "PATCH serviceaccounts/one?fieldManager=m",
        APPLY,
        r#"{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "one"}}"#,
        400,
        "failed to create manager for existing fields: failed to convert new object (default/one; \
         /v1, Kind=ServiceAccount) to smd typed: .secrets: element 0: associative list with keys \
         has an element that omits all key fields [\"name\"] (and doesn't have default values for \
         any key fields)",
    ),
    (
        "PATCH replicationcontrollers/one/scale?fieldManager=m",
        APPLY,
        r#"{"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "one", "managedFields": []}}"#,
        400,
        "metadata.managedFields must be nil",
    ),
    (
        "PATCH widgets/one",
        MERGE,
        r#"{"apiVersion": null}"#,
        400,
        "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion \
         field'",
    ),
    (
        "PATCH widgets/one",
        MERGE,
        r#"{"apiVersion": "a/b/c"}"#,
        422,
        ": unexpected GroupVersion string: a/b/c",
    ),
];

const BODIES: &[Case] = &[
    (
        "PUT configmaps/one",
        JSON,
        r#"{"metadata": {"name": "two", "namespace": "other"}}"#,
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    (
        "POST configmaps",
        JSON,
        r#"{"apiVersion": "a/b/c"}"#,
        400,
        "unexpected GroupVersion string",
    ),
    (
        "POST configmaps",
        JSON,
        r#"{"apiVersion": "v1", "kind": "ConfigMapList"}"#,
        400,
        "converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion",
    ),
    (
        "PUT configmaps/one",
        JSON,
        "null",
        400,
        "name must be provided",
    ),
    (
        "POST configmaps?fieldValidation=Strict",
        JSON,
        r#"{"metadata": {"name": "two"}, "foo": 1, "foo": 2, "data": {"a": "1", "a": "2"}}"#,
        400,
        r#"strict decoding error: unknown field "foo", duplicate field "data.a""#,
    ),
];

const PATCHES: &[Case] = &[
    (
        "PATCH configmaps/none",
        MERGE,
        "{",
        404,
        r#"configmaps "none" not found"#,
    ),
    (
        "PATCH configmaps/one",
        MERGE,
        "",
        400,
        "error decoding patch: ",
    ),
    (
        "PATCH configmaps/one",
        MERGE,
        "null",
        400,
        "Invalid JSON Patch",
    ),
    (
        "PATCH configmaps/one",
        STRATEGIC,
        r#"{"kind": "Secret"}"#,
        200,
        "",
    ),
    (
        "PATCH configmaps/one?fieldValidation=Strict",
        MERGE,
        r#"{"foo": 1, "data": {"a": "1", "a": "2"}}"#,
        422,
        r#"strict decoding error: duplicate field "data.a", unknown field "foo""#,
    ),
];

const PARTS: &[Case] = &[
    (
        "PATCH replicationcontrollers/none/scale?fieldManager=m",
        APPLY,
        r#"{"apiVersion": "v1", "kind": "Foo"}"#,
        404,
        r#"replicationcontrollers "none" not found"#,
    ),
    (
        "PATCH replicationcontrollers/one/scale?fieldValidation=Strict",
        MERGE,
        r#"{"foo": 1}"#,
        422,
        r#"strict decoding error: unknown field "foo""#,
    ),
    (
        "PATCH replicationcontrollers/one/scale",
        MERGE,
        r#"{"kind": "Foo"}"#,
        422,
        r#"no kind "Foo" is registered for version "autoscaling/v1""#,
    ),
    (
        "PUT replicationcontrollers/one/scale?fieldValidation=Strict",
        JSON,
        r#"{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one"},
            "spec": {"replicas": 1, "foo": 1}}"#,
        400,
        r#"Scale in version "v1" cannot be handled as a Scale: strict decoding error: unknown "#,
    ),
];

const CUSTOM: &[Case] = &[
    (
        "POST widgets?fieldValidation=Ignore",
        JSON,
        r#"{"metadata": {"name": "two"}}"#,
        400,
        "Widget in version \"v1\" cannot be handled as a Widget: Object 'Kind' is missing in '{",
    ),
    (
        "POST widgets?fieldValidation=Strict",
        JSON,
        r#"{"metadata": {"name": "two"}}"#,
        400,
        "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing",
    ),
    (
        "PUT widgets/one",
        JSON,
        r#"{"apiVersion": "example.org/v1", "kind": "Other", "metadata": {"name": "one"}}"#,
        422,
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
    ),
    (
        "PATCH widgets/one",
        MERGE,
        r#"{"kind": "Other", "metadata": {"name": "two"}}"#,
        400,
        "the name of the object (two) does not match the name on the URL (one)",
    ),
    (
        "PATCH widgets/one",
        MERGE,
        r#"{"kind": "Other"}"#,
        422,
        "kind: Invalid value: \"Other\": must be Widget",
    ),
    (
        "PATCH widgets/one",
        MERGE,
        r#"{"kind": null}"#,
        422,
        "Object 'Kind' is missing in '{",
    ),
    ("PUT widgets", JSON, WIDGET, 400, "name must be provided"),
    (
        "DELETE widgets/one/status",
        JSON,
        "",
        405,
        r#"delete is not supported on resources of kind "widgets.example.org""#,
    ),
    (
        "POST widgets/other",
        JSON,
        WIDGET,
        409,
        r#"widgets.example.org "one" already exists"#,
    ),
    (
        "POST widgets",
        JSON,
        "null",
        400,
        "Object 'Kind' is missing in 'null'",
    ),
    (
        "PUT widgets/one",
        JSON,
        r#"{"apiVersion": "example.org/v1", "kind": "Widget", "metadata":
            {"name": "one", "uid": "x"}}"#,
        409,
        "Precondition failed: UID in precondition: x",
    ),
    (
        "POST widgets?fieldValidation=Strict",
        "application/yaml",
        "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: two}\nspec:\n  \
         replicas: 1\n  replicas: 2\n  foo: 1\n",
        400,
        "strict decoding error: yaml: unmarshal errors:\n  line 6: key \"replicas\" already set in \
         map, unknown field \"spec.foo\"",
    ),
];

const DELETIONS: &[Case] = &[
    (
        "DELETE configmaps/one",
        JSON,
        r#"{"preconditions": "x"}"#,
        400,
        "into Go struct field DeleteOptions.preconditions of type v1.Preconditions",
    ),
    (
        "DELETE configmaps/one?resourceVersion=abc",
        JSON,
        "",
        409,
        "(abc) does not match",
    ),
    (
        "DELETE configmaps/one?propagationPolicy=",
        JSON,
        "",
        422,
        r#"Unsupported value: """#,
    ),
    (
        "DELETE configmaps/one",
        JSON,
        r#"{"dryRun": "All"}"#,
        400,
        "DeleteOptions.dryRun of type",
    ),
    (
        "DELETE configmaps/one",
        JSON,
        "[]",
        400,
        "json: cannot unmarshal array",
    ),
    (
        "DELETE configmaps/one",
        JSON,
        r#"{"kind": "Foo"}"#,
        400,
        r#"no kind "Foo" is registered for version "meta.k8s.io/v1" in scheme "#,
    ),
];
