//! The rules of `x-kubernetes-validations` in a definition.
//!
//! [`texts`] checks what surrounds the expressions. [`check`] and [`check_default`] are where the
//! expressions themselves are compiled, costed and tried.

use object::field::{FieldError, Path};
use object::{Map, Value};
use schema::structural::{Rules, Structural, check_definition};

use super::selectable::{ArrayNotation, follow};
use crate::validation::check::{Errors, Report};
use crate::validation::read::{Read, maps};

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Checks the expressions of a schema that is structural and has sound defaults, given the stored
/// version of the same name and the mistakes that were found in its keywords.
pub(super) fn check(
    schema: &Map,
    old_version: Option<&Map>,
    path: &Path<'_>,
    keyword_errors: &[FieldError],
) -> Vec<FieldError> {
    let old_schema = old_version.map(|old| old.object_or_empty("schema"));
    let is_unchanged =
        old_schema.is_some_and(|old| old.object_or_empty("openAPIV3Schema") == schema);
    // Rules are left alone where something else is wrong, there or below.
    let has_mistakes = |place: &str| {
        keyword_errors
            .iter()
            .any(|error| error.field.starts_with(place))
    };
    let parsed = Structural::parse(schema);
    check_definition(&parsed, path, is_unchanged, &has_mistakes)
}

/// Checks a default against the rules of its schema; nothing else is wrong with it.
pub(super) fn check_default(
    schema: &Structural,
    default: &Value,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let Some(rules) = Rules::compile_part(schema) else {
        return Vec::new();
    };
    // First as if nothing changed, then as if there had been nothing.
    let errors = rules.check_value(schema, default, Some(default), path);
    match errors.is_empty() {
        true => rules.check_value(schema, default, None, path),
        false => errors,
    }
}

/// Checks the texts of the rules of one schema.
pub(super) fn texts(schema: &Map, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("x-kubernetes-validations");
    for (index, rule) in maps(schema.list("x-kubernetes-validations")) {
        let at = at.index(index);
        messages(rule, &at, errors);
        if rule.has("reason") && !REASONS.contains(&rule.text("reason")) {
            errors.unsupported(&at.field("reason"), rule.text("reason"), &REASONS);
        }
        let field_path = rule.text("fieldPath");
        if field_path.is_empty() {
            continue;
        }
        let at = at.field("fieldPath");
        if field_path.trim().is_empty() {
            errors.invalid(&at, field_path, "must be non-empty if specified");
        }
        if has_line_breaks(field_path) {
            errors.invalid(&at, field_path, "must not contain line breaks");
        }
        let parsed = Structural::parse(schema);
        if follow(field_path, &parsed, ArrayNotation::Allowed).is_err() {
            errors.invalid(&at, field_path, "must be a valid path");
        }
    }
}

fn messages(rule: &Map, path: &Path<'_>, errors: &mut Errors) {
    let (text, message) = (rule.text("rule").trim(), rule.text("message"));
    let trimmed = message.trim();
    let at = path.field("message");
    if text.is_empty() {
        errors.required(&path.field("rule"), "rule is not specified");
    } else if !message.is_empty() && trimmed.is_empty() {
        errors.invalid(&at, message, "must be non-empty if specified");
    } else if has_line_breaks(trimmed) {
        errors.invalid(&at, message, "must not contain line breaks");
    } else if has_line_breaks(text) && trimmed.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.required(&at, detail);
    }
    let expression = rule.text("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.required(&path.field("messageExpression"), detail);
    }
}

fn has_line_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
