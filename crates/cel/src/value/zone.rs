//! Named time zones, in the format of the time zone database (TZif, RFC 9636).
//!
//! The core reads no files: whoever runs it hands in where the data of a zone comes from. Contract:
//! Go's `time.LoadLocation` and `Location.lookup`.

use super::time::{DAY_SECONDS, date_of_day, day_of_date};
use crate::evaluate::Fault;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Gives the data of a zone by its name.
pub type ZoneSource = fn(&str) -> Option<Vec<u8>>;

static SOURCE: OnceLock<ZoneSource> = OnceLock::new();
/// So many zones are kept; there are about 600 names.
const ZONES_MAX: usize = 1_000;

/// Says where the data of named time zones comes from; the first word counts.
pub fn provide_zones(source: ZoneSource) {
    let _ = SOURCE.set(source);
}

/// Seconds east of UTC in a zone at a time.
///
/// # Errors
/// There is no such zone, or there cannot be one of that name.
pub(super) fn offset(name: &str, seconds: i64) -> Result<i32, Fault> {
    // A name is a path below a directory of zones, and leads nowhere else.
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err(Fault::new("time: invalid location name"));
    }
    found(name, seconds).ok_or_else(|| Fault::from(format!("unknown time zone {name}")))
}

fn found(name: &str, seconds: i64) -> Option<i32> {
    static KNOWN: Mutex<Option<HashMap<String, Arc<Zone>>>> = Mutex::new(None);
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = lock().as_ref().and_then(|it| it.get(name).cloned());
    let zone = match known {
        Some(zone) => zone,
        None => {
            let zone = Arc::new(Zone::read(&SOURCE.get()?(name)?)?);
            let mut known = lock();
            let known = known.get_or_insert_default();
            if known.len() < ZONES_MAX {
                known.insert(name.to_owned(), Arc::clone(&zone));
            }
            zone
        }
    };
    Some(zone.offset(seconds))
}

/// The offsets of a zone through the times.
#[derive(Debug)]
struct Zone {
    /// Before the first change.
    first: i32,
    /// When the offset changes, and to what, in order.
    changes: Vec<(i64, i32)>,
    /// What holds after the last change.
    rule: Option<Rule>,
}

impl Zone {
    fn read(data: &[u8]) -> Option<Zone> {
        let mut block = Block::read(data, 4)?;
        if data.get(4)? >= &b'2' {
            block = Block::read(data.get(block.end..)?, 8)?;
        }
        let kinds = &block.kinds;
        let standard = kinds.iter().find(|(_, is_summer)| !is_summer);
        let (first, _) = standard.or(kinds.first())?;
        Some(Zone {
            first: *first,
            changes: block.changes,
            rule: Rule::read(block.footer),
        })
    }

    fn offset(&self, seconds: i64) -> i32 {
        let after = self.changes.partition_point(|(at, _)| *at <= seconds);
        match (&self.rule, after.checked_sub(1)) {
            (Some(rule), _) if after == self.changes.len() => rule.offset(seconds),
            (_, Some(last)) => self.changes[last].1,
            (_, None) => self.first,
        }
    }
}

/// One block of a file: a header and what it counts.
struct Block<'a> {
    changes: Vec<(i64, i32)>,
    /// Offset, and whether it is that of summer.
    kinds: Vec<(i32, bool)>,
    footer: &'a str,
    end: usize,
}

impl<'a> Block<'a> {
    /// Reads a block whose times take `width` bytes.
    fn read(data: &'a [u8], width: usize) -> Option<Block<'a>> {
        const HEADER: usize = 44;
        if !data.starts_with(b"TZif") {
            return None;
        }
        let count = |at: usize| -> Option<usize> {
            let bytes: [u8; 4] = data.get(20 + 4 * at..24 + 4 * at)?.try_into().ok()?;
            usize::try_from(u32::from_be_bytes(bytes)).ok()
        };
        let (utc, standard, leaps) = (count(0)?, count(1)?, count(2)?);
        let (times, kinds, letters) = (count(3)?, count(4)?, count(5)?);
        let mut at = HEADER;
        let mut take = |length: usize| -> Option<&'a [u8]> {
            let part = data.get(at..at.checked_add(length)?)?;
            at += length;
            Some(part)
        };
        let moments = take(times.checked_mul(width)?)?;
        let places = take(times)?;
        let described = take(kinds.checked_mul(6)?)?;
        take(letters)?;
        take(leaps.checked_mul(width + 4)?)?;
        take(standard)?;
        take(utc)?;
        let kinds: Vec<(i32, bool)> = described.chunks_exact(6).map(kind).collect();
        let mut changes = Vec::with_capacity(times);
        for (moment, place) in moments.chunks_exact(width).zip(places) {
            changes.push((number(moment), kinds.get(usize::from(*place))?.0));
        }
        let footer = data.get(at..).unwrap_or_default();
        let footer = std::str::from_utf8(footer).unwrap_or_default().trim();
        Some(Block {
            changes,
            kinds,
            footer,
            end: at,
        })
    }
}

