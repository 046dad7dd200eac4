//! Rows of the `autoscaling` group.
//!
//! Version 1 knows one target, the use of CPU. Everything else that version 2 says is kept in two
//! annotations of its objects, so both versions print the same row.

use object::{Text, Value, json, value};

use super::Printer;
use super::row::{Row, UNKNOWN, UNSET, cells, quantity, text};

/// What version 1 keeps the metrics in that it has no field for.
const METRICS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// What version 1 keeps the last readings in.
const CURRENT_METRICS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
/// The use of CPU, in percent, that is aimed at if nothing is said.
const CPU_PERCENT_DEFAULT: i64 = 80;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    (kind == "HorizontalPodAutoscaler").then_some(horizontal_pod_autoscaler as Printer)
}

fn horizontal_pod_autoscaler(row: &Row<'_>) -> Vec<Value> {
    let reference = format!(
        "{}/{}",
        row.text(&["spec", "scaleTargetRef", "kind"]),
        row.text(&["spec", "scaleTargetRef", "name"])
    );
    let min = row.at(&["spec", "minReplicas"]).and_then(Value::as_int);
    let targets = match row.at(&["spec", "metrics"]) {
        Some(Value::Array(metrics)) => targets(metrics, row.items(&["status", "currentMetrics"])),
        _ => targets(&version_1_metrics(row), &version_1_readings(row)),
    };
    cells![
        row.name(),
        reference,
        targets,
        min.map_or_else(|| UNSET.to_owned(), |min| min.to_string()),
        row.int(&["spec", "maxReplicas"]),
        row.int(&["status", "currentReplicas"]),
        row.age(),
    ]
}

/// The use of CPU comes last, as conversion puts it.
fn version_1_metrics(row: &Row<'_>) -> Vec<Value> {
    let mut metrics = annotated_list(row, METRICS_ANNOTATION).unwrap_or_default();
    let target = row.at(&["spec", "targetCPUUtilizationPercentage"]);
    let target = target
        .and_then(Value::as_int)
        .or_else(|| metrics.is_empty().then_some(CPU_PERCENT_DEFAULT));
    if let Some(target) = target {
        metrics.push(value!({
            "type": "Resource",
            "resource": {"name": "cpu", "targetAverageUtilization": target},
        }));
    }
    metrics
}

/// The annotation says more than the field and wins.
fn version_1_readings(row: &Row<'_>) -> Vec<Value> {
    if let Some(readings) = annotated_list(row, CURRENT_METRICS_ANNOTATION) {
        return readings;
    }
    let current = row.at(&["status", "currentCPUUtilizationPercentage"]);
    let current = current.and_then(Value::as_int).map(|current| {
        value!({
            "type": "Resource",
            "resource": {"name": "cpu", "currentAverageUtilization": current},
        })
    });
    current.into_iter().collect()
}

/// The list in an annotation; one that cannot be read counts as absent.
fn annotated_list(row: &Row<'_>, annotation: &str) -> Option<Vec<Value>> {
    let text = row.at(&["metadata", "annotations", annotation])?.as_str()?;
    match json::parse(text.as_bytes()) {
        Ok(Value::Array(list)) => Some(list),
        _ => None,
    }
}

/// The first two metrics, and how many more there are.
fn targets(metrics: &[Value], readings: &[Value]) -> String {
    const SHOWN_MAX: usize = 2;
    if metrics.is_empty() {
        return "<none>".to_owned();
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
    match (field, &wanted.average_value) {
        ("pods", wanted) => {
            let current = current.map(|current| printed(current.average_value.as_ref()));
            pair(current, &printed(wanted.as_ref()))
        }
        (_, Some(wanted)) => {
            let current = current.and_then(|current| current.average_value);
            let current = current.map(|current| printed(Some(&current)));
            format!("{} (avg)", pair(current, &printed(Some(wanted))))
        }
        (_, None) => {
            let current = current.map(|current| printed(current.value.as_ref()));
            pair(current, &printed(wanted.value.as_ref()))
        }
    }
}

/// A resource is aimed at as an average amount, or else as a percentage.
fn resource_target(wanted: &Amounts, current: Option<&Amounts>) -> String {
    if let Some(wanted) = &wanted.average_value {
        let current = current.map(|current| printed(current.average_value.as_ref()));
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
struct Amounts {
    value: Option<Value>,
    average_value: Option<Value>,
    average_utilization: Option<i64>,
}

impl Amounts {
    /// Version 2 keeps them in a map named `role`, version 1 beside each other in fields that
    /// start with it, except for one of object metrics.
    fn of(source: &Value, role: &str) -> Amounts {
        let amount = |name: &str, upper: &str| {
            let flat: Text = [role, upper].concat().into();
            let mut places = [
                source.at(&[role, name]),
                source.get(&flat),
                source.get(name),
            ]
            .into_iter()
            .flatten();
            places.find(|amount| !amount.is_null()).cloned()
        };
        Amounts {
            value: amount("value", "Value"),
            average_value: amount("averageValue", "AverageValue"),
            average_utilization: amount("averageUtilization", "AverageUtilization")
                .and_then(|percent| percent.as_int()),
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
