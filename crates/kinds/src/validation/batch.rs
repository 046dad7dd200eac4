//! Jobs and the jobs that clocks start.

mod schedule;
mod status;

use object::field::{FieldError, Mistake, Path, quote};
use object::{Map, Value, names};

use super::check::{self, Errors, Report};
use super::read::{Read, maps};
use super::{internal, meta, pod};

const INDEXES_MAX: i64 = 100_000;
const MANY_COMPLETIONS: i64 = 100_000;
const AMONG_MANY_MAX: i64 = 10_000;
const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const MANAGER_BYTES_MAX: usize = 63;
const INDEX_BYTES_MAX: usize = 64 * 1024;
const CRON_JOB_NAME_BYTES_MAX: usize = 52;
const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const NEEDS_INDEXED: &str = "requires indexed completion mode";

/// Checks a job. A change is checked as a new job and as a change.
pub(crate) fn job(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if let (Some(old), "status") = (old, subresource) {
        status::changed(new, old, &mut errors);
        return errors;
    }
    if old.is_some() {
        meta::again(new, true, &mut errors);
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    if old.is_none() {
        shared_labels(new, spec, &root, &mut errors);
    }
    generated_selector(new, spec, &root, &mut errors);
    spec_and_selector(spec, &path, &mut errors);
    let completions = spec.int("completions").unwrap_or_default();
    let name = new.object_or_empty("metadata").text("name");
    if is_indexed(spec) && completions > 0 {
        let host = format!("{name}-{}", completions - 1);
        if !names::dns1123_label(&host).is_empty() {
            let path = root.field("metadata");
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            errors.invalid(&path.field("name"), name, detail);
        }
    }
    if let Some(old) = old {
        spec_and_selector(spec, &path, &mut errors);
        change(spec, old, &path, &mut errors);
    }
    errors
}

fn is_indexed(spec: &Map) -> bool {
    spec.text("completionMode") == "Indexed"
}

/// The labels that tie a job to its pods, old and new, and whether they hold the job's uid.
const OWN_LABELS: [(&str, bool); 4] = [
    ("controller-uid", true),
    ("job-name", false),
    ("batch.kubernetes.io/controller-uid", true),
    ("batch.kubernetes.io/job-name", false),
];

/// A new job without labels has those of its template, which the server has added its own to.
fn shared_labels(job: &Map, spec: &Map, root: &Path<'_>, errors: &mut Errors) {
    let template = spec.object_or_empty("template").object_or_empty("metadata");
    let labels = template.object_or_empty("labels");
    let is_own = |key: &str| OWN_LABELS.iter().any(|(own, _)| *own == key);
    let shares = labels.iter().any(|(key, _)| !is_own(key));
    if shares && !job.object_or_empty("metadata").has("labels") {
        meta::labels(
            Some(labels),
            &root.field("metadata").field("labels"),
            errors,
        );
    }
}

fn generated_selector(job: &Map, spec: &Map, root: &Path<'_>, errors: &mut Errors) {
    if spec.flag("manualSelector") || !spec.has("selector") {
        return;
    }
    let metadata = job.object_or_empty("metadata");
    let (uid, name) = (metadata.text("uid"), metadata.text("name"));
    if uid.is_empty() {
        errors.required(&root.field("metadata").field("uid"), "");
    }
    let template = spec.object_or_empty("template").object_or_empty("metadata");
    let path = root.field("spec");
    let template_path = path.field("template");
    let template_path = template_path.field("metadata");
    let labels_path = template_path.field("labels");
    let labels = template.object_or_empty("labels");
    let mut expected = Map::new();
    for (label, is_uid) in OWN_LABELS {
        let wanted = if is_uid { uid } else { name };
        expected.insert(label, wanted.into());
        match labels.get(label).and_then(Value::as_str) {
            None => errors.required(&labels_path.key(label), &format!("must be '{wanted}'")),
            Some(actual) if actual != wanted => {
                let value = template.value("labels");
                let detail = format!("must be '{wanted}'");
                errors.invalid_value(&labels_path.key(label), value, detail);
            }
            Some(_) => {}
        }
    }
    if check::selector_matches(spec.object("selector"), &expected) == Some(false) {
        let detail = "`selector` not auto-generated";
        let path = path.field("selector");
        check::invalid_selector(&path, spec.value("selector"), detail, errors);
    }
}

fn spec_and_selector(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    job_spec(spec, path, errors);
    let selector = spec.object("selector");
    if selector.is_none() {
        errors.required(&path.field("selector"), "");
    }
    check::label_selector(selector, &path.field("selector"), errors);
    let metadata = spec.object_or_empty("template").object_or_empty("metadata");
    let labels = metadata.object_or_empty("labels");
    if check::selector_matches(selector, labels) == Some(false) {
        let path = path.field("template");
        let path = path.field("metadata");
        let detail = "`selector` does not match template `labels`";
        errors.invalid_value(&path.field("labels"), metadata.value("labels"), detail);
    }
}

fn job_spec(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let counters = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    check::not_negative(spec, &counters, path, errors);
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        let detail = "when maxFailedIndexes is specified";
        errors.required(&path.field("backoffLimitPerIndex"), detail);
    }
    if spec.has("managedBy") {
        let manager = spec.text("managedBy");
        let path = path.field("managedBy");
        errors.extend(names::domain_prefixed_path(&path, manager));
        if manager.len() > MANAGER_BYTES_MAX {
            errors.push(FieldError::too_long(&path, MANAGER_BYTES_MAX));
        }
    }
    completion_mode(spec, path, errors);
    if let Some(policy) = spec.object("podFailurePolicy") {
        failure_policy(spec, policy, &path.field("podFailurePolicy"), errors);
    }
    if let Some(policy) = spec.object("successPolicy") {
        let path = path.field("successPolicy");
        if is_indexed(spec) {
            success_policy(spec, policy, &path, errors);
        } else {
            let policy = spec.value("successPolicy");
            errors.push(internal::invalid(
                &path,
                policy,
                "SuccessPolicy",
                NEEDS_INDEXED,
            ));
        }
    }
    if spec.has("podReplacementPolicy") {
        let supported: &[&str] = if spec.has("podFailurePolicy") {
            &["Failed"]
        } else {
            &["Failed", "TerminatingOrFailed"]
        };
        let policy = spec.text("podReplacementPolicy");
        let path = path.field("podReplacementPolicy");
        check::choice_or_empty(policy, supported, &path, errors);
    }
    pod::template(
        spec.object_or_empty("template"),
        &path.field("template"),
        errors,
    );
    restart_policy(spec, path, errors);
}

