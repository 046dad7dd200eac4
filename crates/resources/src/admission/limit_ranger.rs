//! LimitRanger: defaults and bounds for what containers, pods and claims ask for.
//!
//! Contract: `plugin/pkg/admission/limitranger/admission.go`. Ranges are taken in the order of
//! their names, resources in the order of theirs, so that the same request has the same refusal.

use object::field::summary;
use object::quantity::Quantity;
use object::{Map, Text, Value};

use super::amounts::{self, Amounts, Side};
use super::lookup::Place;
use super::{forbidden, is_about};
use crate::error::Error;
use crate::meta::{meta, meta_mut};
use crate::{Request, Resources};

const RANGES: Place = ("", "v1", "limitranges");
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Amounts up to this are compared in thousandths.
const MILLI_MAX: i64 = i64::MAX / 1000;

/// Fills in what containers of a pod leave out.
pub(super) async fn mutate(
    resources: &Resources,
    request: &Request<'_>,
    object: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if request.kind.resource != "pods" || !applies(request, old) {
        return Ok(());
    }
    for range in resources.find_all(RANGES, request.namespace).await? {
        fill(object, &range);
    }
    Ok(())
}

/// Refuses what is out of bounds.
pub(super) async fn validate(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if !applies(request, old) {
        return Ok(());
    }
    for range in resources.find_all(RANGES, request.namespace).await? {
        let complaints = if request.kind.resource == "pods" {
            check_pod(&range, object)
        } else {
            check_claim(&range, object)
        };
        if !complaints.is_empty() {
            return Err(forbidden(request, object, summary(&complaints)));
        }
    }
    Ok(())
}

/// Containers cannot change after their pod was made, except by a resize; claims can.
fn applies(request: &Request<'_>, old: Option<&Map>) -> bool {
    let kind = request.kind;
    let supported = match (kind.group.as_str(), kind.resource.as_str()) {
        ("", "pods") => match old {
            None => request.subresource.is_empty(),
            Some(_) => request.subresource == "resize",
        },
        _ => is_about(request, "", "persistentvolumeclaims"),
    };
    supported && !old.is_some_and(|old| meta(old).contains_key("deletionTimestamp"))
}

fn limits(range: &Map) -> impl Iterator<Item = &Map> {
    let limits = range.get("spec").and_then(|spec| spec.get("limits"));
    let limits = limits.and_then(Value::as_array).unwrap_or_default();
    limits.iter().filter_map(Value::as_object)
}

fn limit_type(limit: &Map) -> &str {
    limit
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn fill(pod: &mut Map, range: &Map) {
    let (mut requests, mut bounds) = (Map::new(), Map::new());
    for limit in limits(range).filter(|limit| limit_type(limit) == "Container") {
        for (list, to) in [("defaultRequest", &mut requests), ("default", &mut bounds)] {
            let entries = limit.get(list).and_then(Value::as_object);
            for (name, amount) in entries.into_iter().flat_map(Map::iter) {
                to.insert(name.clone(), amount.clone());
            }
        }
    }
    let mut notes = Vec::new();
    let spec = pod.object_at("spec");
    for (list, what) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let Some(container) = container.as_object_mut() else {
                continue;
            };
            for (side, defaults) in [("requests", &requests), ("limits", &bounds)] {
                let set = fill_container(container, side, defaults);
                if !set.is_empty() {
                    let name = container.get("name").and_then(Value::as_str);
                    notes.push(format!(
                        "{} {} for {what} {}",
                        set.join(", "),
                        side.trim_end_matches('s'),
                        name.unwrap_or_default(),
                    ));
                }
            }
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        meta_mut(pod)
            .object_at("annotations")
            .insert(ANNOTATION, Value::from(note));
    }
}

/// Sets what is missing, and tells what that was.
fn fill_container(container: &mut Map, side: &str, defaults: &Map) -> Vec<Text> {
    let own = container.get("resources").and_then(|it| it.get(side));
    let is_missing = |name: &str| own.is_none_or(|own| own.get(name).is_none());
    let missing: Vec<(Text, Value)> = defaults
        .iter()
        .filter(|(name, _)| is_missing(name))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    let mut set = Vec::new();
    for (name, amount) in missing {
        let list = container.object_at("resources").object_at(side);
        list.insert(name.clone(), amount);
        set.push(name);
    }
    set
}

