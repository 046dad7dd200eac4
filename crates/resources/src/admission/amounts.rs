//! Amounts of resources by name, and what a pod asks for altogether.
//!
//! Contract: `component-helpers/resource/helpers.go` and `apiserver/pkg/quota/v1/resources.go`.

use std::collections::BTreeMap;

use object::quantity::{Format, Quantity};
use object::{Map, Text, Value};

/// Amounts by the name of their resource.
pub(crate) type Amounts = BTreeMap<Text, Quantity>;

/// The resources that a pod may state as a whole.
const POD_LEVEL: [&str; 2] = ["cpu", "memory"];
const POD_LEVEL_PREFIX: &str = "hugepages-";

/// Which of the two lists of a container counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Requests,
    Limits,
}

impl Side {
    fn field(self) -> &'static str {
        match self {
            Side::Requests => "requests",
            Side::Limits => "limits",
        }
    }
}

/// Reads a list of amounts; what is none was refused before, so it is left out.
pub(crate) fn read(list: Option<&Value>) -> Amounts {
    let entries = list.and_then(Value::as_object).into_iter();
    let entries = entries.flat_map(Map::iter);
    entries
        .filter_map(|(name, value)| Some((name.clone(), Quantity::from_value(value).ok()?)))
        .collect()
}

/// Writes a list of amounts.
pub(crate) fn write(amounts: &Amounts) -> Value {
    let entries = amounts.iter();
    let text = |amount: &Quantity| Value::from(amount.to_string());
    Value::Object(entries.map(|(key, it)| (key.clone(), text(it))).collect())
}

/// One of something.
pub(crate) fn one() -> Quantity {
    count(1)
}

/// So many of something.
pub(crate) fn count(number: usize) -> Quantity {
    Quantity::from_int(i64::try_from(number).unwrap_or(i64::MAX), Format::DecimalSi)
}

/// Adds amounts to others.
pub(crate) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match to.get_mut(name) {
            Some(sum) => sum.add(amount),
            None => {
                to.insert(name.clone(), amount.clone());
            }
        }
    }
}

/// Raises amounts to others that are larger.
fn raise(to: &mut Amounts, others: &Amounts) {
    for (name, amount) in others {
        if to.get(name).is_none_or(|known| amount > known) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

/// Only those amounts whose names are among `names`.
pub(crate) fn mask<'a>(amounts: &Amounts, names: impl Iterator<Item = &'a Text>) -> Amounts {
    let found = names.filter_map(|name| Some((name.clone(), amounts.get(name)?.clone())));
    found.collect()
}

/// What a list of containers is called in a pod.
pub(crate) fn containers<'a>(spec: &'a Map, list: &str) -> impl Iterator<Item = &'a Map> + use<'a> {
    let items = spec.get(list).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_object)
}

/// What a container asks for.
pub(crate) fn of_container(container: &Map, side: Side) -> Amounts {
    let resources = container.get("resources");
    read(resources.and_then(|resources| resources.get(side.field())))
}

/// Whether the pod as a whole states resources of its own.
pub(crate) fn has_pod_level(spec: &Map) -> bool {
    [Side::Requests, Side::Limits]
        .into_iter()
        .any(|side| !pod_level(spec, side).is_empty())
}

fn pod_level(spec: &Map, side: Side) -> Amounts {
    let stated = spec.get("resources").and_then(|it| it.get(side.field()));
    let mut stated = read(stated);
    stated
        .retain(|name, _| POD_LEVEL.contains(&name.as_str()) || name.starts_with(POD_LEVEL_PREFIX));
    stated
}

/// Whether a pod asks for no share of a node at all.
pub(crate) fn is_best_effort(spec: &Map) -> bool {
    let asks = |amounts: Amounts| {
        let mut shares = POD_LEVEL.iter().filter_map(|name| amounts.get(*name));
        shares.any(|amount| amount.sign() > 0)
    };
    let sides = [Side::Requests, Side::Limits];
    !has_pod_level(spec)
        && ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| containers(spec, list))
            .all(|it| sides.iter().all(|side| !asks(of_container(it, *side))))
}

/// What all containers of a pod ask for together, or what the pod states in their place.
///
/// Sidecars run beside the others; each other init container runs alone beside the sidecars that
/// started before it. `container` tells what one of them asks for.
pub(crate) fn of_pod(spec: &Map, side: Side, container: impl Fn(&Map) -> Amounts) -> Amounts {
    let mut total = Amounts::new();
    for one in containers(spec, "containers") {
        add(&mut total, &container(one));
    }
    let (mut sidecars, mut start) = (Amounts::new(), Amounts::new());
    for one in containers(spec, "initContainers") {
        let own = container(one);
        if one.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut start, &sidecars);
        } else {
            let mut beside = own;
            add(&mut beside, &sidecars);
            raise(&mut start, &beside);
        }
    }
    raise(&mut total, &start);
    total.extend(pod_level(spec, side));
    total
}

