//! Brings the newest state from the checkpoint into memory when a store opens.
//!
//! Every version's entry is counted and summed up against what the checkpoint says of itself, and
//! every live record is checked against its key, so that damage to the file is found here and not
//! by a reader.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use redb::{ReadableTable, ReadableTableMetadata};

use super::codec::{self, Stored};
use super::database::{Digest, KEYS, LOG, State, failure, parse_key_value};
use super::failure::OpenError;
use super::past::damaged;
use crate::index::Version;
use crate::record::Revision;

/// A collection as the checkpoint has it.
#[derive(Debug, Default)]
pub(crate) struct LoadedCollection {
    pub(crate) name: Arc<str>,
    /// Ascending by name.
    pub(crate) keys: Vec<(Arc<str>, Version)>,
    /// The newest change that is kept, deletions included.
    pub(crate) last: Revision,
}

/// Reads all live records.
pub(crate) fn load(
    transaction: &redb::ReadTransaction,
    state: &State,
    path: &Path,
) -> Result<Vec<LoadedCollection>, OpenError> {
    let mut collections = Vec::new();
    let digest = load_keys(transaction, &mut collections).map_err(|error| failure(path, error))?;
    if digest != state.digest {
        let detail = format!(
            "{} versions are indexed, {} were written, or they are not the same",
            digest.versions, state.digest.versions
        );
        return Err(OpenError::corrupt(path, detail));
    }
    let live: usize = collections
        .iter()
        .map(|collection| collection.keys.len())
        .sum();
    let log = transaction
        .open_table(LOG)
        .map_err(|error| failure(path, error.into()))?;
    let versions = log.len().map_err(|error| failure(path, error.into()))?;
    if versions != digest.versions {
        let detail = format!(
            "{versions} versions are kept, {} are indexed",
            digest.versions
        );
        return Err(OpenError::corrupt(path, detail));
    }
    // Reading on from one record to the next is quicker than looking each up, unless most of
    // what lies between is history.
    let scan = versions < 2 * live as u64;
    for collection in &mut collections {
        load_values(&log, collection, scan, path)?;
    }
    Ok(collections)
}

/// Reads the names, with the newest revision of each key that exists.
fn load_keys(
    transaction: &redb::ReadTransaction,
    collections: &mut Vec<LoadedCollection>,
) -> Result<Digest, redb::Error> {
    let mut digest = Digest::default();
    let mut is_deletion = false;
    for entry in transaction.open_table(KEYS)?.iter()? {
        let (key, value) = entry?;
        let (collection, name, revision) = key.value();
        let (checksum, deleted) = parse_key_value(value.value());
        digest.add(revision, checksum);
        if collections
            .last()
            .is_none_or(|last| *last.name != *collection)
        {
            drop_if(&mut is_deletion, collections);
            let name = collection.into();
            collections.push(LoadedCollection {
                name,
                ..LoadedCollection::default()
            });
        }
        let current = collections
            .last()
            .expect("one was pushed if there was none");
        let is_same_key = current.keys.last().is_some_and(|(last, _)| **last == *name);
        if !is_same_key {
            drop_if(&mut is_deletion, collections);
        }
        let current = collections
            .last_mut()
            .expect("one was pushed if there was none");
        current.last = current.last.max(Revision(revision));
        let version = Version {
            value: Bytes::new(),
            created: Revision(0),
            revision: Revision(revision),
            expires_millis: 0,
        };
        match current.keys.last_mut() {
            Some((_, newest)) if is_same_key => *newest = version,
            _ => current.keys.push((name.into(), version)),
        }
        is_deletion = deleted;
    }
    drop_if(&mut is_deletion, collections);
    Ok(digest)
}

/// Takes the last key away again if its newest version turned out to be a deletion.
fn drop_if(is_deletion: &mut bool, collections: &mut [LoadedCollection]) {
    if std::mem::take(is_deletion)
        && let Some(collection) = collections.last_mut()
    {
        collection.keys.pop();
    }
}

fn load_values(
    log: &impl ReadableTable<(&'static str, u64), &'static [u8]>,
    collection: &mut LoadedCollection,
    scan: bool,
    path: &Path,
) -> Result<(), OpenError> {
    let mut order: Vec<(u64, usize)> = collection
        .keys
        .iter()
        .enumerate()
        .map(|(index, (_, version))| (version.revision.0, index))
        .collect();
    order.sort_unstable();
    let name = collection.name.clone();
    let fail = |error: redb::StorageError| failure(path, error.into());
    let missing = |revision| damaged(path, &name, Revision(revision), "it is missing");
    let mut fill = |revision: u64, index: usize, bytes: &[u8]| {
        let (stored, _) = codec::decode(bytes)
            .map_err(|detail| damaged(path, &name, Revision(revision), &detail))?;
        let (key, version) = &mut collection.keys[index];
        fill_version(version, &stored, &name, key)
            .ok_or_else(|| damaged(path, &name, Revision(revision), "it is another record"))
    };
    if !scan {
        for (revision, index) in order {
            let bytes = log.get((&*name, revision)).map_err(fail)?;
            let bytes = bytes.ok_or_else(|| missing(revision))?;
            fill(revision, index, bytes.value())?;
        }
        return Ok(());
    }
    let mut entries = log.range((&*name, 0)..=(&*name, u64::MAX)).map_err(fail)?;
    'keys: for (revision, index) in order {
        for entry in entries.by_ref() {
            let (key, bytes) = entry.map_err(fail)?;
            if key.value().1 == revision {
                fill(revision, index, bytes.value())?;
                continue 'keys;
            }
        }
        return Err(missing(revision));
    }
    Ok(())
}

/// Completes a version from its record, if the record is the one that belongs there.
fn fill_version(
    version: &mut Version,
    stored: &Stored<'_>,
    collection: &str,
    name: &str,
) -> Option<()> {
    let place = (
        stored.collection,
        stored.name,
        stored.revision,
        stored.deleted,
    );
    if place != (collection, name, version.revision, false) || stored.created == Revision(0) {
        return None;
    }
    version.value = Bytes::copy_from_slice(stored.value);
    version.created = stored.created;
    version.expires_millis = stored.expires_millis;
    Some(())
}
