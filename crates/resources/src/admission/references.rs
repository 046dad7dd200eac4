//! Which other objects a pod mentions.

use object::{Map, Value};

use super::amounts::containers;

/// The places in a volume that name a secret.
const SECRETS_OF_VOLUMES: &[&[&str]] = &[
    &["azureFile", "secretName"],
    &["cephfs", "secretRef", "name"],
    &["cinder", "secretRef", "name"],
    &["flexVolume", "secretRef", "name"],
    &["rbd", "secretRef", "name"],
    &["secret", "secretName"],
    &["scaleIO", "secretRef", "name"],
    &["iscsi", "secretRef", "name"],
    &["storageos", "secretRef", "name"],
    &["csi", "nodePublishSecretRef", "name"],
];
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The spec of a pod, if it has one.
pub(super) fn spec_of(pod: &Map) -> Option<&Map> {
    pod.get("spec").and_then(Value::as_object)
}

/// Every secret that a pod names.
pub(super) fn secrets(spec: &Map) -> Vec<&str> {
    let pulled = containers(spec, "imagePullSecrets").filter_map(|it| it.get("name")?.as_str());
    let volumes = || containers(spec, "volumes");
    let mounted = volumes().flat_map(|volume| {
        let paths = SECRETS_OF_VOLUMES.iter();
        paths.filter_map(|path| {
            let (first, rest) = path.split_first()?;
            volume.get(first)?.str_at(rest)
        })
    });
    let projected = volumes().flat_map(|volume| {
        let sources = volume.get("projected").and_then(|it| it.get("sources"));
        let sources = sources.and_then(Value::as_array).unwrap_or_default().iter();
        sources.filter_map(|source| source.str_at(&["secret", "name"]))
    });
    let all = pulled
        .chain(from_environment(spec, "secretKeyRef", "secretRef"))
        .chain(mounted)
        .chain(projected);
    all.filter(|name| !name.is_empty()).collect()
}

/// Every config map that a pod's containers read their environment from.
pub(super) fn config_maps(spec: &Map) -> Vec<&str> {
    let all = from_environment(spec, "configMapKeyRef", "configMapRef");
    all.filter(|name| !name.is_empty()).collect()
}

fn from_environment<'a>(
    spec: &'a Map,
    key: &'static str,
    whole: &'static str,
) -> impl Iterator<Item = &'a str> {
    LISTS
        .into_iter()
        .flat_map(|list| containers(spec, list))
        .flat_map(move |container| {
            let single = containers(container, "env")
                .filter_map(move |it| it.get("valueFrom")?.str_at(&[key, "name"]));
            let all = containers(container, "envFrom")
                .filter_map(move |it| it.get(whole)?.str_at(&["name"]));
            single.chain(all)
        })
}

/// What of the API a mirror pod would need, which no node can give it.
pub(super) fn needs_api(spec: &Map) -> Option<String> {
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    if !text("serviceAccountName").is_empty() {
        return Some("serviceaccounts".to_owned());
    }
    if !secrets(spec).is_empty() {
        return Some("secrets".to_owned());
    }
    if !config_maps(spec).is_empty() {
        return Some("configmaps".to_owned());
    }
    if containers(spec, "resourceClaims").next().is_some() {
        return Some("resourceclaims".to_owned());
    }
    containers(spec, "volumes").find_map(|volume| {
        let known = [
            ("configMap", "configmaps (via configmap volumes)"),
            ("secret", "secrets (via secret volumes)"),
            ("csi", "csidrivers (via CSI volumes)"),
            ("glusterfs", "endpoints (via glusterFS volumes)"),
            ("persistentVolumeClaim", "persistentvolumeclaims"),
            (
                "ephemeral",
                "persistentvolumeclaims (via ephemeral volumes)",
            ),
            ("azureFile", "secrets (via azureFile volumes)"),
        ];
        let direct = known.iter().find(|(source, _)| volume.contains_key(source));
        direct
            .map(|(_, what)| (*what).to_owned())
            .or_else(|| projected_need(volume))
    })
}

fn projected_need(volume: &Map) -> Option<String> {
    let known = [
        ("configMap", "configmaps (via projected volumes)"),
        ("secret", "secrets (via projected volumes)"),
        (
            "serviceAccountToken",
            "serviceaccounts (via projected volumes)",
        ),
        ("clusterTrustBundle", "clustertrustbundles"),
        ("podCertificate", "podcertificates"),
    ];
    let sources = volume.get("projected")?.get("sources")?.as_array()?;
    sources.iter().find_map(|source| {
        known
            .iter()
            .find(|(name, _)| source.get(name).is_some())
            .map(|(_, what)| (*what).to_owned())
    })
}
