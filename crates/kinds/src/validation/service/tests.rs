//! Cases: a good service with a few fields changed, and what is said about it.

use object::{Map, Value, value};

use super::*;

fn service(name: &str, changed: Value) -> Map {
    let mut spec = value!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]});
    for (key, value) in changed.as_object().expect("changes are a map").clone() {
        spec.as_object_mut()
            .expect("it is a map")
            .insert(key, value);
    }
    let object = value!({"metadata": {"name": name, "namespace": "here"}, "spec": spec});
    object.as_object().expect("it is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_new_service_is_checked() {
    let cases: Vec<(Value, &[&str])> = vec![
        (value!({}), &[]),
        (value!({"ports": []}), &["spec.ports: Required value"]),
        (
            value!({"ports": [{"port": 1, "targetPort": 1, "protocol": "TCP"}, {"port": 2, "targetPort": "x", "protocol": "TCP"}]}),
            &[
                "spec.ports[0].name: Required value",
                "spec.ports[1].name: Required value",
            ],
        ),
        (
            value!({"ports": [{"port": 0, "targetPort": 0, "protocol": "ICMP"}]}),
            &[
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[0].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            ],
        ),
        (
            value!({"ports": [{"port": 1, "targetPort": "8080", "protocol": "TCP"}]}),
            &[
                "spec.ports[0].targetPort: Invalid value: \"8080\": must contain at least one letter (a-z)",
            ],
        ),
        (
            value!({"type": "Unknown"}),
            &[
                "spec.type: Unsupported value: \"Unknown\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
            ],
        ),
        (
            value!({"clusterIP": "300.1.1.1", "clusterIPs": ["300.1.1.1"]}),
            &[
                "spec.clusterIPs[0]: Invalid value: \"300.1.1.1\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        ),
        (
            value!({"sessionAffinity": "ClientIP"}),
            &["spec.sessionAffinityConfig: Required value: when session affinity type is ClientIP"],
        ),
    ];
    for (changed, expected) in cases {
        assert_eq!(
            printed(validate(&service("web", changed), None, "")),
            expected
        );
    }
}

#[test]
fn an_address_once_given_stays() {
    let old = service("web", value!({}));
    let new = service("web", value!({"clusterIP": "None", "clusterIPs": ["None"]}));
    assert_eq!(
        printed(validate(&new, Some(&old), "")),
        ["spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change once set"]
    );
}
