//! The services behind aggregated APIs.

use object::field::{FieldError, Path};
use object::{Map, names};

use super::named_as;
use crate::validation::check::{self, Errors, Report};
use crate::validation::meta;
use crate::validation::read::{Read, maps};

/// Checks who serves a version of a group.
pub(crate) fn api_service(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() && subresource == "status" {
        let path = root.field("status");
        let path = path.field("conditions");
        for (index, condition) in maps(new.object_or_empty("status").list("conditions")) {
            let states = ["True", "False", "Unknown"];
            let path = path.index(index);
            let state = condition.text("status");
            check::choice_or_empty(state, &states, &path.field("status"), &mut errors);
        }
        return errors;
    }
    if old.is_some() {
        // The name is looked at below, together with what it is made of.
        meta::again_plain(new, false, |_, _| Vec::new(), &mut errors);
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    let (group, version) = (spec.text("group"), spec.text("version"));
    let wanted = format!("{version}.{group}");
    let detail = format!(
        "must be `spec.version+\".\"+spec.group`: {}",
        object::field::quote(&wanted)
    );
    named_as(new, &wanted, &detail, &mut errors);
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.required(&path.field("group"), detail);
    }
    check::optional_subdomain(group, &path.field("group"), &mut errors);
    errors.each(
        &path.field("version"),
        version,
        names::dns1035_label(version),
    );
    for (key, limit) in [("groupPriorityMinimum", 20000), ("versionPriority", 1000)] {
        let number = spec.int(key).unwrap_or_default();
        if number <= 0 || number > limit {
            let detail = format!("must be positive and less than {limit}");
            errors.invalid(&path.field(key), number, detail);
        }
    }
    served_by(spec, &path, &mut errors);
    errors
}

fn served_by(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let bundle = spec.text("caBundle");
    let insecure = spec.flag("insecureSkipTLSVerify");
    let Some(service) = spec.object("service") else {
        if !bundle.is_empty() {
            let bytes = bundle.len() / 4 * 3 - bundle.bytes().filter(|it| *it == b'=').count();
            let detail = "local APIServices may not have a caBundle";
            errors.invalid(&path.field("caBundle"), format!("{bytes} bytes"), detail);
        }
        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.invalid(&path.field("insecureSkipTLSVerify"), true, detail);
        }
        return;
    };
    let at = path.field("service");
    check::require(service, &["namespace", "name"], &at, errors);
    let port = service.int("port").unwrap_or_default();
    let complaints = names::port_number(port);
    if !complaints.is_empty() {
        let detail = format!("port is not valid: {}", complaints.join(", "));
        errors.invalid(&at.field("port"), port, detail);
    }
    if insecure && !bundle.is_empty() {
        let detail = "may not be true if caBundle is present";
        errors.invalid(&path.field("insecureSkipTLSVerify"), true, detail);
    }
}
