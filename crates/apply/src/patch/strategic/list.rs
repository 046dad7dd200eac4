//! Merging lists: items of maps by the field's key, scalars as sets, and the order of the result.
//!
//! Items of the patch come in the order of the patch, items that only the server has in the
//! server's order; a server item stands before the first patch item that followed it.

use std::collections::{HashMap, HashSet};

use object::{Text, Value};
use schema::{Field, TypeId};

use super::{Merge, PATCH, PatchError, go_text, unknown_directive};

/// What identifies an item: its own value if it is a scalar, else the value of the merge key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Null,
    Bool(bool),
    Int(i64),
    /// The bits of a number that is not an integer.
    Float(u64),
    Text(Text),
}

impl Key {
    /// The key that a scalar is; lists and maps are none.
    pub(super) fn of_scalar(value: &Value) -> Option<Key> {
        Some(match value {
            Value::Null => Key::Null,
            Value::Bool(flag) => Key::Bool(*flag),
            Value::Int(number) => Key::Int(*number),
            // Adding zero turns -0 into 0, which equals it.
            Value::Float(number) => Key::Float((number + 0.0).to_bits()),
            Value::String(text) => Key::Text(text.clone()),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }

    /// The key of an item under `merge_key`, which must be there.
    pub(super) fn of_item(item: &Value, merge_key: &str) -> Result<Key, PatchError> {
        if merge_key.is_empty() {
            let text = || format!("a list of scalars cannot hold {}", go_text(item));
            return Key::of_scalar(item).ok_or_else(|| PatchError::Misfit(text()));
        }
        let Value::Object(map) = item else {
            return Err(expected_map(item));
        };
        let value = map
            .get(merge_key)
            .ok_or_else(|| no_merge_key(item, merge_key))?;
        let text = || {
            format!(
                "merge key {merge_key} must be a scalar, but is {}",
                go_text(value)
            )
        };
        Key::of_scalar(value).ok_or_else(|| PatchError::Misfit(text()))
    }
}

/// An item with its key.
pub(super) type Keyed = (Key, Value);

/// Where each key stands first.
pub(super) type Places = HashMap<Key, usize>;

impl Merge<'_> {
    /// Merges two lists of a field with the merge strategy.
    pub(super) fn list(
        self,
        element: TypeId,
        field: &Field,
        original: Vec<Value>,
        patch: Vec<Value>,
        depth: usize,
    ) -> Result<Vec<Value>, PatchError> {
        if original.is_empty() && patch.is_empty() {
            return Ok(original);
        }
        if !holds_maps(&original, &patch)? {
            return union(original, patch);
        }
        if field.patch.merge_key.is_empty() {
            let text = "cannot merge lists without merge key for struct";
            return Err(PatchError::Misfit(text.to_owned()));
        }
        self.list_of_maps(element, &field.patch.merge_key, original, patch, depth)
    }

    /// Takes scalars out of a list. Upstream merges lists of maps even here.
    pub(super) fn list_without(
        self,
        element: TypeId,
        field: &Field,
        original: Vec<Value>,
        scalars: Vec<Value>,
        depth: usize,
    ) -> Result<Vec<Value>, PatchError> {
        if original.is_empty() && scalars.is_empty() {
            return Ok(original);
        }
        if holds_maps(&original, &scalars)? {
            return self.list(element, field, original, scalars, depth);
        }
        let gone: HashSet<Key> = scalars.iter().filter_map(Key::of_scalar).collect();
        let mut items = original;
        items.retain(|item| Key::of_scalar(item).is_none_or(|key| !gone.contains(&key)));
        Ok(items)
    }

    fn list_of_maps(
        self,
        element: TypeId,
        merge_key: &str,
        original: Vec<Value>,
        patch: Vec<Value>,
        depth: usize,
    ) -> Result<Vec<Value>, PatchError> {
        let patch = split(patch, merge_key)?;
        let (mut original, patch_items) = if patch.replace {
            (patch.items, Vec::new())
        } else {
            (original, patch.items)
        };
        let patch_items = keyed(patch_items, merge_key)?;
        if !patch.gone.is_empty() {
            original.retain(|item| {
                let key = item.get(merge_key).and_then(Key::of_scalar);
                key.is_none_or(|key| !patch.gone.contains(&key))
            });
        }
        let mut merged = keyed(original, merge_key)?;
        let server_order = places_of(&merged);
        let patch_order = places_of(&patch_items);
        let mut at = server_order.clone();
        for (key, item) in patch_items {
            match (at.get(&key), item) {
                (Some(&index), Value::Object(item)) => {
                    if let Value::Object(here) = std::mem::take(&mut merged[index].1) {
                        let map = self.map(element, here, item, depth + 1)?;
                        merged[index].1 = Value::Object(map);
                    }
                }
                (_, item) => {
                    at.insert(key.clone(), merged.len());
                    merged.push((key, item));
                }
            }
        }
        Ok(in_order(merged, &patch_order, &server_order))
    }
}

/// Joins two lists of scalars, each value once.
fn union(original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>, PatchError> {
    let original = keyed(original, "")?;
    let patch = keyed(patch, "")?;
    let server_order = places_of(&original);
    let patch_order = places_of(&patch);
    let mut seen = HashSet::new();
    let mut merged: Vec<Keyed> = original.into_iter().chain(patch).collect();
    merged.retain(|(key, _)| seen.insert(key.clone()));
    Ok(in_order(merged, &patch_order, &server_order))
}

/// A list of a patch, its directives taken out.
struct Split {
    items: Vec<Value>,
    gone: HashSet<Key>,
    replace: bool,
}

fn split(patch: Vec<Value>, merge_key: &str) -> Result<Split, PatchError> {
    let mut split = Split {
        items: Vec::new(),
        gone: HashSet::new(),
        replace: false,
    };
    for item in patch {
        match item.get(PATCH).map(Value::as_str) {
            None => split.items.push(item),
            Some(Some("delete")) => {
                split.gone.insert(Key::of_item(&item, merge_key)?);
            }
            Some(Some("replace")) => split.replace = true,
            Some(Some("merge")) => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Misfit(text.to_owned()));
            }
            Some(_) => {
                let Value::Object(map) = item else {
                    return Err(expected_map(&item));
                };
                return Err(unknown_directive(map));
            }
        }
    }
    Ok(split)
}

