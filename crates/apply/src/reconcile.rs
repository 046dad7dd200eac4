//! Sets that were written under an older schema.
//!
//! Contract: structured-merge-diff `typed/reconcile_schema.go`. Where a list or map has become
//! atomic since, owning part of it becomes owning the whole. The other direction is left alone:
//! the owner keeps the container and nothing inside.

use schema::{Form, ListTopology, MapType, Scalar, TypeId, Types};

use crate::{
    path::PathElement,
    set::{Entry, FieldSet},
    typed::{Shape, Typing, first_shape},
};

/// The set in terms of the current schema; `None` if it is so already.
pub fn reconcile(set: &FieldSet, typing: Typing<'_>) -> Option<FieldSet> {
    let types = typing.types;
    let entries = set.entries();
    let mut open: Vec<(usize, Option<TypeId>)> = vec![(entries.len(), Some(typing.root))];
    let mut collapsed: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < entries.len() {
        while open.last().is_some_and(|(end, _)| *end <= at) {
            open.pop();
        }
        let entry = &entries[at];
        let end = at + entry.size as usize;
        if entry.size == 1 {
            at = end;
            continue;
        }
        let parent = open.last().and_then(|(_, ty)| *ty);
        let ty = parent.and_then(|parent| child_type(types, parent, &entry.element));
        match ty.and_then(|ty| first_shape(types.get(ty))) {
            Some(Shape::Map(map)) if map.atomic && !is_deduced(types, map) => {
                collapsed.push(at);
                at = end;
            }
            Some(Shape::List(list)) if list.topology == ListTopology::Atomic => {
                collapsed.push(at);
                at = end;
            }
            Some(Shape::Scalar(_)) | None => at = end,
            Some(_) => {
                open.push((end, ty));
                at += 1;
            }
        }
    }
    if collapsed.is_empty() {
        None
    } else {
        Some(collapse(entries, &collapsed))
    }
}

/// The type under `element`, if a value of type `parent` is looked into at all.
fn child_type(types: &Types, parent: TypeId, element: &PathElement) -> Option<TypeId> {
    match first_shape(types.get(parent))? {
        Shape::Map(map) if is_deduced(types, map) => None,
        Shape::Map(map) => match element {
            PathElement::Field(name) => map.field(name).map(|field| field.ty).or(map.element),
            _ => map.element,
        },
        Shape::List(list) => Some(list.element),
        Shape::Scalar(_) => None,
    }
}

/// Whether a map declares nothing and takes anything. Such maps carry no marks to reconcile with.
fn is_deduced(types: &Types, map: &MapType) -> bool {
    let Some(element) = map.element.map(|element| types.get(element)) else {
        return false;
    };
    map.fields.is_empty()
        && element.scalar == Some(Scalar::Untyped)
        && element.form != Form::Quantity
        && !element.map.as_ref().is_some_and(|map| map.atomic)
}

/// The set in which each entry of `at` is a member with nothing beneath.
fn collapse(entries: &[Entry], at: &[usize]) -> FieldSet {
    let mut out: Vec<Entry> = Vec::with_capacity(entries.len());
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut collapsed = at.iter().copied().peekable();
    let mut next = 0;
    loop {
        while let Some((end, start)) = open.last().copied() {
            if end > next {
                break;
            }
            open.pop();
            out[start].size =
                u32::try_from(out.len() - start).expect("a part of a set is no larger than it");
        }
        let Some(entry) = entries.get(next) else {
            break;
        };
        let end = next + entry.size as usize;
        if collapsed.next_if_eq(&next).is_some() {
            out.push(Entry {
                element: entry.element.clone(),
                size: 1,
                member: true,
            });
            next = end;
        } else {
            open.push((end, out.len()));
            out.push(entry.clone());
            next += 1;
        }
    }
    FieldSet::from_entries(out)
}
