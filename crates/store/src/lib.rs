//! A revisioned, durable, watchable key space; knows no Kubernetes word.
//!
//! Keys are grouped in collections; a key is a collection and a name inside it. Every commit
//! changes one key and gets the next revision of the whole store. Revision order, event order and
//! visibility are one order: whoever sees revision R has everything up to R, and nothing that a
//! power cut could take back.

mod record;

pub use record::{Change, Committed, Error, Event, Expect, Page, Range, Record, Revision};
