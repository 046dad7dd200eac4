//! What an evaluation really takes, beside what it is charged.
//!
//! Costs are upstream's, and some have little to do with the time that a call takes: comparing two
//! large objects costs one unit, and so does reading a number of a million digits. Work is an
//! estimate of nanoseconds, counted for what is large; an expression that works too long is
//! stopped as one that costs too much.

use crate::evaluate::Fault;
use crate::value::Value;
use std::cell::Cell;

/// An evaluation may take about so many nanoseconds for what costs do not cover.
const NANOSECONDS_MAX: u64 = 200_000_000;

/// How much an evaluation has worked.
#[derive(Debug, Default)]
pub(crate) struct Work(Cell<u64>);

impl Work {
    /// Notes that so many nanoseconds are about to pass.
    pub(crate) fn spend(&self, nanoseconds: u64) -> Result<(), Fault> {
        let spent = self.0.get().saturating_add(nanoseconds);
        self.0.set(spent);
        match spent > NANOSECONDS_MAX {
            true => Err(Fault::OverLimit),
            false => Ok(()),
        }
    }

    /// Notes that a value of so many bytes is looked at.
    pub(crate) fn glance(&self, bytes: usize) -> Result<(), Fault> {
        self.spend(bytes as u64 / 4)
    }
}

/// How long a function takes for each byte of text, in quarters of a nanosecond, and for each item
/// of a list or entry of a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effort {
    byte_quarters: u32,
    item: u32,
}

impl Effort {
    pub(crate) fn of(function: &str) -> Effort {
        let (byte_quarters, item) = match function {
            "sort" | "@sortByAssociatedKeys" => (1, 1_000),
            "flatten" => (1, 200),
            "@in" | "reverse" | "slice" | "distinct" | "sum" | "min" | "max" | "isSorted"
            | "indexOf" | "lastIndexOf" | "join" | "sets.contains" | "sets.equivalent"
            | "sets.intersects" => (4, 50),
            "size" | "startsWith" | "endsWith" | "contains" | "_+_" | "string" | "bytes" => (1, 0),
            "charAt" | "substring" => (8, 0),
            _ => (64, 0),
        };
        Effort {
            byte_quarters,
            item,
        }
    }

    /// The estimate for a call with such an argument or result.
    pub(crate) fn with(self, value: &Value<'_>) -> u64 {
        let bytes = |bytes: usize| (bytes as u64).saturating_mul(self.byte_quarters.into()) / 4;
        match value {
            Value::String(text) => bytes(text.len()),
            Value::Bytes(content) => bytes(content.len()),
            Value::List(list) if self.item > 0 => list.len().saturating_mul(self.item.into()),
            _ => 0,
        }
    }
}
