//! What a pod asks for: requests that follow from limits, and the class of service that results.

use object::{Map, Text, Value};

use super::core::copy_missing;
use super::fill::{items, object, text, within};
use super::quantities::{Amounts, add, amounts, raise};

/// Containers that say only limits request as much.
pub(super) fn requests_from_limits(container: &mut Map) {
    within(container, "resources", |resources| {
        copy_missing(resources, "limits", "requests")
    });
}

/// Fills the resources of the pod as a whole, if it says any.
pub(crate) fn pod_level(spec: &mut Map) {
    let Some(resources) = object(spec, "resources") else {
        return;
    };
    let has = |side| object(resources, side).is_some_and(|list| !list.is_empty());
    if !has("limits") && !has("requests") {
        return;
    }
    huge_page_limits(spec);
    pod_requests(spec);
}

/// Pod limits on huge pages are what the containers may use.
fn huge_page_limits(spec: &mut Map) {
    let sums = aggregate(spec, "limits");
    within(spec, "resources", |resources| {
        let requested = object(resources, "requests").cloned().unwrap_or_default();
        let missing = sums
            .into_iter()
            .filter(|(name, _)| is_huge_page(name) && !requested.contains_key(name));
        for (name, amount) in missing {
            let amount = amount.to_string();
            resources
                .object_at("limits")
                .get_or_insert_with(&name, || amount.into());
        }
    });
}

/// Pod requests are what the containers request; where they request nothing, the pod's limits.
fn pod_requests(spec: &mut Map) {
    let sums = aggregate(spec, "requests");
    within(spec, "resources", |resources| {
        let Some(limits) = object(resources, "limits")
            .filter(|limits| !limits.is_empty())
            .cloned()
        else {
            return;
        };
        for (name, amount) in sums
            .into_iter()
            .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"))
        {
            let amount = amount.to_string();
            resources
                .object_at("requests")
                .get_or_insert_with(&name, || amount.into());
        }
        for (name, amount) in limits.into_iter().filter(|(name, _)| is_pod_level(name)) {
            resources
                .object_at("requests")
                .get_or_insert_with(&name, || amount);
        }
    });
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// What all containers use at the busiest moment.
///
/// Init containers run one after another, beside the sidecars that started before them.
fn aggregate(spec: &Map, side: &str) -> Amounts {
    let mut total = Amounts::new();
    for (name, amount) in items(spec, "containers").flat_map(|container| of(container, side)) {
        add(&mut total, name, &amount);
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in items(spec, "initContainers") {
        let is_sidecar = text(container, "restartPolicy") == "Always";
        let mut now = sidecars.clone();
        for (name, amount) in of(container, side) {
            add(&mut now, name, &amount);
            if is_sidecar {
                add(&mut total, name, &amount);
                add(&mut sidecars, name, &amount);
            }
        }
        for (name, amount) in &now {
            raise(&mut starting, name, amount);
        }
    }
    for (name, amount) in &starting {
        raise(&mut total, name, amount);
    }
    total
}

fn of<'a>(
    container: &'a Map,
    side: &str,
) -> impl Iterator<Item = (&'a Text, object::quantity::Quantity)> {
    object(container, "resources")
        .and_then(|resources| object(resources, side))
        .into_iter()
        .flat_map(amounts)
}

/// The class of service of a pod: guaranteed when limits equal requests everywhere.
pub(crate) fn quality_of_service(spec: &Map) -> &'static str {
    let mut requests = Amounts::new();
    let mut limits = Amounts::new();
    let mut guaranteed = true;
    let mut take = |resources: &Map, limits_matter: bool| {
        sum_up(&mut requests, resources, "requests");
        let limited = sum_up(&mut limits, resources, "limits");
        guaranteed &= !limits_matter || limited == 2;
    };
    if let Some(resources) = object(spec, "resources") {
        let has_limits = object(resources, "limits").is_some_and(|limits| !limits.is_empty());
        take(resources, has_limits);
    } else {
        let nothing = Map::new();
        for container in items(spec, "containers").chain(items(spec, "initContainers")) {
            take(object(container, "resources").unwrap_or(&nothing), true);
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the CPU and memory of one side that are above zero; says how many of the two there were.
fn sum_up(total: &mut Amounts, resources: &Map, side: &str) -> usize {
    let Some(list) = resources.get(side).and_then(Value::as_object) else {
        return 0;
    };
    amounts(list)
        .filter(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && amount.sign() > 0)
        .map(|(name, amount)| add(total, name, &amount))
        .count()
}
