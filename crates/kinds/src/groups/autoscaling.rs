//! `autoscaling`: horizontal pod autoscalers, in two versions of one stored object.

use object::{Map, value};

use super::strategy::{keep_status_or_spec, status_or_spec};
use crate::Rules;
use crate::convert::autoscaling::CARRIERS;
use crate::defaults::autoscaling::{
    BEHAVIOR, CONDITIONS, CURRENT_METRICS, METRICS, autoscaler_v1, autoscaler_v2,
};
use crate::defaults::fill::{copy, object};

pub(super) fn rules(version: &str, kind: &str) -> Rules {
    let base = Rules {
        prepare_update: keep_status_or_spec,
        reset_fields: status_or_spec,
        ..Rules::default()
    };
    match (version, kind) {
        ("v1", "HorizontalPodAutoscaler") => Rules {
            defaults: autoscaler_v1,
            carriers: &CARRIERS,
            prepare_create: |new| {
                new.insert(
                    "status",
                    value!({"currentReplicas": 0, "desiredReplicas": 0}),
                );
                keep_annotations(new, &Map::new(), &CARRIED_STATUS);
            },
            prepare_update: |new, old, subresource| {
                keep_status_or_spec(new, old, subresource);
                let kept = if subresource == "status" {
                    &CARRIED_SPEC
                } else {
                    &CARRIED_STATUS
                };
                keep_annotations(new, old, kept);
            },
            ..base
        },
        (_, "HorizontalPodAutoscaler") => Rules {
            defaults: autoscaler_v2,
            prepare_create: |new| {
                new.insert(
                    "status",
                    value!({"currentMetrics": null, "desiredReplicas": 0}),
                );
            },
            ..base
        },
        _ => Rules::default(),
    }
}

/// Annotations of `v1` that are part of the spec.
const CARRIED_SPEC: [&str; 2] = [METRICS, BEHAVIOR];
/// Annotations of `v1` that are part of the status.
const CARRIED_STATUS: [&str; 2] = [CURRENT_METRICS, CONDITIONS];

/// Gives these annotations the values they have in the old object, or takes them out.
fn keep_annotations(new: &mut Map, old: &Map, keys: &[&str]) {
    let nothing = Map::new();
    let old = object(old, "metadata")
        .and_then(|metadata| object(metadata, "annotations"))
        .unwrap_or(&nothing);
    let metadata = new.object_at("metadata");
    let annotations = metadata.object_at("annotations");
    for key in keys {
        copy(annotations, old, key);
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}
