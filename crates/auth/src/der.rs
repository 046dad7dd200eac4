//! The little of DER that keys and names need: reading nested values, and writing them.
//!
//! Reading never trusts a length: what does not fit is `None`.

/// A whole number.
pub const INTEGER: u8 = 0x02;
/// Bits; the first byte counts the unused ones.
pub const BIT_STRING: u8 = 0x03;
/// Bytes.
pub const OCTET_STRING: u8 = 0x04;
/// Nothing.
pub const NULL: u8 = 0x05;
/// The name of an algorithm or of a part of a name.
pub const OID: u8 = 0x06;
/// Text.
pub const UTF8_STRING: u8 = 0x0c;
/// Values in order.
pub const SEQUENCE: u8 = 0x30;
/// Values in no order.
pub const SET: u8 = 0x31;

/// Takes one value of a kind off the front of `rest`.
pub fn take<'a>(rest: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (found, value) = take_any(rest)?;
    (found == tag).then_some(value)
}

/// Takes one value off the front of `rest`, with its tag.
pub fn take_any<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, after) = rest.split_first()?;
    let (&first, mut after) = after.split_first()?;
    let length = match first {
        0..=0x7f => usize::from(first),
        0x81..=0x84 => {
            let (bytes, more) = after.split_at_checked(usize::from(first & 0x7f))?;
            after = more;
            bytes
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte))
        }
        _ => return None,
    };
    let (value, more) = after.split_at_checked(length)?;
    *rest = more;
    Some((tag, value))
}

/// A number without the zero that keeps it positive.
pub fn unsigned(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros.min(number.len().saturating_sub(1))..]
}

/// Writes one value.
pub fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    match length {
        0..=0x7f => out.push(length as u8),
        0x80..=0xff => out.extend([0x81, length as u8]),
        0x100..=0xffff => out.extend([0x82, (length >> 8) as u8, length as u8]),
        _ => out.extend([
            0x83,
            (length >> 16) as u8,
            (length >> 8) as u8,
            length as u8,
        ]),
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// Writes a number that is not negative.
pub fn integer(number: &[u8]) -> Vec<u8> {
    let number = unsigned(number);
    let sign: &[u8] = if number.first().is_some_and(|byte| byte & 0x80 != 0) {
        &[0]
    } else {
        &[]
    };
    value(INTEGER, &[sign, number])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let inside = vec![7; length];
            let written = value(OCTET_STRING, &[&inside]);
            let mut rest = written.as_slice();
            assert_eq!(take(&mut rest, OCTET_STRING), Some(inside.as_slice()));
            assert!(rest.is_empty());
            let mut short = &written[..written.len() - 1];
            assert_eq!(take_any(&mut short), None, "{length}");
        }
        assert_eq!(integer(&[0, 0, 0x80]), [2, 2, 0, 0x80]);
        assert_eq!(unsigned(&[0, 0]), [0]);
    }

    #[test]
    fn lengths_that_lie_name_nothing() {
        for wrong in [
            &[0x30][..],
            &[0x30, 0x80, 0, 0],
            &[0x30, 0x85, 1, 1, 1, 1, 1],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
        ] {
            let mut rest = wrong;
            assert_eq!(take_any(&mut rest), None, "{wrong:?}");
        }
    }
}
