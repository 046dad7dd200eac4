//! The few moves that every defaulting and preparing function is made of.
//!
//! A field is unset when its key is absent or `null`; a field that upstream keeps by value is also
//! unset when it holds its zero (`""`, `0`). Lists and maps of the wrong shape are left alone: the
//! decoder has refused them already.

use object::{Map, Value};

/// Whether `key` is absent or `null`.
pub(crate) fn is_unset(map: &Map, key: &str) -> bool {
    map.get(key).is_none_or(Value::is_null)
}

/// Sets a field that is unset.
pub(crate) fn fill(map: &mut Map, key: &str, value: impl Into<Value>) {
    if is_unset(map, key) {
        map.insert(key, value.into());
    }
}

/// Sets a text that is unset or empty.
pub(crate) fn fill_text(map: &mut Map, key: &str, value: &str) {
    if text(map, key).is_empty() {
        map.insert(key, value.into());
    }
}

/// Sets a number that is unset or zero.
pub(crate) fn fill_number(map: &mut Map, key: &str, value: i64) {
    if number(map, key) == 0 {
        map.insert(key, value.into());
    }
}

/// Sets every one of these texts that is unset or empty.
pub(crate) fn fill_texts(map: &mut Map, entries: &[(&str, &str)]) {
    for (key, value) in entries {
        fill_text(map, key, value);
    }
}

/// The text under `key`; empty when there is none.
pub(crate) fn text<'a>(map: &'a Map, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The text at the end of a path of maps; empty when there is none.
pub(crate) fn text_at<'a>(map: &'a Map, path: &[&str]) -> &'a str {
    at(map, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number under `key`; zero when there is none.
pub(crate) fn number(map: &Map, key: &str) -> i64 {
    map.get(key).and_then(Value::as_int).unwrap_or_default()
}

/// Whether `key` holds `true`.
pub(crate) fn is_true(map: &Map, key: &str) -> bool {
    map.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// The value at the end of a path of maps, unless it is `null`.
pub(crate) fn at<'a>(map: &'a Map, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    map.get(first)?.at(rest).filter(|value| !value.is_null())
}

/// The list under `key`; empty when there is none.
pub(crate) fn list<'a>(map: &'a Map, key: &str) -> &'a [Value] {
    map.get(key).and_then(Value::as_array).unwrap_or_default()
}

/// The maps of the list under `key`.
pub(crate) fn items<'a>(map: &'a Map, key: &str) -> impl Iterator<Item = &'a Map> {
    list(map, key).iter().filter_map(Value::as_object)
}

/// The map under `key`, if there is one.
pub(crate) fn object<'a>(map: &'a Map, key: &str) -> Option<&'a Map> {
    map.get(key).and_then(Value::as_object)
}

/// Changes every map of the list under `key`.
pub(crate) fn each(map: &mut Map, key: &str, mut change: impl FnMut(&mut Map)) {
    let Some(items) = map.get_mut(key).and_then(Value::as_array_mut) else {
        return;
    };
    items
        .iter_mut()
        .filter_map(Value::as_object_mut)
        .for_each(&mut change);
}

/// Changes the map under `key`, if there is one.
pub(crate) fn within(map: &mut Map, key: &str, change: impl FnOnce(&mut Map)) {
    if let Some(child) = map.get_mut(key).and_then(Value::as_object_mut) {
        change(child);
    }
}

/// Gives `key` the value it has in `from`, or takes it out when it has none there.
pub(crate) fn copy(to: &mut Map, from: &Map, key: &str) {
    match from.get(key) {
        Some(value) => {
            to.insert(key, value.clone());
        }
        None => {
            to.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    #[test]
    fn what_counts_as_unset() {
        let Value::Object(mut map) =
            value!({"null": null, "empty": "", "zero": 0, "said": "yes", "one": 1})
        else {
            unreachable!("the literal is a map")
        };
        for key in ["absent", "null", "empty", "said"] {
            fill_text(&mut map, key, "new");
        }
        for key in ["zero", "one"] {
            fill_number(&mut map, key, 7);
        }
        let expected = value!({"absent": "new", "null": "new", "empty": "new", "zero": 7,
            "said": "yes", "one": 1});
        assert_eq!(Value::Object(map), expected);
    }

    #[test]
    fn an_empty_text_by_pointer_is_set() {
        let Value::Object(mut map) = value!({"empty": "", "null": null}) else {
            unreachable!("the literal is a map")
        };
        fill(&mut map, "empty", "new");
        fill(&mut map, "null", "new");
        assert_eq!(Value::Object(map), value!({"empty": "", "null": "new"}));
    }
}
