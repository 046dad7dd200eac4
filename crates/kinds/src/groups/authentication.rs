//! `authentication.k8s.io`: reviews that are answered and never stored.

use crate::Rules;
use crate::defaults::access;

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "TokenRequest" => Rules {
            defaults: access::token_request,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}
