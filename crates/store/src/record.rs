//! The words of the contract: what goes into the store and what comes out.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// A point in the history of the whole store. Zero is the empty store before its first commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// One version of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The name inside its collection.
    pub name: Arc<str>,
    /// What was stored: opaque here.
    pub value: Bytes,
    /// The revision that created the key (anew, if it had been deleted).
    pub created: Revision,
    /// The revision that wrote this version.
    pub revision: Revision,
}

/// What must be true of a key for a commit to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key does not exist.
    Absent,
    /// The key's newest version is this one.
    At(Revision),
}

/// What a commit does to its key.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Stores a new version. With `ttl_seconds` the store deletes the key that long after.
    Put {
        /// The bytes to store.
        value: Bytes,
        /// The life of this version; `None` for as long as nobody deletes it.
        ttl_seconds: Option<u32>,
    },
    /// Removes the key.
    Delete,
}

/// A commit that is synced and visible.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// The revision it got.
    pub revision: Revision,
    /// The version it replaced or removed.
    pub previous: Option<Record>,
}

/// Which part of a collection to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    /// Only names that begin with this.
    pub prefix: &'a str,
    /// Only names at or after this one (a full name, not relative to `prefix`).
    pub start: Option<&'a str>,
    /// The state to read; `None` for the newest.
    pub at: Option<Revision>,
    /// At most this many; `0` for no limit.
    pub limit: usize,
}

/// A consistent part of a collection, in name order.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// The revision that all of them are read at.
    pub revision: Revision,
    /// How many more the range holds beyond the limit.
    pub remaining: usize,
}

/// One commit, as watchers see it. Shared by all of them.
#[derive(Debug)]
pub struct Event {
    /// The version written; for a deletion the last version, with the deletion's revision.
    pub record: Record,
    /// The version before, if the key existed.
    pub previous: Option<Record>,
    /// Whether the key was removed.
    pub deleted: bool,
    /// A place for the reader's own wire forms of this event, made once and shared.
    pub frames: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key was not as expected.
    #[error("the key is not as expected")]
    Conflict {
        /// The key's newest version.
        current: Option<Record>,
    },
    /// The revision is older than what history holds.
    #[error("revision {asked} is older than {oldest}, the oldest that is kept")]
    Compacted {
        /// The revision asked for.
        asked: Revision,
        /// The oldest revision that can be read.
        oldest: Revision,
    },
    /// The revision does not exist yet.
    #[error("revision {asked} is newer than {current}, the newest there is")]
    Future {
        /// The revision asked for.
        asked: Revision,
        /// The newest revision.
        current: Revision,
    },
    /// The record is larger than the store takes.
    #[error("the record is {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The disk has no room; reads go on.
    #[error("no space left: {path}")]
    NoSpace {
        /// The file that could not grow.
        path: String,
    },
    /// The disk failed; reads go on, writes wait for the data to be verified again.
    #[error("cannot write {path}: {source}")]
    Unavailable {
        /// The file.
        path: String,
        /// What the system said.
        source: Arc<std::io::Error>,
    },
    /// Bytes on disk are not what was written.
    #[error("{path} is damaged: {detail}")]
    Corrupt {
        /// The file.
        path: String,
        /// Where and how.
        detail: String,
    },
    /// A record is whole, but what it stands for cannot be had.
    #[error("the record {collection}{name} cannot be read: {detail}")]
    Sealed {
        /// The collection.
        collection: String,
        /// The name inside it.
        name: String,
        /// Why not.
        detail: String,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}
