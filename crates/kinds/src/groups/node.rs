//! `node.k8s.io`: classes of container runtimes.

use crate::Rules;

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "RuntimeClass" => Rules {
            create_on_update: true,
            unconditional_update: false,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}
