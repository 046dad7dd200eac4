//! Rows of the `batch` group.

use object::Value;
use object::time::human_duration;

use super::Printer;
use super::row::{NONE, Row, UNSET, cells, text, unix_seconds};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "CronJob" => cron_job,
        "Job" => job,
        _ => return None,
    })
}

fn cron_job(row: &Row<'_>) -> Vec<Value> {
    let template = |rest: &[&'static str]| [&["spec", "jobTemplate", "spec"], rest].concat();
    let (names, images) = row.containers(&template(&["template", "spec", "containers"]));
    let last = row.at(&["status", "lastScheduleTime"]);
    let suspend = match row.at(&["spec", "suspend"]).and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let time_zone = row.at(&["spec", "timeZone"]).and_then(Value::as_str);
    cells![
        row.name(),
        row.text(&["spec", "schedule"]),
        time_zone.unwrap_or(NONE),
        suspend,
        row.count(&["status", "active"]),
        last.map_or_else(|| NONE.to_owned(), |last| row.since(Some(last))),
        row.age(),
        names,
        images,
        row.selector(&template(&["selector"])),
    ]
}

fn job(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&["spec", "template", "spec", "containers"]);
    cells![
        row.name(),
        status(row),
        completions(row),
        duration(row),
        row.age(),
        names,
        images,
        row.selector(&["spec", "selector"]),
    ]
}

fn status(row: &Row<'_>) -> &'static str {
    let holds = |wanted| {
        row.condition(wanted)
            .is_some_and(|condition| text(condition, &["status"]) == "True")
    };
    if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if row.is_deleted() {
        "Terminating"
    } else {
        ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
            .into_iter()
            .find(|condition| holds(condition))
            .unwrap_or("Running")
    }
}

/// Without a wanted number of completions one success is enough, of as many as run side by side.
fn completions(row: &Row<'_>) -> String {
    let succeeded = row.int(&["status", "succeeded"]);
    if row.at(&["spec", "completions"]).is_some() {
        return format!("{succeeded}/{}", row.int(&["spec", "completions"]));
    }
    match row.int(&["spec", "parallelism"]) {
        parallelism if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    }
}

fn duration(row: &Row<'_>) -> String {
    let started = unix_seconds(row.at(&["status", "startTime"]));
    let completed = unix_seconds(row.at(&["status", "completionTime"]));
    match (started, completed) {
        (None, _) => String::new(),
        (Some(started), None) => row.elapsed(started),
        (Some(started), Some(completed)) => human_duration(completed.saturating_sub(started)),
    }
}
