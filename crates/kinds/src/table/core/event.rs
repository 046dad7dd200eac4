//! Rows of events, which two groups serve with different names for the same fields.

use object::Value;

use crate::table::Printer;
use crate::table::row::{Row, cells, non_empty_or, text, unix_seconds};

/// The printer for kinds of `events.k8s.io`.
pub(in crate::table) fn printer(kind: &str) -> Option<Printer> {
    (kind == "Event").then_some(new_event as Printer)
}

/// Where the fields of an event are in one of the groups.
struct Names {
    object: &'static str,
    message: &'static str,
    source: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
    controller: &'static str,
}

pub(super) fn core_event(row: &Row<'_>) -> Vec<Value> {
    let names = Names {
        object: "involvedObject",
        message: "message",
        source: "source",
        first: "firstTimestamp",
        last: "lastTimestamp",
        count: "count",
        controller: "reportingComponent",
    };
    event(row, &names)
}

fn new_event(row: &Row<'_>) -> Vec<Value> {
    let names = Names {
        object: "regarding",
        message: "note",
        source: "deprecatedSource",
        first: "deprecatedFirstTimestamp",
        last: "deprecatedLastTimestamp",
        count: "deprecatedCount",
        controller: "reportingController",
    };
    event(row, &names)
}

fn event(row: &Row<'_>, names: &Names) -> Vec<Value> {
    let first = match unix_seconds(row.at(&[names.first])) {
        Some(first) => row.elapsed(first),
        None => row.since(row.at(&["eventTime"])),
    };
    let (last, count) = match row.at(&["series"]) {
        Some(series) => (
            row.since(series.get("lastObservedTime")),
            row.int(&["series", "count"]),
        ),
        None => {
            let last = unix_seconds(row.at(&[names.last])).map(|last| row.elapsed(last));
            // An event that happened once may say so by leaving out the count.
            let count = row.int(&[names.count]);
            (
                last.unwrap_or_else(|| first.clone()),
                if count == 0 { 1 } else { count },
            )
        }
    };
    cells![
        last,
        row.text(&["type"]),
        row.text(&["reason"]),
        target(row, names),
        row.text(&[names.object, "fieldPath"]),
        source(row, names),
        row.text(&[names.message]).trim(),
        first,
        count,
        row.name(),
    ]
}

fn target(row: &Row<'_>, names: &Names) -> String {
    let kind = row.text(&[names.object, "kind"]).to_lowercase();
    match row.text(&[names.object, "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

/// The component that reported, and where it ran if that is known.
fn source(row: &Row<'_>, names: &Names) -> String {
    let source = row.at(&[names.source]).unwrap_or(&Value::Null);
    let component = non_empty_or(text(source, &["component"]), row.text(&[names.controller]));
    let instance = non_empty_or(text(source, &["host"]), row.text(&["reportingInstance"]));
    if instance.is_empty() {
        component.to_owned()
    } else {
        format!("{component}, {instance}")
    }
}
