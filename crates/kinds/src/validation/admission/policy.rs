//! Admission policies and their bindings.

use object::field::{FieldError, Path};
use object::{Map, Value, group, names};

use super::{FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES};
use super::{match_conditions, operation_rule, refuse};
use crate::expressions::{Compiler, Gives, Names};
use crate::validation::check::{self, Errors, Report};
use crate::validation::print::{self, Field, Shape};
use crate::validation::read::{Read, maps, texts};
use crate::validation::{conditions, meta};

const AUDIT_ANNOTATIONS_MAX: usize = 20;
const AUDIT_ANNOTATION: Shape = Shape(&[
    Field::plain("key", "Key", "\"\""),
    Field::plain("valueExpression", "ValueExpression", "\"\""),
]);
const AUDIT_EXPRESSION_BYTES_MAX: usize = 5 * 1024;
const ONE_ITEM: &str = "validations or auditAnnotations must contain at least one item";
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MUTATING_OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];

/// Checks a policy that refuses.
pub(crate) fn validating_policy(
    new: &Map,
    old: Option<&Map>,
    subresource: &str,
) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() && subresource == "status" {
        let path = root.field("status");
        let status = new.object_or_empty("status");
        type_warnings(status, &path.field("typeChecking"), &mut errors);
        conditions::validate(status, &path.field("conditions"), &mut errors);
        return errors;
    }
    if old.is_some() {
        meta::again_plain(new, false, names::name_is_dns_subdomain, &mut errors);
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    // Without variables, not even the word is known.
    let mut compiler = if spec.list("variables").is_empty() {
        Compiler::plain()
    } else {
        Compiler::with_variables()
    };
    common((spec, old), &mut compiler, |_, _, _| {}, &path, &mut errors);
    let compiler = Expressions::new(spec, &compiler);
    let validations = spec.list("validations");
    let annotations = spec.list("auditAnnotations");
    if validations.is_empty() && annotations.is_empty() {
        errors.required(&path.field("validations"), ONE_ITEM);
        errors.required(&path.field("auditAnnotations"), ONE_ITEM);
        return errors;
    }
    let at = path.field("validations");
    for (index, validation) in maps(validations) {
        check_validation(validation, &compiler, &at.index(index), &mut errors);
    }
    let name = new.object_or_empty("metadata").text("name");
    let at = path.field("auditAnnotations");
    audit_annotations(spec, name, &compiler, &at, &mut errors);
    errors
}

fn type_warnings(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("expressionWarnings");
    let checked = status.object_or_empty("typeChecking");
    for (index, warning) in maps(checked.list("expressionWarnings")) {
        check::require(
            warning,
            &["warning", "fieldRef"],
            &path.index(index),
            errors,
        );
    }
}

/// Compiles the expressions of a policy whose variables are known.
struct Expressions<'a> {
    compiler: &'a Compiler,
    names: Names,
}

impl Expressions<'_> {
    fn new<'a>(spec: &Map, compiler: &'a Compiler) -> Expressions<'a> {
        let names = names_of(spec);
        Expressions { compiler, names }
    }

    fn check(
        &self,
        (text, compiled): (&str, &str),
        gives: Gives,
        path: &Path<'_>,
        errors: &mut Errors,
    ) {
        // A message says what is wrong, not what somebody may do.
        let names = Names {
            authorizer: gives != Gives::Text,
            ..self.names
        };
        let compiled = self.compiler.compile(compiled, gives, names);
        refuse(text, compiled, path, errors);
    }
}

fn names_of(spec: &Map) -> Names {
    Names {
        params: spec.object("paramKind").is_some(),
        authorizer: true,
    }
}

