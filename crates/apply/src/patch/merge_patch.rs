//! JSON merge patch (RFC 7386), with upstream's reading of `null`.
//!
//! Contract: `evanphx/json-patch` `merge.go`. Maps merge, everything else is replaced, `null`
//! deletes. A value that replaces something other than a map loses its nulls first, also within
//! lists, which the RFC would leave alone; `null` items of lists stay.

use std::cmp::Ordering;

use object::{Map, Text, Value};

use super::{PatchError, json_type};

/// Checks that a body is a merge patch, which must be a map.
pub fn check(patch: &Value) -> Result<&Map, PatchError> {
    match patch {
        Value::Object(map) => Ok(map),
        Value::Null => Err(PatchError::Undecodable("Invalid JSON Patch".to_owned())),
        other => Err(PatchError::Undecodable(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type \
             map[string]interface {{}}",
            json_type(other)
        ))),
    }
}

/// Applies a merge patch. A document that is no map is replaced by the patch.
pub fn apply(mut document: Value, patch: &Map) -> Value {
    if !matches!(document, Value::Object(_)) {
        document = Value::Object(Map::new());
    }
    let mut waiting = Vec::new();
    if let Value::Object(map) = &mut document {
        waiting.push((map, patch));
    }
    while let Some((map, patch)) = waiting.pop() {
        let nested = merge_level(map, patch);
        let mut nested = nested.into_iter().peekable();
        for (index, (_, child)) in map.iter_mut().enumerate() {
            if let (Some((_, patch)), Value::Object(child)) =
                (nested.next_if(|(at, _)| *at == index), child)
            {
                waiting.push((child, patch));
            }
        }
    }
    document
}

/// Merges one level, both sides being sorted, and says at which entries a map meets a map.
fn merge_level<'p>(map: &mut Map, patch: &'p Map) -> Vec<(usize, &'p Map)> {
    let mut nested = Vec::new();
    let mut entries: Vec<(Text, Value)> = Vec::with_capacity(map.len() + patch.len());
    let mut existing = std::mem::take(map).into_iter().peekable();
    for (key, wanted) in patch.iter() {
        while let Some(entry) = existing.next_if(|(name, _)| name.cmp(key) == Ordering::Less) {
            entries.push(entry);
        }
        let current = existing
            .next_if(|(name, _)| name == key)
            .map(|(_, value)| value);
        match (current, wanted) {
            (_, Value::Null) => {}
            (Some(current @ Value::Object(_)), Value::Object(deeper)) => {
                nested.push((entries.len(), deeper));
                entries.push((key.clone(), current));
            }
            // Upstream keeps nulls inside a list that replaces a map, and drops them everywhere
            // else; then the same patch again would change the object again.
            (_, wanted) => entries.push((key.clone(), without_nulls(wanted))),
        }
    }
    entries.extend(existing);
    *map = Map::from_entries(entries);
    nested
}

/// A copy in which no map holds a `null`.
fn without_nulls(value: &Value) -> Value {
    let mut copy = value.clone();
    let mut waiting = vec![&mut copy];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(map) => {
                map.retain(|_, value| *value != Value::Null);
                waiting.extend(map.iter_mut().map(|(_, value)| value));
            }
            Value::Array(items) => waiting.extend(items.iter_mut()),
            _ => {}
        }
    }
    copy
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    fn patched(document: Value, patch: Value) -> Value {
        apply(document, check(&patch).expect("the patch is a map"))
    }

    #[test]
    fn what_does_a_merge_patch_make_of_a_document() {
        for (document, patch, wanted) in [
            (value!({"a": "b"}), value!({"a": "c"}), value!({"a": "c"})),
            (
                value!({"a": "b"}),
                value!({"b": "c"}),
                value!({"a": "b", "b": "c"}),
            ),
            (
                value!({"a": "b", "b": "c"}),
                value!({"a": null}),
                value!({"b": "c"}),
            ),
            (value!({"a": "b"}), value!({"z": null}), value!({"a": "b"})),
            (value!({"a": ["b"]}), value!({"a": "c"}), value!({"a": "c"})),
            (
                value!({"a": "c"}),
                value!({"a": ["b"]}),
                value!({"a": ["b"]}),
            ),
            (
                value!({"a": {"b": "c", "d": 1}}),
                value!({"a": {"b": "d", "c": null}}),
                value!({"a": {"b": "d", "d": 1}}),
            ),
            (
                value!({"a": [{"b": "c"}]}),
                value!({"a": [1]}),
                value!({"a": [1]}),
            ),
            (
                value!({"e": null}),
                value!({"a": 1}),
                value!({"a": 1, "e": null}),
            ),
            (
                value!({"e": null}),
                value!({"e": {"x": null}}),
                value!({"e": {}}),
            ),
            (
                value!({}),
                value!({"a": {"bb": {"ccc": null}}}),
                value!({"a": {"bb": {}}}),
            ),
            (
                value!({"spec": 1}),
                value!({"spec": {"a": null, "b": 2}}),
                value!({"spec": {"b": 2}}),
            ),
            (value!([1]), value!({"a": null, "b": 1}), value!({"b": 1})),
        ] {
            assert_eq!(
                patched(document.clone(), patch.clone()),
                wanted,
                "{document:?} {patch:?}"
            );
        }
    }

    #[test]
    fn nulls_within_lists_vanish_from_maps() {
        let patch = value!({"list": [null, {"a": null, "b": 1}]});
        let pruned = value!({"list": [null, {"b": 1}]});
        assert_eq!(patched(value!({}), patch.clone()), pruned);
        assert_eq!(patched(value!({"list": []}), patch.clone()), pruned);
        assert_eq!(patched(value!({"list": {}}), patch), pruned);
    }

    #[test]
    fn only_maps_are_merge_patches() {
        let message = |patch: Value| check(&patch).expect_err("not a map").to_string();
        assert_eq!(
            message(value!([])),
            "error decoding patch: json: cannot unmarshal array into Go value of type \
             map[string]interface {}"
        );
        assert_eq!(message(Value::Null), "Invalid JSON Patch");
    }

    #[test]
    fn many_keys_take_linear_time() {
        let keys = |from: usize| -> Map {
            (0..200_000)
                .map(|at| (format!("k{:07}", at * 2 + from).into(), 1.into()))
                .collect()
        };
        let patched = apply(Value::Object(keys(0)), &keys(1));
        assert_eq!(patched.as_object().map(Map::len), Some(400_000));
    }
}
