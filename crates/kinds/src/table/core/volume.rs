//! Rows of volumes and of claims on them.

use object::Value;

use crate::table::row::{Row, UNSET, cells, quantity};

/// The annotation that named the class before there was a field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Access modes and their short names, in the order they are printed.
const ACCESS_MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

pub(super) fn persistent_volume(row: &Row<'_>) -> Vec<Value> {
    let claim = match row.at(&["spec", "claimRef"]) {
        Some(_) => format!(
            "{}/{}",
            row.text(&["spec", "claimRef", "namespace"]),
            row.text(&["spec", "claimRef", "name"])
        ),
        None => String::new(),
    };
    cells![
        row.name(),
        quantity(row.at(&["spec", "capacity", "storage"])),
        access_modes(row, &["spec", "accessModes"]),
        row.text(&["spec", "persistentVolumeReclaimPolicy"]),
        phase(row),
        claim,
        class(row),
        text_or_unset(row, "volumeAttributesClassName"),
        row.text(&["status", "reason"]),
        row.age(),
        text_or_unset(row, "volumeMode"),
    ]
}

/// Capacity and access modes are those of the volume, once there is one.
pub(super) fn persistent_volume_claim(row: &Row<'_>) -> Vec<Value> {
    let volume = row.text(&["spec", "volumeName"]);
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (
            quantity(row.at(&["status", "capacity", "storage"])),
            access_modes(row, &["status", "accessModes"]),
        )
    };
    cells![
        row.name(),
        phase(row),
        volume,
        capacity,
        modes,
        class(row),
        text_or_unset(row, "volumeAttributesClassName"),
        row.age(),
        text_or_unset(row, "volumeMode"),
    ]
}

fn phase<'a>(row: &Row<'a>) -> &'a str {
    if row.is_deleted() {
        "Terminating"
    } else {
        row.text(&["status", "phase"])
    }
}

fn class<'a>(row: &Row<'a>) -> &'a str {
    row.at(&["metadata", "annotations", CLASS_ANNOTATION])
        .and_then(Value::as_str)
        .unwrap_or_else(|| row.text(&["spec", "storageClassName"]))
}

/// A field of the spec, which may be there and empty.
fn text_or_unset<'a>(row: &Row<'a>, field: &str) -> &'a str {
    let value = row.at(&["spec", field]);
    value.and_then(Value::as_str).unwrap_or(UNSET)
}

fn access_modes(row: &Row<'_>, path: &[&str]) -> String {
    let modes = row.items(path);
    let short: Vec<&str> = ACCESS_MODES
        .into_iter()
        .filter(|(mode, _)| modes.iter().any(|item| item.as_str() == Some(mode)))
        .map(|(_, short)| short)
        .collect();
    short.join(",")
}
