//! Applies that are known to change nothing.
//!
//! Controllers apply the same configuration again and again. The same bytes by the same manager on
//! an object that has not changed since need no merge: the answer is the object. An entry is made
//! only for an apply that changed nothing, without a warning, and holds for one revision of the
//! object; whoever may not apply never gets here.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use store::Revision;

use crate::Request;
use crate::body::Body;

/// Beyond this many, all are forgotten and learned again.
const REVISIONS_MAX: usize = 8192;

/// Beyond this many of one revision, they are.
const KEYS_MAX: usize = 16;

/// What tells one apply from another. A digest, because bodies come from clients who might like two
/// of them to meet.
type Key = [u8; SHA256_OUTPUT_LEN];

/// Which applies change nothing at a revision of their object.
#[derive(Default)]
pub(crate) struct Unchanged(Mutex<HashMap<Revision, Vec<Key>>>);

impl Unchanged {
    /// Whether this apply is known to change nothing at this revision.
    pub(crate) fn knows(&self, request: &Request<'_>, body: &Body, revision: Revision) -> bool {
        // Most objects change with each apply, and then the body need not be looked at.
        self.lock().contains_key(&revision) && {
            let key = key(request, body);
            let known = self.lock();
            known.get(&revision).is_some_and(|keys| keys.contains(&key))
        }
    }

    /// Notes that an apply changed nothing.
    pub(crate) fn note(&self, request: &Request<'_>, body: &Body, revision: Revision) {
        let key = key(request, body);
        let mut known = self.lock();
        if known.len() >= REVISIONS_MAX {
            known.clear();
        }
        let keys = known.entry(revision).or_default();
        if keys.len() >= KEYS_MAX {
            keys.clear();
        }
        keys.push(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Revision, Vec<Key>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of an apply.
fn key(request: &Request<'_>, body: &Body) -> Key {
    let mut context = Context::new(&SHA256);
    let options = request.options;
    let parts: [&[u8]; 8] = [
        request.kind.collection.as_bytes(),
        request.kind.version.as_bytes(),
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
