//! What a container finds inside: its environment, mounts and block devices.

use object::field::Path;
use object::quantity::Quantity;
use object::{Map, Value, names};

use super::Context;
use crate::validation::check::{self, Errors, Report};
use crate::validation::read::{Read, maps};

const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const KNOWN_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SIZES: &[&str] = &[
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

/// Checks the environment variables.
pub(super) fn variables(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, variable) in maps(list) {
        let path = path.index(index);
        let name = variable.text("name");
        if name.is_empty() {
            errors.required(&path.field("name"), "");
        } else {
            errors.each(&path.field("name"), name, names::relaxed_env_var_name(name));
        }
        if let Some(source) = variable.object("valueFrom") {
            let path = path.field("valueFrom");
            value_from(source, variable.text("value"), &path, errors);
        }
    }
}

fn value_from(source: &Map, value: &str, path: &Path<'_>, errors: &mut Errors) {
    let mut count = 0;
    for key in [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ] {
        let Some(reference) = source.object(key) else {
            continue;
        };
        count += 1;
        let path = path.field(key);
        match key {
            "fieldRef" => field_reference(reference, ENV_FIELDS, &path, errors),
            "resourceFieldRef" => resource_reference(reference, false, &path, errors),
            "fileKeyRef" => file_reference(reference, &path, errors),
            _ => key_reference(reference, &path, errors),
        }
    }
    let detail = match (count, value.is_empty()) {
        (0, _) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        (_, false) => "may not be specified when `value` is not empty",
        (1, true) => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.invalid(path, "", detail);
}

/// Checks a reference to a field of the pod.
pub(super) fn field_reference(
    reference: &Map,
    allowed: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    for key in ["apiVersion", "fieldPath"] {
        if reference.text(key).is_empty() {
            errors.required(&path.field(key), "");
            return;
        }
    }
    let text = reference.text("fieldPath");
    if let Some(problem) = unknown_field(reference.text("apiVersion"), text) {
        let detail = format!("error converting fieldPath: {problem}");
        errors.invalid(&path.field("fieldPath"), text, detail);
        return;
    }
    match subscript(text) {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            errors.each(path, &key, names::qualified_name(&key));
        }
        Some((_, key)) => errors.each(path, key, names::qualified_name(key)),
        None => {
            let known = if text == "spec.host" {
                "spec.nodeName"
            } else {
                text
            };
            check::choice_or_empty(known, allowed, &path.field("fieldPath"), errors);
        }
    }
}

fn unknown_field(version: &str, text: &str) -> Option<String> {
    if version != "v1" {
        return Some(format!("unsupported pod version: {version}"));
    }
    match subscript(text) {
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {text}")),
        None if text == "spec.host" || KNOWN_FIELDS.contains(&text) => None,
        None => Some(format!("field label not supported: {text}")),
    }
}

fn subscript(text: &str) -> Option<(&str, &str)> {
    let (path, key) = text.strip_suffix("']")?.split_once("['")?;
    (!path.is_empty()).then_some((path, key))
}

/// Checks a reference to what a container asks for; in volumes the container is named.
pub(super) fn resource_reference(
    reference: &Map,
    volume: bool,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let resource = reference.text("resource");
    let huge =
        resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if volume && reference.text("containerName").is_empty() {
        errors.required(&path.field("containerName"), "");
    } else if resource.is_empty() {
        errors.required(&path.field("resource"), "");
    } else if !RESOURCES.contains(&resource) && !huge {
        errors.unsupported(&path.field("resource"), resource, RESOURCES);
    }
    let divisor = match Quantity::from_value(reference.value("divisor")) {
        Ok(divisor) if !divisor.is_zero() => divisor.to_string(),
        _ => return,
    };
    let (good, detail): (&[&str], &str) = match resource {
        "limits.cpu" | "requests.cpu" => (
            &["1m", "1"],
            "only divisor's values 1m and 1 are supported with the cpu resource",
        ),
        "limits.memory" | "requests.memory" => (
            SIZES,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are \
             supported with the memory resource",
        ),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (
            SIZES,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are \
             supported with the local ephemeral storage resource",
        ),
        _ if huge => (
            SIZES,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are \
             supported with the hugepages resource",
        ),
        _ => return,
    };
    if !good.contains(&divisor.as_str()) {
        errors.invalid(&path.field("divisor"), resource, detail);
    }
}

fn key_reference(reference: &Map, path: &Path<'_>, errors: &mut Errors) {
    let name = reference.text("name");
    errors.each(&path.field("name"), name, names::dns1123_subdomain(name));
    let key = reference.text("key");
    if key.is_empty() {
        errors.required(&path.field("key"), "");
    } else {
        errors.each(&path.field("key"), key, names::config_map_key(key));
    }
}

fn file_reference(reference: &Map, path: &Path<'_>, errors: &mut Errors) {
    let key = reference.text("key");
    if key.is_empty() {
        errors.required(&path.field("key"), "");
    } else {
        errors.each(&path.field("key"), key, names::relaxed_env_var_name(key));
    }
    check::label(
        reference.text("volumeName"),
        &path.field("volumeName"),
        errors,
    );
    let file = reference.text("path");
    if file.is_empty() {
        errors.required(&path.field("path"), "");
    } else {
        check::no_backsteps(file, &path.field("path"), errors);
    }
}

