//! Devices: classes, claims and the slices that drivers publish.
//!
//! Contract: `resource/validation` of kube-apiserver.

mod binding;
mod capacity;
mod claim;
mod selector;
mod slices;
mod status;

use object::field::{FieldError, Path};
use object::{Map, Value, json, names};

pub(crate) use slices::slice;

use super::check::{self, Errors, Report};
use super::read::{Read, maps};
use super::{claims, internal, meta, pod, quantities};

const REQUESTS_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
const FIRST_AVAILABLE_MAX: usize = 8;
const CONFIGURATIONS_MAX: usize = 32;
const PARAMETERS_BYTES_MAX: usize = 10 * 1024;
const IDENTIFIER_BYTES_MAX: usize = 32;

/// Checks a class of devices.
pub(crate) fn class(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    if old.is_some() {
        meta::again_unnamed(new, false, &mut errors);
    }
    selectors(
        spec.list("selectors"),
        &path.field("selectors"),
        &mut errors,
    );
    configurations(spec.list("config"), &path.field("config"), &mut errors);
    if spec.has("extendedResourceName") {
        let name = spec.text("extendedResourceName");
        if !quantities::is_extended(name) {
            let detail = "must be a valid extended resource name";
            errors.invalid(&path.field("extendedResourceName"), name, detail);
        }
    }
    errors
}

/// Checks a claim of devices.
pub(crate) fn claim(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if let (Some(old), "status") = (old, subresource) {
        status::changed(new, old, &mut errors);
        return errors;
    }
    let root = Path::root();
    if let Some(old) = old {
        meta::again(new, true, &mut errors);
        unchanged(new, old, "ResourceClaimSpec", &mut errors);
        return errors;
    }
    claim_spec(
        new.object_or_empty("spec"),
        &root.field("spec"),
        &mut errors,
    );
    errors
}

/// Checks a template of claims.
pub(crate) fn claim_template(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() {
        meta::again(new, true, &mut errors);
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    claims::template_metadata(spec, &path, &mut errors);
    claim_spec(
        spec.object_or_empty("spec"),
        &path.field("spec"),
        &mut errors,
    );
    if let Some(old) = old {
        unchanged(new, old, "ResourceClaimTemplateSpec", &mut errors);
    }
    errors
}

fn unchanged(new: &Map, old: &Map, structure: &str, errors: &mut Errors) {
    let (now, before) = (new.value("spec"), old.value("spec"));
    if !check::same(now, before) {
        let root = Path::root();
        let path = root.field("spec");
        errors.push(internal::invalid(&path, now, structure, check::IMMUTABLE));
    }
}

fn claim_spec(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let devices = spec.object_or_empty("devices");
    let path = path.field("devices");
    let requests = devices.list("requests");
    named_set(
        requests,
        ("name", REQUESTS_MAX),
        &path.field("requests"),
        errors,
        |one, path, errors| {
            name(one.text("name"), &path.field("name"), errors);
            request(one, path, errors);
        },
    );
    claim::check(devices, &path, errors);
}

/// Checks the name of a request or device.
fn name(text: &str, path: &Path<'_>, errors: &mut Errors) {
    errors.each(path, text, names::dns1123_label(text));
}

/// Checks the name of an attribute or a capacity: an identifier, perhaps with a domain.
fn qualified_name(text: &str, path: &Path<'_>, errors: &mut Errors) {
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        [id] => identifier(id, path, errors),
        [domain, id] => {
            if domain.is_empty() {
                errors.invalid(path, "", "the domain must not be empty");
            } else {
                pod::csi_driver_name(domain, path, errors);
            }
            if id.is_empty() {
                errors.invalid(path, "", "the name must not be empty");
            } else {
                identifier(id, path, errors);
            }
        }
        _ => {}
    }
}

fn identifier(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if text.len() > IDENTIFIER_BYTES_MAX {
        errors.push(FieldError::too_long(path, IDENTIFIER_BYTES_MAX));
    }
    errors.each(path, text, names::c_identifier(text));
}

