//! The layout of protobuf: numbers, lengths and keys of fields.
//!
//! Messages are written from their end to their beginning, so that the length of a message is
//! known when it is written and nothing is measured or moved.

use super::{DecodeError, Failure};

/// A number in groups of seven bits.
pub(super) const VARINT: u8 = 0;
/// Eight bytes.
pub(super) const FIXED64: u8 = 1;
/// A length and as many bytes.
pub(super) const BYTES: u8 = 2;
const GROUP_START: u8 = 3;
const GROUP_END: u8 = 4;
const FIXED32: u8 = 5;

/// The longest number.
const VARINT_BYTES_MAX: usize = 10;

/// Bytes that grow towards the front.
pub(super) struct Backward {
    bytes: Vec<u8>,
    start: usize,
}

impl Backward {
    pub(super) fn with_capacity(capacity: usize) -> Backward {
        Backward {
            bytes: vec![0; capacity],
            start: capacity,
        }
    }

    /// What was written, first byte first.
    pub(super) fn written(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// A mark from which [`Backward::close`] measures.
    pub(super) fn open(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Puts length and key in front of all that was written since the mark.
    pub(super) fn close(&mut self, number: u32, mark: usize) {
        let length = self.open() - mark;
        self.varint(length as u64);
        self.key(number, BYTES);
    }

    /// Writes a field that holds a number.
    pub(super) fn number(&mut self, number: u32, value: i64) {
        self.varint(value as u64);
        self.key(number, VARINT);
    }

    /// Writes a field that holds a floating point number.
    pub(super) fn double(&mut self, number: u32, value: f64) {
        self.raw(&value.to_le_bytes());
        self.key(number, FIXED64);
    }

    /// Writes a field that holds bytes.
    pub(super) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.raw(bytes);
        self.varint(bytes.len() as u64);
        self.key(number, BYTES);
    }

    fn key(&mut self, number: u32, wire: u8) {
        self.varint(u64::from(number) << 3 | u64::from(wire));
    }

    fn varint(&mut self, value: u64) {
        if value < 0x80 {
            if self.start == 0 {
                self.grow(1);
            }
            self.start -= 1;
            self.bytes[self.start] = value as u8;
        } else {
            let mut digits = [0; VARINT_BYTES_MAX];
            let length = varint_digits(value, &mut digits);
            self.raw(&digits[..length]);
        }
    }

    fn raw(&mut self, bytes: &[u8]) {
        if bytes.len() > self.start {
            self.grow(bytes.len());
        }
        let start = self.start - bytes.len();
        self.bytes[start..self.start].copy_from_slice(bytes);
        self.start = start;
    }

    /// Makes room for so many bytes at the front.
    #[cold]
    fn grow(&mut self, wanted: usize) {
        let written = self.open();
        let length = (written + wanted).next_power_of_two() * 2;
        let mut larger = vec![0; length];
        larger[length - written..].copy_from_slice(self.written());
        self.start = length - written;
        self.bytes = larger;
    }
}

/// Appends a number.
pub(super) fn push_varint(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; VARINT_BYTES_MAX];
    let length = varint_digits(value, &mut digits);
    out.extend_from_slice(&digits[..length]);
}

/// How many bytes a number takes.
pub(super) fn varint_length(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Appends key and length of a field that holds bytes. The number is below 16.
pub(super) fn push_head(number: u8, length: usize, out: &mut Vec<u8>) {
    out.push(number << 3 | BYTES);
    push_varint(length as u64, out);
}

/// How many bytes such a field takes with its key and its length.
pub(super) fn field_length(length: usize) -> usize {
    1 + varint_length(length as u64) + length
}

fn varint_digits(mut value: u64, digits: &mut [u8; VARINT_BYTES_MAX]) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        digits[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    digits[at] = value as u8;
    at + 1
}

/// The key of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) number: u32,
    pub(super) wire: u8,
}

/// Reads one message, field by field.
pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Fields<'b> {
        Fields { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The key of the next field.
    #[inline(always)]
    pub(super) fn key(&mut self) -> Result<Key, Failure> {
        let key = self.varint()?;
        let wire = (key & 7) as u8;
        // Upstream keeps 32 bits and refuses what is not positive.
        let number = (key >> 3) as i32;
        match (u32::try_from(number), wire) {
            (_, GROUP_END) => Err(DecodeError::UnexpectedEndOfGroup.into()),
            (Ok(number @ 1..), _) => Ok(Key { number, wire }),
            _ => Err(DecodeError::IllegalTag { number, wire }.into()),
        }
    }

    /// The next field's key, or nothing at the end of the message.
    #[inline(always)]
    pub(super) fn next_key(&mut self) -> Result<Option<Key>, Failure> {
        if self.is_at_end() {
            return Ok(None);
        }
        self.key().map(Some)
    }

    /// Takes the next byte if it is 0: a number that is 0, or no bytes.
    #[inline(always)]
    pub(super) fn take_zero_byte(&mut self) -> bool {
        match self.rest {
            [0, rest @ ..] => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    pub(super) fn varint(&mut self) -> Result<u64, Failure> {
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            [first, second @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(first & 0x7f) | u64::from(*second) << 7)
            }
            _ => self.long_varint(),
        }
    }

    /// A number of more than two bytes, which is neither the key of a field nor a usual length.
    #[cold]
    fn long_varint(&mut self) -> Result<u64, Failure> {
        let mut value = 0;
        for at in 0..VARINT_BYTES_MAX {
            let byte = *self.rest.get(at).ok_or(DecodeError::UnexpectedEnd)?;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(DecodeError::Overflow.into())
    }

    #[inline(always)]
    pub(super) fn bytes(&mut self) -> Result<&'b [u8], Failure> {
        let length = self.varint()?;
        if i64::try_from(length).is_err() {
            return Err(DecodeError::NegativeLength.into());
        }
        let length = usize::try_from(length).map_err(|_| DecodeError::UnexpectedEnd)?;
        self.take(length)
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, Failure> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(
            bytes.try_into().expect("eight bytes were taken"),
        ))
    }

    /// Leaves out the value of a field that nobody knows.
    pub(super) fn skip(&mut self, wire: u8) -> Result<(), Failure> {
        let mut open_groups = 0usize;
        let mut wire = wire;
        loop {
            match wire {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.take(8)?),
                BYTES => drop(self.bytes()?),
                GROUP_START => open_groups += 1,
                GROUP_END => {
                    open_groups = open_groups
                        .checked_sub(1)
                        .ok_or(DecodeError::UnexpectedEndOfGroup)?;
                }
                FIXED32 => drop(self.take(4)?),
                wire => return Err(DecodeError::IllegalWireType { wire }.into()),
            }
            if open_groups == 0 {
                return Ok(());
            }
            wire = (self.varint()? & 7) as u8;
        }
    }

    #[inline(always)]
    fn take(&mut self, length: usize) -> Result<&'b [u8], Failure> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(DecodeError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }
}
