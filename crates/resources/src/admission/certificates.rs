//! CertificateApproval, CertificateSigning, ClusterTrustBundleAttest and
//! CertificateSubjectRestriction: who may speak for a signer.
//!
//! Contract: `plugin/pkg/admission/certificates` and `pkg/certauthorization`.

use auth::{Attributes, Decision, SigningRequest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use object::{Map, Value};

use super::{forbidden, is_about};
use crate::error::Error;
use crate::{Request, Resources};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

/// Who approves or denies a request needs the verb `approve` on its signer.
pub(super) async fn approval(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let Some(old) = old.filter(|_| is_request(request, "approval")) else {
        return Ok(());
    };
    let signer = signer(old);
    if resources.may_for_signer(request, "approve", signer).await? {
        return Ok(());
    }
    let detail = format!("user not permitted to approve requests with signerName \"{signer}\"");
    Err(forbidden(request, object, detail))
}

/// Who issues the certificate needs the verb `sign` on its signer.
pub(super) async fn signing(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let Some(old) = old.filter(|_| is_request(request, "status")) else {
        return Ok(());
    };
    let part = |object: &Map, field: &str| {
        let value = object.get("status").and_then(|status| status.get(field));
        value.cloned().unwrap_or_default()
    };
    let is_same = |field: &str| part(object, field) == part(old, field);
    let signer = signer(old);
    let unchanged = is_same("certificate") && is_same("conditions");
    if unchanged || resources.may_for_signer(request, "sign", signer).await? {
        return Ok(());
    }
    let detail = format!("user not permitted to sign requests with signerName \"{signer}\"");
    Err(forbidden(request, object, detail))
}

/// Who publishes whom a signer trusts needs the verb `attest` on it.
pub(super) async fn attest(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if request.kind.group != GROUP || request.kind.resource != "clustertrustbundles" {
        return Ok(());
    }
    let signer = signer(object);
    let unchanged = old.is_some_and(|old| super::escalation::is_collection(object, old));
    if signer.is_empty() || unchanged {
        return Ok(());
    }
    if resources.may_for_signer(request, "attest", signer).await? {
        return Ok(());
    }
    let detail = format!("user not permitted to attest for signerName \"{signer}\"");
    Err(forbidden(request, object, detail))
}

/// Nobody becomes a master by a certificate of the signer for clients.
pub(super) fn subject_restriction(
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if old.is_some() || !is_about(request, GROUP, REQUESTS) || signer(object) != CLIENT_SIGNER {
        return Ok(());
    }
    let asked = signing_request(object).map_err(|error| {
        let detail = format!("failed to parse CSR: {error}");
        forbidden(request, object, detail)
    })?;
    if asked.organizations.iter().any(|group| group == MASTERS) {
        let detail = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
        return Err(forbidden(request, object, detail));
    }
    Ok(())
}

/// What a signing request asks a certificate for.
pub(super) fn signing_request(object: &Map) -> Result<SigningRequest, String> {
    let request = object
        .get("spec")
        .and_then(|spec| spec.str_at(&["request"]));
    let request = STANDARD.decode(request.unwrap_or_default());
    SigningRequest::parse(&request.unwrap_or_default())
}

fn is_request(request: &Request<'_>, subresource: &str) -> bool {
    let kind = request.kind;
    kind.group == GROUP && kind.resource == REQUESTS && request.subresource == subresource
}

/// The signer that an object is for.
pub(super) fn signer(object: &Map) -> &str {
    let spec = object.get("spec").and_then(Value::as_object);
    let signer = spec.and_then(|spec| spec.get("signerName"));
    signer.and_then(Value::as_str).unwrap_or_default()
}

impl Resources {
    /// Whether a user may do something for a signer, or for all of its domain.
    async fn may_for_signer(
        &self,
        request: &Request<'_>,
        verb: &str,
        signer: &str,
    ) -> Result<bool, Error> {
        let domain = signer.split('/').next().unwrap_or_default();
        for name in [signer, &format!("{domain}/*")] {
            let attributes = Attributes::Resource {
                verb,
                group: GROUP,
                resource: "signers",
                namespace: "",
                name,
            };
            if self.authorize(request.user, attributes).await? == Decision::Allow {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
