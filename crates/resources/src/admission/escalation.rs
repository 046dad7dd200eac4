//! Nobody grants what they do not hold.
//!
//! Who writes a role needs all of its rules or the verb `escalate` on it; who writes a binding
//! needs all rules of its role or the verb `bind` on that. This is no plugin that can be switched
//! off: without it the right to write roles would be the right to everything. It comes after
//! everything that changes the object and before validation. Contract: upstream's
//! `registry/rbac/*/policybased`.

use auth::{Attributes, Decision, RoleRef, Rule};
use object::{Map, Value};

use crate::error::{Error, Subject};
use crate::meta::{meta, meta_text};
use crate::roles::{self, GROUP};
use crate::{Request, Resources, subject};

/// Refuses to write a role or binding that grants more than its writer holds.
pub(crate) async fn check(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let ours = request.kind.group == GROUP;
    if !ours || request.user.is_master() || old.is_some_and(|old| is_collection(object, old)) {
        return Ok(());
    }
    match request.kind.resource.as_str() {
        "roles" | "clusterroles" => check_role(resources, request, object, old).await,
        "rolebindings" | "clusterrolebindings" => check_binding(resources, request, object).await,
        _ => Ok(()),
    }
}

async fn check_role(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let escalate = Attributes::Resource {
        verb: "escalate",
        group: GROUP,
        resource: &request.kind.resource,
        namespace: request.namespace,
        name: request.name,
    };
    if resources.authorize(request.user, escalate).await? == Decision::Allow {
        return Ok(());
    }
    check_grant(resources, request, object, &roles::rules_of(object)).await?;
    // A role that gathers others can come to hold anything.
    if gathers(object) || old.is_some_and(gathers) {
        let everything = check_grant(resources, request, object, &full_authority()).await;
        return everything.map_err(|_| {
            let text = "must have cluster-admin privileges to use the aggregationRule";
            forbidden(request, object, text.to_owned())
        });
    }
    Ok(())
}

async fn check_binding(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
) -> Result<(), Error> {
    let Some(role) = roles::role_of(object) else {
        return Ok(());
    };
    let (resource, name) = match &role {
        RoleRef::Role(name) => ("roles", name),
        RoleRef::ClusterRole(name) => ("clusterroles", name),
    };
    let group = object
        .get("roleRef")
        .and_then(|role| role.str_at(&["apiGroup"]));
    let bind = Attributes::Resource {
        verb: "bind",
        group: group.unwrap_or_default(),
        resource,
        namespace: request.namespace,
        name,
    };
    if resources.authorize(request.user, bind).await? == Decision::Allow {
        return Ok(());
    }
    if matches!(role, RoleRef::Role(_)) && request.namespace.is_empty() {
        let text = "Namespace parameter required.";
        return Err(Error::BadRequest(text.to_owned()));
    }
    let rules = resources.rules().await?;
    match rules.role_rules(&role, request.namespace) {
        Some(granted) => check_grant(resources, request, object, granted).await,
        // The role is missing, and the answer names it as one of the request's resource.
        None => Err(Error::NotFound(Subject {
            name: name.clone(),
            ..subject(request.kind, "")
        })),
    }
}

async fn check_grant(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    granted: &[Rule],
) -> Result<(), Error> {
    let resource = format!("{}.{GROUP}", request.kind.resource);
    let rules = resources.rules().await?;
    rules
        .check_grant(request.user, request.namespace, granted, &resource)
        .map_err(|text| forbidden(request, object, text))
}

fn forbidden(request: &Request<'_>, object: &Map, detail: String) -> Error {
    let subject = subject(request.kind, meta_text(object, "name"));
    Error::Forbidden {
        subject,
        detail,
        causes: Vec::new(),
    }
}

fn gathers(object: &Map) -> bool {
    let rule = object.get("aggregationRule");
    let selectors = rule.and_then(|rule| rule.get("clusterRoleSelectors"));
    selectors
        .and_then(Value::as_array)
        .is_some_and(|selectors| !selectors.is_empty())
}

/// What `cluster-admin` holds.
fn full_authority() -> [Rule; 2] {
    let all = || vec!["*".into()];
    [
        Rule {
            groups: all(),
            resources: all(),
            verbs: all(),
            ..Rule::default()
        },
        Rule {
            paths: all(),
            verbs: all(),
            ..Rule::default()
        },
    ]
}

/// Whether an update only does what garbage collection needs: owners and finalizers.
pub(super) fn is_collection(object: &Map, old: &Map) -> bool {
    let rest = |object: &Map| {
        let mut rest = object.clone();
        let mut metadata = meta(object).clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
            metadata.remove(field);
        }
        rest.insert("metadata", Value::Object(metadata));
        rest
    };
    rest(object) == rest(old)
}
