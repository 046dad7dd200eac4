//! Defaults of the core group's kinds that have neither pods nor volumes in them.

use object::{Map, Text, Value, value};
use schema::decode::encode_base64;

use super::fill::{
    at, each, fill, fill_text, is_unset, items, list, number, object, text, text_at, within,
};
use super::quantities::round_up_list;

/// The label that says the namespace's own name.
const METADATA_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Fills a namespace.
pub(crate) fn namespace(namespace: &mut Map) {
    name_label(namespace);
    fill_text(namespace.object_at("status"), "phase", "Active");
}

/// Labels a namespace with its name, as soon as it has one.
pub(crate) fn name_label(namespace: &mut Map) {
    let name = Text::from(text_at(namespace, &["metadata", "name"]));
    if !name.is_empty() {
        let labels = namespace.object_at("metadata").object_at("labels");
        labels.insert(METADATA_NAME_LABEL, name.into());
    }
}

/// Fills a node: what can be allocated is the capacity unless said otherwise.
pub(crate) fn node(node: &mut Map) {
    within(node, "spec", pair_pod_networks);
    let status = node.object_at("status");
    if is_unset(status, "allocatable")
        && let Some(capacity) = object(status, "capacity").cloned()
    {
        status.insert("allocatable", capacity.into());
    }
    round_up_list(status, "capacity");
    round_up_list(status, "allocatable");
}

/// Keeps `podCIDR` equal to the first of `podCIDRs`; the single one wins when they differ.
fn pair_pod_networks(spec: &mut Map) {
    let single = text(spec, "podCIDR").to_owned();
    let first = list(spec, "podCIDRs")
        .first()
        .and_then(Value::as_str)
        .map(str::to_owned);
    if !single.is_empty() && first.as_deref() != Some(single.as_str()) {
        spec.insert("podCIDRs", value!([single]));
    } else if let Some(first) = first.filter(|_| single.is_empty()) {
        spec.insert("podCIDR", first.into());
    }
}

/// Fills a service; addresses and node ports are handed out elsewhere.
pub(crate) fn service(service: &mut Map) {
    let spec = service.object_at("spec");
    session_affinity(spec);
    fill_text(spec, "type", "ClusterIP");
    each(spec, "ports", service_port);
    if is_externally_accessible(spec) {
        fill_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(
        text(spec, "type"),
        "ClusterIP" | "NodePort" | "LoadBalancer"
    ) {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if text(spec, "type") == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
        address_modes(service);
    }
}

/// Whether a service can be reached from outside the cluster.
pub(crate) fn is_externally_accessible(spec: &Map) -> bool {
    match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !list(spec, "externalIPs").is_empty(),
        _ => false,
    }
}

fn session_affinity(spec: &mut Map) {
    fill_text(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let timeout = ["sessionAffinityConfig", "clientIP", "timeoutSeconds"];
            if at(spec, &timeout).is_none() {
                spec.insert(
                    "sessionAffinityConfig",
                    value!({"clientIP": {"timeoutSeconds": 10800}}),
                );
            }
        }
        _ => {}
    }
}

fn service_port(port: &mut Map) {
    fill_text(port, "protocol", "TCP");
    let unset = match port.get("targetPort") {
        None | Some(Value::Null | Value::Int(0)) => true,
        Some(Value::String(name)) => name.is_empty(),
        Some(_) => false,
    };
    if unset {
        let number = number(port, "port");
        port.insert("targetPort", number.into());
    }
}

fn address_modes(service: &mut Map) {
    within(service, "status", |status| {
        within(status, "loadBalancer", |balancer| {
            each(balancer, "ingress", |ingress| {
                if !text(ingress, "ip").is_empty() {
                    fill(ingress, "ipMode", "VIP");
                }
            });
        });
    });
}

/// Fills endpoints.
pub(crate) fn endpoints(endpoints: &mut Map) {
    each(endpoints, "subsets", |subset| {
        each(subset, "ports", |port| fill_text(port, "protocol", "TCP"));
    });
}

/// Fills a secret; its texts become data.
pub(crate) fn secret(secret: &mut Map) {
    fill_text(secret, "type", "Opaque");
    let Some(Value::Object(texts)) = secret.remove("stringData") else {
        return;
    };
    if texts.is_empty() {
        return;
    }
    let data = secret.object_at("data");
    for (key, value) in texts {
        let bytes = value.as_str().unwrap_or_default().as_bytes();
        data.insert(key, Value::String(encode_base64(bytes)));
    }
}

/// Fills a limit range: what is left out for containers comes from the bounds.
pub(crate) fn limit_range(range: &mut Map) {
    within(range, "spec", |spec| {
        each(spec, "limits", |limit| {
            if text(limit, "type") == "Container" {
                copy_missing(limit, "max", "default");
                copy_missing(limit, "default", "defaultRequest");
                copy_missing(limit, "min", "defaultRequest");
            }
            for list in [
                "max",
                "min",
                "default",
                "defaultRequest",
                "maxLimitRequestRatio",
            ] {
                round_up_list(limit, list);
            }
        });
    });
}

/// Gives the map `to` every entry of the map `from` that it lacks.
pub(super) fn copy_missing(owner: &mut Map, from: &str, to: &str) {
    let Some(source) = object(owner, from)
        .filter(|source| !source.is_empty())
        .cloned()
    else {
        return;
    };
    let target = owner.object_at(to);
    for (key, value) in source {
        target.get_or_insert_with(&key, || value);
    }
}

/// Fills a resource quota.
pub(crate) fn resource_quota(quota: &mut Map) {
    within(quota, "spec", |spec| round_up_list(spec, "hard"));
    within(quota, "status", |status| {
        round_up_list(status, "hard");
        round_up_list(status, "used");
    });
}

/// The names of the secrets that a service account lists, which is all it may say of them.
pub(crate) fn secret_names(account: &mut Map) {
    if is_unset(account, "secrets") {
        return;
    }
    let names = items(account, "secrets")
        .map(|secret| match text(secret, "name") {
            "" => value!({}),
            name => value!({"name": name}),
        })
        .collect();
    account.insert("secrets", Value::Array(names));
}
