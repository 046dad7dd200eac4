//! Cases: nodes, and what is said about them.

use object::value;

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn declared_features_are_names_in_order() {
    let node = |features: Value| map(value!({"status": {"declaredFeatures": (features)}}));
    let strange = "invalid feature name \"lower\": must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";
    let cases = [
        (value!(["A", "B/c"]), vec![]),
        (
            value!(["B", "A", "A"]),
            vec![
                "status.declaredFeatures[1]: Invalid value: \"A\": list must be sorted alphabetically".to_owned(),
                "status.declaredFeatures[2]: Duplicate value: \"A\"".to_owned(),
            ],
        ),
        (
            value!(["lower"]),
            vec![format!("status.declaredFeatures[0]: Invalid value: \"lower\": {strange}")],
        ),
    ];
    for (features, expected) in cases {
        let new = node(features);
        assert_eq!(printed(validate(&new, Some(&new), "status")), expected);
    }
}

#[test]
fn two_networks_of_pods_are_of_two_families() {
    let new = map(value!({"spec": {"podCIDRs": ["10.1.0.0/24", "other"]}}));
    assert_eq!(
        printed(validate(&new, None, "")),
        [
            "spec.podCIDRs[1]: Invalid value: \"other\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[1]: <nil> (invalid CIDR address: other)",
            "spec.podCIDRs: Invalid value: [\"10.1.0.0/24\",\"other\"]: may specify no more than one CIDR for each IP family",
        ]
    );
}
