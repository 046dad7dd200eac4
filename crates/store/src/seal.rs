//! What is written to disk instead of a value, and back.
//!
//! The store hands every value out before it is written and every written value back after it is
//! read; it looks inside neither. Memory holds values, files hold what the sealer made of them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Turns values into what is written, and back.
pub trait Seal: Send + Sync + 'static {
    /// What is written instead of a value; `None` to write the value itself.
    fn seal(&self, collection: &str, name: &str, value: &[u8]) -> Option<Vec<u8>>;

    /// The value behind what was written.
    ///
    /// # Errors
    /// Why it cannot be had; the text is for the operator.
    fn open<'a>(
        &self,
        collection: &str,
        name: &str,
        written: &'a [u8],
    ) -> Result<Opened<'a>, String>;
}

/// A value that was read from disk.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// The value.
    pub value: Cow<'a, [u8]>,
    /// Whether it would be written in another form today.
    pub stale: bool,
}

/// The keys whose written form is out of date. Usually none.
#[derive(Debug, Default)]
pub(crate) struct Stale(Mutex<HashSet<(String, String)>>);

impl Stale {
    pub(crate) fn add(&self, collection: &str, name: &str) {
        self.lock().insert((collection.to_owned(), name.to_owned()));
    }

    /// The key has been written anew, or is gone.
    pub(crate) fn remove(&self, collection: &str, name: &str) {
        let mut keys = self.lock();
        if !keys.is_empty() {
            keys.remove(&(collection.to_owned(), name.to_owned()));
        }
    }

    pub(crate) fn holds(&self, collection: &str, name: &str) -> bool {
        let keys = self.lock();
        !keys.is_empty() && keys.contains(&(collection.to_owned(), name.to_owned()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<(String, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
