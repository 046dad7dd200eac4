//! Objects and the cells of their rows, as data in `cases/`, and what must hold for every kind.
//!
//! A case leaves out what it is not about: an object without a name is called `one`, and one
//! without a time of creation was created an hour ago.

use std::collections::BTreeSet;

use object::time::Time;
use object::{Map, Value, value, yaml};

use super::{cells, conditions, printer, scale_cells, scale_columns};
use crate::{Catalogue, Kind};

const CASES: [(&str, &str); 5] = [
    ("core.yaml", include_str!("cases/core.yaml")),
    ("pods.yaml", include_str!("cases/pods.yaml")),
    ("workloads.yaml", include_str!("cases/workloads.yaml")),
    ("storage.yaml", include_str!("cases/storage.yaml")),
    ("others.yaml", include_str!("cases/others.yaml")),
];

/// When all rows are printed.
const NOW: &str = "2026-01-02T00:00:00Z";
const CREATED: &str = "2026-01-01T23:00:00Z";

struct Case {
    /// File and position, for messages.
    place: String,
    kind: &'static Kind,
    object: Map,
    expected: Value,
    conditions: Value,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (file, text) in CASES {
        let list = yaml::parse(text.as_bytes()).expect("the cases are YAML");
        for (index, case) in list.as_array().expect("a list").iter().enumerate() {
            let mut object = case.get("object").and_then(Value::as_object).cloned();
            let object = object.get_or_insert_default();
            let metadata = object.object_at("metadata");
            metadata.get_or_insert_with("name", || "one".into());
            metadata.get_or_insert_with("creationTimestamp", || CREATED.into());
            cases.push(Case {
                place: format!("{file} case {index}"),
                kind: kind(case.str_at(&["kind"]).expect("a kind")),
                object: object.clone(),
                expected: case.get("cells").expect("cells").clone(),
                conditions: case.get("conditions").cloned().unwrap_or(value!([])),
            });
        }
    }
    cases
}

/// The kind written as `apps/v1/Deployment` or `v1/Pod`.
fn kind(text: &str) -> &'static Kind {
    let mut parts = text.rsplitn(3, '/');
    let (kind, version) = (parts.next().expect("kind"), parts.next().expect("version"));
    Catalogue::builtin()
        .by_kind(parts.next().unwrap_or_default(), version, kind)
        .unwrap_or_else(|| panic!("{text} is not served"))
}

fn now() -> i64 {
    Time::parse(NOW).expect("a time").unix_seconds()
}

#[test]
fn rows_hold_the_cells_that_upstream_prints() {
    for case in cases() {
        let printed = Value::Array(cells(case.kind, &case.object, now()));
        assert_eq!(printed, case.expected, "{}", case.place);
        let conditions = Value::Array(conditions(case.kind, &case.object));
        assert_eq!(conditions, case.conditions, "{}", case.place);
    }
}

#[test]
fn every_kind_with_columns_of_its_own_has_a_printer_and_a_case() {
    let covered: BTreeSet<(&str, &str, &str)> =
        cases().iter().map(|case| identity(case.kind)).collect();
    for kind in Catalogue::builtin().kinds() {
        let own = !kind.columns.is_empty() && kind.columns.iter().all(|it| it.name != "Created At");
        let printer = printer(&kind.group, &kind.kind);
        assert_eq!(printer.is_some(), own, "{:?}", identity(kind));
        assert!(
            !own || covered.contains(&identity(kind)),
            "{:?}",
            identity(kind)
        );
    }
}

#[test]
fn an_object_that_holds_nothing_still_has_a_cell_per_column() {
    for kind in Catalogue::builtin().kinds() {
        let columns = match kind.kind.as_str() {
            // Upstream sends the age of these without a column for it.
            "IPAddress" => 3,
            _ if kind.columns.is_empty() => 2,
            _ => kind.columns.len(),
        };
        let row = cells(kind, &Map::new(), now());
        assert_eq!(row.len(), columns, "{:?}", identity(kind));
    }
}

#[test]
fn numbers_and_flags_fill_columns_of_their_type() {
    for case in cases() {
        let row = cells(case.kind, &case.object, now());
        for (column, cell) in case.kind.columns.iter().zip(&row) {
            let fits = match column.kind.as_str() {
                "integer" => cell.as_int().is_some(),
                // Upstream declares this one so, and prints it as a text.
                "boolean" if column.name == "Suspend" => cell.as_str().is_some(),
                "boolean" => cell.as_bool().is_some(),
                // Columns of strings hold numbers here and there upstream.
                _ => !matches!(cell, Value::Null | Value::Array(_) | Value::Object(_)),
            };
            assert!(fits, "{}: {} is {cell:?}", case.place, column.name);
        }
    }
}

#[test]
fn ages_are_told_in_two_or_three_figures() {
    let golden = [
        ("2026-01-02T00:00:05Z", "<invalid>"),
        ("2026-01-02T00:00:01Z", "0s"),
        ("2026-01-02T00:00:00Z", "0s"),
        ("2026-01-01T23:58:01Z", "119s"),
        ("2026-01-01T23:57:00Z", "3m"),
        ("2026-01-01T23:56:30Z", "3m30s"),
        ("2026-01-01T21:00:30Z", "179m"),
        ("2026-01-01T20:30:00Z", "3h30m"),
        ("2026-01-01T12:30:00Z", "11h"),
        ("2025-12-30T21:00:00Z", "2d3h"),
        ("2025-12-02T00:00:00Z", "31d"),
        ("2023-01-01T00:00:00Z", "3y2d"),
        ("2016-01-01T00:00:00Z", "10y"),
        ("0001-01-01T00:00:00Z", "<unknown>"),
        ("", "<unknown>"),
    ];
    for (created, age) in golden {
        let object = value!({"metadata": {"name": "one", "creationTimestamp": created}});
        let row = cells(
            kind("v1/ServiceAccount"),
            object.as_object().expect("a map"),
            now(),
        );
        assert_eq!(Value::Array(row), value!(["one", age]), "{created}");
    }
    let absent = cells(kind("v1/ServiceAccount"), &Map::new(), now());
    assert_eq!(Value::Array(absent), value!(["", "<unknown>"]));
}

fn identity(kind: &Kind) -> (&str, &str, &str) {
    (&kind.group, &kind.version, &kind.kind)
}

#[test]
fn scales_have_a_table_of_their_own() {
    let deployment = kind("apps/v1/Deployment");
    let definition = value!({"spec": {"versions": [{"name": "v1"}]}});
    let custom = &crate::custom::kinds(definition.as_object().expect("a map"), 0)[0];
    let scale = value!({
        "metadata": {"name": "one", "creationTimestamp": CREATED},
        "spec": {},
        "status": {"replicas": 2},
    });
    let scale = scale.as_object().expect("a map");
    let expected = [
        (deployment, value!(["one", 0, 2, "60m"]), ["", "string"]),
        (custom, value!(["one", null, 2, "60m"]), ["name", "date"]),
    ];
    for (kind, cells, [name_format, age_kind]) in expected {
        assert_eq!(Value::Array(scale_cells(kind, scale, now())), cells);
        let columns = scale_columns(kind);
        let names: Vec<&str> = columns.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
        assert_eq!(columns[0].format, name_format);
        assert_eq!(columns[3].kind, age_kind);
    }
}
