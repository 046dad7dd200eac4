//! PersistentVolumeClaimResize: a claim grows only where its class can grow it.
//!
//! Contract: `plugin/pkg/admission/storage/persistentvolume/resize/admission.go`.

use object::quantity::Quantity;
use object::{Map, Value};

use super::lookup::Place;
use super::quota::storage_class;
use super::{amounts, forbidden, is_about};
use crate::error::Error;
use crate::{Request, Resources};

const CLASSES: Place = ("storage.k8s.io", "v1", "storageclasses");

pub(super) async fn validate(
    resources: &Resources,
    request: &Request<'_>,
    claim: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let Some(old) = old.filter(|_| is_about(request, "", "persistentvolumeclaims")) else {
        return Ok(());
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    let phase = old
        .get("status")
        .and_then(|status| status.str_at(&["phase"]));
    if phase != Some("Bound") {
        let detail = "Only bound persistent volume claims can be expanded";
        return Err(forbidden(request, claim, detail.to_owned()));
    }
    let (class, before) = (storage_class(claim), storage_class(old));
    let grows = if class.is_empty() || class != before {
        false
    } else {
        let found = resources.find(CLASSES, "", class).await?;
        let grows = found.and_then(|it| it.get("allowVolumeExpansion").and_then(Value::as_bool));
        grows == Some(true)
    };
    if grows {
        return Ok(());
    }
    let detail = "only dynamically provisioned pvc can be resized and the storageclass that \
                  provisions the pvc must support resize";
    Err(forbidden(request, claim, detail.to_owned()))
}

fn size(claim: &Map) -> Quantity {
    let resources = claim.get("spec").and_then(|spec| spec.get("resources"));
    let mut requests = amounts::read(resources.and_then(|it| it.get("requests")));
    requests.remove("storage").unwrap_or_else(Quantity::zero)
}
