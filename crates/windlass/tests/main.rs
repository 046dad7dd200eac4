//! The binary as its users run it, asked by the client that Rust programs use, and by hand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod aggregated;
mod attacks;
mod audit;
mod command_line;
mod controller;
mod debugging;
mod definitions;
mod encryption;
mod identity;
mod issuer;
mod limits;
mod paths;
mod raw;
mod repeated;
mod rust_client;
mod soak;
mod wording;
