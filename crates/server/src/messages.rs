//! The messages of records that were listed as protobuf, so that the next list need not make them.
//!
//! A revision names one version of one object for good, so what is kept is never wrong. It is
//! only dropped: the older part when there is too much, all of it when the server rests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use resources::{Record, Revision};
use schema::TypeId;

/// What is kept takes up to twice as much.
const YOUNG_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A version of an object, shown as one type.
type Key = (TypeId, Revision);

/// The messages that were made.
#[derive(Default)]
pub(crate) struct Messages {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    young: HashMap<Key, Bytes>,
    young_bytes: usize,
    /// What was young before: dropped when the next ones grow old, unless it is used again.
    old: HashMap<Key, Bytes>,
}

impl Messages {
    /// The message of each record, made where there is none yet.
    pub(crate) fn of<E>(
        &self,
        ty: TypeId,
        records: &[Record],
        make: impl Fn(&Record) -> Result<Bytes, E>,
    ) -> Result<Vec<Bytes>, E> {
        let found: Vec<Option<Bytes>> = {
            let mut kept = self.kept();
            let key = |record: &Record| (ty, record.revision);
            records
                .iter()
                .map(|record| kept.find(key(record)))
                .collect()
        };
        let mut messages = Vec::with_capacity(records.len());
        for (record, found) in records.iter().zip(found) {
            messages.push(match found {
                Some(message) => message,
                None => {
                    let message = make(record)?;
                    self.kept().keep((ty, record.revision), message.clone());
                    message
                }
            });
        }
        Ok(messages)
    }

    /// Drops everything.
    pub(crate) fn clear(&self) {
        *self.kept() = Kept::default();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, key: Key) -> Option<Bytes> {
        if let Some(message) = self.young.get(&key) {
            return Some(message.clone());
        }
        let message = self.old.remove(&key)?;
        self.keep(key, message.clone());
        Some(message)
    }

    fn keep(&mut self, key: Key, message: Bytes) {
        if self.young_bytes + message.len() > YOUNG_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += message.len();
        self.young.insert(key, message);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    fn records(revisions: std::ops::Range<u64>) -> Vec<Record> {
        let record = |revision| Record {
            name: "a".into(),
            value: Bytes::new(),
            created: Revision(revision),
            revision: Revision(revision),
        };
        revisions.map(record).collect()
    }

    fn made(messages: &Messages, ty: u32, records: &[Record], bytes: usize) -> usize {
        let made = Cell::new(0);
        let all = messages.of(TypeId(ty), records, |record| {
            made.set(made.get() + 1);
            let first = record.revision.0 as u8;
            Ok::<_, Infallible>(vec![first; bytes].into())
        });
        for (record, message) in records.iter().zip(all.unwrap()) {
            assert_eq!(message[0], record.revision.0 as u8);
        }
        made.get()
    }

    #[test]
    fn a_message_is_made_once_for_each_version_and_type() {
        let messages = Messages::default();
        assert_eq!(made(&messages, 1, &records(0..3), 8), 3);
        assert_eq!(made(&messages, 1, &records(1..5), 8), 2);
        assert_eq!(made(&messages, 2, &records(0..1), 8), 1);
        messages.clear();
        assert_eq!(made(&messages, 1, &records(0..1), 8), 1);
    }

    #[test]
    fn what_is_used_stays_and_the_rest_has_a_limit() {
        let messages = Messages::default();
        let size = YOUNG_BYTES_MAX / 4;
        assert_eq!(made(&messages, 1, &records(0..5), size), 5);
        assert_eq!(made(&messages, 1, &records(0..1), size), 0);
        // Two more generations, of which only the first record is used.
        for start in [10, 20, 30] {
            assert_eq!(made(&messages, 1, &records(start..start + 2), size), 2);
            assert_eq!(made(&messages, 1, &records(0..1), size), 0);
        }
        assert_eq!(made(&messages, 1, &records(1..2), size), 1);
        let kept = messages.kept();
        assert!(kept.young.len() + kept.old.len() <= 8);
    }
}
