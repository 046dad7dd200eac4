//! Finds the value at a path.

use object::Value;
use schema::TypeId;

use crate::{
    path::{Path, PathElement},
    set::{FieldSet, Visit},
    typed::{Item, Typing, child_type, identity, sorted_items},
};

/// The value at `path`; items are found by what identifies them, the first one of several.
pub fn value_at<'a>(value: &'a Value, path: &Path, typing: Typing<'a>) -> Option<&'a Value> {
    let mut value = value;
    let mut ty: Option<TypeId> = Some(typing.root);
    for element in &path.0 {
        let parent = ty.map(|ty| typing.types.get(ty));
        value = match (element, value) {
            (PathElement::Field(name), Value::Object(map)) => map.get(name)?,
            (PathElement::Index(index), Value::Array(items)) => {
                items.get(usize::try_from(*index).ok()?)?
            }
            (_, Value::Array(items)) => {
                let list = parent?.list.as_ref()?;
                items.iter().find(|item| {
                    identity(typing.types, list, item)
                        .is_ok_and(|step| step.compare_element(element).is_eq())
                })?
            }
            _ => return None,
        };
        ty = parent.and_then(|parent| child_type(parent, element));
    }
    Some(value)
}

/// The value at every path of `set`, in the order of [`FieldSet::paths`].
///
/// One pass: the items of a list are sorted once, however many paths lead into it.
pub(crate) fn values_at<'a>(
    value: &'a Value,
    set: &FieldSet,
    typing: Typing<'a>,
) -> Vec<Option<&'a Value>> {
    let mut found = Vec::new();
    let mut levels: Vec<Level<'a>> = Vec::new();
    set.for_each_level(|visit| match visit {
        Visit::Open(None) => levels.push(Level::new(Some(value), Some(typing.root), typing)),
        Visit::Open(Some(element)) => {
            let level = levels.last().expect("the root is open");
            let ty = level
                .ty
                .and_then(|ty| child_type(typing.types.get(ty), element));
            levels.push(Level::new(level.get(element), ty, typing));
        }
        Visit::Member(element) => {
            let level = levels.last().expect("the root is open");
            found.push(level.get(element));
        }
        Visit::Close => {
            levels.pop();
        }
    });
    found
}

/// A value that is being looked into.
struct Level<'a> {
    value: Option<&'a Value>,
    ty: Option<TypeId>,
    /// The items of a list, in path order.
    items: Vec<Item<'a>>,
}

impl<'a> Level<'a> {
    fn new(value: Option<&'a Value>, ty: Option<TypeId>, typing: Typing<'a>) -> Level<'a> {
        let list = ty.and_then(|ty| typing.types.get(ty).list.as_ref());
        let items = match (value, list) {
            (Some(Value::Array(items)), Some(list)) => {
                sorted_items(typing.types, list, items).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        Level { value, ty, items }
    }

    fn get(&self, element: &PathElement) -> Option<&'a Value> {
        match (element, self.value?) {
            (PathElement::Field(name), Value::Object(map)) => map.get(name),
            (PathElement::Index(index), Value::Array(items)) => {
                items.get(usize::try_from(*index).ok()?)
            }
            _ => {
                let first = self
                    .items
                    .partition_point(|(step, _)| step.compare_element(element).is_lt());
                let (step, item) = self.items.get(first)?;
                step.compare_element(element).is_eq().then_some(*item)
            }
        }
    }
}
