//! Points in time with their offset, and lengths of time.
//!
//! Contract: Go's `time` package as far as expressions see it, and `kube-openapi/strfmt` for the
//! strings that schemas give a format. Named time zones come from data that is handed in.

use crate::evaluate::Fault;
use object::time::go_duration_parse;
use std::fmt;

pub(super) const DAY_SECONDS: i64 = 86_400;
const NANOS: i128 = 1_000_000_000;
/// The first second of year 1 and the last one of year 9999.
const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;

/// A point in time to the nanosecond, with the offset it is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    offset_seconds: i32,
}

/// The fields of a point in time in some zone.
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: u32,
    /// From 1.
    pub(crate) day: u32,
    /// From 0.
    pub(crate) day_of_year: i64,
    /// From Sunday, which is 0.
    pub(crate) weekday: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) nanos: u32,
}

impl Timestamp {
    pub(crate) fn from_seconds(seconds: i64) -> Option<Timestamp> {
        let within = (SECONDS_MIN..=SECONDS_MAX).contains(&seconds);
        within.then_some(Timestamp {
            seconds,
            nanos: 0,
            offset_seconds: 0,
        })
    }

    pub(crate) fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds since the start of 1970.
    pub(crate) fn nanos(self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    pub(crate) fn is_zero(self) -> bool {
        self.seconds == SECONDS_MIN && self.nanos == 0
    }

    /// The time that many nanoseconds later.
    pub(crate) fn plus(self, nanos: i128) -> Result<Timestamp, Fault> {
        let total = self.nanos() + nanos;
        let seconds = i64::try_from(total.div_euclid(NANOS)).ok();
        let seconds = seconds.filter(|it| (SECONDS_MIN..=SECONDS_MAX).contains(it));
        Ok(Timestamp {
            seconds: seconds.ok_or_else(|| Fault::new("timestamp overflow"))?,
            nanos: total.rem_euclid(NANOS) as u32,
            ..self
        })
    }

    /// The fields of the time in a zone.
    pub(crate) fn civil(self, zone: Zone) -> Civil {
        let local = self.seconds + i64::from(zone.0);
        let days = local.div_euclid(DAY_SECONDS);
        let second = local.rem_euclid(DAY_SECONDS);
        let (year, month, day) = date_of_day(days);
        Civil {
            year,
            month,
            day,
            day_of_year: days - day_of_date(year, 1, 1),
            weekday: (days + 4).rem_euclid(7),
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            nanos: self.nanos,
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.civil(Zone(self.offset_seconds));
        write!(
            out,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            at.year, at.month, at.day, at.hour, at.minute, at.second
        )?;
        if at.nanos > 0 {
            let fraction = format!("{:09}", at.nanos);
            write!(out, ".{}", fraction.trim_end_matches('0'))?;
        }
        match self.offset_seconds {
            0 => out.write_str("Z"),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                let minutes = offset.abs() / 60;
                write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

/// Seconds east of UTC.
#[derive(Clone, Copy)]
pub(crate) struct Zone(pub(crate) i32);

impl Zone {
    /// Reads `UTC`, an offset such as `-08:00` or `2:30`, or a name; it is the offset at `time`.
    pub(crate) fn parse(text: &str, time: Timestamp) -> Result<Zone, Fault> {
        let Some((hours, minutes)) = text.split_once(':') else {
            return match text {
                "" | "UTC" => Ok(Zone(0)),
                other => super::zone::offset(other, time.seconds).map(Zone),
            };
        };
        let number = |text: &str| {
            text.parse::<i32>().map_err(|_| {
                let shown = super::quoted(text);
                Fault::from(format!("strconv.Atoi: parsing {shown}: invalid syntax"))
            })
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let offset = match text.starts_with('-') {
            true => hours.saturating_mul(60).saturating_sub(minutes),
            false => hours.saturating_mul(60).saturating_add(minutes),
        };
        Ok(Zone(offset.clamp(-1_000_000, 1_000_000) * 60))
    }
}

/// A length of time as seconds with a fraction.
pub(crate) fn print_duration(nanos: i64) -> String {
    let (whole, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{}s", whole as f64 + rest as f64 / 1e9)
}

pub(super) fn date_of_day(days: i64) -> (i64, u32, u32) {
    // Years start in March here, so that the leap day is the last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month + 2) / 5 + 1) as u32;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day)
}

pub(super) fn day_of_date(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = i64::from(month);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn days_in_month(year: i64, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Reads digits from the front of a text.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn number(&mut self, digits: usize) -> Option<u32> {
        let text = self.0.get(..digits)?;
        let is_number = text.bytes().all(|it| it.is_ascii_digit());
        self.0 = &self.0[digits..];
        is_number.then(|| text.parse().ok()).flatten()
    }

    fn skip(&mut self, expected: &[char]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    fn date(&mut self) -> Option<i64> {
        let year = i64::from(self.number(4)?);
        self.skip(&['-'])?;
        let month = self.number(2)?;
        self.skip(&['-'])?;
        let day = self.number(2)?;
        let valid = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        valid.then(|| day_of_date(year, month, day))
    }

    fn clock(&mut self) -> Option<(i64, u32)> {
        let hour = self.number(2)?;
        self.skip(&[':'])?;
        let minute = self.number(2)?;
        self.skip(&[':'])?;
        let second = self.number(2)?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let mut nanos = 0;
        if self.0.starts_with(['.', ',']) {
            let digits = self.0[1..].bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            let padded = format!("{:0<9}", &self.0[1..=digits]);
            nanos = padded[..9].parse().ok()?;
            self.0 = &self.0[1 + digits..];
        }
        Some((i64::from(hour * 3600 + minute * 60 + second), nanos))
    }

    fn offset(&mut self, colon: bool) -> Option<i32> {
        if self.0.strip_prefix('Z') == Some("") {
            return Some(0);
        }
        let sign = if self.0.starts_with('-') { -1 } else { 1 };
        self.skip(&['+', '-'])?;
        let hours = self.number(2)?;
        if colon {
            self.skip(&[':'])?;
        }
        let minutes = self.number(2)?;
        let valid = hours <= 24 && minutes < 60 && self.0.is_empty();
        valid.then_some(sign * (hours * 3600 + minutes * 60) as i32)
    }
}

fn timestamp(day: i64, clock: (i64, u32), offset_seconds: i32) -> Option<Timestamp> {
    let seconds = day * DAY_SECONDS + clock.0 - i64::from(offset_seconds);
    let within = (SECONDS_MIN..=SECONDS_MAX).contains(&seconds);
    within.then_some(Timestamp {
        seconds,
        nanos: clock.1,
        offset_seconds,
    })
}

/// Reads RFC 3339, as `timestamp('...')` does.
pub(super) fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let mut reader = Reader(text);
    let day = reader.date()?;
    reader.skip(&['T'])?;
    let clock = reader.clock()?;
    let offset = reader.offset(true)?;
    timestamp(day, clock, offset)
}

/// Reads a string of format `date`.
pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
    let mut reader = Reader(text);
    let day = reader.date()?;
    reader.0.is_empty().then_some(())?;
    timestamp(day, (0, 0), 0)
}

/// Reads a string of format `date-time`, which may also lack a zone or the colon in it.
pub(crate) fn parse_date_time(text: &str) -> Option<Timestamp> {
    if text.is_empty() {
        return Timestamp::from_seconds(0);
    }
    let mut reader = Reader(text);
    let day = reader.date()?;
    reader.skip(&['T', 't', ' '])?;
    let clock = reader.clock()?;
    if reader.0.is_empty() || reader.0 == "z" {
        return timestamp(day, clock, 0);
    }
    let colon = reader.0.contains(':') || reader.0 == "Z";
    let offset = reader.offset(colon)?;
    timestamp(day, clock, offset)
}

/// Reads a string of format `duration`: Go's form, or a number and a word such as `3 days`.
pub(crate) fn parse_schema_duration(text: &str) -> Option<i64> {
    if let Ok(nanos) = go_duration_parse(text) {
        return Some(nanos);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let amount: i64 = text[..digits].parse().ok()?;
    let unit = text[digits..].trim_start().to_ascii_lowercase();
    let nanos: i64 = match unit.as_str() {
        "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1,
        "us" | "\u{b5}s" | "micro" | "micros" | "microsecond" | "microseconds" => 1_000,
        "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000_000,
        "d" | "day" | "days" => 86_400_000_000_000,
        "w" | "wk" | "wks" | "week" | "weeks" => 604_800_000_000_000,
        _ => return None,
    };
    amount.checked_mul(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_with_their_offset() {
        for text in [
            "2020-05-06T07:08:09Z",
            "2020-02-29T00:00:00.5Z",
            "2020-05-06T07:08:09.123456789+02:30",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            let time = parse_rfc3339(text).expect("a time");
            assert_eq!(time.to_string(), text);
        }
        for text in [
            "2021-02-29T00:00:00Z",
            "2020-05-06",
            "2020-05-06T24:00:00Z",
            "",
        ] {
            assert!(parse_rfc3339(text).is_none(), "{text}");
        }
        let at = parse_rfc3339("2020-03-01T23:30:00Z")
            .expect("a time")
            .civil(Zone(3600));
        assert_eq!((at.year, at.month, at.day, at.hour), (2020, 3, 2, 0));
        assert_eq!((at.day_of_year, at.weekday), (61, 1));
    }
}
