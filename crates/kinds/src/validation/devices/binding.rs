//! The conditions that a driver waits for before pods are bound to a device.

use object::Map;
use object::field::{FieldError, Path};
use object::names;

use crate::validation::check::{Errors, Report};
use crate::validation::read::{Read, texts};

const CONDITIONS_MAX: usize = 4;
const WANTED: &str = "bindingConditions";
const FAILED: &str = "bindingFailureConditions";

/// Checks what a device, or its allocation, waits for and what makes it give up.
pub(super) fn check(holder: &Map, path: &Path<'_>, errors: &mut Errors) {
    let (wanted, failed) = (holder.list(WANTED), holder.list(FAILED));
    for (key, list) in [(WANTED, wanted), (FAILED, failed)] {
        let path = path.field(key);
        if list.len() > CONDITIONS_MAX {
            errors.push(FieldError::too_many(&path, list.len(), CONDITIONS_MAX));
            continue;
        }
        for (index, name) in texts(list) {
            errors.each(&path.index(index), name, names::qualified_name(name));
        }
    }
    for (key, list) in [(WANTED, wanted), (FAILED, failed)] {
        let path = path.field(key);
        for (index, name) in texts(list) {
            if texts(&list[..index]).any(|(_, other)| other == name) {
                errors.duplicate(&path.index(index), name);
            }
            if key == FAILED && texts(wanted).any(|(_, other)| other == name) {
                let detail = "bindingFailureConditions must not overlap with bindingConditions";
                errors.invalid(&path.index(index), name, detail);
            }
        }
    }
    for (key, list, other, given) in [
        (WANTED, wanted, FAILED, failed),
        (FAILED, failed, WANTED, wanted),
    ] {
        if list.is_empty() && !given.is_empty() {
            let detail = format!("{key} are required to use {other}");
            errors.invalid_value(&path.field(key), holder.value(key), detail);
        }
    }
}
