//! The value tree: what JSON, YAML and protobuf bodies become while a write works on them.
//!
//! Invariant: the entries of a [`Map`] are sorted bytewise by key and keys are unique, so two equal
//! objects have one form in memory and one on the wire. Absent, `null` and empty are three
//! different things; much of apply depends on that.

use std::cmp::Ordering;

use compact_str::CompactString;

/// A string of the tree; short ones are kept inline.
pub type Text = CompactString;

/// One node of the tree.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    /// An explicit `null`, which is not the same as an absent key.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number written without fraction or exponent that fits an `i64`.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(Text),
    /// A list.
    Array(Vec<Value>),
    /// A map with sorted, unique keys.
    Object(Map),
}

/// A map from string keys to values, held as a sorted vector.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Map {
    entries: Vec<(Text, Value)>,
}

/// Up to this many entries, walking finds a key sooner than jumping does.
const WALKED_ENTRIES_MAX: usize = 8;

/// The bytewise order of two texts. Most keys of an object differ in the first byte, which is
/// cheaper to see here than in a call that compares memory.
#[inline]
pub fn text_order(left: &str, right: &str) -> Ordering {
    match (left.as_bytes().first(), right.as_bytes().first()) {
        (Some(first), Some(other)) if first != other => first.cmp(other),
        _ => left.cmp(right),
    }
}

/// The first eight bytes of a text as a number. Texts are in the order of their heads; those with
/// equal heads need a look at the whole.
#[inline]
pub fn text_head(text: &str) -> u64 {
    let bytes = text.as_bytes();
    if let Some(head) = bytes.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let unused = 64 - 8 * bytes.len() as u32;
    // Pieces from both ends, which may overlap: where they do, they say the same.
    match (bytes.first_chunk(), bytes.last_chunk(), bytes) {
        (Some(first), Some(last), _) => {
            let [first, last] = [first, last].map(|half| u64::from(u32::from_be_bytes(*half)));
            first << 32 | last << unused
        }
        (_, _, [first, .., last]) => {
            let middle = bytes[bytes.len() / 2];
            u64::from(*first) << 56 | u64::from(middle) << 48 | u64::from(*last) << unused
        }
        (_, _, [only]) => u64::from(*only) << 56,
        _ => 0,
    }
}

impl Value {
    /// The map, if this is one.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    /// The map to change, if this is one.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    /// The list, if this is one.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The list to change, if this is one.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if this is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The number as a float, if this is an integer or a float.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// Whether this is an explicit `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The value under `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// The value under `key` to change, if this is a map that has it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.as_object_mut()?.get_mut(key)
    }

    /// Follows map keys from here: `value.at(&["metadata", "name"])`.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The string at the end of `path`.
    pub fn str_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }
}

impl Map {
    /// An empty map.
    pub fn new() -> Map {
        Map::default()
    }

    /// An empty map with room for `capacity` entries.
    pub fn with_capacity(capacity: usize) -> Map {
        Map {
            entries: Vec::with_capacity(capacity),
        }
    }

