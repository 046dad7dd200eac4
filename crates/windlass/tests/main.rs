//! The binary as its users run it, asked by the client that Rust programs use.

mod rust_client;
