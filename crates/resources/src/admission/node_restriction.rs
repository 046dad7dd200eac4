//! NodeRestriction: a node writes about itself and the pods it runs, and nothing else.
//!
//! Contract: `plugin/pkg/admission/noderestriction/admission.go`. It is of use beside an authorizer
//! that knows nodes, so it is off by default.

use std::collections::BTreeSet;

use object::{Map, Value};

use super::certificates::{signer, signing_request};
use super::forbidden;
use super::lookup::Place;
use super::node_tokens;
use super::references::{needs_api, spec_of};
use super::service_account::MIRROR_ANNOTATION;
use crate::error::{Error, Subject};
use crate::meta::{meta, meta_text};
use crate::{Request, Resources};

const NODES: Place = ("", "v1", "nodes");
const LEASES: &str = "kube-node-lease";
const RESTRICTION: &str = "node-restriction.kubernetes.io";
/// Labels of Kubernetes' own that a node may set on itself.
const OWN_LABELS: &[&str] = &[
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const OWN_DOMAINS: &[&str] = &["kubelet.kubernetes.io", "node.kubernetes.io"];
const NODE_SIGNERS: &[&str] = &[
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
];

/// The node behind a request, if a node makes it.
fn node_of<'a>(request: &Request<'a>) -> Option<&'a str> {
    let name = request.user.name.strip_prefix("system:node:")?;
    request.user.is_in("system:nodes").then_some(name)
}

/// Checks what a node creates or changes.
pub(super) async fn check(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let Some(node) = node_of(request) else {
        return Ok(());
    };
    let refused = |detail: String| forbidden(request, object, detail);
    if node.is_empty() {
        let text = format!(
            "could not determine node from user \"{}\"",
            request.user.name
        );
        return Err(refused(text));
    }
    let kind = request.kind;
    match (kind.group.as_str(), kind.resource.as_str(), old) {
        ("", "pods", None) => check_new_pod(resources, request, object, node).await,
        ("", "pods", Some(old)) => check_pod(request, object, old, node).map_err(refused),
        ("", "nodes", _) => check_node(object, old, node).map_err(refused),
        ("", "serviceaccounts", None) if request.subresource == "token" => {
            node_tokens::check(resources, request, object, node).await
        }
        ("", "persistentvolumeclaims", Some(old)) if request.subresource == "status" => {
            check_claim(object, old, node).map_err(refused)
        }
        ("", "persistentvolumeclaims", _) => Err(refused("may only update PVC status".to_owned())),
        ("coordination.k8s.io", "leases", _) => check_lease(request, object, node).map_err(refused),
        ("storage.k8s.io", "csinodes", _) if meta_text(object, "name") != node => {
            let text = "can only access CSINode with the same name as the requesting node";
            Err(refused(text.to_owned()))
        }
        ("resource.k8s.io", "resourceslices", None) if node_name(object) != node => {
            let text =
                "can only create ResourceSlice with the same NodeName as the requesting node";
            Err(refused(text.to_owned()))
        }
        ("certificates.k8s.io", "certificatesigningrequests", None) => {
            check_signing(object, node).map_err(refused)
        }
        _ => Ok(()),
    }
}

/// Checks what a node deletes.
pub(super) fn check_deletion(request: &Request<'_>, object: &Map) -> Result<(), Error> {
    let Some(node) = node_of(request) else {
        return Ok(());
    };
    let kind = request.kind;
    let is_own = match (kind.group.as_str(), kind.resource.as_str()) {
        ("", "nodes") => meta_text(object, "name") == node,
        ("", "persistentvolumeclaims") => false,
        ("coordination.k8s.io", "leases") => {
            return check_lease(request, object, node)
                .map_err(|detail| forbidden(request, object, detail));
        }
        ("storage.k8s.io", "csinodes") => meta_text(object, "name") == node,
        ("", "pods") | ("resource.k8s.io", "resourceslices") => node_name(object) == node,
        _ => true,
    };
    if is_own {
        return Ok(());
    }
    let detail = match kind.resource.as_str() {
        "nodes" => format!(
            "node \"{node}\" is not allowed to modify node \"{}\"",
            meta_text(object, "name")
        ),
        "persistentvolumeclaims" => "may only update PVC status".to_owned(),
        "csinodes" => {
            "can only access CSINode with the same name as the requesting node".to_owned()
        }
        "pods" => {
            format!("node \"{node}\" can only delete pods with spec.nodeName set to itself")
        }
        _ => {
            "can only delete ResourceSlice with the same NodeName as the requesting node".to_owned()
        }
    };
    Err(forbidden(request, object, detail))
}

