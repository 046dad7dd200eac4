//! The shape of a kind: compile, decode, default, prune, validate, publish.
//!
//! Pure: no clock, randomness, files, network or logs.

pub mod decode;
pub mod protobuf;
pub mod structural;
mod types;

pub use types::{
    Empty, Field, Form, InsteadOfSchema, ListTopology, ListType, MapType, Namer, Patch, Scalar,
    SchemaOr, Type, TypeId, Types,
};
