//! The mistakes of a custom object.

use object::Map;
use object::field::FieldError;

use super::Custom;
use crate::kind::Kind;

impl Custom {
    /// Reports every mistake of an object beyond its metadata.
    pub(crate) fn validate(
        &self,
        _kind: &Kind,
        _new: &Map,
        _old: Option<&Map>,
        _subresource: &str,
    ) -> Vec<FieldError> {
        Vec::new()
    }
}
