//! Strategic merge patch: a merge patch that knows from the type how lists merge.
//!
//! Contract: apimachinery `util/strategicpatch/patch.go`. Maps merge key by key and `null`
//! deletes. A list whose field says so merges by the field's key or, of scalars, as a set; any
//! other list is replaced. Directives in the patch say the rest:
//!
//! * `$patch: replace | delete` in a map, or in an item of a list;
//! * `$retainKeys` lists all keys that a map keeps;
//! * `$deleteFromPrimitiveList/FIELD` lists scalars to take out of a list;
//! * `$setElementOrder/FIELD` gives the order of a list.

mod list;
mod order;

use object::{Map, Text, Value};
use schema::{Field, Type, TypeId, Types};

use super::{PatchError, go_text, json_type};

/// A patch that merges deeper than this is refused, so that no stack overflows. Only recursive
/// types can get there: below a dictionary or free-form JSON nothing merges.
pub const MERGE_DEPTH_MAX: usize = 512;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

const BAD_PRIMITIVE_LIST: PatchError =
    PatchError::BadFormat("invalid patch format of primitive list");
const BAD_RETAIN_KEYS: PatchError = PatchError::BadFormat("invalid patch format of retainKeys");
const BAD_ORDER: PatchError = PatchError::BadFormat("invalid patch format of setElementOrder list");

/// Applies a strategic merge patch to a document of the type `root`.
pub fn apply(
    types: &Types,
    root: TypeId,
    document: Value,
    patch: &Value,
) -> Result<Value, PatchError> {
    let patch = match patch {
        Value::Object(patch) => patch.clone(),
        Value::Null => return Ok(document),
        other => {
            return Err(PatchError::Undecodable(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json_type(other)
            )));
        }
    };
    let document = match document {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let merge = Merge { types };
    merge.map(root, document, patch, 0).map(Value::Object)
}

/// One run of the merge.
#[derive(Clone, Copy)]
struct Merge<'t> {
    types: &'t Types,
}

impl<'t> Merge<'t> {
    fn map(
        self,
        ty: TypeId,
        mut original: Map,
        mut patch: Map,
        depth: usize,
    ) -> Result<Map, PatchError> {
        if depth > MERGE_DEPTH_MAX {
            let limit = MERGE_DEPTH_MAX;
            return Err(PatchError::Misfit(format!(
                "the patch merges deeper than {limit} levels"
            )));
        }
        if let Some(directive) = patch.remove(PATCH) {
            return replace_or_delete(directive, patch);
        }
        if let Some(keys) = patch.remove(RETAIN_KEYS) {
            retain_keys(&mut original, &patch, &keys)?;
        }
        let mut directives = take_directives(&mut patch);
        directives.sort_by_key(|(key, _)| !key.starts_with(SET_ORDER));
        let mut gone = Vec::new();
        for (key, value) in directives {
            if key.starts_with(SET_ORDER) {
                let field = name_after(&key, SET_ORDER).ok_or(BAD_ORDER)?;
                self.ordered_list(ty, &mut original, &mut patch, field, value, depth)?;
            } else {
                let field = name_after(&key, DELETE_FROM).ok_or(BAD_PRIMITIVE_LIST)?;
                match original.get_mut(field) {
                    Some(_) if value == Value::Null => gone.push(Text::from(field)),
                    Some(here) => self.delete_from_list(ty, field, here, value, depth)?,
                    None => {}
                }
            }
        }
        drop_keys(&mut original, gone);
        self.entries(ty, original, patch, depth)
    }

    /// Merges what is left of a patch once its directives are done.
    fn entries(
        self,
        ty: TypeId,
        mut original: Map,
        patch: Map,
        depth: usize,
    ) -> Result<Map, PatchError> {
        let mut gone = Vec::new();
        let mut added = Vec::new();
        for (key, value) in patch {
            let here = original.get_mut(&key);
            match (here, value) {
                (None, Value::Null) => {}
                (Some(_), Value::Null) => gone.push(key),
                (None, value) => {
                    if let Some(value) = cleaned(value, Nulls::Drop) {
                        added.push((key, value));
                    }
                }
                (Some(here), value) => {
                    let before = std::mem::take(here);
                    match self.value(ty, &key, before, value, depth)? {
                        Some(after) => *here = after,
                        None => gone.push(key),
                    }
                }
            }
        }
        drop_keys(&mut original, gone);
        if added.is_empty() {
            return Ok(original);
        }
        // One merge of two sorted runs: inserting one by one would take quadratic time.
        Ok(original.into_iter().chain(added).collect())
    }

    /// Merges a value into the one that stands under the same key; `None` takes the key out.
    fn value(
        self,
        ty: TypeId,
        key: &str,
        original: Value,
        patch: Value,
        depth: usize,
    ) -> Result<Option<Value>, PatchError> {
        match (original, patch) {
            (Value::Object(original), Value::Object(patch)) => {
                let field = self.field(ty, key)?;
                if field.patch.replace {
                    return Ok(Some(Value::Object(patch)));
                }
                self.map(field.ty, original, patch, depth + 1)
                    .map(|map| Some(Value::Object(map)))
            }
            (Value::Array(original), Value::Array(patch)) => {
                let (field, element) = self.list_field(ty, key)?;
                if !field.patch.merge {
                    return Ok(Some(Value::Array(patch)));
                }
                let items = self.list(element, field, original, patch, depth)?;
                Ok(Some(Value::Array(items)))
            }
            (_, patch) => Ok(cleaned(patch, Nulls::Drop)),
        }
    }

