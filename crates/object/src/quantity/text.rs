//! How quantities are read and written.

use super::{DIGITS_MAX, Format, NANO, Quantity, QuantityError};

/// The digits that upstream keeps in an `i64`; texts of more take its slow path, which forgets how
/// they were written.
const FAST_DIGITS_MAX: usize = 18;

const DECIMAL_SUFFIXES: [(&str, i64); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// Powers of 1024, from the first.
const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The parts of a text. Leading zeros are not part of `whole`, which is `0` if nothing is left.
struct Parts<'a> {
    is_negative: bool,
    has_digits: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    let parts = split(text)?;
    if let Some(&(_, exponent)) = DECIMAL_SUFFIXES
        .iter()
        .find(|(name, _)| *name == parts.suffix)
    {
        return decimal(text, &parts, exponent, Format::DecimalSi);
    }
    if let Some(power) = BINARY_SUFFIXES
        .iter()
        .position(|name| *name == parts.suffix)
    {
        return binary(text, &parts, 10 * (power as u32 + 1));
    }
    let exponent = parts
        .suffix
        .strip_prefix(['e', 'E'])
        .ok_or(QuantityError::Suffix)?;
    let exponent: i32 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
    decimal(text, &parts, exponent.into(), Format::DecimalExponent)
}

/// Cuts a text apart. Upstream's scanner is more lenient than the expression in its message: a
/// lone sign, dot or suffix is a zero.
fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (zeros_and_whole, rest) = cut(unsigned, |c| c.is_ascii_digit());
    let whole = zeros_and_whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => cut(rest, |c| c.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, exponent) = cut(suffix, |c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    Ok(Parts {
        is_negative: text.starts_with('-'),
        // A text that ends after its sign and zeros reads as a zero, digits or not.
        has_digits: rest.is_empty() || !(zeros_and_whole.is_empty() && fraction.is_empty()),
        whole,
        fraction,
        suffix,
    })
}

fn cut(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn decimal(
    text: &str,
    parts: &Parts<'_>,
    exponent: i64,
    format: Format,
) -> Result<Quantity, QuantityError> {
    let exponent = exponent - parts.fraction.len() as i64;
    let shifted = format!("{}{}", parts.whole, parts.fraction);
    if shifted.len() > FAST_DIGITS_MAX || exponent < NANO {
        return exact(parts, digits_of(&shifted), exponent, format);
    }
    let mantissa: i128 = shifted.parse().map_err(|_| QuantityError::Number)?;
    let mut quantity = Quantity::new(signed(parts, mantissa), exponent, format);
    // What looks canonical at a glance is printed back as it came, be it `+1` or `1.234`.
    if exponent % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0') {
        quantity.text = Some(text.into());
    }
    Ok(quantity)
}

fn binary(text: &str, parts: &Parts<'_>, power: u32) -> Result<Quantity, QuantityError> {
    // Upstream's estimate of the digits that are left in an `i64`.
    let room = 14_usize.saturating_sub(power as usize * 3 / 10);
    if parts.fraction.is_empty() && parts.whole.len() <= room {
        let whole: i128 = parts.whole.parse().map_err(|_| QuantityError::Number)?;
        let mut quantity = Quantity::new(signed(parts, whole << power), 0, Format::BinarySi);
        if whole % 8 != 0 {
            quantity.text = Some(text.into());
        }
        return Ok(quantity);
    }
    let mut digits = digits_of(&format!("{}{}", parts.whole, parts.fraction));
    multiply(&mut digits, 1 << power);
    exact(
        parts,
        digits,
        -(parts.fraction.len() as i64),
        Format::BinarySi,
    )
}

