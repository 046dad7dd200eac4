//! Custom resources: two sets of rules, by whether the definition has a status subresource.

use object::{Map, Value};

use super::strategy::{keep_status_or_spec, status_or_rest, unselectable};
use crate::defaults::fill::{copy, object};
use crate::{Generation, Rules};

/// Whether `status` is written apart from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Through `/status` alone.
    Subresource,
    /// With the object, like any other field.
    Field,
}

/// The rules of a custom resource; its schema and selectable fields come with its definition.
pub fn custom_rules(status: Status) -> Rules {
    let base = Rules {
        unconditional_update: false,
        unselectable,
        ..Rules::default()
    };
    match status {
        Status::Field => Rules {
            generation: Generation::All,
            ..base
        },
        Status::Subresource => Rules {
            prepare_create: |new| {
                new.remove("status");
            },
            prepare_update: |new, old, subresource| match subresource {
                "status" => keep_all_but_status(new, old),
                _ => keep_status_or_spec(new, old, subresource),
            },
            generation: Generation::AllButStatus,
            reset_fields: status_or_rest,
            ..base
        },
    }
}

/// Of a write through `/status`, only the status and who owns it are taken.
fn keep_all_but_status(new: &mut Map, old: &Map) {
    let mut kept = old.clone();
    copy(&mut kept, new, "status");
    let managed = object(new, "metadata").and_then(|metadata| metadata.get("managedFields"));
    let metadata = kept.object_at("metadata");
    match managed.cloned() {
        Some(Value::Array(managed)) => metadata.insert("managedFields", Value::Array(managed)),
        _ => metadata.remove("managedFields"),
    };
    *new = kept;
}
