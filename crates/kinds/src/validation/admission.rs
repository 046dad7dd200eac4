//! Admission webhooks and admission policies.
//!
//! Expressions are compiled as they will be when they are evaluated; the program is dropped.

mod policy;
pub(crate) mod webhook;

use cel::Program;
use object::field::{FieldError, Path};
use object::{Map, Value, names};

pub(crate) use policy::{
    mutating_policy, mutating_policy_binding, validating_policy, validating_policy_binding,
};

use super::check::{self, Errors, Report};
use super::meta;
use super::read::{Read, maps, texts};
use crate::expressions::{Compiler, Gives, Names};

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
const REINVOCATION_POLICIES: &[&str] = &["IfNeeded", "Never"];
const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
const ANY_SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun", "Some", "Unknown"];
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const CONDITIONS_MAX: usize = 64;

/// Checks a configuration of webhooks, validating or mutating.
pub(crate) fn webhooks(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() {
        meta::again_plain(new, false, names::name_is_dns_subdomain, &mut errors);
    }
    let root = Path::root();
    let path = root.field("webhooks");
    let list = new.list("webhooks");
    let stored = old.map(|old| old.list("webhooks"));
    let rules = Strictness {
        side_effects: stored.is_none_or(has_no_side_effects),
        versions: stored.is_none_or(has_known_versions),
        unique: stored.is_none_or(has_unique_names),
    };
    for (index, hook) in maps(list) {
        let path = path.index(index);
        webhook_entry(hook, &rules, &path, &mut errors);
        review_versions(
            hook,
            rules.versions,
            &path.field("admissionReviewVersions"),
            &mut errors,
        );
        let name = hook.text("name");
        let twice = maps(&list[..index]).any(|(_, other)| other.text("name") == name);
        if rules.unique && !name.is_empty() && twice {
            errors.duplicate(&path.field("name"), name);
        }
    }
    errors
}

/// What is asked of webhooks, unless the stored ones already lacked it.
struct Strictness {
    side_effects: bool,
    versions: bool,
    unique: bool,
}

fn has_no_side_effects(list: &[Value]) -> bool {
    maps(list).all(|(_, hook)| SIDE_EFFECTS.contains(&hook.text("sideEffects")))
}

fn has_known_versions(list: &[Value]) -> bool {
    maps(list).all(|(_, hook)| {
        let versions = hook.list("admissionReviewVersions");
        versions.is_empty() || texts(versions).any(|(_, it)| REVIEW_VERSIONS.contains(&it))
    })
}

fn has_unique_names(list: &[Value]) -> bool {
    maps(list).all(|(index, hook)| {
        !maps(&list[..index]).any(|(_, other)| other.text("name") == hook.text("name"))
    })
}

fn webhook_entry(hook: &Map, rules: &Strictness, path: &Path<'_>, errors: &mut Errors) {
    errors.extend(names::fully_qualified_name(
        &path.field("name"),
        hook.text("name"),
    ));
    let rules_path = path.field("rules");
    for (index, rule) in maps(hook.list("rules")) {
        operation_rule(rule, &rules_path.index(index), errors);
    }
    for (key, supported) in [
        ("failurePolicy", FAILURE_POLICIES),
        ("matchPolicy", MATCH_POLICIES),
    ] {
        if hook.has(key) {
            check::choice_or_empty(hook.text(key), supported, &path.field(key), errors);
        }
    }
    let allowed = if rules.side_effects {
        SIDE_EFFECTS
    } else {
        ANY_SIDE_EFFECTS
    };
    if hook.has("sideEffects") {
        let class = hook.text("sideEffects");
        check::choice_or_empty(class, allowed, &path.field("sideEffects"), errors);
    } else {
        let detail = format!("must specify one of {}", allowed.join(", "));
        errors.required(&path.field("sideEffects"), &detail);
    }
    if let Some(seconds) = hook.int("timeoutSeconds")
        && !(1..=30).contains(&seconds)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(&path.field("timeoutSeconds"), seconds, detail);
    }
    for key in ["namespaceSelector", "objectSelector"] {
        check::label_selector(hook.object(key), &path.field(key), errors);
    }
    if hook.has("reinvocationPolicy") {
        let policy = hook.text("reinvocationPolicy");
        let path = path.field("reinvocationPolicy");
        check::choice_or_empty(policy, REINVOCATION_POLICIES, &path, errors);
    }
    let config = hook.object_or_empty("clientConfig");
    webhook::client_config(config, &path.field("clientConfig"), errors);
    let names = Names {
        params: false,
        authorizer: true,
    };
    match_conditions(
        hook.list("matchConditions"),
        names,
        &path.field("matchConditions"),
        errors,
    );
}

