//! When jobs start: cron schedules, time zones, and the indexes of indexed jobs.
//!
//! The complaints about schedules are those of the cron library that kube-apiserver uses.

use object::Map;
use object::field::{Path, quote};
use object::time::go_duration_parse;

use crate::validation::check::{Errors, Report};
use crate::validation::read::Read;

/// The fields of a schedule: lowest and highest number, and names from the lowest on.
const FIELDS: [(u64, u64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Checks a schedule; `kept` says that the stored one names a zone, which was once allowed.
pub(super) fn validate(text: &str, kept: bool, zoned: bool, path: &Path<'_>, errors: &mut Errors) {
    if let Err(problem) = parse(text) {
        errors.invalid(path, text, problem);
    }
    if !text.contains("TZ") {
        return;
    }
    if !kept {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.invalid(path, text, detail);
    } else if zoned {
        let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.invalid(path, text, detail);
    }
}

fn parse(text: &str) -> Result<(), String> {
    let mut text = text;
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        text = match text.split_once(' ') {
            Some((_, rest)) => rest.trim(),
            None => return Err("invalid schedule format: missing schedule after zone".to_owned()),
        };
    }
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.len();
        let list = fields.join(" ");
        return Err(format!(
            "expected exactly 5 fields, found {found}: [{list}]"
        ));
    }
    for (field, (low, high, names)) in fields.into_iter().zip(FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            range(part, low, high, names)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    match text {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => {
            Ok(())
        }
        _ => match text.strip_prefix("@every ") {
            Some(duration) => match go_duration_parse(duration) {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("failed to parse duration {text}: {error}")),
            },
            None => Err(format!("unrecognized descriptor: {text}")),
        },
    }
}

fn range(text: &str, low: u64, high: u64, names: &[&str]) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = if matches!(ends[0], "*" | "?") {
        (low, high)
    } else {
        let start = number_or_name(ends[0], low, names)?;
        match ends.as_slice() {
            [_] => (start, start),
            [_, end] => (start, number_or_name(end, low, names)?),
            _ => return Err(format!("too many hyphens: {text}")),
        }
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = high;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < low {
        return Err(format!(
            "beginning of range ({start}) below minimum ({low}): {text}"
        ));
    }
    if end > high {
        return Err(format!(
            "end of range ({end}) above maximum ({high}): {text}"
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number_or_name(text: &str, low: u64, names: &[&str]) -> Result<u64, String> {
    let name = text.to_lowercase();
    match names.iter().position(|known| *known == name) {
        Some(position) => Ok(low + position as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let problem = if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        "invalid syntax"
    } else if text.parse::<i64>().is_err() {
        "value out of range"
    } else if text.starts_with('-') && digits.bytes().any(|byte| byte != b'0') {
        return Err(format!("negative number ({text}) not allowed: {text}"));
    } else {
        return digits.parse().map_err(|_| "value out of range".to_owned());
    };
    let quoted = quote(text);
    Err(format!(
        "failed to parse int from {text}: strconv.Atoi: parsing {quoted}: {problem}"
    ))
}

/// Whether a zone of this name is in the database of time zones.
///
/// `zones.txt` has a line for each area: its name, `.` for none, and the zones in it.
fn is_time_zone(name: &str) -> bool {
    let (area, zone) = name.rsplit_once('/').unwrap_or((".", name));
    include_str!("zones.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .any(|(known, zones)| known == area && zones.split(' ').any(|it| it == zone))
}

/// Checks the time zone of a schedule.
pub(super) fn time_zone(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    if !spec.has("timeZone") {
        return;
    }
    let zone = spec.text("timeZone");
    if zone.is_empty() {
        errors.invalid(path, zone, "timeZone must be nil or non-empty string");
        return;
    }
    for part in zone.split('/') {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
        let strange = matches!(part, "." | "..")
            || part.starts_with('-')
            || !(1..=14).contains(&part.len())
            || !part.bytes().all(allowed);
        if strange {
            errors.invalid(path, zone, format!("unknown time zone {zone}"));
            return;
        }
    }
    if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in \
                      https://www.iana.org/time-zones";
        errors.invalid(path, zone, detail);
    }
    if zone != "Local" && !is_time_zone(zone) {
        errors.invalid(path, zone, format!("unknown time zone {zone}"));
    }
}

/// Counts the indexes that a text such as `1,3-5` names.
pub(super) fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut total, mut last) = (0, None);
    if text.is_empty() {
        return Ok(0);
    }
    for interval in text.split(',') {
        let (first, end) = index_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {first}"
            ));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn index_interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |part: &str| match part.parse::<i64>() {
        Err(_) => Err(format!(
            "cannot convert string to integer for index: {}",
            quote(part)
        )),
        Ok(number) if number >= completions => Err(format!("too large index: {}", quote(part))),
        Ok(number) => Ok(number),
    };
    let parts: Vec<&str> = text.split('-').collect();
    match parts.as_slice() {
        [only] => index(only).map(|number| (number, number)),
        [first, last] => {
            let (first, last) = (index(first)?, index(last)?);
            if first >= last {
                return Err(format!(
                    "non-increasing order, previous: {first}, current: {last}"
                ));
            }
            Ok((first, last))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most \
             two parts separated by '-'",
            quote(text)
        )),
    }
}
