//! Which managers a write starts with.
//!
//! Contract: apimachinery `util/managedfields/fieldmanager.go`. Clients may edit managed fields
//! directly, as kubectl does when it moves to server-side apply; nothing they write there can make
//! a write fail.

use object::Value;

use super::ManagedFields;

/// The managers an update or patch starts with, given what the client left in
/// `metadata.managedFields` (`None` if absent) and the subresource it writes through.
///
/// An empty list, or a list of one empty entry, forgets everyone; entries that can be read replace
/// the live ones; anything else leaves the live ones in place. Writes through a subresource cannot
/// edit the entries at all.
pub fn starting_managers(
    live: ManagedFields,
    supplied: Option<&Value>,
    subresource: &str,
) -> ManagedFields {
    let Some(list @ Value::Array(entries)) = supplied else {
        return live;
    };
    if !subresource.is_empty() {
        return live;
    }
    match entries.as_slice() {
        [] => return ManagedFields::new(),
        [entry] if is_empty_entry(entry) => return ManagedFields::new(),
        _ => {}
    }
    match ManagedFields::decode(list) {
        Ok(managers) if !managers.is_empty() => managers,
        _ => live,
    }
}

fn is_empty_entry(entry: &Value) -> bool {
    let is_zero = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        value => value.is_null(),
    };
    match entry {
        Value::Object(map) => map.iter().all(|(_, value)| is_zero(value)),
        entry => entry.is_null(),
    }
}
