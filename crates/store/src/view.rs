//! What readers see: every collection's keys and recent events, in memory.
//!
//! An engine's single writer calls `View::apply` with commits that are already durable, in
//! revision order, then `View::publish`, and wakes the watchers of what changed. Until it is
//! published a revision is invisible, though
//! parts of it may be in place: readers fix the revision first and then look, never the other way
//! round.
//!
//! Memory is bounded by a window over the newest commits. `View::forget` drops the oldest commit:
//! its event and the version it replaced. What is older than a collection's `floor` is no longer
//! known here; an engine with a disk looks there.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::index::{Index, Slice, Version};
use crate::record::{Error, Event, Page, Range, Record, Revision};

/// A commit whose revision is assigned, ready to be written and applied.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) collection: Arc<Collection>,
    pub(crate) name: Arc<str>,
    pub(crate) value: Bytes,
    /// What is written instead of the value.
    pub(crate) sealed: Option<Bytes>,
    pub(crate) revision: Revision,
    /// The revision that created the key, also for a deletion.
    pub(crate) created: Revision,
    /// The version this one replaces; zero for none.
    pub(crate) replaces: Revision,
    /// The commit before this one in the same collection; zero for none.
    pub(crate) prior: Revision,
    pub(crate) deleted: bool,
    pub(crate) at_millis: u64,
    pub(crate) expires_millis: u64,
}

impl Commit {
    /// What is written to disk.
    pub(crate) fn written(&self) -> &Bytes {
        self.sealed.as_ref().unwrap_or(&self.value)
    }

    /// About what it takes in memory and on disk.
    pub(crate) fn weight(&self) -> u64 {
        let sealed = self.sealed.as_ref().map_or(0, Bytes::len);
        (self.collection.name.len() + self.name.len() + self.value.len() + sealed + 128) as u64
    }
}

/// A read of the past that memory may or may not be able to answer.
pub(crate) enum Lookup<T> {
    /// The answer.
    Known(T),
    /// Older than the window of this collection.
    Forgotten,
}

/// One collection.
#[derive(Debug)]
pub(crate) struct Collection {
    pub(crate) name: Arc<str>,
    inner: RwLock<Inner>,
    pub(crate) changed: Notify,
    /// The newest revision that changed it, perhaps not visible yet.
    last: AtomicU64,
    /// How many watch it.
    pub(crate) watchers: AtomicUsize,
}

#[derive(Debug, Default)]
pub(crate) struct Inner {
    pub(crate) index: Index,
    events: VecDeque<Arc<Event>>,
    /// The place of `events[0]` in the sequence of all events of the collection.
    first: u64,
    /// The newest event that is no longer in `events`.
    floor: Revision,
}

impl Collection {
    fn new(name: Arc<str>) -> Collection {
        Collection {
            name,
            inner: RwLock::default(),
            changed: Notify::new(),
            last: AtomicU64::new(0),
            watchers: AtomicUsize::new(0),
        }
    }

    /// Takes what was found on disk.
    pub(crate) fn recover(&self, inner: Inner) {
        self.last.store(inner.last().0, Ordering::Release);
        *self.write() = inner;
    }

    /// The newest revision that changed it, perhaps not visible yet.
    pub(crate) fn newest(&self) -> Revision {
        Revision(self.last.load(Ordering::Acquire))
    }

    // A panic while the lock was held cannot leave a torn state that matters: writers assert
    // before they change anything.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// A collection as it was found on disk: its keys, and the newest revision that changed it.
    pub(crate) fn recovered(index: Index, floor: Revision) -> Inner {
        Inner {
            index,
            events: VecDeque::new(),
            first: 0,
            floor,
        }
    }

    /// The newest revision that changed the collection.
    pub(crate) fn last(&self) -> Revision {
        self.events
            .back()
            .map_or(self.floor, |event| event.record.revision)
    }

