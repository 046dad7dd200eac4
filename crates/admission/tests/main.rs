//! The crate as others use it: real HTTPS calls to a server that behaves as told.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

extern crate windlass_admission as admission;

mod calls;
mod webhook_server;