    fn delete_from_list(
        self,
        ty: TypeId,
        key: &str,
        here: &mut Value,
        scalars: Value,
        depth: usize,
    ) -> Result<(), PatchError> {
        if let (Value::Array(items), Value::Array(scalars)) = (&mut *here, scalars) {
            let (field, element) = self.list_field(ty, key)?;
            let items = std::mem::take(items);
            *here = Value::Array(self.list_without(element, field, items, scalars, depth)?);
        }
        Ok(())
    }

    /// The declared field of a struct. Upstream cannot merge below anything but a struct.
    fn field(self, ty: TypeId, key: &str) -> Result<&'t Field, PatchError> {
        let id = ty;
        let ty = self.types.get(id);
        match &ty.map {
            Some(shape) if shape.element.is_none() => shape.field(key).ok_or_else(|| {
                let owner = match self.types.name_of(id) {
                    Some(name) => format!(" {}", name.rsplit('.').next().unwrap_or_default()),
                    None => String::new(),
                };
                let name = object::field::quote(key);
                PatchError::Misfit(format!(
                    "unable to find api field in struct{owner} for the json field {name}"
                ))
            }),
            _ => Err(PatchError::Misfit(format!(
                "merging an object in json but data type is not struct, instead is: {}",
                go_kind(ty)
            ))),
        }
    }

    /// The declared list of a struct, and the type of its items.
    fn list_field(self, ty: TypeId, key: &str) -> Result<(&'t Field, TypeId), PatchError> {
        let field = self.field(ty, key)?;
        let list = self.types.get(field.ty).list.as_ref().ok_or_else(|| {
            let kind = go_kind(self.types.get(ty));
            PatchError::Misfit(format!("expected slice or array type, but got: {kind}"))
        })?;
        let element = self.types.get(list.element);
        if element.list.is_some() && element.map.is_none() {
            return Err(PatchError::Misfit("unexpected slice of slice".to_owned()));
        }
        Ok((field, list.element))
    }
}

fn go_kind(ty: &Type) -> &'static str {
    match (&ty.map, &ty.list) {
        (Some(shape), _) if shape.element.is_none() => "struct",
        (Some(_), _) => "map",
        (None, Some(_)) => "slice",
        (None, None) => "string",
    }
}

fn replace_or_delete(directive: Value, mut patch: Map) -> Result<Map, PatchError> {
    match directive.as_str() {
        Some("replace") => Ok(patch),
        Some("delete") => Ok(Map::new()),
        _ => {
            patch.insert(PATCH, directive);
            Err(unknown_directive(patch))
        }
    }
}

fn unknown_directive(patch: Map) -> PatchError {
    let directive = patch.get(PATCH).map(go_text).unwrap_or_default();
    let map = go_text(&Value::Object(patch));
    PatchError::Misfit(format!("unknown patch type: {directive} in map: {map}"))
}

/// Keeps only the listed keys, all of which the patch must list if it sets them.
fn retain_keys(original: &mut Map, patch: &Map, keys: &Value) -> Result<(), PatchError> {
    let keys = keys.as_array().ok_or(BAD_RETAIN_KEYS)?;
    let mut names: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    let is_listed = |key: &str| names.binary_search(&key).is_ok();
    for (key, value) in patch.iter() {
        let is_directive = key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
        if *value != Value::Null && !is_directive && !is_listed(key) {
            return Err(BAD_RETAIN_KEYS);
        }
    }
    original.retain(|key, _| is_listed(key));
    Ok(())
}

/// Takes the directives about lists out of a patch.
fn take_directives(patch: &mut Map) -> Vec<(Text, Value)> {
    let mut directives = Vec::new();
    patch.retain(|key, value| {
        let taken = key.starts_with(SET_ORDER) || key.starts_with(DELETE_FROM);
        if taken {
            directives.push((Text::from(key), std::mem::take(value)));
        }
        !taken
    });
    directives
}

/// The field that a directive such as `$setElementOrder/containers` is about.
fn name_after<'k>(key: &'k str, prefix: &str) -> Option<&'k str> {
    key.strip_prefix(prefix)?.strip_prefix('/')
}

/// Takes keys out in one pass.
fn drop_keys(map: &mut Map, mut keys: Vec<Text>) {
    if !keys.is_empty() {
        keys.sort_unstable();
        map.retain(|key, _| {
            keys.binary_search_by(|gone| gone.as_str().cmp(key))
                .is_err()
        });
    }
}

/// What becomes of the nulls in a value that is taken over from the patch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Keep,
    Drop,
}

/// A value of the patch without what carries a `$patch` directive: there is nothing yet that the
/// directive could act on. `None` if nothing is left.
fn cleaned(mut value: Value, nulls: Nulls) -> Option<Value> {
    let has_directive = |value: &Value| value.get(PATCH).is_some();
    if has_directive(&value) {
        return None;
    }
    let mut waiting = vec![&mut value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(map) => {
                map.retain(|_, value| {
                    let dropped_null = nulls == Nulls::Drop && *value == Value::Null;
                    !dropped_null && !has_directive(value)
                });
                waiting.extend(map.iter_mut().map(|(_, value)| value));
            }
            Value::Array(items) => {
                items.retain(|item| !has_directive(item));
                waiting.extend(items.iter_mut());
            }
            _ => {}
        }
    }
    Some(value)
}

#[cfg(test)]
pub(super) mod tests;
