//! `rbac.authorization.k8s.io`: roles and their bindings.

use crate::defaults::access::role_binding;
use crate::{NameRule, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    let base = Rules {
        name: NameRule::PathSegment,
        create_on_update: true,
        ..Rules::default()
    };
    match kind {
        "RoleBinding" | "ClusterRoleBinding" => Rules {
            defaults: role_binding,
            ..base
        },
        _ => base,
    }
}
