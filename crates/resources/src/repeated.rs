//! Applies that were answered before.
//!
//! Controllers apply the same configuration again and again, and some do so although they are
//! refused. The same bytes by the same manager on an object that has not changed since need no
//! merge: what came of them comes of them again. An entry is made only for an apply that changed
//! nothing, or was refused for a conflict, without a warning of another sort; it holds for one
//! revision of the object and one state of the kind's definition. Whoever may not apply never gets
//! here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use store::Revision;

use crate::body::Body;
use crate::error::Refusal;
use crate::{Request, Resources};

/// Beyond this, all are forgotten and learned again.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Beyond this many of one revision, they are.
const ENTRIES_MAX: usize = 16;

/// What an entry takes besides the text of a refusal.
const ENTRY_BYTES: usize = 128;

/// What tells one apply from another. A digest, because bodies come from clients who might like two
/// of them to meet.
type Key = [u8; SHA256_OUTPUT_LEN];

/// What came of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The object already was as it asks.
    Unchanged,
    /// Others own what it asks for.
    Refused(Arc<Refusal>),
}

/// What came of applies at a revision of their object.
#[derive(Default)]
pub(crate) struct Repeated(Mutex<Known>);

#[derive(Default)]
struct Known {
    revisions: HashMap<Revision, Vec<(Key, Outcome)>>,
    bytes: usize,
}

impl Repeated {
    /// What comes of this apply at this revision, if that is known.
    pub(crate) fn outcome(&self, apply: &Apply<'_>, revision: Revision) -> Option<Outcome> {
        // Most objects change with each apply, and then the body need not be looked at.
        if !self.lock().revisions.contains_key(&revision) {
            return None;
        }
        let key = apply.key();
        let known = self.lock();
        let mut entries = known.revisions.get(&revision)?.iter();
        entries
            .find(|(other, _)| *other == key)
            .map(|(_, outcome)| outcome.clone())
    }

    /// Notes what came of an apply.
    pub(crate) fn note(&self, apply: &Apply<'_>, revision: Revision, outcome: Outcome) {
        let key = apply.key();
        self.lock().note(key, revision, outcome);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, key: Key, revision: Revision, outcome: Outcome) {
        let bytes = outcome.bytes();
        if bytes > BYTES_MAX / ENTRIES_MAX {
            return;
        }
        if self.bytes + bytes > BYTES_MAX {
            *self = Known::default();
        }
        let entries = self.revisions.entry(revision).or_default();
        if entries.len() == ENTRIES_MAX {
            let forgotten = entries.drain(..).map(|(_, outcome)| outcome.bytes());
            self.bytes -= forgotten.sum::<usize>();
        }
        entries.push((key, outcome));
        self.bytes += bytes;
    }
}

impl Outcome {
    /// About what an entry with it takes.
    fn bytes(&self) -> usize {
        let text = match self {
            Outcome::Unchanged => 0,
            Outcome::Refused(refusal) => refusal.bytes(),
        };
        ENTRY_BYTES + text
    }
}

/// An apply that may have been answered before.
pub(crate) struct Apply<'a> {
    pub(crate) request: &'a Request<'a>,
    body: &'a Body,
    /// Which state of the definitions of custom resources it is about.
    definitions: u64,
}

impl<'a> Apply<'a> {
    /// The apply, unless its kind is changing.
    pub(crate) fn new(
        resources: &Resources,
        request: &'a Request<'a>,
        body: &'a Body,
    ) -> Option<Apply<'a>> {
        let mut definitions = 0;
        if request.kind.is_custom() {
            // In this order: the kinds are replaced before the count moves.
            definitions = *resources.served.borrow();
            if !resources.serves(request.kind) {
                return None;
            }
        }
        Some(Apply {
            request,
            body,
            definitions,
        })
    }

    fn key(&self) -> Key {
        let mut context = Context::new(&SHA256);
        let Apply { request, body, .. } = self;
        let options = request.options;
        let parts: [&[u8]; 9] = [
            request.kind.collection.as_bytes(),
            request.kind.version.as_bytes(),
            &self.definitions.to_le_bytes(),
            request.namespace.as_bytes(),
            request.name.as_bytes(),
            request.subresource.as_bytes(),
            options.manager.as_bytes(),
            &[
                u8::from(options.force),
                u8::from(options.dry_run),
                options.validation as u8,
            ],
            &body.bytes,
        ];
        for part in parts {
            context.update(&part.len().to_le_bytes());
            context.update(part);
        }
        let mut key = Key::default();
        key.copy_from_slice(context.finish().as_ref());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: usize) -> Outcome {
        Outcome::Refused(Arc::new(Refusal {
            message: "x".repeat(bytes),
            causes: Vec::new(),
            advice: Vec::new(),
        }))
    }

    fn key(number: usize) -> Key {
        let mut key = Key::default();
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    }

    #[test]
    fn what_is_known_stays_small_whoever_asks() {
        let mut known = Known::default();
        for number in 0..100_000_usize {
            let revision = Revision((number / 40) as u64);
            known.note(key(number), revision, refused(number % 2000));
            assert!(known.bytes <= BYTES_MAX);
            if number % 1000 == 0 {
                let entries = known.revisions.values().flatten();
                let counted: usize = entries.map(|(_, outcome)| outcome.bytes()).sum();
                assert_eq!(known.bytes, counted);
            }
            let entries = &known.revisions[&revision];
            assert!(entries.len() <= ENTRIES_MAX);
            assert!(entries.iter().any(|(other, _)| *other == key(number)));
        }
    }

    #[test]
    fn a_refusal_of_great_length_is_not_kept() {
        let mut known = Known::default();
        known.note(key(1), Revision(1), refused(BYTES_MAX));
        assert!(known.revisions.is_empty());
    }
}
