//! Autoscalers of pods.

use object::field::{FieldError, Path};
use object::quantity::Quantity;
use object::{Map, Value, group, names};

use super::check::{self, Errors, Report};
use super::quantities;
use super::read::{Read, maps};

const WINDOW_SECONDS_MAX: i64 = 3600;
const PERIOD_SECONDS_MAX: i64 = 1800;
const METRIC_TYPES: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];
/// Where each type of metric is described, in the order in which upstream looks.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const POPULATE: &str = "must populate information for the given metric source";

/// Checks an autoscaler in either version.
pub(crate) fn validate(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() && subresource == "status" {
        let counters = ["currentReplicas", "desiredReplicas"];
        let status = new.object_or_empty("status");
        check::not_negative(status, &counters, &root.field("status"), &mut errors);
        return errors;
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    let stored = old.map(|old| old.object_or_empty("spec"));
    replicas(spec, stored, &path, &mut errors);
    let target = spec.object_or_empty("scaleTargetRef");
    let group = if target.text("kind") == "ReplicationController" {
        ApiGroup::Optional
    } else {
        ApiGroup::Required
    };
    let group = match stored {
        Some(stored) if !is_readable(stored.object_or_empty("scaleTargetRef"), group) => {
            ApiGroup::Unchecked
        }
        _ => group,
    };
    reference(target, group, &path.field("scaleTargetRef"), &mut errors);
    metrics(spec, &path.field("metrics"), &mut errors);
    if let Some(behavior) = spec.object("behavior") {
        let path = path.field("behavior");
        for key in ["scaleUp", "scaleDown"] {
            if let Some(rules) = behavior.object(key) {
                scaling_rules(rules, &path.field(key), &mut errors);
            }
        }
    }
    errors
}

fn replicas(spec: &Map, stored: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let least = i64::from(stored.and_then(|stored| stored.int("minReplicas")) != Some(0));
    let min = spec.int("minReplicas");
    let max = spec.int("maxReplicas").unwrap_or_default();
    if let Some(min) = min.filter(|min| *min < least) {
        let detail = format!("must be greater than or equal to {least}");
        errors.invalid(&path.field("minReplicas"), min, detail);
    }
    let at = path.field("maxReplicas");
    if max == 0 {
        errors.required(&at, "must be set and greater than 0");
    } else if max < 0 {
        errors.invalid(&at, max, "must be greater than or equal to 1");
    }
    if min.is_some_and(|min| max < min) {
        errors.invalid(&at, max, "must be greater than or equal to `minReplicas`");
    }
}

/// Whether a reference must say its group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ApiGroup {
    Required,
    Optional,
    /// The stored one was not good either.
    Unchecked,
}

fn is_readable(target: &Map, rule: ApiGroup) -> bool {
    match group::parse_api_version(target.text("apiVersion")) {
        Ok((group, _)) => rule != ApiGroup::Required || !group.is_empty(),
        Err(_) => false,
    }
}

fn reference(target: &Map, rule: ApiGroup, path: &Path<'_>, errors: &mut Errors) {
    for key in ["kind", "name"] {
        let text = target.text(key);
        if text.is_empty() {
            errors.required(&path.field(key), "");
        } else {
            errors.each(&path.field(key), text, names::path_segment(text));
        }
    }
    if rule == ApiGroup::Unchecked {
        return;
    }
    let version = target.text("apiVersion");
    match group::parse_api_version(version) {
        Err(error) => errors.invalid(&path.field("apiVersion"), version, error.to_string()),
        Ok(_) if !is_readable(target, rule) => {
            let detail = "apiVersion must specify API group";
            errors.invalid(&path.field("apiVersion"), version, detail);
        }
        Ok(_) => {}
    }
}

fn metrics(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("metrics");
    for (index, metric) in maps(list) {
        metric_spec(metric, &path.index(index), errors);
    }
    // The older version says one metric as a field of its own.
    if let Some(percent) = spec
        .int("targetCPUUtilizationPercentage")
        .filter(|it| *it < 1)
    {
        let path = path.index(0);
        let path = path.field("resource");
        let path = path.field("target");
        let detail = "must be greater than 0";
        errors.invalid(&path.field("averageUtilization"), percent, detail);
    }
    let outside =
        maps(list).any(|(_, metric)| matches!(metric.text("type"), "Object" | "External"));
    if spec.int("minReplicas") == Some(0) && !outside {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        errors.forbidden(path, detail);
    }
}

fn metric_spec(metric: &Map, path: &Path<'_>, errors: &mut Errors) {
    let kind = metric.text("type");
    let type_path = path.field("type");
    if kind.is_empty() {
        errors.required(&type_path, "must specify a metric source type");
    }
    check::choice_or_empty(kind, METRIC_TYPES, &type_path, errors);
    let mut present: Vec<&str> = Vec::new();
    for (_, key) in SOURCES {
        let Some(source) = metric.object(key) else {
            continue;
        };
        present.push(key);
        if present.len() == 1 {
            metric_source(source, key, &path.field(key), errors);
        }
    }
    let expected = SOURCES
        .iter()
        .find(|(known, _)| *known == kind)
        .map(|(_, key)| *key);
    match expected {
        Some(key) if !metric.has(key) => errors.required(&path.field(key), POPULATE),
        Some(_) => {}
        None => errors.unsupported(&type_path, kind, METRIC_TYPES),
    }
    if present.len() != 1 {
        present.retain(|key| Some(*key) != expected);
        for key in present {
            let detail = "must populate the given metric source only";
            errors.forbidden(&path.field(key), detail);
        }
    }
}

