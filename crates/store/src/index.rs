//! The ordered keys of one collection in memory, each with the versions that history still needs.
//!
//! Keys live in sorted chunks behind `Arc`s. A reader takes the chunks of its range in one short
//! lock and walks them afterwards: it sees one state whatever is written meanwhile, because a
//! writer copies a chunk that somebody still holds. Chunks know how many keys they hold, so
//! counting does not visit them.
//!
//! Invariants: chunks are never empty; names ascend over all chunks; in a key the versions ascend
//! from `older[0]` to `newest`.

use std::sync::Arc;

use bytes::Bytes;

use crate::record::{Record, Revision};

/// A chunk that grows beyond this is split. Copying one costs a few microseconds.
const CHUNK_KEYS_MAX: usize = 256;
/// Two neighbours that together hold fewer than this become one.
const CHUNK_KEYS_MERGE: usize = 96;

/// One version of a key, or the mark that it was deleted.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) value: Bytes,
    /// Zero marks a deletion.
    pub(crate) created: Revision,
    pub(crate) revision: Revision,
    /// When the key is to be deleted, in Unix milliseconds; zero for never.
    pub(crate) expires_millis: u64,
}

impl Version {
    pub(crate) fn is_deletion(&self) -> bool {
        self.created == Revision(0)
    }

    pub(crate) fn record(&self, name: &Arc<str>) -> Record {
        Record {
            name: name.clone(),
            value: self.value.clone(),
            created: self.created,
            revision: self.revision,
        }
    }
}

/// One key.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: Arc<str>,
    pub(crate) newest: Version,
    older: Vec<Version>,
}

impl Key {
    /// The version that was newest at a revision, unless the key did not exist then.
    pub(crate) fn at(&self, revision: Revision) -> Option<&Version> {
        let version = if self.newest.revision <= revision {
            Some(&self.newest)
        } else {
            self.older
                .iter()
                .rev()
                .find(|version| version.revision <= revision)
        };
        version.filter(|version| !version.is_deletion())
    }
}

#[derive(Clone, Debug)]
struct Chunk {
    keys: Vec<Key>,
    /// How many keys exist in the newest state.
    live: usize,
    /// No key here changed after this revision.
    newest: Revision,
}

impl Chunk {
    fn new(mut keys: Vec<Key>) -> Chunk {
        keys.shrink_to_fit();
        let live = keys.iter().filter(|key| !key.newest.is_deletion()).count();
        let newest = keys
            .iter()
            .map(|key| key.newest.revision)
            .max()
            .unwrap_or_default();
        Chunk { keys, live, newest }
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.keys.binary_search_by(|key| (*key.name).cmp(name))
    }

    fn count_at(&self, revision: Revision) -> usize {
        if self.newest <= revision {
            self.live
        } else {
            self.keys
                .iter()
                .filter(|key| key.at(revision).is_some())
                .count()
        }
    }
}

/// All keys of a collection.
#[derive(Debug, Default)]
pub(crate) struct Index {
    chunks: Vec<(Arc<str>, Arc<Chunk>)>,
}

impl Index {
    /// Builds an index of keys that ascend by name, each with one version.
    pub(crate) fn from_sorted(keys: impl Iterator<Item = (Arc<str>, Version)>) -> Index {
        let mut index = Index::default();
        let mut keys = keys
            .map(|(name, newest)| Key {
                name,
                newest,
                older: Vec::new(),
            })
            .peekable();
        while keys.peek().is_some() {
            let chunk: Vec<Key> = keys.by_ref().take(CHUNK_KEYS_MAX / 2).collect();
            index
                .chunks
                .push((chunk[0].name.clone(), Arc::new(Chunk::new(chunk))));
        }
        index
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Key> {
        let (_, chunk) = &self.chunks[self.chunk_of(name)?];
        chunk
            .position(name)
            .ok()
            .map(|position| &chunk.keys[position])
    }

    /// Whether any key exists in the newest state.
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.iter().all(|(_, chunk)| chunk.live == 0)
    }

