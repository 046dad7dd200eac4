//! Services: which fields go when a service changes its type.
//!
//! Addresses and ports are handed out by the server, not here.

use object::{Map, Value, value};

use super::strategy::{keep_status_or_spec, select_text, status_or_spec, unselectable};
use crate::defaults::core;
use crate::defaults::core::is_externally_accessible;
use crate::defaults::fill::{each, is_unset, items, number, object, text};
use crate::{NameRule, Rules};

pub(super) fn rules() -> Rules {
    Rules {
        defaults: core::service,
        prepare_create: |new| {
            new.insert("status", value!({"loadBalancer": {}}));
        },
        prepare_update: |new, old, subresource| {
            keep_status_or_spec(new, old, subresource);
            if subresource != "status" {
                drop_type_dependent(new, old);
            }
        },
        settle: |service| {
            let spec = service.object_at("spec");
            if !needs_address(spec) {
                spec.remove("internalTrafficPolicy");
            }
        },
        name: NameRule::Label,
        create_on_update: true,
        returns_deleted: true,
        selectable: &["spec.clusterIP", "spec.type"],
        select: select_text,
        unselectable,
        reset_fields: status_or_spec,
        ..Rules::default()
    }
}

/// A client that only changes the type need not know what the old type had filled in.
fn drop_type_dependent(new: &mut Map, old: &Map) {
    let Some(old) = object(old, "spec") else {
        return;
    };
    let spec = new.object_at("spec");
    if needs_address(old) && !needs_address(spec) {
        if same(spec, old, "clusterIP") && same(spec, old, "clusterIPs") {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        drop_if_same(spec, old, "ipFamilies");
        drop_if_same(spec, old, "ipFamilyPolicy");
        drop_if_same(spec, old, "internalTrafficPolicy");
    }
    if needs_node_port(old) && !needs_node_port(spec) && has_no_new_node_port(spec, old) {
        each(spec, "ports", |port| {
            port.remove("nodePort");
        });
    }
    if needs_health_port(old) && !needs_health_port(spec) {
        drop_if_same(spec, old, "healthCheckNodePort");
    }
    let was_balanced = text(old, "type") == "LoadBalancer";
    let is_balanced = text(spec, "type") == "LoadBalancer";
    if was_balanced && !is_balanced {
        drop_if_same(spec, old, "allocateLoadBalancerNodePorts");
        drop_if_same(spec, old, "loadBalancerClass");
    }
    if is_externally_accessible(old) && !is_externally_accessible(spec) {
        drop_if_same(spec, old, "externalTrafficPolicy");
    }
    if !is_balanced {
        new.object_at("status").insert("loadBalancer", value!({}));
    }
}

fn needs_address(spec: &Map) -> bool {
    text(spec, "type") != "ExternalName"
}

fn needs_node_port(spec: &Map) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

fn needs_health_port(spec: &Map) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn has_no_new_node_port(spec: &Map, old: &Map) -> bool {
    let ports = |spec| items(spec, "ports").map(|port| number(port, "nodePort"));
    ports(spec).all(|port| port == 0 || ports(old).any(|before| before == port))
}

fn same(spec: &Map, old: &Map, key: &str) -> bool {
    let said = |spec: &'_ Map| spec.get(key).filter(|value| !value.is_null()).cloned();
    said(spec).unwrap_or(Value::Null) == said(old).unwrap_or(Value::Null)
}

fn drop_if_same(spec: &mut Map, old: &Map, key: &str) {
    if !is_unset(spec, key) && same(spec, old, key) {
        spec.remove(key);
    }
}
