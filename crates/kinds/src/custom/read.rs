//! From what a client sent, or the store held, to an object of the kind.
//!
//! Contract: `unstructuredSchemaCoercer` of upstream's `customresource_handler.go`: metadata is
//! read as its own type, then the rest is pruned, then the metadata of embedded resources is read,
//! then defaults are filled in. A client's mistake in metadata is an error; one that was stored
//! long ago is dropped.

use object::Map;
use object::field::Path;
use schema::decode::{TypeError, Unknown};
use schema::structural::{fill_defaults, prune, prune_nulls, prune_untyped_nulls};

use super::Custom;
use super::embedded::{Coercer, Malformed};

impl Custom {
    /// Reads a body. The fields that were dropped come sorted, those of metadata first.
    pub(crate) fn read(
        &self,
        mut object: Map,
        unknown: Unknown,
    ) -> Result<(Map, Vec<String>), TypeError> {
        let dropped = self.coerce(&mut object, unknown, Malformed::Refuse)?;
        self.apply_defaults(&mut object);
        let texts = dropped
            .into_iter()
            .map(|path| format!("unknown field \"{path}\""))
            .collect();
        Ok((object, texts))
    }

    /// Gives a stored object the form that this version has today.
    pub(crate) fn read_stored(&self, object: &mut Map) {
        self.read_converted(object);
        self.apply_defaults(object);
    }

    /// Gives an object that comes from another version the form of this one.
    pub(crate) fn read_converted(&self, object: &mut Map) {
        // Nothing is refused that was stored, so there is no mistake to tell.
        let _ = self.coerce(object, Unknown::Drop, Malformed::Drop);
    }

    /// Drops nulls that no type takes or refuses.
    pub(crate) fn drop_untyped_nulls(&self, object: &mut Map) {
        prune_untyped_nulls(&self.schema, object);
    }

    /// Fills what is absent.
    pub(crate) fn apply_defaults(&self, object: &mut Map) {
        fill_defaults(&self.schema, object);
    }

    fn coerce(
        &self,
        object: &mut Map,
        unknown: Unknown,
        malformed: Malformed,
    ) -> Result<Vec<String>, TypeError> {
        let mut coercer = Coercer::new(unknown, malformed);
        if let Some(metadata) = object.get_mut("metadata") {
            coercer.metadata(metadata, &Path::root())?;
        }
        let mut dropped = std::mem::take(&mut coercer.dropped);
        dropped.extend(prune(&self.schema, object, unknown));
        prune_nulls(&self.schema, object);
        if self.has_embedded {
            let read = coercer.map(&self.schema, object, &Path::root());
            read.map_err(|error| TypeError::Malformed {
                fields: Vec::new(),
                message: error.to_string(),
            })?;
            coercer.dropped.sort_unstable();
            dropped.extend(coercer.dropped);
        }
        Ok(dropped)
    }
}