fn review_versions(hook: &Map, known: bool, path: &Path<'_>, errors: &mut Errors) {
    let list = hook.list("admissionReviewVersions");
    if list.is_empty() {
        errors.required(path, "must specify one of v1, v1beta1");
        return;
    }
    webhook::review_versions(list, path, errors);
    if known && !texts(list).any(|(_, version)| REVIEW_VERSIONS.contains(&version)) {
        let detail = "must include at least one of v1, v1beta1";
        errors.invalid_value(path, hook.value("admissionReviewVersions"), detail);
    }
}

fn operation_rule(rule: &Map, path: &Path<'_>, errors: &mut Errors) {
    let operations = rule.list("operations");
    let at = path.field("operations");
    if operations.is_empty() {
        errors.required(&at, "");
    }
    if operations.len() > 1 && has_wildcard(operations) {
        let detail = "if '*' is present, must not specify other operations";
        errors.invalid_value(&at, rule.value("operations"), detail);
    }
    for (index, operation) in texts(operations) {
        check::choice_or_empty(operation, OPERATIONS, &at.index(index), errors);
    }
    for (key, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.list(key);
        let at = path.field(key);
        if list.is_empty() {
            errors.required(&at, "");
        }
        if list.len() > 1 && has_wildcard(list) {
            let detail = format!("if '*' is present, must not specify other {what}");
            errors.invalid_value(&at, rule.value(key), detail);
        }
    }
    let versions = path.field("apiVersions");
    for (index, _) in texts(rule.list("apiVersions")).filter(|(_, it)| it.is_empty()) {
        errors.required(&versions.index(index), "");
    }
    resources(rule, &path.field("resources"), errors);
    if rule.has("scope") {
        let scope = rule.text("scope");
        let scopes = ["*", "Cluster", "Namespaced"];
        check::choice_or_empty(scope, &scopes, &path.field("scope"), errors);
    }
}

fn has_wildcard(list: &[Value]) -> bool {
    texts(list).any(|(_, text)| text == "*")
}

fn resources(rule: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = rule.list("resources");
    let all = rule.value("resources");
    if list.is_empty() {
        errors.required(path, "");
    }
    let stands = |index: usize, text: &str| texts(&list[..index]).any(|(_, it)| it == text);
    for (index, text) in texts(list) {
        if text.is_empty() {
            errors.required(&path.index(index), "");
            continue;
        }
        let Some((resource, sub)) = text.split_once('/') else {
            continue;
        };
        for wild in [format!("{resource}/*"), format!("*/{sub}")] {
            if stands(index, &wild) {
                let detail = format!("if '{wild}' is present, must not specify {text}");
                errors.invalid(&path.index(index), text, detail);
            }
        }
    }
    if list.len() > 1 && stands(list.len(), "*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.invalid_value(path, all, detail);
    }
    let last_plain = texts(list)
        .filter(|(_, it)| !it.is_empty() && !it.contains('/'))
        .last();
    if has_wildcard(list) && last_plain.is_some_and(|(_, text)| text != "*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.invalid_value(path, all, detail);
    }
}

/// Reports an expression that cannot be compiled.
fn refuse(text: &str, compiled: Result<Program, String>, path: &Path<'_>, errors: &mut Errors) {
    if let Err(detail) = compiled {
        errors.invalid(path, text, detail);
    }
}

fn match_conditions(list: &[Value], names: Names, path: &Path<'_>, errors: &mut Errors) {
    if list.len() > CONDITIONS_MAX {
        errors.push(FieldError::too_many(path, list.len(), CONDITIONS_MAX));
    }
    for (index, condition) in maps(list) {
        let path = path.index(index);
        let expression = condition.text("expression").trim();
        let at = path.field("expression");
        if expression.is_empty() {
            errors.required(&at, "");
        } else {
            let compiled = Compiler::plain().compile(expression, Gives::Bool, names);
            refuse(expression, compiled, &at, errors);
        }
        let name = condition.text("name");
        if name.is_empty() {
            errors.required(&path.field("name"), "");
            continue;
        }
        errors.each(&path.field("name"), name, names::qualified_name(name));
        if maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
            errors.duplicate(&path.field("name"), name);
        }
    }
}

#[cfg(test)]
mod tests;
