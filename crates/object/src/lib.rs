//! What an API object is: value tree, names, selectors, quantities, times, wire forms.
//!
//! Pure: no clock, randomness, files, network or logs. Everything that a client can send passes
//! through a parser of this crate first, so each has limits and each has a fuzz target.

pub mod addresses;
pub mod field;
pub mod fields;
pub mod group;
pub mod json;
pub mod labels;
pub mod names;
pub mod quantity;
pub mod time;
mod value;
pub mod yaml;

pub use value::{Map, Text, Value, text_head, text_order};
