//! Where a pod wants to be: affinity, topology spread and tolerations.

use object::field::Path;
use object::{Map, Value, names};

use crate::validation::check::{self, Errors, Report};
use crate::validation::read::{Read, maps, texts};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const TAINT_EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks which nodes and neighbours a pod seeks or avoids.
pub(super) fn affinity(affinity: &Map, path: &Path<'_>, errors: &mut Errors) {
    if let Some(nodes) = affinity.object("nodeAffinity") {
        let path = path.field("nodeAffinity");
        if let Some(selector) = nodes.object(REQUIRED) {
            node_selector(selector, &path.field(REQUIRED), errors);
        }
        let path = path.field(PREFERRED);
        for (index, term) in maps(nodes.list(PREFERRED)) {
            let path = path.index(index);
            weight(term, &path, errors);
            let preference = term.object_or_empty("preference");
            node_term(preference, Values::Any, &path.field("preference"), errors);
        }
    }
    for key in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.object(key) else {
            continue;
        };
        let path = path.field(key);
        let required = path.field(REQUIRED);
        for (index, term) in maps(pods.list(REQUIRED)) {
            pod_term(term, &required.index(index), errors);
        }
        let preferred = path.field(PREFERRED);
        for (index, weighted) in maps(pods.list(PREFERRED)) {
            let path = preferred.index(index);
            weight(weighted, &path, errors);
            let term = weighted.object_or_empty("podAffinityTerm");
            pod_term(term, &path.field("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Map, path: &Path<'_>, errors: &mut Errors) {
    let weight = term.int("weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.invalid(&path.field("weight"), weight, "must be in the range 1-100");
    }
}

/// Whether the values of a node requirement must be label values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// They must.
    Labels,
    /// They were never checked.
    Any,
}

/// Checks a selector of nodes.
pub(crate) fn node_selector(selector: &Map, path: &Path<'_>, errors: &mut Errors) {
    let terms = selector.list("nodeSelectorTerms");
    let path = path.field("nodeSelectorTerms");
    if terms.is_empty() {
        errors.required(&path, "must have at least one node selector term");
        return;
    }
    for (index, term) in maps(terms) {
        node_term(term, Values::Labels, &path.index(index), errors);
    }
}

fn node_term(term: &Map, values: Values, path: &Path<'_>, errors: &mut Errors) {
    let expressions = path.field("matchExpressions");
    for (index, requirement) in maps(term.list("matchExpressions")) {
        node_requirement(requirement, values, &expressions.index(index), errors);
    }
    let fields = path.field("matchFields");
    for (index, requirement) in maps(term.list("matchFields")) {
        node_field(requirement, &fields.index(index), errors);
    }
}

fn node_requirement(requirement: &Map, values: Values, path: &Path<'_>, errors: &mut Errors) {
    let list = requirement.list("values");
    match requirement.text("operator") {
        "In" | "NotIn" => {
            if list.is_empty() {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(&path.field("values"), detail);
            }
        }
        "Exists" | "DoesNotExist" => {
            if !list.is_empty() {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&path.field("values"), detail);
            }
        }
        "Gt" | "Lt" => {
            if list.len() != 1 {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.required(&path.field("values"), detail);
            }
        }
        other => {
            let detail = "not a valid selector operator";
            errors.invalid(&path.field("operator"), other, detail);
        }
    }
    let key = requirement.text("key");
    errors.each(&path.field("key"), key, names::qualified_name(key));
    if values == Values::Labels {
        let path = path.field("values");
        for (index, value) in texts(list) {
            errors.each(&path.index(index), value, names::label_value(value));
        }
    }
}

fn node_field(requirement: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = requirement.list("values");
    match requirement.text("operator") {
        "In" | "NotIn" => {
            if list.len() != 1 {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node \
                              field selector";
                errors.required(&path.field("values"), detail);
            }
        }
        other => {
            let detail = "not a valid selector operator";
            errors.invalid(&path.field("operator"), other, detail);
        }
    }
    let key = requirement.text("key");
    if key != "metadata.name" {
        let detail = "not a valid field selector key";
        errors.invalid(&path.field("key"), key, detail);
        return;
    }
    let path = path.field("values");
    for (index, value) in texts(list) {
        errors.each(&path.index(index), value, names::dns1123_subdomain(value));
    }
}

fn pod_term(term: &Map, path: &Path<'_>, errors: &mut Errors) {
    for key in ["labelSelector", "namespaceSelector"] {
        check::label_selector(term.object(key), &path.field(key), errors);
    }
    for (_, namespace) in texts(term.list("namespaces")) {
        let complaints = names::dns1123_label(namespace);
        errors.each(&path.field("namespace"), namespace, complaints);
    }
    label_keys(term, path, errors);
    let key = term.text("topologyKey");
    if key.is_empty() {
        errors.required(&path.field("topologyKey"), "can not be empty");
    }
    errors.each(&path.field("topologyKey"), key, names::qualified_name(key));
}

/// Keys whose values are taken from the pod; they may not stand in the selector as well.
fn label_keys(term: &Map, path: &Path<'_>, errors: &mut Errors) {
    let selector = term.object("labelSelector");
    let (matching, differing) = (term.list("matchLabelKeys"), term.list("mismatchLabelKeys"));
    for (key, list) in [
        ("matchLabelKeys", matching),
        ("mismatchLabelKeys", differing),
    ] {
        let path = path.field(key);
        if !list.is_empty() && selector.is_none() {
            errors.forbidden(&path, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, text) in texts(list) {
            errors.each(&path.index(index), text, names::qualified_name(text));
        }
    }
    if matching.is_empty() {
        return;
    }
    if let Some(selector) = selector {
        let labels = selector.object_or_empty("matchLabels");
        let expressions = selector.list("matchExpressions");
        for (position, expression) in maps(expressions) {
            let key = expression.text("key");
            let before = labels.contains_key(key)
                || maps(&expressions[..position]).any(|(_, other)| other.text("key") == key);
            let listed = texts(matching).filter(|(_, text)| *text == key).last();
            if let (true, Some((index, _))) = (before, listed) {
                let detail = "exists in both matchLabelKeys and labelSelector";
                errors.invalid(&path.index(index), key, detail);
            }
        }
    }
    let keys = path.field("matchLabelKeys");
    for (index, key) in texts(matching) {
        if texts(differing).any(|(_, other)| other == key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid(&keys.index(index), key, detail);
        }
    }
}

/// Checks how pods are spread over the cluster.
pub(super) fn topology_spread(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, constraint) in maps(list) {
        let path = path.index(index);
        let skew = constraint.int("maxSkew").unwrap_or_default();
        check::above_zero(skew, &path.field("maxSkew"), errors);
        let key = constraint.text("topologyKey");
        if key.is_empty() {
            errors.required(&path.field("topologyKey"), "can not be empty");
        }
        let action = constraint.text("whenUnsatisfiable");
        check::choice_or_empty(
            action,
            &["DoNotSchedule", "ScheduleAnyway"],
            &path.field("whenUnsatisfiable"),
            errors,
        );
        let repeats = maps(&list[index + 1..]).any(|(_, other)| {
            other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action
        });
        if repeats {
            let path = path.field("{topologyKey, whenUnsatisfiable}");
            errors.duplicate(&path, &format!("{{{key}, {action}}}"));
        }
        if let Some(domains) = constraint.int("minDomains") {
            let path = path.field("minDomains");
            check::above_zero(domains, &path, errors);
            if action != "DoNotSchedule" {
                let detail = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                );
                errors.invalid(&path, domains, detail);
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if constraint.has(key) {
                let policy = constraint.text(key);
                check::choice_or_empty(policy, &["Honor", "Ignore"], &path.field(key), errors);
            }
        }
        label_keys(constraint, &path, errors);
        let selector = constraint.object("labelSelector");
        check::label_selector(selector, &path.field("labelSelector"), errors);
    }
}

/// Checks which taints a pod bears.
pub(crate) fn tolerations(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, toleration) in maps(list) {
        let path = path.index(index);
        let (key, operator) = (toleration.text("key"), toleration.text("operator"));
        let (value, effect) = (toleration.text("value"), toleration.text("effect"));
        if !key.is_empty() {
            errors.each(&path.field("key"), key, names::qualified_name(key));
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all \
                          values and all keys\"";
            errors.invalid(&path.field("operator"), operator, detail);
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&path.field("effect"), effect, detail);
        }
        match operator {
            "Equal" | "" => {
                let complaints = names::label_value(value);
                if !complaints.is_empty() {
                    errors.invalid(&path.field("operator"), value, complaints.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.invalid(&path.field("operator"), value, detail);
            }
            "Exists" => {}
            "Lt" | "Gt" => {
                let known = ["Equal", "Exists", "Lt", "Gt"];
                errors.unsupported(&path.field("operator"), operator, &known);
            }
            _ => errors.unsupported(&path.field("operator"), operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            check::choice_or_empty(effect, TAINT_EFFECTS, &path.field("effect"), errors);
        }
    }
}

/// Checks what a taint does, which must be said.
pub(crate) fn taint_effect(effect: &str, path: &Path<'_>, errors: &mut Errors) {
    check::choice(effect, TAINT_EFFECTS, path, errors);
}