fn kind(bytes: &[u8]) -> (i32, bool) {
    (number(&bytes[..4]) as i32, bytes[4] != 0)
}

/// A signed number, most significant byte first.
fn number(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    let next = |so_far: i64, byte: &u8| so_far << 8 | i64::from(*byte);
    bytes.iter().fold(start, next)
}

/// The rule of a zone in the notation of POSIX: `CET-1CEST,M3.5.0,M10.5.0/3`.
#[derive(Debug, PartialEq)]
struct Rule {
    standard: i32,
    summer: Option<Summer>,
}

#[derive(Debug, PartialEq)]
struct Summer {
    offset: i32,
    start: Moment,
    end: Moment,
}

/// A moment of every year, in local time.
#[derive(Debug, PartialEq)]
struct Moment {
    day: Day,
    seconds: i64,
}

#[derive(Debug, PartialEq)]
enum Day {
    /// Of a year without 29 February, from 1.
    CommonYear(i64),
    /// From 0.
    Year(i64),
    /// Month, week (5 is the last) and weekday.
    Week(u32, i64, i64),
}

impl Rule {
    fn read(text: &str) -> Option<Rule> {
        let rest = skip_name(text)?;
        let (offset, rest) = clock(rest)?;
        let standard = i32::try_from(-offset).ok()?;
        if rest.is_empty() {
            return Some(Rule {
                standard,
                summer: None,
            });
        }
        let rest = skip_name(rest)?;
        let (offset, rest) = match rest.starts_with(',') || rest.is_empty() {
            true => (standard.checked_add(3600)?, rest),
            false => {
                let (offset, rest) = clock(rest)?;
                (i32::try_from(-offset).ok()?, rest)
            }
        };
        let rest = if rest.is_empty() {
            ",M3.2.0,M11.1.0"
        } else {
            rest
        };
        let (start, end) = rest.strip_prefix(',')?.split_once(',')?;
        let summer = Summer {
            offset,
            start: Moment::read(start)?,
            end: Moment::read(end)?,
        };
        Some(Rule {
            standard,
            summer: Some(summer),
        })
    }

    fn offset(&self, seconds: i64) -> i32 {
        let Some(summer) = &self.summer else {
            return self.standard;
        };
        let (year, _, _) = date_of_day(seconds.div_euclid(DAY_SECONDS));
        let within = seconds - day_of_date(year, 1, 1) * DAY_SECONDS;
        let start = summer.start.of_year(year) - i64::from(self.standard);
        let end = summer.end.of_year(year) - i64::from(summer.offset);
        let is_summer = match start <= end {
            true => (start..end).contains(&within),
            false => !(end..start).contains(&within),
        };
        match is_summer {
            true => summer.offset,
            false => self.standard,
        }
    }
}

impl Moment {
    fn read(text: &str) -> Option<Moment> {
        let (day, time) = match text.split_once('/') {
            Some((day, time)) => (day, clock(time)?.0),
            None => (text, 2 * 3600),
        };
        let day = match day.strip_prefix('M') {
            Some(parts) => {
                let mut parts = parts.split('.').map(|it| it.parse::<i64>().ok());
                let (month, week, weekday) = (parts.next()??, parts.next()??, parts.next()??);
                let month = u32::try_from(month).ok()?;
                let is_sane = (1..=12).contains(&month)
                    && (1..=5).contains(&week)
                    && (0..=6).contains(&weekday);
                is_sane.then_some(Day::Week(month, week, weekday))?
            }
            None => match day.strip_prefix('J') {
                Some(day) => Day::CommonYear(day.parse().ok()?),
                None => Day::Year(day.parse().ok()?),
            },
        };
        Some(Moment { day, seconds: time })
    }

