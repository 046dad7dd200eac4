//! Questions that are answered and never stored.

use auth::{Anonymous, Authenticator, StaticTokens, User};
use object::{Value, value};

use crate::fixture::{Ask, refusal, server};

const GROUP: &str = "authorization.k8s.io";

#[tokio::test]
async fn who_may_do_what() {
    let resources = server().await;
    let pods = value!({"verb": "list", "resource": "pods", "namespace": "default"});
    let ask = Ask::new(&resources, GROUP, "selfsubjectaccessreviews");
    let spec = value!({"resourceAttributes": (pods.clone())});
    let answer = ask.create(value!({"spec": spec})).await.unwrap();
    assert_eq!(answer.get("status"), Some(&value!({"allowed": true})));
    assert!(answer.at(&["metadata", "managedFields"]).is_some());

    let ask = Ask::new(&resources, GROUP, "subjectaccessreviews");
    let spec = value!({"user": "someone", "resourceAttributes": pods});
    let answer = ask.create(value!({"spec": spec})).await.unwrap();
    assert_eq!(answer.get("status"), Some(&value!({"allowed": false})));
    let refused = refusal(ask.create(value!({"spec": {"user": "someone"}})).await);
    assert_eq!(
        refused,
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: \
         exactly one of nonResourceAttributes or resourceAttributes must be specified"
    );
}

#[tokio::test]
async fn selectors_that_cannot_be_understood_are_told() {
    let resources = server().await;
    let ask = Ask::new(&resources, GROUP, "subjectaccessreviews");
    let told = |name: &str, how: &str| {
        format!("spec.resourceAttributes.{name} {how}ignored due to parse error")
    };
    let cases = [
        (value!({"fieldSelector": {"rawSelector": "a=b"}}), None),
        (
            value!({"fieldSelector": {"rawSelector": "a b"}}),
            Some(told("fieldSelector", "")),
        ),
        (
            value!({"fieldSelector": {"requirements": [
                {"key": "a", "operator": "In", "values": ["x"]},
                {"key": "b", "operator": "Exists"},
            ]}}),
            Some(told("fieldSelector", "partially ")),
        ),
        (
            value!({"labelSelector": {"requirements": [
                {"key": "a", "operator": "In", "values": ["x", "y"]},
                {"key": "b", "operator": "Exists"},
            ]}}),
            None,
        ),
        (
            value!({
                "fieldSelector": {"rawSelector": "a b"},
                "labelSelector": {"requirements": [{"key": "a", "operator": "Newer"}]},
            }),
            Some(format!(
                "{}; {}",
                told("fieldSelector", ""),
                told("labelSelector", "")
            )),
        ),
    ];
    for (selectors, expected) in cases {
        let shown = format!("{selectors:?}");
        let mut attributes = value!({"verb": "list", "resource": "pods"});
        let map = attributes.as_object_mut().unwrap();
        for (key, value) in selectors.as_object().unwrap().iter() {
            map.insert(key.clone(), value.clone());
        }
        let spec = value!({"user": "someone", "resourceAttributes": attributes});
        let answer = ask.create(value!({"spec": spec})).await.unwrap();
        let found = answer.str_at(&["status", "evaluationError"]);
        assert_eq!(found, expected.as_deref(), "{shown}");
    }
    let attributes = value!({"verb": "list", "resource": "pods", "labelSelector": {}});
    let spec = value!({"user": "someone", "resourceAttributes": attributes});
    let refused = refusal(ask.create(value!({"spec": spec})).await);
    assert!(
        refused.contains("requirements or rawSelector is required"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_local_question_stays_in_its_namespace() {
    let resources = server().await;
    let ask = Ask::new(&resources, GROUP, "localsubjectaccessreviews");
    let attributes = value!({"verb": "get", "resource": "pods", "namespace": "other"});
    let spec = value!({"user": "someone", "resourceAttributes": attributes});
    let refused = refusal(ask.create(value!({"spec": spec})).await);
    assert_eq!(
        refused,
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid value: \
         \"other\": must match metadata.namespace"
    );
}

#[tokio::test]
async fn who_is_asking() {
    let resources = server().await;
    let ask = Ask::new(&resources, "authentication.k8s.io", "selfsubjectreviews");
    let answer = ask.create(value!({})).await.unwrap();
    let info = value!({
        "username": "admin", "uid": "admin",
        "groups": ["system:masters", "system:authenticated"],
    });
    assert_eq!(answer.at(&["status", "userInfo"]), Some(&info));
}

#[tokio::test]
async fn whose_token_it_is() {
    let jane = User::authenticated("jane", "", &[]);
    let audiences = vec!["api".into()];
    let tokens = StaticTokens::new([("secret".to_owned(), jane)], &audiences);
    let authenticator = Authenticator::new(audiences, Anonymous::Allowed).with_tokens(tokens);
    let resources = server().await.with_authenticator(authenticator.into());
    let ask = Ask::new(&resources, "authentication.k8s.io", "tokenreviews");
    let review = |token: &str| value!({"spec": {"token": token}});
    let answer = ask.create(review("secret")).await.unwrap();
    assert_eq!(
        answer.at(&["status", "authenticated"]),
        Some(&Value::Bool(true))
    );
    assert_eq!(answer.str_at(&["status", "user", "username"]), Some("jane"));
    let answer = ask.create(review("wrong")).await.unwrap();
    let wrong = value!({"user": {}, "error": "invalid bearer token"});
    assert_eq!(answer.get("status"), Some(&wrong));
    let refused = refusal(ask.create(review("")).await);
    assert_eq!(
        refused,
        "token is required for TokenReview in authentication"
    );
}
