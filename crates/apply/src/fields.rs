//! What an applied configuration owns.
//!
//! Contract: structured-merge-diff `typed/tofieldset.go`. Leaves are owned: scalars, atomic lists
//! and maps, nulls and empty maps; so are list items and map entries. Declared structs and lists
//! between them are not, which is how two managers can own fields of one struct.

use std::slice;

use object::{Text, Value};
use schema::{ListTopology, TypeId, Types};

use crate::{
    path::{Levels, Step},
    set::{FieldSet, SetBuilder},
    typed::{Item, Keys, Shape, Typing, shape, sorted_items},
};

/// The paths that an applied `value` owns.
///
/// The value must be valid for its type; what is not is owned as a whole.
pub fn field_set(value: &Value, typing: Typing<'_>) -> FieldSet {
    let mut walk = Walk {
        types: typing.types,
        path: Levels::new(),
        out: SetBuilder::default(),
    };
    let mut open: Levels<Open<'_>> = Levels::new();
    open.extend(walk.enter(value, typing.root));
    while let Some(level) = open.last_mut() {
        let Some(child) = level.next() else {
            open.pop();
            walk.leave();
            continue;
        };
        walk.path.push(child.step);
        if child.owned {
            walk.out.insert(&walk.path);
        }
        match child.ty.and_then(|ty| walk.enter(child.value, ty)) {
            Some(below) => open.push(below),
            None => walk.leave(),
        }
    }
    walk.out.finish()
}

struct Walk<'a> {
    types: &'a Types,
    path: Levels<Step<'a>>,
    out: SetBuilder,
}

impl<'a> Walk<'a> {
    /// Owns a leaf, or gives what is to be visited beneath.
    fn enter(&mut self, value: &'a Value, ty: TypeId) -> Option<Open<'a>> {
        match (shape(self.types.get(ty), value)?, value) {
            (Shape::Map(map), Value::Object(entries)) if !map.atomic => Some(Open::Map {
                entries: entries.entries().iter(),
                keys: Keys::new(map),
            }),
            (Shape::List(list), Value::Array(items)) if list.topology != ListTopology::Atomic => {
                let items = sorted_items(self.types, list, items).ok()?;
                Some(Open::List {
                    items: items.into_iter().peekable(),
                    element: list.element,
                })
            }
            (Shape::Scalar(_), _) => {
                self.out.insert(&self.path);
                None
            }
            (Shape::Map(map), _) if map.atomic => {
                self.out.insert(&self.path);
                None
            }
            (Shape::List(list), _) if list.topology == ListTopology::Atomic => {
                self.out.insert(&self.path);
                None
            }
            _ => None,
        }
    }

    fn leave(&mut self) {
        self.path.pop();
        self.out.leave(self.path.len());
    }
}

/// What is left to visit of a map or list.
enum Open<'a> {
    Map {
        entries: slice::Iter<'a, (Text, Value)>,
        keys: Keys<'a>,
    },
    List {
        items: std::iter::Peekable<std::vec::IntoIter<Item<'a>>>,
        element: TypeId,
    },
}

struct Child<'a> {
    step: Step<'a>,
    value: &'a Value,
    /// `None` for what is not looked into.
    ty: Option<TypeId>,
    /// Whether the path itself is owned, whatever lies beneath.
    owned: bool,
}

impl<'a> Open<'a> {
    fn next(&mut self) -> Option<Child<'a>> {
        match self {
            Open::Map { entries, keys } => {
                let (key, value) = entries.next()?;
                let field = keys.field(key);
                let empty = match value {
                    Value::Null => true,
                    Value::Object(map) => map.is_empty(),
                    _ => false,
                };
                Some(Child {
                    step: Step::Field(key),
                    value,
                    ty: field.map(|field| field.ty).or(keys.element()),
                    owned: empty || field.is_none(),
                })
            }
            Open::List { items, element } => {
                let (step, value) = items.next()?;
                let mut ty = Some(*element);
                // Items that share an identity are owned together, without their fields.
                while items
                    .next_if(|(next, _)| next.compare(&step).is_eq())
                    .is_some()
                {
                    ty = None;
                }
                Some(Child {
                    step,
                    value,
                    ty,
                    owned: true,
                })
            }
        }
    }
}
