//! Defaults of volumes, wherever they are described: in pods, persistent volumes, attachments.

use object::{Map, Value, value};

use super::fill::{each, fill, fill_text, fill_texts, is_unset, text, within};
use super::image::pull_policy;
use super::pod::field_reference;
use super::quantities::round_up_list;

/// The mode of files that come out of secrets, config maps and the like: 0644.
const FILE_MODE: i64 = 0o644;

/// Fills a volume of a pod; one without a source is an empty directory.
pub(super) fn volume(volume: &mut Map) {
    let has_source = volume
        .iter()
        .any(|(key, value)| key != "name" && !value.is_null());
    if !has_source {
        volume.insert("emptyDir", value!({}));
    }
    shared_sources(volume);
    for mode in ["secret", "configMap", "downwardAPI", "projected"] {
        within(volume, mode, |source| {
            fill(source, "defaultMode", FILE_MODE)
        });
    }
    within(volume, "downwardAPI", downward_items);
    within(volume, "projected", |projected| {
        each(projected, "sources", projection)
    });
    within(volume, "image", |image| {
        if text(image, "pullPolicy").is_empty() {
            let policy = pull_policy(text(image, "reference"));
            image.insert("pullPolicy", policy.into());
        }
    });
    within(volume, "ephemeral", |ephemeral| {
        within(ephemeral, "volumeClaimTemplate", |template| {
            claim_spec(template.object_at("spec"))
        });
    });
}

/// Fills the sources that pods and persistent volumes have in common.
pub(super) fn shared_sources(volume: &mut Map) {
    within(volume, "hostPath", |source| fill(source, "type", ""));
    within(volume, "iscsi", |source| {
        fill_text(source, "iscsiInterface", "default")
    });
    within(volume, "rbd", |source| {
        fill_texts(
            source,
            &[
                ("pool", "rbd"),
                ("user", "admin"),
                ("keyring", "/etc/ceph/keyring"),
            ],
        );
    });
    within(volume, "azureDisk", |source| {
        fill(source, "cachingMode", "ReadWrite");
        fill(source, "fsType", "ext4");
        fill(source, "readOnly", false);
        fill(source, "kind", "Shared");
    });
    within(volume, "scaleIO", |source| {
        fill_texts(
            source,
            &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")],
        );
    });
}

/// Fills the spec of a claim.
pub(crate) fn claim_spec(spec: &mut Map) {
    fill(spec, "volumeMode", "Filesystem");
    within(spec, "resources", super::pod::resources);
}

/// Fills a claim, be it an object or a template of one.
pub(crate) fn claim(claim: &mut Map) {
    claim_spec(claim.object_at("spec"));
    let status = claim.object_at("status");
    fill_text(status, "phase", "Pending");
    round_up_list(status, "capacity");
    round_up_list(status, "allocatedResources");
}

/// Fills a persistent volume.
pub(crate) fn persistent_volume(volume: &mut Map) {
    fill_text(volume.object_at("status"), "phase", "Pending");
    let spec = volume.object_at("spec");
    fill_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    persistent_volume_spec(spec);
}

/// Fills the part of a persistent volume that an attachment can carry inline.
pub(super) fn persistent_volume_spec(spec: &mut Map) {
    round_up_list(spec, "capacity");
    shared_sources(spec);
}

fn downward_items(source: &mut Map) {
    each(source, "items", |item| {
        within(item, "fieldRef", field_reference)
    });
}

fn projection(source: &mut Map) {
    within(source, "downwardAPI", downward_items);
    within(source, "serviceAccountToken", |token| {
        fill(token, "expirationSeconds", 3600)
    });
}

/// Whether a claim says where its data comes from.
pub(crate) fn has_data_source(spec: &Map) -> bool {
    !is_unset(spec, "dataSource") || !is_unset(spec, "dataSourceRef")
}

/// Makes the two ways of naming a data source say the same.
pub(crate) fn pair_data_sources(spec: &mut Map) {
    let reference = |source: &Map| {
        let mut out = Map::with_capacity(3);
        for key in ["apiGroup", "kind", "name"] {
            if let Some(value) = source.get(key) {
                out.insert(key, value.clone());
            }
        }
        Value::Object(out)
    };
    let older = spec.get("dataSource").and_then(Value::as_object);
    let newer = spec.get("dataSourceRef").and_then(Value::as_object);
    match (older, newer) {
        (Some(older), None) => {
            let newer = reference(older);
            spec.insert("dataSourceRef", newer);
        }
        (None, Some(newer)) if text(newer, "namespace").is_empty() => {
            let older = reference(newer);
            spec.insert("dataSource", older);
        }
        _ => {}
    }
}
