//! Which object a write asks for and which manager owns each field.
//!
//! [`apply`] is server-side apply, [`update`] tracks every other write. Both are pure: they take
//! the live object, what was written, the managers so far, who writes and what time it is, and
//! give the object and the managers that follow. What they need to know about a kind they ask of
//! [`Versions`].
//!
//! The order to read in: [`FieldSet`] and [`PathElement`] are what ownership is made of;
//! [`field_set`], [`compare()`], [`merge()`] and [`remove_items`] walk values by their types;
//! [`ManagedFields`] is the wire form.

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
    fields::field_set,
    lookup::value_at,
    managed::{DecodeError, Identity, ManagedFields, Manager, Operation, Style, starting_managers},
    merge::merge,
    path::{Path, PathElement},
    reconcile::reconcile,
    remove::remove_items,
    scale::{ReplicasPath, SCALE_API_VERSION, from_scale, to_scale},
    set::{FieldFilter, FieldSet, FieldsError, Pattern},
    typed::{IdentityError, Typing},
    update::{Writer, update},
    validate::{Repeats, TypeError, TypeErrors, validate},
    versions::{ConvertError, OneVersion, Versions, empty_object},
};
