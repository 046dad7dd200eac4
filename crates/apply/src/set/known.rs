//! Field sets that were read before.
//!
//! What a manager owns of one object it mostly owns of all others of that kind, so a server reads
//! and writes few different sets, over and over. A set that is known by its text costs a look at
//! that text to read and a copy of it to write, and equal sets share their memory.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use super::FieldSet;

/// Texts and tries are kept until they take this much together; then all of them are let go.
const BYTES_MAX: usize = 4 << 20;

/// Longer texts are read anew each time.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// What a set takes in memory, in multiples of its text.
const TRIE_PER_TEXT: usize = 6;

/// Sets that were read before, by the text that they were read from.
#[derive(Debug, Default)]
pub struct KnownSets {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    sets: HashMap<Box<str>, FieldSet>,
    bytes: usize,
}

impl KnownSets {
    /// None yet.
    pub fn new() -> KnownSets {
        KnownSets::default()
    }

    /// Lets all of them go.
    pub fn clear(&self) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = Known::default();
    }

    /// The set with this text, which `read` reads if it is not known.
    pub(crate) fn get(
        &self,
        text: &str,
        read: impl FnOnce() -> Option<FieldSet>,
    ) -> Option<FieldSet> {
        if text.len() > TEXT_BYTES_MAX {
            return read();
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = known.sets.get(text) {
            return Some(set.clone());
        }
        drop(known);
        let set = read()?.keeping_texts();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.bytes += text.len() * TRIE_PER_TEXT;
        if known.bytes > BYTES_MAX {
            *known = Known::default();
        }
        known.sets.insert(text.into(), set.clone());
        Some(set)
    }
}
