//! Cases: a good pod with a few fields changed, and what is said about it.

use object::{Map, Value, value};

use super::validate;

/// A pod as it is after defaulting, with `spec` merged over its spec.
fn pod(spec: Value) -> Map {
    let mut good = value!({
        "terminationGracePeriodSeconds": 30, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
        "securityContext": {}, "enableServiceLinks": true, "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "containers": [{"name": "main", "image": "img", "imagePullPolicy": "Always",
            "terminationMessagePolicy": "File", "resources": {}}]
    });
    for (key, value) in spec.as_object().expect("a spec is a map").clone() {
        good.as_object_mut()
            .expect("it is a map")
            .insert(key, value);
    }
    let pod = value!({"metadata": {"name": "one", "namespace": "here"}, "spec": good});
    pod.as_object().expect("it is a map").clone()
}

fn container(fields: Value) -> Value {
    let mut good = value!({"name": "main", "image": "img", "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File", "resources": {}});
    for (key, value) in fields.as_object().expect("a container is a map").clone() {
        good.as_object_mut()
            .expect("it is a map")
            .insert(key, value);
    }
    good
}

fn printed(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<String> {
    validate(new, old, subresource)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn check(cases: Vec<(Value, &[&str])>) {
    for (spec, expected) in cases {
        let shown = format!("{spec:?}");
        assert_eq!(printed(&pod(spec), None, ""), expected, "of {shown}");
    }
}

#[test]
fn a_good_pod_has_no_mistake() {
    check(vec![(value!({}), &[])]);
}

#[test]
fn the_spec_itself_is_checked() {
    check(vec![
        (
            value!({"containers": []}),
            &["spec.containers: Required value"],
        ),
        (
            value!({"restartPolicy": "Sometimes"}),
            &[
                "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
            ],
        ),
        (
            value!({"dnsPolicy": "Odd"}),
            &[
                "spec.dnsPolicy: Unsupported value: \"Odd\": supported values: \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"",
            ],
        ),
        (
            value!({"dnsPolicy": "None"}),
            &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        ),
        (
            value!({"activeDeadlineSeconds": 0}),
            &[
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            ],
        ),
        (
            value!({"tolerations": [{"operator": "Equal", "value": "v"}, {"key": "k", "operator": "Exists", "value": "v"},
                {"key": "k", "tolerationSeconds": 1, "effect": "NoSchedule"}]}),
            &[
                "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                "spec.tolerations[1].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'",
                "spec.tolerations[2].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
            ],
        ),
        (
            value!({"hostAliases": [{"ip": "1.2.3", "hostnames": ["ok"]}]}),
            &[
                "spec.hostAliases[0].ip: Invalid value: \"1.2.3\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        ),
        (
            value!({"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "Maybe"}]}),
            &[
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"Maybe\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
            ],
        ),
        (
            value!({"os": {"name": "plan9"}}),
            &["spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\""],
        ),
        (
            value!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}]},
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}}),
            &[
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
                "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
            ],
        ),
    ]);
}

#[test]
fn containers_are_checked() {
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    check(vec![
        (
            value!({"containers": [(container(value!({"name": "Bad_Name"})))]}),
            &[&format!(
                "spec.containers[0].name: Invalid value: \"Bad_Name\": {label}"
            )],
        ),
        (
            value!({"containers": [(container(value!({"image": ""}))), (container(value!({"name": "b", "image": " "}))), (container(value!({"name": "b"})))]}),
            &[
                "spec.containers[0].image: Required value",
                "spec.containers[2].name: Duplicate value: \"b\"",
                "spec.containers[1].image: Invalid value: \" \": must not have leading or trailing whitespace",
            ],
        ),
        (
            value!({"containers": [(container(value!({"ports": [{"containerPort": 70000, "protocol": "TCP"}, {"containerPort": 1, "protocol": "ICMP"}]})))]}),
            &[
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                "spec.containers[0].ports[1].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            ],
        ),
        (
            value!({"containers": [(container(value!({"volumeMounts": [{"name": "nope", "mountPath": "/x"}]})))]}),
            &["spec.containers[0].volumeMounts[0].name: Not found: \"nope\""],
        ),
        (
            value!({"containers": [(container(value!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}})))]}),
            &[
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            ],
        ),
        (
            value!({"containers": [(container(value!({"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}, {"name": ""}]})))]}),
            &[
                "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
                "spec.containers[0].env[1].name: Required value",
            ],
        ),
        (
            value!({"containers": [(container(value!({"livenessProbe": {"successThreshold": 2, "exec": {"command": []}, "grpc": {"port": 1}}})))]}),
            &[
                "spec.containers[0].livenessProbe.exec.command: Required value",
                "spec.containers[0].livenessProbe.grpc: Forbidden: may not specify more than 1 handler type",
                "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
            ],
        ),
        (
            value!({"initContainers": [(container(value!({"name": "main", "lifecycle": {}})))]}),
            &[
                "spec.initContainers[0].name: Duplicate value: \"main\"",
                "spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
            ],
        ),
    ]);
}

#[test]
fn volumes_have_exactly_one_source() {
    check(vec![
        (
            value!({"volumes": [{"name": "a"}, {"name": "b", "emptyDir": {}, "secret": {"secretName": "s"}}, {"name": "c", "hostPath": {"path": "/a/../b"}}]}),
            &[
                "spec.volumes[0]: Required value: must specify a volume type",
                "spec.volumes[1].secret: Forbidden: may not specify more than 1 volume type",
                "spec.volumes[2].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
            ],
        ),
        (
            value!({"volumes": [{"name": "a", "configMap": {"name": "", "defaultMode": 512}}]}),
            &[
                "spec.volumes[0].configMap.name: Required value",
                "spec.volumes[0].configMap.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
            ],
        ),
    ]);
}

#[test]
fn little_of_a_pod_may_change() {
    let old = pod(value!({}));
    let renamed = pod(value!({"containers": [(container(value!({"name": "other"})))]}));
    let text = printed(&renamed, Some(&old), "");
    let start = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";
    let difference = "@@ -3,7 +3,7 @@\n  \"InitContainers\": null,\n  \"Containers\": [\n   {\n-   \"Name\": \"main\",\n+   \"Name\": \"other\",\n    \"Image\": \"img\",\n    \"Command\": null,\n    \"Args\": null,\n";
    assert_eq!(text, [format!("{start}{difference}")]);
    let image = pod(value!({"containers": [(container(value!({"image": "newer"})))]}));
    assert!(printed(&image, Some(&old), "").is_empty());
    let more =
        pod(value!({"containers": [(container(value!({}))), (container(value!({"name": "b"})))]}));
    assert_eq!(
        printed(&more, Some(&old), ""),
        ["spec.containers: Forbidden: pod updates may not add or remove containers"]
    );
    let debug = pod(value!({"ephemeralContainers": [(container(value!({"name": "dbg"})))]}));
    assert!(printed(&debug, Some(&old), "ephemeralcontainers").is_empty());
    assert_eq!(
        printed(&old, Some(&debug), "ephemeralcontainers"),
        [
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"dbg\" may not be removed\n"
        ]
    );
}
