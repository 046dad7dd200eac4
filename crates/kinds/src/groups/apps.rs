//! `apps`: deployments and the other kinds that keep pods running.

use std::num::IntErrorKind;

use object::field::quote;
use object::{Map, Text, value};

use super::disabled;
use super::strategy::{STATUS, keep_status_or_spec, no_status, status_or_spec};
use crate::defaults::fill::{at, copy, object, text_at, within};
use crate::defaults::workloads::{self, TEMPLATE_GENERATION};
use crate::validation::check::same_maps;
use crate::{Generation, NameRule, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    let base = Rules {
        prepare_create: |new| {
            no_status(new);
            disabled::drop_from_template(new, None);
        },
        prepare_update: template_update,
        generation: Generation::Spec,
        reset_fields: status_or_spec,
        ..Rules::default()
    };
    match kind {
        "DaemonSet" => Rules {
            unreadable: uncounted_template,
            defaults: workloads::daemon_set,
            prepare_create: daemon_set_create,
            prepare_update: daemon_set_update,
            carriers: &[workloads::TEMPLATE_GENERATION],
            ..base
        },
        "Deployment" => Rules {
            defaults: workloads::deployment,
            prepare_update: deployment_update,
            generation: Generation::SpecAndAnnotations,
            reset_fields: |subresource| match subresource {
                "" => STATUS,
                "status" => &[&["spec"], &["metadata", "labels"]],
                _ => &[],
            },
            ..base
        },
        "ReplicaSet" => Rules {
            defaults: workloads::replica_set,
            prepare_create: |new| {
                new.insert("status", value!({"replicas": 0}));
                disabled::drop_from_template(new, None);
            },
            ..base
        },
        "StatefulSet" => Rules {
            defaults: workloads::stateful_set,
            prepare_create: |new| {
                new.insert("status", value!({"availableReplicas": 0, "replicas": 0}));
                drop_max_unavailable(new, None);
                disabled::drop_from_template(new, None);
            },
            prepare_update: stateful_set_update,
            name: NameRule::Label,
            ..base
        },
        _ => Rules::default(),
    }
}

/// As every kind with status and template: the status stays, unknown features of pods go.
pub(super) fn template_update(new: &mut Map, old: &Map, subresource: &str) {
    keep_status_or_spec(new, old, subresource);
    disabled::drop_from_template(new, Some(old));
}

fn deployment_update(new: &mut Map, old: &Map, subresource: &str) {
    template_update(new, old, subresource);
    if subresource == "status"
        && let Some(old) = object(old, "metadata")
    {
        copy(new.object_at("metadata"), old, "labels");
    }
}

fn stateful_set_update(new: &mut Map, old: &Map, subresource: &str) {
    template_update(new, old, subresource);
    drop_max_unavailable(new, Some(old));
}

/// `maxUnavailable` of a stateful set is behind a gate that is closed by default.
fn drop_max_unavailable(new: &mut Map, old: Option<&Map>) {
    const MAX_UNAVAILABLE: [&str; 4] =
        ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];
    if old.is_some_and(|old| at(old, &MAX_UNAVAILABLE).is_some()) {
        return;
    }
    within(new, "spec", |spec| {
        within(spec, "updateStrategy", |strategy| {
            within(strategy, "rollingUpdate", |rolling| {
                rolling.remove("maxUnavailable");
            });
        });
    });
}

/// The count of templates travels as an annotation, and must be a number.
fn uncounted_template(daemon_set: &Map) -> Option<String> {
    let annotations = object(object(daemon_set, "metadata")?, "annotations")?;
    let count = annotations.get(TEMPLATE_GENERATION)?.as_str()?;
    let wrong = count.parse::<i64>().err()?;
    let cause = match wrong.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    let count = quote(count);
    Some(format!("strconv.ParseInt: parsing {count}: {cause}"))
}

fn daemon_set_create(new: &mut Map) {
    new.insert(
        "status",
        value!({
            "currentNumberScheduled": 0,
            "desiredNumberScheduled": 0,
            "numberMisscheduled": 0,
            "numberReady": 0,
        }),
    );
    set_template_generation(new, template_generation(new).max(1));
    disabled::drop_from_template(new, None);
}

fn daemon_set_update(new: &mut Map, old: &Map, subresource: &str) {
    template_update(new, old, subresource);
    let template =
        |daemon_set| object(daemon_set, "spec").and_then(|spec| object(spec, "template"));
    let changed = match (template(new), template(old)) {
        (Some(new), Some(old)) => !same_maps(new, old),
        (new, old) => new != old,
    };
    set_template_generation(
        new,
        template_generation(old).saturating_add(i64::from(changed)),
    );
}

fn template_generation(daemon_set: &Map) -> i64 {
    text_at(
        daemon_set,
        &["metadata", "annotations", TEMPLATE_GENERATION],
    )
    .parse()
    .unwrap_or(0)
}

fn set_template_generation(daemon_set: &mut Map, generation: i64) {
    let annotations = daemon_set.object_at("metadata").object_at("annotations");
    annotations.insert(
        TEMPLATE_GENERATION,
        Text::from(generation.to_string()).into(),
    );
}