fn check_pod(range: &Map, pod: &Map) -> Vec<String> {
    let mut complaints = Vec::new();
    let Some(spec) = pod.get("spec").and_then(Value::as_object) else {
        return complaints;
    };
    for limit in limits(range) {
        match limit_type(limit) {
            "Container" => {
                for list in ["containers", "initContainers"] {
                    for container in amounts::containers(spec, list) {
                        let requests = amounts::of_container(container, Side::Requests);
                        let limits = amounts::of_container(container, Side::Limits);
                        check_bounds(limit, &requests, &limits, &mut complaints);
                    }
                }
            }
            "Pod" => {
                let total = |side| {
                    amounts::of_pod(spec, side, |container| {
                        amounts::of_container(container, side)
                    })
                };
                let (requests, limits) = (total(Side::Requests), total(Side::Limits));
                check_bounds(limit, &requests, &limits, &mut complaints);
            }
            _ => {}
        }
    }
    complaints
}

fn check_claim(range: &Map, claim: &Map) -> Vec<String> {
    const TYPE: &str = "PersistentVolumeClaim";
    let resources = claim.get("spec").and_then(|spec| spec.get("resources"));
    let requests = amounts::read(resources.and_then(|resources| resources.get("requests")));
    let mut complaints = Vec::new();
    for limit in limits(range).filter(|limit| limit_type(limit) == TYPE) {
        for (name, bound) in amounts::read(limit.get("min")) {
            complaints.extend(minimum(TYPE, &name, &bound, requests.get(&name), None));
        }
        for (name, bound) in amounts::read(limit.get("max")) {
            complaints.extend(maximum_request(TYPE, &name, &bound, requests.get(&name)));
        }
    }
    complaints
}

fn check_bounds(limit: &Map, requests: &Amounts, limits: &Amounts, complaints: &mut Vec<String>) {
    let kind = limit_type(limit);
    for (list, check) in [
        ("min", minimum as Check),
        ("max", maximum as Check),
        ("maxLimitRequestRatio", ratio as Check),
    ] {
        for (name, bound) in amounts::read(limit.get(list)) {
            let (request, limit) = (requests.get(&name), limits.get(&name));
            complaints.extend(check(kind, &name, &bound, request, limit));
        }
    }
}

/// Type of the limit, resource, bound, request and limit to the complaint, if there is one.
type Check = fn(&str, &str, &Quantity, Option<&Quantity>, Option<&Quantity>) -> Option<String>;

/// Three amounts in one unit: thousandths, unless one of them is too large for that.
fn comparable(amounts: [Option<&Quantity>; 3]) -> [i64; 3] {
    let values = amounts.map(|amount| amount.map_or(0, Quantity::value));
    if values.iter().all(|value| *value <= MILLI_MAX) {
        return amounts.map(|amount| amount.map_or(0, Quantity::milli_value));
    }
    values
}

fn minimum(
    kind: &str,
    name: &str,
    bound: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let [requested, limited, enforced] = comparable([request, limit, Some(bound)]);
    let text = format!("minimum {name} usage per {kind} is {bound}");
    match (request, limit) {
        (None, _) => Some(format!("{text}.  No request is specified")),
        (Some(request), _) if requested < enforced => {
            Some(format!("{text}, but request is {request}"))
        }
        (_, Some(limit)) if limited < enforced => Some(format!("{text}, but limit is {limit}")),
        _ => None,
    }
}

fn maximum(
    kind: &str,
    name: &str,
    bound: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let [requested, limited, enforced] = comparable([request, limit, Some(bound)]);
    let text = format!("maximum {name} usage per {kind} is {bound}");
    match (limit, request) {
        (None, _) => Some(format!("{text}.  No limit is specified")),
        (Some(limit), _) if limited > enforced => Some(format!("{text}, but limit is {limit}")),
        (_, Some(request)) if requested > enforced => {
            Some(format!("{text}, but request is {request}"))
        }
        _ => None,
    }
}

fn maximum_request(
    kind: &str,
    name: &str,
    bound: &Quantity,
    request: Option<&Quantity>,
) -> Option<String> {
    let [requested, _, enforced] = comparable([request, None, Some(bound)]);
    let text = format!("maximum {name} usage per {kind} is {bound}");
    match request {
        None => Some(format!("{text}.  No request is specified")),
        Some(request) if requested > enforced => Some(format!("{text}, but request is {request}")),
        Some(_) => None,
    }
}

fn ratio(
    kind: &str,
    name: &str,
    bound: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let [requested, limited, _] = comparable([request, limit, Some(bound)]);
    let text = format!("{name} max limit to request ratio per {kind} is {bound}");
    if requested == 0 {
        return Some(format!(
            "{text}, but no request is specified or request is 0"
        ));
    }
    if limited == 0 {
        return Some(format!("{text}, but no limit is specified or limit is 0"));
    }
    let found = limited as f64 / requested as f64;
    let is_above = if bound.value() <= MILLI_MAX {
        found * 1000.0 > bound.milli_value() as f64
    } else {
        found > bound.value() as f64
    };
    is_above.then(|| format!("{text}, but provided ratio is {found:.6}"))
}
