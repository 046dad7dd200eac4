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

/// A group, its priority, and the priorities of its versions.
type Priority = (&'static str, i64, &'static [(&'static str, i64)]);

/// The places of groups among groups, and of their versions; others are behind these.
const PRIORITIES: [Priority; 20] = [
    ("", 18_000, &[("v1", 1)]),
    ("apps", 17_800, &[]),
    ("events.k8s.io", 17_750, &[]),
    ("authentication.k8s.io", 17_700, &[]),
    ("authorization.k8s.io", 17_600, &[]),
    ("autoscaling", 17_500, &[("v2", 30)]),
    ("batch", 17_400, &[]),
    ("certificates.k8s.io", 17_300, &[]),
    ("networking.k8s.io", 17_200, &[]),
    ("policy", 17_100, &[]),
    ("rbac.authorization.k8s.io", 17_000, &[]),
    ("storage.k8s.io", 16_800, &[]),
    ("apiextensions.k8s.io", 16_700, &[]),
    ("admissionregistration.k8s.io", 16_700, &[]),
    ("scheduling.k8s.io", 16_600, &[]),
    ("coordination.k8s.io", 16_500, &[]),
    ("node.k8s.io", 16_300, &[]),
    ("discovery.k8s.io", 16_200, &[]),
    ("resource.k8s.io", 16_200, &[("v1", 21)]),
    ("flowcontrol.apiserver.k8s.io", 16_100, &[("v1", 21)]),
];
/// The place of a version of which nothing else is said.
const VERSION: i64 = 15;

/// The priorities that the APIService of a built-in group and version states, if it has one.
pub fn api_priority(group: &str, version: &str) -> Option<(i64, i64)> {
    let (_, of_group, versions) = PRIORITIES.iter().find(|(name, ..)| *name == group)?;
    let of_version = versions.iter().find(|(name, _)| *name == version);
    Some((*of_group, of_version.map_or(VERSION, |(_, place)| *place)))
}
