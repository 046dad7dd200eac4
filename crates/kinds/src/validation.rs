//! What upstream checks in code, kind by kind, on the value tree.
//!
//! Rules: a checker takes what it looks at, the path to it and the list of mistakes. It allocates
//! nothing while all is well, it never stops at the first mistake, and the order of mistakes is
//! upstream's. The tree has been decoded and defaulted, so a value has its field's type; absent,
//! `null` and empty mean the same here unless a checker says otherwise.

mod admission;
mod apps;
mod autoscaling;
mod batch;
pub(crate) mod check;
mod claims;
mod conditions;
mod core;
pub(crate) mod definitions;
mod devices;
mod endpoints;
mod events;
mod flow;
mod internal;
pub mod meta;
mod networking;
mod node;
mod pem;
mod pod;
mod print;
mod quantities;
mod quota;
mod rbac;
pub(crate) mod read;
mod requests;
mod reviews;
mod service;
mod smaller;
mod storage;
mod warnings;

use object::Map;
use object::field::FieldError;

pub use pod::allow_privileged;
pub use reviews::token_request;
pub use service::service_addresses;
pub use warnings::Warnings;
pub(crate) use warnings::of as warnings_of;

/// Reports every mistake of an object: the new one, the stored one when it is an update, and the
/// subresource that is written (empty for the object itself).
pub type Validate = fn(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError>;

/// What is checked of a kind beyond its metadata.
pub(crate) fn of(group: &str, kind: &str) -> Validate {
    match group {
        "" => core_group(kind),
        "admissionregistration.k8s.io" => admission_group(kind),
        "apiextensions.k8s.io" => definitions::definition,
        "apiregistration.k8s.io" => definitions::api_service,
        "apps" => apps_group(kind),
        "authorization.k8s.io" => authorization_group(kind),
        "autoscaling" => autoscaling::validate,
        "batch" => match kind {
            "CronJob" => batch::cron_job,
            _ => batch::job,
        },
        "certificates.k8s.io" => requests::validate,
        "coordination.k8s.io" => smaller::lease,
        "discovery.k8s.io" => endpoints::slice,
        "events.k8s.io" => events::validate,
        "flowcontrol.apiserver.k8s.io" => match kind {
            "FlowSchema" => flow::schema,
            _ => flow::level,
        },
        "networking.k8s.io" => networking_group(kind),
        "node.k8s.io" => node::runtime_class,
        "policy" => smaller::disruption_budget,
        "rbac.authorization.k8s.io" => rbac_group(kind),
        "resource.k8s.io" => resource_group(kind),
        "scheduling.k8s.io" => smaller::priority_class,
        "storage.k8s.io" => storage_group(kind),
        _ => nothing,
    }
}

/// Checks what a client asks of a scale subresource.
pub fn scale(scale: &Map) -> Vec<FieldError> {
    apps::scale(scale)
}

fn nothing(_: &Map, _: Option<&Map>, _: &str) -> Vec<FieldError> {
    Vec::new()
}

fn core_group(kind: &str) -> Validate {
    match kind {
        "Binding" => pod::binding,
        "ConfigMap" => core::config_map,
        "Endpoints" => endpoints::validate,
        "Event" => events::core,
        "LimitRange" => quota::limit_range,
        "Namespace" => core::namespace,
        "Node" => node::validate,
        "PersistentVolume" => storage::volume,
        "PersistentVolumeClaim" => claims::validate,
        "Pod" => pod::validate,
        "PodTemplate" => apps::pod_template,
        "ReplicationController" => apps::replication_controller,
        "ResourceQuota" => quota::resource_quota,
        "Secret" => core::secret,
        "Service" => service::validate,
        "ServiceAccount" => core::service_account,
        _ => nothing,
    }
}

fn admission_group(kind: &str) -> Validate {
    match kind {
        "MutatingAdmissionPolicy" => admission::mutating_policy,
        "MutatingAdmissionPolicyBinding" => admission::mutating_policy_binding,
        "ValidatingAdmissionPolicy" => admission::validating_policy,
        "ValidatingAdmissionPolicyBinding" => admission::validating_policy_binding,
        _ => admission::webhooks,
    }
}

fn apps_group(kind: &str) -> Validate {
    match kind {
        "ControllerRevision" => apps::controller_revision,
        "DaemonSet" => apps::daemon_set,
        "Deployment" => apps::deployment,
        "ReplicaSet" => apps::replica_set,
        "StatefulSet" => apps::stateful_set,
        _ => nothing,
    }
}

fn networking_group(kind: &str) -> Validate {
    match kind {
        "IPAddress" => endpoints::ip_address,
        "Ingress" => networking::ingress,
        "IngressClass" => networking::ingress_class,
        "NetworkPolicy" => networking::network_policy,
        "ServiceCIDR" => networking::service_cidr,
        _ => nothing,
    }
}

fn rbac_group(kind: &str) -> Validate {
    match kind {
        "ClusterRole" => rbac::cluster_role,
        "ClusterRoleBinding" => rbac::cluster_role_binding,
        "Role" => rbac::role,
        "RoleBinding" => rbac::role_binding,
        _ => nothing,
    }
}

fn authorization_group(kind: &str) -> Validate {
    match kind {
        "LocalSubjectAccessReview" => |new, _, _| reviews::access("LocalSubjectAccessReview", new),
        "SelfSubjectAccessReview" => |new, _, _| reviews::access("SelfSubjectAccessReview", new),
        "SubjectAccessReview" => |new, _, _| reviews::access("SubjectAccessReview", new),
        _ => nothing,
    }
}

fn resource_group(kind: &str) -> Validate {
    match kind {
        "DeviceClass" => devices::class,
        "ResourceClaim" => devices::claim,
        "ResourceClaimTemplate" => devices::claim_template,
        "ResourceSlice" => devices::slice,
        _ => nothing,
    }
}

fn storage_group(kind: &str) -> Validate {
    match kind {
        "CSIDriver" => storage::csi_driver,
        "CSINode" => storage::csi_node,
        "CSIStorageCapacity" => storage::csi_capacity,
        "StorageClass" => storage::class,
        "VolumeAttachment" => storage::attachment,
        "VolumeAttributesClass" => storage::attributes_class,
        _ => nothing,
    }
}
