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
fn templates_are_told_again_with_each_generation() {
    let template = value!({"spec": {"topologySpreadConstraints": [{"topologyKey": "zone"}]}});
    let advice = "spec.template.spec.topologySpreadConstraints[0].labelSelector: a null \
                  labelSelector results in matching no pod";
    let workload = |generation: i64| {
        map(
            value!({"metadata": {"name": "a", "generation": (generation)},
            "spec": {"template": (template.clone())}}),
        )
    };
    for kind in ["Deployment", "ReplicaSet", "StatefulSet"] {
        let advise = of("apps", kind);
        assert_eq!(advise(&workload(2), Some(&workload(1))), [advice], "{kind}");
        assert!(
            advise(&workload(1), Some(&workload(1))).is_empty(),
            "{kind}"
        );
    }
    // What else changes in a daemon set does not count.
    assert!(of("apps", "DaemonSet")(&workload(2), Some(&workload(1))).is_empty());
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

#[test]
fn smaller_kinds_are_told_what_is_strange() {
    let cases = [
        (
            ("", "Secret"),
            value!({"type": "kubernetes.io/tls", "data": {"tls.crt": "eA==", "tls.key": "eA=="}}),
            vec!["tls: failed to find any PEM data in certificate input"],
        ),
        (("", "Secret"), value!({"type": "Opaque"}), vec![]),
        (
            ("", "Node"),
            value!({"spec": {"externalID": "x"}}),
            vec!["spec.externalID: this field is deprecated, and is unused by Kubernetes"],
        ),
        (
            ("", "PersistentVolume"),
            value!({"spec": {"persistentVolumeReclaimPolicy": "Recycle", "rbd": {}}}),
            vec![
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
                 Instead, the recommended approach is to use dynamic provisioning.",
                "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
            ],
        ),
        (
            ("networking.k8s.io", "NetworkPolicy"),
            value!({"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]}}),
            vec![
                "spec.ingress[0].from[0].ipBlock.cidr: CIDR value \"10.0.0.1/8\" is ambiguous in \
                 this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)",
            ],
        ),
        (
            ("", "Endpoints"),
            value!({"subsets": [{"addresses": [{"ip": "fd00:0::1"}, {"ip": "10.0.0.1"}]}]}),
            vec![
                "subsets[0].addresses[0].ip: IPv6 address \"fd00:0::1\" should be in RFC 5952 \
                 canonical format (\"fd00::1\")",
            ],
        ),
        (
            ("storage.k8s.io", "CSIDriver"),
            value!({"spec": {"tokenRequests": [{"audience": "a"}]}}),
            vec![
                "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set \
                 to true to prevent possible logging of tokens in volume attributes",
            ],
        ),
        (
            ("node.k8s.io", "RuntimeClass"),
            value!({"scheduling": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}}),
            vec![
                "scheduling.nodeSelector: deprecated since v1.14; use \"kubernetes.io/os\" instead",
            ],
        ),
    ];
    for ((group, kind), object, expected) in cases {
        assert_eq!(of(group, kind)(&map(object), None), expected, "{kind}");
    }
}

#[test]
fn files_that_lie_upon_each_other_are_told() {
    let pod = map(value!({"metadata": {"name": "one"}, "spec": {"volumes": [
        {"name": "a", "configMap": {"name": "c", "items": [{"path": "x"}, {"path": "x/y"}]}},
        {"name": "b", "projected": {"sources": [{}, {"secret": {"name": "s", "items": [{"path": "t"}]}},
            {"serviceAccountToken": {"path": "t/"}}]}},
    ]}}));
    let expected = [
        "volume \"a\" (ConfigMap \"c\"): overlapping paths: \"x/y\" with \"x\"",
        "volume \"b\" (Projected) has no sources provided",
        "volume \"b\" (Projected): overlapping paths: \"t\" (ServiceAccountToken) with \"t\" (Secret \"s\")",
    ];
    assert_eq!(of("", "Pod")(&pod, None), expected);
}
