//! `flowcontrol.apiserver.k8s.io`: which requests wait for which.

use object::Map;

use super::strategy::{keep_status_or_spec, no_status, status_or_rest};
use crate::defaults::access;
use crate::defaults::fill::copy;
use crate::{Generation, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    let defaults: fn(&mut Map) = match kind {
        "FlowSchema" => access::flow_schema,
        "PriorityLevelConfiguration" => access::priority_level,
        _ => return Rules::default(),
    };
    Rules {
        defaults,
        prepare_create: no_status,
        prepare_update: keep_status_or_all_else,
        generation: Generation::Spec,
        reset_fields: status_or_rest,
        ..Rules::default()
    }
}

/// A write through `/status` keeps all of the metadata, what is wrong in it included.
fn keep_status_or_all_else(new: &mut Map, old: &Map, subresource: &str) {
    keep_status_or_spec(new, old, subresource);
    if subresource == "status" {
        copy(new, old, "metadata");
    }
}
