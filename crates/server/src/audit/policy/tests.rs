//! Which rule holds for which request.

use hyper::Method;

use super::*;
use crate::query::Query;

fn policy(rules: &str) -> Result<Policy, String> {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    Policy::parse(text.as_bytes()).map_err(|error| error.to_string())
}

fn level(policy: &Policy, user: &str, method: Method, path: &str) -> Level {
    let info = RequestInfo::new(&method, path, &Query::parse("")).unwrap();
    let user = User::authenticated(user, "", &["team"]);
    policy.decide(Some(&user), &info).level
}

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = r#"
rules:
- {level: None, users: [robot]}
- {level: Request, userGroups: [others]}
- {level: Metadata, resources: [{group: "", resources: [secrets, "pods/log", "*/status"]}]}
- {level: Request, resources: [{group: apps, resources: ["deployments/*"], resourceNames: [a]}]}
- {level: RequestResponse, verbs: [create], namespaces: [a]}
- {level: Metadata, nonResourceURLs: ["/healthz*", "/version"]}
"#;
    let policy = policy(rules).unwrap();
    let get = |path| level(&policy, "ann", Method::GET, path);
    let cases = [
        ("/api/v1/namespaces/a/secrets/s", Level::Metadata),
        ("/api/v1/namespaces/a/pods/s", Level::None),
        ("/api/v1/namespaces/a/pods/s/log", Level::Metadata),
        ("/api/v1/namespaces/a/pods/s/status", Level::Metadata),
        ("/apis/apps/v1/namespaces/b/deployments/a", Level::Request),
        (
            "/apis/apps/v1/namespaces/b/deployments/a/scale",
            Level::Request,
        ),
        ("/apis/apps/v1/namespaces/b/deployments/b", Level::None),
        ("/healthz/ping", Level::Metadata),
        ("/version", Level::Metadata),
        ("/metrics", Level::None),
    ];
    for (path, expected) in cases {
        assert_eq!(get(path), expected, "{path}");
    }
    let path = "/api/v1/namespaces/a/pods";
    assert_eq!(
        level(&policy, "ann", Method::POST, path),
        Level::RequestResponse
    );
    assert_eq!(level(&policy, "robot", Method::POST, path), Level::None);
    let info = RequestInfo::new(&Method::GET, "/version", &Query::parse("")).unwrap();
    assert_eq!(policy.decide(None, &info).level, Level::Metadata);
}

#[test]
fn stages_and_managed_fields_are_left_out_as_asked() {
    let rules = r#"
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: Metadata, users: [ann], omitStages: [Panic], omitManagedFields: false}
- {level: Metadata}
"#;
    let policy = policy(rules).unwrap();
    let info = RequestInfo::new(&Method::GET, "/version", &Query::parse("")).unwrap();
    let first = policy.decide(Some(&User::authenticated("ann", "", &[])), &info);
    assert_eq!(first.omit_stages, [Stage::RequestReceived, Stage::Panic]);
    assert!(!first.omit_managed_fields);
    assert!(policy.decide(None, &info).omit_managed_fields);
}

#[test]
fn what_means_nothing_is_refused() {
    let cases = [
        ("rules: []", "it has no rules"),
        ("rules: [{level: All}]", "rules[0].level is \"All\""),
        (
            "rules: [{level: None, user: [a]}]",
            "rules[0].user is unknown",
        ),
        ("rule: []", "rule is unknown"),
        (
            "rules: [{level: None, users: a}]",
            "rules[0].users is no list",
        ),
        (
            "rules: [{level: None, omitStages: [Late]}]",
            "no stage Late",
        ),
        (
            "rules: [{level: None, namespaces: [a], nonResourceURLs: [/]}]",
            "rules[0] cannot apply to both",
        ),
    ];
    for (rules, expected) in cases {
        let error = policy(rules).unwrap_err();
        assert!(error.contains(expected), "{rules}: {error}");
    }
    assert!(Policy::parse(b"kind: Policy\nrules: [{level: None}]").is_err());
}
