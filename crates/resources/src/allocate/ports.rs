//! Node ports of services.

use std::collections::BTreeMap;

use object::field::{FieldError, Path};
use object::{Map, Value};

use super::range::Taken;
use super::{Item, Lease, Problem, list, number, text};

fn needs_ports(spec: &Map) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

fn needs_health_port(spec: &Map) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// A balancer that reaches pods by itself needs no ports on nodes.
fn wants_ports(spec: &Map) -> bool {
    let said = spec
        .get("allocateLoadBalancerNodePorts")
        .and_then(Value::as_bool);
    text(spec, "type") != "LoadBalancer" || said != Some(false)
}

/// The node ports in use by a service.
pub(super) fn held(spec: &Map) -> Vec<u32> {
    let health = number(spec, "healthCheckNodePort");
    node_ports(spec)
        .chain([health])
        .filter(|port| *port != 0)
        .filter_map(as_port)
        .collect()
}

fn node_ports(spec: &Map) -> impl Iterator<Item = i64> {
    list(spec, "ports")
        .iter()
        .filter_map(Value::as_object)
        .map(|port| number(port, "nodePort"))
}

fn as_port(port: i64) -> Option<u32> {
    u32::try_from(port).ok()
}

/// Takes the ports of a new service.
pub(super) fn allocate_new(spec: &mut Map, lease: &mut Lease) -> Result<(), Problem> {
    if needs_ports(spec) {
        // The same service port in two protocols gets one node port.
        let mut by_port: BTreeMap<i64, i64> = BTreeMap::new();
        for place in 0..list(spec, "ports").len() {
            let Some(port) = port_at(spec, place) else {
                continue;
            };
            let (service_port, wanted) = (number(port, "port"), number(port, "nodePort"));
            if wanted == 0 && !wants_ports(spec) {
                continue;
            }
            let node_port = match by_port.get(&service_port) {
                None => take(lease, place, requested(spec, service_port))?,
                Some(known) if wanted == 0 => *known,
                Some(known) if wanted == *known => continue,
                Some(_) => take(lease, place, wanted)?,
            };
            by_port.entry(service_port).or_insert(node_port);
            set_port(spec, place, node_port);
        }
    }
    if needs_health_port(spec) {
        take_health_port(spec, lease)?;
    }
    Ok(())
}

/// Takes the ports that a changed service needs more, and notes those it needs no longer.
pub(super) fn allocate_changed(
    spec: &mut Map,
    old: &Map,
    lease: &mut Lease,
) -> Result<(), Problem> {
    let before: Vec<i64> = node_ports(old).filter(|port| *port != 0).collect();
    if needs_ports(spec) {
        let mut taken = Vec::new();
        for place in 0..list(spec, "ports").len() {
            let Some(port) = port_at(spec, place) else {
                continue;
            };
            let wanted = number(port, "nodePort");
            if wanted == 0 && wants_ports(spec) {
                let node_port = take(lease, place, 0)?;
                set_port(spec, place, node_port);
            } else if wanted != 0 && !before.contains(&wanted) && !taken.contains(&wanted) {
                taken.push(take(lease, place, wanted)?);
            }
        }
    }
    if needs_ports(old) {
        let now: Vec<i64> = if needs_ports(spec) {
            node_ports(spec).collect()
        } else {
            Vec::new()
        };
        let gone = before
            .into_iter()
            .filter(|port| !now.contains(port))
            .filter_map(as_port);
        lease.released.extend(gone.map(Item::NodePort));
    }
    match (needs_health_port(old), needs_health_port(spec)) {
        (false, true) => take_health_port(spec, lease)?,
        (true, false) => {
            let port = as_port(number(old, "healthCheckNodePort")).filter(|port| *port != 0);
            lease.released.extend(port.map(Item::NodePort));
        }
        _ => {}
    }
    Ok(())
}

/// Ports that a client leaves out stay, by the name of the service port.
pub(super) fn carry_over(spec: &mut Map, old: &Map) {
    if needs_ports(spec) && needs_ports(old) {
        let now: Vec<i64> = node_ports(spec).collect();
        let ports = list(old, "ports").iter().filter_map(Value::as_object);
        let before: BTreeMap<&str, i64> = ports
            .map(|port| (text(port, "name"), number(port, "nodePort")))
            .collect();
        for place in 0..list(spec, "ports").len() {
            let Some(port) = port_at(spec, place) else {
                continue;
            };
            let known = before.get(text(port, "name")).copied().unwrap_or(0);
            if number(port, "nodePort") == 0 && known != 0 && !now.contains(&known) {
                set_port(spec, place, known);
            }
        }
    }
    if needs_health_port(spec) && needs_health_port(old) {
        let known = number(old, "healthCheckNodePort");
        if number(spec, "healthCheckNodePort") == 0 && known != 0 {
            spec.insert("healthCheckNodePort", Value::Int(known));
        }
    }
}

fn take(lease: &mut Lease, place: usize, wanted: i64) -> Result<i64, Problem> {
    if wanted == 0 {
        let port = lease.take_port(None);
        let port = port
            .map_err(|full| Problem::Internal(format!("failed to allocate a nodePort: {full}")))?;
        return Ok(i64::from(port));
    }
    let taken = as_port(wanted)
        .ok_or(Taken::NotInRange)
        .and_then(|port| lease.take_port(Some(port)));
    match taken {
        Ok(_) => Ok(wanted),
        Err(problem) => {
            let root = Path::root();
            let (spec, value) = (root.field("spec"), Value::Int(wanted));
            let ports = spec.field("ports");
            let port = ports.index(place);
            let field = port.field("nodePort");
            Err(FieldError::invalid(&field, &value, problem.to_string()).into())
        }
    }
}

fn take_health_port(spec: &mut Map, lease: &mut Lease) -> Result<(), Problem> {
    let wanted = number(spec, "healthCheckNodePort");
    let taken = match wanted {
        0 => lease.take_port(None),
        _ => as_port(wanted)
            .ok_or(Taken::NotInRange)
            .and_then(|port| lease.take_port(Some(port))),
    };
    match taken {
        Ok(port) => {
            spec.insert("healthCheckNodePort", Value::Int(port.into()));
            Ok(())
        }
        Err(problem) if wanted == 0 => Err(Problem::Internal(format!(
            "failed to allocate a HealthCheck NodePort 0: {problem}"
        ))),
        Err(problem) => Err(Problem::Internal(format!(
            "failed to allocate requested HealthCheck NodePort {wanted}: {problem}"
        ))),
    }
}

/// The node port that a client names for a service port, in any protocol.
fn requested(spec: &Map, service_port: i64) -> i64 {
    let ports = list(spec, "ports").iter().filter_map(Value::as_object);
    let mut named = ports.filter(|port| number(port, "port") == service_port);
    named
        .find_map(|port| Some(number(port, "nodePort")).filter(|port| *port != 0))
        .unwrap_or(0)
}

fn port_at(spec: &Map, place: usize) -> Option<&Map> {
    list(spec, "ports").get(place).and_then(Value::as_object)
}

fn set_port(spec: &mut Map, place: usize, node_port: i64) {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    let port = ports
        .and_then(|ports| ports.get_mut(place))
        .and_then(Value::as_object_mut);
    if let Some(port) = port {
        port.insert("nodePort", Value::Int(node_port));
    }
}
