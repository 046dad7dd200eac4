//! PodTolerationRestriction: a namespace says what its pods tolerate, and what they may tolerate.
//!
//! Contract: `plugin/pkg/admission/podtolerationrestriction/admission.go`. Off by default; there
//! are no lists for the whole cluster.

use object::{Map, Value, json, value};

use super::lookup::Place;
use super::references::spec_of;
use super::{amounts, is_about, tolerations};
use crate::error::Error;
use crate::meta::meta;
use crate::{Request, Resources};

const NAMESPACES: Place = ("", "v1", "namespaces");
const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const ALLOWED: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

pub(super) async fn mutate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if !is_about(request, "", "pods") {
        return Ok(());
    }
    let mut extra = Vec::new();
    if old.is_none() {
        extra = listed(resources, request.namespace, DEFAULTS).await?;
    }
    if spec_of(pod).is_some_and(|spec| !amounts::is_best_effort(spec)) {
        extra.push(value!({
            "key": "node.kubernetes.io/memory-pressure",
            "operator": "Exists",
            "effect": "NoSchedule",
        }));
    }
    if extra.is_empty() {
        return Ok(());
    }
    let spec = pod.object_at("spec");
    let own = spec.get("tolerations").and_then(Value::as_array);
    let merged = tolerations::merge(own.unwrap_or_default(), &extra);
    spec.insert("tolerations", Value::Array(merged));
    Ok(())
}

pub(super) async fn validate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &Map,
) -> Result<(), Error> {
    if !is_about(request, "", "pods") {
        return Ok(());
    }
    let own = spec_of(pod).and_then(|spec| spec.get("tolerations"));
    let own = own.and_then(Value::as_array).unwrap_or_default();
    let allowed = listed(resources, request.namespace, ALLOWED).await?;
    let is_allowed = |it: &Value| {
        allowed
            .iter()
            .any(|allowed| tolerations::is_superset(allowed, it))
    };
    if allowed.is_empty() || own.iter().all(is_allowed) {
        return Ok(());
    }
    let text = "pod tolerations (possibly merged with namespace default tolerations) conflict with \
                its namespace whitelist";
    Err(Error::BadRequest(text.to_owned()))
}

/// The tolerations in an annotation of a namespace.
async fn listed(
    resources: &Resources,
    namespace: &str,
    annotation: &str,
) -> Result<Vec<Value>, Error> {
    let namespace = resources.find(NAMESPACES, "", namespace).await?;
    let text = namespace.as_ref().and_then(|namespace| {
        let annotations = meta(namespace).get("annotations")?;
        annotations.str_at(&[annotation])
    });
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(Vec::new());
    };
    match json::parse(text.as_bytes()) {
        Ok(Value::Array(tolerations)) => Ok(tolerations),
        _ => Err(Error::BadRequest(format!(
            "the annotation {annotation} of the namespace is no list of tolerations"
        ))),
    }
}
