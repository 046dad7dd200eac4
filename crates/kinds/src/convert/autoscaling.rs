//! Horizontal pod autoscalers: `v1` knows only CPU utilization, so the rest of `v2` travels in
//! annotations.
//!
//! Contract: `pkg/apis/autoscaling/v1/conversion.go`. The texts of the annotations are seen by
//! clients, so their fields stand in upstream's order.

use object::{Map, Value, json, value};

use super::metrics::{self, Side, array, leaf, object_text};
use crate::defaults::autoscaling::{
    BEHAVIOR, CONDITIONS, CPU_UTILIZATION_PERCENT, CURRENT_METRICS, METRICS, cpu_metric,
};
use crate::defaults::fill::{at, items, list, object, text, text_at};

/// The annotations that carry what `v1` has no field for.
pub(crate) const CARRIERS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    BEHAVIOR,
    CONDITIONS,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Turns a `v1` autoscaler into a `v2` one.
pub(super) fn to_v2(autoscaler: &mut Map) {
    let carried = |key: &str| {
        let text = text_at(autoscaler, &["metadata", "annotations", key]);
        json::parse(text.as_bytes()).ok()
    };
    let others = carried(METRICS);
    let current = carried(CURRENT_METRICS);
    let conditions = carried(CONDITIONS);
    let behavior = carried(BEHAVIOR).and_then(|text| behavior_from(&text));

    let spec = autoscaler.object_at("spec");
    let mut metrics = metrics_from(others.as_ref(), Side::Target).unwrap_or_default();
    if let Some(percent) = spec
        .remove("targetCPUUtilizationPercentage")
        .and_then(|it| it.as_int())
    {
        metrics.push(cpu_metric(percent));
    }
    if metrics.is_empty() {
        metrics.push(cpu_metric(CPU_UTILIZATION_PERCENT));
    }
    spec.insert("metrics", Value::Array(metrics));
    if let Some(behavior) = behavior {
        spec.insert("behavior", behavior);
    }

    let status = autoscaler.object_at("status");
    let percent = status
        .remove("currentCPUUtilizationPercentage")
        .and_then(|it| it.as_int());
    let current = metrics_from(current.as_ref(), Side::Current)
        .or_else(|| percent.map(|percent| vec![cpu_status(percent)]));
    status.insert("currentMetrics", current.map_or(Value::Null, Value::Array));
    if let Some(Value::Array(conditions)) = conditions {
        status.insert("conditions", Value::Array(conditions));
    }
    if status.get("currentReplicas") == Some(&Value::Int(0)) {
        status.remove("currentReplicas");
    }
    drop_carriers(autoscaler);
}

/// Turns a `v2` autoscaler into a `v1` one.
pub(super) fn to_v1(autoscaler: &mut Map) {
    drop_carriers(autoscaler);
    let mut carried: Vec<(&str, String)> = Vec::new();

    let spec = autoscaler.object_at("spec");
    let (cpu, others): (Vec<&Map>, Vec<&Map>) =
        items(spec, "metrics").partition(|metric| cpu_percent(metric, "target").is_some());
    if !others.is_empty() {
        let texts = others
            .into_iter()
            .map(|metric| metrics::to_text(metric, Side::Target));
        carried.push((METRICS, array(texts)));
    }
    let percent = cpu.first().and_then(|metric| cpu_percent(metric, "target"));
    if let Some(behavior) = object(spec, "behavior") {
        carried.push((BEHAVIOR, behavior_text(behavior)));
    }
    spec.remove("metrics");
    spec.remove("behavior");
    if let Some(percent) = percent {
        spec.insert("targetCPUUtilizationPercentage", percent.into());
    }

    let status = autoscaler.object_at("status");
    let percent = items(status, "currentMetrics")
        .filter_map(|metric| cpu_percent(metric, "current"))
        .last();
    if !list(status, "currentMetrics").is_empty() {
        let texts = items(status, "currentMetrics");
        carried.push((
            CURRENT_METRICS,
            array(texts.map(|metric| metrics::to_text(metric, Side::Current))),
        ));
    }
    if !list(status, "conditions").is_empty() {
        carried.push((
            CONDITIONS,
            array(items(status, "conditions").map(condition_text)),
        ));
    }
    status.remove("currentMetrics");
    status.remove("conditions");
    if let Some(percent) = percent {
        status.insert("currentCPUUtilizationPercentage", percent.into());
    }
    for key in ["currentReplicas", "desiredReplicas"] {
        status.get_or_insert_with(key, || 0.into());
    }
    for (key, text) in carried {
        autoscaler
            .object_at("metadata")
            .object_at("annotations")
            .insert(key, text.into());
    }
}

