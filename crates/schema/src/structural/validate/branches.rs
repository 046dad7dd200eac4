//! `anyOf`, `oneOf`, `allOf` and `not`.
//!
//! Of branches that all fail, the mistakes of the one in which most checks passed are shown. A
//! branch is never forgiven: see upstream's `schema_props.go`, which drops the old value there.

use object::Value;
use object::field::{Path, quote};

use super::{Outcome, check as check_value, unplaced};
use crate::structural::{Checks, Structural};

pub(super) fn check(checks: &Checks, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    if !checks.any_of.is_empty() {
        any_of(&checks.any_of, value, path, outcome);
    }
    if !checks.one_of.is_empty() {
        one_of(&checks.one_of, value, path, outcome);
    }
    if !checks.all_of.is_empty() {
        all_of(&checks.all_of, value, path, outcome);
    }
    if let Some(not) = &checks.not
        && check_value(not, value, None, path).is_valid()
    {
        outcome.errors.push(unplaced(format!(
            "{} must not validate the schema (not)",
            shown(path)
        )));
    }
}

fn any_of(branches: &[Structural], value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    let mut best: Option<Outcome> = None;
    for branch in branches {
        let result = check_value(branch, value, None, path);
        if result.is_valid() {
            outcome.merge(result);
            return;
        }
        if best.as_ref().is_none_or(|best| result.passed > best.passed) {
            best = Some(result);
        }
    }
    outcome.errors.push(unplaced(format!(
        "{} must validate at least one schema (anyOf)",
        shown(path)
    )));
    outcome.merge(best.unwrap_or_default());
}

fn one_of(branches: &[Structural], value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    let mut best: Option<Outcome> = None;
    let mut first: Option<Outcome> = None;
    let mut valid = 0_usize;
    for branch in branches {
        let result = check_value(branch, value, None, path);
        if result.is_valid() {
            valid += 1;
            best = None;
            first.get_or_insert(result);
        } else if valid == 0 && best.as_ref().is_none_or(|best| result.passed > best.passed) {
            best = Some(result);
        }
    }
    if valid == 1 {
        outcome.merge(first.unwrap_or_default());
        return;
    }
    let found = match valid {
        0 => "Found none valid".to_owned(),
        count => format!("Found {count} valid alternatives"),
    };
    outcome.errors.push(unplaced(format!(
        "{} must validate one and only one schema (oneOf). {found}",
        shown(path)
    )));
    outcome.merge(best.unwrap_or_default());
}

fn all_of(branches: &[Structural], value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    let mut valid = 0;
    for branch in branches {
        let result = check_value(branch, value, None, path);
        valid += usize::from(result.is_valid());
        outcome.merge(result);
    }
    if valid == branches.len() {
        return;
    }
    let none = if valid == 0 { ". None validated" } else { "" };
    outcome.errors.push(unplaced(format!(
        "{} must validate all the schemas (allOf){none}",
        shown(path)
    )));
}

fn shown(path: &Path<'_>) -> String {
    quote(&path.to_string())
}