    /// Adds a version and returns the name as the index holds it, with the version it follows.
    pub(crate) fn push(
        &mut self,
        name: &Arc<str>,
        version: Version,
    ) -> (Arc<str>, Option<Version>) {
        let Some(at) = self.chunk_of(name) else {
            let key = Key {
                name: name.clone(),
                newest: version,
                older: Vec::new(),
            };
            match self.chunks.first_mut() {
                Some((first, chunk)) => {
                    *first = name.clone();
                    let chunk = Arc::make_mut(chunk);
                    insert(chunk, 0, key);
                    self.split(0);
                }
                None => self
                    .chunks
                    .push((name.clone(), Arc::new(Chunk::new(vec![key])))),
            }
            return (name.clone(), None);
        };
        match self.chunks[at].1.position(name) {
            Ok(position) => {
                let chunk = Arc::make_mut(&mut self.chunks[at].1);
                assert!(chunk.newest.max(version.revision) == version.revision);
                chunk.newest = version.revision;
                let key = &mut chunk.keys[position];
                chunk.live -= usize::from(!key.newest.is_deletion());
                chunk.live += usize::from(!version.is_deletion());
                let previous = std::mem::replace(&mut key.newest, version);
                key.older.push(previous.clone());
                (key.name.clone(), Some(previous))
            }
            Err(position) => {
                let key = Key {
                    name: name.clone(),
                    newest: version,
                    older: Vec::new(),
                };
                self.insert_new(at, position, key);
                (name.clone(), None)
            }
        }
    }

    fn insert_new(&mut self, at: usize, position: usize, key: Key) {
        let full = self.chunks[at].1.keys.len() >= CHUNK_KEYS_MAX;
        let at_end = position == self.chunks[at].1.keys.len();
        if full && at_end {
            // Names that arrive in order fill their chunks instead of leaving halves behind.
            self.chunks
                .insert(at + 1, (key.name.clone(), Arc::new(Chunk::new(vec![key]))));
            return;
        }
        insert(Arc::make_mut(&mut self.chunks[at].1), position, key);
        self.split(at);
    }

    fn split(&mut self, at: usize) {
        let (_, chunk) = &mut self.chunks[at];
        if chunk.keys.len() <= CHUNK_KEYS_MAX {
            return;
        }
        let chunk = Arc::make_mut(chunk);
        let upper = chunk.keys.split_off(CHUNK_KEYS_MAX / 2);
        *chunk = Chunk::new(std::mem::take(&mut chunk.keys));
        self.chunks
            .insert(at + 1, (upper[0].name.clone(), Arc::new(Chunk::new(upper))));
    }

    /// Forgets the versions of a key that a change at `superseded` made old, and the key itself
    /// if nothing but a deletion up to there remains.
    pub(crate) fn forget(&mut self, name: &str, superseded: Revision) {
        let Some(at) = self.chunk_of(name) else {
            return;
        };
        let Ok(position) = self.chunks[at].1.position(name) else {
            return;
        };
        let chunk = Arc::make_mut(&mut self.chunks[at].1);
        let key = &mut chunk.keys[position];
        // A version is needed for as long as the change that replaced it is remembered.
        let replaced_by =
            |key: &Key, index: usize| key.older.get(index + 1).unwrap_or(&key.newest).revision;
        let mut gone = 0;
        while gone < key.older.len() && replaced_by(key, gone) <= superseded {
            gone += 1;
        }
        key.older.drain(..gone);
        // A deletion that is the oldest version known says no more than its absence.
        while key
            .older
            .first()
            .is_some_and(|v| v.is_deletion() && v.revision <= superseded)
        {
            key.older.remove(0);
        }
        if key.older.is_empty() {
            key.older = Vec::new();
            if key.newest.is_deletion() && key.newest.revision <= superseded {
                chunk.keys.remove(position);
                self.tidy(at);
            }
        }
    }

