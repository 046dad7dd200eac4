//! Where built-in objects are stored and in which form.
//!
//! The keys are those of kube-apiserver, so that a store can be shared or moved. Most resources
//! are stored under their plural alone; the exceptions are older than that rule
//! (`pkg/kubeapiserver/default_storage_factory_builder.go`, the registries' storage prefixes).

use object::Text;

/// Resources that are not stored under their plural: group, resource, key.
const COLLECTIONS: &[(&str, &str, &str)] = &[
    ("", "services", "services/specs"),
    ("", "endpoints", "services/endpoints"),
    ("", "nodes", "minions"),
    ("", "replicationcontrollers", "controllers"),
    ("networking.k8s.io", "ingresses", "ingress"),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "apiextensions.k8s.io/customresourcedefinitions",
    ),
    (
        "apiregistration.k8s.io",
        "apiservices",
        "apiregistration.k8s.io/apiservices",
    ),
];

/// Resources that are served in several forms: group, resource, and group and version stored.
const STORED_FORMS: &[(&str, &str, &str, &str)] = &[
    (
        "autoscaling",
        "horizontalpodautoscalers",
        "autoscaling",
        "v2",
    ),
    ("events.k8s.io", "events", "", "v1"),
];

/// The key under which the objects of a resource are stored.
pub(super) fn collection(group: &str, resource: &str) -> Text {
    let special = COLLECTIONS
        .iter()
        .find(|known| known.0 == group && known.1 == resource);
    let name = special.map_or(resource, |known| known.2);
    ["/registry/", name, "/"].concat().into()
}

/// The version in which objects of a resource are stored.
pub(super) fn stored_version<'a>(group: &str, version: &'a str, resource: &str) -> &'a str {
    STORED_FORMS
        .iter()
        .find(|known| known.0 == group && known.1 == resource)
        .map_or(version, |known| known.3)
}

/// Whether this form of a resource is the stored one.
pub(super) fn is_stored_form(group: &str, version: &str, resource: &str) -> bool {
    STORED_FORMS
        .iter()
        .find(|known| known.0 == group && known.1 == resource)
        .is_none_or(|known| known.2 == group && known.3 == version)
}
