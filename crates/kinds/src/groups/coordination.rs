//! `coordination.k8s.io`: leases.

use object::Map;

use crate::Rules;
use crate::defaults::fill::{is_unset, object, within};

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "Lease" => Rules {
            prepare_create: |new| drop_disabled(new, None),
            prepare_update: |new, old, _| drop_disabled(new, Some(old)),
            create_on_update: true,
            unconditional_update: false,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}

/// Coordinated leader election is behind a gate that is closed by default.
fn drop_disabled(new: &mut Map, old: Option<&Map>) {
    let old = old.and_then(|old| object(old, "spec"));
    within(new, "spec", |spec| {
        for key in ["strategy", "preferredHolder"] {
            if old.is_none_or(|old| is_unset(old, key)) {
                spec.remove(key);
            }
        }
    });
}
