//! The sealer of a store at work: names the record that it cannot open, remembers stale ones.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::failure::OpenError;
use crate::seal::{Seal, Stale};

/// What stands between values and files.
#[derive(Clone, Default)]
pub(crate) struct Sealer {
    seal: Option<Arc<dyn Seal>>,
    stale: Arc<Stale>,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sealer")
            .field("seals", &self.seal.is_some())
            .finish_non_exhaustive()
    }
}

impl Sealer {
    pub(crate) fn new(seal: Option<Arc<dyn Seal>>) -> Sealer {
        Sealer {
            seal,
            stale: Arc::default(),
        }
    }

    /// The keys whose written form is out of date.
    pub(crate) fn stale(&self) -> &Stale {
        &self.stale
    }

    /// What is written instead of a value.
    pub(crate) fn seal(&self, collection: &str, name: &str, value: &[u8]) -> Option<Bytes> {
        let seal = self.seal.as_ref()?;
        seal.seal(collection, name, value).map(Bytes::from)
    }

    /// The value of a live record; notes if its written form is out of date.
    pub(crate) fn open(
        &self,
        collection: &str,
        name: &str,
        written: &[u8],
    ) -> Result<Bytes, OpenError> {
        let (value, stale) = self.open_past(collection, name, written)?;
        if stale {
            self.stale.add(collection, name);
        } else {
            self.stale.remove(collection, name);
        }
        Ok(value)
    }

    /// The value of a record that may be an old one, and whether its form is out of date.
    pub(crate) fn open_past(
        &self,
        collection: &str,
        name: &str,
        written: &[u8],
    ) -> Result<(Bytes, bool), OpenError> {
        let Some(seal) = &self.seal else {
            return Ok((Bytes::copy_from_slice(written), false));
        };
        let opened = seal.open(collection, name, written);
        let opened = opened.map_err(|detail| OpenError::Sealed {
            collection: collection.to_owned(),
            name: name.to_owned(),
            detail,
        })?;
        let value = match opened.value {
            Cow::Borrowed(value) => Bytes::copy_from_slice(value),
            Cow::Owned(value) => Bytes::from(value),
        };
        Ok((value, opened.stale))
    }
}
