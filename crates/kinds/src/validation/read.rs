//! Reading fields of a decoded tree: what is absent has its zero value.

use object::{Map, Value};

/// Typed looks at the fields of a map.
pub(crate) trait Read {
    /// The string under `key`; empty if there is none.
    fn text(&self, key: &str) -> &str;
    /// The integer under `key`.
    fn int(&self, key: &str) -> Option<i64>;
    /// The boolean under `key`; false if there is none.
    fn flag(&self, key: &str) -> bool;
    /// The boolean under `key`, if there is one.
    fn choice(&self, key: &str) -> Option<bool>;
    /// The list under `key`; empty if there is none.
    fn list(&self, key: &str) -> &[Value];
    /// The map under `key`.
    fn object(&self, key: &str) -> Option<&Map>;
    /// The map under `key`; empty if there is none.
    fn object_or_empty(&self, key: &str) -> &Map;
    /// Whether `key` holds anything but `null`.
    fn has(&self, key: &str) -> bool;
    /// The value under `key`; `null` if there is none.
    fn value(&self, key: &str) -> &Value;
}

static NULL: Value = Value::Null;

impl Read for Map {
    fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn int(&self, key: &str) -> Option<i64> {
        self.get(key)?.as_int()
    }

    fn flag(&self, key: &str) -> bool {
        self.choice(key).unwrap_or_default()
    }

    fn choice(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }

    fn list(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).unwrap_or_default()
    }

    fn object(&self, key: &str) -> Option<&Map> {
        self.get(key)?.as_object()
    }

    fn object_or_empty(&self, key: &str) -> &Map {
        self.object(key).unwrap_or(empty())
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| !value.is_null())
    }

    fn value(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&NULL)
    }
}

/// A map without entries, to borrow.
pub(crate) fn empty() -> &'static Map {
    static EMPTY: std::sync::LazyLock<Map> = std::sync::LazyLock::new(Map::new);
    &EMPTY
}

/// The items of a list of maps with their positions.
pub(crate) fn maps(list: &[Value]) -> impl Iterator<Item = (usize, &Map)> {
    list.iter()
        .enumerate()
        .map(|(index, value)| (index, value.as_object().unwrap_or(empty())))
}

/// The items of a list of strings with their positions.
pub(crate) fn texts(list: &[Value]) -> impl Iterator<Item = (usize, &str)> {
    list.iter()
        .enumerate()
        .map(|(index, value)| (index, value.as_str().unwrap_or_default()))
}
