//! Applies that are known to change nothing.
//!
//! Controllers apply the same configuration again and again. The same bytes by the same manager on
//! an object that has not changed since need no merge: the answer is the object. An entry is made
//! only for an apply that changed nothing, without a warning, and holds for one revision of the
//! object; whoever may not apply never gets here.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use store::Revision;

use crate::Request;
use crate::body::Body;

/// Beyond this many, all are forgotten and learned again.
const ENTRIES_MAX: usize = 8192;

/// What tells one apply from another. A digest, because bodies come from clients who might like two
/// of them to meet.
pub(crate) type Key = [u8; SHA256_OUTPUT_LEN];

/// Which applies change nothing, and at which revision of their object.
#[derive(Default)]
pub(crate) struct Unchanged(Mutex<HashMap<Key, Revision>>);

impl Unchanged {
    /// The key of an apply.
    pub(crate) fn key(request: &Request<'_>, body: &Body) -> Key {
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

    /// Whether this apply is known to change nothing at this revision.
    pub(crate) fn knows(&self, key: &Key, revision: Revision) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key) == Some(&revision)
    }

    /// Notes that an apply changed nothing.
    pub(crate) fn note(&self, key: Key, revision: Revision) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ENTRIES_MAX {
            known.clear();
        }
        known.insert(key, revision);
    }
}
