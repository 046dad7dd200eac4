//! Amounts of resources: `500m`, `2Gi`, `1e3`.
//!
//! Contract: apimachinery `api/resource`. Amounts below a nano are rounded up, binary amounts are
//! capped at the largest `i64`. Two deliberate differences, both far outside real use: an amount of
//! more than [`DIGITS_MAX`] significant digits, or an exponent outside `i32`, is refused, and a
//! decimal amount beyond `E` prints with an exponent where upstream prints a wrong number.
//!
//! Invariant: the mantissa has no trailing decimal zeros and zero has exponent 0, so equal amounts
//! have one form.

mod text;

use std::cmp::Ordering;
use std::fmt;

use crate::{Text, Value};

/// An amount with more significant digits than this is refused.
pub const DIGITS_MAX: u32 = 36;

/// The exponent of the smallest amount there is, a nano.
const NANO: i64 = -9;

/// An exact amount, and the form it was written in.
#[derive(Clone, Debug)]
pub struct Quantity {
    mantissa: i128,
    /// The power of ten that the mantissa is multiplied by.
    exponent: i64,
    format: Format,
    /// What was parsed, if it is to be printed back as it was.
    text: Option<Text>,
}

/// The three ways to write an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`, in powers of 1024.
    BinarySi,
    /// `12M`, in powers of 1000.
    DecimalSi,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not look like one.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number is missing or has too many digits.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// There is no such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    /// Why it is none, in upstream's words.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        text::parse(text)
    }

    /// Reads a quantity and prints its canonical form, which is usually the text as it came.
    ///
    /// # Errors
    /// Why it is none, in upstream's words.
    pub fn canonical_text(text: &str) -> Result<Text, QuantityError> {
        if text::is_canonical(text) {
            return Ok(text.into());
        }
        Ok(Quantity::parse(text)?.canonical().into())
    }

    /// Reads a quantity out of an object: a string, where spaces around are accepted, or a number.
    ///
    /// # Errors
    /// Why it is none, in upstream's words.
    pub fn from_value(value: &Value) -> Result<Quantity, QuantityError> {
        match value {
            Value::Null => Ok(Quantity::zero()),
            Value::String(text) => Quantity::parse(text.trim()),
            Value::Int(number) => Quantity::parse(&number.to_string()),
            Value::Float(number) => Quantity::parse(&number.to_string()),
            _ => Err(QuantityError::Format),
        }
    }

    /// None of it.
    pub fn zero() -> Quantity {
        Quantity::from_int(0, Format::DecimalSi)
    }

    /// A whole amount.
    pub fn from_int(amount: i64, format: Format) -> Quantity {
        Quantity::new(amount.into(), 0, format)
    }

    /// An amount in thousandths.
    pub fn from_milli(amount: i64, format: Format) -> Quantity {
        Quantity::new(amount.into(), -3, format)
    }

    fn new(mut mantissa: i128, mut exponent: i64, format: Format) -> Quantity {
        if mantissa == 0 {
            exponent = 0;
        }
        while mantissa != 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        Quantity {
            mantissa,
            exponent,
            format,
            text: None,
        }
    }

    /// How it is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// -1, 0 or 1 for an amount below, at or above zero.
    pub fn sign(&self) -> i32 {
        self.mantissa.signum() as i32
    }

    /// The whole amount, rounded away from zero; beyond `i64` it is the nearest there.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// The amount in thousandths, rounded away from zero; beyond `i64` it is the nearest there.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    fn scaled_value(&self, exponent: i64) -> i64 {
        let limit = if self.mantissa < 0 {
            i64::MIN
        } else {
            i64::MAX
        };
        let scaled = if self.exponent < exponent {
            Some(divide_away(self.mantissa, exponent - self.exponent))
        } else {
            power_of_ten(self.exponent - exponent).and_then(|by| self.mantissa.checked_mul(by))
        };
        // A zero has exponent 0, so it never overflows.
        scaled
            .and_then(|value| i64::try_from(value).ok())
            .unwrap_or(limit)
    }

    /// The amount as a float, which may lose precision.
    pub fn approximate(&self) -> f64 {
        let exponent = self.exponent.clamp(-400, 400) as i32;
        self.mantissa as f64 * 10_f64.powi(exponent)
    }

    /// Rounds away from zero to a multiple of `10^exponent`, such as `-3` for thousandths.
    pub fn round_up(&mut self, exponent: i32) {
        let exponent = i64::from(exponent);
        if self.exponent < exponent && !self.is_zero() {
            let mantissa = divide_away(self.mantissa, exponent - self.exponent);
            *self = Quantity::new(mantissa, exponent, self.format);
        }
    }

    /// Adds; a zero takes the other's format.
    ///
    /// A sum that needs more digits than there are is rounded away from zero in its last one.
    pub fn add(&mut self, other: &Quantity) {
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        let exponent = self.common_exponent(other);
        let (left, right) = (self.at_exponent(exponent), other.at_exponent(exponent));
        *self = Quantity::new(left + right, exponent, format);
    }

    /// Takes away; a zero takes the other's format.
    pub fn sub(&mut self, other: &Quantity) {
        let mut other = other.clone();
        other.mantissa = -other.mantissa;
        self.add(&other);
    }

    /// The smallest exponent at which neither amount has more than [`DIGITS_MAX`] digits.
    fn common_exponent(&self, other: &Quantity) -> i64 {
        if self.is_zero() || other.is_zero() {
            return if self.is_zero() {
                other.exponent
            } else {
                self.exponent
            };
        }
        let largest = self.magnitude().max(other.magnitude());
        self.exponent
            .min(other.exponent)
            .max(largest - i64::from(DIGITS_MAX))
    }

    fn at_exponent(&self, exponent: i64) -> i128 {
        if self.exponent < exponent {
            return divide_away(self.mantissa, exponent - self.exponent);
        }
        match power_of_ten(self.exponent - exponent) {
            Some(by) => self.mantissa * by,
            // Only a zero is moved that far.
            None => 0,
        }
    }

    /// The exponent of the first digit, plus one.
    fn magnitude(&self) -> i64 {
        self.exponent + i64::from(digits(self.mantissa))
    }

    /// Writes the amount in its canonical form, whatever was parsed.
    pub fn canonical(&self) -> String {
        text::canonical(self)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => out.write_str(text),
            None => out.write_str(&self.canonical()),
        }
    }
}