/// Checks the whole maps that become environment variables.
pub(super) fn sources(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, source) in maps(list) {
        let at = path.index(index);
        let prefix = source.text("prefix");
        if !prefix.is_empty() {
            let complaints = names::relaxed_env_var_name(prefix);
            errors.each(&at.field("prefix"), prefix, complaints);
        }
        let mut count = 0;
        for key in ["configMapRef", "secretRef"] {
            let Some(reference) = source.object(key) else {
                continue;
            };
            count += 1;
            let name = reference.text("name");
            if name.is_empty() {
                errors.required(&at.field(key).field("name"), "");
            } else {
                let complaints = names::name_is_dns_subdomain(name, true);
                errors.each(&at.field(key).field("name"), name, complaints);
            }
        }
        match count {
            0 => errors.invalid(
                path,
                "",
                "must specify one of: `configMapRef` or `secretRef`",
            ),
            1 => {}
            _ => errors.invalid(
                path,
                "",
                "may not have more than one field specified at a time",
            ),
        }
    }
}

/// Checks where volumes are mounted.
pub(super) fn mounts(container: &Map, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let list = container.list("volumeMounts");
    let devices = container.list("volumeDevices");
    for (index, mount) in maps(list) {
        let at = path.index(index);
        let (name, target) = (mount.text("name"), mount.text("mountPath"));
        if name.is_empty() {
            errors.required(&at.field("name"), "");
        }
        if !context.has_volume(name) {
            errors.not_found(&at.field("name"), name);
        }
        if target.is_empty() {
            errors.required(&at.field("mountPath"), "");
        }
        if maps(&list[..index]).any(|(_, other)| other.text("mountPath") == target) {
            errors.invalid(&at.field("mountPath"), target, "must be unique");
        }
        if maps(devices).any(|(_, device)| device.text("name") == name) {
            let detail = "must not already exist in volumeDevices";
            errors.invalid(&at.field("name"), name, detail);
        }
        if maps(devices).any(|(_, device)| device.text("devicePath") == target) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.invalid(&at.field("mountPath"), target, detail);
        }
        mount_details(mount, container, &at, path, errors);
    }
}

/// Most of these mistakes are reported at the list rather than at the item, as upstream does.
fn mount_details(
    mount: &Map,
    container: &Map,
    at: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let (sub_path, expression) = (mount.text("subPath"), mount.text("subPathExpr"));
    if !sub_path.is_empty() {
        check::descending_path(sub_path, &path.field("subPath"), errors);
    }
    if !expression.is_empty() {
        if !sub_path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.invalid(&at.field("subPathExpr"), expression, detail);
        }
        check::descending_path(expression, &path.field("subPathExpr"), errors);
    }
    if mount.has("mountPropagation") {
        let path = path.field("mountPropagation");
        let mode = mount.text("mountPropagation");
        check::choice_or_empty(
            mode,
            &["Bidirectional", "HostToContainer", "None"],
            &path,
            errors,
        );
        let privileged = container
            .object_or_empty("securityContext")
            .flag("privileged");
        if mode == "Bidirectional" && !privileged {
            let detail =
                "Bidirectional mount propagation is available only to privileged containers";
            errors.forbidden(&path, detail);
        }
    }
    if mount.has("recursiveReadOnly") {
        let path = path.field("recursiveReadOnly");
        match mount.text("recursiveReadOnly") {
            "Disabled" => {}
            "Enabled" | "IfPossible" => {
                if !mount.flag("readOnly") {
                    errors.forbidden(&path, "may only be specified when readOnly is true");
                }
                if mount.has("mountPropagation") && mount.text("mountPropagation") != "None" {
                    let detail =
                        "may only be specified when mountPropagation is None or not specified";
                    errors.forbidden(&path, detail);
                }
            }
            other => errors.unsupported(&path, other, &["Disabled", "Enabled", "IfPossible"]),
        }
    }
}

/// Checks the raw block devices.
pub(super) fn devices(
    container: &Map,
    context: &Context<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let list = container.list("volumeDevices");
    let mounts = container.list("volumeMounts");
    for (index, device) in maps(list) {
        let path = path.index(index);
        let (name_path, path_path) = (path.field("name"), path.field("devicePath"));
        let (name, target) = (device.text("name"), device.text("devicePath"));
        if name.is_empty() {
            errors.required(&name_path, "");
        }
        let seen =
            |key: &str, text: &str| maps(&list[..index]).any(|(_, other)| other.text(key) == text);
        if !name.is_empty() && seen("name", name) {
            errors.invalid(&name_path, name, "must be unique");
        }
        match context.volume(name) {
            Some(volume) if volume.has("persistentVolumeClaim") || volume.has("ephemeral") => {}
            Some(_) => errors.invalid(
                &name_path,
                name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block \
                 mode",
            ),
            None => errors.not_found(&name_path, name),
        }
        if target.is_empty() {
            errors.required(&path_path, "");
        }
        if seen("devicePath", target) && !check::has_backsteps(target) {
            errors.invalid(&path_path, target, "must be unique");
        }
        if check::has_backsteps(target) {
            errors.invalid(&path_path, target, "can not contain backsteps ('..')");
        }
        if maps(mounts).any(|(_, mount)| mount.text("name") == name) {
            errors.invalid(&name_path, name, "must not already exist in volumeMounts");
        }
        if maps(mounts).any(|(_, mount)| mount.text("mountPath") == target) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.invalid(&path_path, target, detail);
        }
    }
}
