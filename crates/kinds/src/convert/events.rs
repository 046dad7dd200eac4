//! Events of the core group and of `events.k8s.io`: the same facts under other names.

use object::{Map, Value, value};

/// Core name, name in `events.k8s.io`.
const RENAMED: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// Turns a core event into one of `events.k8s.io`.
pub(super) fn from_core(event: &mut Map) {
    for (core, other) in RENAMED {
        rename(event, core, other);
    }
    for key in ["reportingController", "reportingInstance"] {
        if event.get(key).and_then(Value::as_str) == Some("") {
            event.remove(key);
        }
    }
    print_always(
        event,
        &[
            "deprecatedFirstTimestamp",
            "deprecatedLastTimestamp",
            "eventTime",
        ],
        &["deprecatedSource", "regarding"],
    );
}

/// Turns an event of `events.k8s.io` into a core one.
pub(super) fn to_core(event: &mut Map) {
    for (core, other) in RENAMED {
        rename(event, other, core);
    }
    for key in ["reportingComponent", "reportingInstance"] {
        event.get_or_insert_with(key, || "".into());
    }
    print_always(
        event,
        &["eventTime", "firstTimestamp", "lastTimestamp"],
        &["involvedObject", "source"],
    );
}

fn rename(event: &mut Map, from: &str, to: &str) {
    if let Some(value) = event.remove(from) {
        event.insert(to, value);
    }
}

/// Times that are not known print as `null`, references that say nothing as empty maps.
fn print_always(event: &mut Map, times: &[&str], references: &[&str]) {
    for key in times {
        event.get_or_insert_with(key, || Value::Null);
    }
    for key in references {
        let reference = event.get_or_insert_with(key, || value!({}));
        if reference.is_null() {
            *reference = value!({});
        }
    }
}
