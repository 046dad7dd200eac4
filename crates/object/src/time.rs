//! Times as objects carry them, and durations as Go writes them.
//!
//! Contract: `metav1.Time` and `metav1.MicroTime` over Go's `time.Parse`, which is more lenient
//! than RFC 3339 (one-digit hours, a comma before fractions) and whose errors clients see. There
//! is no clock here: the time now is handed in.

mod duration;

use std::fmt;

use compact_str::ToCompactString as _;

use crate::Text;
pub use duration::{go_duration_parse, go_duration_print, human_duration};

const TIME_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
const DAY_SECONDS: i64 = 86_400;
const DIGITS_BYTES: usize = "2006-01-02T15:04:05".len();
/// The first second of year 1, Go's zero time.
const ZERO_SECONDS: i64 = -62_135_596_800;

/// A point in time to the second: `metav1.Time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    unix_seconds: i64,
}

/// A point in time to the microsecond: `metav1.MicroTime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroTime {
    unix_micros: i64,
}

impl Time {
    /// Counts from the start of 1970.
    pub const fn from_unix_seconds(unix_seconds: i64) -> Time {
        Time { unix_seconds }
    }

    /// Counts from the start of 1970.
    pub const fn unix_seconds(self) -> i64 {
        self.unix_seconds
    }

    /// Whether this is Go's zero time, which objects carry as `null`.
    pub const fn is_zero(self) -> bool {
        self.unix_seconds == ZERO_SECONDS
    }

    /// Reads RFC 3339; a fraction is accepted and dropped.
    ///
    /// # Errors
    /// In Go's words.
    pub fn parse(text: &str) -> Result<Time, String> {
        let parsed = Parser::new(TIME_LAYOUT, text).time(Fraction::Optional)?;
        Ok(Time {
            unix_seconds: parsed.unix_seconds,
        })
    }

    /// Prints it as a text of the tree, as [`Display`](fmt::Display) does but sooner.
    pub fn to_text(self) -> Text {
        let Some(digits) = four_digit_year(self.unix_seconds) else {
            return self.to_compact_string();
        };
        let mut text = [b'Z'; DIGITS_BYTES + 1];
        text[..DIGITS_BYTES].copy_from_slice(&digits);
        Text::from_utf8(text).expect("digits and signs are UTF-8")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(self.unix_seconds, out)?;
        out.write_str("Z")
    }
}

impl MicroTime {
    /// Counts from the start of 1970.
    pub const fn from_unix_micros(unix_micros: i64) -> MicroTime {
        MicroTime { unix_micros }
    }

    /// Counts from the start of 1970.
    pub const fn unix_micros(self) -> i64 {
        self.unix_micros
    }

    /// Whether this is Go's zero time, which objects carry as `null`.
    pub const fn is_zero(self) -> bool {
        self.unix_micros == ZERO_SECONDS * 1_000_000
    }

    /// The second this is in.
    pub const fn to_time(self) -> Time {
        Time {
            unix_seconds: self.unix_micros.div_euclid(1_000_000),
        }
    }

    /// Reads RFC 3339 with exactly six digits of fraction.
    ///
    /// # Errors
    /// In Go's words.
    pub fn parse(text: &str) -> Result<MicroTime, String> {
        let parsed = Parser::new(MICRO_TIME_LAYOUT, text).time(Fraction::SixDigits)?;
        Ok(MicroTime {
            unix_micros: parsed.unix_seconds * 1_000_000 + parsed.micros,
        })
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(self.unix_micros.div_euclid(1_000_000), out)?;
        write!(out, ".{:06}Z", self.unix_micros.rem_euclid(1_000_000))
    }
}

fn write_seconds(unix_seconds: i64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(text) = four_digit_year(unix_seconds) {
        return out.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?);
    }
    let [year, month, day, hour, minute, second] = parts(unix_seconds);
    // A year before 0 has its sign in front of four digits, as Go prints it.
    let sign = if year < 0 { "-" } else { "" };
    let year = year.unsigned_abs();
    write!(
        out,
        "{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
    )
}

/// Year, month, day, hour, minute and second.
fn parts(unix_seconds: i64) -> [i64; 6] {
    let (year, month, day) = date_of_day(unix_seconds.div_euclid(DAY_SECONDS));
    let second = unix_seconds.rem_euclid(DAY_SECONDS);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    [year, month, day, hour, minute, second]
}

/// Date and time of a year of four digits. They are printed for every object, so the digits are
/// set one by one.
fn four_digit_year(unix_seconds: i64) -> Option<[u8; DIGITS_BYTES]> {
    let [year, month, day, hour, minute, second] = parts(unix_seconds);
    if !(0..=9999).contains(&year) {
        return None;
    }
    let mut text = *b"0000-00-00T00:00:00";
    let pairs = [
        (0, year / 100),
        (2, year % 100),
        (5, month),
        (8, day),
        (11, hour),
        (14, minute),
        (17, second),
    ];
    for (at, number) in pairs {
        text[at] += (number / 10) as u8;
        text[at + 1] += (number % 10) as u8;
    }
    Some(text)
}

/// Days of 400 years, after which the calendar repeats.
const CYCLE_DAYS: i64 = 146_097;
/// From the first of March of year 0 to the start of 1970.
const EPOCH_DAYS: i64 = 719_468;

