//! Lists: data, made by the expression, or two of them joined.

use super::{Value, adapt, adapt_json};
use crate::evaluate::Fault;
use crate::shape::{ListKind, Shape, ShapeKind};
use std::sync::Arc;

/// Joined lists nest no deeper than this; then they are copied into one.
const JOINS_MAX: u32 = 64;

/// A list grows no longer than this: doubling one takes no time, but walking it does.
pub(crate) const ITEMS_MAX: u64 = 4_000_000;

/// A list. Joining two takes no copy, so that sums of lists cost what they are charged.
#[derive(Clone, Debug)]
pub enum List<'v> {
    /// Data and its shape.
    Data(&'v [object::Value], &'v Shape),
    /// Made by the expression.
    Owned(Arc<OwnedList<'v>>),
    /// One after the other.
    Joined(Arc<Joined<'v>>),
}

/// A list that the expression made.
#[derive(Clone, Debug)]
pub struct OwnedList<'v> {
    pub(crate) items: Vec<Value<'v>>,
    /// A union of sets is a set.
    pub(crate) kind: ListKind,
}

/// Two lists, the second after the first.
#[derive(Debug)]
pub struct Joined<'v> {
    first: List<'v>,
    second: List<'v>,
    len: u64,
    depth: u32,
}

impl<'v> List<'v> {
    pub(crate) fn owned(items: Vec<Value<'v>>) -> List<'v> {
        let kind = ListKind::Atomic;
        List::Owned(Arc::new(OwnedList { items, kind }))
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            List::Data(items, _) => items.len() as u64,
            List::Owned(list) => list.items.len() as u64,
            List::Joined(joined) => joined.len,
        }
    }

    pub(crate) fn kind(&self) -> &ListKind {
        match self {
            List::Data(_, shape) => match &shape.kind {
                ShapeKind::List(_, kind) => kind,
                _ => &ListKind::Atomic,
            },
            List::Owned(list) => &list.kind,
            List::Joined(_) => &ListKind::Atomic,
        }
    }

    /// The element at an index, if there is one.
    pub(crate) fn get(&self, mut index: u64) -> Result<Option<Value<'v>>, Fault> {
        let mut list = self;
        loop {
            match list {
                List::Joined(joined) if index < joined.first.len() => list = &joined.first,
                List::Joined(joined) => {
                    index -= joined.first.len();
                    list = &joined.second;
                }
                List::Data(items, shape) => {
                    let item = usize::try_from(index).ok().and_then(|at| items.get(at));
                    return item.map(|item| element(item, shape)).transpose();
                }
                List::Owned(list) => {
                    let item = usize::try_from(index)
                        .ok()
                        .and_then(|at| list.items.get(at));
                    return Ok(item.cloned());
                }
            }
        }
    }

    /// The items, each read as it is looked at.
    pub fn items(&self) -> impl Iterator<Item = Result<Value<'v>, crate::Error>> {
        self.iter().map(|item| item.map_err(crate::Error::from))
    }

    /// The elements in order.
    pub(crate) fn iter(&self) -> Iter<'v> {
        Iter {
            open: vec![self.clone()],
            at: 0,
        }
    }

    /// This list and the other after it; sets and maps are merged.
    pub(crate) fn join(&self, other: &List<'v>) -> Result<List<'v>, Fault> {
        match self.kind() {
            ListKind::Atomic => {}
            ListKind::Set => return self.union(other),
            ListKind::Map(keys) => return self.merge(other, &keys.clone()),
        }
        if self.len() == 0 {
            return Ok(other.clone());
        }
        if other.len() == 0 {
            return Ok(self.clone());
        }
        let depth = |list: &List<'v>| match list {
            List::Joined(joined) => joined.depth,
            _ => 0,
        };
        let depth = depth(self).max(depth(other)) + 1;
        let len = self.len().saturating_add(other.len());
        if len > ITEMS_MAX {
            return Err(Fault::OverLimit);
        }
        if depth > JOINS_MAX {
            let items: Result<Vec<_>, Fault> = self.iter().chain(other.iter()).collect();
            return Ok(List::owned(items?));
        }
        Ok(List::Joined(Arc::new(Joined {
            first: self.clone(),
            second: other.clone(),
            len,
            depth,
        })))
    }

    fn union(&self, other: &List<'v>) -> Result<List<'v>, Fault> {
        let mut items: Vec<Value<'v>> = self.iter().collect::<Result<_, _>>()?;
        for item in other.iter() {
            let item = item?;
            if !contains(&items, &item)? {
                items.push(item);
            }
        }
        let kind = ListKind::Set;
        Ok(List::Owned(Arc::new(OwnedList { items, kind })))
    }

    fn merge(&self, other: &List<'v>, keys: &Arc<[String]>) -> Result<List<'v>, Fault> {
        let mut items: Vec<Value<'v>> = self.iter().collect::<Result<_, _>>()?;
        for item in other.iter() {
            let item = item?;
            match find_by_keys(&items, &item, keys)? {
                Some(at) => items[at] = item,
                None => items.push(item),
            }
        }
        let kind = ListKind::Map(keys.clone());
        Ok(List::Owned(Arc::new(OwnedList { items, kind })))
    }
}

fn contains<'v>(items: &[Value<'v>], wanted: &Value<'v>) -> Result<bool, Fault> {
    for item in items {
        if super::equal(item, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The place of the item whose key properties are those of `wanted`.
pub(super) fn find_by_keys<'v>(
    items: &[Value<'v>],
    wanted: &Value<'v>,
    keys: &[String],
) -> Result<Option<usize>, Fault> {
    'items: for (at, item) in items.iter().enumerate() {
        for key in keys {
            let (a, b) = (key_of(item, key)?, key_of(wanted, key)?);
            let same = match (&a, &b) {
                (None, None) => true,
                (Some(a), Some(b)) => super::equal(a, b)?,
                _ => false,
            };
            if !same {
                continue 'items;
            }
        }
        return Ok(Some(at));
    }
    Ok(None)
}

fn key_of<'v>(item: &Value<'v>, key: &str) -> Result<Option<Value<'v>>, Fault> {
    match item {
        Value::Map(map) => map.raw(key),
        _ => Ok(None),
    }
}

fn element<'v>(item: &'v object::Value, shape: &'v Shape) -> Result<Value<'v>, Fault> {
    match &shape.kind {
        ShapeKind::List(items, _) => adapt(item, items),
        _ => Ok(adapt_json(item)),
    }
}

/// The elements of a list.
pub(crate) struct Iter<'v> {
    /// Lists still to be walked, the next one last.
    open: Vec<List<'v>>,
    at: usize,
}

impl<'v> Iterator for Iter<'v> {
    type Item = Result<Value<'v>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = match self.open.last()? {
                List::Joined(joined) => {
                    let joined = joined.clone();
                    self.open.pop();
                    self.open.push(joined.second.clone());
                    self.open.push(joined.first.clone());
                    continue;
                }
                List::Data(items, shape) => items.get(self.at).map(|item| element(item, shape)),
                List::Owned(list) => list.items.get(self.at).cloned().map(Ok),
            };
            if next.is_some() {
                self.at += 1;
                return next;
            }
            self.at = 0;
            self.open.pop();
        }
    }
}
