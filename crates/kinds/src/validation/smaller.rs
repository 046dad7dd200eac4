//! Kinds of groups with few rules: disruption budgets, leases, priority classes.

use object::field::{FieldError, Path};
use object::{Map, names};

use super::check::{self, Errors, Report};
use super::print::{self, Field, Shape};
use super::read::Read;

const USER_PRIORITY_MAX: i64 = 1_000_000_000;
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];
const BUDGET: Shape = Shape(&[
    Field::plain("minAvailable", "MinAvailable", "null"),
    Field::plain("selector", "Selector", "null").of(&print::LABEL_SELECTOR),
    Field::plain("maxUnavailable", "MaxUnavailable", "null"),
    Field::plain(
        "unhealthyPodEvictionPolicy",
        "UnhealthyPodEvictionPolicy",
        "null",
    ),
]);

/// Checks how many pods may be missing at once.
pub(crate) fn disruption_budget(
    new: &Map,
    old: Option<&Map>,
    subresource: &str,
) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() && subresource == "status" {
        let status = new.object_or_empty("status");
        let path = root.field("status");
        super::conditions::validate(status, &path.field("conditions"), &mut errors);
        let counters = [
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
        ];
        check::not_negative(status, &counters, &path, &mut errors);
        return errors;
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    let bounds = ["minAvailable", "maxUnavailable"];
    if bounds.iter().all(|key| spec.has(key)) {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(print::invalid(&path, new.value("spec"), &BUDGET, detail));
    }
    for key in bounds {
        check::int_or_percent(spec.value(key), &path.field(key), &mut errors);
        check::at_most_whole(spec.value(key), &path.field(key), &mut errors);
    }
    check::label_selector(
        spec.object("selector"),
        &path.field("selector"),
        &mut errors,
    );
    if spec.has("unhealthyPodEvictionPolicy") {
        let policy = spec.text("unhealthyPodEvictionPolicy");
        let path = path.field("unhealthyPodEvictionPolicy");
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        check::choice_or_empty(policy, &policies, &path, &mut errors);
    }
    errors
}

/// Checks a lease.
pub(crate) fn lease(new: &Map, _: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    if let Some(seconds) = spec.int("leaseDurationSeconds").filter(|it| *it <= 0) {
        let path = path.field("leaseDurationSeconds");
        errors.invalid(&path, seconds, "must be greater than 0");
    }
    check::not_negative(spec, &["leaseTransitions"], &path, &mut errors);
    let strategy = spec.text("strategy");
    if spec.has("strategy") {
        lease_strategy(strategy, &path.field("strategy"), &mut errors);
    }
    if !spec.text("preferredHolder").is_empty() && strategy.is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.forbidden(&path.field("preferredHolder"), detail);
    }
    errors
}

fn lease_strategy(strategy: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("strategy");
    if strategy.contains('/') {
        errors.each(&path, strategy, names::qualified_name(strategy));
    } else {
        check::choice_or_empty(strategy, &["OldestEmulationVersion"], &path, errors);
    }
}

/// Checks how important pods are.
pub(crate) fn priority_class(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if let Some(old) = old {
        if new.int("value").unwrap_or_default() != old.int("value").unwrap_or_default() {
            errors.forbidden(&root.field("value"), "may not be changed in an update.");
        }
        check::unchanged(new, old, "preemptionPolicy", &root, &mut errors);
        return errors;
    }
    let name = new.object_or_empty("metadata").text("name");
    let value = new.int("value").unwrap_or_default();
    if name.starts_with("system-") {
        if let Some(problem) = unknown_system_class(name, value, new.flag("globalDefault")) {
            let path = root.field("metadata");
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. \
                 error: {problem}"
            );
            errors.forbidden(&path.field("name"), detail);
        }
    } else if value > USER_PRIORITY_MAX {
        let detail =
            format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
        errors.forbidden(&root.field("value"), detail);
    }
    if new.has("preemptionPolicy") {
        let policies = ["PreemptLowerPriority", "Never"];
        let policy = new.text("preemptionPolicy");
        check::choice(
            policy,
            &policies,
            &root.field("preemptionPolicy"),
            &mut errors,
        );
    }
    errors
}

fn unknown_system_class(name: &str, value: i64, global: bool) -> Option<String> {
    match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, expected)) if *expected != value => {
            Some(format!("value of {name} PriorityClass must be {expected}"))
        }
        Some(_) if global => Some(format!(
            "globalDefault of {name} PriorityClass must be false"
        )),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