    /// Takes entries in any order; of equal keys the last one stays.
    pub fn from_entries(mut entries: Vec<(Text, Value)>) -> Map {
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.reverse();
            entries.dedup_by(|a, b| a.0 == b.0);
            entries.reverse();
        }
        Map { entries }
    }

    /// Takes entries whose keys ascend, each once, which only debug builds check.
    pub fn from_sorted(entries: Vec<(Text, Value)>) -> Map {
        debug_assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "keys ascend");
        Map { entries }
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        if self.entries.len() > WALKED_ENTRIES_MAX {
            return self
                .entries
                .binary_search_by(|(name, _)| text_order(name, key));
        }
        for (at, (name, _)) in self.entries.iter().enumerate() {
            match text_order(name, key) {
                Ordering::Less => {}
                Ordering::Equal => return Ok(at),
                Ordering::Greater => return Err(at),
            }
        }
        Err(self.entries.len())
    }

    /// Where `key` is. Whether two short texts are equal is cheaper to see than their order.
    fn position(&self, key: &str) -> Option<usize> {
        if self.entries.len() > WALKED_ENTRIES_MAX {
            return self.find(key).ok();
        }
        let first = key.as_bytes().first();
        self.entries.iter().position(|(name, _)| {
            name.len() == key.len() && name.as_bytes().first() == first && name.as_str() == key
        })
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).map(|at| &self.entries[at].1)
    }

    /// The value under `key`, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.position(key).map(|at| &mut self.entries[at].1)
    }

    /// Whether `key` is present, be it `null`.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Sets `key`, giving back what it held before.
    pub fn insert(&mut self, key: impl Into<Text> + AsRef<str>, value: Value) -> Option<Value> {
        match self.find(key.as_ref()) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key.into(), value));
                None
            }
        }
    }

    /// The value under `key`, made by `default` if it was absent.
    pub fn get_or_insert_with(&mut self, key: &str, default: impl FnOnce() -> Value) -> &mut Value {
        let at = match self.find(key) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (key.into(), default()));
                at
            }
        };
        &mut self.entries[at].1
    }

    /// The map under `key`; whatever else was there, or nothing, becomes an empty map.
    pub fn object_at(&mut self, key: &str) -> &mut Map {
        let value = self.get_or_insert_with(key, || Value::Object(Map::new()));
        if !matches!(value, Value::Object(_)) {
            *value = Value::Object(Map::new());
        }
        value.as_object_mut().expect("it was made a map just above")
    }

    /// Takes `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).map(|at| self.entries.remove(at).1)
    }

    /// Keeps the entries that `keep` approves of.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Text, &Value)> + DoubleEndedIterator {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The entries in key order, values to change.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&Text, &mut Value)> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Text> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// The entries as the vector they are kept in.
    pub fn into_entries(self) -> Vec<(Text, Value)> {
        self.entries
    }

    /// The entries as the sorted slice they are, for walks that pair two maps.
    pub fn entries(&self) -> &[(Text, Value)] {
        &self.entries
    }
}

impl IntoIterator for Map {
    type Item = (Text, Value);
    type IntoIter = std::vec::IntoIter<(Text, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl FromIterator<(Text, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Text, Value)>>(entries: I) -> Map {
        Map::from_entries(entries.into_iter().collect())
    }
}

macro_rules! value_from {
    ($($from:ty => |$it:ident| $value:expr),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from($it: $from) -> Value {
                $value
            }
        }
    )*};
}

value_from! {
    bool => |it| Value::Bool(it),
    i64 => |it| Value::Int(it),
    i32 => |it| Value::Int(it.into()),
    f64 => |it| Value::Float(it),
    &str => |it| Value::String(it.into()),
    String => |it| Value::String(it.into()),
    Text => |it| Value::String(it),
    Vec<Value> => |it| Value::Array(it),
    Map => |it| Value::Object(it),
}

/// Writes a tree the way JSON writes it: `value!({"a": [1, true, null, text]})`.
///
/// Keys are string literals or parenthesised expressions; values are literals, nested
/// braces and brackets, or any expression that converts [`Into`] a [`Value`].
#[macro_export]
macro_rules! value {
    (null) => { $crate::Value::Null };
    ([]) => { $crate::Value::Array(Vec::new()) };
    ([ $($item:tt),+ $(,)? ]) => { $crate::Value::Array(vec![ $( $crate::value!($item) ),+ ]) };
    ({}) => { $crate::Value::Object($crate::Map::new()) };
    ({ $($key:tt : $item:tt),+ $(,)? }) => {
        $crate::Value::Object($crate::Map::from_entries(vec![
            $( ($crate::Text::from($key), $crate::value!($item)) ),+
        ]))
    };
    ($other:expr) => { $crate::Value::from($other) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_and_the_last_of_equal_keys_stays() {
        let map = Map::from_entries(vec![
            ("b".into(), 1.into()),
            ("a".into(), 2.into()),
            ("b".into(), 3.into()),
        ]);
        assert_eq!(map.keys().map(Text::as_str).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(map.get("b"), Some(&Value::Int(3)));
    }

    #[test]
    fn heads_are_the_first_bytes_from_the_left() {
        let text = "abcdefghij";
        for length in 0..=text.len() {
            let mut head = [0; 8];
            let bytes = &text.as_bytes()[..length.min(8)];
            head[..bytes.len()].copy_from_slice(bytes);
            assert_eq!(
                text_head(&text[..length]),
                u64::from_be_bytes(head),
                "{length}"
            );
        }
    }

    #[test]
    fn the_macro_reads_like_json() {
        let name = "one";
        let built = value!({"metadata": {"name": name}, "list": [1, true, null, {}, []]});
        assert_eq!(built.str_at(&["metadata", "name"]), Some("one"));
        assert_eq!(
            built
                .get("list")
                .and_then(Value::as_array)
                .map(<[Value]>::len),
            Some(5)
        );
    }
}
