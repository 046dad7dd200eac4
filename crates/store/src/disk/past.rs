//! Reads of what memory no longer holds: old states and old events, from the checkpoint.
//!
//! Memory forgets nothing that is not checkpointed, so what is missing there is here or compacted.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use redb::ReadOnlyTable;

use super::checkpoint::Checkpoint;
use super::codec::{self, Stored};
use super::database::{KEYS, LOG, failure, parse_key_value};
use super::failure::OpenError;
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
        let from = (path, checkpoint.sealer());
        version(&log, from, collection, name, Revision(revision)).map(|record| Ok(Some(record)))
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
        let from = (path, checkpoint.sealer());
        let records = visible
            .iter()
            .map(|(name, revision)| version(&log, from, collection, name, *revision))
            .collect::<Result<Vec<Record>, OpenError>>()?;
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
        let entries = log.range((collection, from)..=(collection, u64::MAX));
        let mut events: Vec<Arc<Event>> = Vec::new();
        let (mut last, mut bytes) = (after, 0);
        for entry in entries
            .map_err(|error| failure(path, error.into()))?
            .take(limit)
        {
            let (_, value) = entry.map_err(|error| failure(path, error.into()))?;
            let (stored, _) = codec::decode(value.value())
                .map_err(|detail| damaged(path, collection, last, &detail))?;
            if events.is_empty() && stored.prior > after {
                // Something between was compacted.
                return Ok(Err(state.compacted));
            }
            if !events.is_empty() && stored.prior != last {
                return Err(damaged(
                    path,
                    collection,
                    last,
                    "the commit after it is missing",
                ));
            }
            let event = event(&log, (path, checkpoint.sealer()), collection, &stored)?;
            last = stored.revision;
            bytes += event.record.value.len();
            bytes += event
                .previous
                .as_ref()
                .map_or(0, |previous| previous.value.len());
            events.push(Arc::new(event));
            if bytes > BATCH_BYTES_MAX {
                break;
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
    log: &Log,
    from: (&Path, &Sealer),
    collection: &str,
    stored: &Stored<'_>,
) -> Result<Event, OpenError> {
    let name: Arc<str> = stored.name.into();
    let previous = if stored.replaces > Revision(0) {
        let mut previous = version(log, from, collection, &name, stored.replaces)?;
        previous.name = name.clone();
        Some(previous)
    } else {
        None
    };
    let last = previous.as_ref().filter(|_| stored.deleted);
    let value = match last {
        Some(last) => last.value.clone(),
        None => from.1.open_past(collection, &name, stored.value)?.0,
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
    log: &Log,
    (path, sealer): (&Path, &Sealer),
    collection: &str,
    name: &str,
    revision: Revision,
) -> Result<Record, OpenError> {
    let bytes = log
        .get((collection, revision.0))
        .map_err(|error| failure(path, error.into()))?
        .ok_or_else(|| damaged(path, collection, revision, "it is missing"))?;
    let (stored, _) = codec::decode(bytes.value())
        .map_err(|detail| damaged(path, collection, revision, &detail))?;
    if (stored.collection, stored.name, stored.revision) != (collection, name, revision) {
        return Err(damaged(
            path,
            collection,
            revision,
            "another record is in its place",
        ));
    }
    Ok(Record {
        name: name.into(),
        value: sealer.open_past(collection, name, stored.value)?.0,
        created: stored.created,
        revision,
    })
}

fn open_log(transaction: &redb::ReadTransaction, path: &Path) -> Result<Log, OpenError> {
    transaction
        .open_table(LOG)
        .map_err(|error| failure(path, error.into()))
}

pub(crate) fn damaged(
    path: &Path,
    collection: &str,
    revision: Revision,
    detail: &str,
) -> OpenError {
    OpenError::corrupt(
        path,
        format!("revision {revision} of {collection}: {detail}"),
    )
}

fn answer<T>(found: Result<Found<T>, OpenError>, asked: Revision) -> Result<T, Error> {
    match found {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(oldest)) => Err(Error::Compacted { asked, oldest }),
        Err(error) => Err(error.into_error()),
    }
}
