//! PodNodeSelector: the pods of a namespace go to the nodes that the namespace names.
//!
//! Contract: `plugin/pkg/admission/podnodeselector/admission.go`. Off by default; there are no
//! defaults for the whole cluster.

use object::{Map, Text, Value};

use super::is_about;
use super::lookup::Place;
use crate::error::Error;
use crate::meta::{meta, meta_text};
use crate::{Request, Resources, subject};

const NAMESPACES: Place = ("", "v1", "namespaces");
const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

pub(super) async fn mutate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if old.is_some() || !is_about(request, "", "pods") {
        return Ok(());
    }
    let namespace = resources.find(NAMESPACES, "", request.namespace).await?;
    let annotation = namespace.as_ref().and_then(|namespace| {
        let annotations = meta(namespace).get("annotations")?;
        annotations.str_at(&[ANNOTATION])
    });
    let wanted = labels(annotation.unwrap_or_default()).map_err(Error::BadRequest)?;
    for (key, value) in wanted {
        let selector = pod.object_at("spec").object_at("nodeSelector");
        let own = selector.get(&key).and_then(Value::as_str);
        if own.is_some_and(|own| *own != value) {
            let detail = "pod node label selector conflicts with its namespace node label selector";
            return Err(Error::Forbidden {
                subject: subject(request.kind, meta_text(pod, "name")),
                detail: detail.to_owned(),
                causes: Vec::new(),
            });
        }
        selector.insert(key, Value::String(value));
    }
    Ok(())
}

/// Reads `a=b,c=d`.
fn labels(text: &str) -> Result<Vec<(Text, Text)>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let pair = |part: &str| {
        let parts: Vec<&str> = part.split('=').collect();
        match parts.as_slice() {
            [key, value] => Ok((key.trim().into(), value.trim().into())),
            _ => Err(format!("invalid selector: [{}]", parts.join(" "))),
        }
    };
    text.split(',').map(pair).collect()
}
