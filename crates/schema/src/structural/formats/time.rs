//! Dates, times and durations.

use object::time::{Time, go_duration_parse};

/// `2006-01-02`, a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let shaped = text.len() == 10
        && text.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    shaped && Time::parse(&format!("{text}T00:00:00Z")).is_ok()
}

/// A date and a time of day with a zone, in upper or lower case.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

/// `15:04:05`, any character and digits for a fraction, then `z` or an offset.
fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return false;
    };
    let shaped = clock.bytes().enumerate().all(|(place, byte)| match place {
        2 | 5 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    if !shaped || &clock[..2] > "23" || &clock[3..5] > "59" || &clock[6..] > "59" {
        return false;
    }
    let zone_at = rest.rfind('z').or_else(|| rest.len().checked_sub(6));
    let Some((fraction, zone)) = zone_at.and_then(|at| rest.split_at_checked(at)) else {
        return false;
    };
    let mut fraction = fraction.chars();
    let separated = fraction.next().is_some_and(|it| it != '\n');
    let digits = fraction.as_str();
    let no_fraction = !separated && digits.is_empty();
    let good_fraction = no_fraction
        || (separated && !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit()));
    good_fraction && (zone == "z" || is_offset(zone))
}

fn is_offset(text: &str) -> bool {
    text.len() == 6
        && text.bytes().enumerate().all(|(place, byte)| match place {
            0 => matches!(byte, b'+' | b'-'),
            3 => byte == b':',
            _ => byte.is_ascii_digit(),
        })
}

/// Units in full, those in Go's way, and what the last of each row begins with.
const UNITS: [&[&str]; 8] = [
    &["ns", "nano"],
    &["us", "µs", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

/// A duration of Go's, or one that names its units, such as `22 ns` or `3 days`.
pub(super) fn is_duration(text: &str) -> bool {
    if go_duration_parse(text).is_ok() {
        return true;
    }
    let mut known = false;
    let mut rest = text;
    while let Some(start) = rest.find(|it: char| it.is_ascii_digit()) {
        let digits_end = rest[start..]
            .find(|it: char| !it.is_ascii_digit())
            .map_or(rest.len(), |length| start + length);
        let after = rest[digits_end..].trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let unit_end = after
            .find(|it: char| !it.is_ascii_alphabetic() && it != 'µ')
            .unwrap_or(after.len());
        let unit = after[..unit_end].to_lowercase();
        if !unit.is_empty() {
            if rest[start..digits_end].parse::<i64>().is_err() {
                return false;
            }
            known |= UNITS.iter().any(|names| is_unit(&unit, names));
        }
        rest = &after[unit_end..];
    }
    known
}

fn is_unit(unit: &str, names: &[&str]) -> bool {
    let stem = names.last().copied().unwrap_or_default();
    names.contains(&unit) || unit.starts_with(stem)
}
