//! Cases: jobs and schedules, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn template(restart: &str) -> Value {
    value!({"metadata": {"labels": {"controller-uid": "1", "job-name": "one",
        "batch.kubernetes.io/controller-uid": "1", "batch.kubernetes.io/job-name": "one"}},
        "spec": {"terminationGracePeriodSeconds": 30, "restartPolicy": restart,
        "dnsPolicy": "ClusterFirst", "securityContext": {}, "containers": [{"name": "main",
        "image": "img", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}]}})
}

fn one(changed: Value) -> Map {
    let mut spec = map(
        value!({"parallelism": 1, "completions": 1, "backoffLimit": 6,
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}},
        "completionMode": "NonIndexed", "suspend": false, "template": (template("Never"))}),
    );
    for (key, value) in map(changed) {
        spec.insert(key, value);
    }
    map(value!({"metadata": {"name": "one", "namespace": "here", "uid": "1"}, "spec": spec}))
}

#[test]
fn a_good_job_has_no_mistake() {
    assert_eq!(printed(job(&one(value!({})), None, "")), [""; 0]);
    assert_eq!(
        printed(job(&one(value!({})), Some(&one(value!({}))), "")),
        [""; 0]
    );
}

#[test]
fn jobs_end_and_count() {
    let cases: Vec<(Value, &[&str])> = vec![
        (
            value!({"template": (template("Always"))}),
            &[
                "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
            ],
        ),
        (
            value!({"completions": (-1)}),
            &["spec.completions: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            value!({"backoffLimitPerIndex": 1}),
            &["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
        ),
        (
            value!({"podFailurePolicy": {"rules": [{"action": "Ignore"}]}}),
            &[
                "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            ],
        ),
    ];
    for (changed, expected) in cases {
        assert_eq!(printed(job(&one(changed), None, "")), expected);
    }
    let changed = one(value!({"completions": 2}));
    assert_eq!(
        printed(job(&changed, Some(&one(value!({}))), "")),
        ["spec.completions: Invalid value: 2: field is immutable"]
    );
}

#[test]
fn schedules_are_read_as_cron_reads_them() {
    let cases = [
        ("*/5 * * * *", ""),
        ("0 0 1 jan sun-sat", ""),
        ("@every 1h30m", ""),
        ("@hourly", ""),
        ("often", "expected exactly 5 fields, found 1: [often]"),
        ("70 * * * *", "end of range (70) above maximum (59): 70"),
        (
            "x * * * *",
            "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            "*/0 * * * *",
            "step of range should be a positive number: */0",
        ),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("@never", "unrecognized descriptor: @never"),
    ];
    for (text, expected) in cases {
        let mut errors = Errors::new();
        let root = Path::root();
        schedule::validate(text, false, false, &root.field("s"), &mut errors);
        let given: Vec<String> = errors.into_iter().map(|error| error.detail).collect();
        assert_eq!(given.join(";"), expected, "of {text}");
    }
}

#[test]
fn a_job_that_is_suspended_may_be_told_where_to_run() {
    let with = |pod: Value, status: Value| {
        let mut template = map(template("Never"));
        for (key, value) in map(pod) {
            template.object_at("spec").insert(key, value);
        }
        let mut job = one(value!({"suspend": true, "template": template}));
        job.insert("status", status);
        job
    };
    let (none, selector) = (value!({}), value!({"nodeSelector": {"a": "b"}}));
    let started = value!({"startTime": "2024-01-01T00:00:00Z"});
    let paused = value!({"startTime": "2024-01-01T00:00:00Z",
        "conditions": [{"type": "Suspended", "status": "True"}]});
    let host = value!({"hostname": "x"});
    for (pod, status, place) in [
        (&selector, &none, None),
        (&selector, &paused, None),
        (&selector, &started, Some("spec.template: ")),
        (&selector, &value!({"active": 1}), Some("spec.template: ")),
        (&host, &none, Some("spec.template.spec: ")),
        (&host, &started, Some("spec.template: ")),
    ] {
        let old = with(none.clone(), status.clone());
        let told = printed(job(&with(pod.clone(), status.clone()), Some(&old), ""));
        match place {
            None => assert_eq!(told, [""; 0], "{status:?}"),
            Some(place) => assert!(told[0].starts_with(place), "{told:?}"),
        }
    }
}

#[test]
fn a_cron_job_makes_good_jobs() {
    let spec = value!({"schedule": "bad", "concurrencyPolicy": "Maybe", "jobTemplate": {"spec": {
        "parallelism": 1, "completions": 1, "template": (template("OnFailure"))}}});
    let new = map(value!({"metadata": {"name": "c"}, "spec": spec}));
    assert_eq!(
        printed(cron_job(&new, None, "")),
        [
            "spec.schedule: Invalid value: \"bad\": expected exactly 5 fields, found 1: [bad]",
            "spec.concurrencyPolicy: Unsupported value: \"Maybe\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
        ]
    );
}

#[test]
fn the_status_of_a_job_tells_a_story_that_holds() {
    let with = |status: Value| {
        let mut job = one(value!({}));
        job.insert("status", status);
        job
    };
    let condition = |kind: &str| value!({"type": (kind), "status": "True"});
    let running = value!({"startTime": "2024-01-01T00:00:00Z", "active": 1});
    let cases = [
        (running.clone(), running.clone(), vec![]),
        (
            running.clone(),
            value!({"active": 1}),
            vec![
                "status.startTime: Invalid value: null: field is immutable for unsuspended job once \
                 set",
            ],
        ),
        (
            running.clone(),
            value!({"startTime": "2024-01-01T00:00:00Z",
                "uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}}),
            vec![
                "status.uncountedTerminatedPods.succeeded[1]: Invalid value: \"\": must not be empty",
                "status.uncountedTerminatedPods.failed[0]: Duplicate value: \"a\"",
            ],
        ),
        (
            running.clone(),
            value!({"startTime": "2024-01-01T00:00:00Z", "completedIndexes": "0",
                "conditions": [(condition("Complete")), (condition("SuccessCriteriaMet"))],
                "completionTime": "2023-01-01T00:00:00Z"}),
            vec![
                "status.completionTime: Invalid value: \"2023-01-01T00:00:00Z\": must be equal to or \
                 after `startTime`",
                "status.completedIndexes: Invalid value: \"0\": cannot set non-empty \
                 completedIndexes when non-indexed completion mode",
            ],
        ),
        (
            value!({"conditions": [(condition("SuccessCriteriaMet"))]}),
            value!({}),
            vec![
                "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True \
                 condition",
            ],
        ),
    ];
    for (before, after, expected) in cases {
        let found = job(&with(after.clone()), Some(&with(before)), "status");
        assert_eq!(printed(found), expected, "{after:?}");
    }
}

#[test]
fn time_zones_are_those_of_the_database() {
    let cases = [
        ("Etc/UTC", true),
        ("America/Argentina/Buenos_Aires", true),
        ("UTC", true),
        ("ETC/UTC", false),
        ("Mars/Olympus", false),
        ("..", false),
    ];
    for (zone, known) in cases {
        let mut errors = Errors::new();
        let spec = map(value!({"timeZone": (zone)}));
        schedule::time_zone(&spec, &Path::root().field("timeZone"), &mut errors);
        assert_eq!(errors.is_empty(), known, "{zone}");
    }
}

#[test]
fn a_job_without_labels_answers_for_those_of_its_template() {
    let complaint = "Invalid value: \"Not one\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let mut template = map(template("Never"));
    template
        .object_at("metadata")
        .object_at("labels")
        .insert("app", "Not one".into());
    let new = one(value!({ "template": template }));
    assert_eq!(
        printed(job(&new, None, "")),
        ["metadata.labels", "spec.template.labels"].map(|field| format!("{field}: {complaint}"))
    );
}

#[test]
fn a_selector_that_cannot_be_read_is_not_held_against_labels() {
    let selector = value!({"matchLabels": {"batch.kubernetes.io/controller-uid": "2"},
        "matchExpressions": [{"key": "k", "operator": "Like", "values": ["v"]}]});
    assert_eq!(
        printed(job(&one(value!({ "selector": selector })), None, "")),
        [
            "spec.selector.matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector operator"
        ]
    );
}

#[test]
fn pods_that_nobody_counted_are_not_too_many() {
    let counted = |status: Value| {
        let mut job = one(value!({}));
        job.insert("status", status);
        job
    };
    let old = counted(value!({}));
    let negative = "status.active: Invalid value: -1: must be greater than or equal to 0";
    let ready = "status.ready: Invalid value: 0: cannot set more ready pods than active";
    for (status, expected) in [
        (value!({"active": (-1)}), vec![negative]),
        (value!({"active": (-1), "ready": 0}), vec![negative, ready]),
    ] {
        let errors = job(&counted(status), Some(&old), "status");
        assert_eq!(printed(errors), expected);
    }
}
