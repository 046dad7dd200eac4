//! Workloads: deployments, replica sets, stateful sets, daemon sets, replication controllers.
//!
//! Contract: `apps/validation` of kube-apiserver, and `core/validation` for the oldest of them.

use object::field::{FieldError, Path};
use object::{Map, Value, names, value};

use super::check::{self, Errors, Report};
use super::print::{self, Field, Shape};
use super::read::{Read, maps};
use super::{claims, meta, pod};

const UNMATCHED: &str = "`selector` does not match template `labels`";
const ABOVE_REPLICAS: &str = "cannot be greater than status.replicas";
const STATEFUL_SET_UPDATE: &str = "updates to statefulset spec for fields other than 'replicas', \
    'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
    'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

const ROLLING: Shape = Shape(&[
    Field::plain("maxUnavailable", "MaxUnavailable", "0"),
    Field::plain("maxSurge", "MaxSurge", "0"),
]);
const STRATEGY: Shape = Shape(&[
    Field::plain("type", "Type", "\"\""),
    Field::plain("rollingUpdate", "RollingUpdate", "null").of(&ROLLING),
]);
const ORDERED_ROLLING: Shape = Shape(&[
    Field::plain("partition", "Partition", "0"),
    Field::plain("maxUnavailable", "MaxUnavailable", "null"),
]);
const ORDERED_STRATEGY: Shape = Shape(&[
    Field::plain("type", "Type", "\"\""),
    Field::plain("rollingUpdate", "RollingUpdate", "null").of(&ORDERED_ROLLING),
]);

/// Checks a deployment.
pub(crate) fn deployment(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if let (Some(old), "status") = (old, subresource) {
        let path = root.field("status");
        deployment_status(new.object_or_empty("status"), &path, &mut errors);
        collisions(new, old, &path, &mut errors);
        return errors;
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    check::not_negative(spec, &["replicas"], &path, &mut errors);
    selector_and_template(spec, "deployment", &path, &mut errors);
    deployment_strategy(spec, &path.field("strategy"), &mut errors);
    check::not_negative(
        spec,
        &["minReadySeconds", "revisionHistoryLimit"],
        &path,
        &mut errors,
    );
    if let Some(deadline) = spec.int("progressDeadlineSeconds") {
        let path = path.field("progressDeadlineSeconds");
        check::at_least_zero(deadline, &path, &mut errors);
        if deadline <= spec.int("minReadySeconds").unwrap_or_default() {
            errors.invalid(&path, deadline, "must be greater than minReadySeconds");
        }
    }
    selector_unchanged(new, old, &path, &mut errors);
    errors
}

fn deployment_strategy(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let strategy = spec.object_or_empty("strategy");
    let rolling = strategy.object("rollingUpdate");
    match (strategy.text("type"), rolling) {
        ("Recreate", Some(_)) => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.forbidden(&path.field("rollingUpdate"), detail);
        }
        ("Recreate", None) => {}
        ("RollingUpdate", None) => {
            let detail = "this should be defaulted and never be nil";
            errors.required(&path.field("rollingUpdate"), detail);
        }
        ("RollingUpdate", Some(rolling)) => {
            rolling_deployment(rolling, &path.field("rollingUpdate"), errors);
        }
        _ => {
            let shown = print::print(spec.value("strategy"), Some(&STRATEGY));
            let supported = ["Recreate", "RollingUpdate"];
            errors.push(unsupported_struct(path, shown, &supported));
        }
    }
}

fn unsupported_struct(path: &Path<'_>, shown: String, supported: &[&str]) -> FieldError {
    let mut error = FieldError::not_supported(path, &Value::Null, supported);
    error.value = Some(shown);
    error
}

fn rolling_deployment(rolling: &Map, path: &Path<'_>, errors: &mut Errors) {
    let (down, up) = (rolling.value("maxUnavailable"), rolling.value("maxSurge"));
    let down_path = path.field("maxUnavailable");
    check::int_or_percent(down, &down_path, errors);
    check::int_or_percent(up, &path.field("maxSurge"), errors);
    if check::int_or_percent_amount(down) == 0 && check::int_or_percent_amount(up) == 0 {
        errors.invalid_value(&down_path, down, "may not be 0 when `maxSurge` is 0");
    }
    check::at_most_whole(down, &down_path, errors);
}

fn deployment_status(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let counters = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    check::not_negative(status, &counters, path, errors);
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    at_most_replicas(status, &parts, "readyReplicas", path, errors);
}

