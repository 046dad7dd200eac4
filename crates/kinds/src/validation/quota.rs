//! Limit ranges and resource quotas.

use object::field::{FieldError, Path};
use object::quantity::Quantity;
use object::{Map, names};

use super::check::{self, Errors, Report};
use super::print::{self, Field, Shape};
use super::read::{Read, maps, texts};
use super::{meta, quantities};

const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
const OPPOSITES: [(&str, &str); 2] = [
    ("BestEffort", "NotBestEffort"),
    ("Terminating", "NotTerminating"),
];

const MISAPPLIED: &str = "unsupported scope applied to resource";

/// Scope selectors print without JSON names.
const SCOPE_SELECTOR: Shape =
    Shape(&[
        Field::plain("matchExpressions", "MatchExpressions", "null").of(&Shape(&[
            Field::plain("scopeName", "ScopeName", "\"\""),
            Field::plain("operator", "Operator", "\"\""),
            Field::plain("values", "Values", "null"),
        ])),
    ]);

/// Checks a limit range.
pub(crate) fn limit_range(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() {
        meta::again(new, true, &mut errors);
    }
    let root = Path::root();
    let path = root.field("spec");
    let path = path.field("limits");
    let list = new.object_or_empty("spec").list("limits");
    for (index, limit) in maps(list) {
        let path = path.index(index);
        let kind = limit.text("type");
        limit_type(kind, &path.field("type"), &mut errors);
        if maps(&list[..index]).any(|(_, other)| other.text("type") == kind) {
            errors.duplicate(&path.field("type"), kind);
        }
        limit_names(limit, kind, &path, &mut errors);
        let mut keys: Vec<&str> = Vec::new();
        for list in [
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ] {
            for key in limit.object_or_empty(list).keys() {
                if !keys.contains(&key.as_str()) {
                    keys.push(key);
                }
            }
        }
        keys.sort_unstable();
        for key in keys {
            limit_amounts(limit, kind, key, &path, &mut errors);
        }
    }
    errors
}

fn limit_type(kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let complaints = names::qualified_name(kind);
    let standard = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind);
    if !complaints.is_empty() {
        errors.each(path, kind, complaints);
    } else if !kind.contains('/') && !standard {
        errors.invalid(
            path,
            kind,
            "must be a standard limit type or fully qualified",
        );
    }
}

fn limit_names(limit: &Map, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let rule = match kind {
        "Pod" | "Container" => quantities::container_resource_name,
        _ => quantities::resource_name,
    };
    let check = |list: &str, errors: &mut Errors| {
        let path = path.field(list);
        for name in limit.object_or_empty(list).keys() {
            rule(name, &path.key(name), errors);
        }
    };
    check("max", errors);
    check("min", errors);
    for list in ["default", "defaultRequest"] {
        if kind != "Pod" {
            check(list, errors);
        } else if !limit.object_or_empty(list).is_empty() {
            errors.forbidden(
                &path.field(list),
                "may not be specified when `type` is 'Pod'",
            );
        }
    }
    let bounds = ["min", "max"];
    if kind == "PersistentVolumeClaim"
        && !bounds
            .iter()
            .any(|list| limit.object_or_empty(list).contains_key("storage"))
    {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        errors.required(&path.field("limits"), detail);
    }
    check("maxLimitRequestRatio", errors);
}

fn limit_amounts(limit: &Map, kind: &str, key: &str, path: &Path<'_>, errors: &mut Errors) {
    let amount = |list: &str| {
        let given = limit.object_or_empty(list).get(key)?;
        Quantity::from_value(given).ok()
    };
    let (min, max) = (amount("min"), amount("max"));
    let of_containers = |list: &str| if kind == "Pod" { None } else { amount(list) };
    let (default, request) = (of_containers("default"), of_containers("defaultRequest"));
    // What may not be above what, where and how it is reported, with the value that is shown.
    let orders = [
        (&min, &max, "min", &min, "min value", "max value"),
        (
            &min,
            &request,
            "defaultRequest",
            &request,
            "min value",
            "default request value",
        ),
        (
            &request,
            &max,
            "defaultRequest",
            &request,
            "default request value",
            "max value",
        ),
        (
            &request,
            &default,
            "defaultRequest",
            &request,
            "default request value",
            "default limit value",
        ),
        (
            &min,
            &default,
            "default",
            &min,
            "min value",
            "default value",
        ),
        (
            &default,
            &max,
            "default",
            &max,
            "default value",
            "max value",
        ),
    ];
    for (low, high, list, shown, low_name, high_name) in orders {
        if let (Some(low), Some(high), Some(shown)) = (low, high, shown)
            && low > high
        {
            let detail = format!("{low_name} {low} is greater than {high_name} {high}");
            let path = path.field(list);
            errors.invalid(&path.key(key), shown.to_string(), detail);
        }
    }
    if let Some(ratio) = amount("maxLimitRequestRatio") {
        let path = path.field("maxLimitRequestRatio");
        limit_ratio(&ratio, min.as_ref(), max.as_ref(), &path.key(key), errors);
    }
    if let (Some(default), Some(request)) = (default, request) {
        both_alike(&default, &request, key, path, errors);
    }
}

