//! What a mutating policy's configuration makes of an object: a merge in which nobody owns
//! anything.
//!
//! Contract: `apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go`.

use apply::{Repeats, Typing};
use kinds::Kind;
use object::{Map, Value};
use schema::{ListTopology, TypeId, Types};

/// Merges a partial object into an object of its kind.
pub(super) fn merge(kind: &Kind, object: Map, mut partial: Map) -> Result<Value, String> {
    partial.insert("kind", Value::String(kind.kind.clone()));
    partial.insert("apiVersion", Value::String(kind.api_version()));
    let typing = Typing {
        types: &kind.types,
        root: kind.root,
    };
    let partial = Value::Object(partial);
    apply::validate(&partial, typing, Repeats::Refused).map_err(|errors| {
        format!("error applying patch: failed to convert patch object to typed object: {errors}")
    })?;
    let mut atomics = Vec::new();
    find_atomics(
        &kind.types,
        kind.root,
        &partial,
        &mut String::new(),
        &mut atomics,
    );
    if !atomics.is_empty() {
        return Err(format!(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps \
             or structs: {}",
            atomics.join(", ")
        ));
    }
    Ok(apply::merge(&Value::Object(object), partial, typing))
}

/// Collects the paths of what would be replaced as a whole.
fn find_atomics(
    types: &Types,
    id: TypeId,
    value: &Value,
    path: &mut String,
    found: &mut Vec<String>,
) {
    let of = types.get(id);
    let length = path.len();
    match (value, &of.map, &of.list) {
        (Value::Object(fields), Some(map), _) => {
            if map.atomic {
                found.push(path.clone());
            }
            for (name, value) in fields.iter() {
                if let Some(field) = map.field(name) {
                    path.push('.');
                    path.push_str(name);
                    find_atomics(types, field.ty, value, path, found);
                    path.truncate(length);
                }
            }
        }
        (Value::Array(items), _, Some(list)) => {
            if list.topology == ListTopology::Atomic {
                found.push(path.clone());
            }
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find_atomics(types, list.element, item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
