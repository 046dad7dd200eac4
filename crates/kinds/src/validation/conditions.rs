//! Conditions in a status, as newer kinds have them.
//!
//! Contract: apimachinery `meta/v1/validation`, `ValidateConditions`.

use object::field::{FieldError, Path};
use object::{Map, names};

use super::check::{self, Errors, Report};
use super::read::{Read, maps};

const REASON_BYTES_MAX: usize = 1024;
const MESSAGE_BYTES_MAX: usize = 32 * 1024;

/// Checks the conditions of a status.
pub(crate) fn validate(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = status.list("conditions");
    for (index, condition) in maps(list) {
        let path = path.index(index);
        let kind = condition.text("type");
        if maps(&list[..index]).any(|(_, other)| other.text("type") == kind) {
            errors.duplicate(&path.field("type"), kind);
        }
        errors.each(&path.field("type"), kind, names::qualified_name(kind));
        let state = condition.text("status");
        check::choice_or_empty(
            state,
            &["False", "True", "Unknown"],
            &path.field("status"),
            errors,
        );
        if let Some(generation) = condition.int("observedGeneration").filter(|it| *it < 0) {
            let detail = "must be greater than or equal to zero";
            errors.invalid(&path.field("observedGeneration"), generation, detail);
        }
        if !condition.has("lastTransitionTime") {
            errors.required(&path.field("lastTransitionTime"), "");
        }
        reason(condition.text("reason"), &path.field("reason"), errors);
        if condition.text("message").len() > MESSAGE_BYTES_MAX {
            errors.push(FieldError::too_long(
                &path.field("message"),
                MESSAGE_BYTES_MAX,
            ));
        }
    }
}

fn reason(reason: &str, path: &Path<'_>, errors: &mut Errors) {
    if reason.is_empty() {
        errors.required(path, "");
        return;
    }
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = reason.as_bytes();
    let fits = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|byte| word(*byte))
        && bytes.iter().all(|byte| word(*byte) || b",:".contains(byte));
    if !fits {
        let detail = names::pattern_complaint(
            "a condition reason must start with alphabetic character, optionally followed by a \
             string of alphanumeric characters or '_,:', and must end with an alphanumeric \
             character or '_'",
            "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
            &[
                "my_name",
                "MY_NAME",
                "MyName",
                "ReasonA,ReasonB",
                "ReasonA:ReasonB",
            ],
        );
        errors.invalid(path, reason, detail);
    }
    if reason.len() > REASON_BYTES_MAX {
        errors.push(FieldError::too_long(path, REASON_BYTES_MAX));
    }
}
