//! Rows of the `apps` group.

use object::Value;
use object::labels::LabelSelector;

use super::Printer;
use super::row::{NONE, Row, cells, text};

/// Where the containers of a workload are.
const CONTAINERS: [&str; 4] = ["spec", "template", "spec", "containers"];

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "ControllerRevision" => controller_revision,
        "DaemonSet" => daemon_set,
        "Deployment" => deployment,
        "ReplicaSet" => replica_set,
        "StatefulSet" => stateful_set,
        _ => return None,
    })
}

fn controller_revision(row: &Row<'_>) -> Vec<Value> {
    let owner = row
        .items(&["metadata", "ownerReferences"])
        .iter()
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
    let controller = owner.map_or_else(|| NONE.to_owned(), owner_name);
    cells![row.name(), controller, row.int(&["revision"]), row.age()]
}

/// Kind and group in lower case, then the name: `statefulset.apps/web`.
fn owner_name(owner: &Value) -> String {
    let (kind, name) = (text(owner, &["kind"]), text(owner, &["name"]));
    let kind = match text(owner, &["apiVersion"]).rsplit_once('/') {
        Some((group, _)) if !group.is_empty() => format!("{kind}.{group}"),
        _ => kind.to_owned(),
    };
    if kind.is_empty() {
        name.to_owned()
    } else {
        format!("{}/{name}", kind.to_lowercase())
    }
}

fn daemon_set(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&CONTAINERS);
    cells![
        row.name(),
        row.int(&["status", "desiredNumberScheduled"]),
        row.int(&["status", "currentNumberScheduled"]),
        row.int(&["status", "numberReady"]),
        row.int(&["status", "updatedNumberScheduled"]),
        row.int(&["status", "numberAvailable"]),
        row.labels(&["spec", "template", "spec", "nodeSelector"]),
        row.age(),
        names,
        images,
        row.selector(&["spec", "selector"]),
    ]
}

fn deployment(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&CONTAINERS);
    // Unlike elsewhere, a selector of everything prints as nothing here.
    let selector = row.at(&["spec", "selector"]).unwrap_or(&Value::Null);
    let selector = LabelSelector::from_label_selector_value(selector)
        .map_or_else(|_| "<invalid>".to_owned(), |selector| selector.to_string());
    cells![
        row.name(),
        ready_of_desired(row),
        row.int(&["status", "updatedReplicas"]),
        row.int(&["status", "availableReplicas"]),
        row.age(),
        names,
        images,
        selector,
    ]
}

fn replica_set(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&CONTAINERS);
    cells![
        row.name(),
        row.int(&["spec", "replicas"]),
        row.int(&["status", "replicas"]),
        row.int(&["status", "readyReplicas"]),
        row.age(),
        names,
        images,
        row.selector(&["spec", "selector"]),
    ]
}

fn stateful_set(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&CONTAINERS);
    cells![row.name(), ready_of_desired(row), row.age(), names, images]
}

fn ready_of_desired(row: &Row<'_>) -> String {
    format!(
        "{}/{}",
        row.int(&["status", "readyReplicas"]),
        row.int(&["spec", "replicas"])
    )
}