fn drop_carriers(autoscaler: &mut Map) {
    let metadata = autoscaler.object_at("metadata");
    let Some(annotations) = metadata
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let before = annotations.len();
    annotations.retain(|key, _| !CARRIERS.contains(&key));
    if annotations.is_empty() && before > 0 {
        metadata.remove("annotations");
    }
}

/// The CPU utilization that a metric aims at or stands at.
fn cpu_percent(metric: &Map, side: &str) -> Option<i64> {
    let is_cpu =
        text(metric, "type") == "Resource" && text_at(metric, &["resource", "name"]) == "cpu";
    at(metric, &["resource", side, "averageUtilization"])?
        .as_int()
        .filter(|_| is_cpu)
}

fn cpu_status(percent: i64) -> Value {
    value!({"type": "Resource", "resource": {
        "name": "cpu",
        "current": {"averageUtilization": percent},
    }})
}

fn metrics_from(carried: Option<&Value>, side: Side) -> Option<Vec<Value>> {
    let metrics = carried?.as_array()?;
    metrics
        .iter()
        .map(|metric| Some(metrics::from_text(metric.as_object()?, side)))
        .collect()
}

fn condition_text(condition: &Map) -> String {
    let said = |key: &str| condition.get(key).filter(|it| !it.is_null()).map(leaf);
    object_text(&[
        ("type", said("type")),
        ("status", said("status")),
        (
            "lastTransitionTime",
            said("lastTransitionTime").or_else(|| Some("null".to_owned())),
        ),
        ("reason", said("reason")),
        ("message", said("message")),
    ])
}

/// The names of a scaling rule's fields: in `v2`, and in the annotation, in its order.
const RULE_FIELDS: [(&str, &str); 4] = [
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("policies", "Policies"),
    ("tolerance", "Tolerance"),
];
const POLICY_FIELDS: [(&str, &str); 3] = [
    ("type", "Type"),
    ("value", "Value"),
    ("periodSeconds", "PeriodSeconds"),
];
const DIRECTIONS: [(&str, &str); 2] = [("scaleUp", "ScaleUp"), ("scaleDown", "ScaleDown")];

fn behavior_text(behavior: &Map) -> String {
    let null = || "null".to_owned();
    let directions = DIRECTIONS.map(|(key, name)| {
        let rules = object(behavior, key).map(|rules| {
            let fields = RULE_FIELDS.map(|(key, name)| {
                let text = match rules.get(key) {
                    None | Some(Value::Null) => null(),
                    Some(Value::Array(policies)) => array(
                        policies
                            .iter()
                            .filter_map(Value::as_object)
                            .map(policy_text),
                    ),
                    Some(value) => leaf(value),
                };
                (name, Some(text))
            });
            object_text(&fields)
        });
        (name, Some(rules.unwrap_or_else(null)))
    });
    object_text(&directions)
}

fn policy_text(policy: &Map) -> String {
    let fields = POLICY_FIELDS.map(|(key, name)| {
        (
            name,
            Some(policy.get(key).map_or_else(|| "0".to_owned(), leaf)),
        )
    });
    object_text(&fields)
}

/// Reads the annotation back; one that says nothing is no behavior.
fn behavior_from(carried: &Value) -> Option<Value> {
    let carried = carried.as_object()?;
    let mut behavior = Map::new();
    for (key, name) in DIRECTIONS {
        let Some(rules) = get_folded(carried, name).and_then(Value::as_object) else {
            continue;
        };
        let mut out = Map::new();
        for (key, name) in RULE_FIELDS {
            let value = match get_folded(rules, name) {
                None | Some(Value::Null) => continue,
                Some(Value::Array(policies)) => Value::Array(
                    policies
                        .iter()
                        .filter_map(Value::as_object)
                        .map(policy_from)
                        .collect(),
                ),
                Some(value) => value.clone(),
            };
            out.insert(key, value);
        }
        behavior.insert(key, out.into());
    }
    (!behavior.is_empty()).then(|| behavior.into())
}

fn policy_from(carried: &Map) -> Value {
    let mut policy = Map::new();
    for (key, name) in POLICY_FIELDS {
        if let Some(value) = get_folded(carried, name).filter(|value| !value.is_null()) {
            policy.insert(key, value.clone());
        }
    }
    policy.into()
}

/// The value under a key in any case, as upstream reads texts without declared names.
fn get_folded<'a>(map: &'a Map, name: &str) -> Option<&'a Value> {
    map.get(name).or_else(|| {
        map.iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    })
}
