//! The core group. Pods and services have files of their own.

use object::{Map, Text, Value, value};

use super::apps::template_update;
use super::strategy::{
    SPEC, STATUS, keep_status_or_spec, no_status, select_flag, select_number, select_text,
    status_or_spec, unselectable,
};
use super::{disabled, events, pod, service};
use crate::defaults::fill::{at, copy, fill, is_unset, list, object, text, text_at, within};
use crate::defaults::{core, volumes, workloads};
use crate::{Generation, NameRule, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "Event" => events::core_rules(),
        "Namespace" => namespace(),
        "Node" => node(),
        "PersistentVolume" => persistent_volume(),
        "PersistentVolumeClaim" => claim(),
        "Pod" => pod::rules(),
        "PodTemplate" => pod_template(),
        "ReplicationController" => replication_controller(),
        "Service" => service::rules(),
        "ComponentStatus" => Rules {
            deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
            ..Rules::default()
        },
        "Endpoints" => Rules {
            deprecation: Some(
                "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
            ),
            defaults: core::endpoints,
            create_on_update: true,
            ..Rules::default()
        },
        "LimitRange" => Rules {
            defaults: core::limit_range,
            prepare_create: name_after_uid,
            create_on_update: true,
            ..Rules::default()
        },
        "ResourceQuota" => Rules {
            defaults: core::resource_quota,
            prepare_create: no_status,
            prepare_update: keep_status_or_spec,
            returns_deleted: true,
            reset_fields: status_or_spec,
            ..Rules::default()
        },
        "Secret" => Rules {
            defaults: core::secret,
            confidential: true,
            selectable: &["type"],
            select: select_text,
            unselectable,
            ..Rules::default()
        },
        "ServiceAccount" => Rules {
            prepare_create: core::secret_names,
            prepare_update: |new, _, _| core::secret_names(new),
            returns_deleted: true,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}

/// A limit range may come without a name; it gets one that nothing else has.
fn name_after_uid(new: &mut Map) {
    let metadata = new.object_at("metadata");
    if text(metadata, "name").is_empty() {
        let uid = Text::from(text(metadata, "uid"));
        metadata.insert("name", uid.into());
    }
}

/// The finalizer that keeps a namespace until its contents are gone.
const NAMESPACE_FINALIZER: &str = "kubernetes";

fn namespace() -> Rules {
    Rules {
        defaults: core::namespace,
        prepare_create: |new| {
            new.insert("status", value!({"phase": "Active"}));
            core::name_label(new);
            let spec = new.object_at("spec");
            let mut finalizers = list(spec, "finalizers").to_vec();
            if !finalizers
                .iter()
                .any(|name| name.as_str() == Some(NAMESPACE_FINALIZER))
            {
                finalizers.push(NAMESPACE_FINALIZER.into());
                spec.insert("finalizers", Value::Array(finalizers));
            }
        },
        prepare_update: namespace_update,
        name: NameRule::Label,
        returns_deleted: true,
        held: |namespace| {
            object(namespace, "spec").is_some_and(|spec| !list(spec, "finalizers").is_empty())
        },
        mark_deleting: |namespace| {
            namespace
                .object_at("status")
                .insert("phase", "Terminating".into());
        },
        selectable: &["status.phase"],
        select: select_text,
        unselectable,
        reset_fields: |subresource| match subresource {
            "" | "finalize" => STATUS,
            "status" => SPEC,
            _ => &[],
        },
        ..Rules::default()
    }
}

fn namespace_update(new: &mut Map, old: &Map, subresource: &str) {
    match subresource {
        "status" => copy(new, old, "spec"),
        "finalize" => copy(new, old, "status"),
        _ => {
            copy(new, old, "status");
            match at(old, &["spec", "finalizers"]).cloned() {
                Some(finalizers) => new.object_at("spec").insert("finalizers", finalizers),
                None => new.object_at("spec").remove("finalizers"),
            };
        }
    }
    core::name_label(new);
}

fn node() -> Rules {
    Rules {
        defaults: core::node,
        prepare_create: |new| {
            within(new, "spec", |spec| {
                spec.remove("configSource");
            });
            within(new, "status", |status| {
                status.remove("config");
            });
        },
        prepare_update: node_update,
        selectable: &["spec.unschedulable"],
        select: select_flag,
        unselectable,
        reset_fields: status_or_spec,
        ..Rules::default()
    }
}

/// Configuration by reference is gone; it stays only where it was.
fn node_update(new: &mut Map, old: &Map, subresource: &str) {
    keep_status_or_spec(new, old, subresource);
    let (part, field) = if subresource == "status" {
        ("status", "config")
    } else {
        ("spec", "configSource")
    };
    if at(old, &[part, field]).is_none() {
        within(new, part, |part| {
            part.remove(field);
        });
    }
}

fn persistent_volume() -> Rules {
    Rules {
        defaults: volumes::persistent_volume,
        prepare_create: |new| {
            new.insert("status", value!({"phase": "Pending"}));
        },
        prepare_update: keep_status_or_spec,
        stamp: stamp_phase,
        returns_deleted: true,
        reset_fields: status_or_spec,
        ..Rules::default()
    }
}

/// Says when the phase of a volume last changed.
fn stamp_phase(new: &mut Map, old: Option<&Map>, subresource: &str, now: &str) {
    const TIME: &str = "lastPhaseTransitionTime";
    let Some(old) = old else {
        new.object_at("status").insert(TIME, now.into());
        return;
    };
    if subresource != "status" {
        return;
    }
    let before = at(old, &["status", TIME]).cloned();
    let same_phase = text_at(old, &["status", "phase"]) == text_at(new, &["status", "phase"]);
    let status = new.object_at("status");
    if same_phase {
        if let Some(before) = before {
            fill(status, TIME, before);
        }
    } else if is_unset(status, TIME) || status.get(TIME) == before.as_ref() {
        status.insert(TIME, now.into());
    }
}

fn claim() -> Rules {
    Rules {
        defaults: volumes::claim,
        prepare_create: |new| {
            new.insert("status", value!({}));
            settle_data_source(new, None);
        },
        settle: volumes::claim,
        prepare_update: |new, old, subresource| {
            keep_status_or_spec(new, old, subresource);
            if subresource.is_empty() {
                settle_data_source(new, Some(old));
            }
        },
        returns_deleted: true,
        reset_fields: status_or_spec,
        ..Rules::default()
    }
}

/// Drops data sources that were never taken, then makes both fields say the same.
fn settle_data_source(new: &mut Map, old: Option<&Map>) {
    let old = old.and_then(|old| object(old, "spec"));
    let spec = new.object_at("spec");
    if old.is_none_or(|old| is_unset(old, "dataSourceRef"))
        && !text_at(spec, &["dataSourceRef", "namespace"]).is_empty()
    {
        spec.remove("dataSourceRef");
    }
    if !old.is_some_and(volumes::has_data_source) && is_unset(spec, "dataSourceRef") {
        let group = text_at(spec, &["dataSource", "apiGroup"]);
        let kind = text_at(spec, &["dataSource", "kind"]);
        if !matches!(
            (group, kind),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        ) {
            spec.remove("dataSource");
        }
    }
    volumes::pair_data_sources(spec);
}

fn pod_template() -> Rules {
    Rules {
        defaults: |new| crate::defaults::pod::template(new, "template"),
        prepare_create: |new| disabled::drop_at(new, None, &["template", "spec"]),
        prepare_update: |new, old, _| disabled::drop_at(new, Some(old), &["template", "spec"]),
        generation: Generation::AllButStatus,
        returns_deleted: true,
        ..Rules::default()
    }
}

fn replication_controller() -> Rules {
    Rules {
        defaults: workloads::replication_controller,
        settle: workloads::labels_from_template,
        prepare_create: |new| {
            new.insert("status", value!({"replicas": 0}));
            disabled::drop_from_template(new, None);
        },
        prepare_update: template_update,
        generation: Generation::Spec,
        orphan_by_default: true,
        selectable: &["status.replicas"],
        select: select_number,
        unselectable,
        reset_fields: status_or_spec,
        ..Rules::default()
    }
}
