//! The catalogue of every kind served, built in or custom, in one description type.
//!
//! Pure: no clock, randomness, files, network or logs.

pub mod catalogue;
pub mod convert;
pub mod custom;
mod defaults;
pub mod expressions;
mod generation;
pub mod groups;
mod json_path;
mod kind;
mod table;
pub mod type_checking;
pub mod validation;

pub use catalogue::{Catalogue, Group};
pub use custom::Custom;
pub use generation::Generation;
pub use json_path::{InvalidPath, JsonPath};
pub use kind::{Column, Kind, NameRule, Reading, Rules, Subresource};
pub use table::{cells, conditions as row_conditions, custom_columns, scale_cells, scale_columns};