/// The node that an object is for.
fn node_name(object: &Map) -> &str {
    let name = spec_of(object).and_then(|spec| spec.get("nodeName"));
    name.and_then(Value::as_str).unwrap_or_default()
}

/// A node makes mirrors of the pods that it runs by itself, and owns them.
async fn check_new_pod(
    resources: &Resources,
    request: &Request<'_>,
    pod: &Map,
    node: &str,
) -> Result<(), Error> {
    let refused = |detail: String| forbidden(request, pod, detail);
    check_mirror(pod, node).map_err(refused)?;
    let owners = meta(pod).get("ownerReferences").and_then(Value::as_array);
    let owner = owners.and_then(<[Value]>::first);
    let uid = owner
        .and_then(|owner| owner.str_at(&["uid"]))
        .unwrap_or_default();
    let Some(found) = resources.find(NODES, "", node).await? else {
        return Err(Error::NotFound(Subject {
            resource: "nodes".into(),
            name: node.into(),
            ..Subject::default()
        }));
    };
    let known = meta_text(&found, "uid");
    if uid != known {
        return Err(refused(format!(
            "node {node} UID mismatch: expected {uid} got {known}"
        )));
    }
    if let Some(what) = spec_of(pod).and_then(needs_api) {
        return Err(refused(format!(
            "node \"{node}\" can not create pods that reference {what}"
        )));
    }
    Ok(())
}

fn check_mirror(pod: &Map, node: &str) -> Result<(), String> {
    let annotations = meta(pod).get("annotations");
    if annotations.is_none_or(|all| all.get(MIRROR_ANNOTATION).is_none()) {
        return Err(format!(
            "pod does not have \"{MIRROR_ANNOTATION}\" annotation, node \"{node}\" can only create \
             mirror pods"
        ));
    }
    if node_name(pod) != node {
        return Err(format!(
            "node \"{node}\" can only create pods with spec.nodeName set to itself"
        ));
    }
    let owners = meta(pod).get("ownerReferences").and_then(Value::as_array);
    let foreign =
        || format!("node \"{node}\" can only create pods with an owner reference set to itself");
    let owner = match owners.unwrap_or_default() {
        [] => return Err(foreign()),
        [owner] => owner,
        _ => {
            return Err(format!(
                "node \"{node}\" can only create pods with a single owner reference set to itself"
            ));
        }
    };
    let text = |field: &str| owner.str_at(&[field]).unwrap_or_default();
    let flag = |field: &str| owner.get(field).and_then(Value::as_bool) == Some(true);
    if (text("apiVersion"), text("kind"), text("name")) != ("v1", "Node", node) {
        return Err(foreign());
    }
    if !flag("controller") {
        return Err(format!(
            "node \"{node}\" can only create pods with a controller owner reference set to itself"
        ));
    }
    if flag("blockOwnerDeletion") {
        return Err(format!(
            "node \"{node}\" must not set blockOwnerDeletion on an owner reference"
        ));
    }
    Ok(())
}

/// A node reports the status of its pods.
fn check_pod(request: &Request<'_>, pod: &Map, old: &Map, node: &str) -> Result<(), String> {
    match request.subresource {
        "status" => {}
        "" => {
            return Err(format!(
                "unexpected operation \"UPDATE\", node \"{node}\" can only create and delete \
                 mirror pods"
            ));
        }
        other => {
            return Err(format!(
                "unexpected pod subresource \"{other}\", only 'status' and 'eviction' are allowed"
            ));
        }
    }
    if node_name(old) != node {
        return Err(format!(
            "node \"{node}\" can only update pod status for pods with spec.nodeName set to itself"
        ));
    }
    if meta(pod).get("labels") != meta(old).get("labels") {
        return Err(format!(
            "node \"{node}\" cannot update labels through pod status"
        ));
    }
    let claims = |pod: &Map, field: &str| {
        let status = pod.get("status").and_then(|status| status.get(field));
        status.cloned().unwrap_or_default()
    };
    for (field, what) in [
        ("resourceClaimStatuses", "resource claim statues"),
        (
            "extendedResourceClaimStatus",
            "extended resource claim status",
        ),
    ] {
        if claims(pod, field) != claims(old, field) {
            return Err(format!("node \"{node}\" cannot update {what}"));
        }
    }
    Ok(())
}

