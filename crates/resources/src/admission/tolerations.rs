//! DefaultTolerationSeconds: a pod stays five minutes on a node that is in trouble.

use object::{Map, Value, value};

use super::is_about;
use crate::Request;

const TAINTS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];
const EFFECT: &str = "NoExecute";
const STAY_SECONDS: i64 = 300;

pub(super) fn mutate(request: &Request<'_>, pod: &mut Map) {
    if !is_about(request, "", "pods") {
        return;
    }
    let spec = pod.object_at("spec");
    let given = spec
        .get("tolerations")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let missing = TAINTS
        .into_iter()
        .filter(|taint| !given.iter().any(|one| covers(one, taint)));
    let missing: Vec<Value> = missing
        .map(|taint| {
            value!({
                "key": taint,
                "operator": "Exists",
                "effect": EFFECT,
                "tolerationSeconds": STAY_SECONDS,
            })
        })
        .collect();
    if !missing.is_empty() {
        let all = given.iter().cloned().chain(missing).collect();
        spec.insert("tolerations", Value::Array(all));
    }
}

/// Whether a toleration says something about a taint; one without key or effect means all.
fn covers(toleration: &Value, taint: &str) -> bool {
    let text = |field| toleration.str_at(&[field]).unwrap_or_default();
    let (key, effect) = (text("key"), text("effect"));
    (key.is_empty() || key == taint) && (effect.is_empty() || effect == EFFECT)
}