    /// Restores the invariants after a key went away.
    fn tidy(&mut self, at: usize) {
        let Some(first) = self.chunks[at].1.keys.first() else {
            self.chunks.remove(at);
            return;
        };
        self.chunks[at].0 = first.name.clone();
        let length = |chunk: &(Arc<str>, Arc<Chunk>)| chunk.1.keys.len();
        let own = length(&self.chunks[at]);
        if self
            .chunks
            .get(at + 1)
            .is_some_and(|next| own + length(next) < CHUNK_KEYS_MERGE)
        {
            let (_, next) = self.chunks.remove(at + 1);
            let mut keys = self.chunks[at].1.keys.clone();
            keys.extend(next.keys.iter().cloned());
            self.chunks[at].1 = Arc::new(Chunk::new(keys));
        }
    }

    /// The part of the index that may hold names at or after `from` that begin with `prefix`.
    pub(crate) fn slice(&self, prefix: &str, from: &str) -> Slice {
        let first = self.chunk_of(from).unwrap_or(0);
        let within = |name: &Arc<str>| **name < *prefix || name.starts_with(prefix);
        let chunks = self.chunks[first.min(self.chunks.len())..]
            .iter()
            .take_while(|(name, _)| within(name))
            .map(|(_, chunk)| chunk.clone())
            .collect();
        Slice {
            chunks,
            from: from.into(),
            prefix: prefix.into(),
        }
    }

    /// The chunk that holds the name if any does; `None` if the name is before all of them.
    fn chunk_of(&self, name: &str) -> Option<usize> {
        self.chunks
            .partition_point(|(first, _)| **first <= *name)
            .checked_sub(1)
    }
}

fn insert(chunk: &mut Chunk, position: usize, key: Key) {
    chunk.live += usize::from(!key.newest.is_deletion());
    chunk.newest = chunk.newest.max(key.newest.revision);
    chunk.keys.insert(position, key);
}

/// A range of an index as it was at one moment.
pub(crate) struct Slice {
    chunks: Vec<Arc<Chunk>>,
    from: Box<str>,
    prefix: Box<str>,
}

impl Slice {
    /// The records visible at a revision, and how many more there are beyond the limit.
    pub(crate) fn read(&self, revision: Revision, limit: usize) -> (Vec<Record>, usize) {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let bound = self
            .chunks
            .iter()
            .map(|chunk| chunk.keys.len())
            .sum::<usize>()
            .min(limit);
        let mut records = Vec::with_capacity(if self.chunks.len() > 2 { bound } else { 0 });
        let mut remaining = 0;
        for (place, chunk) in self.chunks.iter().enumerate() {
            let keys = self.within(place, chunk);
            if records.len() == limit {
                remaining += count(chunk, keys, revision);
                continue;
            }
            for key in keys {
                let Some(version) = key.at(revision) else {
                    continue;
                };
                if records.len() < limit {
                    records.push(version.record(&key.name));
                } else {
                    remaining += 1;
                }
            }
        }
        (records, remaining)
    }

    /// The versions visible at a revision, with their names.
    pub(crate) fn versions(&self, at: Revision) -> impl Iterator<Item = (&Arc<str>, &Version)> {
        let chunks = self.chunks.iter().enumerate();
        let keys = chunks.flat_map(|(place, chunk)| self.within(place, chunk));
        keys.filter_map(move |key| key.at(at).map(|version| (&key.name, version)))
    }

    /// How many records are visible at a revision.
    pub(crate) fn count(&self, revision: Revision) -> usize {
        let chunks = self.chunks.iter().enumerate();
        chunks
            .map(|(place, chunk)| count(chunk, self.within(place, chunk), revision))
            .sum()
    }

    /// The keys of a chunk that are in the range. Only the first and the last chunk can hold
    /// others, so those between are not looked into.
    fn within<'a>(&self, place: usize, chunk: &'a Chunk) -> &'a [Key] {
        let mut keys = &chunk.keys[..];
        if place == 0 {
            let start = keys.partition_point(|key| *key.name < *self.from);
            keys = &keys[start..];
        }
        if place + 1 == self.chunks.len() {
            let end = keys.partition_point(|key| {
                *key.name < *self.prefix || key.name.starts_with(&*self.prefix)
            });
            keys = &keys[..end];
        }
        keys
    }
}

