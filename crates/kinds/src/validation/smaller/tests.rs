//! Cases: budgets, leases and priority classes, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn priorities_of_users_are_bounded_and_fixed() {
    let class = |name: &str, value: i64| map(value!({"metadata": {"name": name}, "value": value}));
    assert!(priority_class(&class("mine", 5), None, "").is_empty());
    assert_eq!(
        printed(priority_class(&class("system-mine", 5), None, "")),
        [
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class"
        ]
    );
    assert_eq!(
        printed(priority_class(&class("mine", 1_000_000_001), None, "")),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]
    );
    assert_eq!(
        printed(priority_class(
            &class("mine", 6),
            Some(&class("mine", 5)),
            ""
        )),
        ["value: Forbidden: may not be changed in an update."]
    );
}

#[test]
fn a_budget_bounds_one_side_only() {
    let new = map(value!({"spec": {"minAvailable": 1, "maxUnavailable": "101%"}}));
    assert_eq!(
        printed(disruption_budget(&new, None, "")),
        [
            "spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":\"101%\",\"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set",
            "spec.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
        ]
    );
}

#[test]
fn a_lease_lasts_some_time() {
    let new = map(value!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": (-1)}}));
    assert_eq!(
        printed(lease(&new, None, "")),
        [
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        ]
    );
}
