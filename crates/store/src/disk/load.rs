//! Brings the newest state from the checkpoint into memory when a store opens.
//!
//! Every version's entry is counted and summed up against what the checkpoint says of itself, and
//! every live record is checked against its key, so that damage to the file is found here and not
//! by a reader.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use redb::{ReadOnlyTable, ReadableTable, ReadableTableMetadata};

use super::codec;
use super::database::{Digest, KEYS, LOG, State, failure, parse_key_value};
use super::failure::OpenError;
use super::past::damaged;
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
    let how = if versions < 2 * live as u64 {
        Walk::Scan
    } else {
        Walk::Search
    };
    for collection in &mut collections {
        load_values(&log, collection, how, (path, sealer))?;
    }
    Ok(collections)
}

/// How to get from one live record to the next.
#[derive(Clone, Copy)]
enum Walk {
    Scan,
    Search,
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
    how: Walk,
    from: (&Path, &Sealer),
) -> Result<(), OpenError> {
    let name = collection.name.clone();
    let mut order: Vec<&mut (Arc<str>, Version)> = collection.keys.iter_mut().collect();
    order.sort_unstable_by_key(|(_, version)| version.revision);
    load_part(log, &name, &mut order, how, from)
}

fn load_part(
    log: &Log,
    collection: &str,
    keys: &mut [&mut (Arc<str>, Version)],
    how: Walk,
    (path, sealer): (&Path, &Sealer),
) -> Result<(), OpenError> {
    let fail = |error: redb::StorageError| failure(path, error.into());
    let missing = |revision| damaged(path, collection, revision, "it is missing");
    let from = keys.first().map_or(0, |key| key.1.revision.0);
    let mut entries = match how {
        Walk::Scan => Some(
            log.range((collection, from)..=(collection, u64::MAX))
                .map_err(fail)?,
        ),
        Walk::Search => None,
    };
    for (name, version) in keys.iter_mut().map(|key| &mut **key) {
        let revision = version.revision;
        let wrong = |detail: String| damaged(path, collection, revision, &detail);
        let Some(entries) = &mut entries else {
            let bytes = log.get((collection, revision.0)).map_err(fail)?;
            let bytes = bytes.ok_or_else(|| missing(revision))?;
            let written = fill_version(version, bytes.value(), collection, name).map_err(wrong)?;
            version.value = sealer.open(collection, name, written)?;
            continue;
        };
        loop {
            let entry = entries.next().ok_or_else(|| missing(revision))?;
            let (key, bytes) = entry.map_err(fail)?;
            if key.value().1 == revision.0 {
                let written =
                    fill_version(version, bytes.value(), collection, name).map_err(wrong)?;
                version.value = sealer.open(collection, name, written)?;
                break;
            }
        }
    }
    Ok(())
}

/// Completes a version from its record, which has to be the one that belongs there, and gives back
/// what was written for its value.
fn fill_version<'b>(
    version: &mut Version,
    bytes: &'b [u8],
    collection: &str,
    name: &str,
) -> Result<&'b [u8], String> {
    let (stored, _) = codec::decode(bytes)?;
    let place = (
        stored.collection,
        stored.name,
        stored.revision,
        stored.deleted,
    );
    if place != (collection, name, version.revision, false) || stored.created == Revision(0) {
        return Err("another record is in its place".into());
    }
    version.created = stored.created;
    version.expires_millis = stored.expires_millis;
    Ok(stored.value)
}
