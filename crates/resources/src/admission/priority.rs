//! Priority: the number and the preemption policy of a pod come from its class.
//!
//! Contract: `plugin/pkg/admission/priority/admission.go`.

use object::{Map, Value};

use super::lookup::Place;
use super::{forbidden, is_about};
use crate::error::Error;
use crate::meta::meta_text;
use crate::{Request, Resources};

const CLASSES: Place = ("scheduling.k8s.io", "v1", "priorityclasses");
/// What pods get where no class is the default.
const USUAL_POLICY: &str = "PreemptLowerPriority";

pub(super) async fn mutate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if !is_about(request, "", "pods") {
        return Ok(());
    }
    if let Some(old) = old {
        keep(pod, old);
        return Ok(());
    }
    let spec = pod.object_at("spec");
    let named = spec
        .get("priorityClassName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let class = if named.is_empty() {
        let class = global_default(resources).await?;
        if let Some(class) = &class {
            spec.insert("priorityClassName", Value::from(meta_text(class, "name")));
        }
        class
    } else {
        match resources.find(CLASSES, "", named).await? {
            Some(class) => Some(class),
            None => {
                let detail = format!("no PriorityClass with name {named} was found");
                return Err(forbidden(request, pod, detail));
            }
        }
    };
    let priority = class.as_ref().map_or(0, number);
    let policy = match &class {
        Some(class) => class.get("preemptionPolicy").and_then(Value::as_str),
        None => Some(USUAL_POLICY),
    };
    resolve(pod, priority, policy).map_err(|detail| forbidden(request, pod, detail))
}

/// Writes what the class says; what the pod says already must agree.
fn resolve(pod: &mut Map, priority: i64, policy: Option<&str>) -> Result<(), String> {
    let spec = pod.object_at("spec");
    let said = spec.get("priority").and_then(Value::as_int);
    if let Some(said) = said.filter(|said| *said != priority) {
        return Err(format!(
            "the integer value of priority ({said}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        ));
    }
    spec.insert("priority", Value::Int(priority));
    let Some(policy) = policy else {
        return Ok(());
    };
    let said = spec.get("preemptionPolicy").and_then(Value::as_str);
    if let Some(said) = said.filter(|said| *said != policy) {
        return Err(format!(
            "the string value of PreemptionPolicy ({said}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    spec.insert("preemptionPolicy", Value::from(policy));
    Ok(())
}

/// A client that leaves out what was resolved at the start does not take it away.
fn keep(pod: &mut Map, old: &Map) {
    let Some(old) = old.get("spec") else { return };
    let spec = pod.object_at("spec");
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.get(field).filter(|_| !spec.contains_key(field)) {
            spec.insert(field, value.clone());
        }
    }
}

/// There is at most one class that pods without a class get.
pub(super) async fn validate(
    resources: &Resources,
    request: &Request<'_>,
    class: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let (group, _, resource) = CLASSES;
    if !is_about(request, group, resource) || !is_default(class) {
        return Ok(());
    }
    let Some(default) = global_default(resources).await? else {
        return Ok(());
    };
    let name = meta_text(&default, "name");
    if old.is_some() && name == meta_text(class, "name") {
        return Ok(());
    }
    let detail =
        format!("PriorityClass {name} is already marked as default. Only one default can exist");
    Err(forbidden(request, class, detail))
}

/// The default class; of several, the lowest.
async fn global_default(resources: &Resources) -> Result<Option<Map>, Error> {
    let classes = resources.find_all(CLASSES, "").await?;
    Ok(classes.into_iter().filter(is_default).min_by_key(number))
}

fn is_default(class: &Map) -> bool {
    class.get("globalDefault").and_then(Value::as_bool) == Some(true)
}

fn number(class: &Map) -> i64 {
    class.get("value").and_then(Value::as_int).unwrap_or(0)
}
