//! Rows of pods.
//!
//! The status of a pod is the most telling thing to say about it. It starts as the phase; each
//! container that waits or has ended says more, init containers first, because while one of them
//! has not finished nothing after it runs. Sidecars are init containers that keep running: they
//! count among the containers that can be ready.

use object::Value;

use crate::table::row::{NONE, Row, cells, count_of, int, non_empty_or, text, unix_seconds};

pub(super) fn pod(row: &Row<'_>) -> Vec<Value> {
    let summary = summarize(row);
    let restarts = match summary.restarts {
        Restarts {
            count,
            last: Some(last),
        } if count != 0 => format!("{count} ({} ago)", row.elapsed(last)),
        Restarts { count, .. } => count.to_string(),
    };
    cells![
        row.name(),
        format!("{}/{}", summary.ready, total(row)),
        summary.status,
        restarts,
        row.age(),
        pod_ip(row),
        row.text_or(&["spec", "nodeName"], NONE),
        row.text_or(&["status", "nominatedNodeName"], NONE),
        readiness_gates(row),
    ]
}

struct Summary {
    status: String,
    ready: i64,
    restarts: Restarts,
}

/// How often containers were restarted, and when the last of them had ended.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<i64>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += int(container, &["restartCount"]);
        let ended = unix_seconds(container.at(&["lastState", "terminated", "finishedAt"]));
        self.last = self.last.max(ended);
    }
}

fn summarize(row: &Row<'_>) -> Summary {
    let phase = row.text(&["status", "phase"]);
    let reason = row.text(&["status", "reason"]);
    let mut summary = Summary {
        status: non_empty_or(reason, phase).to_owned(),
        ready: 0,
        restarts: Restarts::default(),
    };
    let gated = row
        .items(&["status", "conditions"])
        .iter()
        .any(|condition| {
            text(condition, &["type"]) == "PodScheduled"
                && text(condition, &["reason"]) == "SchedulingGated"
        });
    if gated {
        "SchedulingGated".clone_into(&mut summary.status);
    }
    let (progress, sidecar_restarts) = init_containers(row, &mut summary);
    let initialized = row.condition("Initialized");
    let initialized = initialized.is_some_and(|it| text(it, &["status"]) == "True");
    if progress == Progress::Done || initialized {
        summary.restarts = sidecar_restarts;
        containers(row, &mut summary);
    }
    if row.is_deleted() {
        if reason == "NodeLost" {
            "Unknown".clone_into(&mut summary.status);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.status);
        }
    }
    summary
}

#[derive(PartialEq, Eq)]
enum Progress {
    Initializing,
    Done,
}

/// Goes through the init containers up to the first that holds the others up, and tells how often
/// the sidecars among them were restarted.
fn init_containers(row: &Row<'_>, summary: &mut Summary) -> (Progress, Restarts) {
    let specs = row.items(&["spec", "initContainers"]);
    let mut sidecar_restarts = Restarts::default();
    let statuses = row.items(&["status", "initContainerStatuses"]);
    for (index, container) in statuses.iter().enumerate() {
        let name = text(container, &["name"]);
        // Of equal names the last one counts, as in a map.
        let spec = specs.iter().rfind(|spec| text(spec, &["name"]) == name);
        let sidecar = spec.is_some_and(is_sidecar);
        summary.restarts.add(container);
        if sidecar {
            sidecar_restarts.add(container);
        }
        let terminated = state(container, "terminated");
        let waiting = state(container, "waiting").map_or("", |state| text(state, &["reason"]));
        if terminated.is_some_and(|state| int(state, &["exitCode"]) == 0) {
            continue;
        }
        if sidecar && is_true(container, "started") {
            summary.ready += i64::from(is_true(container, "ready"));
            continue;
        }
        summary.status = match terminated {
            Some(state) => format!("Init:{}", ending(state)),
            None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
            None => format!("Init:{index}/{}", specs.len()),
        };
        return (Progress::Initializing, sidecar_restarts);
    }
    (Progress::Done, sidecar_restarts)
}

/// Goes through the containers from the last to the first, so that the first has the last word.
fn containers(row: &Row<'_>, summary: &mut Summary) {
    let (mut running, mut failure) = (false, None);
    for container in row.items(&["status", "containerStatuses"]).iter().rev() {
        summary.restarts.add(container);
        let waiting = state(container, "waiting").map_or("", |state| text(state, &["reason"]));
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.status);
        } else if let Some(state) = state(container, "terminated") {
            summary.status = ending(state);
            if int(state, &["exitCode"]) != 0 {
                failure = Some(summary.status.clone());
            }
        } else if is_true(container, "ready") && state(container, "running").is_some() {
            running = true;
            summary.ready += 1;
        }
    }
    // One container may have completed while others run or failed.
    if summary.status == "Completed" {
        if running && is_ready(row) {
            "Running".clone_into(&mut summary.status);
        } else if let Some(failure) = failure {
            summary.status = failure;
        } else if running {
            "NotReady".clone_into(&mut summary.status);
        }
    }
}

/// Why a container ended.
fn ending(terminated: &Value) -> String {
    let reason = text(terminated, &["reason"]);
    if !reason.is_empty() {
        return reason.to_owned();
    }
    match int(terminated, &["signal"]) {
        0 => format!("ExitCode:{}", int(terminated, &["exitCode"])),
        signal => format!("Signal:{signal}"),
    }
}

fn state<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    container
        .at(&["state", name])
        .filter(|state| !state.is_null())
}

fn is_true(container: &Value, field: &str) -> bool {
    container.get(field).and_then(Value::as_bool) == Some(true)
}

fn is_sidecar(container: &Value) -> bool {
    text(container, &["restartPolicy"]) == "Always"
}

fn is_ready(row: &Row<'_>) -> bool {
    let conditions = row.items(&["status", "conditions"]);
    conditions
        .iter()
        .any(|it| text(it, &["type"]) == "Ready" && text(it, &["status"]) == "True")
}

/// How many containers can be ready.
fn total(row: &Row<'_>) -> i64 {
    let sidecars = row.items(&["spec", "initContainers"]).iter();
    row.count(&["spec", "containers"]) + count_of(sidecars.filter(|it| is_sidecar(it)).count())
}

/// The single address wins over the list, which older kubelets do not write.
fn pod_ip<'a>(row: &Row<'a>) -> &'a str {
    let listed = row.items(&["status", "podIPs"]).first();
    let listed = listed.map_or("", |first| text(first, &["ip"]));
    non_empty_or(row.text_or(&["status", "podIP"], listed), NONE)
}

fn readiness_gates(row: &Row<'_>) -> String {
    let gates = row.items(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let passed = gates.iter().filter(|gate| {
        row.condition(text(gate, &["conditionType"]))
            .is_some_and(|condition| text(condition, &["status"]) == "True")
    });
    format!("{}/{}", passed.count(), gates.len())
}
