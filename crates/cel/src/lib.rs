//! CEL, the expression language of validation rules and policies.
//!
//! An [`Environment`] says what an expression may name and compiles it to a [`Program`], which is
//! evaluated over borrowed objects within a [`Budget`]. Types, messages and costs are those of
//! kube-apiserver v1.36, so that what is accepted there is accepted here and costs the same.
//!
//! Nothing outside sees how an expression is represented. Pure: no clock, randomness, files,
//! network or logs.

mod ast;
mod authorize;
mod charge;
mod check;
mod cost;
mod environment;
mod evaluate;
mod function;
mod library;
mod parse;
pub mod pattern;
mod plan;
mod program;
mod shape;
mod source;
mod token;
mod types;
mod validate;
mod value;
mod work;

pub use authorize::{
    Authorize, Authorizer, Decision, Question, ResourceCheck, ResourceSubject, ServiceAccount,
    Subject,
};
pub use cost::Estimate;
pub use environment::Environment;
pub use program::{Bindings, Budget, Error, Lazy, Program};
pub use shape::{ListKind, Property, REQUEST_BYTES_MAX, Shape, escape, is_reserved, unescape};
pub use source::{Issue, Issues};
pub use types::Type;
pub use value::{
    Entries, Key, Library, List, Made, Map, Text, Timestamp, Value, ZoneSource, provide_zones,
};

/// What one evaluation may cost.
pub const CALL_COST_MAX: u64 = 1_000_000;