/// Items with their keys.
pub(super) fn keyed(items: Vec<Value>, merge_key: &str) -> Result<Vec<Keyed>, PatchError> {
    items
        .into_iter()
        .map(|item| Key::of_item(&item, merge_key).map(|key| (key, item)))
        .collect()
}

/// Where each key stands first.
pub(super) fn places(keys: impl Iterator<Item = Key>) -> Places {
    let mut places = Places::new();
    for (index, key) in keys.enumerate() {
        places.entry(key).or_insert(index);
    }
    places
}

fn places_of(items: &[Keyed]) -> Places {
    places(items.iter().map(|(key, _)| key.clone()))
}

/// Sorts the items named in `wanted` by it and the others by the server's order, then joins both:
/// next is the server's item if it stood before the next wanted one, else the wanted one.
pub(super) fn in_order(items: Vec<Keyed>, wanted: &Places, server: &Places) -> Vec<Value> {
    let (mut ours, mut theirs): (Vec<Keyed>, Vec<Keyed>) = items
        .into_iter()
        .partition(|(key, _)| wanted.contains_key(key));
    ours.sort_by_key(|(key, _)| wanted.get(key));
    theirs.sort_by_key(|(key, _)| server.get(key));
    let mut joined = Vec::with_capacity(ours.len() + theirs.len());
    let mut ours = ours.into_iter().peekable();
    let mut theirs = theirs.into_iter().peekable();
    loop {
        let next = match (ours.peek(), theirs.peek()) {
            (None, None) => return joined,
            (Some(_), None) => ours.next(),
            (None, Some(_)) => theirs.next(),
            (Some((our, _)), Some((their, _))) => match (server.get(their), server.get(our)) {
                (Some(their), Some(our)) if their < our => theirs.next(),
                _ => ours.next(),
            },
        };
        joined.extend(next.map(|(_, item)| item));
    }
}

/// Whether the items of both lists are maps. They must all have one type, and not be lists.
pub(super) fn holds_maps(original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else {
        let text = "no elements in any of the given slices";
        return Err(PatchError::Misfit(text.to_owned()));
    };
    if matches!(first, Value::Array(_)) {
        return Err(PatchError::NotApplicable(
            "lists of lists are not supported".to_owned(),
        ));
    }
    let ty = std::mem::discriminant(first);
    if *first == Value::Null || items.any(|item| std::mem::discriminant(item) != ty) {
        let (original, patch) = (print(original), print(patch));
        let text = format!("list element types are not identical: [{original} {patch}]");
        return Err(PatchError::Misfit(text));
    }
    Ok(matches!(first, Value::Object(_)))
}

/// A list as Go's `%v` prints it.
pub(super) fn print(items: &[Value]) -> String {
    let texts: Vec<String> = items.iter().map(go_text).collect();
    format!("[{}]", texts.join(" "))
}

fn no_merge_key(item: &Value, merge_key: &str) -> PatchError {
    let map = go_text(item);
    PatchError::Misfit(format!(
        "map: {map} does not contain declared merge key: {merge_key}"
    ))
}

pub(super) fn expected_map(item: &Value) -> PatchError {
    let received = go_type(item);
    PatchError::Misfit(format!(
        "expected a map[string]interface {{}}, but received a {received}"
    ))
}

pub(super) fn expected_list(value: &Value) -> PatchError {
    let received = go_type(value);
    PatchError::Misfit(format!(
        "expected a []interface {{}}, but received a {received}"
    ))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
