//! Reads of what memory no longer holds: old states and old events, from the checkpoint.
//!
//! Memory forgets nothing that is not checkpointed, so what is missing there is here or compacted.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use redb::ReadOnlyTable;

use super::checkpoint::Checkpoint;
use super::codec::Stored;
use super::database::{KEYS, LOG, failure, parse_key_value};
use super::failure::OpenError;
use super::packs::{self, Finder, damaged};
use super::sealer::Sealer;
use crate::record::{Error, Event, Page, Record, Revision};

/// A batch of events from disk ends when it holds this much.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Which part of a collection to read, and as it was when.
pub(crate) struct PastRange {
    pub(crate) prefix: String,
    pub(crate) from: String,
    pub(crate) at: Revision,
    pub(crate) limit: usize,
}

type Log = ReadOnlyTable<(&'static str, u64), &'static [u8]>;

/// What a read found: its result, or that it asked for too old a revision.
type Found<T> = Result<T, Revision>;

/// A key as it was at a revision.
pub(crate) fn get(
    checkpoint: &Checkpoint,
    collection: &str,
    name: &str,
    at: Revision,
) -> Result<Option<Record>, Error> {
    let path = checkpoint.path();
    let found = checkpoint.read(|transaction, state| {
        if at < state.compacted {
            return Ok(Err(state.compacted));
        }
        let find = || -> Result<Option<u64>, redb::Error> {
            let keys = transaction.open_table(KEYS)?;
            let mut range = keys.range((collection, name, 0)..=(collection, name, at.0))?;
            let Some(newest) = range.next_back() else {
                return Ok(None);
            };
            let (key, value) = newest?;
            Ok((!parse_key_value(value.value()).1).then(|| key.value().2))
        };
        let Some(revision) = find().map_err(|error| failure(path, error))? else {
            return Ok(Ok(None));
        };
        let log = open_log(transaction, path)?;
        let mut finder = Finder::new(&log, path, collection);
        let record = version(&mut finder, checkpoint.sealer(), name, Revision(revision))?;
        Ok(Ok(Some(record)))
    });
    answer(found, at)
}

/// Part of a collection as it was at a revision.
pub(crate) fn range(
    checkpoint: &Checkpoint,
    collection: &str,
    range: &PastRange,
) -> Result<Page, Error> {
    let path = checkpoint.path();
    let found = checkpoint.read(|transaction, state| {
        if range.at < state.compacted {
            return Ok(Err(state.compacted));
        }
        let (visible, remaining) =
            visible_keys(transaction, collection, range).map_err(|error| failure(path, error))?;
        let log = open_log(transaction, path)?;
        let mut finder = Finder::new(&log, path, collection);
        let mut by_revision: Vec<_> = visible.iter().enumerate().collect();
        by_revision.sort_unstable_by_key(|(_, (_, revision))| *revision);
        let mut records = Vec::with_capacity(visible.len());
        for (place, (name, revision)) in by_revision {
            let record = version(&mut finder, checkpoint.sealer(), name, *revision)?;
            records.push((place, record));
        }
        records.sort_unstable_by_key(|(place, _)| *place);
        let records = records.into_iter().map(|(_, record)| record).collect();
        Ok(Ok(Page {
            records,
            revision: range.at,
            remaining,
        }))
    });
    answer(found, range.at)
}

/// The names in a range with the version visible at its revision, and how many more there are.
fn visible_keys(
    transaction: &redb::ReadTransaction,
    collection: &str,
    range: &PastRange,
) -> Result<(Vec<(String, Revision)>, usize), redb::Error> {
    let limit = if range.limit == 0 {
        usize::MAX
    } else {
        range.limit
    };
    let mut visible: Vec<(String, Revision)> = Vec::new();
    let mut remaining = 0;
    // The newest version so far of the name that is being read.
    let mut current: Option<(String, Revision, bool)> = None;
    let mut finish = |current: Option<(String, Revision, bool)>| match current {
        Some((name, revision, false)) if visible.len() < limit => visible.push((name, revision)),
        Some((_, _, false)) => remaining += 1,
        _ => {}
    };
    let keys = transaction.open_table(KEYS)?;
    for entry in keys.range((collection, &*range.from, 0)..)? {
        let (key, value) = entry?;
        let (of, name, revision) = key.value();
        if of != collection || !(name.starts_with(&*range.prefix) || name < &*range.prefix) {
            break;
        }
        if revision > range.at.0 {
            continue;
        }
        let deleted = parse_key_value(value.value()).1;
        match &mut current {
            Some((of, newest, is_deletion)) if of == name => {
                *newest = Revision(revision);
                *is_deletion = deleted;
            }
            _ => finish(current.replace((name.to_owned(), Revision(revision), deleted))),
        }
    }
    finish(current);
    Ok((visible, remaining))
}

/// The events of a collection after a revision, at least one.
pub(crate) fn events(
    checkpoint: &Checkpoint,
    collection: &str,
    after: Revision,
    limit: usize,
) -> Result<Vec<Arc<Event>>, Error> {
    let path = checkpoint.path();
    let found = checkpoint.read(|transaction, state| {
        let log = open_log(transaction, path)?;
        let from = after.max(state.compacted).0 + 1;
        let fail = |error: redb::StorageError| failure(path, error.into());
        let mut finder = Finder::new(&log, path, collection);
        let mut events: Vec<Arc<Event>> = Vec::new();
        let (mut last, mut bytes) = (after, 0);
        for entry in packs::covering(&log, collection, from..=u64::MAX).map_err(fail)? {
            let (_, pack) = entry.map_err(fail)?;
            for stored in packs::records(pack.value()) {
                let stored = stored.map_err(|detail| damaged(path, collection, last, &detail))?;
                if stored.revision.0 < from {
                    continue;
                }
                if events.is_empty() && stored.prior > after {
                    // Something between was compacted.
                    return Ok(Err(state.compacted));
                }
                if !events.is_empty() && stored.prior != last {
                    let detail = "the commit after it is missing";
                    return Err(damaged(path, collection, last, detail));
                }
                let event = event(&mut finder, checkpoint.sealer(), &stored)?;
                last = stored.revision;
                bytes += event.record.value.len();
                bytes += event
                    .previous
                    .as_ref()
                    .map_or(0, |previous| previous.value.len());
                events.push(Arc::new(event));
                if events.len() == limit || bytes > BATCH_BYTES_MAX {
                    return Ok(Ok(events));
                }
            }
        }
        Ok(if events.is_empty() {
            Err(state.compacted)
        } else {
            Ok(events)
        })
    });
    answer(found, after)
}

fn event(
    finder: &mut Finder<'_, Log>,
    sealer: &Sealer,
    stored: &Stored<'_>,
) -> Result<Event, OpenError> {
    let name: Arc<str> = stored.name.into();
    let previous = if stored.replaces > Revision(0) {
        let mut previous = version(finder, sealer, &name, stored.replaces)?;
        previous.name = name.clone();
        Some(previous)
    } else {
        None
    };
    let last = previous.as_ref().filter(|_| stored.deleted);
    let value = match last {
        Some(last) => last.value.clone(),
        None => sealer.open_past(stored.collection, &name, stored.value)?.0,
    };
    let record = Record {
        name,
        value,
        created: stored.created,
        revision: stored.revision,
    };
    Ok(Event {
        record,
        previous,
        deleted: stored.deleted,
        frames: OnceLock::new(),
    })
}

/// One version, which has to be there and has to be the right one.
fn version(
    finder: &mut Finder<'_, Log>,
    sealer: &Sealer,
    name: &str,
    revision: Revision,
) -> Result<Record, OpenError> {
    let stored = finder.find(revision, name)?;
    Ok(Record {
        name: name.into(),
        value: sealer.open_past(stored.collection, name, stored.value)?.0,
        created: stored.created,
        revision,
    })
}

fn open_log(transaction: &redb::ReadTransaction, path: &Path) -> Result<Log, OpenError> {
    transaction
        .open_table(LOG)
        .map_err(|error| failure(path, error.into()))
}

fn answer<T>(found: Result<Found<T>, OpenError>, asked: Revision) -> Result<T, Error> {
    match found {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(oldest)) => Err(Error::Compacted { asked, oldest }),
        Err(error) => Err(error.into_error()),
    }
}
