//! The rows of the tables that clients print, as upstream's server computes them.
//!
//! Upstream: `pkg/printers/internalversion/printers.go` for most kinds, the default table
//! convertor of `apiserver/pkg/registry/rest/table.go` for the others. The server always sends the
//! wide cells too; the priority of a column tells clients which to hide. Groups have a file each,
//! and the file of a group says which function fills the rows of which kind.

mod admission;
mod apps;
mod autoscaling;
mod batch;
mod core;
mod custom;
mod networking;
mod others;
mod rbac;
mod row;
mod scale;
mod storage;

use object::{Map, Value, value};

pub use self::custom::custom_columns;
use self::row::{Row, cells};
pub use self::scale::{scale_cells, scale_columns};
use crate::kind::Kind;

/// Fills the cells of one row.
type Printer = fn(&Row<'_>) -> Vec<Value>;

/// The cells of one row, in the order of the columns of the kind.
///
/// `IPAddress` has one cell more than columns, upstream too: its age.
pub fn cells(kind: &Kind, object: &Map, now_unix_seconds: i64) -> Vec<Value> {
    let row = Row::new(object, now_unix_seconds);
    if kind.is_custom() {
        return custom::cells(kind.columns(), &row);
    }
    let printer = printer(&kind.group, &kind.kind).unwrap_or(default_cells);
    printer(&row)
}

/// What clients should know about a row beyond its cells: whether its object has finished.
pub fn conditions(kind: &Kind, object: &Map) -> Vec<Value> {
    if !kind.group.is_empty() || kind.kind != "Pod" {
        return Vec::new();
    }
    let (reason, message) = match Row::new(object, 0).text(&["status", "phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    vec![value!({
        "type": "Completed",
        "status": "True",
        "reason": reason,
        "message": message,
    })]
}

/// The printer of a built-in kind; none if upstream leaves it to the default.
fn printer(group: &str, kind: &str) -> Option<Printer> {
    match group {
        "" => core::printer(kind),
        "admissionregistration.k8s.io" => admission::printer(kind),
        "apps" => apps::printer(kind),
        "autoscaling" => autoscaling::printer(kind),
        "batch" => batch::printer(kind),
        "events.k8s.io" => core::event::printer(kind),
        "networking.k8s.io" => networking::printer(kind),
        "rbac.authorization.k8s.io" => rbac::printer(kind),
        "storage.k8s.io" => storage::printer(kind),
        _ => others::printer(group, kind),
    }
}

/// Name and time of creation, for kinds without columns of their own.
fn default_cells(row: &Row<'_>) -> Vec<Value> {
    let created = match row.text(&["metadata", "creationTimestamp"]) {
        "" => "0001-01-01T00:00:00Z",
        created => created,
    };
    cells![row.name(), created]
}

#[cfg(test)]
mod tests;
