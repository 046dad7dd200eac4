//! A revisioned, durable, watchable key space; knows no Kubernetes word.
//!
//! Keys are grouped in collections; a key is a collection and a name inside it. Every commit
//! changes one key and gets the next revision of the whole store. Revision order, event order and
//! visibility are one order: whoever sees revision R has everything up to R, and nothing that a
//! power cut could take back.

mod record;
mod store;

mod clock;
mod disk;
mod index;
mod memory;
mod seal;
mod view;
mod watch;
mod writer;

pub use clock::{Clock, FalseClock, SystemClock};
pub use disk::{
    BackupReport, CheckReport, DataFile, Files, Lock, OpenError, Presence, Problem, SystemFiles,
};
pub use record::{Change, Committed, Error, Event, Expect, Page, Range, Record, Revision};
pub use seal::{Opened, Seal};
pub use store::{Options, Store};
pub use watch::{Pulse, Watch};
pub use writer::RECORD_BYTES_MAX;
