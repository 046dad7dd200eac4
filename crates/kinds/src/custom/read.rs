//! From what a client sent, or the store held, to an object of the kind.

use object::Map;
use schema::decode::{TypeError, Unknown};

use super::Custom;

impl Custom {
    /// Reads a body.
    pub(crate) fn read(
        &self,
        mut object: Map,
        _unknown: Unknown,
    ) -> Result<(Map, Vec<String>), TypeError> {
        self.apply_defaults(&mut object);
        Ok((object, Vec::new()))
    }

    /// Gives a stored object the form that this version has today.
    pub(crate) fn read_stored(&self, object: &mut Map) {
        self.apply_defaults(object);
    }

    /// Fills what is absent.
    pub(crate) fn apply_defaults(&self, _object: &mut Map) {}
}
