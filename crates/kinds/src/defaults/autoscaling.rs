//! Defaults of horizontal pod autoscalers, in both versions served.

use object::{Map, Value, json, value};

use super::fill::{fill, is_unset, list, object, text_at};

/// The CPU utilization in percent that an autoscaler without metrics aims at.
pub(crate) const CPU_UTILIZATION_PERCENT: i64 = 80;

/// Where a `v1` autoscaler carries the metrics that it has no field for.
pub(crate) const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// Where it carries how fast to scale.
pub(crate) const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// Where it carries what the metrics are now.
pub(crate) const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
/// Where it carries the conditions of its status.
pub(crate) const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Fills an autoscaler of `autoscaling/v1`.
pub(crate) fn autoscaler_v1(autoscaler: &mut Map) {
    let has_metrics = carries_metrics(autoscaler);
    let spec = autoscaler.object_at("spec");
    fill(spec, "minReplicas", 1);
    if !has_metrics {
        fill(
            spec,
            "targetCPUUtilizationPercentage",
            CPU_UTILIZATION_PERCENT,
        );
    }
}

fn carries_metrics(autoscaler: &Map) -> bool {
    let text = text_at(autoscaler, &["metadata", "annotations", METRICS]);
    matches!(json::parse(text.as_bytes()), Ok(Value::Array(metrics)) if !metrics.is_empty())
}

/// Fills an autoscaler of `autoscaling/v2`.
pub(crate) fn autoscaler_v2(autoscaler: &mut Map) {
    let spec = autoscaler.object_at("spec");
    fill(spec, "minReplicas", 1);
    if list(spec, "metrics").is_empty() {
        spec.insert(
            "metrics",
            Value::Array(vec![cpu_metric(CPU_UTILIZATION_PERCENT)]),
        );
    }
    if !is_unset(spec, "behavior") {
        let behavior = spec.object_at("behavior");
        scaling_rules(behavior, "scaleUp", scale_up());
        scaling_rules(behavior, "scaleDown", scale_down());
    }
}

/// The metric that aims at this CPU utilization.
pub(crate) fn cpu_metric(percent: i64) -> Value {
    value!({"type": "Resource", "resource": {
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent},
    }})
}

fn scale_up() -> Value {
    value!({
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    })
}

fn scale_down() -> Value {
    value!({
        "selectPolicy": "Max",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    })
}

/// What the client said about one direction, over what is usual.
fn scaling_rules(behavior: &mut Map, direction: &str, usual: Value) {
    let Value::Object(mut rules) = usual else {
        return;
    };
    if let Some(said) = object(behavior, direction) {
        for (key, value) in said.iter().filter(|(_, value)| !value.is_null()) {
            rules.insert(key.clone(), value.clone());
        }
    }
    behavior.insert(direction, rules.into());
}
