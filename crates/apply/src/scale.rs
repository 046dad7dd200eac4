//! Ownership of replicas, seen through the scale subresource.
//!
//! Contract: apimachinery `util/managedfields/scalehandler.go`. A scale is a view on one field of
//! its parent, so managers of that field are shown as managers of `.spec.replicas` of the scale,
//! and what a write does to them there is carried back.

use std::sync::LazyLock;

use crate::{
    managed::{ManagedFields, Manager},
    path::Path,
    set::FieldSet,
};

/// The version of the scale object itself.
pub const SCALE_API_VERSION: &str = "autoscaling/v1";

/// Where a version of the parent keeps its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicasPath {
    /// There is no such version of the parent.
    NoVersion,
    /// The version has no scale.
    NoScale,
    /// The field.
    At(Path),
}

static REPLICAS_IN_SCALE: LazyLock<Path> = LazyLock::new(|| Path::fields(["spec", "replicas"]));

/// The managers of the parent as managers of its scale.
pub fn to_scale(
    parent: &ManagedFields,
    replicas_path: impl Fn(&str) -> ReplicasPath,
) -> ManagedFields {
    let owners = parent.managers().iter().filter_map(|manager| {
        let ReplicasPath::At(path) = replicas_path(&manager.api_version) else {
            return None;
        };
        manager.set.contains(&path).then(|| Manager {
            api_version: SCALE_API_VERSION.into(),
            set: FieldSet::from_paths([REPLICAS_IN_SCALE.clone()]),
            ..manager.clone()
        })
    });
    ManagedFields::from_managers(owners)
}

/// The managers of the parent after a write through its scale, whose managers are now `scale`.
///
/// `api_version` is the version of the parent that the request names.
pub fn from_scale(
    parent: ManagedFields,
    scale: &ManagedFields,
    api_version: &str,
    replicas_path: impl Fn(&str) -> ReplicasPath,
) -> ManagedFields {
    let mut added: Vec<&Manager> = scale
        .managers()
        .iter()
        .filter(|manager| manager.set.contains(&REPLICAS_IN_SCALE))
        .collect();
    let mut managers: Vec<Manager> = Vec::with_capacity(parent.len() + 1);
    for mut manager in parent.managers().iter().cloned() {
        let path = match replicas_path(&manager.api_version) {
            ReplicasPath::NoVersion => continue,
            ReplicasPath::At(path) if manager.set.contains(&path) => path,
            _ => {
                managers.push(manager);
                continue;
            }
        };
        if scale
            .managers()
            .iter()
            .any(|other| is_counterpart(&manager, other))
        {
            added.retain(|other| !is_counterpart(&manager, other));
        } else {
            manager.set = manager.set.difference(&FieldSet::from_paths([path]));
        }
        if !manager.set.is_empty() {
            managers.push(manager);
        }
    }
    if let ReplicasPath::At(path) = replicas_path(api_version) {
        managers.extend(added.into_iter().map(|manager| Manager {
            api_version: api_version.into(),
            time: None,
            set: FieldSet::from_paths([path.clone()]),
            ..manager.clone()
        }));
    }
    ManagedFields::from_managers(managers)
}

/// Whether an entry of the parent and one of the scale stand for one manager.
fn is_counterpart(parent: &Manager, scale: &Manager) -> bool {
    parent.name == scale.name
        && parent.operation == scale.operation
        && parent.subresource == scale.subresource
}
