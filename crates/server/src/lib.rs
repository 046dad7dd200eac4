//! HTTP in, HTTP out: routing, negotiation, discovery, streaming, health, metrics.
//!
//! `serve.rs` accepts connections, `handle.rs` is the life of a request; read that one first. Only
//! this crate chooses HTTP status codes, and only `answer.rs` in it does.

mod aggregate;
mod alarm;
mod answer;
pub mod audit;
mod body;
mod connect;
mod debugging;
mod discovery;
mod flow;
mod handle;
mod health;
mod impersonation;
mod lanes;
mod messages;
mod metrics;
mod negotiate;
mod openapi;
mod openid;
mod outside;
mod peer;
mod protobuf;
mod query;
mod render;
mod request;
mod resets;
mod serve;
mod stall;
mod state;
mod streams;
mod table;
mod verbs;
mod websocket;

pub use aggregate::ProxyIdentity;
pub use flow::Limits;
pub use health::VERSION;
pub use outside::{HttpsClient, OutsideOptions};
pub use peer::{BadAuthority, ClientCertificates, FrontProxy};
pub use serve::{Activity, Options, Server};
