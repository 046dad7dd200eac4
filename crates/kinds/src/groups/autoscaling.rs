//! `autoscaling`: horizontal pod autoscalers, in two versions of one stored object.

use object::value;

use super::strategy::{keep_status_or_spec, status_or_spec};
use crate::Rules;
use crate::defaults::autoscaling::{autoscaler_v1, autoscaler_v2};

pub(super) fn rules(version: &str, kind: &str) -> Rules {
    let base = Rules {
        prepare_update: keep_status_or_spec,
        reset_fields: status_or_spec,
        ..Rules::default()
    };
    match (version, kind) {
        ("v1", "HorizontalPodAutoscaler") => Rules {
            defaults: autoscaler_v1,
            prepare_create: |new| {
                new.insert(
                    "status",
                    value!({"currentReplicas": 0, "desiredReplicas": 0}),
                );
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
