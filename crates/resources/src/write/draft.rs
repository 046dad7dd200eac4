//! What an object should become, on its way from a body to the store.

use kinds::Kind;
use object::{Map, Value};

use crate::body::Wanted;
use crate::meta::{meta, meta_mut};
use crate::ownership::Owners;
use crate::write::Live;

/// What an object should become.
#[derive(Clone)]
pub(crate) struct Draft {
    /// The object without managed fields.
    pub object: Map,
    /// Who owns its fields.
    pub owners: Owners,
    /// Whether the object has blanks, as [`kinds::Reading`] says.
    pub has_blanks: bool,
}

impl Draft {
    /// A draft of an object that was not read from a body.
    pub(crate) fn by_server(object: Map, owners: Owners) -> Draft {
        Draft {
            object,
            owners,
            has_blanks: false,
        }
    }

    /// A draft of what was wanted.
    pub(super) fn new(wanted: Wanted, owners: Owners) -> Draft {
        Draft {
            object: wanted.object,
            owners,
            has_blanks: wanted.has_blanks,
        }
    }

    /// Drops blanks. From here on nobody tells what is empty from what is absent, so that upstream,
    /// which reads back what it stored, may fill it after all.
    pub(super) fn drop_blanks(&mut self, kind: &Kind) {
        if std::mem::take(&mut self.has_blanks) {
            let mut object = kind.print(std::mem::take(&mut self.object));
            kind.apply_defaults(&mut object);
            self.object = kind.print(object);
        }
    }

    /// Takes back new times of its owners if it is the object that is stored: nothing was asked
    /// for.
    pub(super) fn keep_times(&mut self, kind: &Kind, live: &Live) {
        if self.is_as_stored(kind, live.map()) {
            self.owners.keep_times(&live.owners);
        }
    }

    /// The same if all that was asked for has been dropped, unless a time has moved an entry.
    pub(super) fn keep_times_in_place(&mut self, kind: &Kind, live: &Live) {
        if self.is_as_stored(kind, live.map()) {
            self.owners.keep_times_in_place(&live.owners);
        }
    }

    /// Whether it is the object that is stored: to that, blanks make no difference.
    fn is_as_stored(&self, kind: &Kind, old: &Map) -> bool {
        match self.has_blanks {
            true => kind.print(self.object.clone()) == *old,
            false => self.object == *old,
        }
    }

    /// Shows validation the managed fields, if there is something to say about them.
    ///
    /// Only clients that edit them by hand can bring that about; then the write is refused.
    pub(super) fn show_odd_owners(&mut self) {
        if let Some(fields) = self.owners.odd() {
            meta_mut(&mut self.object).insert("managedFields", fields);
        }
    }

    /// Counts the generation up if the kind sees a change of `old`.
    pub(super) fn count_generation(&mut self, kind: &Kind, subresource: &str, old: &Map) {
        let generation = kind.rules.generation;
        let new = &mut self.object;
        // To most kinds, something empty where nothing was is no change.
        let counts = if self.has_blanks && !generation.counts_blanks() {
            generation.counts(&kind.print(new.clone()), old, subresource)
        } else {
            generation.counts(new, old, subresource)
        };
        if counts {
            let generation = meta(old)
                .get("generation")
                .and_then(Value::as_int)
                .unwrap_or(0);
            meta_mut(new).insert("generation", Value::Int(generation + 1));
        }
    }
}