/// The date of a day counted from the start of 1970. Years are counted from March here, which puts
/// the leap day at their end.
fn date_of_day(day: i64) -> (i64, i64, i64) {
    let day = day.saturating_add(EPOCH_DAYS);
    let (cycle, day) = (day.div_euclid(CYCLE_DAYS), day.rem_euclid(CYCLE_DAYS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (cycle * 400 + year + next, month, day)
}

/// The inverse of [`date_of_day`].
fn day_of_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = 365 * year + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1;
    cycle * CYCLE_DAYS + day - EPOCH_DAYS
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fraction {
    Optional,
    SixDigits,
}

struct Parsed {
    unix_seconds: i64,
    micros: i64,
}

/// Walks the text along the layout, as Go's parser does, to fail where it fails.
struct Parser<'a> {
    layout: &'static str,
    text: &'a str,
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn new(layout: &'static str, text: &'a str) -> Parser<'a> {
        Parser {
            layout,
            text,
            rest: text.as_bytes(),
        }
    }

    fn time(mut self, fraction: Fraction) -> Result<Parsed, String> {
        let year = self.year()?;
        self.skip("-")?;
        let month = self.number("01")?;
        self.check((1..=12).contains(&month), "month")?;
        self.skip("-")?;
        let day = self.number("02")?;
        self.skip("T")?;
        let hour = self.hour()?;
        self.check(hour < 24, "hour")?;
        self.skip(":")?;
        let minute = self.number("04")?;
        self.check(minute < 60, "minute")?;
        self.skip(":")?;
        let second = self.number("05")?;
        self.check(second < 60, "second")?;
        let micros = match fraction {
            Fraction::Optional => self.skip_fraction(),
            Fraction::SixDigits => self.micros()?,
        };
        let offset = self.zone()?;
        if !self.rest.is_empty() {
            return Err(self.message(&format!(": extra text: {}", quote(self.rest))));
        }
        self.check((1..=days_in(year, month)).contains(&day), "day")?;
        let seconds = hour * 3600 + minute * 60 + second;
        let unix_seconds = day_of_date(year, month, day) * DAY_SECONDS + seconds - offset;
        Ok(Parsed {
            unix_seconds,
            micros,
        })
    }

    fn year(&mut self) -> Result<i64, String> {
        self.digits(4, "2006")
    }

    fn number(&mut self, element: &str) -> Result<i64, String> {
        self.digits(2, element)
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<i64, String> {
        let split = self.rest.split_at_checked(count);
        match split.and_then(|(number, rest)| Some((digits(number)?, rest))) {
            Some((number, rest)) => {
                self.rest = rest;
                Ok(number)
            }
            None => Err(self.cannot_parse(element)),
        }
    }

    /// An hour may have one digit.
    fn hour(&mut self) -> Result<i64, String> {
        match self.rest {
            [first, second, ..] if first.is_ascii_digit() && second.is_ascii_digit() => {
                self.number("15")
            }
            [first, rest @ ..] if first.is_ascii_digit() => {
                self.rest = rest;
                Ok(i64::from(first - b'0'))
            }
            _ => Err(self.cannot_parse("15")),
        }
    }

    fn skip(&mut self, separator: &str) -> Result<(), String> {
        match self.rest.strip_prefix(separator.as_bytes()) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.cannot_parse(separator)),
        }
    }

    fn skip_fraction(&mut self) -> i64 {
        if let [b'.' | b',', first, ..] = self.rest
            && first.is_ascii_digit()
        {
            let fraction = self.rest[1..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            self.rest = &self.rest[1 + fraction..];
        }
        0
    }

    fn micros(&mut self) -> Result<i64, String> {
        let Some((fraction, rest)) = self.rest.split_at_checked(7) else {
            return Err(self.cannot_parse(".000000"));
        };
        // Go reads these six as a signed number, in which the sign takes the place of a digit.
        let micros = match fraction {
            [b'.' | b',', b'+', number @ ..] => digits(number),
            [b'.' | b',', b'-', number @ ..] => digits(number).map(|micros| -micros),
            [b'.' | b',', number @ ..] => digits(number),
            _ => None,
        };
        let micros = micros.ok_or_else(|| self.cannot_parse(".000000"))?;
        self.check(micros >= 0, "fractional second")?;
        self.rest = rest;
        Ok(micros)
    }

    /// The zone, in seconds east of Greenwich.
    fn zone(&mut self) -> Result<i64, String> {
        const ELEMENT: &str = "Z07:00";
        if let [b'Z', rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(0);
        }
        let &[sign, h1, h2, b':', m1, m2, ref rest @ ..] = self.rest else {
            return Err(self.cannot_parse(ELEMENT));
        };
        let hours = digits(&[h1, h2]);
        let minutes = hours.and_then(|_| digits(&[m1, m2]));
        // Offsets of 24 hours or 60 minutes are written by some people, and taken by Go.
        self.check(minutes.unwrap_or(0) <= 60, "time zone offset minute")?;
        self.check(hours.unwrap_or(0) <= 24, "time zone offset hour")?;
        let offset = hours
            .zip(minutes)
            .map(|(hours, minutes)| hours * 3600 + minutes * 60);
        match (sign, offset) {
            (b'+', Some(offset)) => {
                self.rest = rest;
                Ok(offset)
            }
            (b'-', Some(offset)) => {
                self.rest = rest;
                Ok(-offset)
            }
            _ => Err(self.cannot_parse(ELEMENT)),
        }
    }

    fn check(&self, in_range: bool, what: &str) -> Result<(), String> {
        if in_range {
            Ok(())
        } else {
            Err(self.message(&format!(": {what} out of range")))
        }
    }

    fn cannot_parse(&self, element: &str) -> String {
        let (layout, rest) = (self.layout, quote(self.rest));
        self.message(&format!(
            " as \"{layout}\": cannot parse {rest} as \"{element}\""
        ))
    }

    fn message(&self, what: &str) -> String {
        format!("parsing time {}{what}", quote(self.text.as_bytes()))
    }
}

/// The number that these bytes write, if all are digits.
fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + i64::from(byte - b'0'))
    })
}

/// Quotes as Go's `time` package does, which knows ASCII only.
fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=0x7f => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