    /// The event at a place in the sequence of all events; `None` if it is still to come.
    pub(crate) fn event(&self, place: u64) -> Lookup<Option<&Arc<Event>>> {
        match place.checked_sub(self.first) {
            Some(index) => Lookup::Known(self.events.get(index as usize)),
            None => Lookup::Forgotten,
        }
    }

    /// The place of the first event after a revision.
    pub(crate) fn place_after(&self, after: Revision) -> Lookup<u64> {
        if after < self.floor {
            return Lookup::Forgotten;
        }
        let index = self
            .events
            .partition_point(|event| event.record.revision <= after);
        Lookup::Known(self.first + index as u64)
    }

    /// Adds a commit and returns the version it replaces.
    fn push(&mut self, commit: &Commit) -> Option<Version> {
        let created = if commit.deleted {
            Revision(0)
        } else {
            commit.created
        };
        let version = Version {
            value: commit.value.clone(),
            created,
            revision: commit.revision,
            expires_millis: commit.expires_millis,
        };
        let (name, previous) = self.index.push(&commit.name, version);
        let previous = previous.filter(|previous| !previous.is_deletion());
        let last = previous.as_ref().filter(|_| commit.deleted);
        let record = Record {
            value: last.map_or_else(|| commit.value.clone(), |last| last.value.clone()),
            name: name.clone(),
            created: commit.created,
            revision: commit.revision,
        };
        self.events.push_back(Arc::new(Event {
            record,
            previous: previous.as_ref().map(|previous| previous.record(&name)),
            deleted: commit.deleted,
            frames: OnceLock::new(),
        }));
        previous
    }
}

/// Wakes the watchers of collections that have published something.
pub(crate) fn wake(changed: &[Arc<Collection>]) {
    for collection in changed {
        collection.changed.notify_waiters();
    }
}

/// All collections, and the revisions between which they can be read.
#[derive(Debug, Default)]
pub(crate) struct View {
    collections: RwLock<HashMap<Arc<str>, Arc<Collection>>>,
    visible: AtomicU64,
    compacted: AtomicU64,
    closed: AtomicBool,
    /// Told of every new visible revision.
    pub(crate) published: Notify,
}

impl View {
    /// The newest revision that may be seen.
    pub(crate) fn visible(&self) -> Revision {
        Revision(self.visible.load(Ordering::SeqCst))
    }

    /// The oldest revision that can be read.
    pub(crate) fn compacted(&self) -> Revision {
        Revision(self.compacted.load(Ordering::SeqCst))
    }

