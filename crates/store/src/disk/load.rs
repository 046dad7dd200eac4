//! Brings the newest state from the checkpoint into memory when a store opens.
//!
//! Every version's entry is counted and summed up against what the checkpoint says of itself, and
//! every live record is checked against its key, so that damage to the file is found here and not
//! by a reader.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use redb::{ReadOnlyTable, ReadableTable, ReadableTableMetadata};

use super::database::{Digest, KEYS, LOG, State, failure, parse_key_value};
use super::failure::OpenError;
use super::packs::{Finder, damaged};
use super::sealer::Sealer;
use crate::index::Version;
use crate::record::Revision;

type Log = ReadOnlyTable<(&'static str, u64), &'static [u8]>;

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
    sealer: &Sealer,
) -> Result<Vec<LoadedCollection>, OpenError> {
    let mut collections = Vec::new();
    let limit = state.digest.versions;
    let digest =
        load_keys(transaction, limit, &mut collections).map_err(|error| failure(path, error))?;
    if digest != state.digest {
        let detail = format!(
            "{} versions are indexed, {} were written, or they are not the same",
            digest.versions, state.digest.versions
        );
        return Err(OpenError::corrupt(path, detail));
    }
    let log = transaction
        .open_table(LOG)
        .map_err(|error| failure(path, error.into()))?;
    let packs = log.len().map_err(|error| failure(path, error.into()))?;
    if packs != state.packs {
        let detail = format!("{packs} packs are kept, {} were written", state.packs);
        return Err(OpenError::corrupt(path, detail));
    }
    for collection in &mut collections {
        load_values(&log, collection, (path, sealer))?;
    }
    Ok(collections)
}

/// Reads the names, with the newest revision of each key that exists.
///
/// Ends soon after the limit: in a damaged tree there may be no other end.
fn load_keys(
    transaction: &redb::ReadTransaction,
    limit: u64,
    collections: &mut Vec<LoadedCollection>,
) -> Result<Digest, redb::Error> {
    let mut digest = Digest::default();
    let mut is_deletion = false;
    for entry in transaction.open_table(KEYS)?.iter()? {
        let (key, value) = entry?;
        let (collection, name, revision) = key.value();
        let (checksum, deleted) = parse_key_value(value.value());
        digest.add(revision, checksum);
        if digest.versions > limit {
            return Ok(digest);
        }
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

/// Reads the live records of a collection in the order of the log.
fn load_values(
    log: &Log,
    collection: &mut LoadedCollection,
    (path, sealer): (&Path, &Sealer),
) -> Result<(), OpenError> {
    let mut order: Vec<&mut (Arc<str>, Version)> = collection.keys.iter_mut().collect();
    order.sort_unstable_by_key(|(_, version)| version.revision);
    let mut finder = Finder::new(log, path, &collection.name);
    for (name, version) in order {
        let stored = finder.find(version.revision, name)?;
        if stored.deleted || stored.created == Revision(0) {
            let detail = "another record is in its place";
            return Err(damaged(path, &collection.name, version.revision, detail));
        }
        version.created = stored.created;
        version.expires_millis = stored.expires_millis;
        version.value = sealer.open(&collection.name, name, stored.value)?;
    }
    Ok(())
}
