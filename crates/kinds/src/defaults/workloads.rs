//! Defaults of the kinds that run pods from a template: `apps` and `batch`, and the older
//! replication controller.

use object::{Map, Value};

use super::fill::{each, fill, fill_text, is_unset, object, text, within};
use super::pod::{template, template_labels};
use super::volumes;

/// What a name keeps of `generateName`, and what it gets behind that.
const GENERATED_BASE_BYTES_MAX: usize = 58;
const GENERATED_SUFFIX_BYTES: usize = 5;

/// Fills a deployment.
pub(crate) fn deployment(deployment: &mut Map) {
    let spec = deployment.object_at("spec");
    fill(spec, "replicas", 1);
    let strategy = spec.object_at("strategy");
    fill_text(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = strategy.object_at("rollingUpdate");
        fill(rolling, "maxUnavailable", "25%");
        fill(rolling, "maxSurge", "25%");
    }
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    template(spec, "template");
}

/// The annotation in which a daemon set counts the changes of its template.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Fills a daemon set; the count of its templates is shown even before it begins.
pub(crate) fn daemon_set(daemon_set: &mut Map) {
    let annotations = daemon_set.object_at("metadata").object_at("annotations");
    fill(annotations, TEMPLATE_GENERATION, "0");
    let spec = daemon_set.object_at("spec");
    let strategy = spec.object_at("updateStrategy");
    fill_text(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = strategy.object_at("rollingUpdate");
        fill(rolling, "maxUnavailable", 1);
    }
    // Neither is ever left out, even where nothing rolls.
    within(strategy, "rollingUpdate", |rolling| {
        fill(rolling, "maxUnavailable", 0);
        fill(rolling, "maxSurge", 0);
    });
    fill(spec, "revisionHistoryLimit", 10);
    template(spec, "template");
}

/// Fills a stateful set.
pub(crate) fn stateful_set(stateful_set: &mut Map) {
    let spec = stateful_set.object_at("spec");
    fill_text(spec, "podManagementPolicy", "OrderedReady");
    let strategy = spec.object_at("updateStrategy");
    if text(strategy, "type").is_empty() {
        strategy.insert("type", "RollingUpdate".into());
        strategy.object_at("rollingUpdate");
    }
    if text(strategy, "type") == "RollingUpdate" {
        within(strategy, "rollingUpdate", |rolling| {
            fill(rolling, "partition", 0)
        });
    }
    let retention = spec.object_at("persistentVolumeClaimRetentionPolicy");
    fill_text(retention, "whenDeleted", "Retain");
    fill_text(retention, "whenScaled", "Retain");
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    template(spec, "template");
    each(spec, "volumeClaimTemplates", |claim| {
        claim.insert("apiVersion", "v1".into());
        claim.insert("kind", "PersistentVolumeClaim".into());
        volumes::claim(claim);
    });
}

/// Fills a replica set.
pub(crate) fn replica_set(replica_set: &mut Map) {
    let spec = replica_set.object_at("spec");
    fill(spec, "replicas", 1);
    template(spec, "template");
}

/// Fills a replication controller: selector and labels come from the template.
pub(crate) fn replication_controller(controller: &mut Map) {
    let spec = controller.object_at("spec");
    fill(spec, "replicas", 1);
    if !is_unset(spec, "template") {
        template(spec, "template");
    }
    if let Some(labels) = template_labels(spec).cloned() {
        if object(spec, "selector").is_none_or(Map::is_empty) {
            spec.insert("selector", labels.into());
        }
        labels_from_template(controller);
    }
}

/// Fills a job.
pub(crate) fn job(job: &mut Map) {
    let spec = job.object_at("spec");
    if is_unset(spec, "completions") && is_unset(spec, "parallelism") {
        spec.insert("completions", 1.into());
    }
    fill(spec, "parallelism", 1);
    let backoff = if is_unset(spec, "backoffLimitPerIndex") {
        6
    } else {
        i32::MAX
    };
    fill(spec, "backoffLimit", backoff);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replacement = if is_unset(spec, "podFailurePolicy") {
        "TerminatingOrFailed"
    } else {
        "Failed"
    };
    fill(spec, "podReplacementPolicy", replacement);
    fill(spec, "manualSelector", false);
    job_spec(spec);
    labels_from_template(job);
}

/// Fills a cron job; what a job fills in its own spec is left to the jobs it will make.
pub(crate) fn cron_job(cron_job: &mut Map) {
    let spec = cron_job.object_at("spec");
    fill_text(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    job_spec(spec.object_at("jobTemplate").object_at("spec"));
}

/// An object without labels takes those of its template.
pub(crate) fn labels_from_template(owner: &mut Map) {
    let Some(labels) = object(owner, "spec").and_then(template_labels).cloned() else {
        return;
    };
    let metadata = owner.object_at("metadata");
    if object(metadata, "labels").is_none_or(Map::is_empty) && !labels.is_empty() {
        metadata.insert("labels", Value::Object(labels));
    }
}

/// Whether an object that was given a name has the labels of its template. Upstream keeps such
/// labels once, so that what it adds to the template's shows on the object too.
pub(crate) fn shares_labels(owner: &Map) -> bool {
    let Some(metadata) = object(owner, "metadata") else {
        return false;
    };
    let labels = object(metadata, "labels").filter(|labels| !labels.is_empty());
    !is_name_generated(metadata)
        && labels.is_some()
        && labels == object(owner, "spec").and_then(template_labels)
}

/// Whether the name looks like one that was made from `generateName`.
fn is_name_generated(metadata: &Map) -> bool {
    let (base, name) = (text(metadata, "generateName"), text(metadata, "name"));
    let kept = base.len().min(GENERATED_BASE_BYTES_MAX);
    !base.is_empty()
        && name.len() == kept + GENERATED_SUFFIX_BYTES
        && name.as_bytes().starts_with(&base.as_bytes()[..kept])
}

fn job_spec(spec: &mut Map) {
    within(spec, "podFailurePolicy", |policy| {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |pattern| {
                fill_text(pattern, "status", "True")
            });
        });
    });
    template(spec, "template");
}