/// Equal amounts are equal, however written.
impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        (self.mantissa, self.exponent) == (other.mantissa, other.exponent)
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        let signs = self.sign().cmp(&other.sign());
        if signs != Ordering::Equal || self == other {
            return signs;
        }
        // Both have one sign: the magnitudes decide, and among equal ones the digits, which are
        // few enough to be aligned.
        let sizes = self.magnitude().cmp(&other.magnitude()).then_with(|| {
            let exponent = self.exponent.min(other.exponent);
            let sizes = (self.at_exponent(exponent), other.at_exponent(exponent));
            sizes.0.unsigned_abs().cmp(&sizes.1.unsigned_abs())
        });
        if self.sign() < 0 {
            sizes.reverse()
        } else {
            sizes
        }
    }
}

/// How many decimal digits a number has; none for zero.
fn digits(number: i128) -> u32 {
    number
        .unsigned_abs()
        .checked_ilog10()
        .map_or(0, |log| log + 1)
}

fn power_of_ten(exponent: i64) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// Divides by a power of ten, rounding away from zero.
fn divide_away(number: i128, exponent: i64) -> i128 {
    match power_of_ten(exponent) {
        Some(by) if number % by == 0 => number / by,
        Some(by) => number / by + number.signum(),
        None => number.signum(),
    }
}

#[cfg(test)]
mod tests;
