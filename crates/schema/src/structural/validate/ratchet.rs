//! Which old value a new one replaces, and whether it is the same.
//!
//! Contract: `apiserver/pkg/cel/common/equality.go`. Fields and entries of maps correspond by name,
//! items of list maps by key, items of other lists not at all. An undeclared field never
//! corresponds, so an object that holds one never counts as unchanged.

use std::cell::OnceCell;
use std::collections::HashMap;

use object::{Map, Value, json};

use crate::structural::Structural;

/// A new value beside the old one in its place.
pub struct Correlated<'a> {
    schema: &'a Structural,
    pair: Pair<'a>,
    unchanged: OnceCell<bool>,
}

/// The new value and the old one.
#[derive(Clone, Copy)]
enum Pair<'a> {
    Objects(&'a Map, &'a Map),
    Values(&'a Value, &'a Value),
}

impl<'a> Correlated<'a> {
    /// The two values of one place.
    pub fn new(schema: &'a Structural, new: &'a Value, old: &'a Value) -> Correlated<'a> {
        Correlated {
            schema,
            pair: Pair::Values(new, old),
            unchanged: OnceCell::new(),
        }
    }

    /// Two whole objects.
    pub fn objects(schema: &'a Structural, new: &'a Map, old: &'a Map) -> Correlated<'a> {
        Correlated {
            schema,
            pair: Pair::Objects(new, old),
            unchanged: OnceCell::new(),
        }
    }

    /// Whether nothing changed here or below.
    pub fn is_unchanged(&self) -> bool {
        *self.unchanged.get_or_init(|| match self.pair {
            Pair::Objects(new, old) => same_maps(self.schema, new, old),
            Pair::Values(new, old) => same(self.schema, new, old),
        })
    }

    /// The old value of a field, if the field is declared and stands in both.
    pub fn old_field(&self, name: &str) -> Option<&'a Value> {
        self.schema.key(name)?;
        match self.pair {
            Pair::Objects(_, old) => old.get(name),
            Pair::Values(_, old) => old.get(name),
        }
    }

    /// The old items by key, if this is a list map.
    pub fn old_items(&self) -> Option<Items<'a>> {
        if !self.schema.is_list_map() || self.schema.items.is_none() {
            return None;
        }
        match self.pair {
            Pair::Objects(..) => None,
            Pair::Values(_, old) => Some(Items::new(self.schema, old.as_array()?)),
        }
    }
}

/// The items of a list map by key.
pub struct Items<'a> {
    schema: &'a Structural,
    by_key: HashMap<Vec<u8>, &'a Value>,
}

impl<'a> Items<'a> {
    fn new(schema: &'a Structural, items: &'a [Value]) -> Items<'a> {
        let mut by_key = HashMap::with_capacity(items.len());
        for item in items {
            if let Some(key) = key(schema, item) {
                by_key.entry(key).or_insert(item);
            }
        }
        Items { schema, by_key }
    }

    /// The item with the keys of this one.
    pub fn get(&self, item: &Value) -> Option<&'a Value> {
        self.by_key.get(&key(self.schema, item)?).copied()
    }
}

fn key(schema: &Structural, item: &Value) -> Option<Vec<u8>> {
    let map = item.as_object()?;
    let mut text = Vec::new();
    for name in &schema.list_map_keys {
        match map.get(name) {
            Some(value) => json::write(value, &mut text),
            None => text.push(b'-'),
        }
        text.push(b',');
    }
    Some(text)
}

fn same(schema: &Structural, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(old_items)) => {
            if new.len() != old_items.len() {
                return false;
            }
            let Some(below) = schema.items.as_deref().filter(|_| schema.is_list_map()) else {
                return new == old_items;
            };
            let by_key = Items::new(schema, old_items);
            new.iter().all(|item| {
                let old = by_key.get(item);
                old.is_some_and(|old| same(below, item, old))
            })
        }
        (Value::Object(new), Value::Object(old)) => same_maps(schema, new, old),
        _ => new == old,
    }
}

fn same_maps(schema: &Structural, new: &Map, old: &Map) -> bool {
    new.len() == old.len()
        && new
            .iter()
            .all(|(key, value)| match (schema.key(key), old.get(key)) {
                (Some(below), Some(old)) => same(below, value, old),
                _ => false,
            })
}
