//! PodResizeValidator: a pod cannot come to ask for more than its node has.
//!
//! Contract: `plugin/pkg/admission/podresize/admission.go`.

use object::quantity::Quantity;
use object::{Map, Text, Value};

use super::amounts::{self, Side};
use super::lookup::Place;
use super::{forbidden, refused_subject};
use crate::error::{Cause, Error};
use crate::meta::meta;
use crate::{Request, Resources};

const NODES: Place = ("", "v1", "nodes");
const SYSTEM_LABEL: &str = "kubernetes.io/os";

pub(super) async fn validate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let kind = request.kind;
    let ours = kind.group.is_empty() && kind.resource == "pods" && request.subresource == "resize";
    let Some(old) = old.filter(|_| ours) else {
        return Ok(());
    };
    let name = pod.get("spec").and_then(|spec| spec.str_at(&["nodeName"]));
    let name = name.unwrap_or_default();
    if name.is_empty() || meta(pod).get("generation") == meta(old).get("generation") {
        return Ok(());
    }
    let Some(node) = resources.find(NODES, "", name).await? else {
        let detail = format!("node \"{name}\" not found");
        return Err(forbidden(request, pod, detail));
    };
    let refused = |detail: String, reason: &str| Error::Forbidden {
        subject: refused_subject(request, pod),
        detail,
        causes: vec![Cause {
            reason: Text::from(reason),
            message: String::new(),
            field: String::new(),
        }],
    };
    let labels = meta(&node).get("labels");
    let system = labels.and_then(|labels| labels.str_at(&[SYSTEM_LABEL]));
    if let Some(system) = system.filter(|system| *system != "linux") {
        let detail =
            format!("pod resize is only supported on linux nodes, node \"{name}\" is \"{system}\"");
        return Err(refused(detail, "UnsupportedPlatform"));
    }
    match too_large(pod, &node) {
        Some(detail) => Err(refused(detail, "NodeCapacity")),
        None => Ok(()),
    }
}

fn too_large(pod: &Map, node: &Map) -> Option<String> {
    let status = node.get("status").and_then(Value::as_object);
    let allocatable = amounts::read(status.and_then(|status| status.get("allocatable")));
    let requests = amounts::used_by_pod(pod, Side::Requests);
    let zero = Quantity::zero();
    let amount = |list: &amounts::Amounts, name: &str| list.get(name).unwrap_or(&zero).clone();
    let mut complaints = Vec::new();
    for (name, unit) in [
        ("cpu", Quantity::milli_value as fn(&Quantity) -> i64),
        ("memory", Quantity::value),
    ] {
        let (wanted, offered) = (amount(&requests, name), amount(&allocatable, name));
        if wanted > offered {
            complaints.push(format!(
                "{name}, requested: {}, allocatable: {}",
                unit(&wanted),
                unit(&offered)
            ));
        }
    }
    (!complaints.is_empty()).then(|| {
        let complaints = complaints.join("; ");
        format!("node didn't have enough allocatable resources: {complaints}")
    })
}
