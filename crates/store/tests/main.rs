//! The tests of the store, through its door.
//!
//! One contract suite runs on every engine; the other suites break the disk under the disk engine.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the helpers of tests are tests too"
)]

mod broken;
mod contract;
mod crash;
mod directory;
mod model;
mod packs;
mod seal;
mod simulated;
mod support;
