//! `networking.k8s.io`: ingresses, network policies and the addresses of services.

use object::value;

use super::strategy::{
    keep_status_or_rest, keep_status_or_spec, no_status, status_or_rest, status_or_spec,
};
use crate::defaults::cluster;
use crate::{Generation, NameRule, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "Ingress" => Rules {
            prepare_create: |new| {
                new.insert("status", value!({"loadBalancer": {}}));
            },
            prepare_update: keep_status_or_spec,
            generation: Generation::Spec,
            reset_fields: status_or_spec,
            ..Rules::default()
        },
        "IngressClass" => Rules {
            defaults: cluster::ingress_class,
            generation: Generation::Spec,
            ..Rules::default()
        },
        "IPAddress" => Rules {
            name: NameRule::PathSegment,
            ..Rules::default()
        },
        "NetworkPolicy" => Rules {
            defaults: cluster::network_policy,
            generation: Generation::ExactSpec,
            ..Rules::default()
        },
        "ServiceCIDR" => Rules {
            prepare_create: no_status,
            prepare_update: keep_status_or_rest,
            reset_fields: status_or_rest,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}
