//! Rows of nodes.

use std::collections::BTreeSet;

use object::{Map, Value};

use crate::table::row::{NONE, Row, UNKNOWN, cells, non_empty_or, text};

/// Labels with this prefix name a role of the node in their key.
const ROLE_LABEL_PREFIX: &str = "node-role.kubernetes.io/";
/// This label names a role of the node in its value.
const ROLE_LABEL: &str = "kubernetes.io/role";

pub(super) fn node(row: &Row<'_>) -> Vec<Value> {
    let info = |field: &str| row.text(&["status", "nodeInfo", field]);
    let mut kernel = non_empty_or(info("kernelVersion"), UNKNOWN).to_owned();
    let architecture = info("architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    cells![
        row.name(),
        status(row),
        roles(row),
        row.age(),
        info("kubeletVersion"),
        address(row, "InternalIP"),
        address(row, "ExternalIP"),
        non_empty_or(info("osImage"), UNKNOWN),
        kernel,
        non_empty_or(info("containerRuntimeVersion"), UNKNOWN),
    ]
}

/// Of several conditions of one type the last counts here.
fn status(row: &Row<'_>) -> String {
    let ready = row
        .items(&["status", "conditions"])
        .iter()
        .rfind(|condition| text(condition, &["type"]) == "Ready");
    let ready = match ready.map(|condition| text(condition, &["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if row.flag(&["spec", "unschedulable"]) {
        format!("{ready},SchedulingDisabled")
    } else {
        ready.to_owned()
    }
}

fn roles(row: &Row<'_>) -> String {
    let labels = row.map(&["metadata", "labels"]);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flat_map(Map::iter)
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_LABEL_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE_LABEL => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    non_empty_or(&roles.join(","), NONE).to_owned()
}

/// The first address of this type.
fn address<'a>(row: &Row<'a>, wanted: &str) -> &'a str {
    row.items(&["status", "addresses"])
        .iter()
        .find(|address| text(address, &["type"]) == wanted)
        .map_or(NONE, |address| text(address, &["address"]))
}
