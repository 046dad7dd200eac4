//! JSON in and out.
//!
//! Contract: `sigs.k8s.io/json` for reading, Go's `encoding/json` for writing and for the words of
//! syntax errors.
//!
//! Reading: duplicate keys are noticed (the last one wins), at most [`DEPTH_MAX`] levels, a number
//! without fraction or exponent that fits an `i64` stays an integer and every other becomes a
//! float. Invalid UTF-8 and lone surrogates become U+FFFD. Writing: compact, keys sorted as the
//! tree holds them, HTML-escaped. Neither recurses, so depth costs heap and never stack.

mod indent;
mod read;
mod write;

pub use indent::pretty;
pub use read::end_of_plain;
pub use write::{
    end_at_quote, end_of_verbatim, is_verbatim, to_vec, write, write_float, write_string,
};

use crate::Value;
use crate::field::quote;

/// Nesting deeper than this is refused, as upstream refuses it.
pub const DEPTH_MAX: usize = 10_000;

/// At most this many duplicate fields are reported, as upstream does.
const DUPLICATES_MAX: usize = 100;

/// The reports of duplicate fields together take at most about this much; a deep object with long
/// keys could otherwise turn one body into a hundred copies of itself.
const DUPLICATES_BYTES_MAX: usize = 1 << 20;

/// Why a text is not JSON that we take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text stops inside a value.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A byte stands where it may not.
    #[error("invalid character {} {context}", quote_byte(*.byte))]
    Syntax {
        /// How many bytes of the text come before it.
        offset: usize,
        /// The byte itself.
        byte: u8,
        /// Where the reader was, such as `looking for beginning of value`.
        context: &'static str,
    },
    /// The value nests more than [`DEPTH_MAX`] levels.
    #[error("invalid character {} exceeded max depth", quote_byte(*.byte))]
    Depth {
        /// How many bytes of the text come before the bracket that was too much.
        offset: usize,
        /// The bracket.
        byte: u8,
    },
    /// Something follows the value.
    #[error("invalid character {} after top-level value", quote_byte(*.byte))]
    TrailingData {
        /// How many bytes of the text come before it.
        offset: usize,
        /// Its first byte.
        byte: u8,
    },
    /// A number is too large for a float.
    #[error("json: cannot unmarshal number {literal} into Go value of type float64")]
    NumberRange {
        /// The number as it was written.
        literal: String,
    },
}

/// Reads one value; of equal keys in an object the last one stays.
pub fn parse(text: &[u8]) -> Result<Value, Error> {
    read::with_clean_text(text, |text| read::Reader::new(text).read()).map(|read| read.value)
}

/// Reads one value and tells which fields stand twice, such as `spec.containers[0].name`.
///
/// Each path is given once, in the order met, at most a hundred. The last of equal keys stays.
pub fn parse_strict(text: &[u8]) -> Result<(Value, Vec<String>), Error> {
    read::with_clean_text(text, |text| {
        let read = read::Reader::new(text).read()?;
        if !read.has_duplicates {
            return Ok((read.value, Vec::new()));
        }
        // Only a text that has duplicates pays for finding out where and in which order.
        let mut reader = read::Reader::new(text);
        reader.track_duplicates();
        let read = reader.read()?;
        Ok((read.value, read.duplicates))
    })
}

/// Reads as [`parse_strict`] does, but objects under equal keys merge.
///
/// This is what decoding into a Go struct does: the second object is read into the first. Anything
/// that is not an object replaces what stood before.
pub fn parse_merging(text: &[u8]) -> Result<(Value, Vec<String>), Error> {
    read::with_clean_text(text, |text| {
        let read = read::Reader::new(text).read()?;
        if !read.has_duplicates {
            return Ok((read.value, Vec::new()));
        }
        let mut reader = read::Reader::new(text);
        reader.track_duplicates();
        reader.merge_duplicates();
        let read = reader.read()?;
        Ok((read.value, read.duplicates))
    })
}

/// Reads JSON as the YAML reader would, or not at all: no duplicate keys, numbers as they come
/// out of [`number_as_written`].
pub(crate) fn parse_for_yaml(text: &[u8]) -> Option<Value> {
    let mut reader = read::Reader::new(std::str::from_utf8(text).ok()?);
    reader.write_floats();
    reader
        .read()
        .ok()
        .filter(|read| !read.has_duplicates)
        .map(|read| read.value)
}

/// The value that a float has once it was written as JSON and read again: without a fraction it
/// is an integer.
pub(crate) fn number_as_written(number: f64) -> Value {
    let mut literal = Vec::new();
    write_float(number, &mut literal);
    let integer = std::str::from_utf8(&literal)
        .ok()
        .and_then(|literal| literal.parse().ok());
    integer.map_or(Value::Float(number), Value::Int)
}

pub(crate) use read::clean as replace_invalid_utf8;

/// Prints a byte as Go's scanner does: as the Latin-1 character of that number, in single quotes.
fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = quote(char::from(byte).encode_utf8(&mut [0; 2]));
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

#[cfg(test)]
mod tests;