/// Checks what both sorts of policies share.
fn common(
    (spec, old): (&Map, Option<&Map>),
    compiler: &mut Compiler,
    operations: fn(&Map, &Path<'_>, &mut Errors),
    path: &Path<'_>,
    errors: &mut Errors,
) {
    check::choice_of(spec, "failurePolicy", FAILURE_POLICIES, path, errors);
    if let Some(kind) = spec.object("paramKind") {
        parameter_kind(kind, &path.field("paramKind"), errors);
    }
    let at = path.field("matchConstraints");
    match spec.object("matchConstraints") {
        None => errors.required(&at, ""),
        Some(constraints) => {
            match_resources(constraints, &at, errors);
            if constraints.list("resourceRules").is_empty() {
                errors.required(&at.field("resourceRules"), "");
            }
            operations(constraints, &at, errors);
        }
    }
    let unchanged = old.is_some_and(|old| {
        let stored = old.object_or_empty("spec");
        ["paramKind", "matchConditions"]
            .iter()
            .all(|key| check::same(spec.value(key), stored.value(key)))
    });
    if !unchanged {
        match_conditions(
            spec.list("matchConditions"),
            names_of(spec),
            &path.field("matchConditions"),
            errors,
        );
    }
    let at = path.field("variables");
    for (index, variable) in maps(spec.list("variables")) {
        let path = at.index(index);
        let name = variable.text("name");
        if name.trim().is_empty() {
            errors.required(&path.field("name"), "name is not specified");
        } else if !is_identifier(name) {
            errors.invalid(&path.field("name"), name, "must be a valid CEL identifier");
        }
        let expression = variable.text("expression");
        let at = path.field("expression");
        if expression.trim().is_empty() {
            errors.required(&at, "expression is not specified");
        } else {
            let compiled = compiler.variable(name, expression, names_of(spec));
            refuse(expression, compiled, &at, errors);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    names::c_identifier(name).is_empty() && !cel::is_reserved(name)
}

fn parameter_kind(kind: &Map, path: &Path<'_>, errors: &mut Errors) {
    let version = kind.text("apiVersion");
    let at = path.field("apiVersion");
    match group::parse_api_version(version) {
        _ if version.is_empty() => errors.required(&at, ""),
        Err(error) => errors.invalid(&at, version, error.to_string()),
        Ok((group, name)) => {
            let complaints = names::dns1123_subdomain(group);
            if !group.is_empty() && !complaints.is_empty() {
                errors.invalid(&at, group, complaints.join(","));
            }
            let complaints = names::dns1035_label(name);
            if name.is_empty() {
                errors.invalid(&at, version, "version must be specified");
            } else if !complaints.is_empty() {
                errors.invalid(&at, name, complaints.join(","));
            }
        }
    }
    let name = kind.text("kind");
    let complaints = names::dns1035_label(&name.to_lowercase());
    if name.is_empty() {
        errors.required(&path.field("kind"), "");
    } else if !complaints.is_empty() {
        let detail = format!(
            "may have mixed case, but should otherwise match: {}",
            complaints.join(",")
        );
        errors.invalid(&path.field("kind"), name, detail);
    }
}

fn match_resources(resources: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::choice_of(resources, "matchPolicy", MATCH_POLICIES, path, errors);
    for key in ["namespaceSelector", "objectSelector"] {
        match resources.object(key) {
            None => errors.required(&path.field(key), ""),
            selector => check::label_selector(selector, &path.field(key), errors),
        }
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        let path = path.field(key);
        for (index, rule) in maps(resources.list(key)) {
            let path = path.index(index);
            let list = rule.list("resourceNames");
            let at = path.field("resourceNames");
            for (index, name) in texts(list) {
                errors.each(&at.index(index), name, names::path_segment(name));
                if texts(&list[..index]).any(|(_, other)| other == name) {
                    errors.duplicate(&at.index(index), name);
                }
            }
            operation_rule(rule, &path, errors);
        }
    }
}

fn check_validation(
    validation: &Map,
    expressions: &Expressions<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let expression = validation.text("expression");
    let at = path.field("expression");
    if expression.trim().is_empty() {
        errors.required(&at, "expression is not specified");
    } else {
        expressions.check((expression, expression), Gives::Bool, &at, errors);
    }
    let expression = validation.text("messageExpression");
    let at = path.field("messageExpression");
    if !expression.trim().is_empty() {
        expressions.check((expression, expression), Gives::Text, &at, errors);
    } else if !expression.is_empty() {
        errors.invalid(&at, expression, "must be non-empty if specified");
    }
    let message = validation.text("message");
    let trimmed = message.trim();
    if !message.is_empty() && trimmed.is_empty() {
        errors.invalid(
            &path.field("message"),
            message,
            "must be non-empty if specified",
        );
    } else if trimmed.contains(['\n', '\r']) {
        errors.invalid(
            &path.field("message"),
            message,
            "must not contain line breaks",
        );
    }
    if validation.has("reason") {
        let reason = validation.text("reason");
        check::choice_or_empty(reason, REASONS, &path.field("reason"), errors);
    }
}

fn audit_annotations(
    spec: &Map,
    name: &str,
    expressions: &Expressions<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let list = spec.list("auditAnnotations");
    if list.len() > AUDIT_ANNOTATIONS_MAX {
        let detail = format!("must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations");
        let all = spec.value("auditAnnotations");
        errors.push(print::invalid(path, all, &AUDIT_ANNOTATION, detail));
    }
    for (index, annotation) in maps(list) {
        let path = path.index(index);
        let key = annotation.text("key");
        if name.is_empty() {
            let detail = "requires metadata.name be non-empty";
            errors.invalid(&path.field("key"), key, detail);
        } else {
            let full = format!("{name}/{key}");
            errors.each(&path.field("key"), &full, names::qualified_name(&full));
        }
        let text = annotation.text("valueExpression");
        let expression = text.trim();
        let at = path.field("valueExpression");
        if expression.is_empty() {
            errors.required(&at, "valueExpression is not specified");
        } else if expression.len() > AUDIT_EXPRESSION_BYTES_MAX {
            let detail = format!("must not exceed {AUDIT_EXPRESSION_BYTES_MAX} bytes in length");
            errors.required(&at, &detail);
        } else {
            expressions.check((text, expression), Gives::TextOrNull, &at, errors);
        }
        if maps(&list[..index]).any(|(_, other)| other.text("key") == key) {
            errors.duplicate(&path.field("key"), key);
        }
    }
}

/// Checks a policy that changes objects.
pub(crate) fn mutating_policy(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() {
        meta::again_plain(new, false, names::name_is_dns_subdomain, &mut errors);
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    let mut compiler = Compiler::with_variables();
    common(
        (spec, old),
        &mut compiler,
        mutating_operations,
        &path,
        &mut errors,
    );
    let compiler = Expressions::new(spec, &compiler);
    let mutations = spec.list("mutations");
    let at = path.field("mutations");
    if mutations.is_empty() {
        errors.required(&at, "mutations must contain at least one item");
    }
    for (index, mutation) in maps(mutations) {
        check_mutation(mutation, &compiler, &at.index(index), &mut errors);
    }
    let policy = spec.text("reinvocationPolicy");
    check::choice(
        policy,
        REINVOCATION_POLICIES,
        &path.field("reinvocationPolicy"),
        &mut errors,
    );
    errors
}

fn mutating_operations(resources: &Map, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("resourceRules");
    for (_, rule) in maps(resources.list("resourceRules")) {
        for (_, operation) in texts(rule.list("operations")) {
            let path = path.field("operations");
            check::choice_or_empty(operation, MUTATING_OPERATIONS, &path, errors);
        }
    }
}

fn check_mutation(
    mutation: &Map,
    expressions: &Expressions<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let kind = mutation.text("patchType");
    let (own, other, gives) = match kind {
        "" => return errors.required(&path.field("patchType"), ""),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Gives::Patch),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Gives::Object),
        _ => {
            let supported = ["ApplyConfiguration", "JSONPatch"];
            return errors.unsupported(&path.field("patchType"), kind, &supported);
        }
    };
    match mutation.object(own) {
        None => {
            let detail = format!("must be specified when patchType is {kind}");
            errors.required(&path.field(own), &detail);
        }
        Some(patch) => {
            let (at, text) = (path.field(own), patch.text("expression").trim());
            if text.is_empty() {
                errors.required(&at.field("expression"), "");
            } else {
                expressions.check((text, text), gives, &at.field("expression"), errors);
            }
        }
    }
    if mutation.has(other) {
        let detail = format!("must not be specified when patchType is {kind}");
        errors.invalid(&path.field(other), format!("{{{other}}}"), detail);
    }
}

/// Checks where a policy that refuses applies.
pub(crate) fn validating_policy_binding(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    binding(new, old, spec, &path, &mut errors);
    let list = spec.list("validationActions");
    let path = path.field("validationActions");
    for (index, action) in texts(list) {
        let path = path.index(index);
        check::choice_or_empty(action, &["Audit", "Deny", "Warn"], &path, &mut errors);
        if texts(&list[..index]).any(|(_, other)| other == action) {
            errors.duplicate(&path, action);
        }
    }
    let stands = |wanted: &str| list.iter().any(|it| it.as_str() == Some(wanted));
    if stands("Deny") && stands("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        errors.invalid_value(&path, spec.value("validationActions"), detail);
    }
    if list.is_empty() {
        errors.required(&path, "at least one validation action is required");
    }
    errors
}

/// Checks where a policy that changes objects applies.
pub(crate) fn mutating_policy_binding(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    binding(new, old, spec, &path, &mut errors);
    let resources = spec.object_or_empty("matchResources");
    mutating_operations(resources, &path.field("matchResources"), &mut errors);
    errors
}

fn binding(new: &Map, old: Option<&Map>, spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    if old.is_some() {
        meta::again_plain(new, false, names::name_is_dns_subdomain, errors);
    }
    check::subdomain(spec.text("policyName"), &path.field("policyName"), errors);
    if let Some(reference) = spec.object("paramRef") {
        parameter_reference(reference, &path.field("paramRef"), errors);
    }
    if let Some(resources) = spec.object("matchResources") {
        match_resources(resources, &path.field("matchResources"), errors);
    }
}

fn parameter_reference(reference: &Map, path: &Path<'_>, errors: &mut Errors) {
    let name = reference.text("name");
    let selector = reference.object("selector");
    let exclusive = "name and selector are mutually exclusive";
    if !name.is_empty() {
        errors.each(&path.field("name"), name, names::path_segment(name));
        if selector.is_some() {
            errors.forbidden(&path.field("name"), exclusive);
        }
    }
    check::label_selector(selector, &path.field("selector"), errors);
    match (name.is_empty(), selector) {
        (false, Some(_)) => errors.forbidden(&path.field("selector"), exclusive),
        (true, None) => errors.required(path, "one of name or selector must be specified"),
        _ => {}
    }
    let action = reference
        .get("parameterNotFoundAction")
        .and_then(Value::as_str);
    let at = path.field("parameterNotFoundAction");
    check::choice(action.unwrap_or_default(), &["Deny", "Allow"], &at, errors);
}
