//! Rows of the scale subresource, which kinds of several groups serve alike.

use object::{Map, Value};

use super::custom;
use super::row::{Row, cells};
use crate::json_path::JsonPath;
use crate::kind::{Column, Kind};

/// The columns of the scale of a kind.
pub fn scale_columns(kind: &Kind) -> Vec<Column> {
    // Upstream prints custom resources by path, with the formats of that printer.
    let (name_format, age_kind) = if kind.is_custom() {
        ("name", "date")
    } else {
        ("", "string")
    };
    let column = |name: &str, kind: &str, format: &str, path: Option<&str>| Column {
        name: name.into(),
        kind: kind.into(),
        format: format.into(),
        description: Default::default(),
        priority: 0,
        path: path.and_then(|path| JsonPath::parse(path).ok()),
    };
    vec![
        column("Name", "string", name_format, None),
        column("Desired", "integer", "", Some(".spec.replicas")),
        column("Available", "integer", "", Some(".status.replicas")),
        column("Age", age_kind, "", Some(".metadata.creationTimestamp")),
    ]
}

/// The cells of the row of a scale, in the order of [`scale_columns`].
///
/// A number that the scale leaves out is a zero, but for custom resources it is nothing.
pub fn scale_cells(kind: &Kind, scale: &Map, now_unix_seconds: i64) -> Vec<Value> {
    let row = Row::new(scale, now_unix_seconds);
    if kind.is_custom() {
        return custom::cells(&scale_columns(kind), &row);
    }
    cells![
        row.name(),
        row.int(&["spec", "replicas"]),
        row.int(&["status", "replicas"]),
        row.age(),
    ]
}
