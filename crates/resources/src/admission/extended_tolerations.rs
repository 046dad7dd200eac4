//! ExtendedResourceToleration: a pod that asks for a special resource may use its nodes.
//!
//! Contract: `plugin/pkg/admission/extendedresourcetoleration/admission.go`. Off by default.

use std::collections::BTreeSet;

use object::{Map, Text, Value, value};

use super::amounts::{self, Side};
use super::is_about;
use super::quota::is_extended;
use crate::Request;

pub(super) fn mutate(request: &Request<'_>, pod: &mut Map) {
    if !is_about(request, "", "pods") {
        return;
    }
    let spec = pod.object_at("spec");
    let resources: BTreeSet<Text> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| amounts::containers(spec, list))
        .flat_map(|container| amounts::of_container(container, Side::Requests).into_keys())
        .filter(|name| is_extended(name))
        .collect();
    if resources.is_empty() {
        return;
    }
    let own = spec.get("tolerations").and_then(Value::as_array);
    let mut tolerations = own.unwrap_or_default().to_vec();
    for resource in resources {
        let wanted = value!({"key": resource, "operator": "Exists", "effect": "NoSchedule"});
        let is_same = |known: &Value| {
            let mut fields = ["key", "operator", "effect", "value"].into_iter();
            fields.all(|field| known.str_at(&[field]) == wanted.str_at(&[field]))
        };
        match tolerations.iter_mut().find(|known| is_same(known)) {
            Some(known) => *known = wanted,
            None => tolerations.push(wanted),
        }
    }
    spec.insert("tolerations", Value::Array(tolerations));
}
