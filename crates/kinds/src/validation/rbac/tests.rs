//! Cases: roles and bindings, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_say_what_may_be_done_to_what() {
    let new = map(value!({"rules": [
        {"verbs": [], "resources": ["pods"], "apiGroups": [""]},
        {"verbs": ["get"], "resources": ["pods"]},
        {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}
    ]}));
    assert_eq!(
        printed(role(&new, None, "")),
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[2].nonResourceURLs: Invalid value: [\"/healthz\"]: namespaced rules cannot apply to non-resource URLs",
        ]
    );
}

#[test]
fn a_binding_keeps_its_role() {
    let binding = |kind: &str, name: &str, subject: &str| {
        map(value!({"metadata": {"name": "b", "namespace": "n"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": subject, "name": "x", "apiGroup": ""}]}))
    };
    let old = binding("Role", "one", "ServiceAccount");
    assert!(role_binding(&old, None, "").is_empty());
    assert_eq!(
        printed(role_binding(
            &binding("Role", "two", "ServiceAccount"),
            Some(&old),
            ""
        )),
        [
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"two\"}: cannot change roleRef"
        ]
    );
    assert_eq!(
        printed(role_binding(&binding("Secret", "one", "Robot"), None, "")),
        [
            "roleRef.kind: Unsupported value: \"Secret\": supported values: \"Role\", \"ClusterRole\"",
            "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
        ]
    );
}
