//! What no schema tells: facts about upstream's documents that its code decides.

use object::{Value, json};

/// Fields without a description upstream, by type: references in them stand alone, while one with
/// anything beside it stands in `allOf`.
pub(super) const UNDESCRIBED: &[(&str, &[&str])] = &[
    ("io.k8s.api.networking.v1.IngressRule", &["http"]),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
        &[
            "additionalItems",
            "additionalProperties",
            "example",
            "externalDocs",
            "items",
            "not",
        ],
    ),
];
/// Definitions that belong to many groups: each is a kind in all of them.
pub(super) const SHARED: &[(&str, &str)] = &[
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
        "DeleteOptions",
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
        "WatchEvent",
    ),
];
/// The groups and versions that upstream knows, served or not.
const KNOWN: &[(&str, &[&str])] = &[
    ("", &["v1"]),
    ("admission.k8s.io", &["v1", "v1beta1"]),
    (
        "admissionregistration.k8s.io",
        &["v1", "v1alpha1", "v1beta1"],
    ),
    ("apiextensions.k8s.io", &["v1", "v1beta1"]),
    ("apiregistration.k8s.io", &["v1", "v1beta1"]),
    ("apps", &["v1", "v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1", "v1beta1"]),
    ("autoscaling", &["v1", "v2"]),
    ("batch", &["v1", "v1beta1"]),
    ("certificates.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("coordination.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("discovery.k8s.io", &["v1", "v1beta1"]),
    ("events.k8s.io", &["v1", "v1beta1"]),
    ("extensions", &["v1beta1"]),
    (
        "flowcontrol.apiserver.k8s.io",
        &["v1", "v1beta1", "v1beta2", "v1beta3"],
    ),
    ("imagepolicy.k8s.io", &["v1alpha1"]),
    ("internal.apiserver.k8s.io", &["v1alpha1"]),
    ("networking.k8s.io", &["v1", "v1beta1"]),
    ("node.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("policy", &["v1", "v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("resource.k8s.io", &["v1", "v1alpha3", "v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1", "v1alpha2", "v1beta1"]),
    ("storage.k8s.io", &["v1", "v1alpha1", "v1beta1"]),
    ("storagemigration.k8s.io", &["v1beta1"]),
];
/// Those of them that documents of custom kinds do not name.
const UNKNOWN_TO_CUSTOM: &[&str] = &[
    "admission.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "imagepolicy.k8s.io",
];

/// Which groups a document is about, for definitions that belong to many.
#[derive(Clone, Copy)]
pub(super) enum Sharing<'a> {
    /// All that upstream knows.
    All,
    /// A group of custom kinds.
    Custom,
    /// A built-in group and version.
    Version(&'a str, &'a str),
}

impl Sharing<'_> {
    /// The groups and versions of a document.
    pub(super) fn versions(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = KNOWN
            .iter()
            .flat_map(|(group, versions)| versions.iter().map(|version| (*group, *version)));
        all.filter(move |(group, version)| match self {
            Sharing::All => true,
            Sharing::Custom => !UNKNOWN_TO_CUSTOM.contains(group),
            Sharing::Version(ours, served) => {
                group.is_empty() || (*group == ours && *version == served)
            }
        })
    }
}

/// The definitions of discovery that no kind refers to.
const DISCOVERY: &str = r##"{
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList": {
        "type": "object", "required": ["groups"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "groups": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"default": {},
                "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup"}}
        },
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "APIGroupList", "version": "v1"}]
    },
    "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions": {
        "type": "object", "required": ["versions", "serverAddressByClientCIDRs"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "serverAddressByClientCIDRs": {
                "type": "array", "x-kubernetes-list-type": "atomic",
                "items": {
                    "default": {}, "$ref":
            "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ServerAddressByClientCIDR"}},
            "versions": {"type": "array", "x-kubernetes-list-type": "atomic",
                "items": {"type": "string", "default": ""}}
        },
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "APIVersions", "version": "v1"}]
    },
    "io.k8s.apimachinery.pkg.version.Info": {
        "type": "object",
        "required": ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate",
            "goVersion", "compiler", "platform"],
        "properties": {
            "buildDate": {"type": "string", "default": ""},
            "compiler": {"type": "string", "default": ""},
            "emulationMajor": {"type": "string"},
            "emulationMinor": {"type": "string"},
            "gitCommit": {"type": "string", "default": ""},
            "gitTreeState": {"type": "string", "default": ""},
            "gitVersion": {"type": "string", "default": ""},
            "goVersion": {"type": "string", "default": ""},
            "major": {"type": "string", "default": ""},
            "minCompatibilityMajor": {"type": "string"},
            "minCompatibilityMinor": {"type": "string"},
            "minor": {"type": "string", "default": ""},
            "platform": {"type": "string", "default": ""}
        }
    }
}"##;

/// The definitions of discovery, as they stand in a document of version 3.
pub(super) fn discovery() -> impl Iterator<Item = (String, Value)> {
    let definitions = match json::parse(DISCOVERY.as_bytes()) {
        Ok(Value::Object(definitions)) => definitions,
        _ => unreachable!("the text above is an object"),
    };
    let named = definitions.into_iter();
    named.map(|(name, schema)| (name.to_string(), schema))
}