/// Makes a quantity of any number of digits, most significant first: rounds up to a nano, caps
/// binary amounts and refuses what is still too long.
fn exact(
    parts: &Parts<'_>,
    mut digits: Vec<u8>,
    mut exponent: i64,
    mut format: Format,
) -> Result<Quantity, QuantityError> {
    if !parts.has_digits {
        return Err(QuantityError::Number);
    }
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    digits.drain(..leading);
    if digits.is_empty() {
        return Ok(Quantity::new(0, 0, format));
    }
    let mut is_rounded = false;
    if exponent < NANO {
        let dropped = usize::try_from(NANO - exponent).unwrap_or(usize::MAX);
        let kept = digits.len().saturating_sub(dropped);
        is_rounded = digits[kept..].iter().any(|digit| *digit != 0);
        digits.truncate(kept);
        exponent = NANO;
    }
    // A number that is rounded must keep its zeros, down to the nano that is added.
    while !is_rounded && digits.last() == Some(&0) {
        digits.pop();
        exponent += 1;
    }
    let largest = i128::from(i64::MAX);
    let is_long = digits.len() > DIGITS_MAX as usize;
    if is_long && format == Format::BinarySi && digits.len() as i64 + exponent > 19 {
        return Ok(Quantity::new(signed(parts, largest), 0, format));
    }
    if is_long {
        return Err(QuantityError::Number);
    }
    let mantissa = digits
        .iter()
        .fold(0_i128, |sum, digit| sum * 10 + i128::from(*digit));
    let mantissa = mantissa + i128::from(is_rounded);
    let amount = Quantity::new(mantissa, exponent, format);
    if format == Format::BinarySi && amount > Quantity::new(largest, 0, format) {
        return Ok(Quantity::new(signed(parts, largest), 0, format));
    }
    if format == Format::BinarySi && amount < Quantity::new(1, 0, format) {
        format = Format::DecimalSi;
    }
    Ok(Quantity::new(signed(parts, mantissa), exponent, format))
}

fn signed(parts: &Parts<'_>, amount: i128) -> i128 {
    if parts.is_negative { -amount } else { amount }
}

fn digits_of(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| byte - b'0').collect()
}

/// Multiplies a number written in decimal digits.
fn multiply(digits: &mut Vec<u8>, by: u64) {
    let mut carry = 0_u128;
    for digit in digits.iter_mut().rev() {
        carry += u128::from(*digit) * u128::from(by);
        *digit = (carry % 10) as u8;
        carry /= 10;
    }
    let mut front = Vec::new();
    while carry > 0 {
        front.push((carry % 10) as u8);
        carry /= 10;
    }
    front.reverse();
    digits.splice(..0, front);
}

/// Whether a text is surely the canonical form of its amount: few digits that do not begin with a
/// zero, a suffix that is not an exponent, and no larger suffix that would do.
pub(super) fn is_canonical(text: &str) -> bool {
    const DIGITS_MAX: usize = 6;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=DIGITS_MAX).contains(&digits) || text.starts_with('0') {
        return false;
    }
    let (number, suffix) = text.split_at(digits);
    let number = number
        .bytes()
        .fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    match suffix {
        "n" | "u" | "m" | "" | "k" | "M" | "G" | "T" => number % 1000 != 0,
        "Ki" | "Mi" | "Gi" => number % 1024 != 0,
        _ => false,
    }
}

pub(super) fn canonical(quantity: &Quantity) -> String {
    if quantity.is_zero() {
        return "0".to_owned();
    }
    if quantity.format == Format::BinarySi
        && let Some(text) = canonical_binary(quantity)
    {
        return text;
    }
    // The exponent must be a multiple of three; the mantissa takes what is over.
    let exponent = quantity.exponent - quantity.exponent.rem_euclid(3);
    let zeros = "0".repeat(quantity.exponent.rem_euclid(3) as usize);
    let mantissa = quantity.mantissa;
    let suffix = DECIMAL_SUFFIXES
        .iter()
        .find(|(_, power)| *power == exponent);
    match (quantity.format, suffix) {
        (Format::DecimalExponent, _) if exponent == 0 => format!("{mantissa}{zeros}"),
        (Format::DecimalExponent, _) | (_, None) => format!("{mantissa}{zeros}e{exponent}"),
        (_, Some((suffix, _))) => format!("{mantissa}{zeros}{suffix}"),
    }
}

/// The form in powers of 1024, which only whole amounts of at least 1024 have.
fn canonical_binary(quantity: &Quantity) -> Option<String> {
    let power = u32::try_from(quantity.exponent).ok()?;
    let mut amount = quantity.mantissa.checked_mul(10_i128.checked_pow(power)?)?;
    if amount.unsigned_abs() < 1024 {
        return None;
    }
    let mut suffix = "";
    for next in BINARY_SUFFIXES {
        if amount % 1024 != 0 {
            break;
        }
        amount /= 1024;
        suffix = next;
    }
    Some(format!("{amount}{suffix}"))
}
