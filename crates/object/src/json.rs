//! JSON in and out.
//!
//! Reading: duplicate keys are noticed (the last one wins), at most [`DEPTH_MAX`] levels, integers
//! outside `i64` become floats. Writing: compact, HTML-escaped and with numbers as Go prints them.

use crate::Value;

/// Nesting deeper than this is refused, as upstream refuses it.
pub const DEPTH_MAX: usize = 10_000;

/// Writes compact JSON as Go's encoder does.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

/// Appends compact JSON as Go's encoder does.
pub fn write(_value: &Value, _out: &mut Vec<u8>) {}
