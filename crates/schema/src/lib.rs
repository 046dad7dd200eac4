//! The shape of a kind: compile, decode, default, prune, validate, publish.
//!
//! Pure: no clock, randomness, files, network or logs.

pub mod decode;
mod fields;
pub mod protobuf;
pub mod structural;
mod types;

pub use fields::Fields;
pub use types::{
    Empty, Field, Form, InsteadOfSchema, ListTopology, ListType, MapType, Namer, Patch, Scalar,
    SchemaOr, Type, TypeId, Types,
};
