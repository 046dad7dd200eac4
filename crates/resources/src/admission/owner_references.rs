//! OwnerReferencesPermissionEnforcement: who ties objects together may also take them apart.
//!
//! Contract: `plugin/pkg/admission/gc/gc_admission.go`. Off by default.

use auth::{Attributes, Decision};
use object::{Map, Value};

use super::forbidden;
use crate::error::Error;
use crate::meta::meta;
use crate::{Request, Resources};

pub(super) async fn validate(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let kind = request.kind;
    let is_status =
        kind.group.is_empty() && kind.resource == "pods" && request.subresource == "status";
    if is_status || owners(object) == old.map(owners).unwrap_or_default() {
        return Ok(());
    }
    if old.is_some() {
        let mut resource = kind.resource.clone();
        if !request.subresource.is_empty() {
            resource.push('/');
            resource.push_str(request.subresource);
        }
        let delete = Attributes::Resource {
            verb: "delete",
            group: &kind.group,
            resource: &resource,
            namespace: request.namespace,
            name: request.name,
        };
        if let Some(reason) = refusal(resources, request, delete).await? {
            let detail =
                format!("cannot set an ownerRef on a resource you can't delete: {reason}, <nil>");
            return Err(forbidden(request, object, detail));
        }
    }
    check_blocking(resources, request, object, old).await
}

/// Who keeps an owner from being deleted needs to be able to finalize it.
async fn check_blocking(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let before = old.map(owners).unwrap_or_default();
    let is_new = |owner: &&Value| {
        let known = before.iter().find(|it| it.get("uid") == owner.get("uid"));
        blocks(owner) && !known.is_some_and(blocks)
    };
    let blocking: Vec<&Value> = owners(object).iter().filter(is_new).collect();
    if blocking.is_empty() {
        return Ok(());
    }
    let anything = Attributes::Resource {
        verb: "update",
        group: "*",
        resource: "*/finalizers",
        namespace: "",
        name: "*",
    };
    if refusal(resources, request, anything).await?.is_none() {
        return Ok(());
    }
    for owner in blocking {
        let text = |field: &str| owner.str_at(&[field]).unwrap_or_default();
        let (version, kind_name) = (text("apiVersion"), text("kind"));
        let catalogue = resources.catalogue();
        let kind = catalogue
            .kinds()
            .iter()
            .find(|it| it.kind == kind_name && it.api_version() == version);
        let Some(kind) = kind else {
            let detail = format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for \
                 APIVersion {version} Kind {kind_name}: no matches for kind \"{kind_name}\" in \
                 version \"{version}\""
            );
            return Err(forbidden(request, object, detail));
        };
        let update = Attributes::Resource {
            verb: "update",
            group: &kind.group,
            resource: &format!("{}/finalizers", kind.resource),
            namespace: if kind.namespaced {
                request.namespace
            } else {
                ""
            },
            name: text("name"),
        };
        if let Some(reason) = refusal(resources, request, update).await? {
            let detail = format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't \
                 set finalizers on: {reason}, <nil>"
            );
            return Err(forbidden(request, object, detail));
        }
    }
    Ok(())
}

/// Why a user may not do something; `None` if they may.
async fn refusal(
    resources: &Resources,
    request: &Request<'_>,
    attributes: Attributes<'_>,
) -> Result<Option<String>, Error> {
    if resources.authorize(request.user, attributes).await? == Decision::Allow {
        return Ok(None);
    }
    let verdict = resources.explain(request.user, attributes).await?;
    Ok(Some(verdict.reason))
}

fn owners(object: &Map) -> &[Value] {
    let owners = meta(object).get("ownerReferences");
    owners.and_then(Value::as_array).unwrap_or_default()
}

fn blocks(owner: &Value) -> bool {
    owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
}
