//! Rows of the `autoscaling` group.

use object::Value;

use super::Printer;
use super::row::{NONE, Row, UNKNOWN, UNSET, cells, quantity, text};
use crate::Catalogue;
use crate::convert::convert;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    (kind == "HorizontalPodAutoscaler").then_some(horizontal_pod_autoscaler as Printer)
}

/// Version 1 has no field for metrics other than the use of CPU; both print the row of version 2.
fn horizontal_pod_autoscaler(row: &Row<'_>) -> Vec<Value> {
    if row.at(&["spec", "metrics"]).is_some() {
        return version_2(row);
    }
    let kind = |version| {
        Catalogue::builtin()
            .by_kind("autoscaling", version, "HorizontalPodAutoscaler")
            .expect("both versions are served")
    };
    let object = convert(kind("v1"), kind("v2"), row.object().clone());
    version_2(&row.with(&object))
}

fn version_2(row: &Row<'_>) -> Vec<Value> {
    let reference = format!(
        "{}/{}",
        row.text(&["spec", "scaleTargetRef", "kind"]),
        row.text(&["spec", "scaleTargetRef", "name"])
    );
    let min = row.at(&["spec", "minReplicas"]).and_then(Value::as_int);
    cells![
        row.name(),
        reference,
        targets(
            row.items(&["spec", "metrics"]),
            row.items(&["status", "currentMetrics"])
        ),
        min.map_or_else(|| UNSET.to_owned(), |min| min.to_string()),
        row.int(&["spec", "maxReplicas"]),
        row.int(&["status", "currentReplicas"]),
        row.age(),
    ]
}

/// The first two metrics, and how many more there are.
fn targets(metrics: &[Value], readings: &[Value]) -> String {
    const SHOWN_MAX: usize = 2;
    if metrics.is_empty() {
        return NONE.to_owned();
    }
    let shown: Vec<String> = metrics
        .iter()
        .take(SHOWN_MAX)
        .enumerate()
        .map(|(index, metric)| target(metric, readings.get(index)))
        .collect();
    let shown = shown.join(", ");
    if metrics.len() > SHOWN_MAX {
        format!("{shown} + {} more...", metrics.len() - SHOWN_MAX)
    } else {
        shown
    }
}

fn target(metric: &Value, reading: Option<&Value>) -> String {
    let (field, named) = match text(metric, &["type"]) {
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "External" => ("external", false),
        _ => return "<unknown type>".to_owned(),
    };
    let source = metric.get(field).unwrap_or(&Value::Null);
    let reading = reading.and_then(|reading| reading.get(field));
    let wanted = Amounts::of(source, "target");
    let current = reading.map(|reading| Amounts::of(reading, "current"));
    if named {
        let name = text(source, &["name"]);
        return format!("{name}: {}", resource_target(&wanted, current.as_ref()));
    }
    match (field, wanted.average_value) {
        ("pods", wanted) => {
            let current = current.map(|current| printed(current.average_value));
            pair(current, &printed(wanted))
        }
        (_, Some(wanted)) => {
            let current = current.and_then(|current| current.average_value);
            let current = current.map(|current| printed(Some(current)));
            format!("{} (avg)", pair(current, &printed(Some(wanted))))
        }
        (_, None) => {
            let current = current.map(|current| printed(current.value));
            pair(current, &printed(wanted.value))
        }
    }
}

/// A resource is aimed at as an average amount, or else as a percentage.
fn resource_target(wanted: &Amounts<'_>, current: Option<&Amounts<'_>>) -> String {
    if let Some(wanted) = wanted.average_value {
        let current = current.map(|current| printed(current.average_value));
        return pair(current, &printed(Some(wanted)));
    }
    let percent = |percent: i64| format!("{percent}%");
    let current = current.and_then(|current| current.average_utilization);
    let wanted = wanted.average_utilization.map(percent);
    pair(
        current.map(percent),
        &wanted.unwrap_or_else(|| "<auto>".to_owned()),
    )
}

fn pair(current: Option<String>, wanted: &str) -> String {
    format!("{}/{wanted}", current.as_deref().unwrap_or(UNKNOWN))
}

/// The amounts of a target or of a reading.
struct Amounts<'a> {
    value: Option<&'a Value>,
    average_value: Option<&'a Value>,
    average_utilization: Option<i64>,
}

impl<'a> Amounts<'a> {
    fn of(source: &'a Value, role: &str) -> Amounts<'a> {
        let amount = |name: &str| source.at(&[role, name]).filter(|it| !it.is_null());
        Amounts {
            value: amount("value"),
            average_value: amount("averageValue"),
            average_utilization: amount("averageUtilization").and_then(Value::as_int),
        }
    }
}

/// A quantity, or what Go prints for a missing one.
fn printed(amount: Option<&Value>) -> String {
    match amount {
        Some(amount) => quantity(Some(amount)),
        None => "<nil>".to_owned(),
    }
}
