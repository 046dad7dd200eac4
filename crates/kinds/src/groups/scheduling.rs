//! `scheduling.k8s.io`: priority classes.

use crate::defaults::cluster::priority_class;
use crate::{Generation, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "PriorityClass" => Rules {
            defaults: priority_class,
            generation: Generation::Fixed,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}
