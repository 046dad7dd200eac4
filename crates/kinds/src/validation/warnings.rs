//! Advice about objects that are valid: what is deprecated, ignored or surprising.
//!
//! Contract: `pkg/api/*/warnings.go` and the strategies of kube-apiserver. Templates of pods are
//! looked at when the generation has changed, pods when they are new, the other kinds at every
//! write but those through `/status`.

mod others;
mod pod;

use object::field::{Path, quote};
use object::quantity::Quantity;
use object::{Map, Value, names};

use super::check;
use super::definitions;
use super::read::{Read, maps, texts};

/// Advice about an object, given the stored one when it is an update.
pub type Warnings = fn(new: &Map, old: Option<&Map>) -> Vec<String>;

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// What is advised about a kind.
pub(crate) fn of(group: &str, kind: &str) -> Warnings {
    match (group, kind) {
        ("", "Pod") => of_pod,
        ("", "PodTemplate") => |new, old| {
            let mut warnings = Vec::new();
            let root = Path::root();
            template(new, old, &root.field("template"), &mut warnings);
            warnings
        },
        ("", "ReplicationController") => replication_controller,
        ("apps", "Deployment" | "ReplicaSet") => |new, old| {
            let mut warnings = Vec::new();
            surprising_name(new, old, &mut warnings);
            spec_template(new, old, &mut warnings);
            warnings
        },
        ("apps", "DaemonSet") => daemon_set,
        ("apps", "StatefulSet") => stateful_set,
        ("batch", "Job") => |new, old| {
            let mut warnings = Vec::new();
            surprising_name(new, old, &mut warnings);
            spec_template(new, old, &mut warnings);
            warnings
        },
        ("batch", "CronJob") => cron_job,
        ("", "Service") => service,
        ("", "ServiceAccount") => service_account,
        ("", "PersistentVolumeClaim") => claim,
        ("", "Endpoints") => others::endpoints,
        ("", "Node") => others::node,
        ("", "PersistentVolume") => others::volume,
        ("", "Secret") => others::secret,
        ("admissionregistration.k8s.io", _) => others::static_name,
        ("networking.k8s.io", "NetworkPolicy") => others::network_policy,
        ("node.k8s.io", "RuntimeClass") => others::runtime_class,
        ("resource.k8s.io", "ResourceSlice") => others::resource_slice,
        ("storage.k8s.io", "CSIDriver") => others::csi_driver,
        ("storage.k8s.io", "CSIStorageCapacity") => others::storage_capacity,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definitions::definition_warnings,
        ("networking.k8s.io", "Ingress") => ingress,
        ("storage.k8s.io", "StorageClass") => storage_class,
        _ => |_, _| Vec::new(),
    }
}

/// Advice about a new pod; those who change pods are programs.
fn of_pod(new: &Map, old: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_some() {
        return warnings;
    }
    let name = new.object_or_empty("metadata").text("name");
    pod::app_armor(new, &mut warnings);
    let complaints = names::dns1123_label(name);
    if !complaints.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising \
             behavior; a DNS label is recommended: [{}]",
            complaints.join(" ")
        ));
    }
    pod::warnings(new, None, &mut warnings);
    warnings
}

fn surprising_name(new: &Map, old: Option<&Map>, warnings: &mut Vec<String>) {
    let complaints = names::dns1123_label(new.object_or_empty("metadata").text("name"));
    if old.is_none() && !complaints.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in \
             surprising behavior; a DNS label is recommended: [{}]",
            complaints.join(" ")
        ));
    }
}

/// Whether a change made another generation of the object, as every new object is one.
fn is_new_generation(new: &Map, old: Option<&Map>) -> bool {
    let generation = |object: &Map| object.object_or_empty("metadata").int("generation");
    old.is_none_or(|old| generation(new) != generation(old))
}

fn spec_template(new: &Map, old: Option<&Map>, warnings: &mut Vec<String>) {
    if is_new_generation(new, old) {
        told_template(new, warnings);
    }
}

fn told_template(new: &Map, warnings: &mut Vec<String>) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    pod::warnings(
        spec.object_or_empty("template"),
        Some(&path.field("template")),
        warnings,
    );
}

/// A daemon set counts the changes of its template, and only those bring advice.
fn daemon_set(new: &Map, old: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    let template = |object: &Map| object.object_or_empty("spec").value("template").clone();
    if old.is_none_or(|old| !check::same(&template(new), &template(old))) {
        told_template(new, &mut warnings);
    }
    warnings
}

/// After a change the advice is about the template as it was.
fn replication_controller(new: &Map, old: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    surprising_name(new, old, &mut warnings);
    match old {
        Some(old) => spec_template(old, Some(new), &mut warnings),
        None => spec_template(new, None, &mut warnings),
    }
    warnings
}

fn template(new: &Map, old: Option<&Map>, path: &Path<'_>, warnings: &mut Vec<String>) {
    if !is_new_generation(new, old) {
        return;
    }
    pod::warnings(new.object_or_empty("template"), Some(path), warnings);
}

fn stateful_set(new: &Map, old: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    spec_template(new, old, &mut warnings);
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    let claims = path.field("volumeClaimTemplates");
    for (index, claim) in maps(spec.list("volumeClaimTemplates")) {
        claim_spec(
            claim.object_or_empty("spec"),
            &claims.index(index),
            &mut warnings,
        );
    }
    if spec
        .int("revisionHistoryLimit")
        .is_some_and(|limit| limit < 0)
    {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a \
             value >= 0 is recommended"
                .to_owned(),
        );
    }
    warnings
}

