//! Cases: devices as people get them wrong, and what they are told.

use object::{Map, Value, value};

use super::claim::UNKNOWN_REQUEST;
use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn claim_of(devices: Value) -> Map {
    map(value!({"metadata": {"name": "c"}, "spec": {"devices": (devices)}}))
}

#[test]
fn claims_name_requests_that_exist() {
    let requests = value!([{"name": "r", "exactly": {"deviceClassName": "c",
        "allocationMode": "ExactCount", "count": 1}}]);
    let good = value!({"requests": (requests.clone()),
        "constraints": [{"requests": ["r"], "matchAttribute": "a.example.com/x"}]});
    assert!(claim(&claim_of(good), None, "").is_empty());
    let cases = [
        (
            value!({"requests": (requests.clone()), "constraints": [{"requests": ["x"],
                "matchAttribute": "x"}]}),
            vec![
                format!("spec.devices.constraints[0].requests[0]: Invalid value: \"x\": {UNKNOWN_REQUEST}"),
                "spec.devices.constraints[0].matchAttribute: Invalid value: \"x\": a fully qualified \
                 name must be a domain and a name separated by a slash"
                    .to_owned(),
            ],
        ),
        (
            value!({"requests": (requests.clone()), "config": [{"requests": ["r", "r"],
                "opaque": {"driver": "d", "parameters": "x"}}]}),
            vec![
                "spec.devices.config[0].requests[1]: Duplicate value: \"r\"".to_owned(),
                "spec.devices.config[0].opaque.parameters: Invalid value: \"<value omitted>\": must \
                 be a valid JSON object"
                    .to_owned(),
            ],
        ),
    ];
    for (devices, expected) in cases {
        assert_eq!(printed(claim(&claim_of(devices), None, "")), expected);
    }
}

#[test]
fn selectors_must_compile_and_decide() {
    let cases = [
        ("device.driver == 'a'", None),
        ("device.attributes['a.example.com'].x == 'y'", None),
        (
            "device.capacity['a'].m.isGreaterThan(quantity('1Gi'))",
            None,
        ),
        (
            "device.driver",
            Some("must evaluate to bool or the unknown type, not string"),
        ),
        (
            "devices.driver == 'a'",
            Some("undeclared reference to 'devices'"),
        ),
        ("device.color == 'a'", Some("undefined field 'color'")),
    ];
    for (text, expected) in cases {
        let class_of = map(value!({"metadata": {"name": "c"},
            "spec": {"selectors": [{"cel": {"expression": (text)}}]}}));
        let found = printed(class(&class_of, None, "")).concat();
        match expected {
            None => assert_eq!(found, "", "{text}"),
            Some(part) => assert!(found.contains(part), "{text}: {found}"),
        }
    }
}

#[test]
fn devices_of_a_slice_are_described_well() {
    let slice_of = |device: Value| {
        map(
            value!({"metadata": {"name": "s"}, "spec": {"driver": "d", "allNodes": true,
            "pool": {"name": "p", "resourceSliceCount": 1}, "devices": [(device)]}}),
        )
    };
    let cases = [
        (
            value!({"name": "d", "attributes": {"v": {"version": "1.2.3-a.1+b"}}}),
            vec![],
        ),
        (
            value!({"name": "d", "attributes": {"v": {"version": "1.02.3"}, "e": {}}}),
            vec![
                "spec.devices[0].attributes[e]: Invalid value: \"\": exactly one value must be \
                 specified",
                "spec.devices[0].attributes[v].version: Invalid value: \"1.02.3\": must be a string \
                 compatible with semver.org spec 2.0.0",
            ],
        ),
        (
            value!({"name": "d", "taints": [{"key": "k", "effect": "Never"}]}),
            vec![
                "spec.devices[0].taints[0].effect: Unsupported value: \"Never\": supported values: \
                 \"NoExecute\", \"NoSchedule\", \"None\"",
            ],
        ),
        (
            value!({"name": "d", "nodeName": "n"}),
            vec![
                "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can \
                 only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
            ],
        ),
    ];
    for (device, expected) in cases {
        assert_eq!(printed(slice(&slice_of(device), None, "")), expected);
    }
}