fn restart_policy(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let policy = spec
        .object_or_empty("template")
        .object_or_empty("spec")
        .text("restartPolicy");
    let path = path.field("template");
    let path = path.field("spec");
    let path = path.field("restartPolicy");
    match policy {
        "Always" | "" => {
            errors.required(&path, "valid values: \"OnFailure\", \"Never\"");
        }
        "OnFailure" if spec.has("podFailurePolicy") => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.invalid(&path, policy, detail);
        }
        "OnFailure" | "Never" => {}
        other => errors.unsupported(&path, other, &["OnFailure", "Never"]),
    }
}

fn completion_mode(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let mode = spec.text("completionMode");
    if spec.has("completionMode") {
        let path = path.field("completionMode");
        check::choice_or_empty(mode, &["NonIndexed", "Indexed"], &path, errors);
    }
    if !spec.has("completionMode") || mode == "NonIndexed" {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = spec.int(key) {
                errors.invalid(&path.field(key), number, NEEDS_INDEXED);
            }
        }
    }
    if mode == "Indexed" {
        indexed(spec, path, errors);
    }
}

fn indexed(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let completions = spec.int("completions");
    let (parallel, failed) = (spec.int("parallelism"), spec.int("maxFailedIndexes"));
    let (parallel_path, failed_path) = (path.field("parallelism"), path.field("maxFailedIndexes"));
    if completions.is_none() {
        errors.required(
            &path.field("completions"),
            "when completion mode is Indexed",
        );
    }
    if let Some(number) = parallel.filter(|number| *number > INDEXES_MAX) {
        let detail =
            format!("must be less than or equal to {INDEXES_MAX} when completion mode is Indexed");
        errors.invalid(&parallel_path, number, detail);
    }
    if let (Some(completions), Some(failed)) = (completions, failed)
        && failed > completions
    {
        errors.invalid(
            &failed_path,
            failed,
            "must be less than or equal to completions",
        );
    }
    if let Some(number) = failed.filter(|number| *number > INDEXES_MAX) {
        let detail = format!("must be less than or equal to {INDEXES_MAX}");
        errors.invalid(&failed_path, number, detail);
    }
    if completions.is_none_or(|number| number <= MANY_COMPLETIONS)
        || !spec.has("backoffLimitPerIndex")
    {
        return;
    }
    let detail = format!(
        "must be less than or equal to {AMONG_MANY_MAX} when completions are above \
         {MANY_COMPLETIONS} and used with backoff limit per index"
    );
    if failed.is_none() {
        let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
        errors.required(&failed_path, &detail);
    }
    for (number, path) in [(parallel, &parallel_path), (failed, &failed_path)] {
        if let Some(number) = number.filter(|number| *number > AMONG_MANY_MAX) {
            errors.invalid(path, number, detail.clone());
        }
    }
}

