//! The verbs, tried on objects in memory.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

extern crate windlass_resources as resources;

mod actions;
mod admission;
mod aggregation;
mod allocate;
mod bodies;
mod bootstrap;
mod controllers;
mod fixture;
mod nodes;
mod plugins;
mod pod_security;
mod policies;
mod quota;
mod reviews;
mod roles;
mod tokens;
#[path = "../../admission/tests/webhook_server.rs"]
mod webhook_server;
mod webhooks;