    /// Seconds since the year began.
    fn of_year(&self, year: i64) -> i64 {
        let new_year = day_of_date(year, 1, 1);
        let day = match self.day {
            Day::Year(day) => day,
            Day::CommonYear(day) => {
                let is_leap = day_of_date(year, 3, 1) - new_year == 60;
                day - 1 + i64::from(is_leap && day >= 60)
            }
            Day::Week(month, week, weekday) => {
                let first = day_of_date(year, month, 1);
                let next_month = match month {
                    12 => day_of_date(year + 1, 1, 1),
                    month => day_of_date(year, month + 1, 1),
                };
                let mut day = first + (weekday - first - 4).rem_euclid(7) + 7 * (week - 1);
                while day >= next_month {
                    day -= 7;
                }
                day - new_year
            }
        };
        day * DAY_SECONDS + self.seconds
    }
}

/// The text after the name of a zone: letters, or anything in angle brackets.
fn skip_name(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>').map(|(_, rest)| rest);
    }
    let rest = text.trim_start_matches(|it: char| it.is_ascii_alphabetic());
    (text.len() - rest.len() >= 3).then_some(rest)
}

/// Hours, minutes and seconds with a sign, and the text after them.
fn clock(text: &str) -> Option<(i64, &str)> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|it: char| !it.is_ascii_digit() && it != ':');
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut total = 0;
    for (part, unit) in digits.split(':').zip([3600, 60, 1]) {
        let part: i64 = part.parse().ok().filter(|it| (0..=167).contains(it))?;
        total += part * unit;
    }
    Some((sign * total, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_summer_is() {
        let offset = |rule: &str, seconds| Rule::read(rule).map(|it| it.offset(seconds));
        let new_york = "EST5EDT,M3.2.0,M11.1.0";
        let cases = [
            (new_york, 1_583_650_799, Some(-5 * 3600)),
            (new_york, 1_583_650_800, Some(-4 * 3600)),
            (new_york, 1_604_210_399, Some(-4 * 3600)),
            (new_york, 1_604_210_400, Some(-5 * 3600)),
            ("CET-1CEST,M3.5.0,M10.5.0/3", 1_593_561_600, Some(2 * 3600)),
            (
                "AEST-10AEDT,M10.1.0,M4.1.0/3",
                1_577_836_800,
                Some(11 * 3600),
            ),
            (
                "AEST-10AEDT,M10.1.0,M4.1.0/3",
                1_593_561_600,
                Some(10 * 3600),
            ),
            ("<+0330>-3:30", 0, Some(3 * 3600 + 1800)),
            ("UTC0", 0, Some(0)),
            ("EST5EDT,J60/0,J300/0", 1_582_934_400, Some(-5 * 3600)),
            ("", 0, None),
            ("EST5EDT,M13.1.0,M1.1.0", 0, None),
        ];
        for (rule, seconds, expected) in cases {
            assert_eq!(offset(rule, seconds), expected, "{rule} at {seconds}");
        }
    }

    #[test]
    fn a_file_of_two_changes_is_read() {
        let block = |width: usize| {
            let mut data = b"TZif2".to_vec();
            data.resize(20, 0);
            for count in [0_u32, 0, 0, 2, 2, 4] {
                data.extend(count.to_be_bytes());
            }
            for time in [0_i64, 1_000] {
                data.extend(&time.to_be_bytes()[8 - width..]);
            }
            data.extend([1, 0]);
            for (offset, summer) in [(-3600_i32, 0), (0, 1)] {
                data.extend(offset.to_be_bytes());
                data.extend([summer, 0]);
            }
            data.extend(b"A\0B\0");
            data
        };
        let mut data = block(4);
        data.extend(block(8));
        let zone = Zone::read(&data).expect("a zone");
        let offsets = [-1, 0, 999, 1_000].map(|at| zone.offset(at));
        assert_eq!(offsets, [-3600, 0, 0, -3600]);
        data.extend(b"\nABC2\n");
        assert_eq!(Zone::read(&data).expect("a zone").offset(2_000), -7200);
        for length in 0..60 {
            assert!(Zone::read(&data[..length]).is_none(), "{length}");
        }
    }
}
