//! Pods, and the specs of pods inside templates.
//!
//! Contract: `core/validation` of kube-apiserver, `ValidatePodSpec` and what it calls, with the
//! feature gates that are on by default.

mod affinity;
mod annotations;
mod containers;
mod env;
mod probes;
mod security;
mod spec;
mod totals;
mod update;
mod volumes;

use object::Map;
use object::field::{FieldError, Path};

pub use security::allow_privileged;

pub(crate) use affinity::{node_selector, taint_effect, tolerations};
pub(crate) use volumes::{
    azure_disk, csi_driver_name, fibre_channel, flex_volume, flocker, host_path, nfs, partition,
    persistent_iscsi, quobyte, storage_os,
};

use super::check::{Errors, Report};
use super::meta;
use super::read::{Read, maps};

/// What the parts of a pod's spec need to know of the rest of it.
pub(super) struct Context<'a> {
    /// Whether this is a pod rather than a template of one.
    is_pod: bool,
    /// The pod's name; empty in templates.
    pod_name: &'a str,
    restart_policy: &'a str,
    grace_period: Option<i64>,
    os: &'a str,
    host_users: bool,
    /// The volumes that mounts may name.
    volumes: &'a [&'a Map],
    /// The names of the pod's resource claims.
    claims: &'a [&'a str],
}

impl Context<'_> {
    fn volume(&self, name: &str) -> Option<&Map> {
        self.volumes
            .iter()
            .copied()
            .find(|volume| volume.text("name") == name)
    }

    fn has_volume(&self, name: &str) -> bool {
        self.volume(name).is_some()
    }
}

/// Checks a pod.
pub(crate) fn validate(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    match (old, subresource) {
        (None, _) => create(new, &mut errors),
        (Some(old), "status") => update::status(new, old, &mut errors),
        (Some(old), "ephemeralcontainers") => update::ephemeral(new, old, &mut errors),
        (Some(old), "resize") => update::resize(new, old, &mut errors),
        (Some(old), _) => update::whole(new, old, &mut errors),
    }
    errors
}

fn create(pod: &Map, errors: &mut Errors) {
    whole(pod, errors);
    let spec = pod.object_or_empty("spec");
    let root = Path::root();
    let path = root.field("spec");
    if !spec.list("ephemeralContainers").is_empty() {
        errors.forbidden(
            &path.field("ephemeralContainers"),
            "cannot be set on create",
        );
    }
    if !spec.text("nodeName").is_empty() && !spec.list("schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&path.field("nodeName"), detail);
    }
    let given = pod
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    annotations::match_fields(given, spec, &path, errors);
}

/// Checks annotations and spec of a pod, but not its other metadata.
fn whole(pod: &Map, errors: &mut Errors) {
    let metadata = pod.object_or_empty("metadata");
    let spec = pod.object_or_empty("spec");
    let root = Path::root();
    let (metadata_path, path) = (root.field("metadata"), root.field("spec"));
    let given = metadata.object_or_empty("annotations");
    annotations::specific(given, spec, &metadata_path.field("annotations"), errors);
    spec::validate(spec, Some(metadata.text("name")), &path, errors);
    if spec.text("serviceAccountName").is_empty() {
        token_without_account(spec, &path, errors);
    }
    for key in ["containers", "initContainers"] {
        let path = path.field(key);
        for (index, container) in maps(spec.list(key)) {
            containers::trimmed_image(container, &path.index(index), errors);
        }
    }
}

fn token_without_account(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("volumes");
    for (index, volume) in maps(spec.list("volumes")) {
        let path = path.index(index);
        let path = path.field("projected");
        let path = path.field("sources");
        let projected = volume.object_or_empty("projected");
        for (index, source) in maps(projected.list("sources")) {
            if source.has("serviceAccountToken") {
                let detail = "must not be specified when serviceAccountName is not set";
                errors.forbidden(&path.index(index).field("serviceAccountToken"), detail);
            }
        }
    }
}

/// Checks a template of pods.
pub(crate) fn template(template: &Map, path: &Path<'_>, errors: &mut Errors) {
    let metadata = template.object_or_empty("metadata");
    let spec = template.object_or_empty("spec");
    meta::labels(metadata.object("labels"), &path.field("labels"), errors);
    let given = metadata.object("annotations");
    let annotations_path = path.field("annotations");
    meta::annotations(given, &annotations_path, errors);
    let given = metadata.object_or_empty("annotations");
    annotations::specific(given, spec, &annotations_path, errors);
    let path = path.field("spec");
    spec::validate(spec, None, &path, errors);
    annotations::match_fields(given, spec, &path, errors);
    if !spec.list("ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.forbidden(&path.field("ephemeralContainers"), detail);
    }
}

/// Checks a template of pods once more for its annotations, as stateful sets do.
pub(crate) fn template_again(template: &Map, path: &Path<'_>, errors: &mut Errors) {
    let metadata = template.object_or_empty("metadata");
    meta::labels(metadata.object("labels"), &path.field("labels"), errors);
    let path = path.field("annotations");
    meta::annotations(metadata.object("annotations"), &path, errors);
    let given = metadata.object_or_empty("annotations");
    annotations::specific(given, template.object_or_empty("spec"), &path, errors);
}

/// Checks the binding of a pod to a node.
pub(crate) fn binding(new: &Map, _: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("target");
    let target = new.object_or_empty("target");
    let kind = target.text("kind");
    if !kind.is_empty() && kind != "Node" {
        errors.unsupported(&path.field("kind"), kind, &["Node", "<empty>"]);
    }
    if target.text("name").is_empty() {
        errors.required(&path.field("name"), "");
    }
    errors
}

#[cfg(test)]
mod tests;
