//! The writer: compact, HTML-escaped, numbers as Go prints them, no recursion.

use std::io::Write as _;
use std::slice;

use crate::{Text, Value};

/// Writes compact JSON as Go's encoder does.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    write(value, &mut out);
    out
}

/// What is left of an open container.
enum Rest<'a> {
    Array(slice::Iter<'a, Value>),
    Object(slice::Iter<'a, (Text, Value)>),
}

/// Appends compact JSON as Go's encoder does.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    let mut open: Vec<Rest<'_>> = Vec::new();
    let mut next = value;
    loop {
        match next {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Int(number) => write_int(*number, out),
            Value::Float(number) => write_float(*number, out),
            Value::String(text) => write_string(text, out),
            Value::Array(items) => {
                out.push(b'[');
                let mut items = items.iter();
                if let Some(first) = items.next() {
                    next = first;
                    open.push(Rest::Array(items));
                    continue;
                }
                out.push(b']');
            }
            Value::Object(map) => {
                out.push(b'{');
                let mut entries = map.entries().iter();
                if let Some((key, first)) = entries.next() {
                    write_key(key, out);
                    next = first;
                    open.push(Rest::Object(entries));
                    continue;
                }
                out.push(b'}');
            }
        }
        match next_in(&mut open, out) {
            Some(value) => next = value,
            None => return,
        }
    }
}

/// Closes the containers that have nothing left and finds the next value to write.
fn next_in<'a>(open: &mut Vec<Rest<'a>>, out: &mut Vec<u8>) -> Option<&'a Value> {
    loop {
        match open.last_mut()? {
            Rest::Array(items) => {
                if let Some(item) = items.next() {
                    out.push(b',');
                    return Some(item);
                }
                out.push(b']');
            }
            Rest::Object(entries) => {
                if let Some((key, value)) = entries.next() {
                    out.push(b',');
                    write_key(key, out);
                    return Some(value);
                }
                out.push(b'}');
            }
        }
        open.pop();
    }
}

fn write_key(key: &str, out: &mut Vec<u8>) {
    write_string(key, out);
    out.push(b':');
}

fn write_int(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a float as Go's encoder prints it: shortest digits, with an exponent only below 1e-6
/// and from 1e21 on. What JSON cannot hold becomes `null`; no reader of ours makes such a float.
pub fn write_float(number: f64, out: &mut Vec<u8>) {
    if !number.is_finite() {
        out.extend_from_slice(b"null");
        return;
    }
    let size = number.abs();
    let written = if size == 0.0 || (1e-6..1e21).contains(&size) {
        write!(out, "{number}")
    } else {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let sign = if size < 1.0 { "" } else { "+" };
        write!(out, "{digits}e{sign}{exponent}")
    };
    written.expect("a vector takes all that is written to it");
}

/// What to do with a byte inside a string.
const PLAIN: u8 = 0;
const UNICODE: u8 = 1;
const SEPARATOR: u8 = 2;

/// For each byte [`PLAIN`], [`UNICODE`] for an escape by number, [`SEPARATOR`] for what may begin
/// U+2028 or U+2029, or else the letter of its short escape.
const ESCAPES: [u8; 256] = {
    let mut table = [PLAIN; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = UNICODE;
        byte += 1;
    }
    table[b'<' as usize] = UNICODE;
    table[b'>' as usize] = UNICODE;
    table[b'&' as usize] = UNICODE;
    table[0xe2] = SEPARATOR;
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[0x08] = b'b';
    table[0x0c] = b'f';
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[b'\t' as usize] = b't';
    table
};

/// Appends one JSON string with quotes, escaped as Go's encoder does, HTML characters included.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    if is_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        write_with_escapes(bytes, out);
    }
    out.push(b'"');
}

/// Whether surely no byte needs attention, found out eight bytes at a time. The last bytes are
/// looked at together with some that were looked at before.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    let halves = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>());
    let last = match (bytes.last_chunk::<8>(), halves) {
        (Some(last), _) => u64::from_le_bytes(*last),
        (None, (Some(first), Some(last))) => {
            let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
            first | last << 32
        }
        _ => {
            let mut bytes = bytes.iter();
            return bytes.all(|byte| ESCAPES[usize::from(*byte)] == PLAIN);
        }
    };
    let (words, _) = bytes.as_chunks::<8>();
    let hits = words.iter().fold(attention(last), |hits, word| {
        hits | attention(u64::from_le_bytes(*word))
    });
    hits == 0
}

/// Where the run of string bytes that are written as they are read ends: at a quote, at what needs
/// an escape, at what may begin something that does, or at the end of the text.
#[inline]
pub fn end_of_verbatim(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        // A hit can only spoil those above it, and the lowest counts.
        let hits = attention(u64::from_le_bytes(*chunk));
        if hits == 0 {
            at += 8;
            continue;
        }
        at += (hits.trailing_zeros() / 8) as usize;
        if ESCAPES[usize::from(bytes[at])] != PLAIN {
            return at;
        }
        at += 1;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let plain = rest
        .iter()
        .take_while(|byte| ESCAPES[usize::from(**byte)] == PLAIN);
    at + plain.count()
}

/// Whether the strings of a whole JSON text are surely written as they are read, however they are
/// spaced but for line breaks.
pub fn is_verbatim(text: &str) -> bool {
    let needs_attention = |byte: &u8| {
        let is_sign = matches!(byte, b'\\' | b'<' | b'>' | b'&' | 0xe2);
        is_sign | (*byte < b' ')
    };
    let (blocks, rest) = text.as_bytes().as_chunks::<64>();
    let any = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(false, |any, it| any | needs_attention(it))
    };
    !blocks.iter().any(|block| any(block)) && !any(rest)
}

/// Where the next quote is, or else the end.
#[inline]
pub fn end_at_quote(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk) ^ (ONES * b'"' as u64);
        let hits = word.wrapping_sub(ONES) & !word & (ONES * 0x80);
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| **byte != b'"').count()
}

/// Not 0 if one of eight bytes may need attention.
#[inline]
const fn attention(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES * 0x80;
    /// Marks the high bit of a byte that is zero, and maybe of others if there is one.
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word
    }
    // Two signs that differ in one bit are found together once that bit is set.
    let hits = zeros((word | (ONES * 0x04)) ^ (ONES * b'&' as u64))
        | zeros((word | (ONES * 0x02)) ^ (ONES * b'>' as u64))
        | zeros(word ^ (ONES * b'\\' as u64))
        | word.wrapping_sub(ONES * 0x20)
        | word;
    hits & HIGHS
}

/// Writes the bytes of a string some of which may need attention.
fn write_with_escapes(bytes: &[u8], out: &mut Vec<u8>) {
    let mut plain = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[byte as usize];
        if escape == PLAIN {
            continue;
        }
        let length = if escape == SEPARATOR {
            match bytes.get(at + 1..at + 3) {
                Some([0x80, 0xa8 | 0xa9]) => 3,
                _ => continue,
            }
        } else {
            1
        };
        out.extend_from_slice(&bytes[plain..at]);
        write_escape(escape, &bytes[at..at + length], out);
        plain = at + length;
    }
    out.extend_from_slice(&bytes[plain..]);
}

#[cold]
fn write_escape(escape: u8, bytes: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match escape {
        UNICODE => {
            let (high, low) = (usize::from(bytes[0] >> 4), usize::from(bytes[0] & 15));
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
        }
        SEPARATOR if bytes[2] == 0xa8 => out.extend_from_slice(b"\\u2028"),
        SEPARATOR => out.extend_from_slice(b"\\u2029"),
        letter => out.extend_from_slice(&[b'\\', letter]),
    }
}
