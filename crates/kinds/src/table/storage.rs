//! Rows of the `storage.k8s.io` group.

use object::Value;

use super::Printer;
use super::row::{NONE, Row, UNSET, cells, non_empty_or, text};

/// The annotations of the class that claims without a class get, the older one last.
const DEFAULT_CLASS_ANNOTATIONS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "CSIDriver" => csi_driver,
        "CSINode" => csi_node,
        "StorageClass" => storage_class,
        "VolumeAttachment" => volume_attachment,
        "VolumeAttributesClass" => volume_attributes_class,
        _ => return None,
    })
}

fn csi_driver(row: &Row<'_>) -> Vec<Value> {
    let attach = row.at(&["spec", "attachRequired"]).and_then(Value::as_bool);
    let tokens = row.items(&["spec", "tokenRequests"]);
    let audiences: Vec<&str> = tokens.iter().map(|it| text(it, &["audience"])).collect();
    let audiences = match audiences.is_empty() {
        true => UNSET.to_owned(),
        false => audiences.join(","),
    };
    cells![
        row.name(),
        attach.unwrap_or(true),
        row.flag(&["spec", "podInfoOnMount"]),
        row.flag(&["spec", "storageCapacity"]),
        audiences,
        row.flag(&["spec", "requiresRepublish"]),
        non_empty_or(&row.joined(&["spec", "volumeLifecycleModes"]), NONE),
        row.age(),
    ]
}

fn csi_node(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.count(&["spec", "drivers"]), row.age()]
}

fn storage_class(row: &Row<'_>) -> Vec<Value> {
    let mut name = row.name().to_owned();
    if DEFAULT_CLASS_ANNOTATIONS.iter().any(|it| row.annotated(it)) {
        name.push_str(" (default)");
    }
    cells![
        name,
        row.text(&["provisioner"]),
        row.text_or(&["reclaimPolicy"], "Delete"),
        row.text_or(&["volumeBindingMode"], "Immediate"),
        row.flag(&["allowVolumeExpansion"]),
        row.age(),
    ]
}

fn volume_attachment(row: &Row<'_>) -> Vec<Value> {
    cells![
        row.name(),
        row.text(&["spec", "attacher"]),
        row.text(&["spec", "source", "persistentVolumeName"]),
        row.text(&["spec", "nodeName"]),
        row.flag(&["status", "attached"]),
        row.age(),
    ]
}

fn volume_attributes_class(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.text(&["driverName"]), row.age()]
}
