//! Cases: objects that are valid, and what is advised about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

#[test]
fn pods_are_told_what_is_deprecated_or_hidden() {
    let pod = map(
        value!({"metadata": {"name": "one", "annotations": {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}},
        "spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "containers": [{"name": "main",
        "resources": {"requests": {"memory": "500m"}},
        "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "x$(A)"}]}]}}),
    );
    let expected = [
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]: deprecated since v1.30; use the \"appArmorProfile\" field instead",
        "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "spec.containers[0].resources.requests[memory]: fractional byte value \"500m\" is invalid, must be an integer",
        "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
    ];
    assert_eq!(of("", "Pod")(&pod, None), expected);
    assert!(of("", "Pod")(&pod, Some(&pod)).is_empty());
}

#[test]
fn templates_are_told_under_their_own_path() {
    let deployment = map(
        value!({"metadata": {"name": "a.b"}, "spec": {"template": {"spec": {"containers": [
        {"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
        {"name": "b", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}}}),
    );
    let expected = [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
        "spec.template.spec.containers[1].ports[0]: duplicate port definition with spec.template.spec.containers[0].ports[0]",
    ];
    assert_eq!(of("apps", "Deployment")(&deployment, None), expected);
}

#[test]
fn accounts_that_come_to_limit_secrets_are_told_once() {
    let key = "kubernetes.io/enforce-mountable-secrets";
    let account = map(value!({"metadata": {"name": "a", "annotations": {(key): "false"}}}));
    let expected = format!(
        "metadata.annotations[{key}]: deprecated in v1.32+; prefer separate namespaces to isolate \
         access to mounted secrets"
    );
    assert_eq!(of("", "ServiceAccount")(&account, None), [expected]);
    assert!(of("", "ServiceAccount")(&account, Some(&account)).is_empty());
}
