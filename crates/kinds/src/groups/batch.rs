//! `batch`: jobs and cron jobs.

use object::{Map, Text};

use super::apps::template_update;
use super::disabled;
use super::strategy::{keep_status_or_spec, no_status, select_number, status_or_spec};
use crate::defaults::fill::{is_true, object, text};
use crate::defaults::workloads;
use crate::{Generation, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    let base = Rules {
        generation: Generation::Spec,
        reset_fields: status_or_spec,
        ..Rules::default()
    };
    match kind {
        "Job" => Rules {
            defaults: workloads::job,
            prepare_create: job_create,
            settle: workloads::labels_from_template,
            prepare_update: template_update,
            orphan_by_default: true,
            selectable: &["status.successful"],
            select: |object, _| select_number(object, "status.succeeded"),
            unselectable: |field| format!("field label \"{field}\" not supported for Job"),
            ..base
        },
        "CronJob" => Rules {
            defaults: workloads::cron_job,
            prepare_create: |new| {
                no_status(new);
                disabled::drop_at(new, None, &CRON_JOB_PODS);
            },
            prepare_update: |new, old, subresource| {
                keep_status_or_spec(new, old, subresource);
                disabled::drop_at(new, Some(old), &CRON_JOB_PODS);
            },
            ..base
        },
        _ => Rules::default(),
    }
}

const CRON_JOB_PODS: [&str; 5] = ["spec", "jobTemplate", "spec", "template", "spec"];

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

fn job_create(new: &mut Map) {
    if !object(new, "spec").is_some_and(|spec| is_true(spec, "manualSelector")) {
        let shared = workloads::shares_labels(new);
        select_own_pods(new);
        if shared {
            new.object_at("metadata").remove("labels");
        }
    }
    no_status(new);
    disabled::drop_from_template(new, None);
}

/// A job finds its pods by its own identity, which no other job shares.
fn select_own_pods(job: &mut Map) {
    let metadata = job.object_at("metadata");
    let name = Text::from(text(metadata, "name"));
    let uid = Text::from(text(metadata, "uid"));
    let spec = job.object_at("spec");
    let labels = spec
        .object_at("template")
        .object_at("metadata")
        .object_at("labels");
    for (key, value) in [
        ("job-name", &name),
        (JOB_NAME, &name),
        ("controller-uid", &uid),
        (CONTROLLER_UID, &uid),
    ] {
        labels.get_or_insert_with(key, || value.clone().into());
    }
    let selector = spec.object_at("selector").object_at("matchLabels");
    selector.get_or_insert_with(CONTROLLER_UID, || uid.into());
}
