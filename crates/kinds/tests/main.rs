//! The catalogue through the doors that other rooms use.

mod definitions;
mod empty;
mod protobuf;