/// No count of replicas is above the whole, nor are more available than ready.
fn at_most_replicas(
    status: &Map,
    parts: &[&str],
    ready: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let count = |key: &str| status.int(key).unwrap_or_default();
    for part in parts {
        if count(part) > count("replicas") {
            errors.invalid(&path.field(part), count(part), ABOVE_REPLICAS);
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let detail = format!("cannot be greater than {ready}");
        errors.invalid(
            &path.field("availableReplicas"),
            count("availableReplicas"),
            detail,
        );
    }
}

fn collisions(new: &Map, old: &Map, path: &Path<'_>, errors: &mut Errors) {
    let count = |object: &Map| object.object_or_empty("status").int("collisionCount");
    if check::is_decremented(count(new), count(old)) {
        let count = count(new).unwrap_or_default();
        errors.invalid(
            &path.field("collisionCount"),
            count,
            "cannot be decremented",
        );
    }
}

/// Checks a selector and that the template's pods would be found by it.
fn selector_and_template(spec: &Map, what: &str, path: &Path<'_>, errors: &mut Errors) {
    let readable = selector(spec, what, path, errors);
    if !readable {
        let detail = if what == "statefulset" {
            ""
        } else {
            "invalid label selector"
        };
        check::invalid_selector(
            &path.field("selector"),
            spec.value("selector"),
            detail,
            errors,
        );
        return;
    }
    let template = spec.object_or_empty("template");
    let path = path.field("template");
    template_labels(spec, template, &path, errors);
    pod::template(template, &path, errors);
    always_running(template, "ReplicaSet", &path, errors);
}

/// Checks a selector; says whether it can be read.
fn selector(spec: &Map, what: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let path = path.field("selector");
    let Some(selector) = spec.object("selector") else {
        errors.required(&path, "");
        return true;
    };
    let before = errors.len();
    check::label_selector(Some(selector), &path, errors);
    let readable = errors.len() == before;
    if check::selects_all(selector) {
        let detail = format!("empty selector is invalid for {what}");
        check::invalid_selector(&path, spec.value("selector"), &detail, errors);
    }
    readable
}

fn template_labels(spec: &Map, template: &Map, path: &Path<'_>, errors: &mut Errors) {
    let selector = spec.object("selector");
    if selector.is_some_and(check::selects_all) {
        return;
    }
    let metadata = template.object_or_empty("metadata");
    let matches = check::selector_matches(selector, metadata.object_or_empty("labels"));
    if matches == Some(false) {
        let path = path.field("metadata");
        errors.invalid_value(&path.field("labels"), metadata.value("labels"), UNMATCHED);
    }
}

fn always_running(template: &Map, what: &str, path: &Path<'_>, errors: &mut Errors) {
    let spec = template.object_or_empty("spec");
    let path = path.field("spec");
    let policy = spec.text("restartPolicy");
    check::choice_or_empty(policy, &["Always"], &path.field("restartPolicy"), errors);
    if spec.has("activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {what} is not Supported");
        errors.forbidden(&path.field("activeDeadlineSeconds"), detail);
    }
}

fn selector_unchanged(new: &Map, old: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let Some(old) = old else {
        return;
    };
    let new = new.object_or_empty("spec").value("selector");
    if !check::same(new, old.object_or_empty("spec").value("selector")) {
        check::invalid_selector(&path.field("selector"), new, check::IMMUTABLE, errors);
    }
}

