//! DenyServiceExternalIPs: services get no new addresses of their own choice.
//!
//! Contract: `plugin/pkg/admission/network/denyserviceexternalips/admission.go`. Off by default.

use object::{Map, Value};

use super::{forbidden, is_about};
use crate::Request;
use crate::error::Error;

pub(super) fn validate(
    request: &Request<'_>,
    service: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if !is_about(request, "", "services") {
        return Ok(());
    }
    fn addresses(service: &Map) -> &[Value] {
        let addresses = service.get("spec").and_then(|spec| spec.get("externalIPs"));
        addresses.and_then(Value::as_array).unwrap_or_default()
    }
    let known = old.map(addresses).unwrap_or_default();
    if addresses(service).iter().all(|it| known.contains(it)) {
        return Ok(());
    }
    let detail = "Use of external IPs is denied by admission control";
    Err(forbidden(request, service, detail.to_owned()))
}
