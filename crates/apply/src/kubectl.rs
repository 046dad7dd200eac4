//! Living together with client-side apply.
//!
//! Contract: apimachinery `util/managedfields/internal/lastapplied*.go`. Client-side kubectl keeps
//! what it applied last in an annotation. When the same user moves to server-side apply, under the
//! manager name `kubectl`, values that are still as that annotation says are theirs to take over;
//! and the annotation is kept current, so that they can move back.

use object::{Map, Text, Value, json};

use crate::{
    compare::compare,
    conflict::Conflicts,
    fields::field_set,
    set::FieldSet,
    typed::Typing,
    validate::{Repeats, validate},
};

/// The manager name that gets this treatment.
pub(crate) const MANAGER: &str = "kubectl";

/// Where client-side apply keeps what it applied last.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Keys and values of all annotations of an object together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

fn last_applied(object: &Value) -> Option<&str> {
    let text = object
        .at(&["metadata", "annotations"])?
        .get(LAST_APPLIED)?
        .as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Whether the object says what client-side apply applied last.
pub(crate) fn is_annotated(object: &Value) -> bool {
    last_applied(object).is_some()
}

/// The fields that client-side apply set and that still have its values; `None` if the annotation
/// is absent, unreadable or of another version.
pub(crate) fn allowed(live: &Value, api_version: &str, typing: Typing<'_>) -> Option<FieldSet> {
    let applied = json::parse(last_applied(live)?.as_bytes()).ok()?;
    if applied.str_at(&["apiVersion"]) != Some(api_version) {
        return None;
    }
    validate(&applied, typing, Repeats::Refused).ok()?;
    let change = compare(&applied, live, typing).ok()?;
    let set = field_set(&applied, typing);
    Some(
        set.difference(&change.modified)
            .difference(&change.added)
            .difference(&change.removed),
    )
}

/// The conflicts that are not allowed; `None` if all are.
pub(crate) fn remaining(conflicts: Conflicts, allowed: Option<&FieldSet>) -> Option<Conflicts> {
    let Some(allowed) = allowed else {
        return Some(conflicts);
    };
    let mut conflicts = conflicts;
    conflicts
        .0
        .retain(|conflict| !allowed.contains(&conflict.path));
    (!conflicts.0.is_empty()).then_some(conflicts)
}

/// The annotations of `object` in which the last applied configuration is `applied`; `None` if
/// nothing is to be changed. An annotation that would not fit is left out.
pub(crate) fn synchronized(object: &Value, applied: &Value) -> Option<Value> {
    let previous = last_applied(object)?;
    let text = annotation_text(applied);
    if previous == text {
        return None;
    }
    let mut annotations = object
        .at(&["metadata", "annotations"])?
        .as_object()?
        .clone();
    annotations.insert(LAST_APPLIED, Value::String(text));
    if annotations_bytes(&annotations) > ANNOTATIONS_BYTES_MAX {
        annotations.remove(LAST_APPLIED);
    }
    Some(Value::Object(annotations))
}

/// The configuration as client-side apply writes it down: compact JSON and a newline.
fn annotation_text(applied: &Value) -> Text {
    let mut applied = applied.clone();
    if let Some(metadata) = applied.get_mut("metadata").and_then(Value::as_object_mut) {
        match metadata.get_mut("annotations") {
            Some(Value::Object(annotations)) => {
                annotations.remove(LAST_APPLIED);
            }
            Some(_) => {
                metadata.remove("annotations");
            }
            None => {}
        }
    }
    let mut text = json::to_vec(&applied);
    text.push(b'\n');
    Text::from_utf8_lossy(&text)
}

fn annotations_bytes(annotations: &Map) -> usize {
    let bytes = |(key, value): (&Text, &Value)| key.len() + value.as_str().map_or(0, str::len);
    annotations.iter().map(bytes).sum()
}
