//! Annotations that mean something to pods.

use object::field::{Path, quote};
use object::{Map, Value};

use super::spec::each_container;
use crate::validation::check::{self, Errors, Report};
use crate::validation::read::Read;

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Checks the annotations that a pod's nature depends on.
pub(super) fn specific(annotations: &Map, spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    if annotations.is_empty() {
        return;
    }
    if let Some(value) = annotations.get(MIRROR)
        && spec.text("nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid_value(&path.key(MIRROR), value, detail);
    }
    if let Some(value) = annotations.get(DELETION_COST)
        && !is_cost(value.as_str().unwrap_or_default())
    {
        errors.invalid_value(&path.key(DELETION_COST), value, "must be a 32bit integer");
    }
    for (key, value) in annotations.iter() {
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            seccomp(value.as_str().unwrap_or_default(), &path.field(key), errors);
        }
    }
    for (key, value) in annotations.iter() {
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            app_armor(container, value, spec, &path.key(key), errors);
        }
    }
}

/// A whole number of 32 bits without a plus sign or zeros in front.
fn is_cost(text: &str) -> bool {
    text.parse::<i32>()
        .is_ok_and(|number| number.to_string() == text)
}

fn seccomp(profile: &str, path: &Path<'_>, errors: &mut Errors) {
    if matches!(profile, "runtime/default" | "docker/default" | "unconfined") {
        return;
    }
    match profile.strip_prefix("localhost/") {
        Some(file) => check::descending_path(file, path, errors),
        None => errors.invalid(path, profile, "must be a valid seccomp profile"),
    }
}

fn app_armor(container: &str, value: &Value, spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let mut exists = false;
    each_container(spec, path, |other, _| {
        exists |= other.text("name") == container
    });
    if !exists {
        errors.invalid(path, container, "container not found");
    }
    let profile = value.as_str().unwrap_or_default();
    if !matches!(profile, "" | "runtime/default" | "unconfined")
        && !profile.starts_with("localhost/")
    {
        let detail = format!("invalid AppArmor profile name: {}", quote(profile));
        errors.invalid(path, profile, detail);
    }
}

/// Checks that annotations and the fields that replaced them say the same.
pub(super) fn match_fields(annotations: &Map, spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    if annotations.is_empty() {
        return;
    }
    let whole = spec.object_or_empty("securityContext");
    if let (Some(profile), true) = (
        whole.object("seccompProfile"),
        annotations.contains_key(SECCOMP_POD),
    ) {
        let path = path.field("securityContext");
        let path = path.field("seccompProfile");
        matches(
            profile,
            annotations.text(SECCOMP_POD),
            "seccomp",
            &path,
            errors,
        );
    }
    each_container(spec, path, |container, path| {
        let key = format!("{SECCOMP_CONTAINER}{}", container.text("name"));
        let own = container.object_or_empty("securityContext");
        if let (Some(profile), true) =
            (own.object("seccompProfile"), annotations.contains_key(&key))
        {
            let path = path.field("securityContext");
            let path = path.field("seccompProfile");
            matches(profile, annotations.text(&key), "seccomp", &path, errors);
        }
    });
    if spec.object_or_empty("os").text("name") == "windows" {
        return;
    }
    each_container(spec, path, |container, path| {
        let key = format!("{APP_ARMOR}{}", container.text("name"));
        let own = container.object_or_empty("securityContext");
        let profile = own
            .object("appArmorProfile")
            .or_else(|| whole.object("appArmorProfile"));
        if let (Some(profile), true) = (profile, annotations.contains_key(&key)) {
            let path = path.field("securityContext");
            let path = path.field("appArmorProfile");
            matches(profile, annotations.text(&key), "apparmor", &path, errors);
        }
    });
}

fn matches(profile: &Map, annotation: &str, what: &str, path: &Path<'_>, errors: &mut Errors) {
    let same = match profile.text("type") {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => {
            annotation == "runtime/default" || what == "seccomp" && annotation == "docker/default"
        }
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(file) => {
                if profile.text("localhostProfile") != file {
                    let detail = format!("{what} profile in annotation and field must match");
                    errors.forbidden(&path.field("localhostProfile"), detail);
                }
                true
            }
            None => false,
        },
        _ => true,
    };
    if !same {
        let detail = format!("{what} type in annotation and field must match");
        errors.forbidden(&path.field("type"), detail);
    }
}

/// Checks that annotations which tell what a pod is stay as they were.
pub(super) fn change(new: &Map, old: &Map, path: &Path<'_>, errors: &mut Errors) {
    for (key, value) in old.iter() {
        if new.get(key) == Some(value) {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(
                &path.key(key),
                "may not remove or update AppArmor annotations",
            );
        }
        if key == MIRROR {
            errors.forbidden(
                &path.key(key),
                "may not remove or update mirror pod annotation",
            );
        }
    }
    for (key, _) in new.iter().filter(|(key, _)| !old.contains_key(key)) {
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&path.key(key), "may not add AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&path.key(key), "may not add mirror pod annotation");
        }
    }
}

/// Whether the pod mirrors one that a node runs by itself.
pub(super) fn is_mirror(annotations: &Map) -> bool {
    annotations.contains_key(MIRROR)
}
