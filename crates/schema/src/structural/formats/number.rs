//! Numbers with a check digit.

use std::sync::LazyLock;

use regex::Regex;

static CREDIT_CARD: LazyLock<Regex> = LazyLock::new(|| {
    super::expression(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}\
         |3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    )
});

/// A card number with anything between its digits.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.is_match(&digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let value = u32::from(digit - b'0');
            match place % 2 {
                0 => value,
                _ if value > 4 => value * 2 - 9,
                _ => value * 2,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let [body @ .., last] = digits.as_slice() else {
        return false;
    };
    let checked = match last {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    if body.len() != 9 || !body.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = 1_u32..;
    let sum: u32 = weights
        .zip(body)
        .map(|(weight, digit)| weight * u32::from(digit - b'0'))
        .sum();
    (sum + 10 * checked).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = weights
        .zip(&digits[..12])
        .map(|(weight, digit)| weight * u32::from(digit - b'0'))
        .sum();
    u32::from(digits[12] - b'0') == (10 - sum % 10) % 10
}

fn without_separators(text: &str) -> Vec<u8> {
    let separator = |byte: &u8| matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'-');
    text.bytes().filter(|byte| !separator(byte)).collect()
}

/// `123-45-6789`, with a dash or a space between the groups.
pub(super) fn is_social_security_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(place, byte)| match place {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}
