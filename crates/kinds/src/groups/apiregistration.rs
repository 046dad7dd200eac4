//! `apiregistration.k8s.io`: API services.

use object::{Map, Value, value};

use super::strategy::{conditions, keep_status_or_rest, no_status, status_or_rest};
use crate::defaults::extensions::api_service;
use crate::defaults::fill::at;
use crate::{NameRule, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "APIService" => Rules {
            defaults: api_service,
            prepare_create: no_status,
            prepare_update: keep_status_or_rest,
            stamp: local_is_available,
            name: NameRule::PathSegment,
            unconditional_update: false,
            reset_fields: status_or_rest,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}

/// An API that this server serves itself is available from the start.
fn local_is_available(new: &mut Map, old: Option<&Map>, _subresource: &str, now: &str) {
    if old.is_none() && at(new, &["spec", "service"]).is_none() && conditions(new).is_empty() {
        let condition = value!({
            "type": "Available",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "Local",
            "message": "Local APIServices are always available",
        });
        new.object_at("status")
            .insert("conditions", Value::Array(vec![condition]));
    }
}
