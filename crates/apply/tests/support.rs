//! Small schemas and worlds for tests.

pub(crate) mod types;
pub(crate) mod world;