fn check_node(object: &Map, old: Option<&Map>, node: &str) -> Result<(), String> {
    let name = meta_text(object, "name");
    if name != node {
        return Err(format!(
            "node \"{node}\" is not allowed to modify node \"{name}\""
        ));
    }
    let part = |object: &Map, field: &str| {
        let value = spec_of(object).and_then(|spec| spec.get(field));
        value.cloned().unwrap_or_default()
    };
    let Some(old) = old else {
        if !part(object, "configSource").is_null() {
            return Err(format!(
                "node \"{node}\" is not allowed to create pods with a non-nil configSource"
            ));
        }
        let labels = forbidden_labels(object, None);
        if !labels.is_empty() {
            return Err(format!(
                "node \"{node}\" is not allowed to set the following labels: {labels}"
            ));
        }
        return Ok(());
    };
    let source = part(object, "configSource");
    if !source.is_null() && source != part(old, "configSource") {
        return Err(format!(
            "node \"{node}\" is not allowed to update configSource to a new non-nil configSource"
        ));
    }
    if part(object, "taints") != part(old, "taints") {
        return Err(format!("node \"{node}\" is not allowed to modify taints"));
    }
    if meta(object).get("ownerReferences") != meta(old).get("ownerReferences") {
        return Err(format!(
            "node \"{node}\" is not allowed to modify ownerReferences"
        ));
    }
    let labels = forbidden_labels(object, Some(old));
    if !labels.is_empty() {
        return Err(format!("is not allowed to modify labels: {labels}"));
    }
    Ok(())
}

/// The labels that changed and that a node must not change, in order.
fn forbidden_labels(new: &Map, old: Option<&Map>) -> String {
    static NONE: std::sync::LazyLock<Map> = std::sync::LazyLock::new(Map::new);
    fn labels(object: &Map) -> &Map {
        let labels = meta(object).get("labels").and_then(Value::as_object);
        labels.unwrap_or(&NONE)
    }
    let new = labels(new);
    let old = old.map_or_else(|| &*NONE, labels);
    let within = |domain: &str, of: &str| {
        domain == of || domain.strip_suffix(of).is_some_and(|it| it.ends_with('.'))
    };
    let is_forbidden = |key: &str| {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let native = within(domain, "kubernetes.io") || within(domain, "k8s.io");
        let own = OWN_LABELS.contains(&key) || OWN_DOMAINS.iter().any(|it| within(domain, it));
        within(domain, RESTRICTION) || (native && !own)
    };
    let keys: BTreeSet<&str> = new
        .keys()
        .chain(old.keys())
        .filter(|key| new.get(key) != old.get(key))
        .map(|key| key.as_str())
        .filter(|key| is_forbidden(key))
        .collect();
    let keys: Vec<&str> = keys.into_iter().collect();
    keys.join(", ")
}

fn check_claim(claim: &Map, old: &Map, node: &str) -> Result<(), String> {
    let rest = |claim: &Map| {
        let mut rest = claim.clone();
        rest.object_at("metadata").remove("resourceVersion");
        let status = rest.object_at("status");
        for field in [
            "capacity",
            "conditions",
            "allocatedResourceStatuses",
            "allocatedResources",
        ] {
            status.remove(field);
        }
        rest
    };
    if rest(claim) == rest(old) {
        return Ok(());
    }
    Err(format!(
        "node \"{node}\" is not allowed to update fields other than status.quantity and \
         status.conditions"
    ))
}

fn check_lease(request: &Request<'_>, lease: &Map, node: &str) -> Result<(), String> {
    if request.namespace != LEASES {
        return Err(format!(
            "can only access leases in the \"{LEASES}\" system namespace"
        ));
    }
    if meta_text(lease, "name") != node {
        let text = "can only access node lease with the same name as the requesting node";
        return Err(text.to_owned());
    }
    Ok(())
}

fn check_signing(object: &Map, node: &str) -> Result<(), String> {
    if !NODE_SIGNERS.contains(&signer(object)) {
        return Ok(());
    }
    let asked = signing_request(object).map_err(|error| format!("unable to parse csr: {error}"))?;
    if asked.common_name != format!("system:node:{node}") {
        return Err(format!(
            "can only create a node CSR with CN=system:node:{node}"
        ));
    }
    Ok(())
}
