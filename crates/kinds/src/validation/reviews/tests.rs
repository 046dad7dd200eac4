//! Cases: questions, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_question_names_who_and_what() {
    let asks = |spec: Value| map(value!({"spec": spec}));
    let empty = asks(value!({"user": "jane"}));
    assert_eq!(
        printed(access("SubjectAccessReview", &empty)),
        [
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        ]
    );
    let nobody = asks(value!({"nonResourceAttributes": {"path": "/", "verb": "get"}}));
    assert_eq!(
        printed(access("SubjectAccessReview", &nobody)),
        ["spec.user: Invalid value: \"\": at least one of user or group must be specified"]
    );
    assert!(access("SelfSubjectAccessReview", &nobody).is_empty());
    let local = map(value!({"metadata": {"namespace": "here"},
        "spec": {"user": "jane", "resourceAttributes": {"namespace": "there"}}}));
    assert_eq!(
        printed(access("LocalSubjectAccessReview", &local)),
        [
            "spec.resourceAttributes.namespace: Invalid value: \"there\": must match metadata.namespace"
        ]
    );
}

#[test]
fn tokens_last_ten_minutes_at_least() {
    let short = map(value!({"spec": {"expirationSeconds": 60}}));
    assert_eq!(
        printed(token_request(&short)),
        [
            "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes"
        ]
    );
}
