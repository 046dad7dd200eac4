//! The patch types besides apply: JSON patch, JSON merge patch, strategic merge patch.
//!
//! Each takes the document by value and gives back the patched one or an error; a failed patch
//! leaves nothing behind. Patches are read once and applied as often as a write is retried, so
//! they are borrowed. Walks over free-form values keep their own stack: a value may nest deeper
//! than a thread's stack allows.

mod go_text;
pub mod json_patch;
pub mod merge_patch;
pub mod strategic;

use object::Value;

pub use go_text::go_text;

/// Why a patch cannot be read or applied.
///
/// The variants are what a client is told: [`Undecodable`](PatchError::Undecodable) and
/// [`BadFormat`](PatchError::BadFormat) are bad requests with this message,
/// [`TooManyOperations`](PatchError::TooManyOperations) is a body too large,
/// [`NotApplicable`](PatchError::NotApplicable) is an unprocessable patch whose message upstream
/// replaces by a general one. [`Misfit`](PatchError::Misfit) is an internal error upstream, though
/// the patch is to blame; the message is upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The body is not a patch of its type.
    #[error("{0}")]
    Undecodable(String),
    /// A directive of a strategic merge patch is not written as it must be.
    #[error("{0}")]
    BadFormat(&'static str),
    /// A JSON patch has more operations than are allowed.
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {count}")]
    TooManyOperations {
        /// How many operations the patch has.
        count: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// The patch is well formed but does not apply to this document.
    #[error("{0}")]
    NotApplicable(String),
    /// The patch does not fit the type of what it patches.
    #[error("{0}")]
    Misfit(String),
}

/// The name that Go's decoder gives to the JSON type of a value.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// How many levels of lists and maps a value has; a scalar has none.
fn nesting(value: &Value) -> usize {
    let mut deepest = 0;
    let mut waiting = vec![(value, 1)];
    while let Some((value, depth)) = waiting.pop() {
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => waiting.extend(map.iter().map(|(_, item)| (item, depth + 1))),
            _ => continue,
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod properties;
