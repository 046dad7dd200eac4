//! Cases: ingresses and network policies, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn an_ingress_leads_somewhere() {
    let with = |spec: Value| map(value!({"metadata": {"name": "i"}, "spec": spec}));
    let cases: Vec<(Value, &[&str])> = vec![
        (
            value!({}),
            &["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        ),
        (
            value!({"defaultBackend": {"service": {"name": "web", "port": {}}}}),
            &["spec.defaultBackend: Required value: port name or number is required"],
        ),
        (
            value!({"rules": [{"http": {"paths": [{"path": "a", "pathType": "Prefix", "backend": {}}]}}]}),
            &[
                "spec.rules[0].http.paths[0].path: Invalid value: \"a\": must be an absolute path",
                "spec.rules[0].http.paths[0].backend: Invalid value: \"\": resource or service backend is required",
            ],
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(printed(ingress(&with(spec), None, "")), expected);
    }
}

#[test]
fn a_block_leaves_out_only_what_is_inside() {
    let new = map(
        value!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "11.0.0.0/16"]}}, {}]}]}}),
    );
    assert_eq!(
        printed(network_policy(&new, None, "")),
        [
            "spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
            "spec.ingress[0].from[1]: Required value: must specify a peer",
        ]
    );
}
