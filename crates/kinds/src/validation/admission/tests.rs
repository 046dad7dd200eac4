//! Cases: webhooks and policies, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn hook(changed: Value) -> Value {
    let mut good = map(value!({"name": "a.hooks.example", "sideEffects": "None",
        "clientConfig": {"url": "https://hooks.example/x"}, "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"], "scope": "*"}]}));
    for (key, value) in map(changed) {
        match value {
            Value::Null => good.remove(&key),
            value => good.insert(key, value),
        };
    }
    good.into()
}

#[test]
fn webhooks_are_checked() {
    let cases: Vec<(Value, &[&str])> = vec![
        (value!({}), &[]),
        (
            value!({"sideEffects": null}),
            &["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"],
        ),
        (
            value!({"sideEffects": "Some"}),
            &[
                "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            ],
        ),
        (
            value!({"name": "short"}),
            &[
                "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
            ],
        ),
        (
            value!({"clientConfig": {"url": "http://hooks.example/x"}}),
            &[
                "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ],
        ),
        (
            value!({"timeoutSeconds": 31}),
            &[
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            ],
        ),
        (
            value!({"clientConfig": {}}),
            &[
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            ],
        ),
    ];
    for (changed, expected) in cases {
        let new = map(value!({"webhooks": [(hook(changed))]}));
        assert_eq!(printed(webhooks(&new, None, "")), expected);
    }
    let twice = map(value!({"webhooks": [(hook(value!({}))), (hook(value!({})))]}));
    assert_eq!(
        printed(webhooks(&twice, None, "")),
        ["webhooks[1].name: Duplicate value: \"a.hooks.example\""]
    );
}

#[test]
fn policies_say_what_they_match_and_refuse() {
    let empty = map(value!({"metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail"}}));
    assert_eq!(
        printed(validating_policy(&empty, None, "")),
        [
            "spec.matchConstraints: Required value",
            "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
            "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
        ]
    );
    let binding =
        map(value!({"spec": {"policyName": "p", "validationActions": ["Deny", "Warn", "Stop"]}}));
    assert_eq!(
        printed(validating_policy_binding(&binding, None, "")),
        [
            "spec.validationActions[2]: Unsupported value: \"Stop\": supported values: \"Audit\", \"Deny\", \"Warn\"",
            "spec.validationActions: Invalid value: [\"Deny\",\"Warn\",\"Stop\"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
        ]
    );
}

#[test]
fn mistakes_of_a_policy_stand_in_upstreams_order() {
    let rule = value!({"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["pods"], "scope": "*"});
    let constraints = value!({"resourceRules": [(rule)], "matchPolicy": "Exact",
        "namespaceSelector": {}, "objectSelector": {}});
    let mutating = map(
        value!({"metadata": {"name": "p"}, "spec": {"failurePolicy": "Fail",
        "matchConstraints": (constraints.clone()), "variables": [{"name": "", "expression": "1"}]}}),
    );
    assert_eq!(
        printed(mutating_policy(&mutating, None, "")),
        [
            "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"UPDATE\"",
            "spec.variables[0].name: Required value: name is not specified",
            "spec.mutations: Required value: mutations must contain at least one item",
            "spec.reinvocationPolicy: Required value",
        ]
    );
    let validating = map(value!({"spec": {"failurePolicy": "Fail",
        "matchConstraints": (constraints),
        "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}]}}));
    assert_eq!(
        printed(validating_policy(&validating, None, "")),
        ["spec.auditAnnotations[0].key: Invalid value: \"k\": requires metadata.name be non-empty"]
    );
}
