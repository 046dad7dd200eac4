//! Cases: files, and what is said about them; questions, and whether a webhook sees them.

use super::*;
use crate::authorize::Attributes;
use crate::user::User;

fn file(authorizers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n\
         authorizers: {authorizers}\n"
    )
}

fn webhook(edit: impl Fn(&str) -> String) -> String {
    let whole = "timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, \
                 matchConditionSubjectAccessReviewVersion: v1, connectionInfo: {type: \
                 KubeConfigFile, kubeConfigFile: /hook}";
    file(&format!(
        "[{{type: Webhook, name: hook, webhook: {{{}}}}}]",
        edit(whole)
    ))
}

fn only(config: AuthorizationConfig) -> WebhookConfig {
    match config.authorizers.into_iter().next() {
        Some(AuthorizerConfig::Webhook(webhook)) => *webhook,
        other => panic!("this is no webhook: {other:?}"),
    }
}

#[test]
fn which_mistakes_are_told_and_where() {
    let kind = file("[{type: RBAC, name: a}]").replace("AuthorizationC", "C");
    let cases = [
        (kind, "kind: must be AuthorizationConfiguration"),
        (
            file("[]"),
            "authorizers: Required value: at least one authorization mode must be defined",
        ),
        (file("[{name: a}]"), "authorizers[0].type: Required value"),
        (
            file("[{type: ABAC, name: a}]"),
            "authorizers[0].type: Unsupported value: \"ABAC\": supported values: \"AlwaysAllow\", \
             \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"",
        ),
        (
            file("[{type: RBAC, name: a}, {type: RBAC, name: b}]"),
            "authorizers[1].type: Duplicate value: \"RBAC\"",
        ),
        (
            file("[{type: RBAC}]"),
            "authorizers[0].name: Required value",
        ),
        (
            file("[{type: RBAC, name: a}, {type: Node, name: a}]"),
            "authorizers[1].name: Duplicate value: \"a\"",
        ),
        (
            file("[{type: RBAC, name: a, extra: 1}]"),
            "authorizers[0].extra: unknown field",
        ),
        (
            file("[{type: RBAC, name: a, webhook: {}}]"),
            "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when \
             type=Webhook",
        ),
        (
            file("[{type: Webhook, name: a}]"),
            "authorizers[0].webhook: Required value: required when type=Webhook",
        ),
        (
            webhook(|it| it.replace("timeout: 3s, ", "")),
            "authorizers[0].webhook.timeout: Required value",
        ),
        (
            webhook(|it| it.replace("3s", "31s")),
            "authorizers[0].webhook.timeout: must be > 0s and <= 30s",
        ),
        (
            webhook(|it| it.replace("Version: v1, f", "Version: v2, f")),
            "authorizers[0].webhook.subjectAccessReviewVersion: Unsupported value: \"v2\": \
             supported values: \"v1\", \"v1beta1\"",
        ),
        (
            webhook(|it| it.replace("Policy: Deny", "Policy: Allow")),
            "authorizers[0].webhook.failurePolicy: Unsupported value: \"Allow\": supported \
             values: \"NoOpinion\", \"Deny\"",
        ),
        (
            webhook(|it| it.replace("/hook", "hook")),
            "authorizers[0].webhook.connectionInfo.kubeConfigFile: Invalid value: \"hook\": must \
             be an absolute path",
        ),
        (
            webhook(|it| {
                let version = "matchConditionSubjectAccessReviewVersion: v1, ";
                format!(
                    "{}, matchConditions: [{{expression: 'true'}}]",
                    it.replace(version, "")
                )
            }),
            "authorizers[0].webhook.matchConditionSubjectAccessReviewVersion: Required value: \
             required if match conditions are specified",
        ),
        (
            webhook(|it| format!("{it}, matchConditions: [{{expression: request.user}}]")),
            "authorizers[0].webhook.matchConditions[0].expression: must evaluate to bool",
        ),
        (
            webhook(|it| format!("{it}, matchConditions: [{{expression: request.nobody}}]")),
            "authorizers[0].webhook.matchConditions[0].expression: compilation failed:",
        ),
    ];
    for (text, expected) in cases {
        let error = AuthorizationConfig::read(text.as_bytes()).expect_err(&text);
        let error = error.to_string();
        assert!(error.starts_with(expected), "{error} instead of {expected}");
    }
}

#[test]
fn what_a_webhook_is_told_to_do() {
    let config = AuthorizationConfig::read(webhook(str::to_owned).as_bytes()).unwrap();
    let config = only(config);
    assert_eq!(config.timeout, Duration::from_secs(3));
    assert_eq!((config.allowed_seconds, config.denied_seconds), (300, 30));
    assert_eq!(config.on_failure, Decision::Forbid);
    let text = webhook(|it| format!("{it}, authorizedTTL: 1m, cacheUnauthorizedRequests: false"));
    let config = only(AuthorizationConfig::read(text.as_bytes()).unwrap());
    assert_eq!((config.allowed_seconds, config.denied_seconds), (60, 0));
}

#[test]
fn which_questions_a_webhook_sees() {
    let pods = Attributes::Resource {
        verb: "get",
        group: "",
        resource: "pods/log",
        namespace: "kube-system",
        name: "x",
    };
    let path = Attributes::Path {
        verb: "get",
        path: "/metrics",
    };
    let cases = [
        ("true", Ok(true), Ok(true)),
        ("has(request.resourceAttributes)", Ok(true), Ok(false)),
        (
            "request.resourceAttributes.namespace == 'kube-system'",
            Ok(true),
            Err(()),
        ),
        (
            "has(request.nonResourceAttributes) && request.nonResourceAttributes.path == '/metrics'",
            Ok(false),
            Ok(true),
        ),
        (
            "request.user == 'jane' && 'team' in request.groups && request.uid == ''",
            Ok(true),
            Ok(true),
        ),
        (
            "!has(request.resourceAttributes) || request.resourceAttributes.subresource == 'log'",
            Ok(true),
            Ok(true),
        ),
        ("!('team' in request.groups)", Ok(false), Ok(false)),
    ];
    let jane = User::authenticated("jane", "", &["team"]);
    for (expression, resource, other) in cases {
        let text = webhook(|it| {
            let quoted = expression.replace('\'', "''");
            format!("{it}, matchConditions: [{{expression: '{quoted}'}}]")
        });
        let config = only(AuthorizationConfig::read(text.as_bytes()).unwrap());
        let holds = |asked| config.conditions.hold(&jane, asked).map_err(|_| ());
        assert_eq!(holds(pods), resource, "{expression}");
        assert_eq!(holds(path), other, "{expression}");
    }
}
