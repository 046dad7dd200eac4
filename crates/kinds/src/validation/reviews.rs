//! Questions that are answered but never stored: may someone do something.

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use super::check::{Errors, Report};
use super::print::{self, Field, OBJECT_META, Shape};
use super::read::{Read, maps, texts};

const NON_RESOURCE: Shape = Shape(&[
    Field::plain("path", "Path", "\"\""),
    Field::plain("verb", "Verb", "\"\""),
]);

/// Checks a question about access, of any of its kinds.
pub(crate) fn access(kind: &str, new: &Map) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    let resource = spec.object("resourceAttributes");
    let other = spec.value("nonResourceAttributes");
    match (resource, other.is_null()) {
        (Some(_), false) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            let path = path.field("nonResourceAttributes");
            errors.push(print::invalid(&path, other, &NON_RESOURCE, detail));
        }
        (None, true) => {
            let detail =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.invalid_value(&path.field("resourceAttributes"), &Value::Null, detail);
        }
        _ => {}
    }
    let is_self = kind == "SelfSubjectAccessReview";
    if !is_self && spec.text("user").is_empty() && spec.list("groups").is_empty() {
        let detail = "at least one of user or group must be specified";
        errors.invalid(&path.field("user"), "", detail);
    }
    if let Some(resource) = resource {
        selectors(resource, &mut errors);
    }
    let is_local = kind == "LocalSubjectAccessReview";
    metadata(new, is_local, &mut errors);
    if is_local {
        let namespace = new.object_or_empty("metadata").text("namespace");
        let asked = resource.map(|resource| resource.text("namespace"));
        if let Some(asked) = asked.filter(|asked| *asked != namespace) {
            let path = root.field("spec.resourceAttributes.namespace");
            errors.invalid(&path, asked, "must match metadata.namespace");
        }
        if !other.is_null() {
            let path = root.field("spec.nonResourceAttributes");
            let detail = "disallowed on this kind of request";
            errors.push(print::invalid(&path, other, &NON_RESOURCE, detail));
        }
    }
    errors
}

/// A question has no name, no labels, nothing.
fn metadata(new: &Map, is_local: bool, errors: &mut Errors) {
    let given = new.object_or_empty("metadata");
    let ignored = ["managedFields", "creationTimestamp", "uid"];
    let filled = given.iter().any(|(key, value)| {
        let allowed = ignored.contains(&key.as_str()) || is_local && key == "namespace";
        let is_empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        !allowed && !is_empty
    });
    if filled {
        let detail = if is_local {
            "must be empty except for namespace"
        } else {
            "must be empty"
        };
        let root = Path::root();
        let (path, given) = (root.field("metadata"), new.value("metadata"));
        errors.push(print::invalid(&path, given, &OBJECT_META, detail));
    }
}

fn selectors(resource: &Map, errors: &mut Errors) {
    let root = Path::root();
    let base = root.field("spec.resourceAttributes");
    for key in ["fieldSelector", "labelSelector"] {
        let Some(selector) = resource.object(key) else {
            continue;
        };
        let path = base.field(key);
        let raw = selector.text("rawSelector");
        let requirements = selector.list("requirements");
        if !raw.is_empty() && !requirements.is_empty() {
            let detail = "may not specified at the same time as requirements";
            errors.invalid(&path.field("rawSelector"), raw, detail);
        }
        if raw.is_empty() && requirements.is_empty() {
            let detail =
                format!("when {path} is specified, requirements or rawSelector is required");
            errors.required(&path.field("requirements"), &detail);
        }
        let at = path.field("requirements");
        for (index, requirement) in maps(requirements) {
            check_requirement(requirement, key, &at.index(index), errors);
        }
    }
}

/// An operator that is not known is no mistake here: newer clients may know more.
fn check_requirement(requirement: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    let name = requirement.text("key");
    if key == "fieldSelector" && name.is_empty() {
        errors.required(&path.field("key"), "must be specified");
    }
    let values = requirement.list("values");
    match requirement.text("operator") {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.required(&path.field("values"), detail);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.forbidden(&path.field("values"), detail);
        }
        _ => {}
    }
    if key == "labelSelector" {
        errors.each(&path.field("key"), name, names::qualified_name(name));
        let path = path.field("values");
        for (index, value) in texts(values) {
            errors.each(&path.index(index), value, names::label_value(value));
        }
    }
}

/// Checks what a client asks of a service account's token.
pub fn token_request(new: &Map) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let path = path.field("expirationSeconds");
    let seconds = new
        .object_or_empty("spec")
        .int("expirationSeconds")
        .unwrap_or_default();
    if seconds < 600 {
        errors.invalid(
            &path,
            seconds,
            "may not specify a duration less than 10 minutes",
        );
    }
    if seconds > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.invalid(&path, seconds, detail);
    }
    errors
}

#[cfg(test)]
mod tests;
