//! `apiextensions.k8s.io`: definitions of custom resources.

use object::{Map, value};

use super::strategy::{keep_status_or_spec, status_or_spec};
use crate::defaults::extensions::{custom_resource_definition, note_storage_version};
use crate::defaults::fill::list;
use crate::{Generation, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "CustomResourceDefinition" => Rules {
            defaults: custom_resource_definition,
            prepare_create: |new| {
                new.insert(
                    "status",
                    value!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null}),
                );
                note_storage_version(new);
            },
            prepare_update: definition_update,
            settle: |definition| {
                if list(definition.object_at("status"), "storedVersions").is_empty() {
                    note_storage_version(definition);
                }
            },
            generation: Generation::Spec,
            unconditional_update: false,
            reset_fields: status_or_spec,
            defines_kinds: true,
            // Until it is marked, a definition is held by the objects that it may have.
            held: |definition| {
                let metadata = definition
                    .get("metadata")
                    .and_then(object::Value::as_object);
                metadata.is_none_or(|metadata| !metadata.contains_key("deletionTimestamp"))
            },
            mark_deleting: crate::custom::mark_deleting,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}

/// A version that becomes the stored one may be found in storage from then on.
fn definition_update(new: &mut Map, old: &Map, subresource: &str) {
    keep_status_or_spec(new, old, subresource);
    if subresource.is_empty() {
        note_storage_version(new);
    }
}
