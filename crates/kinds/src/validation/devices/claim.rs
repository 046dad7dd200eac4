//! The parts of a claim that refer to its requests, and what requests tolerate.

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use super::super::check::{self, Errors, Report};
use super::super::read::{Read, maps, texts};
use super::{REQUESTS_MAX, configuration, qualified_name, within_limit};

/// What a taint of a device does.
pub(super) const TAINT_EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
/// Constraints and configurations of one claim.
const PARTS_MAX: usize = 32;
pub(super) const UNKNOWN_REQUEST: &str = "must be the name of a request in the claim or the name \
                                          of a request and a subrequest separated by '/'";
const ONE_ATTRIBUTE: &str = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is \
                             required, but multiple fields are set";

/// Checks the constraints and configurations of a claim.
pub(super) fn check(devices: &Map, path: &Path<'_>, errors: &mut Errors) {
    let requests = devices.list("requests");
    let at = path.field("constraints");
    for (index, constraint) in within_limit(devices.list("constraints"), PARTS_MAX, &at, errors) {
        let path = at.index(index);
        let names = constraint.list("requests");
        references(names, requests, &path.field("requests"), errors);
        if constraint.has("matchAttribute") {
            let name = constraint.text("matchAttribute");
            full_name(name, &path.field("matchAttribute"), errors);
        } else if constraint.has("distinctAttribute") {
            let name = constraint.text("distinctAttribute");
            full_name(name, &path.field("distinctAttribute"), errors);
        } else {
            errors.required(&path, ONE_ATTRIBUTE);
        }
    }
    let at = path.field("config");
    for (index, config) in within_limit(devices.list("config"), PARTS_MAX, &at, errors) {
        let path = at.index(index);
        let names = config.list("requests");
        references(names, requests, &path.field("requests"), errors);
        configuration(config, &path, errors);
    }
}

/// Checks that names refer to requests, or to one of the alternatives of a request.
pub(super) fn references(
    names: &[Value],
    requests: &[Value],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if names.len() > REQUESTS_MAX {
        errors.push(FieldError::too_many(path, names.len(), REQUESTS_MAX));
        return;
    }
    for (index, name) in texts(names) {
        reference(name, requests, &path.index(index), errors);
    }
    for (index, name) in texts(names) {
        if texts(&names[..index]).any(|(_, other)| other == name) {
            errors.duplicate(&path.index(index), name);
        }
    }
}

pub(super) fn reference(name: &str, requests: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() > 2 {
        return errors.invalid(path, name, UNKNOWN_REQUEST);
    }
    for part in &parts {
        super::name(part, path, errors);
    }
    let found = maps(requests).find(|(_, it)| it.text("name") == parts[0]);
    let is_known = found.is_some_and(|(_, request)| match parts.get(1) {
        None => true,
        Some(part) => maps(request.list("firstAvailable")).any(|(_, it)| it.text("name") == *part),
    });
    if !is_known {
        errors.invalid(path, name, UNKNOWN_REQUEST);
    }
}

/// Checks a name of the form `domain/identifier`.
fn full_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    qualified_name(name, path, errors);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        errors.invalid(path, name, detail);
    }
}

/// Checks which taints of devices a request tolerates.
pub(super) fn tolerations(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, toleration) in maps(list) {
        let path = path.index(index);
        let key = toleration.text("key");
        if !key.is_empty() {
            errors.each(&path.field("key"), key, names::qualified_name(key));
        }
        let value = toleration.text("value");
        let at = path.field("value");
        match toleration.text("operator") {
            "Exists" if !value.is_empty() => {
                errors.invalid(&at, value, "must be empty for operator `Exists`");
            }
            "Exists" => {}
            "Equal" => errors.each(&at, value, names::label_value(value)),
            "" => errors.required(&path.field("operator"), ""),
            other => {
                let operators = ["Equal", "Exists"];
                errors.unsupported(&path.field("operator"), other, &operators);
            }
        }
        let effect = toleration.text("effect");
        if !effect.is_empty() {
            check::choice_or_empty(effect, &TAINT_EFFECTS, &path.field("effect"), errors);
        }
    }
}
