//! Cases: events of both groups, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn an_event_stays_as_it_was_but_for_its_series() {
    let event = |reason: &str, note: &str| {
        map(
            value!({"metadata": {"name": "e", "namespace": "here"}, "regarding": {"namespace": "here"},
            "reason": reason, "note": note, "type": "Normal"}),
        )
    };
    let old = event("Started", "hello");
    let immutable = "Invalid value: \"changed\": field is immutable";
    assert_eq!(
        printed(validate(&event("Started", "changed"), Some(&old), "")),
        [format!("message: {immutable}")]
    );
    assert_eq!(
        printed(validate(&event("changed", "hello"), Some(&old), "")),
        [
            format!("reason: {immutable}"),
            format!("reason: {immutable}")
        ]
    );
    assert!(core(&event("changed", "changed"), Some(&old), "").is_empty());
}

#[test]
fn an_event_is_where_its_subject_is() {
    let new = map(
        value!({"metadata": {"name": "e", "namespace": "here"}, "involvedObject": {"namespace": "there"}}),
    );
    assert_eq!(
        printed(core(&new, None, "")),
        ["involvedObject.namespace: Invalid value: \"there\": does not match event.namespace"]
    );
}
