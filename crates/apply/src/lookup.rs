//! Finds the value at a path.

use object::Value;
use schema::TypeId;

use crate::{
    path::{Path, PathElement},
    typed::{Typing, child_type, identity},
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
