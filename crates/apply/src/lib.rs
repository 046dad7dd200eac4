//! Which object a write asks for and which manager owns each field.
//!
//! [`apply`] is server-side apply, [`update`] tracks every other write. Both are pure: they take
//! the live object, what was written, the managers so far, who writes and what time it is, and
//! give the object and the managers that follow. What they need to know about a kind they ask of
//! [`Versions`]. Those who have texts and need no trees use a [`Reader`] and its [`Document`]s,
//! which do the same for less.
//!
//! The order to read in: [`FieldSet`] and [`PathElement`] are what ownership is made of;
//! [`field_set`], [`compare()`], [`merge()`] and [`remove_items`] walk values by their types;
//! [`ManagedFields`] is the wire form.
//!
//! ```
//! use object::value;
//! use windlass_apply::{ManagedFields, OnConflict, OneVersion, Typing, Writer, apply};
//!
//! // Nothing is declared about this kind: maps are merged key by key, lists replaced whole.
//! let mut types = schema::Types::new();
//! let root = types.add_untyped_deduced();
//! let versions = OneVersion::new("v1", Typing { types: &types, root });
//! let by = |name| Writer { name, api_version: "v1", subresource: "" };
//!
//! let wanted = value!({"data": {"colour": "red"}});
//! let nobody = ManagedFields::new();
//! let first = apply(None, wanted, nobody, by("one"), 0, OnConflict::Refuse, &versions)?;
//! let live = first.object.expect("it is new");
//!
//! let wanted = value!({"data": {"colour": "blue"}});
//! let refused = apply(
//!     Some(&live), wanted, first.managers, by("two"), 1, OnConflict::Refuse, &versions,
//! );
//! assert_eq!(
//!     refused.unwrap_err().to_string(),
//!     r#"Apply failed with 1 conflict: conflict with "one": .data.colour"#,
//! );
//! # Ok::<(), windlass_apply::ApplyError>(())
//! ```

mod apply;
pub mod patch;
mod update;

mod contest;
mod prune;
mod reconcile;
mod versions;

mod compare;
mod fields;
mod lookup;
mod merge;
mod order;
mod remove;
mod typed;
mod validate;

mod document;
mod outline;

mod conflict;
mod kubectl;
mod managed;
mod scale;

mod go;
mod path;
mod scan;
mod set;

pub use self::{
    apply::{Applied, ApplyError, OnConflict, apply},
    compare::{Comparison, Mismatch, compare},
    conflict::{Conflict, Conflicts},
    document::{Document, Reader},
    fields::field_set,
    lookup::value_at,
    managed::{DecodeError, Identity, ManagedFields, Manager, Operation, Style, starting_managers},
    merge::merge,
    path::{Path, PathElement},
    reconcile::reconcile,
    remove::remove_items,
    scale::{ReplicasPath, SCALE_API_VERSION, from_scale, to_scale},
    set::{FieldFilter, FieldSet, FieldsError, KnownSets, Pattern},
    typed::{IdentityError, Typing},
    update::{Writer, update},
    validate::{Repeats, TypeError, TypeErrors, validate},
    versions::{ConvertError, OneVersion, Versions, empty_object},
};
