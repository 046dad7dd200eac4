//! Metadata: what the server sets, keeps and compares.

use object::{Map, Text, Value};

/// The metadata of an object, empty if it has none.
pub(crate) fn meta(object: &Map) -> &Map {
    static NONE: std::sync::LazyLock<Map> = std::sync::LazyLock::new(Map::new);
    object
        .get("metadata")
        .and_then(Value::as_object)
        .unwrap_or(&NONE)
}

/// The metadata of an object, to change.
pub(crate) fn meta_mut(object: &mut Map) -> &mut Map {
    object.object_at("metadata")
}

/// Leaves out of the metadata what is empty, as its type does wherever it is printed.
pub(crate) fn drop_empty(object: &mut Map) {
    meta_mut(object).retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Int(number) => *number != 0,
        Value::Bool(_) | Value::Float(_) => true,
    });
}

/// A text of the metadata, empty if it is absent.
pub(crate) fn meta_text<'a>(object: &'a Map, field: &str) -> &'a str {
    meta(object)
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// What clients cannot set on a new object.
const WIPED_ON_CREATE: &[&str] = &[
    "creationTimestamp",
    "uid",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];

/// Removes from a new object what only the server sets.
pub(crate) fn wipe_system_fields(object: &mut Map) {
    let metadata = meta_mut(object);
    for field in WIPED_ON_CREATE {
        metadata.remove(field);
    }
}

/// Gives a new object its identity.
pub(crate) fn fill_system_fields(object: &mut Map, uid: String, now: Text) {
    let metadata = meta_mut(object);
    metadata.insert("uid", Value::from(uid));
    metadata.insert("creationTimestamp", Value::String(now));
}

/// What an update cannot take away or change: it is taken from the stored object.
pub(crate) fn keep_system_fields(new: &mut Map, old: &Map) {
    let (old, new) = (meta(old), meta_mut(new));
    for field in ["generation", "creationTimestamp"] {
        copy(new, old, field);
    }
    if new
        .get("uid")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        copy(new, old, "uid");
    }
    if old.contains_key("deletionTimestamp") {
        copy(new, old, "deletionTimestamp");
    }
    if !new.contains_key("deletionGracePeriodSeconds") {
        copy(new, old, "deletionGracePeriodSeconds");
    }
}

fn copy(to: &mut Map, from: &Map, field: &str) {
    match from.get(field) {
        Some(value) => {
            to.insert(field, value.clone());
        }
        None => {
            to.remove(field);
        }
    }
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Map) -> &[Value] {
    meta(object)
        .get("finalizers")
        .and_then(Value::as_array)
        .unwrap_or_default()
}

/// Removes repeated owner references; gives the warning that they deserve.
pub(crate) fn dedup_owner_references(object: &mut Map) -> Option<String> {
    let metadata = object.get_mut("metadata")?;
    let references = metadata.get_mut("ownerReferences")?.as_array_mut()?;
    let mut seen: Vec<Value> = Vec::with_capacity(references.len());
    let mut repeated = Vec::new();
    references.retain(|reference| {
        if seen.contains(reference) {
            let uid = reference.str_at(&["uid"]).unwrap_or_default().to_owned();
            if !repeated.contains(&uid) {
                repeated.push(uid);
            }
            return false;
        }
        seen.push(reference.clone());
        true
    });
    let uids = repeated.join(", ");
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {uids}"
        )
    })
}
