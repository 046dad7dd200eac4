//! The catalogue of every kind served, built in or custom, in one description type.
//!
//! Pure: no clock, randomness, files, network or logs.

mod kind;

pub use kind::{Generation, Kind, NameRule, Rules, Subresource};