fn failure_policy(spec: &Map, policy: &Map, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("rules");
    let rules = policy.list("rules");
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&path, rules.len(), RULES_MAX));
    }
    for (index, rule) in maps(rules) {
        let path = path.index(index);
        let action = rule.text("action");
        let action_path = path.field("action");
        match action {
            "" => errors.required(&action_path, &valid_values(ACTIONS)),
            "FailIndex" if !spec.has("backoffLimitPerIndex") => {
                let detail = "requires the backoffLimitPerIndex to be set";
                errors.invalid(&action_path, action, detail);
            }
            _ => check::choice_or_empty(action, ACTIONS, &action_path, errors),
        }
        let codes = rule.object("onExitCodes");
        if let Some(codes) = codes {
            exit_codes(spec, codes, &path.field("onExitCodes"), errors);
        }
        let conditions = rule.list("onPodConditions");
        pod_conditions(conditions, &path.field("onPodConditions"), errors);
        let detail = match (codes.is_some(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(without_value(&path, detail));
    }
}

/// A mistake whose value is left out on purpose.
fn without_value(path: &Path<'_>, detail: &str) -> FieldError {
    FieldError {
        mistake: Mistake::Invalid,
        field: path.to_string(),
        value: None,
        detail: detail.to_owned(),
    }
}

fn valid_values(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn exit_codes(spec: &Map, codes: &Map, path: &Path<'_>, errors: &mut Errors) {
    let operator = codes.text("operator");
    let operators = ["In", "NotIn"];
    let operator_path = path.field("operator");
    if operator.is_empty() {
        errors.required(&operator_path, &valid_values(&operators));
    } else {
        check::choice_or_empty(operator, &operators, &operator_path, errors);
    }
    let template = spec.object_or_empty("template").object_or_empty("spec");
    if codes.has("containerName") {
        let name = codes.text("containerName");
        let known = maps(template.list("containers"))
            .chain(maps(template.list("initContainers")))
            .any(|(_, container)| container.text("name") == name);
        if !known {
            let detail = "must be one of the container or initContainer names in the pod template";
            errors.invalid(&path.field("containerName"), name, detail);
        }
    }
    let path = path.field("values");
    let values = codes.list("values");
    if values.is_empty() {
        errors.invalid_value(
            &path,
            codes.value("values"),
            "at least one value is required",
        );
    } else if values.len() > EXIT_CODES_MAX {
        errors.push(FieldError::too_many(&path, values.len(), EXIT_CODES_MAX));
    }
    let numbers: Vec<i64> = values.iter().filter_map(Value::as_int).collect();
    for (index, number) in numbers.iter().enumerate() {
        if operator == "In" && *number == 0 {
            errors.invalid(&path.index(index), 0, "must not be 0 for the In operator");
        }
        if numbers[..index].contains(number) {
            errors.push(FieldError::duplicate(&path.index(index), &(*number).into()));
        }
    }
    if !numbers.is_sorted() {
        errors.invalid_value(&path, codes.value("values"), "must be ordered");
    }
}

fn pod_conditions(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if list.len() > RULES_MAX {
        errors.push(FieldError::too_many(path, list.len(), RULES_MAX));
    }
    for (index, pattern) in maps(list) {
        let path = path.index(index);
        let kind = pattern.text("type");
        errors.each(&path.field("type"), kind, names::qualified_name(kind));
        let states = ["False", "True", "Unknown"];
        let state = pattern.text("status");
        if state.is_empty() {
            errors.required(&path.field("status"), &valid_values(&states));
        } else {
            check::choice_or_empty(state, &states, &path.field("status"), errors);
        }
    }
}

fn success_policy(spec: &Map, policy: &Map, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("rules");
    let rules = policy.list("rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.required(&path, detail);
    }
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&path, rules.len(), RULES_MAX));
    }
    let completions = spec.int("completions").unwrap_or_default();
    for (index, rule) in maps(rules) {
        let path = path.index(index);
        let count = rule.int("succeededCount");
        if count.is_none() && !rule.has("succeededIndexes") {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.required(&path, detail);
        }
        let mut total = None;
        if rule.has("succeededIndexes") {
            let indexes = rule.text("succeededIndexes");
            let path = path.field("succeededIndexes");
            if indexes.len() > INDEX_BYTES_MAX {
                errors.push(FieldError::too_long(&path, INDEX_BYTES_MAX));
            }
            total = Some(
                schedule::count_indexes(indexes, completions).unwrap_or_else(|error| {
                    let detail = format!("error parsing succeededIndexes: {error}");
                    errors.invalid(&path, indexes, detail);
                    0
                }),
            );
        }
        let Some(count) = count else {
            continue;
        };
        let path = path.field("succeededCount");
        check::at_least_zero(count, &path, errors);
        if count > completions {
            let detail = format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            );
            errors.invalid(&path, count, detail);
        }
        if let Some(total) = total.filter(|total| count > *total) {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified \
                 succeededIndexes field)"
            );
            errors.invalid(&path, count, detail);
        }
    }
}

