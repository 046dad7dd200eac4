//! What the rules of many kinds have in common: which parts a write keeps, and how fields read as
//! text.
//!
//! Upstream has these as strategies (`pkg/registry/*/*/strategy.go`).

use object::{Map, Text, Value, value};

use crate::defaults::fill::{at, copy, list, object};

/// Paths that writes cannot change, as [`crate::Rules::reset_fields`] gives them.
pub(super) type Paths = &'static [&'static [&'static str]];

/// `.status` alone.
pub(super) const STATUS: Paths = &[&["status"]];
/// `.spec` alone.
pub(super) const SPEC: Paths = &[&["spec"]];
/// `.spec` and `.metadata`.
pub(super) const SPEC_AND_METADATA: Paths = &[&["spec"], &["metadata"]];

/// A new object has no status yet.
pub(super) fn no_status(new: &mut Map) {
    new.insert("status", value!({}));
}

/// A write keeps the status, a write through `/status` keeps the spec.
pub(super) fn keep_status_or_spec(new: &mut Map, old: &Map, subresource: &str) {
    match subresource {
        "status" => copy(new, old, "spec"),
        _ => copy(new, old, "status"),
    }
}

/// As [`keep_status_or_spec`]; a write through `/status` keeps what people put into metadata too.
pub(super) fn keep_status_or_rest(new: &mut Map, old: &Map, subresource: &str) {
    keep_status_or_spec(new, old, subresource);
    if subresource == "status" {
        keep_metadata(new, old);
    }
}

/// Keeps what people put into metadata; only the managed fields may differ.
pub(super) fn keep_metadata(new: &mut Map, old: &Map) {
    let Some(old) = object(old, "metadata") else {
        return;
    };
    let metadata = new.object_at("metadata");
    for key in [
        "deletionTimestamp",
        "generation",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ] {
        copy(metadata, old, key);
    }
}

/// The paths that go with [`keep_status_or_spec`].
pub(super) fn status_or_spec(subresource: &str) -> Paths {
    match subresource {
        "" => STATUS,
        "status" => SPEC,
        _ => &[],
    }
}

/// The paths that go with [`keep_status_or_rest`].
pub(super) fn status_or_rest(subresource: &str) -> Paths {
    match subresource {
        "" => STATUS,
        "status" => SPEC_AND_METADATA,
        _ => &[],
    }
}

/// The text at a dotted path; empty when there is none.
pub(super) fn select_text(object: &Map, field: &str) -> Text {
    match value_of(object, field) {
        Some(Value::String(text)) => text.clone(),
        _ => Text::default(),
    }
}

/// The number at a dotted path as text; `0` when there is none.
pub(super) fn select_number(object: &Map, field: &str) -> Text {
    Text::from(
        value_of(object, field)
            .and_then(Value::as_int)
            .unwrap_or_default()
            .to_string(),
    )
}

/// The flag at a dotted path as text; `false` when there is none.
pub(super) fn select_flag(object: &Map, field: &str) -> Text {
    let flag = value_of(object, field)
        .and_then(Value::as_bool)
        .unwrap_or_default();
    Text::from(if flag { "true" } else { "false" })
}

fn value_of<'a>(object: &'a Map, field: &str) -> Option<&'a Value> {
    let path: Vec<&str> = field.split('.').collect();
    at(object, &path)
}

/// The refusal of kinds that say themselves which fields can be selected.
pub(super) fn unselectable(field: &str) -> String {
    format!("field label not supported: {field}")
}

/// The conditions of an object's status.
pub(super) fn conditions(object: &Map) -> &[Value] {
    crate::defaults::fill::object(object, "status").map_or(&[], |status| list(status, "conditions"))
}
