//! Where built-in objects are stored and in which form.
//!
//! The keys are those of kube-apiserver, so that a store can be shared or moved. Most resources
//! are stored under their plural alone; the exceptions are older than that rule
//! (`pkg/kubeapiserver/default_storage_factory_builder.go`, the registries' storage prefixes).

use object::Text;

use crate::Kind;

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

/// Resources that upstream stores in a version that is not served by default: group, resource,
/// version. We store what we serve; but discovery publishes a hash of upstream's choice.
const UNSERVED_VERSIONS: &[(&str, &str, &str)] = &[
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        "v1beta1",
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
        "v1beta1",
    ),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "v1beta1",
    ),
];

impl Kind {
    /// The group and version in which upstream stores the kind, which discovery's
    /// `storageVersionHash` is made from.
    pub fn published_storage(&self) -> (&str, &str) {
        if self.is_custom() {
            return (&self.group, &self.storage_version);
        }
        let here = |known: &(&str, &str)| known.0 == self.group && known.1 == self.resource;
        if let Some(unserved) = UNSERVED_VERSIONS
            .iter()
            .find(|known| here(&(known.0, known.1)))
        {
            return (&self.group, unserved.2);
        }
        let stored = STORED_FORMS.iter().find(|known| here(&(known.0, known.1)));
        stored.map_or((&self.group, &self.version), |known| (known.2, known.3))
    }
}

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
