//! `certificates.k8s.io`: requests for signed certificates.

use object::{Map, Value};

use super::strategy::{conditions, no_status, select_text, unselectable};
use crate::defaults::fill::{copy, each, is_unset, object, text};
use crate::{NameRule, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "CertificateSigningRequest" => Rules {
            prepare_create: |new| {
                // Who asks is what the server knows, never what the client says.
                let spec = new.object_at("spec");
                for key in ["username", "uid", "groups", "extra"] {
                    spec.remove(key);
                }
                no_status(new);
            },
            prepare_update: request_update,
            stamp: stamp_conditions,
            name: NameRule::PathSegment,
            selectable: &["spec.signerName"],
            select: select_text,
            unselectable,
            reset_fields: |subresource| match subresource {
                "" => &[&["spec"], &["status"]],
                "status" => &[&["spec"], &["status", "conditions"]],
                "approval" => &[&["spec"], &["status", "certificate"]],
                _ => &[],
            },
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}

fn request_update(new: &mut Map, old: &Map, subresource: &str) {
    copy(new, old, "spec");
    match subresource {
        "status" => {
            keep_conditions_of_type(new, old, "Approved");
            keep_conditions_of_type(new, old, "Denied");
        }
        "approval" => {
            let said = object(new, "status")
                .and_then(|status| status.get("conditions"))
                .cloned();
            copy(new, old, "status");
            let status = new.object_at("status");
            match said {
                Some(said) => status.insert("conditions", said),
                None => status.remove("conditions"),
            };
        }
        _ => copy(new, old, "status"),
    }
}

/// Approval and denial cannot be edited through `/status`; adding or removing them is left to
/// validation to refuse.
fn keep_conditions_of_type(new: &mut Map, old: &Map, kind: &str) {
    let is_kind = |condition: &Value| condition.get("type").and_then(Value::as_str) == Some(kind);
    let kept: Vec<Value> = conditions(old)
        .iter()
        .filter(|condition| is_kind(condition))
        .cloned()
        .collect();
    let Some(list) = new
        .object_at("status")
        .get_mut("conditions")
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    let mut places: Vec<&mut Value> = list
        .iter_mut()
        .filter(|condition| is_kind(condition))
        .collect();
    if places.len() == kept.len() {
        for (place, value) in places.iter_mut().zip(kept) {
            **place = value;
        }
    }
}

/// Says when each condition was written and when its status last changed.
fn stamp_conditions(new: &mut Map, old: Option<&Map>, subresource: &str, now: &str) {
    let Some(old) = old.filter(|_| !subresource.is_empty()) else {
        return;
    };
    let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    each(status, "conditions", |condition| {
        if is_unset(condition, "lastUpdateTime") {
            condition.insert("lastUpdateTime", now.into());
        }
        if is_unset(condition, "lastTransitionTime") {
            let since = conditions(old)
                .iter()
                .filter_map(Value::as_object)
                .find(|before| {
                    text(before, "type") == text(condition, "type")
                        && text(before, "status") == text(condition, "status")
                        && !is_unset(before, "lastTransitionTime")
                });
            let since = since.map_or(now, |before| text(before, "lastTransitionTime"));
            condition.insert("lastTransitionTime", since.into());
        }
    });
}
