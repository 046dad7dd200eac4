//! What may be said about a job as it runs and ends.
//!
//! Upstream asks for a rule only where something that it looks at has changed, so that the status
//! of older jobs can go on.

use object::field::Path;
use object::{Map, Value};

use super::{is_indexed, is_true, schedule, without_value};
use crate::validation::check::{self, Errors, Report};
use crate::validation::print::{self, Field, Shape};
use crate::validation::read::{Read, maps, texts};

/// A status as it was and as it shall be.
struct Change<'a> {
    spec: &'a Map,
    new: &'a Map,
    old: &'a Map,
}

impl Change<'_> {
    fn has(&self, kind: &str) -> bool {
        is_true(self.new, kind)
    }

    fn had(&self, kind: &str) -> bool {
        is_true(self.old, kind)
    }

    /// Whether one of these conditions begins or ends.
    fn turns(&self, kinds: &[&str]) -> bool {
        kinds.iter().any(|kind| self.has(kind) != self.had(kind))
    }

    /// Whether one of these fields differs.
    fn moves(&self, keys: &[&str]) -> bool {
        keys.iter()
            .any(|key| !check::same(self.new.value(key), self.old.value(key)))
    }

    fn is_finished(&self) -> bool {
        self.has("Complete") || self.has("Failed")
    }

    fn finishes(&self) -> bool {
        self.is_finished() != (self.had("Complete") || self.had("Failed"))
    }
}

/// Checks a change of a job's status.
pub(super) fn changed(new: &Map, old: &Map, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("status");
    let change = Change {
        spec: new.object_or_empty("spec"),
        new: new.object_or_empty("status"),
        old: old.object_or_empty("status"),
    };
    let counters = ["active", "succeeded", "failed", "ready", "terminating"];
    check::not_negative(change.new, &counters, &path, errors);
    uncounted(change.new, &path.field("uncountedTerminatedPods"), errors);
    ending(&change, &path, errors);
    finished(&change, &path, errors);
    indexes(&change, &path, errors);
    terminating(&change, &path, errors);
    kept(&change, &path, errors);
    progress(&change, &path, errors);
}

fn clash(bad: bool, detail: &str, path: &Path<'_>, errors: &mut Errors) {
    if bad {
        errors.push(without_value(&path.field("conditions"), detail));
    }
}

fn uncounted(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let pods = status.object_or_empty("uncountedTerminatedPods");
    let mut seen: Vec<&str> = Vec::new();
    for list in ["succeeded", "failed"] {
        let path = path.field(list);
        for (index, uid) in texts(pods.list(list)) {
            if uid.is_empty() {
                errors.invalid(&path.index(index), uid, "must not be empty");
            } else if seen.contains(&uid) {
                errors.duplicate(&path.index(index), uid);
            } else {
                seen.push(uid);
            }
        }
    }
}

fn ending(change: &Change<'_>, path: &Path<'_>, errors: &mut Errors) {
    let complete = change.has("Complete");
    let detail = "cannot set Complete=True and Failed=true conditions";
    let asked = change.turns(&["Complete", "Failed"]);
    clash(
        asked && complete && change.has("Failed"),
        detail,
        path,
        errors,
    );
    let detail = "cannot set Complete=True and FailureTarget=true conditions";
    let asked = change.turns(&["Complete", "FailureTarget"]);
    clash(
        asked && complete && change.has("FailureTarget"),
        detail,
        path,
        errors,
    );
    let end = change.new.value("completionTime");
    let at = path.field("completionTime");
    if change.turns(&["Complete"]) || change.moves(&["completionTime"]) {
        if !end.is_null() && !complete {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            errors.invalid_value(&at, end, detail);
        }
        if end.is_null() && complete {
            errors.required(&at, "completionTime is required for Complete jobs");
        }
    }
    let start = change.new.text("startTime");
    // Times of one form and one zone are in the order of their texts.
    let early = !end.is_null() && end.as_str().unwrap_or_default() < start;
    if early && change.moves(&["startTime", "completionTime"]) {
        errors.invalid_value(&at, end, "must be equal to or after `startTime`");
    }
    let detail = "cannot set Failed=True condition without the FailureTarget=true condition";
    let asked = change.turns(&["Failed"]) || change.moves(&["failedIndexes"]);
    let bad = change.has("Failed") && !change.has("FailureTarget");
    clash(asked && bad, detail, path, errors);
    let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
    let asked = change.turns(&["Complete", "SuccessCriteriaMet"]);
    clash(
        asked && complete && !change.has("SuccessCriteriaMet"),
        detail,
        path,
        errors,
    );
}

