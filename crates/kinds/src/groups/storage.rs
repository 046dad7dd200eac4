//! `storage.k8s.io`: classes, drivers and attachments of volumes.

use object::{Map, value};

use super::strategy::{keep_status_or_rest, status_or_rest};
use crate::defaults::cluster;
use crate::defaults::fill::{at, within};
use crate::{Generation, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    let base = Rules {
        returns_deleted: true,
        unconditional_update: false,
        ..Rules::default()
    };
    match kind {
        "CSIDriver" => Rules {
            defaults: cluster::storage_driver,
            prepare_create: |new| drop_disabled(new, None),
            prepare_update: |new, old, _| drop_disabled(new, Some(old)),
            generation: Generation::SpecOnceChanged,
            ..base
        },
        "CSIStorageCapacity" => Rules {
            returns_deleted: false,
            ..base
        },
        "StorageClass" => Rules {
            defaults: cluster::storage_class,
            unconditional_update: true,
            ..base
        },
        "VolumeAttachment" => Rules {
            defaults: cluster::volume_attachment,
            prepare_create: |new| {
                new.insert("status", value!({"attached": false}));
            },
            prepare_update: keep_status_or_rest,
            reset_fields: status_or_rest,
            ..base
        },
        "VolumeAttributesClass" => Rules {
            unconditional_update: true,
            ..base
        },
        _ => base,
    }
}

/// Limits that scale with volumes are behind a gate that is closed by default.
fn drop_disabled(new: &mut Map, old: Option<&Map>) {
    const FIELD: &str = "preventPodSchedulingIfMissing";
    if old.is_none_or(|old| at(old, &["spec", FIELD]).is_none()) {
        within(new, "spec", |spec| {
            spec.remove(FIELD);
        });
    }
}
