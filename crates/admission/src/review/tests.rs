//! Reviews of admission: what is asked, and which answers are taken.

use super::*;
use crate::attributes::Operation;

fn answer(response: &str) -> Vec<u8> {
    let head = "\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\"";
    format!("{{{head},\"response\":{response}}}").into_bytes()
}

fn refusal(role: Role, body: &[u8]) -> String {
    read(Version::V1, "u-1", role, body)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_review_has_everything_that_upstream_sends() {
    let request = Attributes {
        operation: Operation::Update,
        kind: GroupVersionKind::new("autoscaling", "v1", "Scale"),
        resource: GroupVersionResource::new("apps", "v1", "deployments"),
        subresource: "scale",
        name: "web",
        namespace: "shop",
        dry_run: true,
        user: value!({"username": "ann"}),
        options: value!({"kind": "UpdateOptions"}),
    };
    let object = value!({"apiVersion": "autoscaling/v1", "kind": "Scale", "a": 1});
    let shown = Shown {
        kind: &request.kind,
        resource: &request.resource,
        object: object.as_object(),
        old: None,
    };
    let text = String::from_utf8(write(Version::V1Beta1, "u-1", &request, shown)).unwrap();
    let expected = concat!(
        r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"#,
        r#""uid":"u-1","kind":{"group":"autoscaling","kind":"Scale","version":"v1"},"#,
        r#""resource":{"group":"apps","resource":"deployments","version":"v1"},"#,
        r#""subResource":"scale","#,
        r#""requestKind":{"group":"autoscaling","kind":"Scale","version":"v1"},"#,
        r#""requestResource":{"group":"apps","resource":"deployments","version":"v1"},"#,
        r#""requestSubResource":"scale","name":"web","namespace":"shop","operation":"UPDATE","#,
        r#""userInfo":{"username":"ann"},"object":{"kind":"Scale","#,
        r#""apiVersion":"autoscaling/v1","a":1},"oldObject":null,"dryRun":true,"#,
        r#""options":{"kind":"UpdateOptions"}}}"#,
    );
    assert_eq!(text, expected);
}

#[test]
fn what_is_wrong_with_an_answer_is_told_as_upstream_tells_it() {
    let cases: [(Role, Vec<u8>, &str); 10] = [
        (
            Role::Validating,
            b"{}".to_vec(),
            "received invalid webhook response: webhook response was absent",
        ),
        (
            Role::Validating,
            answer(r#"{"uid":"u-2","allowed":true}"#),
            r#"received invalid webhook response: expected response.uid="u-1", got "u-2""#,
        ),
        (
            Role::Validating,
            br#"{"response":{"uid":"u-1","allowed":true}}"#.to_vec(),
            "received invalid webhook response: expected webhook response of \
             admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        ),
        (
            Role::Validating,
            br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1",
                "response":{"uid":"u-1","allowed":true}}"#
                .to_vec(),
            "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): \
             unknown conversion",
        ),
        (
            Role::Validating,
            answer(r#"{"uid":"u-1","allowed":true,"patch":"W10="}"#),
            "received invalid webhook response: validating webhook may not return response.patch",
        ),
        (
            Role::Mutating,
            answer(r#"{"uid":"u-1","allowed":true,"patch":"W10="}"#),
            "received invalid webhook response: webhook returned response.patch but not \
             response.patchType",
        ),
        (
            Role::Mutating,
            answer(r#"{"uid":"u-1","allowed":true,"patchType":"JSONPatch"}"#),
            "received invalid webhook response: webhook returned response.patchType but not \
             response.patch",
        ),
        (
            Role::Mutating,
            answer(r#"{"uid":"u-1","allowed":"yes"}"#),
            "failed to call webhook: json: cannot unmarshal string into Go struct field \
             AdmissionResponse.response.allowed of type bool",
        ),
        (
            Role::Mutating,
            br#"{"kind":"Pod","apiVersion":"v1"}"#.to_vec(),
            "failed to call webhook: no kind \"Pod\" is registered for version \"v1\" in scheme \
             \"k8s.io/apiserver/pkg/util/webhook/client.go:71\"",
        ),
        (
            Role::Mutating,
            br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no"}"#.to_vec(),
            "failed to call webhook: no",
        ),
    ];
    for (role, body, expected) in cases {
        assert_eq!(refusal(role, &body), expected);
    }
}

#[test]
fn an_answer_of_the_older_version_need_not_repeat_the_uid() {
    let body = br#"{"response":{"allowed":true,"patch":"W10="}}"#;
    let verdict = read(Version::V1Beta1, "u-1", Role::Mutating, body).unwrap();
    assert!(verdict.allowed);
    assert_eq!(verdict.patch, b"[]");
}

#[test]
fn a_denial_says_why_with_a_code_of_failure() {
    let denial = |status: Value| {
        let status = status.as_object().cloned();
        let denial = Denial::by_webhook("a.b.c", status);
        (denial.code, denial.message)
    };
    let denied = "admission webhook \"a.b.c\" denied the request";
    let cases = [
        (value!(null), 400, " without explanation"),
        (value!({"message": "no", "code": 200}), 400, ": no"),
        (value!({"message": "no", "code": 418}), 418, ": no"),
        (value!({"reason": "Teapot", "code": 403}), 403, ": Teapot"),
    ];
    for (status, code, text) in cases {
        assert_eq!(denial(status), (code, format!("{denied}{text}")));
    }
}