fn change(spec: &Map, old: &Map, path: &Path<'_>, errors: &mut Errors) {
    let stored = old.object_or_empty("spec");
    let completions = spec.int("completions");
    if !is_indexed(spec) {
        check::unchanged(spec, stored, "completions", path, errors);
    } else if completions != stored.int("completions")
        && completions.is_some()
        && completions != spec.int("parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        let value = spec.value("completions");
        errors.invalid_value(&path.field("completions"), value, detail);
    }
    if !check::same(spec.value("selector"), stored.value("selector")) {
        let selector = spec.value("selector");
        check::invalid_selector(&path.field("selector"), selector, check::IMMUTABLE, errors);
    }
    template_change(spec, old, path, errors);
    for (key, shape) in [
        ("completionMode", ""),
        ("podFailurePolicy", "PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
        ("successPolicy", "SuccessPolicy"),
    ] {
        let now = spec.value(key);
        if shape.is_empty() {
            check::unchanged(spec, stored, key, path, errors);
        } else if !check::same(now, stored.value(key)) {
            let path = path.field(key);
            errors.push(internal::invalid(&path, now, shape, check::IMMUTABLE));
        }
    }
}

/// A job that is suspended and of which nothing runs may still be told where to run and with how
/// much; then only the pods of its template are looked at.
fn template_change(spec: &Map, old: &Map, path: &Path<'_>, errors: &mut Errors) {
    let stored = old.object_or_empty("spec");
    let status = old.object_or_empty("status");
    let paused = stored.flag("suspend")
        && (!status.has("startTime") || is_true(status, "Suspended"))
        && status.int("active").unwrap_or_default() == 0;
    let before = stored.object_or_empty("template");
    let now = spec.object_or_empty("template");
    let path = path.field("template");
    if !paused {
        if !check::same(spec.value("template"), stored.value("template")) {
            let (value, shape) = (spec.value("template"), "PodTemplateSpec");
            errors.push(internal::invalid(&path, value, shape, check::IMMUTABLE));
        }
        return;
    }
    let pod = now.object_or_empty("spec");
    let mut old_pod = before.object_or_empty("spec").clone();
    adopt(
        &mut old_pod,
        pod,
        &["nodeSelector", "tolerations", "schedulingGates"],
    );
    adopt_node_affinity(&mut old_pod, pod);
    for key in ["containers", "initContainers"] {
        let wished = pod.list(key);
        let list = old_pod.get_mut(key).and_then(Value::as_array_mut);
        let list = list.filter(|list| list.len() == wished.len());
        for (old, new) in list.into_iter().flatten().zip(wished) {
            if let (Some(old), Some(new)) = (old.as_object_mut(), new.as_object())
                && old.text("name") == new.text("name")
            {
                adopt(old, new, &["resources"]);
            }
        }
    }
    if !check::same(now.value("spec"), &old_pod.into()) {
        let path = path.field("spec");
        let value = now.value("spec");
        errors.push(internal::invalid(&path, value, "PodSpec", check::IMMUTABLE));
    }
}

/// Adopts which nodes a pod wants, be it that it now wants nothing else or did not before.
fn adopt_node_affinity(old: &mut Map, new: &Map) {
    const KEY: &str = "affinity";
    match (new.object(KEY), old.has(KEY)) {
        (None, false) => {}
        (None, true) => {
            let affinity = old.object_at(KEY);
            affinity.remove("nodeAffinity");
            if affinity.is_empty() {
                old.remove(KEY);
            }
        }
        (Some(wished), _) => adopt(old.object_at(KEY), wished, &["nodeAffinity"]),
    }
}

fn adopt(map: &mut Map, from: &Map, keys: &[&str]) {
    for key in keys {
        match from.get(key) {
            Some(value) => map.insert(*key, value.clone()),
            None => map.remove(key),
        };
    }
}

fn is_true(status: &Map, kind: &str) -> bool {
    maps(status.list("conditions"))
        .any(|(_, it)| it.text("type") == kind && it.text("status") == "True")
}

/// Checks a job that a clock starts.
pub(crate) fn cron_job(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() && subresource == "status" {
        return errors;
    }
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    let stored = old.map(|old| old.object_or_empty("spec"));
    let text = spec.text("schedule");
    if text.is_empty() {
        errors.required(&path.field("schedule"), "");
    } else {
        let kept = stored.is_some_and(|stored| stored.text("schedule").contains("TZ"));
        let zoned = spec.has("timeZone");
        schedule::validate(text, kept, zoned, &path.field("schedule"), &mut errors);
    }
    check::not_negative(spec, &["startingDeadlineSeconds"], &path, &mut errors);
    if stored.is_none_or(|stored| stored.value("timeZone") != spec.value("timeZone")) {
        schedule::time_zone(spec, &path.field("timeZone"), &mut errors);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    let policy = spec.text("concurrencyPolicy");
    check::choice(
        policy,
        &policies,
        &path.field("concurrencyPolicy"),
        &mut errors,
    );
    job_template(
        spec.object_or_empty("jobTemplate"),
        &path.field("jobTemplate"),
        &mut errors,
    );
    let limits = ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    check::not_negative(spec, &limits, &path, &mut errors);
    let name = new.object_or_empty("metadata").text("name");
    if old.is_none() && name.len() > CRON_JOB_NAME_BYTES_MAX {
        let path = root.field("metadata");
        errors.invalid(
            &path.field("name"),
            name,
            "must be no more than 52 characters",
        );
    }
    errors
}

fn job_template(template: &Map, path: &Path<'_>, errors: &mut Errors) {
    let spec = template.object_or_empty("spec");
    let path = path.field("spec");
    job_spec(spec, &path, errors);
    if spec.has("selector") {
        let detail = "`selector` will be auto-generated";
        check::invalid_selector(
            &path.field("selector"),
            spec.value("selector"),
            detail,
            errors,
        );
    }
    if spec.flag("manualSelector") {
        let path = path.field("manualSelector");
        errors.push(FieldError::not_supported(
            &path,
            &true.into(),
            &["nil", "false"],
        ));
    }
}

#[cfg(test)]
mod tests;
