//! Advice about secrets, nodes, volumes, networks and the other smaller kinds.

use std::net::IpAddr;

use object::addresses;
use object::field::{Path, quote};
use object::{Map, Value};
use schema::decode::decode_base64;

use super::pod::{self, deprecated_label};
use crate::validation::check;
use crate::validation::pem;
use crate::validation::read::{Read, maps, texts};

const STATIC_SUFFIX: &str = ".static.k8s.io";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// Sources of volumes that are going or gone.
const VOLUMES: [(&str, &str, &str); 8] = [
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    (
        "rbd",
        "rbd",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "quobyte",
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "flocker",
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
];

/// A certificate should come with its own key.
pub(super) fn secret(new: &Map, _: Option<&Map>) -> Vec<String> {
    if new.text("type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let data = new.object_or_empty("data");
    let text = |key: &str| {
        let bytes = decode_base64(data.text(key)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    pem::pair_mistake(&text("tls.crt"), &text("tls.key"))
        .into_iter()
        .collect()
}

/// Names of drivers are compared as they are, so one spelling is better than two.
pub(super) fn resource_slice(new: &Map, _: Option<&Map>) -> Vec<String> {
    let driver = new.object_or_empty("spec").text("driver");
    if driver.to_lowercase() == driver {
        return Vec::new();
    }
    let driver = quote(driver);
    vec![format!(
        "spec.driver: driver names should be lowercase; {driver} contains uppercase characters"
    )]
}

/// Tokens for drivers belong into secrets.
pub(super) fn csi_driver(new: &Map, old: Option<&Map>) -> Vec<String> {
    let spec = new.object_or_empty("spec");
    let asked = spec.value("tokenRequests");
    let kept = old
        .is_some_and(|old| check::same(asked, old.object_or_empty("spec").value("tokenRequests")));
    if kept || spec.list("tokenRequests").is_empty() || spec.has("serviceAccountTokenInSecrets") {
        return Vec::new();
    }
    vec![
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true \
         to prevent possible logging of tokens in volume attributes"
            .to_owned(),
    ]
}

/// Fields of nodes that nobody reads any more.
pub(super) fn node(new: &Map, _: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = new.object_or_empty("spec");
    if spec.has("configSource") {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.text("externalID").is_empty() {
        warnings.push(
            "spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned(),
        );
    }
    let root = Path::root();
    let path = root.field("spec");
    let path = path.field("podCIDRs");
    for (index, network) in texts(spec.list("podCIDRs")) {
        cidr(network, &path.index(index), &mut warnings);
    }
    warnings
}

/// What is deprecated about volumes of the cluster.
pub(super) fn volume(new: &Map, _: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    let metadata = new.object_or_empty("metadata");
    let annotations = metadata.object_or_empty("annotations");
    let notes = [
        (
            "volume.beta.kubernetes.io/storage-class",
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            "volume.beta.kubernetes.io/mount-options",
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ];
    for (key, message) in notes {
        if annotations.contains_key(key) {
            warnings.push(format!("metadata.annotations[{key}]: {message}"));
        }
    }
    let spec = new.object_or_empty("spec");
    if spec.text("persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
             Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let root = Path::root();
    let path = root.field("spec");
    let terms_path = path.field("nodeAffinity");
    let terms_path = terms_path.field("required");
    let terms_path = terms_path.field("nodeSelectorTerms");
    let affinity = spec.object_or_empty("nodeAffinity");
    let terms = affinity
        .object_or_empty("required")
        .list("nodeSelectorTerms");
    for (index, term) in maps(terms) {
        pod::node_term(term, false, &terms_path.index(index), &mut warnings);
    }
    for (key, shown, message) in VOLUMES {
        if spec.has(key) {
            warnings.push(format!("spec.{shown}: {message}"));
        }
    }
    warnings
}

/// Networks of a policy that are written in a surprising way.
pub(super) fn network_policy(new: &Map, _: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = path.field(rules);
        for (index, rule) in maps(spec.list(rules)) {
            let path = path.index(index);
            let path = path.field(peers);
            for (index, peer) in maps(rule.list(peers)) {
                let Some(block) = peer.object("ipBlock") else {
                    continue;
                };
                let path = path.index(index);
                let path = path.field("ipBlock");
                cidr(block.text("cidr"), &path.field("cidr"), &mut warnings);
                let path = path.field("except");
                for (index, except) in texts(block.list("except")) {
                    cidr(except, &path.index(index), &mut warnings);
                }
            }
        }
    }
    warnings
}

/// Addresses of endpoints that are written in a surprising way.
pub(super) fn endpoints(new: &Map, _: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    let labels = new.object_or_empty("metadata").object_or_empty("labels");
    if labels.text(MANAGED_BY) == "endpoint-controller" {
        return warnings;
    }
    let root = Path::root();
    let path = root.field("subsets");
    for (index, subset) in maps(new.list("subsets")) {
        let path = path.index(index);
        for list in ["addresses", "notReadyAddresses"] {
            let path = path.field(list);
            for (index, address) in maps(subset.list(list)) {
                ip(
                    address.text("ip"),
                    &path.index(index).field("ip"),
                    &mut warnings,
                );
            }
        }
    }
    warnings
}

/// Labels of nodes that a runtime's pods should no longer ask for.
pub(super) fn runtime_class(new: &Map, _: Option<&Map>) -> Vec<String> {
    let scheduling = new.object_or_empty("scheduling");
    let selector = scheduling.object_or_empty("nodeSelector");
    let messages = selector.keys().filter_map(|key| deprecated_label(key));
    messages
        .map(|message| format!("scheduling.nodeSelector: {message}"))
        .collect()
}

/// Labels of nodes that a topology should no longer name.
pub(super) fn storage_capacity(new: &Map, _: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    let topology = new.object_or_empty("nodeTopology");
    for (index, expression) in maps(topology.list("matchExpressions")) {
        let key = expression.text("key");
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!(
                "nodeTopology.matchExpressions[{index}].key: {key} is {message}"
            ));
        }
    }
    for key in topology.object_or_empty("matchLabels").keys() {
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("nodeTopology.matchLabels.{key}: {message}"));
        }
    }
    warnings
}

/// Some names of policies and webhooks belong to files of the server.
pub(super) fn static_name(new: &Map, _: Option<&Map>) -> Vec<String> {
    let name = new.object_or_empty("metadata").text("name");
    if !name.ends_with(STATIC_SUFFIX) {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: names ending with {} are reserved for static manifest-based \
         configurations and cannot be managed via the API",
        quote(STATIC_SUFFIX)
    )]
}

/// Advice about how an address is written.
pub(super) fn ip(text: &str, path: &Path<'_>, warnings: &mut Vec<String>) {
    let Some(address) = addresses::parse_sloppy(text) else {
        return;
    };
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => {}
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_none() => {
            if six.to_string() != text {
                warnings.push(format!(
                    "{path}: IPv6 address {} should be in RFC 5952 canonical format ({})",
                    quote(text),
                    quote(&six.to_string())
                ));
            }
        }
        _ => warnings.push(format!(
            "{path}: non-standard IP address {} is invalid: use {}",
            quote(text),
            quote(&address.to_canonical().to_string())
        )),
    }
}

