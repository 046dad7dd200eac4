//! Devices: classes, claims and the slices that drivers publish.
//!
//! Contract: upstream's `pkg/apis/resource/validation/validation.go`.

mod claim;
mod selector;

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use super::check::{self, Errors, Report};
use super::read::{Read, maps};
use super::{meta, pod, quantities};

const REQUESTS_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
const FIRST_AVAILABLE_MAX: usize = 8;
const DEVICES_MAX: usize = 128;
const ONE_OF_NODES: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

/// Checks a class of devices.
pub(crate) fn class(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    if old.is_some() {
        meta::again(new, false, &mut errors);
    }
    selectors(
        spec.list("selectors"),
        &path.field("selectors"),
        &mut errors,
    );
    configurations(spec.list("config"), 0, &path.field("config"), &mut errors);
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
    if old.is_some() && subresource == "status" {
        return errors;
    }
    let root = Path::root();
    if let Some(old) = old {
        meta::again(new, true, &mut errors);
        check::unchanged(new, old, "spec", &root, &mut errors);
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
    if let Some(old) = old {
        meta::again(new, true, &mut errors);
        check::unchanged(new, old, "spec", &root, &mut errors);
        return errors;
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    let metadata = spec.object_or_empty("metadata");
    let at = path.field("metadata");
    meta::annotations(
        metadata.object("annotations"),
        &at.field("annotations"),
        &mut errors,
    );
    meta::labels(metadata.object("labels"), &at.field("labels"), &mut errors);
    claim_spec(
        spec.object_or_empty("spec"),
        &path.field("spec"),
        &mut errors,
    );
    errors
}

fn claim_spec(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let devices = spec.object_or_empty("devices");
    let path = path.field("devices");
    let requests = path.field("requests");
    named_set(
        devices.list("requests"),
        REQUESTS_MAX,
        &requests,
        errors,
        |one, path, errors| {
            check::label(one.text("name"), &path.field("name"), errors);
            request(one, path, errors);
        },
    );
    claim::check(devices, &path, errors);
}

/// Checks a list whose items have names of their own.
fn named_set(
    list: &[Value],
    limit: usize,
    path: &Path<'_>,
    errors: &mut Errors,
    item: fn(&Map, &Path<'_>, &mut Errors),
) {
    if list.len() > limit {
        errors.push(FieldError::too_many(path, list.len(), limit));
    }
    if list.len() > limit {
        return;
    }
    for (index, one) in maps(list) {
        item(one, &path.index(index), errors);
    }
    for (index, one) in maps(list) {
        let name = one.text("name");
        if maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
            errors.duplicate(&path.index(index), name);
        }
    }
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
                FIRST_AVAILABLE_MAX,
                &path,
                errors,
                |one, path, errors| {
                    check::label(one.text("name"), &path.field("name"), errors);
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
    if list.len() > SELECTORS_MAX {
        errors.push(FieldError::too_many(path, list.len(), SELECTORS_MAX));
    }
    for (index, selector) in maps(list).take(SELECTORS_MAX) {
        let path = path.index(index);
        let path = path.field("cel");
        match selector.object("cel") {
            Some(expression) => selector::check(expression, &path, errors),
            None => errors.required(&path, ""),
        }
    }
}

/// Checks the configurations from `first` on.
fn configurations(list: &[Value], first: usize, path: &Path<'_>, errors: &mut Errors) {
    for (index, config) in maps(list).skip_while(|(index, _)| *index < first) {
        let path = path.index(index);
        let Some(opaque) = config.object("opaque") else {
            errors.required(&path.field("opaque"), "");
            continue;
        };
        let at = path.field("opaque");
        pod::csi_driver_name(opaque.text("driver"), &at.field("driver"), errors);
        let parameters = opaque.value("parameters");
        if !opaque.has("parameters") || parameters.is_null() {
            errors.required(&at.field("parameters"), "");
        } else if !matches!(parameters, Value::Object(_)) {
            let detail = "must be a valid JSON object";
            errors.invalid(&at.field("parameters"), "<value omitted>", detail);
        }
    }
}

/// Checks a slice of a pool of devices.
pub(crate) fn slice(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    pod::csi_driver_name(spec.text("driver"), &path.field("driver"), &mut errors);
    pool(
        spec.object_or_empty("pool"),
        &path.field("pool"),
        &mut errors,
    );
    if let Some(old) = old {
        let stored = old.object_or_empty("spec");
        let (pool, stored_pool) = (spec.object_or_empty("pool"), stored.object_or_empty("pool"));
        check::unchanged(pool, stored_pool, "name", &path.field("pool"), &mut errors);
        check::unchanged(spec, stored, "driver", &path, &mut errors);
        check::unchanged(spec, stored, "nodeName", &path, &mut errors);
    }
    nodes(spec, &path, &mut errors);
    let devices = path.field("devices");
    named_set(
        spec.list("devices"),
        DEVICES_MAX,
        &devices,
        &mut errors,
        |one, path, errors| {
            check::label(one.text("name"), &path.field("name"), errors);
        },
    );
    errors
}

fn pool(pool: &Map, path: &Path<'_>, errors: &mut Errors) {
    let name = pool.text("name");
    let at = path.field("name");
    if name.is_empty() {
        errors.required(&at, "");
    }
    for part in name.split('/').filter(|_| !name.is_empty()) {
        errors.each(&at, part, names::dns1123_subdomain(part));
    }
    let count = pool.int("resourceSliceCount").unwrap_or_default();
    check::above_zero(count, &path.field("resourceSliceCount"), errors);
    if let Some(generation) = pool.int("generation").filter(|it| *it < 0) {
        let detail = "must be greater than or equal to zero";
        errors.invalid(&path.field("generation"), generation, detail);
    }
}

fn nodes(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let mut set: Vec<&str> = Vec::new();
    if spec.has("nodeName") {
        let name = spec.text("nodeName");
        if name.is_empty() {
            let detail = "must be either unset or set to a non-empty string";
            errors.invalid(&path.field("nodeName"), name, detail);
        } else {
            set.push("`nodeName`");
            errors.each(
                &path.field("nodeName"),
                name,
                names::dns1123_subdomain(name),
            );
        }
    }
    if let Some(selector) = spec.object("nodeSelector") {
        set.push("`nodeSelector`");
        pod::node_selector(selector, &path.field("nodeSelector"), errors);
        if selector.list("nodeSelectorTerms").len() != 1 {
            let path = path.field("nodeSelector");
            let terms = selector.value("nodeSelectorTerms");
            let detail = "must have exactly one node selector term";
            errors.invalid_value(&path.field("nodeSelectorTerms"), terms, detail);
        }
    }
    for (key, shown) in [
        ("allNodes", "`allNodes`"),
        ("perDeviceNodeSelection", "`perDeviceNodeSelection`"),
    ] {
        match spec.choice(key) {
            Some(true) => set.push(shown),
            Some(false) => {
                let detail = "must be either unset or set to true";
                errors.invalid(&path.field(key), false, detail);
            }
            None => {}
        }
    }
    match set.len() {
        0 => errors.required(path, ONE_OF_NODES),
        1 => {}
        _ => {
            let detail = format!("{ONE_OF_NODES}, but multiple fields are set");
            errors.invalid(path, format!("{{{}}}", set.join(", ")), detail);
        }
    }
}
