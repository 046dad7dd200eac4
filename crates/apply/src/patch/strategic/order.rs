//! `$setElementOrder`: a list merged and then put in the order that the patch gives.

use object::{Map, Value};
use schema::TypeId;

use super::list::{self, Key, expected_list, expected_map};
use super::{Merge, Nulls, PATCH, PatchError, cleaned};

impl Merge<'_> {
    /// Merges the list under `field` of both maps and leaves it, ordered, in `original`; the patch
    /// loses it.
    pub(super) fn ordered_list(
        self,
        ty: TypeId,
        original: &mut Map,
        patch: &mut Map,
        field: &str,
        order: Value,
        depth: usize,
    ) -> Result<(), PatchError> {
        let Value::Array(order) = order else {
            return Err(expected_list(&order));
        };
        let live = list_under(original.get(field))?;
        let wanted = list_under(patch.get(field))?;
        let (declared, element) = self.list_field(ty, field)?;
        let merge_key = &declared.patch.merge_key;
        check_order(wanted.unwrap_or_default(), &order, merge_key)?;
        if live.is_none() && wanted.is_none() {
            return Ok(());
        }
        list::holds_maps(live.unwrap_or_default(), wanted.unwrap_or_default())?;
        let wanted = patch.remove(field).map(into_list);
        let live = original
            .get_mut(field)
            .map(|live| into_list(std::mem::take(live)));
        let server_order = match &live {
            Some(live) => list::places(live.iter().filter_map(|item| key_of(item, merge_key))),
            None => list::Places::new(),
        };
        let merged = match (live, wanted) {
            (Some(live), None) => live,
            (None, Some(wanted)) => cleaned(Value::Array(wanted), Nulls::Keep)
                .map(into_list)
                .unwrap_or_default(),
            (Some(live), Some(wanted)) if declared.patch.merge => {
                self.list(element, declared, live, wanted, depth)?
            }
            (_, wanted) => wanted.unwrap_or_default(),
        };
        let merged = list::keyed(merged, merge_key)?;
        let order = list::keyed(order, merge_key)?;
        let wanted_order = list::places(order.into_iter().map(|(key, _)| key));
        let items = list::in_order(merged, &wanted_order, &server_order);
        original.insert(field, Value::Array(items));
        Ok(())
    }
}

fn key_of(item: &Value, merge_key: &str) -> Option<Key> {
    Key::of_item(item, merge_key).ok()
}

fn list_under(value: Option<&Value>) -> Result<Option<&[Value]>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(expected_list(other)),
    }
}

fn into_list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// Checks that the order names every item of the patch's list, in the order in which they stand
/// there. Items with a directive need not be named.
fn check_order(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if let Some(odd) = patch
        .iter()
        .find(|item| !merge_key.is_empty() && !is_map(item))
    {
        return Err(expected_map(odd));
    }
    let mut named = order.iter();
    for item in patch.iter().filter(|item| item.get(PATCH).is_none()) {
        let key = Key::of_item(item, merge_key)?;
        loop {
            let Some(next) = named.next() else {
                return Err(wrong_order(patch, order));
            };
            if Key::of_item(next, merge_key)? == key {
                break;
            }
        }
    }
    Ok(())
}

fn is_map(item: &Value) -> bool {
    matches!(item, Value::Object(_))
}

fn wrong_order(patch: &[Value], order: &[Value]) -> PatchError {
    let (patch, order) = (list::print(patch), list::print(order));
    PatchError::Misfit(format!(
        "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
    ))
}