/// Advice about how a network is written.
pub(super) fn cidr(text: &str, path: &Path<'_>, warnings: &mut Vec<String>) {
    let Some((address, length)) = addresses::parse_cidr_sloppy(text) else {
        return;
    };
    let network = format!("{}/{length}", addresses::network(address, length));
    let before = warnings.len();
    if addresses::network(address, length) != address {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        warnings.push(format!(
            "{path}: CIDR value {} is ambiguous in this context (should be {} or {}?)",
            quote(text),
            quote(&network),
            quote(&format!("{address}/{bits}"))
        ));
    }
    let strict = text.split_once('/').and_then(|(host, bits)| {
        let padded = bits.len() > 1 && bits.starts_with('0');
        let host: IpAddr = host.parse().ok()?;
        let mapped = matches!(host, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
        (!padded && !mapped).then_some(host)
    });
    match strict {
        None => warnings.push(format!(
            "{path}: non-standard CIDR value {} is invalid: use {}",
            quote(text),
            quote(&network)
        )),
        Some(host) if warnings.len() == before && host.is_ipv6() => {
            let canonical = format!("{host}/{length}");
            if canonical != text {
                warnings.push(format!(
                    "{path}: IPv6 CIDR value {} should be in RFC 5952 canonical format ({})",
                    quote(text),
                    quote(&canonical)
                ));
            }
        }
        Some(_) => {}
    }
}

/// Files of one volume that would lie upon each other.
pub(super) fn overlapping_paths(spec: &Map, warnings: &mut Vec<String>) {
    for (_, volume) in maps(spec.list("volumes")) {
        let name = quote(volume.text("name"));
        let single = [
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ];
        for (key, what, named) in single {
            let Some(source) = volume.object(key) else {
                continue;
            };
            let what = match named {
                "" => what.to_owned(),
                named => format!("{what} {}", quote(source.text(named))),
            };
            let mut seen = Vec::new();
            for (path, _) in paths(source, "") {
                overlap(&name, &what, path, String::new(), &mut seen, warnings);
            }
        }
        if let Some(projected) = volume.object("projected") {
            projections(&name, projected.list("sources"), warnings);
        }
    }
}

fn projections(name: &str, sources: &[Value], warnings: &mut Vec<String>) {
    let mut seen = Vec::new();
    for (_, source) in maps(sources) {
        if source.iter().all(|(_, value)| value.is_null()) {
            warnings.push(format!("volume {name} (Projected) has no sources provided"));
            continue;
        }
        for (path, origin) in projected_paths(source) {
            overlap(name, "Projected", path, origin, &mut seen, warnings);
        }
    }
}

fn projected_paths(source: &Map) -> Vec<(&str, String)> {
    let with_items = |key: &str| source.object(key).filter(|it| it.has("items"));
    if let Some(map) = with_items("configMap") {
        return paths(map, &format!("ConfigMap {}", quote(map.text("name"))));
    }
    if let Some(map) = with_items("secret") {
        return paths(map, &format!("Secret {}", quote(map.text("name"))));
    }
    if let Some(map) = with_items("downwardAPI") {
        return paths(map, "DownwardAPI");
    }
    match source.object("serviceAccountToken") {
        Some(token) => vec![(token.text("path"), "ServiceAccountToken".to_owned())],
        None => Vec::new(),
    }
}

fn paths<'a>(source: &'a Map, origin: &str) -> Vec<(&'a str, String)> {
    maps(source.list("items"))
        .map(|(_, item)| (item.text("path"), origin.to_owned()))
        .collect()
}

fn overlap<'a>(
    volume: &str,
    what: &str,
    path: &'a str,
    origin: String,
    seen: &mut Vec<(&'a str, String)>,
    warnings: &mut Vec<String>,
) {
    let path = path.trim_end_matches('/');
    let shown = |(path, origin): &(&str, String)| match origin.as_str() {
        "" => quote(path),
        origin => format!("{} ({origin})", quote(path)),
    };
    let below = |one: &str, other: &str| format!("{one}/").starts_with(&format!("{other}/"));
    let this = (path, origin);
    for other in seen.iter().filter(|_| !path.is_empty()) {
        if !other.0.is_empty() && (below(other.0, path) || below(path, other.0)) {
            let (this, other) = (shown(&this), shown(other));
            warnings.push(format!(
                "volume {volume} ({what}): overlapping paths: {this} with {other}"
            ));
        }
    }
    seen.push(this);
}