    pub(crate) fn compact(&self, oldest: Revision) {
        self.compacted.fetch_max(oldest.0, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Wakes all watchers for the last time.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.published.notify_waiters();
        for collection in self.all() {
            collection.changed.notify_waiters();
        }
    }

    pub(crate) fn collection(&self, name: &str) -> Option<Arc<Collection>> {
        let collections = self
            .collections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        collections.get(name).cloned()
    }

    pub(crate) fn collection_or_new(&self, name: &str) -> Arc<Collection> {
        if let Some(collection) = self.collection(name) {
            return collection;
        }
        let mut collections = self
            .collections
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let name: Arc<str> = name.into();
        let new = || Arc::new(Collection::new(name.clone()));
        collections.entry(name.clone()).or_insert_with(new).clone()
    }

    /// Every collection that anybody named, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Collection>> {
        let collections = self
            .collections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = collections.values().cloned().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Puts one commit in place and returns the version it replaces. It stays invisible until
    /// `publish`.
    pub(crate) fn apply(&self, commit: &Commit) -> Option<Version> {
        assert!(
            commit.revision > self.visible(),
            "{} was given out before",
            commit.revision
        );
        let replaced = commit.collection.write().push(commit);
        let last = &commit.collection.last;
        last.store(commit.revision.0, Ordering::Release);
        replaced
    }

    /// Makes everything up to a revision visible. Who waits for it is still to be woken.
    pub(crate) fn publish(&self, newest: Revision) {
        let before = self.visible.fetch_max(newest.0, Ordering::SeqCst);
        assert!(
            before <= newest.0,
            "the store went back from {before} to {newest}"
        );
        self.published.notify_waiters();
    }

    /// Drops the oldest commit of a collection from memory.
    pub(crate) fn forget(&self, collection: &Collection, revision: Revision) {
        let mut inner = collection.write();
        let oldest = inner.events.pop_front();
        let oldest = oldest.expect("the window holds each event until it is forgotten");
        assert_eq!(
            oldest.record.revision, revision,
            "events are forgotten in order"
        );
        inner.first += 1;
        inner.floor = revision;
        inner.index.forget(&oldest.record.name, revision);
    }

    /// The newest version of a key.
    pub(crate) fn get(&self, collection: &str, name: &str) -> Option<Record> {
        let collection = self.collection(collection)?;
        loop {
            let at = self.visible();
            let inner = collection.read();
            // Forgetting may overtake a reader between the two lines above.
            if at >= inner.floor {
                let key = inner.index.get(name)?;
                return key.at(at).map(|version| version.record(&key.name));
            }
        }
    }

    /// A key as it was at a revision.
    pub(crate) fn get_at(
        &self,
        collection: &str,
        name: &str,
        at: Revision,
    ) -> Result<Lookup<Option<Record>>, Error> {
        self.check_readable(at)?;
        let Some(collection) = self.collection(collection) else {
            return Ok(Lookup::Known(None));
        };
        let inner = collection.read();
        if at < inner.floor {
            return Ok(Lookup::Forgotten);
        }
        let record = inner
            .index
            .get(name)
            .and_then(|key| key.at(at).map(|version| version.record(&key.name)));
        Ok(Lookup::Known(record))
    }

    /// Part of a collection, with the revision it is read at.
    pub(crate) fn range(&self, collection: &str, range: &Range<'_>) -> Result<Lookup<Page>, Error> {
        if let Some(at) = range.at {
            self.check_readable(at)?;
        }
        let found = self.collection(collection);
        let from = range
            .start
            .map_or(range.prefix, |start| start.max(range.prefix));
        loop {
            let revision = range.at.unwrap_or_else(|| self.visible());
            let Some(collection) = &found else {
                return Ok(Lookup::Known(Page {
                    records: Vec::new(),
                    revision,
                    remaining: 0,
                }));
            };
            let inner = collection.read();
            if revision < inner.floor {
                match range.at {
                    Some(_) => return Ok(Lookup::Forgotten),
                    None => continue,
                }
            }
            let slice = inner.index.slice(range.prefix, from);
            drop(inner);
            let (records, remaining) = slice.read(revision, range.limit);
            return Ok(Lookup::Known(Page {
                records,
                revision,
                remaining,
            }));
        }
    }

    /// How many keys exist whose names begin with the prefix.
    pub(crate) fn count(&self, collection: &str, prefix: &str) -> usize {
        let Some(collection) = self.collection(collection) else {
            return 0;
        };
        loop {
            let at = self.visible();
            let inner = collection.read();
            if at >= inner.floor {
                let slice = inner.index.slice(prefix, prefix);
                drop(inner);
                return slice.count(at);
            }
        }
    }

    /// Everything, as it is at one revision.
    pub(crate) fn snapshot(&self) -> (Revision, Vec<(Arc<str>, Slice)>) {
        loop {
            let at = self.visible();
            let take = |collection: &Arc<Collection>| {
                let inner = collection.read();
                let is_known = at >= inner.floor;
                is_known.then(|| (collection.name.clone(), inner.index.slice("", "")))
            };
            if let Some(slices) = self.all().iter().map(take).collect() {
                return (at, slices);
            }
        }
    }

    /// Refuses a revision that is too old or does not exist yet.
    pub(crate) fn check_readable(&self, asked: Revision) -> Result<(), Error> {
        let (oldest, current) = (self.compacted(), self.visible());
        if asked > current {
            return Err(Error::Future { asked, current });
        }
        if asked < oldest {
            return Err(Error::Compacted { asked, oldest });
        }
        Ok(())
    }
}
