//! NodeRestriction for tokens: a node asks for tokens of the pods it runs, and for no others.
//!
//! Contract: `admitServiceAccount` of `plugin/pkg/admission/noderestriction/admission.go`.

use auth::{Attributes, Decision};
use object::{Map, Value};

use super::lookup::Place;
use crate::error::{Error, Subject};
use crate::meta::meta_text;
use crate::{Request, Resources, subject};

const PODS: Place = ("", "v1", "pods");
const CLAIMS: Place = ("", "v1", "persistentvolumeclaims");
const VOLUMES: Place = ("", "v1", "persistentvolumes");
const DRIVERS: Place = ("storage.k8s.io", "v1", "csidrivers");
/// The verb that lets a node ask for tokens for an audience which no volume of its pod names.
const ANY_AUDIENCE: &str = "request-serviceaccounts-token-audience";

/// Checks a token that a node asks for.
pub(super) async fn check(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    node: &str,
) -> Result<(), Error> {
    let refused = |detail: &str| Error::Forbidden {
        subject: subject(request.kind, request.name),
        detail: detail.to_owned(),
        causes: Vec::new(),
    };
    let spec = object.get("spec");
    let bound = spec.and_then(|spec| spec.get("boundObjectRef"));
    let text = |field: &str| {
        let text = bound.and_then(|bound| bound.str_at(&[field]));
        text.unwrap_or_default()
    };
    let name = text("name");
    if (text("apiVersion"), text("kind")) != ("v1", "Pod") || name.is_empty() {
        return Err(refused("node requested token not bound to a pod"));
    }
    let uid = text("uid");
    if uid.is_empty() {
        let detail = "node requested token with a pod binding without a uid";
        return Err(refused(detail));
    }
    let Some(pod) = resources.find(PODS, request.namespace, name).await? else {
        return Err(Error::NotFound(Subject {
            resource: "pods".into(),
            name: name.into(),
            ..Subject::default()
        }));
    };
    if uid != meta_text(&pod, "uid") {
        return Err(refused(&format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        )));
    }
    let place = pod.get("spec").and_then(|spec| spec.str_at(&["nodeName"]));
    if place != Some(node) {
        let detail = "node requested token bound to a pod scheduled on a different node";
        return Err(refused(detail));
    }
    let audiences = spec.and_then(|spec| spec.get("audiences"));
    let audience = match audiences.and_then(Value::as_array).unwrap_or_default() {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return Err(refused("node may only request 0 or 1 audiences")),
    };
    check_audience(resources, request, &pod, audience)
        .await?
        .map_err(|detail| refused(&detail))
}

/// Whether a volume of the pod names the audience, or the node may ask for any.
async fn check_audience(
    resources: &Resources,
    request: &Request<'_>,
    pod: &Map,
    audience: &str,
) -> Result<Result<(), String>, Error> {
    let volumes = pod.get("spec").and_then(|spec| spec.get("volumes"));
    for volume in volumes.and_then(Value::as_array).unwrap_or_default() {
        if projects(volume, audience) {
            return Ok(Ok(()));
        }
        let driver = driver(resources, request.namespace, pod, volume).await?;
        if let Some(driver) = driver
            && serves(resources, &driver, audience).await?
        {
            return Ok(Ok(()));
        }
    }
    let any = Attributes::Resource {
        verb: ANY_AUDIENCE,
        group: "",
        resource: audience,
        namespace: request.namespace,
        name: request.name,
    };
    if resources.authorize(request.user, any).await? == Decision::Allow {
        return Ok(Ok(()));
    }
    Ok(Err(format!(
        "audience {} not found in pod spec volume, {} is not authorized to request tokens for this \
         audience",
        object::field::quote(audience),
        request.user.name
    )))
}

fn projects(volume: &Value, audience: &str) -> bool {
    let sources = volume.get("projected").and_then(|it| it.get("sources"));
    let sources = sources.and_then(Value::as_array).unwrap_or_default();
    let tokens = sources
        .iter()
        .filter_map(|it| it.get("serviceAccountToken"));
    tokens
        .map(|token| token.str_at(&["audience"]).unwrap_or_default())
        .any(|named| named == audience)
}

/// The driver behind a volume, directly or through a claim.
async fn driver(
    resources: &Resources,
    namespace: &str,
    pod: &Map,
    volume: &Value,
) -> Result<Option<String>, Error> {
    if let Some(driver) = volume.str_at(&["csi", "driver"]) {
        return Ok(Some(driver.to_owned()));
    }
    let claim = match volume.str_at(&["persistentVolumeClaim", "claimName"]) {
        Some(claim) => claim.to_owned(),
        None if volume.get("ephemeral").is_some() => {
            let name = volume.str_at(&["name"]).unwrap_or_default();
            format!("{}-{name}", meta_text(pod, "name"))
        }
        None => return Ok(None),
    };
    let Some(claim) = resources.find(CLAIMS, namespace, &claim).await? else {
        return Ok(None);
    };
    let name = claim
        .get("spec")
        .and_then(|spec| spec.str_at(&["volumeName"]));
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let volume = resources.find(VOLUMES, "", name).await?;
    let spec = volume.as_ref().and_then(|volume| volume.get("spec"));
    let driver = spec.and_then(|spec| spec.str_at(&["csi", "driver"]));
    Ok(driver.map(str::to_owned))
}

/// Whether a driver wants tokens for the audience.
async fn serves(resources: &Resources, driver: &str, audience: &str) -> Result<bool, Error> {
    let Some(driver) = resources.find(DRIVERS, "", driver).await? else {
        return Ok(false);
    };
    let wanted = driver.get("spec").and_then(|it| it.get("tokenRequests"));
    let wanted = wanted.and_then(Value::as_array).unwrap_or_default();
    let mut wanted = wanted
        .iter()
        .map(|it| it.str_at(&["audience"]).unwrap_or_default());
    Ok(wanted.any(|named| named == audience))
}
