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

/// Two lists as one; what another toleration covers is left out.
///
/// Contract: `pkg/util/tolerations/tolerations.go`.
pub(super) fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (place, toleration) in all.iter().enumerate() {
        let known = merged.iter().any(|it| is_superset(it, toleration));
        // Of equal ones the first stays.
        let later = all[place + 1..]
            .iter()
            .any(|it| it != toleration && is_superset(it, toleration));
        if !known && !later {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Whether one toleration covers all that another does.
pub(super) fn is_superset(large: &Value, small: &Value) -> bool {
    if large == small {
        return true;
    }
    fn text<'a>(toleration: &'a Value, field: &str) -> &'a str {
        toleration.str_at(&[field]).unwrap_or_default()
    }
    let same = |field: &str| text(large, field) == text(small, field);
    let seconds = |toleration: &Value| toleration.get("tolerationSeconds").and_then(Value::as_int);
    let every_key = text(large, "key").is_empty() && text(large, "operator") == "Exists";
    if !same("key") && !every_key {
        return false;
    }
    if !same("effect") && !text(large, "effect").is_empty() {
        return false;
    }
    if text(large, "effect") == EFFECT
        && let Some(stay) = seconds(large)
        && seconds(small).is_none_or(|it| it > stay)
    {
        return false;
    }
    match text(large, "operator") {
        "Equal" | "" => text(small, "operator") == "Equal" && same("value"),
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_toleration_covers_is_left_out() {
        let all = value!({"operator": "Exists"});
        let key = value!({"key": "a", "operator": "Exists", "effect": "NoSchedule"});
        let equal = value!({"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"});
        let short = value!({
            "key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5,
        });
        let long = value!({
            "key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 50,
        });
        for (first, second, expected) in [
            (vec![&key], vec![&key], vec![&key]),
            (vec![&equal], vec![&key], vec![&key]),
            (vec![&key], vec![&equal], vec![&key]),
            (vec![&key, &short], vec![&all], vec![&all]),
            (vec![&short], vec![&long], vec![&long]),
            (vec![&equal, &short], vec![], vec![&equal, &short]),
        ] {
            let list = |items: Vec<&Value>| items.into_iter().cloned().collect::<Vec<Value>>();
            let case = format!("{first:?} {second:?}");
            assert_eq!(merge(&list(first), &list(second)), list(expected), "{case}");
        }
    }
}
