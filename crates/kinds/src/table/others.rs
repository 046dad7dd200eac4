//! Rows of the groups that have only a few kinds.

use object::Value;
use object::time::human_duration;

use super::Printer;
use super::row::{NONE, Row, UNSET, cells, first_three, items, non_empty_or, text};

pub(super) fn printer(group: &str, kind: &str) -> Option<Printer> {
    Some(match (group, kind) {
        ("apiregistration.k8s.io", "APIService") => api_service,
        ("certificates.k8s.io", "CertificateSigningRequest") => certificate_signing_request,
        ("coordination.k8s.io", "Lease") => lease,
        ("discovery.k8s.io", "EndpointSlice") => endpoint_slice,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => flow_schema,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => priority_level,
        ("node.k8s.io", "RuntimeClass") => runtime_class,
        ("policy", "PodDisruptionBudget") => pod_disruption_budget,
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => name_and_age,
        ("resource.k8s.io", "ResourceClaim") => resource_claim,
        ("resource.k8s.io", "ResourceSlice") => resource_slice,
        ("scheduling.k8s.io", "PriorityClass") => priority_class,
        _ => return None,
    })
}

fn name_and_age(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.age()]
}

fn api_service(row: &Row<'_>) -> Vec<Value> {
    let service = match row.at(&["spec", "service"]) {
        Some(it) => format!("{}/{}", text(it, &["namespace"]), text(it, &["name"])),
        None => "Local".to_owned(),
    };
    let available = match row.condition("Available") {
        None => "Unknown".to_owned(),
        Some(it) => match (text(it, &["status"]), text(it, &["reason"])) {
            (status @ "True", _) | (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    };
    cells![row.name(), service, available, row.age()]
}

fn certificate_signing_request(row: &Row<'_>) -> Vec<Value> {
    let duration = row.at(&["spec", "expirationSeconds"]);
    let duration = duration.and_then(Value::as_int).map(human_duration);
    cells![
        row.name(),
        row.age(),
        row.text_or(&["spec", "signerName"], NONE),
        row.text(&["spec", "username"]),
        duration.unwrap_or_else(|| NONE.to_owned()),
        certificate_status(row),
    ]
}

/// A denial wins over an approval; that signing failed or succeeded is said besides.
fn certificate_status(row: &Row<'_>) -> String {
    let mut status = if row.condition("Denied").is_some() {
        "Denied".to_owned()
    } else if row.condition("Approved").is_some() {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if row.condition("Failed").is_some() {
        status.push_str(",Failed");
    }
    if !row.text(&["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    status
}

fn lease(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["spec", "holderIdentity"]), row.age()]
}

fn endpoint_slice(row: &Row<'_>) -> Vec<Value> {
    let ports =
        row.items(&["ports"])
            .iter()
            .map(|port| match port.get("port").and_then(Value::as_int) {
                Some(number) => number.to_string(),
                None => port.str_at(&["name"]).unwrap_or("*").to_owned(),
            });
    let addresses = row
        .items(&["endpoints"])
        .iter()
        .flat_map(|endpoint| items(endpoint, &["addresses"]))
        .filter_map(Value::as_str)
        .map(str::to_owned);
    cells![
        row.name(),
        row.text(&["addressType"]),
        non_empty_or(&first_three(ports.collect()), UNSET),
        non_empty_or(&first_three(addresses.collect()), UNSET),
        row.age(),
    ]
}

fn flow_schema(row: &Row<'_>) -> Vec<Value> {
    let method = match row.at(&["spec", "distinguisherMethod"]) {
        Some(method) => text(method, &["type"]),
        None => NONE,
    };
    let dangling = row.condition("Dangling");
    cells![
        row.name(),
        row.text(&["spec", "priorityLevelConfiguration", "name"]),
        row.int(&["spec", "matchingPrecedence"]),
        method,
        row.age(),
        dangling.map_or("?", |condition| text(condition, &["status"])),
    ]
}

/// Numbers where the level has them.
fn priority_level(row: &Row<'_>) -> Vec<Value> {
    let number = |parent: &[&str], field: &str| match row.at(parent) {
        Some(_) => Value::Int(row.int(&[parent, &[field]].concat())),
        None => NONE.into(),
    };
    let limited = ["spec", "limited"];
    let queuing = ["spec", "limited", "limitResponse", "queuing"];
    cells![
        row.name(),
        row.text(&["spec", "type"]),
        number(&limited, "nominalConcurrencyShares"),
        number(&queuing, "queues"),
        number(&queuing, "handSize"),
        number(&queuing, "queueLengthLimit"),
        row.age(),
    ]
}

fn runtime_class(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["handler"]), row.age()]
}

fn pod_disruption_budget(row: &Row<'_>) -> Vec<Value> {
    let bound = |field: &str| match row.at(&["spec", field]) {
        Some(Value::Int(number)) => number.to_string(),
        Some(Value::String(percentage)) => percentage.to_string(),
        _ => "N/A".to_owned(),
    };
    cells![
        row.name(),
        bound("minAvailable"),
        bound("maxUnavailable"),
        row.int(&["status", "disruptionsAllowed"]),
        row.age(),
    ]
}

fn resource_claim(row: &Row<'_>) -> Vec<Value> {
    let allocated = row.at(&["status", "allocation"]).is_some();
    let reserved = !row.items(&["status", "reservedFor"]).is_empty();
    let states = [
        ("deleted", row.is_deleted()),
        ("pending", !allocated && !row.is_deleted()),
        ("allocated", allocated),
        ("reserved", allocated && reserved),
    ];
    let states: Vec<&str> = states
        .into_iter()
        .filter_map(|(state, holds)| holds.then_some(state))
        .collect();
    cells![row.name(), states.join(","), row.age()]
}

fn resource_slice(row: &Row<'_>) -> Vec<Value> {
    cells![
        row.name(),
        row.text(&["spec", "nodeName"]),
        row.text(&["spec", "driver"]),
        row.text(&["spec", "pool", "name"]),
        row.age(),
    ]
}

fn priority_class(row: &Row<'_>) -> Vec<Value> {
    cells![
        row.name(),
        row.int(&["value"]),
        row.flag(&["globalDefault"]),
        row.age(),
        row.text(&["preemptionPolicy"]),
    ]
}
