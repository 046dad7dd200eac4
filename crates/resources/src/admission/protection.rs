//! StorageObjectInUseProtection: what pods use is not removed under them.
//!
//! The finalizers are taken off by controllers, once nothing uses the object any more.

use object::{Map, Value};

use super::is_about;
use crate::Request;
use crate::meta::{finalizers, meta_mut};

/// Group, resource and the finalizer that protects its objects.
const PROTECTED: &[(&str, &str, &str)] = &[
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        "kubernetes.io/vac-protection",
    ),
];

pub(super) fn mutate(request: &Request<'_>, object: &mut Map, old: Option<&Map>) {
    let protected = PROTECTED
        .iter()
        .find(|(group, resource, _)| is_about(request, group, resource));
    let Some((_, _, finalizer)) = protected.filter(|_| old.is_none()) else {
        return;
    };
    let mut all = finalizers(object).to_vec();
    if !all.iter().any(|known| known.as_str() == Some(finalizer)) {
        all.push(Value::from(*finalizer));
        meta_mut(object).insert("finalizers", Value::Array(all));
    }
}