#[test]
fn only_what_was_allocated_has_a_status() {
    let old = claim_of(value!({"requests": [{"name": "r"}]}));
    let mut new = old.clone();
    new.insert(
        "status",
        value!({"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
            "devices": [{"driver": "d", "pool": "p", "device": "x"}]}),
    );
    assert_eq!(
        printed(claim(&new, Some(&old), "status")),
        [
            "status.devices[0]: Invalid value: {\"Driver\":\"d\",\"Pool\":\"p\",\"Device\":\"x\",\"ShareID\":\"\"}: must be an allocated device in the claim",
            "status.reservedFor: Forbidden: may not be specified when `allocated` is not set",
        ]
    );
}

fn slice_of(device: Value) -> Map {
    map(
        value!({"spec": {"driver": "d.x", "perDeviceNodeSelection": true,
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [(device)]}}),
    )
}

#[test]
fn a_device_says_where_it_is_and_how_it_is_shared() {
    let range = |default: &str, step: &str| {
        value!({"name": "a", "allNodes": true, "allowMultipleAllocations": true,
            "capacity": {"m": {"value": "10Gi", "requestPolicy": {"default": default,
                "validRange": {"min": "1Gi", "max": "5Gi", "step": step}}}}})
    };
    let policy = "spec.devices[0].capacity[m].requestPolicy";
    let cases = [
        (range("1Gi", "1Gi"), vec![]),
        (
            range("6Gi", "2Gi"),
            vec![
                format!("{policy}.validRange.max: Invalid value: \"6Gi\": default is more than max: 5Gi"),
                format!("{policy}.validRange.step: Invalid value: \"6Gi\": value is not a multiple of a given step (2Gi) from (1Gi)"),
            ],
        ),
        (range("1Gi", "0"), vec![]),
        (
            value!({"name": "a", "allNodes": true, "allowMultipleAllocations": true,
                "capacity": {"m": {"value": "2", "requestPolicy": {"default": "4",
                    "validValues": ["1", "3", "1"]}}}}),
            vec![
                format!("{policy}.validValues[2]: Invalid value: \"1\": values must be sorted in ascending order"),
                format!("{policy}.validValues[1]: Invalid value: \"3\": option is larger than capacity value: 2"),
                format!("{policy}.validValues[2]: Duplicate value: \"1\""),
                format!("{policy}.validValues: Invalid value: \"4\": default value is not valid according to the requestPolicy"),
            ],
        ),
        (
            value!({"name": "a", "nodeName": "", "allNodes": false,
                "capacity": {"m": {"value": "1", "requestPolicy": {"default": "1"}}},
                "bindingConditions": ["x", "x"]}),
            vec![
                format!("{policy}: Forbidden: allowMultipleAllocations must be true"),
                "spec.devices[0].nodeName: Invalid value: \"\": must not be empty".to_owned(),
                "spec.devices[0].allNodes: Invalid value: false: must be either unset or set to true".to_owned(),
                "spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec".to_owned(),
                "spec.devices[0].bindingConditions[1]: Duplicate value: \"x\"".to_owned(),
                "spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions".to_owned(),
            ],
        ),
    ];
    for (device, expected) in cases {
        assert_eq!(printed(slice(&slice_of(device), None, "")), expected);
    }
}

#[test]
fn shares_of_a_device_are_told_apart_by_their_id() {
    let with = |id: &str| {
        map(
            value!({"spec": {"devices": {"requests": [{"name": "r"}]}}, "status": {
            "allocation": {"devices": {"results": [{"request": "r", "driver": "d.x", "pool": "p",
                "device": "d", "shareID": id}]}}}}),
        )
    };
    let cases = [
        ("0a0b0c0d-0000-0000-0000-000000000000", vec![]),
        (
            "short",
            vec!["error validating uid: invalid UUID length: 5"],
        ),
        (
            "0a0b0c0d-0000-0000-0000-00000000000x",
            vec!["error validating uid: invalid UUID format"],
        ),
        (
            "0A0b0c0d-0000-0000-0000-000000000000",
            vec![
                "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters",
            ],
        ),
    ];
    for (id, details) in cases {
        let expected: Vec<String> = details
            .into_iter()
            .map(|detail| {
                let field = "status.allocation.devices.results[0].shareID";
                format!("{field}: Invalid value: \"{id}\": {detail}")
            })
            .collect();
        assert_eq!(
            printed(claim(&with(id), Some(&Map::new()), "status")),
            expected
        );
    }
}

#[test]
fn too_many_requests_are_not_looked_at() {
    let requests = Value::Array(vec![value!({"name": "r"}); REQUESTS_MAX + 1]);
    assert_eq!(
        printed(claim(&claim_of(value!({ "requests": requests })), None, "")),
        ["spec.devices.requests: Too many: 33: must have at most 32 items"]
    );
}
