//! The rules of every kind, one file per API group, and one for custom resources.
//!
//! Each file is a table from kind to [`Rules`], followed by the functions that only its kinds need.
//! Everything follows the strategies of kube-apiserver v1.36 with its default feature gates.

mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apps;
mod authentication;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
mod core;
mod custom;
mod disabled;
mod discovery;
mod events;
mod flowcontrol;
mod networking;
mod node;
mod pod;
mod policy;
mod rbac;
mod resource;
mod scheduling;
mod service;
mod storage;
mod strategy;

use crate::{Rules, validation};
pub use apiregistration::api_priority;
pub use custom::{Status, custom_rules};

/// The rules of a built-in kind; those of a kind that has none of its own are the default.
pub fn rules(group: &str, version: &str, kind: &str) -> Rules {
    Rules {
        validate: validation::of(group, kind),
        warnings: validation::warnings_of(group, kind),
        ..strategy_of(group, version, kind)
    }
}

fn strategy_of(group: &str, version: &str, kind: &str) -> Rules {
    match group {
        "" => core::rules(kind),
        "admissionregistration.k8s.io" => admissionregistration::rules(kind),
        "apiextensions.k8s.io" => apiextensions::rules(kind),
        "apiregistration.k8s.io" => apiregistration::rules(kind),
        "apps" => apps::rules(kind),
        "authentication.k8s.io" => authentication::rules(kind),
        "autoscaling" => autoscaling::rules(version, kind),
        "batch" => batch::rules(kind),
        "certificates.k8s.io" => certificates::rules(kind),
        "coordination.k8s.io" => coordination::rules(kind),
        "discovery.k8s.io" => discovery::rules(kind),
        "events.k8s.io" => events::rules(kind),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::rules(kind),
        "networking.k8s.io" => networking::rules(kind),
        "node.k8s.io" => node::rules(kind),
        "policy" => policy::rules(kind),
        "rbac.authorization.k8s.io" => rbac::rules(kind),
        "resource.k8s.io" => resource::rules(kind),
        "scheduling.k8s.io" => scheduling::rules(kind),
        "storage.k8s.io" => storage::rules(kind),
        _ => Rules::default(),
    }
}

#[cfg(test)]
mod tests;
