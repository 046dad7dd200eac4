//! What a pod's containers ask for together, against what the pod asks for, and the class of
//! service that follows.

use object::field::Path;
use object::quantity::Quantity;
use object::{Map, Value};

use crate::validation::check::{Errors, Report};
use crate::validation::quantities::is_huge_page;
use crate::validation::read::{Read, maps};

/// Checks that the pod's own requests and limits leave room for its containers.
pub(super) fn within_pod(spec: &Map, resources: &Map, path: &Path<'_>, errors: &mut Errors) {
    let requests = path.field("requests");
    for (name, value) in resources.object_or_empty("requests").iter() {
        exceeds(spec, "requests", name, value, &requests.key(name), errors);
    }
    let limits_of_pod = resources.object_or_empty("limits");
    let limits = path.field("limits");
    for (name, value) in limits_of_pod.iter().filter(|(name, _)| is_huge_page(name)) {
        exceeds(spec, "limits", name, value, &limits.key(name), errors);
    }
    let containers = path.field("containers");
    for (index, container) in maps(spec.list("containers")) {
        let own = container
            .object_or_empty("resources")
            .object_or_empty("limits");
        for (name, limit) in own.iter() {
            let (Some(whole), Some(limit)) = (amount(limits_of_pod, name), parse(limit)) else {
                continue;
            };
            if limit > whole {
                let path = containers.index(index);
                let path = path.key(name);
                let detail = format!("must be less than or equal to pod limits of {whole}");
                errors.invalid(&path.field("limits"), limit.to_string(), detail);
            }
        }
    }
}

fn exceeds(
    spec: &Map,
    list: &str,
    name: &str,
    value: &Value,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let (Some(whole), Some(total)) = (parse(value), total(spec, list, name)) else {
        return;
    };
    if total > whole {
        let detail =
            format!("must be greater than or equal to aggregate container {list} of {total}");
        errors.invalid(path, whole.to_string(), detail);
    }
}

/// Regular containers and sidecars run side by side; each init container runs beside the sidecars
/// that were started before it.
fn total(spec: &Map, list: &str, name: &str) -> Option<Quantity> {
    let of = |container: &Map| {
        amount(
            container.object_or_empty("resources").object_or_empty(list),
            name,
        )
    };
    let mut sum: Option<Quantity> = None;
    for (_, container) in maps(spec.list("containers")) {
        sum = add(sum, of(container));
    }
    let mut sidecars: Option<Quantity> = None;
    let mut peak: Option<Quantity> = None;
    for (_, container) in maps(spec.list("initContainers")) {
        let own = of(container);
        let now = add(sidecars.clone(), own.clone());
        if container.text("restartPolicy") == "Always" {
            sum = add(sum, own);
            sidecars = now.clone();
        }
        peak = peak.max(now);
    }
    sum.max(peak)
}

fn add(sum: Option<Quantity>, more: Option<Quantity>) -> Option<Quantity> {
    match (sum, more) {
        (Some(mut sum), Some(more)) => {
            sum.add(&more);
            Some(sum)
        }
        (sum, more) => sum.or(more),
    }
}

fn amount(list: &Map, name: &str) -> Option<Quantity> {
    parse(list.get(name)?)
}

fn parse(value: &Value) -> Option<Quantity> {
    Quantity::from_value(value).ok()
}

/// The class of service: `Guaranteed`, `Burstable` or `BestEffort`.
pub(super) fn service_class(spec: &Map) -> &'static str {
    let whole = spec.object_or_empty("resources");
    if !whole.object_or_empty("requests").is_empty() || !whole.object_or_empty("limits").is_empty()
    {
        return if is_guaranteed(whole) {
            "Guaranteed"
        } else {
            "Burstable"
        };
    }
    let all = || {
        maps(spec.list("containers"))
            .chain(maps(spec.list("initContainers")))
            .map(|(_, container)| container.object_or_empty("resources"))
    };
    let asks = |list: &Map| {
        ["cpu", "memory"]
            .iter()
            .any(|name| amount(list, name).is_some_and(|amount| amount.sign() > 0))
    };
    let none = |resources: &Map| {
        !asks(resources.object_or_empty("requests")) && !asks(resources.object_or_empty("limits"))
    };
    if all().all(none) {
        "BestEffort"
    } else if all().all(is_guaranteed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

fn is_guaranteed(resources: &Map) -> bool {
    ["cpu", "memory"].iter().all(|name| {
        let limit = amount(resources.object_or_empty("limits"), name);
        let request = amount(resources.object_or_empty("requests"), name);
        limit.as_ref().is_some_and(|limit| limit.sign() > 0)
            && request.is_none_or(|request| Some(request) == limit)
    })
}