/// What cannot be promised twice is asked for as it is limited.
fn both_alike(
    default: &Quantity,
    request: &Quantity,
    key: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let overcommits = quantities::is_native(key) && !quantities::is_huge_page(key);
    if !overcommits && default != request {
        let detail = format!(
            "default value {default} must equal to defaultRequest value {request} in {key}"
        );
        let path = path.field("defaultRequest");
        errors.invalid(&path.key(key), request.to_string(), detail);
    }
}

fn limit_ratio(
    ratio: &Quantity,
    min: Option<&Quantity>,
    max: Option<&Quantity>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if ratio.approximate() < 1.0 {
        errors.invalid(
            path,
            ratio.to_string(),
            format!("ratio {ratio} is less than 1"),
        );
    }
    if let (Some(min), Some(max)) = (min, max) {
        let limit = max.approximate() / min.approximate();
        if ratio.approximate() > limit {
            let detail = format!("ratio {ratio} is greater than max/min = {limit:.6}");
            errors.invalid(path, ratio.to_string(), detail);
        }
    }
}

/// Checks a resource quota.
pub(crate) fn resource_quota(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let (spec_path, status_path) = (root.field("spec"), root.field("status"));
    let spec = new.object_or_empty("spec");
    if old.is_none() || subresource != "status" {
        amounts(spec, "hard", &spec_path, &mut errors);
        scopes(spec, &spec_path.field("scopes"), &mut errors);
        scope_selector(spec, &spec_path.field("scopeSelector"), &mut errors);
    }
    if old.is_none() || subresource == "status" {
        for list in ["hard", "used"] {
            amounts(
                new.object_or_empty("status"),
                list,
                &status_path,
                &mut errors,
            );
        }
    }
    if let (Some(old), "") = (old, subresource) {
        let sorted = |spec: &Map| {
            let mut list: Vec<String> = texts(spec.list("scopes"))
                .map(|(_, scope)| scope.to_owned())
                .collect();
            list.sort();
            list.dedup();
            list
        };
        if sorted(spec) != sorted(old.object_or_empty("spec")) {
            let path = spec_path.field("scopes");
            errors.invalid_value(&path, spec.value("scopes"), check::IMMUTABLE);
        }
    }
    errors
}

fn amounts(map: &Map, list: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field(list);
    for (name, amount) in map.object_or_empty(list).iter() {
        let path = path.key(name);
        quantities::quota_resource_name(name, &path, errors);
        quantities::amount(name, amount, &path, errors);
    }
}

fn applies(scope: &str, resource: &str) -> bool {
    let computes = matches!(
        resource,
        "cpu" | "memory" | "limits.cpu" | "limits.memory" | "requests.cpu" | "requests.memory"
    );
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => resource == "pods" || computes,
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ => true,
    }
}

fn scopes(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("scopes");
    let all = spec.value("scopes");
    for (_, scope) in texts(list) {
        if !SCOPES.contains(&scope) {
            errors.invalid_value(path, all, "unsupported scope");
        }
        for _ in 0..misapplied(spec, scope) {
            errors.invalid_value(path, all, MISAPPLIED);
        }
    }
    let stands = |wanted: &str| texts(list).any(|(_, scope)| scope == wanted);
    for (one, other) in OPPOSITES {
        if stands(one) && stands(other) {
            errors.invalid_value(path, all, "conflicting scopes");
        }
    }
}

/// How many resources of a quota a scope says nothing about.
fn misapplied(spec: &Map, scope: &str) -> usize {
    let resources = spec.object_or_empty("hard").keys();
    resources
        .filter(|resource| quantities::is_quota_standard(resource) && !applies(scope, resource))
        .count()
}

fn scope_selector(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let Some(selector) = spec.object("scopeSelector") else {
        return;
    };
    let path = path.field("matchExpressions");
    let list = selector.list("matchExpressions");
    for (_, requirement) in maps(list) {
        let scope = requirement.text("scopeName");
        let operator = requirement.text("operator");
        if !SCOPES.contains(&scope) {
            errors.invalid(&path.field("scopeName"), scope, "unsupported scope");
        }
        for _ in 0..misapplied(spec, scope) {
            let shown = spec.value("scopeSelector");
            errors.push(print::invalid(&path, shown, &SCOPE_SELECTOR, MISAPPLIED));
        }
        let is_flag =
            SCOPES.contains(&scope) && !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if is_flag && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid(&path.field("operator"), operator, detail);
        }
        let values = requirement.list("values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for \
                              scope selector";
                errors.required(&path.field("values"), detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for \
                              scope selector";
                errors.invalid_value(&path.field("values"), requirement.value("values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let detail = "not a valid selector operator";
                errors.invalid(&path.field("operator"), other, detail);
            }
        }
    }
    let stands = |wanted: &str| maps(list).any(|(_, one)| one.text("scopeName") == wanted);
    for (one, other) in OPPOSITES {
        if stands(one) && stands(other) {
            errors.invalid_value(&path, spec.value("scopes"), "conflicting scopes");
        }
    }
}

#[cfg(test)]
mod tests;