fn finished(change: &Change<'_>, path: &Path<'_>, errors: &mut Errors) {
    if !change.is_finished() {
        return;
    }
    let active = change.new.int("active").unwrap_or_default();
    if active > 0 && (change.finishes() || change.moves(&["active"])) {
        let detail = "active>0 is invalid for finished job";
        errors.invalid(&path.field("active"), active, detail);
    }
    let idle = change.spec.flag("suspend") && change.spec.int("completions") == Some(0);
    let asked = change.finishes() || change.moves(&["startTime"]);
    if !change.new.has("startTime") && asked && !idle {
        let detail = "startTime is required for finished job";
        errors.required(&path.field("startTime"), detail);
    }
    let pods = change.new.object_or_empty("uncountedTerminatedPods");
    let left = !pods.list("succeeded").is_empty() || !pods.list("failed").is_empty();
    if left && (change.finishes() || change.moves(&["uncountedTerminatedPods"])) {
        let shown = object::value!({
            "Succeeded": (pods.value("succeeded").clone()),
            "Failed": (pods.value("failed").clone()),
        });
        let text = print::print(&shown, Some(&UNCOUNTED));
        let at = path.field("uncountedTerminatedPods");
        let detail = "must be empty for finished job";
        errors.push(print::invalid_text(&at, text, detail));
    }
}

const UNCOUNTED: Shape = Shape(&[
    Field::plain("Succeeded", "Succeeded", "null"),
    Field::plain("Failed", "Failed", "null"),
]);

fn indexes(change: &Change<'_>, path: &Path<'_>, errors: &mut Errors) {
    let completions = change.spec.int("completions");
    let limited = change.spec.has("backoffLimitPerIndex");
    for (key, asked) in [("completedIndexes", true), ("failedIndexes", limited)] {
        let text = change.new.text(key);
        let (Some(completions), true) = (completions, asked && change.moves(&[key])) else {
            continue;
        };
        if let Err(error) = schedule::count_indexes(text, completions) {
            let detail = format!("error parsing {key}: {error}");
            errors.invalid(&path.field(key), text, detail);
        }
    }
    let completed = change.new.text("completedIndexes");
    if change.moves(&["completedIndexes"]) && !completed.is_empty() && !is_indexed(change.spec) {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.invalid(&path.field("completedIndexes"), completed, detail);
    }
    let failed = change.new.text("failedIndexes");
    if change.moves(&["failedIndexes"]) && change.new.has("failedIndexes") && !limited {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.invalid(&path.field("failedIndexes"), failed, detail);
    }
}

fn terminating(change: &Change<'_>, path: &Path<'_>, errors: &mut Errors) {
    let count = |key: &str| change.new.int(key).unwrap_or_default();
    let asked = change.finishes() || change.moves(&["terminating"]);
    if count("terminating") > 0 && change.is_finished() && asked {
        let detail = "terminating>0 is invalid for finished job";
        errors.invalid(&path.field("terminating"), count("terminating"), detail);
    }
    let is_told = change.new.has("ready");
    if is_told && count("ready") > count("active") && change.moves(&["ready", "active"]) {
        let detail = "cannot set more ready pods than active";
        errors.invalid(&path.field("ready"), count("ready"), detail);
    }
    let met = change.has("SuccessCriteriaMet");
    let detail = "cannot set SuccessCriteriaMet=True and Failed=true conditions";
    clash(met && change.has("Failed"), detail, path, errors);
    let detail = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
    clash(met && change.has("FailureTarget"), detail, path, errors);
    let detail =
        "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
    let unmet = change.spec.has("successPolicy") && !met && change.has("Complete");
    clash(unmet, detail, path, errors);
}

/// What was decided stays.
fn kept(change: &Change<'_>, path: &Path<'_>, errors: &mut Errors) {
    for kind in ["Failed", "Complete", "FailureTarget"] {
        let detail = format!("cannot disable the terminal {kind}=True condition");
        clash(change.had(kind) && !change.has(kind), &detail, path, errors);
    }
    let elastic = is_indexed(change.spec)
        && change.spec.value("completions") == change.spec.value("parallelism");
    for (key, asked) in [("failed", true), ("succeeded", !elastic)] {
        let count = |status: &Map| status.int(key).unwrap_or_default();
        if asked && count(change.new) < count(change.old) {
            let detail = format!("cannot decrease the {key} counter");
            errors.invalid(&path.field(key), count(change.new), detail);
        }
    }
}

fn progress(change: &Change<'_>, path: &Path<'_>, errors: &mut Errors) {
    let (end, before) = (
        change.new.value("completionTime"),
        change.old.value("completionTime"),
    );
    if !end.is_null() && !before.is_null() && end != before {
        errors.invalid_value(&path.field("completionTime"), end, check::IMMUTABLE);
    }
    let woken = |it: &Map| it.text("type") == "Suspended" && it.text("status") == "False";
    let resumes =
        change.had("Suspended") && maps(change.new.list("conditions")).any(|(_, it)| woken(it));
    let started = change.old.value("startTime") != &Value::Null;
    if started && change.moves(&["startTime"]) && !resumes && !change.spec.flag("suspend") {
        let detail = "field is immutable for unsuspended job once set";
        errors.invalid_value(
            &path.field("startTime"),
            change.new.value("startTime"),
            detail,
        );
    }
    let met = change.has("SuccessCriteriaMet");
    let detail = "cannot disable the SuccessCriteriaMet=True condition";
    clash(
        change.had("SuccessCriteriaMet") && !met,
        detail,
        path,
        errors,
    );
    let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
    let late = change.had("Complete") && !change.had("SuccessCriteriaMet") && met;
    clash(late, detail, path, errors);
}
