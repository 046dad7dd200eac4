//! The single writer's own state: which revision is next, what memory still holds, what expires.
//!
//! A commit is prepared (checked and given a revision), made durable by the engine, and applied.
//! Preparing changes nothing, so a group that could not be written is simply dropped.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use crate::record::{Change, Committed, Error, Expect, Record, Revision};
use crate::view::{Collection, Commit, View};

/// The most a record may hold: its value and its name.
pub const RECORD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What one remembered commit costs beside the value it keeps: event, queue entries, names.
const COMMIT_BYTES_OVERHEAD: u64 = 320;

/// A request to change one key.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) collection: Arc<Collection>,
    pub(crate) name: Arc<str>,
    pub(crate) expect: Expect,
    pub(crate) change: Change,
    /// What is written instead of the change's value.
    pub(crate) sealed: Option<Bytes>,
}

impl Request {
    /// Refuses a record that is too large, before it waits anywhere.
    pub(crate) fn check_size(collection: &str, name: &str, change: &Change) -> Result<(), Error> {
        let value = match change {
            Change::Put { value, .. } => value.len(),
            Change::Delete => 0,
        };
        let size = name.len().saturating_add(value);
        let is_short = |text: &str| text.len() <= usize::from(u16::MAX);
        if size > RECORD_BYTES_MAX || !is_short(name) || !is_short(collection) {
            return Err(Error::TooLarge {
                size,
                limit: RECORD_BYTES_MAX,
            });
        }
        Ok(())
    }
}

/// A commit that memory remembers in full.
#[derive(Debug)]
struct Remembered {
    collection: Arc<Collection>,
    revision: Revision,
    at_millis: u64,
    bytes: u64,
}

/// The single writer.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    newest: Revision,
    /// The time of the newest commit: commits never go back in time, whatever the clock does.
    at_millis: u64,
    window: VecDeque<Remembered>,
    window_bytes: u64,
    live_bytes: u64,
    expiry: BTreeMap<(u64, Revision), (Arc<Collection>, Arc<str>)>,
}

/// The commits of one group, prepared in order.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) commits: Vec<Commit>,
    /// The newest prepared commit of each key.
    changed: HashMap<(Arc<str>, Arc<str>), usize>,
    /// The newest prepared commit of each collection.
    last: HashMap<Arc<str>, Revision>,
}

impl Group {
    /// The collections it changes, in a row each only once.
    pub(crate) fn changed(&self) -> Vec<Arc<Collection>> {
        let mut changed: Vec<Arc<Collection>> = Vec::new();
        for Commit { collection, .. } in &self.commits {
            if !changed.last().is_some_and(|it| Arc::ptr_eq(it, collection)) {
                changed.push(collection.clone());
            }
        }
        changed
    }

    /// A group of one commit that was prepared before.
    pub(crate) fn of(commit: Commit) -> Group {
        Group {
            commits: vec![commit],
            ..Group::default()
        }
    }
}

impl Writer {
    /// A writer that goes on after what was found on disk.
    pub(crate) fn resume(newest: Revision, at_millis: u64) -> Writer {
        Writer {
            newest,
            at_millis,
            ..Writer::default()
        }
    }

    /// The bytes of all records in the newest state.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Checks a request against the newest state, which includes the group so far, and adds it.
    pub(crate) fn prepare(
        &self,
        group: &mut Group,
        request: Request,
        now_millis: u64,
    ) -> Result<Committed, Error> {
        let Request {
            collection,
            name,
            expect,
            change,
            sealed,
        } = request;
        let key = (collection.name.clone(), name);
        let current = self.current(group, &collection, &key);
        let as_expected = match (expect, &current) {
            (Expect::Absent, None) => true,
            (Expect::At(revision), Some(current)) => current.revision == revision,
            _ => false,
        };
        // Deleting what is absent has nothing to commit, whatever was expected.
        if !as_expected || (current.is_none() && change == Change::Delete) {
            return Err(Error::Conflict { current });
        }
        let revision = Revision(self.newest.0 + 1 + group.commits.len() as u64);
        let at_millis = now_millis.max(self.at_millis);
        let (value, ttl_seconds, deleted) = match change {
            // A copy of its own: the caller's bytes may be a small part of a large buffer.
            Change::Put { value, ttl_seconds } => {
                (Bytes::copy_from_slice(&value), ttl_seconds, false)
            }
            Change::Delete => (Bytes::new(), None, true),
        };
        let expires_millis = ttl_seconds.map_or(0, |ttl| at_millis + u64::from(ttl) * 1_000);
        group.changed.insert(key.clone(), group.commits.len());
        let prior = group.last.insert(collection.name.clone(), revision);
        let prior = prior.unwrap_or_else(|| collection.read().last());
        group.commits.push(Commit {
            collection,
            name: current
                .as_ref()
                .map_or(key.1, |current| current.name.clone()),
            value,
            sealed,
            revision,
            created: current.as_ref().map_or(revision, |current| current.created),
            replaces: current
                .as_ref()
                .map_or(Revision(0), |current| current.revision),
            prior,
            deleted,
            at_millis,
            expires_millis,
        });
        Ok(Committed {
            revision,
            previous: current,
        })
    }

