//! Applies and updates from text to text, for those who need no tree of the object.
//!
//! ```
//! use windlass_apply::{ManagedFields, OnConflict, OneVersion, Reader, Typing, Writer};
//!
//! let mut types = schema::Types::new();
//! let root = types.add_untyped_deduced();
//! let typing = Typing { types: &types, root };
//! let versions = OneVersion::new("v1", typing);
//! let by = Writer { name: "one", api_version: "v1", subresource: "" };
//!
//! let mut reader = Reader::new();
//! let wanted = reader.read(br#"{"list": [1, 2], "colour": "red"}"#, typing)?;
//! let nobody = ManagedFields::new();
//! let (new, managers) = wanted.apply(None, nobody, by, 0, OnConflict::Refuse, &versions)?;
//! let new = new.expect("it changes something");
//! let mut out = Vec::new();
//! new.write(&mut out);
//! assert_eq!(out, br#"{"colour":"red","list":[1,2]}"#);
//! assert_eq!(managers.len(), 1);
//! // What is no longer needed makes the next one cheaper.
//! reader.recycle(new);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;

use object::{Value, json};

use crate::{
    apply::{Applied, ApplyError, OnConflict, apply, apply_with},
    kubectl,
    managed::{DecodeError, ManagedFields},
    outline::{self, Outlined, Parts, Room},
    typed::Typing,
    update::{Writer, update},
    validate::{Repeats, validate},
    versions::Versions,
};

/// Reads documents, one after the other in the same memory.
#[derive(Debug, Default)]
pub struct Reader {
    room: Room,
}

impl Reader {
    /// A reader that has no memory yet.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Reads an object of this type; of equal keys in a map the last one stays.
    pub fn read<'t>(
        &mut self,
        text: &[u8],
        typing: Typing<'t>,
    ) -> Result<Document<'t>, json::Error> {
        let usual = std::str::from_utf8(text).ok();
        if let Some(value) = usual.and_then(|text| self.room.read(text, typing)) {
            let parts = Parts::Texts;
            return Ok(Document {
                value,
                typing,
                parts,
            });
        }
        let mut value = json::parse(text)?;
        let fits = validate(&value, typing, Repeats::Allowed).is_ok();
        let parts = match fits && outline::fold(&mut value, typing) {
            true => Parts::Texts,
            false => Parts::Trees,
        };
        Ok(Document {
            value,
            typing,
            parts,
        })
    }

    /// Takes the memory of a document that is no longer needed.
    pub fn recycle(&mut self, document: Document<'_>) {
        if document.parts == Parts::Texts {
            self.room.recycle(document.value);
        }
    }
}

/// An object of which no more was read than applies and updates look at: its atomic lists and maps
/// are text.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    value: Value,
    typing: Typing<'t>,
    parts: Parts,
}

impl<'t> Document<'t> {
    /// Takes the managed fields out, which every function here wants apart from the object.
    pub fn take_managers(&mut self) -> Result<ManagedFields, DecodeError> {
        let metadata = self.value.get_mut("metadata");
        let fields = metadata
            .and_then(Value::as_object_mut)
            .and_then(|metadata| metadata.remove("managedFields"));
        match fields {
            None => Ok(ManagedFields::new()),
            // As a part it is text; other strings are no managed fields in either reading.
            Some(Value::String(text)) if self.parts == Parts::Texts => {
                ManagedFields::parse(text.as_bytes())
            }
            Some(list) => ManagedFields::decode(&list),
        }
    }

    /// Appends the object as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self.parts {
            Parts::Texts => outline::write(&self.value, self.typing, out),
            Parts::Trees => json::write(&self.value, out),
        }
    }

    /// The object as a whole tree.
    pub fn into_value(self) -> Value {
        let mut value = self.value;
        if self.parts == Parts::Texts {
            outline::unfold(&mut value, self.typing);
        }
        value
    }

    fn to_value(&self) -> Cow<'_, Value> {
        match self.parts {
            Parts::Texts => Cow::Owned(self.clone().into_value()),
            Parts::Trees => Cow::Borrowed(&self.value),
        }
    }

    /// Applies this object as [`crate::apply`] does: what the live object becomes, `None` if
    /// nothing of it changes, and who owns what then.
    pub fn apply(
        self,
        live: Option<&Document<'t>>,
        managers: ManagedFields,
        by: Writer<'_>,
        now: i64,
        on_conflict: OnConflict,
        versions: &dyn Versions,
    ) -> Result<(Option<Document<'t>>, ManagedFields), ApplyError> {
        let typing = self.typing;
        let (applied, parts) = if self.can_stay(live, &managers, by, versions) {
            let live = live.map(|live| &live.value);
            let parts = Parts::Texts;
            let versions = &Outlined(versions);
            let applied = apply_with(
                parts,
                live,
                self.value,
                managers,
                by,
                now,
                on_conflict,
                versions,
            );
            (applied.map_err(|error| unfolded(error, typing)), parts)
        } else {
            let live = live.map(Document::to_value);
            let (live, wanted) = (live.as_deref(), self.into_value());
            let applied = apply(live, wanted, managers, by, now, on_conflict, versions);
            (applied, Parts::Trees)
        };
        let Applied { object, managers } = applied?;
        let object = object.map(|value| Document {
            value,
            typing,
            parts,
        });
        Ok((object, managers))
    }

    /// The managers after an update of `live` to this object, as [`crate::update`] finds them.
    pub fn update(
        &self,
        live: Option<&Document<'t>>,
        managers: ManagedFields,
        by: Writer<'_>,
        now: i64,
        versions: &dyn Versions,
    ) -> ManagedFields {
        if self.can_stay(live, &managers, by, versions) {
            let live = live.map(|live| &live.value);
            return update(live, &self.value, managers, by, now, &Outlined(versions));
        }
        let live = live.map(Document::to_value);
        update(
            live.as_deref(),
            &self.to_value(),
            managers,
            by,
            now,
            versions,
        )
    }

    /// Whether nobody has to look into the parts: both objects are outlines in the version that is
    /// written, nobody owns fields in another version, and the writer is not the one whose
    /// annotation holds a whole object.
    fn can_stay(
        &self,
        live: Option<&Document<'t>>,
        managers: &ManagedFields,
        by: Writer<'_>,
        versions: &dyn Versions,
    ) -> bool {
        let Some(typing) = versions.typing(by.api_version) else {
            return false;
        };
        let is_outline = |document: &Document<'_>| {
            document.parts == Parts::Texts
                && document.typing.root == typing.root
                && std::ptr::eq(document.typing.types, typing.types)
        };
        let managers = managers.managers();
        is_outline(self)
            && live.is_none_or(is_outline)
            && by.name != kubectl::MANAGER
            && managers.iter().all(|it| it.api_version == by.api_version)
    }
}

/// An error that speaks of whole values.
fn unfolded(error: ApplyError, typing: Typing<'_>) -> ApplyError {
    let ApplyError::Conflicts(mut conflicts) = error else {
        return error;
    };
    for conflict in &mut conflicts.0 {
        let values = [&mut conflict.live, &mut conflict.wanted];
        for value in values.into_iter().flatten() {
            outline::unfold_at(value, &conflict.path, typing);
        }
    }
    ApplyError::Conflicts(conflicts)
}