fn count(chunk: &Chunk, keys: &[Key], revision: Revision) -> usize {
    if keys.len() == chunk.keys.len() {
        chunk.count_at(revision)
    } else {
        keys.iter().filter(|key| key.at(revision).is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn version(revision: u64, created: u64) -> Version {
        Version {
            value: Bytes::from(revision.to_string()),
            created: Revision(created),
            revision: Revision(revision),
            expires_millis: 0,
        }
    }

    /// Names in a scattered order that repeats.
    fn name(step: u64) -> Arc<str> {
        format!("{}/{}", step * 7919 % 13, step * 104_729 % 1_500).into()
    }

    fn listed(index: &Index, prefix: &str, at: u64) -> Vec<(String, u64)> {
        let (records, remaining) = index.slice(prefix, prefix).read(Revision(at), 0);
        assert_eq!(remaining, 0);
        records
            .into_iter()
            .map(|r| (r.name.to_string(), r.revision.0))
            .collect()
    }

    #[test]
    fn every_state_since_the_first_forgotten_change_reads_as_it_was() {
        let mut index = Index::default();
        let mut model: BTreeMap<String, u64> = BTreeMap::new();
        let mut states = vec![model.clone()];
        let mut names = vec!["".into()];
        for step in 1..3_000 {
            let name = name(step);
            let gone = model.contains_key(&*name) && step % 3 == 0;
            if gone {
                model.remove(&*name);
            } else {
                model.insert(name.to_string(), step);
            }
            index.push(&name, version(step, if gone { 0 } else { step }));
            names.push(name);
            states.push(model.clone());
        }
        for forgotten in (0..2_999).step_by(299) {
            for (step, name) in names.iter().enumerate().take(forgotten + 1).skip(1) {
                index.forget(name, Revision(step as u64));
            }
            for at in (forgotten..3_000).step_by(97) {
                for prefix in ["", "1", "11/", "2/1", "zz"] {
                    let expected: Vec<_> = states[at]
                        .iter()
                        .filter(|(name, _)| name.starts_with(prefix))
                        .map(|(name, revision)| (name.clone(), *revision))
                        .collect();
                    assert_eq!(
                        listed(&index, prefix, at as u64),
                        expected,
                        "{prefix} at {at}"
                    );
                    let slice = index.slice(prefix, prefix);
                    assert_eq!(slice.count(Revision(at as u64)), expected.len());
                }
            }
        }
        for (step, name) in names.iter().enumerate().skip(1) {
            index.forget(name, Revision(step as u64));
        }
        let kept: usize = index.chunks.iter().map(|(_, chunk)| chunk.keys.len()).sum();
        assert_eq!(kept, model.len(), "deleted keys leave nothing behind");
    }

    #[test]
    fn a_limit_leaves_the_rest_counted() {
        let keys = (0..1_000).map(|i| (format!("{i:04}").into(), version(i + 1, i + 1)));
        let index = Index::from_sorted(keys);
        for (limit, start) in [
            (1, "0000"),
            (500, "0000"),
            (999, "0000"),
            (10, "0731"),
            (7, "0993"),
        ] {
            let (records, remaining) = index.slice("", start).read(Revision(1_000), limit);
            let from: usize = start.parse().unwrap();
            assert_eq!((records.len(), remaining), (limit, 1_000 - from - limit));
            assert_eq!(&*records[0].name, start);
        }
    }

    #[test]
    fn a_slice_keeps_its_state_while_the_index_moves_on() {
        let mut index = Index::default();
        index.push(&"a".into(), version(1, 1));
        let slice = index.slice("", "");
        index.push(&"a".into(), version(2, 0));
        index.forget("a", Revision(2));
        assert_eq!(slice.read(Revision(1), 0).0.len(), 1);
        assert!(index.get("a").is_none() && index.is_empty());
    }
}
