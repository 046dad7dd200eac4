//! Bodies that travel but that the server publishes no schema of.

use serde_json::{Map, Value, json};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const DISCOVERY: &str = "io.k8s.api.apidiscovery.v2";

/// A field's name and type; `[]` before the type makes it a list.
type Field = (&'static str, &'static str);

/// Package, name and fields.
const DEFINITIONS: &[(&str, &str, &[Field])] = &[
    (
        META,
        "APIGroupList",
        &[KIND, VERSION, ("groups", "[]meta.APIGroup")],
    ),
    (
        META,
        "APIVersions",
        &[
            KIND,
            VERSION,
            ("versions", "[]string"),
            (
                "serverAddressByClientCIDRs",
                "[]meta.ServerAddressByClientCIDR",
            ),
        ],
    ),
    (
        META,
        "GroupVersionKind",
        &[
            ("group", "string"),
            ("version", "string"),
            ("kind", "string"),
        ],
    ),
    (META, "PartialObjectMetadata", &[KIND, VERSION, OBJECT_META]),
    (
        META,
        "PartialObjectMetadataList",
        &[
            KIND,
            VERSION,
            LIST_META,
            ("items", "[]meta.PartialObjectMetadata"),
        ],
    ),
    (
        DISCOVERY,
        "APIGroupDiscoveryList",
        &[
            KIND,
            VERSION,
            LIST_META,
            ("items", "[]discovery.APIGroupDiscovery"),
        ],
    ),
    (
        DISCOVERY,
        "APIGroupDiscovery",
        &[
            KIND,
            VERSION,
            OBJECT_META,
            ("versions", "[]discovery.APIVersionDiscovery"),
        ],
    ),
    (
        DISCOVERY,
        "APIVersionDiscovery",
        &[
            ("version", "string"),
            ("resources", "[]discovery.APIResourceDiscovery"),
            ("freshness", "string"),
        ],
    ),
    (
        DISCOVERY,
        "APIResourceDiscovery",
        &[
            ("resource", "string"),
            ("responseKind", "meta.GroupVersionKind"),
            ("scope", "string"),
            ("singularResource", "string"),
            ("verbs", "[]string"),
            ("shortNames", "[]string"),
            ("categories", "[]string"),
            ("subresources", "[]discovery.APISubresourceDiscovery"),
        ],
    ),
    (
        DISCOVERY,
        "APISubresourceDiscovery",
        &[
            ("subresource", "string"),
            ("responseKind", "meta.GroupVersionKind"),
            ("acceptedTypes", "[]meta.GroupVersionKind"),
            ("verbs", "[]string"),
        ],
    ),
];

const KIND: Field = ("kind", "string");
const VERSION: Field = ("apiVersion", "string");
const OBJECT_META: Field = ("metadata", "meta.ObjectMeta");
const LIST_META: Field = ("metadata", "meta.ListMeta");

/// These definitions in the form of the published ones, each marked `unpublished`.
pub(super) fn definitions() -> Value {
    let mut all = Map::new();
    for (package, name, fields) in DEFINITIONS {
        let properties: Map<String, Value> = fields
            .iter()
            .map(|(field, ty)| ((*field).to_string(), schema(ty)))
            .collect();
        let definition = json!({"type": "object", "properties": properties, "unpublished": true});
        all.insert(format!("{package}.{name}"), definition);
    }
    Value::Object(all)
}

fn schema(ty: &str) -> Value {
    if let Some(element) = ty.strip_prefix("[]") {
        return json!({"type": "array", "items": schema(element)});
    }
    match ty.split_once('.') {
        Some(("meta", name)) => json!({"ref": format!("{META}.{name}")}),
        Some((_, name)) => json!({"ref": format!("{DISCOVERY}.{name}")}),
        None => json!({"type": ty}),
    }
}