fn cron_job(new: &Map, old: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    surprising_name(new, old, &mut warnings);
    let root = Path::root();
    let path = root.field("spec");
    let path = path.field("jobTemplate");
    let path = path.field("spec");
    let spec = new.object_or_empty("spec");
    let job = spec.object_or_empty("jobTemplate").object_or_empty("spec");
    if is_new_generation(new, old) {
        let template = job.object_or_empty("template");
        pod::warnings(template, Some(&path.field("template")), &mut warnings);
    }
    warnings
}

fn service(new: &Map, _: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = new.object_or_empty("spec");
    let annotations = new
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    if annotations.contains_key(TOPOLOGY_HINTS) {
        warnings.push(format!(
            "annotation {TOPOLOGY_HINTS} is deprecated, please use \
             service.kubernetes.io/topology-mode instead"
        ));
    }
    let headless = spec.text("type") == "ClusterIP" && spec.text("clusterIP") == "None";
    let has_external = !spec.list("externalIPs").is_empty();
    let named = spec.text("type") == "ExternalName";
    let mut advise = |holds: bool, text: &str| {
        if holds {
            warnings.push(text.to_owned());
        }
    };
    advise(
        headless && !spec.text("loadBalancerIP").is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    advise(
        headless && has_external,
        "spec.externalIPs is ignored for headless services",
    );
    advise(
        headless && spec.text("sessionAffinity") != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    advise(
        has_external && !headless && !named,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    advise(
        named && has_external,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    advise(
        !named && !spec.text("externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    advise(
        spec.text("trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    service_addresses(spec, &mut warnings);
    warnings
}

fn service_addresses(spec: &Map, warnings: &mut Vec<String>) {
    let root = Path::root();
    let path = root.field("spec");
    for list in ["clusterIPs", "externalIPs"] {
        let path = path.field(list);
        for (index, address) in texts(spec.list(list)) {
            others::ip(address, &path.index(index), warnings);
        }
    }
    let balancer = path.field("loadBalancerIP");
    others::ip(spec.text("loadBalancerIP"), &balancer, warnings);
    let path = path.field("loadBalancerSourceRanges");
    for (index, network) in texts(spec.list("loadBalancerSourceRanges")) {
        others::cidr(network, &path.index(index), warnings);
    }
}

/// Limits on the secrets of an account are on their way out.
fn service_account(new: &Map, old: Option<&Map>) -> Vec<String> {
    let limited = |object: &Map| {
        let annotations = object.object_or_empty("metadata");
        let annotations = annotations.object_or_empty("annotations");
        annotations.contains_key(MOUNTABLE_SECRETS)
    };
    if !limited(new) || old.is_some_and(limited) {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate \
         namespaces to isolate access to mounted secrets"
    )]
}

fn claim(new: &Map, _: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    let annotations = new
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    if annotations.contains_key(STORAGE_CLASS) {
        warnings.push(format!(
            "metadata.annotations[{STORAGE_CLASS}]: deprecated since v1.8; use \
             \"storageClassName\" attribute instead"
        ));
    }
    let root = Path::root();
    claim_spec(
        new.object_or_empty("spec"),
        &root.field("spec"),
        &mut warnings,
    );
    warnings
}

/// Advice about the amounts of a claim.
fn claim_spec(spec: &Map, path: &Path<'_>, warnings: &mut Vec<String>) {
    let resources = spec.object_or_empty("resources");
    let path = path.field("resources");
    for list in ["requests", "limits"] {
        let amounts = resources.object_or_empty(list);
        fraction(
            amounts.get("storage"),
            &path.field(list).key("storage"),
            warnings,
        );
    }
}

/// Bytes do not come in parts.
fn fraction(amount: Option<&Value>, path: &Path<'_>, warnings: &mut Vec<String>) {
    let Some(Ok(amount)) = amount.map(Quantity::from_value) else {
        return;
    };
    if amount.milli_value() % 1000 != 0 {
        let amount = quote(&amount.to_string());
        warnings.push(format!(
            "{path}: fractional byte value {amount} is invalid, must be an integer"
        ));
    }
}

fn ingress(new: &Map, old: Option<&Map>) -> Vec<String> {
    let annotations = new
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    let mut warnings = Vec::new();
    if old.is_none() && annotations.contains_key(INGRESS_CLASS) {
        let key = quote(INGRESS_CLASS);
        warnings.push(format!(
            "annotation {key} is deprecated, please use 'spec.ingressClassName' instead"
        ));
    }
    warnings
}

fn storage_class(new: &Map, _: Option<&Map>) -> Vec<String> {
    let mut warnings = Vec::new();
    let root = Path::root();
    let path = root.field("allowedTopologies");
    for (index, term) in maps(new.list("allowedTopologies")) {
        let path = path.index(index);
        let path = path.field("matchLabelExpressions");
        for (index, expression) in maps(term.list("matchLabelExpressions")) {
            if let Some(message) = pod::deprecated_label(expression.text("key")) {
                warnings.push(format!("{}: {message}", path.index(index).field("key")));
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
