//! RuntimeClass: what the runtime of a pod costs, and on which nodes it is.
//!
//! Contract: `plugin/pkg/admission/runtimeclass/admission.go`.

use object::{Map, Value};

use super::lookup::Place;
use super::references::spec_of;
use super::{amounts, forbidden, is_about, tolerations};
use crate::error::Error;
use crate::{Request, Resources};

const CLASSES: Place = ("node.k8s.io", "v1", "runtimeclasses");
const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

pub(super) async fn mutate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let Some(class) = class(resources, request, pod, old).await? else {
        return Ok(());
    };
    set_overhead(&class, pod)
        .and_then(|()| set_scheduling(&class, pod))
        .map_err(|detail| forbidden(request, pod, detail))
}

pub(super) async fn validate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if old.is_some() || !is_about(request, "", "pods") {
        return Ok(());
    }
    let class = class(resources, request, pod, old).await?;
    let own = spec_of(pod).and_then(|spec| spec.get("overhead"));
    let detail = match class.as_ref().and_then(fixed_overhead) {
        Some(fixed) if amounts::read(Some(fixed)) != amounts::read(own) => MISMATCH,
        None if own.is_some_and(|own| !own.is_null()) => {
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        }
        _ => return Ok(()),
    };
    Err(forbidden(request, pod, detail.to_owned()))
}

/// The class that a new pod names.
async fn class(
    resources: &Resources,
    request: &Request<'_>,
    pod: &Map,
    old: Option<&Map>,
) -> Result<Option<Map>, Error> {
    if old.is_some() || !is_about(request, "", "pods") {
        return Ok(None);
    }
    let name = spec_of(pod).and_then(|spec| spec.get("runtimeClassName"));
    let Some(name) = name.and_then(Value::as_str) else {
        return Ok(None);
    };
    match resources.find(CLASSES, "", name).await? {
        Some(class) => Ok(Some(class)),
        None => {
            let detail = format!("pod rejected: RuntimeClass \"{name}\" not found");
            Err(forbidden(request, pod, detail))
        }
    }
}

/// What every pod of a class costs, if the class says so.
fn fixed_overhead(class: &Map) -> Option<&Value> {
    static NONE: Value = Value::Null;
    let overhead = class.get("overhead").filter(|it| !it.is_null())?;
    Some(overhead.get("podFixed").unwrap_or(&NONE))
}

fn set_overhead(class: &Map, pod: &mut Map) -> Result<(), String> {
    let Some(fixed) = fixed_overhead(class) else {
        return Ok(());
    };
    let spec = pod.object_at("spec");
    let own = amounts::read(spec.get("overhead"));
    if !own.is_empty() && own != amounts::read(Some(fixed)) {
        return Err(MISMATCH.to_owned());
    }
    spec.insert("overhead", fixed.clone());
    Ok(())
}

fn set_scheduling(class: &Map, pod: &mut Map) -> Result<(), String> {
    let Some(scheduling) = class.get("scheduling").filter(|it| !it.is_null()) else {
        return Ok(());
    };
    let spec = pod.object_at("spec");
    let wanted = scheduling.get("nodeSelector").and_then(Value::as_object);
    for (key, value) in wanted.into_iter().flat_map(Map::iter) {
        let selector = spec.object_at("nodeSelector");
        let own = selector.get(key).and_then(Value::as_str);
        let value_text = value.as_str().unwrap_or_default();
        if let Some(own) = own.filter(|own| *own != value_text) {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value_text}; \
                 pod.spec.nodeSelector[{key}] = {own}"
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    let list = |value: Option<&Value>| {
        let list = value.and_then(Value::as_array).unwrap_or_default();
        list.to_vec()
    };
    let own = list(spec.get("tolerations"));
    let merged = tolerations::merge(&own, &list(scheduling.get("tolerations")));
    if !merged.is_empty() {
        spec.insert("tolerations", Value::Array(merged));
    }
    Ok(())
}