    /// Whether a commit from the log is what can come next.
    pub(crate) fn follows(&self, commit: &Commit) -> bool {
        let inner = commit.collection.read();
        let current = inner.index.get(&commit.name).map(|key| &key.newest);
        let current = current.filter(|version| !version.is_deletion());
        let replaces = current.map_or(Revision(0), |version| version.revision);
        commit.revision.0 == self.newest.0 + 1 && commit.replaces == replaces
    }

    fn current(
        &self,
        group: &Group,
        collection: &Collection,
        key: &(Arc<str>, Arc<str>),
    ) -> Option<Record> {
        if let Some(index) = group.changed.get(key) {
            let commit = &group.commits[*index];
            return (!commit.deleted).then(|| Record {
                name: commit.name.clone(),
                value: commit.value.clone(),
                created: commit.created,
                revision: commit.revision,
            });
        }
        let inner = collection.read();
        let found = inner
            .index
            .get(&key.1)
            .filter(|key| !key.newest.is_deletion())?;
        Some(found.newest.record(&found.name))
    }

    /// Applies a group that is durable, and lets readers see it. Watchers are not woken yet.
    pub(crate) fn apply(&mut self, view: &View, group: &Group) {
        let Some(last) = group.commits.last() else {
            return;
        };
        let newest = last.revision;
        self.at_millis = last.at_millis;
        for commit in &group.commits {
            self.apply_one(view, commit);
        }
        self.newest = newest;
        view.publish(newest);
    }

    fn apply_one(&mut self, view: &View, commit: &Commit) {
        let replaced = view.apply(commit);
        let mut bytes = COMMIT_BYTES_OVERHEAD;
        if let Some(replaced) = &replaced {
            let size = record_bytes(&commit.name, &replaced.value);
            bytes += size;
            self.live_bytes -= size;
            if replaced.expires_millis > 0 {
                self.expiry
                    .remove(&(replaced.expires_millis, replaced.revision));
            }
        }
        if !commit.deleted {
            self.live_bytes += record_bytes(&commit.name, &commit.value);
            self.expire_later(
                commit.expires_millis,
                commit.revision,
                &commit.collection,
                &commit.name,
            );
        }
        self.window_bytes += bytes;
        self.window.push_back(Remembered {
            collection: commit.collection.clone(),
            revision: commit.revision,
            at_millis: commit.at_millis,
            bytes,
        });
    }

    /// Counts a record that was found on disk.
    pub(crate) fn adopt(
        &mut self,
        collection: &Arc<Collection>,
        name: &Arc<str>,
        version: &crate::index::Version,
    ) {
        self.live_bytes += record_bytes(name, &version.value);
        self.expire_later(version.expires_millis, version.revision, collection, name);
    }

    fn expire_later(
        &mut self,
        expires_millis: u64,
        revision: Revision,
        collection: &Arc<Collection>,
        name: &Arc<str>,
    ) {
        if expires_millis > 0 {
            let key = (collection.clone(), name.clone());
            self.expiry.insert((expires_millis, revision), key);
        }
    }

    /// Requests that delete the keys whose time has come, oldest first.
    pub(crate) fn expired(&self, now_millis: u64, limit: usize) -> Vec<Request> {
        let due = self
            .expiry
            .range(..=(now_millis, Revision(u64::MAX)))
            .take(limit);
        due.map(|((_, revision), (collection, name))| Request {
            collection: collection.clone(),
            name: name.clone(),
            expect: Expect::At(*revision),
            change: Change::Delete,
            sealed: None,
        })
        .collect()
    }

    /// Forgets the oldest commits while the caller's condition on their time, the bytes still
    /// held and their revision says so. Returns the newest revision forgotten.
    pub(crate) fn forget_while(
        &mut self,
        view: &View,
        mut is_too_much: impl FnMut(u64, u64, Revision) -> bool,
    ) -> Option<Revision> {
        let mut forgotten = None;
        while let Some(oldest) = self.window.front() {
            if !is_too_much(oldest.at_millis, self.window_bytes, oldest.revision) {
                break;
            }
            let oldest = self
                .window
                .pop_front()
                .expect("the front was looked at above");
            view.forget(&oldest.collection, oldest.revision);
            self.window_bytes -= oldest.bytes;
            forgotten = Some(oldest.revision);
        }
        forgotten
    }
}

fn record_bytes(name: &str, value: &Bytes) -> u64 {
    (name.len() + value.len()) as u64
}