fn metric_source(source: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    match key {
        "object" => {
            let described = source.object_or_empty("describedObject");
            reference(
                described,
                ApiGroup::Optional,
                &path.field("describedObject"),
                errors,
            );
            metric_name(source, path, errors);
        }
        "external" | "pods" => metric_name(source, path, errors),
        _ => {
            let name = source.text("name");
            if name.is_empty() {
                errors.required(&path.field("name"), "must specify a resource name");
            } else if key == "containerResource" {
                quantities::container_resource_name(name, &path.field("name"), errors);
            }
            if key == "containerResource" {
                let container = source.text("container");
                let path = path.field("container");
                if container.is_empty() {
                    errors.required(&path, "must specify a container");
                } else {
                    errors.each(&path, container, names::dns1123_label(container));
                }
            }
        }
    }
    let target = source.object_or_empty("target");
    let path = path.field("target");
    metric_target(target, &path, errors);
    let (value, average) = (target.has("value"), target.has("averageValue"));
    let utilization = target.has("averageUtilization");
    let average_path = path.field("averageValue");
    match key {
        "object" if !value && !average => {
            errors.required(
                &average_path,
                "must set either a target value or averageValue",
            );
        }
        "external" if !value && !average => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.required(&average_path, detail);
        }
        "external" if value && average => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.forbidden(&path.field("value"), detail);
        }
        "pods" if !average => {
            errors.required(&average_path, "must specify a positive target averageValue");
        }
        "resource" | "containerResource" if !utilization && !average => {
            let detail = "must set either a target raw value or a target utilization";
            errors.required(&path.field("averageUtilization"), detail);
        }
        "resource" | "containerResource" if utilization && average => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.forbidden(&average_path, detail);
        }
        _ => {}
    }
}

fn metric_name(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    let name = source.object_or_empty("metric").text("name");
    let path = path.field("metric");
    if name.is_empty() {
        errors.required(&path.field("name"), "must specify a metric name");
    } else {
        errors.each(&path.field("name"), name, names::path_segment(name));
    }
}

fn metric_target(target: &Map, path: &Path<'_>, errors: &mut Errors) {
    let kind = target.text("type");
    if kind.is_empty() {
        errors.required(&path.field("type"), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.invalid(&path.field("type"), kind, detail);
    }
    for key in ["value", "averageValue"] {
        if let Ok(amount) = Quantity::from_value(target.value(key))
            && target.has(key)
            && amount.sign() != 1
        {
            errors.invalid(&path.field(key), amount.to_string(), "must be positive");
        }
    }
    if let Some(percent) = target
        .int("averageUtilization")
        .filter(|percent| *percent < 1)
    {
        let detail = "must be greater than 0";
        errors.invalid(&path.field("averageUtilization"), percent, detail);
    }
}

fn scaling_rules(rules: &Map, path: &Path<'_>, errors: &mut Errors) {
    if let Some(window) = rules.int("stabilizationWindowSeconds") {
        let path = path.field("stabilizationWindowSeconds");
        if window < 0 {
            errors.invalid(&path, window, "must be greater than or equal to zero");
        }
        if window > WINDOW_SECONDS_MAX {
            let detail = format!("must be less than or equal to {WINDOW_SECONDS_MAX}");
            errors.invalid(&path, window, detail);
        }
    }
    if rules.has("selectPolicy") {
        let policy = rules.text("selectPolicy");
        let path = path.field("selectPolicy");
        check::choice_or_empty(policy, &["Disabled", "Max", "Min"], &path, errors);
    }
    let policies = rules.list("policies");
    let at = path.field("policies");
    if policies.is_empty() {
        errors.required(&at, "must specify at least one Policy");
    }
    for (index, policy) in maps(policies) {
        let path = at.index(index);
        let kind = policy.text("type");
        check::choice_or_empty(kind, &["Percent", "Pods"], &path.field("type"), errors);
        let period = policy.int("periodSeconds").unwrap_or_default();
        check::above_zero(
            policy.int("value").unwrap_or_default(),
            &path.field("value"),
            errors,
        );
        check::above_zero(period, &path.field("periodSeconds"), errors);
        if period > PERIOD_SECONDS_MAX {
            let detail = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
            errors.invalid(&path.field("periodSeconds"), period, detail);
        }
    }
    if let (Ok(tolerance), false) = (
        Quantity::from_value(rules.value("tolerance")),
        matches!(rules.value("tolerance"), Value::Null),
    ) && tolerance.sign() < 0
    {
        let detail = "must be greater than or equal to 0";
        errors.invalid(&path.field("tolerance"), tolerance.to_string(), detail);
    }
}

#[cfg(test)]
mod tests;
