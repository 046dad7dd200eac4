//! LimitPodHardAntiAffinityTopology: pods keep others off their node, never off a whole zone.
//!
//! Contract: `plugin/pkg/admission/antiaffinity/admission.go`. Off by default.

use object::{Map, Value};

use super::references::spec_of;
use super::{forbidden, is_about};
use crate::Request;
use crate::error::Error;

const HOST: &str = "kubernetes.io/hostname";

pub(super) fn validate(request: &Request<'_>, pod: &Map) -> Result<(), Error> {
    if !is_about(request, "", "pods") {
        return Ok(());
    }
    let terms = spec_of(pod).and_then(|spec| {
        spec.get("affinity")?.at(&[
            "podAntiAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution",
        ])
    });
    let terms = terms.and_then(Value::as_array).unwrap_or_default();
    let mut keys = terms
        .iter()
        .map(|term| term.str_at(&["topologyKey"]).unwrap_or_default());
    let Some(key) = keys.find(|key| *key != HOST) else {
        return Ok(());
    };
    let detail = format!(
        "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key \
         {HOST} is allowed"
    );
    Err(forbidden(request, pod, detail))
}
