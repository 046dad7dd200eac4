//! TaintNodesByCondition: a new node takes no pods until somebody says that it is ready.

use object::{Map, Value, value};

use super::is_about;
use crate::Request;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

pub(super) fn taint_new(request: &Request<'_>, node: &mut Map, old: Option<&Map>) {
    if old.is_some() || !is_about(request, "", "nodes") {
        return;
    }
    let spec = node.object_at("spec");
    let mut taints = spec
        .get("taints")
        .and_then(Value::as_array)
        .unwrap_or_default()
        .to_vec();
    let is_ours = |taint: &Value| {
        taint.str_at(&["key"]) == Some(NOT_READY) && taint.str_at(&["effect"]) == Some(EFFECT)
    };
    if !taints.iter().any(is_ours) {
        taints.push(value!({"key": NOT_READY, "effect": EFFECT}));
        spec.insert("taints", Value::Array(taints));
    }
}
