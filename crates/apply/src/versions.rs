//! How the engine asks about the versions of one kind.
//!
//! Sets are never rewritten to another version; instead the object is converted to the version of
//! the set. The engine never converts to the version it already has, so that kinds with one
//! version pay nothing.

use std::{borrow::Cow, sync::OnceLock};

use object::{Map, Text, Value};
use schema::decode::{Blank, normalize};

use crate::{set::FieldFilter, typed::Typing};

/// What is known about the versions of one kind.
pub trait Versions {
    /// The type of the object in this version; `None` if there is no such version (any more).
    fn typing(&self, api_version: &str) -> Option<Typing<'_>>;

    /// The object in another version. Both versions have a typing and they differ.
    fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, ConvertError>;

    /// Which fields a write through this endpoint may touch; `None` if any.
    fn reset_fields(&self, _api_version: &str) -> Option<&FieldFilter> {
        None
    }

    /// What an object looks like before anything was written: what creations are compared with.
    fn empty(&self, api_version: &str) -> Cow<'_, Value> {
        Cow::Owned(match self.typing(api_version) {
            Some(typing) => empty_object(typing),
            None => Value::Object(Map::new()),
        })
    }
}

/// Why an object has no form in another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConvertError {
    /// What went wrong, for the client.
    pub message: String,
}

/// A kind with a single version.
pub struct OneVersion<'a> {
    api_version: Text,
    typing: Typing<'a>,
    reset_fields: Option<FieldFilter>,
    empty: OnceLock<Value>,
}

impl<'a> OneVersion<'a> {
    /// The only version and its type.
    pub fn new(api_version: impl Into<Text>, typing: Typing<'a>) -> OneVersion<'a> {
        OneVersion {
            api_version: api_version.into(),
            typing,
            reset_fields: None,
            empty: OnceLock::new(),
        }
    }

    /// The same with a filter for the endpoint.
    pub fn with_reset_fields(mut self, filter: FieldFilter) -> OneVersion<'a> {
        self.reset_fields = Some(filter);
        self
    }
}

impl Versions for OneVersion<'_> {
    fn typing(&self, api_version: &str) -> Option<Typing<'_>> {
        if self.api_version == api_version {
            Some(self.typing)
        } else {
            None
        }
    }

    fn convert(&self, _object: &Value, from: &str, to: &str) -> Result<Value, ConvertError> {
        Err(ConvertError {
            message: format!("cannot convert from {from} to {to}"),
        })
    }

    fn reset_fields(&self, _api_version: &str) -> Option<&FieldFilter> {
        self.reset_fields.as_ref()
    }

    fn empty(&self, _api_version: &str) -> Cow<'_, Value> {
        Cow::Borrowed(self.empty.get_or_init(|| empty_object(self.typing)))
    }
}

/// An object in one version.
#[derive(Clone, Copy)]
pub(crate) struct Versioned<'a> {
    pub(crate) object: &'a Value,
    pub(crate) version: &'a str,
}

impl<'a> Versioned<'a> {
    /// The object in another version; `None` if that version is gone.
    pub(crate) fn convert(
        self,
        to: &str,
        versions: &dyn Versions,
    ) -> Result<Option<Cow<'a, Value>>, ConvertError> {
        if self.version == to {
            return Ok(Some(Cow::Borrowed(self.object)));
        }
        if versions.typing(to).is_none() {
            return Ok(None);
        }
        versions
            .convert(self.object, self.version, to)
            .map(|object| Some(Cow::Owned(object)))
    }
}

/// What a typed kind prints for an object in which nothing is set.
pub fn empty_object(typing: Typing<'_>) -> Value {
    let mut object = Value::Object(Map::new());
    normalize(typing.types, typing.root, &mut object, Blank::AsStored);
    object
}