/// What a pod uses: the larger of what it asks for and what its node has given it, and overhead.
pub(crate) fn used_by_pod(pod: &Map, side: Side) -> Amounts {
    static NONE: std::sync::LazyLock<Map> = std::sync::LazyLock::new(Map::new);
    let spec = pod.get("spec").and_then(Value::as_object).unwrap_or(&NONE);
    let status = pod
        .get("status")
        .and_then(Value::as_object)
        .unwrap_or(&NONE);
    let infeasible = is_infeasible(status);
    let mut total = of_pod(spec, side, |container| {
        let own = of_container(container, side);
        let given = container_status(status, container).filter(|it| it.get("resources").is_some());
        let Some(given) = given else { return own };
        let mut largest = if infeasible { Amounts::new() } else { own };
        let actual = given.get("resources").and_then(|it| it.get(side.field()));
        raise(&mut largest, &read(actual));
        if side == Side::Requests {
            raise(&mut largest, &read(given.get("allocatedResources")));
        }
        largest
    });
    for (name, overhead) in read(spec.get("overhead")) {
        match total.get_mut(&name) {
            Some(sum) if side == Side::Requests || !sum.is_zero() => sum.add(&overhead),
            None if side == Side::Requests => {
                total.insert(name, overhead);
            }
            _ => {}
        }
    }
    total
}

fn container_status<'a>(status: &'a Map, container: &Map) -> Option<&'a Map> {
    let name = container.get("name").and_then(Value::as_str);
    ["containerStatuses", "initContainerStatuses"]
        .into_iter()
        .flat_map(|list| containers(status, list))
        .find(|it| it.get("name").and_then(Value::as_str) == name)
}

/// Whether the node cannot give the pod what it asks for now.
fn is_infeasible(status: &Map) -> bool {
    let conditions = status.get("conditions").and_then(Value::as_array);
    let pending = conditions
        .unwrap_or_default()
        .iter()
        .find(|it| it.str_at(&["type"]) == Some("PodResizePending"));
    pending.is_some_and(|it| it.str_at(&["reason"]) == Some("Infeasible"))
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    fn cpu(pod: &Value, side: Side) -> Option<String> {
        let used = used_by_pod(pod.as_object().expect("a pod"), side);
        used.get("cpu").map(ToString::to_string)
    }

    #[test]
    fn what_a_pod_uses() {
        let asks = |cpu: &str| value!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
        let main = value!({"name": "main", "resources": (asks("200m"))});
        let first = value!({"name": "first", "resources": (asks("600m"))});
        let sidecar =
            value!({"name": "side", "restartPolicy": "Always", "resources": (asks("100m"))});
        let cases = [
            (
                value!({"spec": {"containers": [(main.clone()), (main.clone())]}}),
                "400m",
            ),
            (
                value!({"spec": {
                    "containers": [(main.clone())], "initContainers": [(first.clone())],
                }}),
                "600m",
            ),
            (
                value!({"spec": {
                    "containers": [(main.clone())],
                    "initContainers": [(sidecar.clone()), (first.clone())],
                }}),
                "700m",
            ),
            (
                value!({"spec": {
                    "containers": [(main.clone())], "initContainers": [(sidecar)],
                }}),
                "300m",
            ),
            (
                value!({"spec": {
                    "containers": [(main.clone())], "resources": (asks("1")),
                    "overhead": {"cpu": "50m"},
                }}),
                "1050m",
            ),
            (
                value!({
                    "spec": {"containers": [(main)]},
                    "status": {"containerStatuses": [
                        {"name": "main", "resources": (asks("300m"))},
                    ]},
                }),
                "300m",
            ),
        ];
        for (pod, expected) in cases {
            assert_eq!(
                cpu(&pod, Side::Requests).as_deref(),
                Some(expected),
                "{pod:?}"
            );
            assert_eq!(
                cpu(&pod, Side::Limits).as_deref(),
                Some(expected),
                "{pod:?}"
            );
        }
    }

    #[test]
    fn overhead_alone_counts_as_a_request_and_not_as_a_limit() {
        let pod = value!({"spec": {"containers": [{"name": "a"}], "overhead": {"cpu": "1"}}});
        assert_eq!(cpu(&pod, Side::Requests).as_deref(), Some("1"));
        assert_eq!(cpu(&pod, Side::Limits), None);
    }
}
