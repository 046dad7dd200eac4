//! Pods: their first status, and what each subresource may change.

use object::{Map, Text, Value, value};

use super::disabled;
use super::strategy::{STATUS, keep_metadata, select_flag, select_text, unselectable};
use crate::defaults::fill::{
    copy, each, fill, is_unset, items, list, number, object, text, text_at, within,
};
use crate::defaults::pod::{is_gated, pair_service_account};
use crate::defaults::pod_resources::quality_of_service;
use crate::{Generation, Rules, defaults};

pub(super) fn rules() -> Rules {
    Rules {
        defaults: defaults::pod::pod,
        prepare_create: create,
        prepare_update: update,
        stamp: stamp_conditions,
        settle: |pod| within(pod, "spec", defaults::pod_resources::pod_level),
        generation: Generation::Spec,
        returns_deleted: true,
        grace_period: |pod, given| Some(grace_period(pod, given)),
        selectable: &[
            "spec.nodeName",
            "spec.host",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        select,
        unselectable,
        reset_fields: |subresource| match subresource {
            "" => STATUS,
            "status" => &[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ],
            _ => &[],
        },
        ..Rules::default()
    }
}

fn select(pod: &Map, field: &str) -> Text {
    match field {
        "spec.host" => select_text(pod, "spec.nodeName"),
        "spec.hostNetwork" => select_flag(pod, field),
        _ => select_text(pod, field),
    }
}

/// How long a pod may take to stop: no time at all unless it runs on a node.
fn grace_period(pod: &Map, given: Option<i64>) -> i64 {
    let is_over = matches!(text_at(pod, &["status", "phase"]), "Failed" | "Succeeded");
    if text_at(pod, &["spec", "nodeName"]).is_empty() || is_over {
        return 0;
    }
    let usual =
        || object(pod, "spec").map_or(0, |spec| number(spec, "terminationGracePeriodSeconds"));
    match given.unwrap_or_else(usual) {
        period if period < 0 => 1,
        period => period,
    }
}

fn create(new: &mut Map) {
    // Of a status that was sent, the class of service is believed.
    let said = Text::from(text_at(new, &["status", "qosClass"]));
    let spec = new.object_at("spec");
    pair_service_account(spec);
    disabled::drop_from_spec(spec, None);
    let quality = if said.is_empty() {
        quality_of_service(spec).into()
    } else {
        said
    };
    let gated = is_gated(spec);
    new.insert("status", value!({"phase": "Pending", "qosClass": quality}));
    if gated {
        let condition = value!({
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        new.object_at("status")
            .insert("conditions", Value::Array(vec![condition]));
    }
    let labels = object(new, "metadata")
        .and_then(|metadata| object(metadata, "labels"))
        .cloned();
    spread_by_labels(new.object_at("spec"), &labels.unwrap_or_default());
    confine_by_annotations(new);
}

fn update(new: &mut Map, old: &Map, subresource: &str) {
    match subresource {
        "status" => status_update(new, old),
        "ephemeralcontainers" => ephemeral_update(new, old),
        "resize" => resize_update(new, old),
        _ => {
            copy(new, old, "status");
            pair_service_account(new.object_at("spec"));
        }
    }
    disabled::drop_at(new, Some(old), &["spec"]);
}

fn status_update(new: &mut Map, old: &Map) {
    copy(new, old, "spec");
    if let Some(old) = object(old, "metadata") {
        let metadata = new.object_at("metadata");
        copy(metadata, old, "deletionTimestamp");
        copy(metadata, old, "ownerReferences");
    }
    let quality = text_at(old, &["status", "qosClass"]);
    let status = new.object_at("status");
    if !quality.is_empty() && text(status, "qosClass").is_empty() {
        status.insert("qosClass", quality.into());
    }
    if let Some(old) = object(old, "status") {
        keep_observed_generations(status, old);
    }
}

/// Clients that do not know observed generations must not erase them.
fn keep_observed_generations(status: &mut Map, old: &Map) {
    const FIELD: &str = "observedGeneration";
    if number(status, FIELD) == 0 {
        copy(status, old, FIELD);
    }
    let mut before: Vec<(&str, i64)> = items(old, "conditions")
        .map(|condition| (text(condition, "type"), number(condition, FIELD)))
        .collect();
    each(status, "conditions", |condition| {
        let place = before
            .iter()
            .position(|(kind, _)| *kind == text(condition, "type"));
        let generation = place.map_or(0, |place| before.remove(place).1);
        if number(condition, FIELD) == 0 && generation != 0 {
            condition.insert(FIELD, generation.into());
        }
    });
}

fn ephemeral_update(new: &mut Map, old: &Map) {
    let said = object(new, "spec")
        .and_then(|spec| spec.get("ephemeralContainers"))
        .cloned();
    copy(new, old, "spec");
    copy(new, old, "status");
    keep_metadata(new, old);
    let spec = new.object_at("spec");
    match said {
        Some(said) => spec.insert("ephemeralContainers", said),
        None => spec.remove("ephemeralContainers"),
    };
}

/// Of a pod that is resized, only resources and how they may change are taken.
///
/// A body whose containers do not line up is left as it is, for validation to refuse.
fn resize_update(new: &mut Map, old: &Map) {
    let Some((spec, old_spec)) = object(new, "spec").zip(object(old, "spec")) else {
        return;
    };
    let lists = ["containers", "initContainers"];
    if lists
        .iter()
        .any(|key| list(spec, key).len() != list(old_spec, key).len())
    {
        return;
    }
    let resized = lists.map(|key| resized(spec, old_spec, key));
    let resources = spec.get("resources").cloned();
    copy(new, old, "spec");
    copy(new, old, "status");
    keep_metadata(new, old);
    let spec = new.object_at("spec");
    match resources {
        Some(resources) => spec.insert("resources", resources),
        None => spec.remove("resources"),
    };
    for (key, containers) in lists.into_iter().zip(resized) {
        if !containers.is_empty() {
            spec.insert(key, Value::Array(containers));
        }
    }
}

fn resized(spec: &Map, old: &Map, key: &str) -> Vec<Value> {
    let names_differ = items(spec, key)
        .zip(items(old, key))
        .any(|(new, old)| text(new, "name") != text(old, "name"));
    if names_differ {
        return list(spec, key).to_vec();
    }
    items(spec, key)
        .zip(items(old, key))
        .map(|(new, old)| {
            let mut container = old.clone();
            copy(&mut container, new, "resources");
            copy(&mut container, new, "resizePolicy");
            Value::Object(container)
        })
        .collect()
}

/// Turns the label keys of affinity terms and spread constraints into requirements on the values
/// that this pod has.
fn spread_by_labels(spec: &mut Map, labels: &Map) {
    within(spec, "affinity", |affinity| {
        for side in ["podAffinity", "podAntiAffinity"] {
            within(affinity, side, |affinity| {
                each(
                    affinity,
                    "preferredDuringSchedulingIgnoredDuringExecution",
                    |preferred| {
                        within(preferred, "podAffinityTerm", |term| {
                            require_labels(term, labels)
                        });
                    },
                );
                each(
                    affinity,
                    "requiredDuringSchedulingIgnoredDuringExecution",
                    |term| {
                        require_labels(term, labels);
                    },
                );
            });
        }
    });
    each(spec, "topologySpreadConstraints", |constraint| {
        require_labels(constraint, labels)
    });
}

fn require_labels(term: &mut Map, labels: &Map) {
    if is_unset(term, "labelSelector") {
        return;
    }
    let mut requirements = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in list(term, keys).iter().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key).cloned() {
                requirements.push(value!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    if requirements.is_empty() {
        return;
    }
    let selector = term.object_at("labelSelector");
    let mut expressions = list(selector, "matchExpressions").to_vec();
    expressions.extend(requirements);
    selector.insert("matchExpressions", Value::Array(expressions));
}

/// The prefix of annotations that chose AppArmor profiles before there was a field.
const APPARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Gives containers the profile that their annotation names, unless the field says one.
fn confine_by_annotations(new: &mut Map) {
    let Some(annotations) = object(new, "metadata")
        .and_then(|metadata| object(metadata, "annotations"))
        .cloned()
    else {
        return;
    };
    let spec = new.object_at("spec");
    if text_at(spec, &["os", "name"]) == "windows" {
        return;
    }
    let of_pod = object(spec, "securityContext")
        .and_then(|context| context.get("appArmorProfile"))
        .cloned();
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, containers, |container| {
            let key = format!("{APPARMOR_ANNOTATION}{}", text(container, "name"));
            let Some(profile) = profile_of(text(&annotations, &key)) else {
                return;
            };
            if of_pod.as_ref() != Some(&profile) {
                fill(
                    container.object_at("securityContext"),
                    "appArmorProfile",
                    profile,
                );
            }
        });
    }
}

fn profile_of(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(value!({"type": "Unconfined"})),
        "runtime/default" => Some(value!({"type": "RuntimeDefault"})),
        _ => {
            let name = annotation.strip_prefix("localhost/")?.trim();
            let valid = !name.is_empty() && name.len() < 4096;
            valid.then(|| value!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}

/// Says since when a new pod waits for its gates.
fn stamp_conditions(new: &mut Map, old: Option<&Map>, _subresource: &str, now: &str) {
    if old.is_some() {
        return;
    }
    within(new, "status", |status| {
        each(status, "conditions", |condition| {
            fill(condition, "lastTransitionTime", now)
        });
    });
}