/// Checks a list whose items have names of their own, in the field `name`.
fn named_set(
    list: &[Value],
    (name, limit): (&str, usize),
    path: &Path<'_>,
    errors: &mut Errors,
    item: impl Fn(&Map, &Path<'_>, &mut Errors),
) {
    for (index, one) in within_limit(list, limit, path, errors) {
        item(one, &path.index(index), errors);
    }
    if list.len() > limit {
        return;
    }
    for (index, one) in maps(list) {
        let key = one.text(name);
        if maps(&list[..index]).any(|(_, other)| other.text(name) == key) {
            errors.duplicate(&path.index(index), key);
        }
    }
}

/// The items of a list; none, and a mistake, if there are more than are worth looking at.
fn within_limit<'a>(
    list: &'a [Value],
    limit: usize,
    path: &Path<'_>,
    errors: &mut Errors,
) -> impl Iterator<Item = (usize, &'a Map)> + use<'a> {
    let mut shown = list;
    if list.len() > limit {
        errors.push(FieldError::too_many(path, list.len(), limit));
        shown = &[];
    }
    maps(shown)
}

fn request(request: &Map, path: &Path<'_>, errors: &mut Errors) {
    let alternatives = request.list("firstAvailable");
    match (request.object("exactly"), alternatives.is_empty()) {
        (None, true) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required";
            errors.required(path, detail);
        }
        (Some(_), false) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple \
                          fields are set";
            errors.invalid_value(path, &Value::Null, detail);
        }
        (Some(exact), true) => wanted(exact, &path.field("exactly"), errors),
        (None, false) => {
            let path = path.field("firstAvailable");
            named_set(
                alternatives,
                ("name", FIRST_AVAILABLE_MAX),
                &path,
                errors,
                |one, path, errors| {
                    name(one.text("name"), &path.field("name"), errors);
                    wanted(one, path, errors);
                },
            );
        }
    }
}

fn wanted(request: &Map, path: &Path<'_>, errors: &mut Errors) {
    let class = request.text("deviceClassName");
    check::subdomain(class, &path.field("deviceClassName"), errors);
    selectors(request.list("selectors"), &path.field("selectors"), errors);
    let count = request.int("count").unwrap_or_default();
    let at = path.field("count");
    match request.text("allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.invalid(&at, count, detail);
        }
        "ExactCount" if count <= 0 => {
            errors.invalid(&at, count, "must be greater than zero");
        }
        "All" | "ExactCount" => {}
        other => {
            let modes = ["All", "ExactCount"];
            errors.unsupported(&path.field("allocationMode"), other, &modes);
        }
    }
    let at = path.field("tolerations");
    claim::tolerations(request.list("tolerations"), &at, errors);
}

fn selectors(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, selector) in within_limit(list, SELECTORS_MAX, path, errors) {
        let path = path.index(index);
        let path = path.field("cel");
        match selector.object("cel") {
            None => errors.required(&path, ""),
            Some(cel) => selector::check(cel, &path, errors),
        }
    }
}

fn configurations(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, config) in within_limit(list, CONFIGURATIONS_MAX, path, errors) {
        configuration(config, &path.index(index), errors);
    }
}

fn configuration(config: &Map, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("opaque");
    match config.object("opaque") {
        None => errors.required(&at, ""),
        Some(opaque) => {
            pod::csi_driver_name(opaque.text("driver"), &at.field("driver"), errors);
            raw(opaque.value("parameters"), &at.field("parameters"), errors);
        }
    }
}

/// Checks what only a driver understands: it is an object, and not too long.
fn raw(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::Null => errors.required(path, ""),
        value if json::to_vec(value).len() > PARAMETERS_BYTES_MAX => {
            errors.push(FieldError::too_long(path, PARAMETERS_BYTES_MAX));
        }
        Value::Object(_) => {}
        _ => errors.invalid(path, "<value omitted>", "must be a valid JSON object"),
    }
}

#[cfg(test)]
mod tests;
