//! Takes paths out of a value.
//!
//! Contract: structured-merge-diff `typed/remove.go`. A map or list that is looked into and ends up
//! empty, was empty before, or is atomic becomes null; the entry that held it stays.

use std::cmp::Ordering;

use object::{Map, Text, Value};
use schema::{ListTopology, ListType, TypeId, Types};

use crate::{
    path::{PathElement, Step},
    set::{Entry, FieldSet},
    typed::{Keys, Shape, Typing, identity, shape},
};

/// The value without the paths of `set`.
pub fn remove_items(value: Value, set: &FieldSet, typing: Typing<'_>) -> Value {
    if set.is_empty() && !is_empty(&value) {
        return value;
    }
    let types = typing.types;
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut done = begin(types, value, typing.root, set.entries(), &mut open);
    loop {
        match (done.take(), open.last_mut()) {
            (Some(value), None) => return value,
            (Some(value), Some(level)) => level.accept(value),
            (None, None) => unreachable!("a level is open until the root is done"),
            (None, Some(level)) => match level.next(types) {
                Some(Task { value, ty, set }) => done = begin(types, value, ty, set, &mut open),
                None => {
                    let level = open.pop().expect("just looked at");
                    done = Some(level.finish());
                }
            },
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Gives what is left of a value, or opens a level that will.
fn begin<'a>(
    types: &'a Types,
    value: Value,
    ty: TypeId,
    set: &'a [Entry],
    open: &mut Vec<Open<'a>>,
) -> Option<Value> {
    match (shape(types.get(ty), &value), value) {
        (Some(Shape::Map(map)), Value::Object(entries)) if !map.atomic => {
            open.push(Open {
                set,
                rest: Rest::Map {
                    out: Vec::with_capacity(entries.len()),
                    entries: entries.into_iter(),
                    keys: Keys::new(map),
                    pending: None,
                },
            });
            None
        }
        (Some(Shape::List(list)), Value::Array(items)) if list.topology != ListTopology::Atomic => {
            let rest = Rest::List {
                out: Vec::with_capacity(items.len()),
                items: items.into_iter(),
                list,
                index: index_of(set),
            };
            open.push(Open { set, rest });
            None
        }
        (Some(Shape::Scalar(_)), value) => Some(value),
        _ => Some(Value::Null),
    }
}

/// The positions of sibling entries, for lookups in list order.
fn index_of(set: &[Entry]) -> Vec<usize> {
    let mut positions = Vec::new();
    let mut at = 0;
    while at < set.len() {
        positions.push(at);
        at += set[at].size as usize;
    }
    positions
}

struct Task<'a> {
    value: Value,
    ty: TypeId,
    set: &'a [Entry],
}

/// A map or list that is being taken apart, with the part of the set that belongs to it.
struct Open<'a> {
    set: &'a [Entry],
    rest: Rest<'a>,
}

enum Rest<'a> {
    Map {
        entries: std::vec::IntoIter<(Text, Value)>,
        keys: Keys<'a>,
        out: Vec<(Text, Value)>,
        /// The key of the entry that is being looked into.
        pending: Option<Text>,
    },
    List {
        items: std::vec::IntoIter<Value>,
        list: &'a ListType,
        out: Vec<Value>,
        index: Vec<usize>,
    },
}

impl<'a> Open<'a> {
    fn next(&mut self, types: &'a Types) -> Option<Task<'a>> {
        match &mut self.rest {
            Rest::Map {
                entries,
                keys,
                out,
                pending,
            } => loop {
                let (key, value) = entries.next()?;
                let set = match advance(&mut self.set, &key) {
                    None => {
                        out.push((key, value));
                        continue;
                    }
                    Some([entry, ..]) if entry.member => continue,
                    Some(subtree) => &subtree[1..],
                };
                match keys.ty(&key) {
                    Some(ty) => {
                        *pending = Some(key);
                        return Some(Task { value, ty, set });
                    }
                    None => out.push((key, value)),
                }
            },
            Rest::List {
                items,
                list,
                out,
                index,
            } => loop {
                let item = items.next()?;
                let found = identity(types, list, &item).ok().and_then(|step| {
                    let at = index
                        .binary_search_by(|at| {
                            step.compare_element(&self.set[*at].element).reverse()
                        })
                        .ok()?;
                    Some(index[at])
                });
                let Some(at) = found else {
                    out.push(item);
                    continue;
                };
                let subtree = &self.set[at..at + self.set[at].size as usize];
                if !subtree[0].member {
                    return Some(Task {
                        value: item,
                        ty: list.element,
                        set: &subtree[1..],
                    });
                }
            },
        }
    }

    fn accept(&mut self, value: Value) {
        match &mut self.rest {
            Rest::Map { out, pending, .. } => {
                let key = pending
                    .take()
                    .expect("a value is accepted for the entry given");
                out.push((key, value));
            }
            Rest::List { out, .. } => out.push(value),
        }
    }

    fn finish(self) -> Value {
        match self.rest {
            Rest::Map { out, .. } if !out.is_empty() => Value::Object(Map::from_entries(out)),
            Rest::List { out, .. } if !out.is_empty() => Value::Array(out),
            _ => Value::Null,
        }
    }
}

/// Moves past the entries before `key` and gives the subtree of `key` itself.
fn advance<'a>(set: &mut &'a [Entry], key: &Text) -> Option<&'a [Entry]> {
    while let Some(entry) = set.first() {
        let PathElement::Field(_) = entry.element else {
            return None;
        };
        match Step::Field(key).compare_element(&entry.element) {
            Ordering::Less => return None,
            Ordering::Equal => return Some(&set[..entry.size as usize]),
            Ordering::Greater => *set = &set[entry.size as usize..],
        }
    }
    None
}
