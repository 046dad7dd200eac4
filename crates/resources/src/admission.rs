//! The admission chain: what may change or refuse a write between the merge and the commit.
//!
//! Plugins run in the order in which [`Chain`] calls them; `plugins.rs` lists all of them.

mod admin_access;
mod always_pull_images;
pub(crate) mod amounts;
mod anti_affinity;
mod certificates;
mod claim_resize;
mod default_classes;
mod escalation;
mod extended_tolerations;
mod external_ips;
mod limit_ranger;
mod lookup;
mod namespaces;
mod node_restriction;
mod node_selector;
mod node_tokens;
mod nodes;
mod owner_references;
mod plugins;
mod pod_resize;
mod pod_security;
mod priority;
mod protection;
mod quota;
mod references;
mod runtime_class;
mod service_account;
mod toleration_restriction;
mod tolerations;
mod topology;

use auth::User;
use object::Map;

use crate::error::{Error, Subject};
use crate::meta::meta_text;
use crate::{Request, Resources, subject};

pub(crate) use lookup::Place;
pub(crate) use plugins::Plugin;
pub use plugins::{Chain, ChainError};
pub(crate) use quota::{Charge, Meter, QUOTAS, Quotas, Selector};

impl Chain {
    /// Plugins that may change the object; `old` is the stored one when it is an update.
    pub(crate) async fn mutate(
        &self,
        resources: &Resources,
        request: &Request<'_>,
        object: &mut Map,
        old: Option<&Map>,
    ) -> Result<(), Error> {
        if self.has(Plugin::NamespaceAutoProvision) {
            namespaces::provide(resources, request, old).await?;
        }
        if self.has(Plugin::NamespaceLifecycle) {
            namespaces::check_alive(resources, request, object, old).await?;
        }
        if self.has(Plugin::LimitRanger) {
            limit_ranger::mutate(resources, request, object, old).await?;
        }
        if self.has(Plugin::ServiceAccount) {
            service_account::mutate(resources, request, object, old).await?;
        }
        if self.has(Plugin::NodeRestriction) {
            node_restriction::check(resources, request, object, old).await?;
        }
        if self.has(Plugin::TaintNodesByCondition) {
            nodes::taint_new(request, object, old);
        }
        if self.has(Plugin::AlwaysPullImages) {
            always_pull_images::mutate(request, object, old);
        }
        if self.has(Plugin::PodNodeSelector) {
            node_selector::mutate(resources, request, object, old).await?;
        }
        if self.has(Plugin::Priority) {
            priority::mutate(resources, request, object, old).await?;
        }
        if self.has(Plugin::DefaultTolerationSeconds) {
            tolerations::mutate(request, object);
        }
        if self.has(Plugin::PodTolerationRestriction) {
            toleration_restriction::mutate(resources, request, object, old).await?;
        }
        if self.has(Plugin::ExtendedResourceToleration) {
            extended_tolerations::mutate(request, object);
        }
        if self.has(Plugin::DefaultStorageClass) {
            default_classes::storage(resources, request, object, old).await?;
        }
        if self.has(Plugin::StorageObjectInUseProtection) {
            protection::mutate(request, object, old);
        }
        if self.has(Plugin::RuntimeClass) {
            runtime_class::mutate(resources, request, object, old).await?;
        }
        if self.has(Plugin::DefaultIngressClass) {
            default_classes::ingress(resources, request, object, old).await?;
        }
        if self.has(Plugin::PodTopologyLabels) {
            topology::mutate(resources, request, object, old).await?;
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
        if self.has(Plugin::NamespaceExists) {
            namespaces::check_exists(resources, request).await?;
        }
        if self.has(Plugin::LimitPodHardAntiAffinityTopology) {
            anti_affinity::validate(request, object)?;
        }
        if self.has(Plugin::LimitRanger) {
            limit_ranger::validate(resources, request, object, old).await?;
        }
        if self.has(Plugin::ServiceAccount) {
            service_account::validate(resources, request, object, old).await?;
        }
        if self.has(Plugin::AlwaysPullImages) {
            always_pull_images::validate(request, object, old)?;
        }
        if self.has(Plugin::PodSecurity) {
            pod_security::validate(resources, request, object, old).await?;
        }
        if self.has(Plugin::Priority) {
            priority::validate(resources, request, object, old).await?;
        }
        if self.has(Plugin::PodTolerationRestriction) {
            toleration_restriction::validate(resources, request, object).await?;
        }
        if self.has(Plugin::OwnerReferencesPermissionEnforcement) {
            owner_references::validate(resources, request, object, old).await?;
        }
        if self.has(Plugin::PersistentVolumeClaimResize) {
            claim_resize::validate(resources, request, object, old).await?;
        }
        if self.has(Plugin::RuntimeClass) {
            runtime_class::validate(resources, request, object, old).await?;
        }
        if self.has(Plugin::CertificateApproval) {
            certificates::approval(resources, request, object, old).await?;
        }
        if self.has(Plugin::CertificateSigning) {
            certificates::signing(resources, request, object, old).await?;
        }
        if self.has(Plugin::ClusterTrustBundleAttest) {
            certificates::attest(resources, request, object, old).await?;
        }
        if self.has(Plugin::CertificateSubjectRestriction) {
            certificates::subject_restriction(request, object, old)?;
        }
        if self.has(Plugin::DenyServiceExternalIPs) {
            external_ips::validate(request, object, old)?;
        }
        if self.has(Plugin::PodResizeValidator) {
            pod_resize::validate(resources, request, object, old).await?;
        }
        Ok(())
    }

    /// What comes last, after everything else that may refuse the write: quotas are charged.
    pub(crate) async fn charge(
        &self,
        resources: &Resources,
        request: &Request<'_>,
        object: &Map,
        old: Option<&Map>,
    ) -> Result<Charge, Error> {
        if self.has(Plugin::AlwaysDeny) {
            deny(request, object)?;
        }
        if !self.has(Plugin::ResourceQuota) {
            return Ok(Charge::none());
        }
        quota::charge(resources, request, object, old).await
    }

    /// Plugins that look at where something is sent that is never stored.
    pub(crate) async fn receive(
        &self,
        resources: &Resources,
        request: &Request<'_>,
        object: &Map,
    ) -> Result<(), Error> {
        if self.has(Plugin::NamespaceLifecycle) {
            namespaces::check_alive(resources, request, object, None).await?;
        }
        Ok(())
    }

    /// Plugins that may refuse a deletion.
    pub(crate) async fn delete(
        &self,
        resources: &Resources,
        request: &Request<'_>,
        object: &Map,
    ) -> Result<(), Error> {
        if self.has(Plugin::NamespaceLifecycle) {
            namespaces::check_deletable(request)?;
        }
        if self.has(Plugin::NamespaceExists) {
            namespaces::check_exists(resources, request).await?;
        }
        if self.has(Plugin::NodeRestriction) {
            node_restriction::check_deletion(request, object)?;
        }
        if self.has(Plugin::AlwaysDeny) {
            deny(request, object)?;
        }
        Ok(())
    }
}

/// Refuses everything, but not what the server itself writes: it could not start.
fn deny(request: &Request<'_>, object: &Map) -> Result<(), Error> {
    if request.user.name == User::server().name {
        return Ok(());
    }
    let detail = "admission control is denying all modifications";
    Err(forbidden(request, object, detail.to_owned()))
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
