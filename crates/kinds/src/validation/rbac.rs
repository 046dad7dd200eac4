//! Roles and their bindings.

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use super::check::{self, Errors, Report};
use super::meta;
use super::print::{self, Field, Shape};
use super::read::{Read, maps};

const GROUP: &str = "rbac.authorization.k8s.io";
const ROLE_REFERENCE: Shape = Shape(&[
    Field::plain("apiGroup", "APIGroup", "\"\""),
    Field::plain("kind", "Kind", "\"\""),
    Field::plain("name", "Name", "\"\""),
]);

/// Checks a role.
pub(crate) fn role(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() {
        meta::again_named(new, true, names::name_is_path_segment, &mut errors);
    }
    rules(new, true, &mut errors);
    errors
}

/// Checks a role of the whole cluster.
pub(crate) fn cluster_role(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() {
        meta::again_named(new, false, names::name_is_path_segment, &mut errors);
    }
    rules(new, false, &mut errors);
    if let Some(aggregation) = new.object("aggregationRule") {
        let root = Path::root();
        let path = root.field("aggregationRule");
        let path = path.field("clusterRoleSelectors");
        let selectors = aggregation.list("clusterRoleSelectors");
        if selectors.is_empty() {
            let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            errors.required(&path, detail);
        }
        for (index, selector) in maps(selectors) {
            let (path, before) = (path.index(index), errors.len());
            check::label_selector(Some(selector), &path, &mut errors);
            if errors.len() > before {
                errors.invalid_value(&path, &Value::Null, "invalid label selector.");
            }
        }
    }
    errors
}

fn rules(role: &Map, namespaced: bool, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("rules");
    for (index, rule) in maps(role.list("rules")) {
        policy_rule(rule, namespaced, &path.index(index), errors);
    }
}

fn policy_rule(rule: &Map, namespaced: bool, path: &Path<'_>, errors: &mut Errors) {
    let lacks = |key: &str| rule.list(key).is_empty();
    if lacks("verbs") {
        let detail = "verbs must contain at least one value";
        errors.required(&path.field("verbs"), detail);
    }
    if !lacks("nonResourceURLs") {
        let urls = rule.value("nonResourceURLs");
        let path = path.field("nonResourceURLs");
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.invalid_value(&path, urls, detail);
        }
        if !lacks("apiGroups") || !lacks("resources") || !lacks("resourceNames") {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.invalid_value(&path, urls, detail);
        }
        return;
    }
    if lacks("apiGroups") {
        let detail = "resource rules must supply at least one api group";
        errors.required(&path.field("apiGroups"), detail);
    }
    if lacks("resources") {
        let detail = "resource rules must supply at least one resource";
        errors.required(&path.field("resources"), detail);
    }
}

/// Checks who is given a role.
pub(crate) fn role_binding(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    binding(new, old, true, &["Role", "ClusterRole"])
}

/// Checks who is given a role in the whole cluster.
pub(crate) fn cluster_role_binding(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    binding(new, old, false, &["ClusterRole"])
}

fn binding(new: &Map, old: Option<&Map>, namespaced: bool, kinds: &[&str]) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() {
        meta::again_named(new, namespaced, names::name_is_path_segment, &mut errors);
    }
    let role = new.object_or_empty("roleRef");
    let path = root.field("roleRef");
    check::choice_or_empty(
        role.text("apiGroup"),
        &[GROUP],
        &path.field("apiGroup"),
        &mut errors,
    );
    check::choice_or_empty(role.text("kind"), kinds, &path.field("kind"), &mut errors);
    let name = role.text("name");
    if name.is_empty() {
        errors.required(&path.field("name"), "");
    } else {
        errors.each(&path.field("name"), name, names::path_segment(name));
    }
    let subjects = root.field("subjects");
    for (index, subject) in maps(new.list("subjects")) {
        check_subject(subject, namespaced, &subjects.index(index), &mut errors);
    }
    if let Some(old) = old
        && !check::same(new.value("roleRef"), old.value("roleRef"))
    {
        let value = new.value("roleRef");
        let detail = "cannot change roleRef";
        errors.push(print::invalid(&path, value, &ROLE_REFERENCE, detail));
    }
    errors
}

fn check_subject(subject: &Map, namespaced: bool, path: &Path<'_>, errors: &mut Errors) {
    let (name, group) = (subject.text("name"), subject.text("apiGroup"));
    if name.is_empty() {
        errors.required(&path.field("name"), "");
    }
    match subject.text("kind") {
        "ServiceAccount" => {
            check::optional_subdomain(name, &path.field("name"), errors);
            check::choice_or_empty(group, &[""], &path.field("apiGroup"), errors);
            if !namespaced && subject.text("namespace").is_empty() {
                errors.required(&path.field("namespace"), "");
            }
        }
        "User" | "Group" => {
            check::choice_or_empty(group, &[GROUP], &path.field("apiGroup"), errors);
        }
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            errors.unsupported(&path.field("kind"), other, &known);
        }
    }
}

#[cfg(test)]
mod tests;
