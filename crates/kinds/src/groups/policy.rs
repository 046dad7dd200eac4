//! `policy`: budgets of pod disruptions.

use object::value;

use super::strategy::{keep_status_or_spec, status_or_spec};
use crate::{Generation, NameRule, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "PodDisruptionBudget" => Rules {
            prepare_create: |new| {
                new.insert(
                    "status",
                    value!({
                        "currentHealthy": 0,
                        "desiredHealthy": 0,
                        "disruptionsAllowed": 0,
                        "expectedPods": 0,
                    }),
                );
            },
            prepare_update: keep_status_or_spec,
            generation: Generation::Spec,
            name: NameRule::PathSegment,
            unconditional_update: false,
            reset_fields: status_or_spec,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}
