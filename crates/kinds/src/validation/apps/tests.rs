//! Cases: a good workload with a few fields changed, and what is said about it.

use object::{Map, Value, value};

use super::*;

fn template() -> Value {
    value!({"metadata": {"labels": {"app": "web"}}, "spec": {
        "terminationGracePeriodSeconds": 30, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
        "securityContext": {}, "schedulerName": "default-scheduler",
        "containers": [{"name": "main", "image": "img", "imagePullPolicy": "Always",
            "terminationMessagePolicy": "File", "resources": {}}]}})
}

/// An object whose spec is `good` with `changed` over it; `null` removes.
fn object(good: Value, changed: Value) -> Map {
    let mut spec = good.as_object().expect("a spec is a map").clone();
    for (key, value) in changed.as_object().expect("changes are a map").clone() {
        match value {
            Value::Null => spec.remove(&key),
            value => spec.insert(key, value),
        };
    }
    Map::from_entries(vec![("spec".into(), spec.into())])
}

fn deployment_with(changed: Value) -> Map {
    let good = value!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "template": (template())});
    object(good, changed)
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn deployments_are_checked() {
    let cases: Vec<(Value, &[&str])> = vec![
        (value!({}), &[]),
        (
            value!({"replicas": (-1)}),
            &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            value!({"selector": null}),
            &[
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
            ],
        ),
        (
            value!({"selector": {"matchLabels": {"app": "other"}}}),
            &[
                "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
            ],
        ),
        (
            value!({"selector": {}}),
            &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
        ),
        (
            value!({"strategy": {"type": "Recreate", "rollingUpdate": {}}}),
            &[
                "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
            ],
        ),
        (
            value!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}),
            &[
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
            ],
        ),
        (
            value!({"strategy": {"type": "Slow"}}),
            &[
                "spec.strategy: Unsupported value: {\"Type\":\"Slow\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\"",
            ],
        ),
        (
            value!({"progressDeadlineSeconds": 5, "minReadySeconds": 5}),
            &[
                "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
            ],
        ),
    ];
    for (changed, expected) in cases {
        assert_eq!(
            printed(deployment(&deployment_with(changed), None, "")),
            expected
        );
    }
}

#[test]
fn an_empty_template_lists_what_it_lacks() {
    let given = deployment_with(value!({"selector": null, "template": {"spec": {
        "terminationGracePeriodSeconds": 30, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst"}}}));
    assert_eq!(
        printed(deployment(&given, None, "")),
        [
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            "spec.template.spec.containers: Required value",
        ]
    );
}

#[test]
fn a_selector_stays_as_it_was() {
    let old = deployment_with(value!({}));
    let mut labels = template();
    labels
        .as_object_mut()
        .expect("it is a map")
        .insert("metadata", value!({"labels": {"app": "web", "tier": "x"}}));
    let new = deployment_with(value!({"template": labels,
        "selector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["x"]}], "matchLabels": {"app": "web"}}}));
    let expected = "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"web\"},\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"In\",\"values\":[\"x\"]}]}: field is immutable";
    assert_eq!(printed(deployment(&new, Some(&old), "")), [expected]);
}

#[test]
fn a_status_counts_no_more_than_all() {
    let new = Map::from_entries(vec![(
        "status".into(),
        value!({"replicas": (-1), "readyReplicas": 1}),
    )]);
    assert_eq!(
        printed(deployment(&new, Some(&Map::new()), "status")),
        [
            "status.replicas: Invalid value: -1: must be greater than or equal to 0",
            "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas",
            "status.readyReplicas: Invalid value: 1: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
        ]
    );
}

#[test]
fn stateful_sets_and_daemon_sets_are_checked() {
    let set = |changed| {
        let good = value!({"replicas": 1, "serviceName": "web", "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": {"app": "web"}}, "template": (template()),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}});
        object(good, changed)
    };
    assert!(stateful_set(&set(value!({})), None, "").is_empty());
    let renamed = set(value!({"serviceName": "other"}));
    let expected = format!("spec: Forbidden: {STATEFUL_SET_UPDATE}");
    assert_eq!(
        printed(stateful_set(&renamed, Some(&set(value!({}))), "")),
        [expected]
    );
    let daemons = |changed| {
        let good = value!({"selector": {"matchLabels": {"app": "web"}}, "template": (template()),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}});
        object(good, changed)
    };
    assert!(daemon_set(&daemons(value!({})), None, "").is_empty());
    let both = value!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}});
    assert_eq!(
        printed(daemon_set(&daemons(both), None, "")),
        [
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"
        ]
    );
}
