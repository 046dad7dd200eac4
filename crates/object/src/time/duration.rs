//! Durations: Go's text form, and the rough one of tables.
//!
//! Contract: Go's `time.ParseDuration` and `Duration.String`; apimachinery `util/duration`.

use super::quote;

/// The largest magnitude that Go accepts while it adds up the parts.
const NANOS_MAX: u64 = 1 << 63;

/// Reads a duration such as `1h30m`, `-1.5s` or `300ms`, in nanoseconds.
///
/// # Errors
/// In Go's words.
pub fn go_duration_parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(text.as_bytes()));
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_negative = text.starts_with('-');
    if unsigned == "0" {
        return Ok(0);
    }
    if unsigned.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let (whole, after) = leading_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => leading_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let whole = if whole.is_empty() {
            Some(0)
        } else {
            whole.parse::<u64>().ok()
        };
        let whole = whole
            .filter(|whole| *whole <= NANOS_MAX)
            .ok_or_else(invalid)?;
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!(
                "time: missing unit in duration {}",
                quote(text.as_bytes())
            ));
        }
        let Some(nanos) = unit_nanos(unit) else {
            let (unit, text) = (quote(unit.as_bytes()), quote(text.as_bytes()));
            return Err(format!("time: unknown unit {unit} in duration {text}"));
        };
        let part = whole.checked_mul(nanos).and_then(|part| {
            part.checked_add(fraction_nanos(fraction, nanos))
                .filter(|part| *part <= NANOS_MAX)
        });
        total = part
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= NANOS_MAX)
            .ok_or_else(invalid)?;
        rest = after;
    }
    let signed = if is_negative {
        -i128::from(total)
    } else {
        i128::from(total)
    };
    i64::try_from(signed).map_err(|_| invalid())
}

fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// A fraction of a unit. Go computes it in floating point and ignores digits past its precision.
fn fraction_nanos(digits: &str, unit: u64) -> u64 {
    let (mut fraction, mut scale) = (0_u64, 1_f64);
    for digit in digits.bytes() {
        let longer = fraction
            .checked_mul(10)
            .map(|tens| tens + u64::from(digit - b'0'));
        match longer.filter(|longer| *longer <= NANOS_MAX) {
            Some(longer) => fraction = longer,
            None => break,
        }
        scale *= 10.0;
    }
    (fraction as f64 * (unit as f64 / scale)) as u64
}

/// Writes nanoseconds as Go does: `1h0m0s`, `1.5s`, `300ms`.
pub fn go_duration_print(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    match magnitude {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{magnitude}ns"),
        1_000..1_000_000 => format!("{sign}{}\u{b5}s", decimal(magnitude, 3)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(magnitude, 6)),
        _ => {
            let minutes = magnitude / 60_000_000_000;
            let seconds = decimal(magnitude % 60_000_000_000, 9);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// Writes `number / 10^places` without trailing zeros.
fn decimal(number: u64, places: usize) -> String {
    let scale = 10_u64.pow(places as u32);
    let (whole, fraction) = (number / scale, number % scale);
    if fraction == 0 {
        return whole.to_string();
    }
    format!(
        "{whole}.{}",
        format!("{fraction:0places$}").trim_end_matches('0')
    )
}

/// Writes an age for people, in two or three figures: `5s`, `3m20s`, `2d3h`.
///
/// An age a second below zero is clock skew and prints as `0s`; a lower one is `<invalid>`.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |large: i64, large_unit: char, small: i64, small_unit: char| {
        if small == 0 {
            format!("{large}{large_unit}")
        } else {
            format!("{large}{large_unit}{small}{small_unit}")
        }
    };
    let (minutes, hours, days) = (seconds / MINUTE, seconds / HOUR, seconds / DAY);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(minutes, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{minutes}m"),
        _ if seconds < 8 * HOUR => two(hours, 'h', minutes % 60, 'm'),
        _ if seconds < 2 * DAY => format!("{hours}h"),
        _ if seconds < 8 * DAY => two(days, 'd', hours % 24, 'h'),
        _ if seconds < 2 * YEAR => format!("{days}d"),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, 'y', days % 365, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_read_as_go_reads_them() {
        let cases = [
            ("0", 0),
            ("-0", 0),
            ("5s", 5_000_000_000),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            ("1478s", 1_478_000_000_000),
            ("5.s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.004s", 1_004_000_000),
            ("100.00100s", 100_001_000_000),
            ("12\u{b5}s", 12_000),
            ("12\u{3bc}s", 12_000),
            ("3h30m", 12_600_000_000_000),
            ("10.5s4m", 250_500_000_000),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
            ("39h9m14.425s", 140_954_425_000_000),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("0.100000000000000000000h", 360_000_000_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("0.9223372036854775807h", 3_320_413_933_267),
        ];
        for (text, nanos) in cases {
            assert_eq!(go_duration_parse(text), Ok(nanos), "of {text:?}");
        }
    }

    #[test]
    fn parse_errors_are_gos_to_the_letter() {
        let cases = [
            ("", r#"time: invalid duration """#),
            ("3", r#"time: missing unit in duration "3""#),
            ("-", r#"time: invalid duration "-""#),
            ("s", r#"time: invalid duration "s""#),
            (".", r#"time: invalid duration ".""#),
            (".s", r#"time: invalid duration ".s""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            ("é", r#"time: invalid duration "\xc3\xa9""#),
            (
                "9223372036854775808ns",
                r#"time: invalid duration "9223372036854775808ns""#,
            ),
            ("3000000h", r#"time: invalid duration "3000000h""#),
            (
                "99999999999999999999s",
                r#"time: invalid duration "99999999999999999999s""#,
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(
                go_duration_parse(text).unwrap_err(),
                expected,
                "of {text:?}"
            );
        }
    }

    #[test]
    fn durations_print_as_go_prints_them() {
        let cases = [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1\u{b5}s"),
            (2_200_000, "2.2ms"),
            (300_000_000, "300ms"),
            (3_300_000_000, "3.3s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (3_600_000_000_000, "1h0m0s"),
            (-1_500_000_000, "-1.5s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ];
        for (nanos, expected) in cases {
            assert_eq!(go_duration_print(nanos), expected);
        }
    }

    #[test]
    fn ages_have_two_or_three_figures() {
        let (minute, hour, day) = (60, 3600, 86_400);
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (2 * minute + 5, "2m5s"),
            (10 * minute + 59, "10m"),
            (3 * hour - 1, "179m"),
            (3 * hour, "3h"),
            (3 * hour + minute, "3h1m"),
            (8 * hour + minute, "8h"),
            (2 * day - 1, "47h"),
            (2 * day, "2d"),
            (2 * day + 5 * hour, "2d5h"),
            (8 * day + 5 * hour, "8d"),
            (729 * day, "729d"),
            (730 * day, "2y"),
            (731 * day, "2y1d"),
            (8 * 365 * day + 5 * day, "8y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(seconds), expected, "of {seconds} seconds");
        }
    }

    proptest! {
        #[test]
        fn whole_durations_survive_a_round_trip(seconds in -9_000_000_000_i64..9_000_000_000) {
            let nanos = seconds * 1_000_000_000;
            prop_assert_eq!(go_duration_parse(&go_duration_print(nanos)), Ok(nanos));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[-+]?([0-9]{0,20}\\.?[0-9]{0,30}(ns|µs|h|é)?){0,3}") {
            let _ = go_duration_parse(&text);
        }
    }
}
