//! PodTopologyLabels: a pod that is made for a node carries the labels of where that is.
//!
//! Pods that a scheduler places get them with their binding.

use object::{Map, Value};

use super::is_about;
use super::references::spec_of;
use crate::error::Error;
use crate::meta::meta_mut;
use crate::{Request, Resources};

pub(super) async fn mutate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if old.is_some() || !is_about(request, "", "pods") {
        return Ok(());
    }
    let node = spec_of(pod).and_then(|spec| spec.get("nodeName"));
    let node = node.and_then(Value::as_str).unwrap_or_default();
    if node.is_empty() {
        return Ok(());
    }
    for (key, value) in resources.topology(node).await? {
        meta_mut(pod).object_at("labels").insert(key, value);
    }
    Ok(())
}