/// Checks a replica set.
pub(crate) fn replica_set(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() && subresource == "status" {
        replica_status(
            new.object_or_empty("status"),
            &root.field("status"),
            &mut errors,
        );
        return errors;
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    check::not_negative(spec, &["replicas", "minReadySeconds"], &path, &mut errors);
    selector_and_template(spec, "deployment", &path, &mut errors);
    selector_unchanged(new, old, &path, &mut errors);
    errors
}

fn replica_status(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let counters = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    check::not_negative(status, &counters, path, errors);
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    at_most_replicas(status, &parts, "readyReplicas", path, errors);
}

/// Checks a replication controller.
pub(crate) fn replication_controller(
    new: &Map,
    old: Option<&Map>,
    subresource: &str,
) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() && subresource == "status" {
        replica_status(
            new.object_or_empty("status"),
            &root.field("status"),
            &mut errors,
        );
        return errors;
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    check::not_negative(spec, &["minReadySeconds"], &path, &mut errors);
    let selector = spec.object_or_empty("selector");
    if selector.is_empty() {
        errors.required(&path.field("selector"), "");
    }
    check::require(spec, &["replicas"], &path, &mut errors);
    check::not_negative(spec, &["replicas"], &path, &mut errors);
    let path = path.field("template");
    let Some(template) = spec.object("template") else {
        errors.required(&path, "");
        return errors;
    };
    let metadata = template.object_or_empty("metadata");
    let labels = metadata.object_or_empty("labels");
    if selector
        .iter()
        .any(|(key, value)| labels.get(key) != Some(value))
    {
        let path = path.field("metadata");
        errors.invalid_value(&path.field("labels"), metadata.value("labels"), UNMATCHED);
    }
    pod::template(template, &path, &mut errors);
    always_running(template, "ReplicationController", &path, &mut errors);
    errors
}

/// Checks a stateful set.
pub(crate) fn stateful_set(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if let (Some(old), "status") = (old, subresource) {
        let path = root.field("status");
        stateful_status(new.object_or_empty("status"), &path, &mut errors);
        collisions(new, old, &path, &mut errors);
        return errors;
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    stateful_spec(spec, old.is_none(), &path, &mut errors);
    if let Some(old) = old {
        let stored = old.object_or_empty("spec");
        let mut munged = spec.clone();
        for key in [
            "replicas",
            "template",
            "updateStrategy",
            "minReadySeconds",
            "ordinals",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
        ] {
            match stored.get(key) {
                Some(value) => munged.insert(key, value.clone()),
                None => munged.remove(key),
            };
        }
        if !check::same(&munged.into(), &stored.clone().into()) {
            errors.forbidden(&path, STATEFUL_SET_UPDATE);
        }
    }
    errors
}

fn stateful_spec(spec: &Map, is_new: bool, path: &Path<'_>, errors: &mut Errors) {
    match spec.text("podManagementPolicy") {
        "" => errors.required(&path.field("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.invalid(&path.field("podManagementPolicy"), other, detail);
        }
    }
    ordered_strategy(spec, &path.field("updateStrategy"), errors);
    if let Some(policy) = spec.object("persistentVolumeClaimRetentionPolicy") {
        let path = path.field("persistentVolumeClaimRetentionPolicy");
        for key in ["whenDeleted", "whenScaled"] {
            let choice = policy.text(key);
            check::choice_or_empty(choice, &["Retain", "Delete"], &path.field(key), errors);
        }
    }
    if is_new {
        let templates = path.field("volumeClaimTemplates");
        for (index, claim) in maps(spec.list("volumeClaimTemplates")) {
            let path = templates.index(index);
            claims::spec(
                claim.object_or_empty("spec"),
                None,
                &path.field("spec"),
                errors,
            );
        }
    }
    check::not_negative(spec, &["replicas", "minReadySeconds"], path, errors);
    if let Some(start) = spec.object_or_empty("ordinals").int("start") {
        check::at_least_zero(start, &path.field("ordinals.start"), errors);
    }
    let service = spec.text("serviceName");
    if is_new && !service.is_empty() {
        errors.each(
            &path.field("serviceName"),
            service,
            names::dns1123_label(service),
        );
    }
    if !selector(spec, "statefulset", path, errors) {
        check::invalid_selector(&path.field("selector"), spec.value("selector"), "", errors);
    } else {
        let template = spec.object_or_empty("template");
        let path = path.field("template");
        template_labels(spec, template, &path, errors);
        let seen = as_controller_sees(spec, template);
        let template = seen.as_ref().unwrap_or(template);
        pod::template(template, &path, errors);
        pod::template_again(template, &path, errors);
    }
    let template = spec.object_or_empty("template");
    always_running(template, "StatefulSet", &path.field("template"), errors);
}

/// The template with what the controller fills in for each pod: its claims as volumes, and no
/// host name of its own.
fn as_controller_sees(spec: &Map, template: &Map) -> Option<Map> {
    let claims = spec.list("volumeClaimTemplates");
    let given = template.object_or_empty("spec");
    if claims.is_empty() && given.text("hostname").is_empty() && given.text("subdomain").is_empty()
    {
        return None;
    }
    let mut volumes: Vec<Value> = Vec::new();
    let name = |claim: &Map| claim.object_or_empty("metadata").text("name").to_owned();
    for (index, claim) in maps(claims) {
        if maps(&claims[index + 1..]).any(|(_, later)| name(later) == name(claim)) {
            continue;
        }
        let name = name(claim);
        let claim = value!({"claimName": (name.clone())});
        volumes.push(value!({"name": name, "persistentVolumeClaim": claim}));
    }
    for (_, volume) in maps(given.list("volumes")) {
        if !maps(claims).any(|(_, claim)| name(claim) == volume.text("name")) {
            volumes.push(Value::Object(volume.clone()));
        }
    }
    let mut template = template.clone();
    let spec = template.object_at("spec");
    spec.remove("hostname");
    spec.remove("subdomain");
    spec.insert("volumes", volumes.into());
    Some(template)
}

fn ordered_strategy(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let strategy = spec.object_or_empty("updateStrategy");
    match (strategy.text("type"), strategy.object("rollingUpdate")) {
        ("", _) => errors.required(path, ""),
        ("OnDelete", Some(_)) => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            let shown = strategy.value("rollingUpdate");
            let path = path.field("rollingUpdate");
            errors.push(print::invalid(&path, shown, &ORDERED_ROLLING, detail));
        }
        ("OnDelete", None) | ("RollingUpdate", None) => {}
        ("RollingUpdate", Some(rolling)) => {
            let path = path.field("rollingUpdate");
            check::not_negative(rolling, &["partition"], &path, errors);
            let down = rolling.value("maxUnavailable");
            if !down.is_null() {
                let path = path.field("maxUnavailable");
                check::int_or_percent(down, &path, errors);
                if check::int_or_percent_amount(down) == 0 {
                    errors.invalid_value(&path, down, "cannot be 0");
                }
                check::at_most_whole(down, &path, errors);
            }
        }
        _ => {
            let shown = spec.value("updateStrategy");
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(print::invalid(path, shown, &ORDERED_STRATEGY, detail));
        }
    }
}

fn stateful_status(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let counters = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    check::not_negative(status, &counters, path, errors);
    let parts = [
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    at_most_replicas(status, &parts, "status.readyReplicas", path, errors);
}

/// Checks a daemon set.
pub(crate) fn daemon_set(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if let (Some(old), "status") = (old, subresource) {
        let path = root.field("status");
        let counters = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ];
        check::not_negative(new.object_or_empty("status"), &counters, &path, &mut errors);
        collisions(new, old, &path, &mut errors);
        return errors;
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    selector_unchanged(new, old, &path, &mut errors);
    let selector = spec.object("selector");
    let before = errors.len();
    check::label_selector(selector, &path.field("selector"), &mut errors);
    let readable = errors.len() == before;
    let template = spec.object_or_empty("template");
    let metadata = template.object_or_empty("metadata");
    let labels = metadata.object_or_empty("labels");
    if readable && check::selector_matches(selector, labels) == Some(false) {
        let path = path.field("template");
        let path = path.field("metadata");
        errors.invalid_value(&path.field("labels"), metadata.value("labels"), UNMATCHED);
    }
    if selector.is_some_and(check::selects_all) {
        let detail = "empty selector is invalid for daemonset";
        let selector = spec.value("selector");
        check::invalid_selector(&path.field("selector"), selector, detail, &mut errors);
    }
    pod::template(template, &path.field("template"), &mut errors);
    always_running(template, "DaemonSet", &path.field("template"), &mut errors);
    check::not_negative(spec, &["minReadySeconds"], &path, &mut errors);
    daemon_strategy(spec, &path.field("updateStrategy"), &mut errors);
    check::not_negative(spec, &["revisionHistoryLimit"], &path, &mut errors);
    errors
}

fn daemon_strategy(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let strategy = spec.object_or_empty("updateStrategy");
    match strategy.text("type") {
        "OnDelete" => return,
        "RollingUpdate" => {}
        _ => {
            let shown = print::print(spec.value("updateStrategy"), Some(&STRATEGY));
            errors.push(unsupported_struct(
                path,
                shown,
                &["RollingUpdate", "OnDelete"],
            ));
            return;
        }
    }
    let path = path.field("rollingUpdate");
    let Some(rolling) = strategy.object("rollingUpdate") else {
        errors.required(&path, "");
        return;
    };
    let (down, up) = (rolling.value("maxUnavailable"), rolling.value("maxSurge"));
    let (down_path, up_path) = (path.field("maxUnavailable"), path.field("maxSurge"));
    for check in [check::int_or_percent, check::at_most_whole] {
        check(down, &down_path, errors);
        check(up, &up_path, errors);
    }
    let amount = check::int_or_percent_amount;
    match (amount(down) != 0, amount(up) != 0) {
        (true, true) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.invalid_value(&up_path, up, detail);
        }
        (false, false) => errors.required(&down_path, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

/// Checks a stored revision of a workload.
pub(crate) fn controller_revision(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() {
        meta::again(new, true, &mut errors);
    }
    check::not_negative(new, &["revision"], &root, &mut errors);
    let path = root.field("data");
    match (old, new.value("data")) {
        (Some(old), data) if data != old.value("data") => {
            errors.invalid_value(&path, data, check::IMMUTABLE);
        }
        (Some(_), _) => {}
        (None, Value::Null) => errors.required(&path, "data is mandatory"),
        (None, Value::Object(_)) => {}
        (None, _) => errors.required(&path, "data must be a valid JSON object"),
    }
    errors
}

/// Checks a template of pods that stands by itself.
pub(crate) fn pod_template(new: &Map, _: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    pod::template(
        new.object_or_empty("template"),
        &root.field("template"),
        &mut errors,
    );
    errors
}

/// Checks what a client asks of a scale subresource.
pub(crate) fn scale(new: &Map) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    check::not_negative(
        new.object_or_empty("spec"),
        &["replicas"],
        &root.field("spec"),
        &mut errors,
    );
    errors
}

#[cfg(test)]
mod tests;
