//! The admission chain: what may change or refuse a write between the merge and the commit.
//!
//! Plugins run in the order in which [`Chain`] calls them; `plugins.rs` lists all of them.

pub(crate) mod amounts;
mod default_classes;
mod escalation;
mod limit_ranger;
mod lookup;
mod nodes;
mod plugins;
mod pod_security;
mod priority;
mod protection;
mod quota;
mod service_account;
mod tolerations;

use kinds::Catalogue;
use object::Map;

use crate::error::{Cause, Error, Subject};
use crate::meta::meta_text;
use crate::record::Stored;
use crate::{Request, Resources, subject};

pub(crate) use lookup::Place;
use plugins::Plugin;
pub use plugins::{Chain, ChainError};
pub(crate) use quota::{Charge, Meter, QUOTAS, Quotas, Selector};

/// Namespaces that cannot be deleted.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Chain {
    /// Plugins that may change the object; `old` is the stored one when it is an update.
    pub(crate) async fn mutate(
        &self,
        resources: &Resources,
        request: &Request<'_>,
        object: &mut Map,
        old: Option<&Map>,
    ) -> Result<(), Error> {
        if self.has(Plugin::NamespaceLifecycle) && request.kind.namespaced {
            check_namespace(resources, request, object, old).await?;
        }
        if self.has(Plugin::LimitRanger) {
            limit_ranger::mutate(resources, request, object, old).await?;
        }
        if self.has(Plugin::ServiceAccount) {
            service_account::mutate(resources, request, object, old).await?;
        }
        if self.has(Plugin::TaintNodesByCondition) {
            nodes::taint_new(request, object, old);
        }
        if self.has(Plugin::Priority) {
            priority::mutate(resources, request, object, old).await?;
        }
        if self.has(Plugin::DefaultTolerationSeconds) {
            tolerations::mutate(request, object);
        }
        if self.has(Plugin::DefaultStorageClass) {
            default_classes::storage(resources, request, object, old).await?;
        }
        if self.has(Plugin::StorageObjectInUseProtection) {
            protection::mutate(request, object, old);
        }
        if self.has(Plugin::DefaultIngressClass) {
            default_classes::ingress(resources, request, object, old).await?;
        }
        escalation::check(resources, request, object, old).await
    }

    /// Plugins that only look.
    pub(crate) async fn validate(
        &self,
        resources: &Resources,
        request: &Request<'_>,
        object: &Map,
        old: Option<&Map>,
    ) -> Result<(), Error> {
        if self.has(Plugin::LimitRanger) {
            limit_ranger::validate(resources, request, object, old).await?;
        }
        if self.has(Plugin::PodSecurity) {
            pod_security::validate(resources, request, object, old).await?;
        }
        if self.has(Plugin::Priority) {
            priority::validate(resources, request, object, old).await?;
        }
        Ok(())
    }

    /// Charges the write to quotas, after everything that may refuse it.
    pub(crate) async fn charge(
        &self,
        resources: &Resources,
        request: &Request<'_>,
        object: &Map,
        old: Option<&Map>,
    ) -> Result<Charge, Error> {
        if !self.has(Plugin::ResourceQuota) {
            return Ok(Charge::none());
        }
        quota::charge(resources, request, object, old).await
    }

    /// Plugins that may refuse a deletion.
    pub(crate) async fn delete(
        &self,
        _resources: &Resources,
        request: &Request<'_>,
        _object: &Map,
    ) -> Result<(), Error> {
        let namespace = request.kind.resource == "namespaces" && request.kind.group.is_empty();
        if self.has(Plugin::NamespaceLifecycle)
            && namespace
            && IMMORTAL_NAMESPACES.contains(&request.name)
        {
            return Err(Error::Forbidden {
                subject: subject(request.kind, request.name),
                detail: "this namespace may not be deleted".to_owned(),
                causes: Vec::new(),
            });
        }
        Ok(())
    }
}

/// An object needs its namespace, and a new one needs it alive.
async fn check_namespace(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let Some(namespace) = resources.namespace(request.namespace).await? else {
        return Err(Error::NotFound(Subject {
            group: object::Text::default(),
            resource: "namespaces".into(),
            name: request.namespace.into(),
        }));
    };
    if old.is_some() || namespace == Namespace::Alive {
        return Ok(());
    }
    let namespace = request.namespace;
    Err(Error::Forbidden {
        subject: refused_subject(request, object),
        detail: format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        ),
        causes: vec![Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        }],
    })
}

/// Whether a request is about the objects of a resource themselves, not about a subresource.
fn is_about(request: &Request<'_>, group: &str, resource: &str) -> bool {
    request.subresource.is_empty()
        && request.kind.resource == resource
        && request.kind.group == group
}

/// The object of a request as refusals name it.
fn refused_subject(request: &Request<'_>, object: &Map) -> Subject {
    let name = match (meta_text(object, "name"), meta_text(object, "generateName")) {
        ("", "") => "Unknown",
        ("", base) => base,
        (name, _) => name,
    };
    subject(request.kind, name)
}

/// The refusal of a plugin.
fn forbidden(request: &Request<'_>, object: &Map, detail: String) -> Error {
    let subject = refused_subject(request, object);
    Error::Forbidden {
        subject,
        detail,
        causes: Vec::new(),
    }
}

/// What counts about a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Alive,
    Terminating,
}

impl Resources {
    /// The state of a namespace, if it exists. Every write asks, so nothing is parsed.
    async fn namespace(&self, name: &str) -> Result<Option<Namespace>, Error> {
        let kind = Catalogue::builtin().resource("", "v1", "namespaces");
        let kind = kind.expect("namespaces are built in");
        let found = self.store.get(&kind.collection, name).await;
        let found = found.map_err(|error| Error::from_store(error, || subject(kind, name)))?;
        Ok(found.map(|record| match Stored::new(&record.value) {
            Ok(stored) if stored.is_deleting() => Namespace::Terminating,
            _ => Namespace::Alive,
        }))
    }
}
