//! Rows of the core group; the larger kinds have files of their own.

pub(super) mod event;
mod node;
mod pod;
mod service;
mod volume;

use object::{Map, Value};

use super::Printer;
use super::row::{Row, cells, quantity, text};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "ComponentStatus" => component_status,
        "ConfigMap" => config_map,
        "Endpoints" => service::endpoints,
        "Event" => event::core_event,
        "Namespace" => namespace,
        "Node" => node::node,
        "PersistentVolume" => volume::persistent_volume,
        "PersistentVolumeClaim" => volume::persistent_volume_claim,
        "Pod" => pod::pod,
        "PodTemplate" => pod_template,
        "ReplicationController" => replication_controller,
        "ResourceQuota" => resource_quota,
        "Secret" => secret,
        "Service" => service::service,
        "ServiceAccount" => service_account,
        _ => return None,
    })
}

fn component_status(row: &Row<'_>) -> Vec<Value> {
    let healthy = row
        .items(&["conditions"])
        .iter()
        .find(|condition| text(condition, &["type"]) == "Healthy");
    let Some(condition) = healthy else {
        return cells![row.name(), "Unknown", "", ""];
    };
    let status = match text(condition, &["status"]) {
        "True" => "Healthy",
        _ => "Unhealthy",
    };
    cells![
        row.name(),
        status,
        text(condition, &["message"]),
        text(condition, &["error"]),
    ]
}

fn config_map(row: &Row<'_>) -> Vec<Value> {
    let data = row.count(&["data"]) + row.count(&["binaryData"]);
    cells![row.name(), data, row.age()]
}

fn namespace(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["status", "phase"]), row.age()]
}

fn pod_template(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&["template", "spec", "containers"]);
    let labels = row.labels(&["template", "metadata", "labels"]);
    cells![row.name(), names, images, labels]
}

fn replication_controller(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&["spec", "template", "spec", "containers"]);
    cells![
        row.name(),
        row.int(&["spec", "replicas"]),
        row.int(&["status", "replicas"]),
        row.int(&["status", "readyReplicas"]),
        row.age(),
        names,
        images,
        row.labels(&["spec", "selector"]),
    ]
}

/// What bounds the limits of pods stands in a column of its own.
fn resource_quota(row: &Row<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let used = row.map(&["status", "used"]);
    for (resource, hard) in row.map(&["status", "hard"]).into_iter().flat_map(Map::iter) {
        let used = quantity(used.and_then(|used| used.get(resource)));
        let cell = format!("{resource}: {used}/{}", quantity(Some(hard)));
        if resource.starts_with("limits.") {
            limits.push(cell);
        } else {
            requests.push(cell);
        }
    }
    cells![
        row.name(),
        requests.join(", "),
        limits.join(", "),
        row.age()
    ]
}

fn secret(row: &Row<'_>) -> Vec<Value> {
    cells![
        row.name(),
        row.text(&["type"]),
        row.count(&["data"]),
        row.age()
    ]
}

fn service_account(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.age()]
}
