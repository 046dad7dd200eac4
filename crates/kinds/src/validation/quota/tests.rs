//! Cases: limits and quotas, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_limit_has_its_bounds_in_order() {
    let new = map(
        value!({"spec": {"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "3"},
        "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]}}),
    );
    assert_eq!(
        printed(limit_range(&new, None, "")),
        [
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater than default request value 1",
            "spec.limits[0].default[cpu]: Invalid value: \"2\": min value 2 is greater than default value 1",
        ]
    );
}

#[test]
fn a_scope_is_for_some_resources_only() {
    let new = map(value!({"spec": {
        "hard": {"services": "1", "pods": "1"},
        "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]},
        ]},
    }}));
    assert_eq!(
        printed(resource_quota(&new, None, "")),
        [
            "spec.scopeSelector.matchExpressions: Invalid value: {\"MatchExpressions\":\
          [{\"ScopeName\":\"PriorityClass\",\"Operator\":\"In\",\"Values\":[\"high\"]}]}: unsupported scope \
          applied to resource"
        ]
    );
}

#[test]
fn a_quota_counts_what_is_known() {
    let new = map(value!({"spec": {"hard": {"made.up": "1", "pods": "1500m", "services": "-1"}}}));
    assert_eq!(
        printed(resource_quota(&new, None, "")),
        [
            "spec.hard[made.up]: Invalid value: \"made.up\": must be a standard resource type or fully qualified",
            "spec.hard[made.up]: Invalid value: \"made.up\": must be a standard resource for quota",
            "spec.hard[pods]: Invalid value: \"1500m\": must be an integer",
            "spec.hard[services]: Invalid value: \"-1\": must be greater than or equal to 0",
        ]
    );
}
