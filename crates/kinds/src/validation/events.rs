//! Events, in the form of either group that serves them.
//!
//! The older group checks little; the newer one makes an event immutable but for its series.

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use super::check::{self, Errors, Report};
use super::read::Read;
use super::{internal, print};

const TEXT_BYTES_MAX: usize = 128;
const NOTE_BYTES_MAX: usize = 1024;
/// A field's key in the core group, in the newer group, and in mistakes.
const FIELDS: [(&str, &str, &str); 13] = [
    ("involvedObject", "regarding", "involvedObject"),
    ("reason", "reason", "reason"),
    ("message", "note", "message"),
    ("source", "deprecatedSource", "source"),
    (
        "firstTimestamp",
        "deprecatedFirstTimestamp",
        "firstTimestamp",
    ),
    ("lastTimestamp", "deprecatedLastTimestamp", "lastTimestamp"),
    ("count", "deprecatedCount", "count"),
    // Upstream checks the reason twice.
    ("reason", "reason", "reason"),
    ("type", "type", "type"),
    ("eventTime", "eventTime", "eventTime"),
    ("action", "action", "action"),
    ("related", "related", "related"),
    (
        "reportingComponent",
        "reportingController",
        "reportingController",
    ),
];

/// Checks an event of the core group.
pub(crate) fn core(new: &Map, _: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    legacy(new, "reportingComponent", &mut errors);
    errors
}

/// Checks an event of `events.k8s.io`.
pub(crate) fn validate(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    legacy(new, "reportingController", &mut errors);
    match old {
        None => create(new, &mut errors),
        Some(old) => update(new, old, &mut errors),
    }
    errors
}

fn get<'a>(event: &'a Map, core: &str, newer: &str) -> &'a Value {
    match event.value(core) {
        Value::Null => event.value(newer),
        value => value,
    }
}

fn legacy(event: &Map, reporter: &str, errors: &mut Errors) {
    let root = Path::root();
    let text = |core: &str, newer: &str| get(event, core, newer).as_str().unwrap_or_default();
    let namespace = event.object_or_empty("metadata").text("namespace");
    let about = get(event, "involvedObject", "regarding");
    let about = about
        .get("namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_timed = event.has("eventTime");
    let agrees = match (is_timed, about.is_empty()) {
        (false, true) => matches!(namespace, "" | "default"),
        (false, false) => namespace == about,
        (true, true) => matches!(namespace, "default" | "kube-system"),
        (true, false) => true,
    };
    if !agrees {
        let path = root.field("involvedObject");
        errors.invalid(
            &path.field("namespace"),
            about,
            "does not match event.namespace",
        );
    }
    if is_timed {
        let controller = text("reportingComponent", "reportingController");
        let path = root.field(reporter);
        if controller.is_empty() {
            errors.required(&path, "");
        }
        errors.each(&path, controller, names::qualified_name(controller));
        for key in ["reportingInstance", "action", "reason"] {
            let value = event.text(key);
            if value.is_empty() {
                errors.required(&root.field(key), "");
            }
            at_most(value, TEXT_BYTES_MAX, &root.field(key), errors);
        }
        at_most(
            text("message", "note"),
            NOTE_BYTES_MAX,
            &root.field("message"),
            errors,
        );
    }
    errors.each(
        &root.field("namespace"),
        namespace,
        names::dns1123_subdomain(namespace),
    );
}

fn at_most(text: &str, limit: usize, path: &Path<'_>, errors: &mut Errors) {
    if text.len() > limit {
        errors.invalid(path, "", format!("can have at most {limit} characters"));
    }
}

fn create(event: &Map, errors: &mut Errors) {
    let root = Path::root();
    series(event, errors);
    if !event.has("eventTime") {
        errors.required(&root.field("eventTime"), "");
    }
    let kind = event.text("type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid(
            &root.field("type"),
            "",
            format!("has invalid value: {kind}"),
        );
    }
    for (core, newer, shown) in &FIELDS[3..7] {
        let unset = match get(event, core, newer) {
            Value::Null | Value::Int(0) => true,
            Value::Object(source) => {
                source.text("component").is_empty() && source.text("host").is_empty()
            }
            _ => false,
        };
        if !unset {
            errors.invalid(&root.field(shown), "", "needs to be unset");
        }
    }
    // Upstream looks at the times and the count before it looks at the source.
    errors.sort_by_key(|error| error.field == "source");
}

fn series(event: &Map, errors: &mut Errors) {
    let root = Path::root();
    let Some(series) = event.object("series") else {
        return;
    };
    if series.int("count").unwrap_or_default() < 2 {
        errors.invalid(&root.field("series.count"), "", "should be at least 2");
    }
    if !series.has("lastObservedTime") {
        errors.required(&root.field("series.lastObservedTime"), "");
    }
}

fn update(new: &Map, old: &Map, errors: &mut Errors) {
    if new.value("series") != old.value("series") {
        series(new, errors);
    }
    let root = Path::root();
    for (core, newer, shown) in FIELDS {
        let (now, before) = (get(new, core, newer), get(old, core, newer));
        if check::same(now, before) {
            continue;
        }
        let path = root.field(shown);
        let structure = match shown {
            "involvedObject" | "related" => "ObjectReference",
            "source" => "EventSource",
            _ => "",
        };
        if shown == "count" && now.is_null() {
            errors.invalid(&path, 0, check::IMMUTABLE);
        } else if structure.is_empty() && shown.ends_with("Time") || shown.ends_with("Timestamp") {
            errors.invalid_value(&path, now, check::IMMUTABLE);
        } else if structure.is_empty() {
            check::immutable(&path, now, before, errors);
        } else if shown != "related" && now.is_null() {
            let shape = internal::print(&Value::Object(Map::new()), structure);
            errors.push(print::invalid_text(&path, shape, check::IMMUTABLE));
        } else {
            errors.push(internal::invalid(&path, now, structure, check::IMMUTABLE));
        }
    }
    check::unchanged(new, old, "reportingInstance", &root, errors);
}

#[cfg(test)]
mod tests;
