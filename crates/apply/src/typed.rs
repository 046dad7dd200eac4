//! What the schema says about a value: which alternative applies, and what identifies a list item.
//!
//! Contract: structured-merge-diff `typed` helpers. A type may carry a scalar, a list and a map
//! alternative at once; the value decides, and where it cannot (null, or a kind the type does not
//! take) the order is map, scalar, list.

use object::{Value, field::quote};
use schema::{Field, Fields, ListTopology, ListType, MapType, Scalar, Type, TypeId, Types};
use smallvec::SmallVec;

use crate::path::{PathElement, Step};

/// A type and the arena it lives in.
#[derive(Clone, Copy, Debug)]
pub struct Typing<'a> {
    /// The arena.
    pub types: &'a Types,
    /// The type of the whole object.
    pub root: TypeId,
}

/// The alternative that applies to a value.
#[derive(Clone, Copy)]
pub(crate) enum Shape<'a> {
    Scalar(Scalar),
    List(&'a ListType),
    Map(&'a MapType),
}

impl Shape<'_> {
    /// Whether two alternatives of one type are the same one.
    pub(crate) fn is_like(&self, other: &Shape<'_>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The alternative of `ty` that applies to `value`; `None` if the type takes nothing.
pub(crate) fn shape<'a>(ty: &'a Type, value: &Value) -> Option<Shape<'a>> {
    let fitting = match value {
        Value::Null => None,
        Value::Array(_) => ty.list.as_ref().map(Shape::List),
        Value::Object(_) => ty.map.as_ref().map(Shape::Map),
        _ => ty.scalar.map(Shape::Scalar),
    };
    fitting.or_else(|| first_shape(ty))
}

/// The alternative that applies when the value does not decide.
pub(crate) fn first_shape(ty: &Type) -> Option<Shape<'_>> {
    let map = ty.map.as_ref().map(Shape::Map);
    map.or_else(|| ty.scalar.map(Shape::Scalar))
        .or_else(|| ty.list.as_ref().map(Shape::List))
}

/// The type of what lies under `element`, in a set that belongs to a value of type `ty`.
pub(crate) fn child_type(ty: &Type, element: &PathElement) -> Option<TypeId> {
    match element {
        PathElement::Field(name) => {
            let map = ty.map.as_ref()?;
            map.field(name).map(|field| field.ty).or(map.element)
        }
        PathElement::Key(_) => ty.list.as_ref().map(|list| list.element),
        PathElement::Value(_) | PathElement::Index(_) => None,
    }
}

/// Finds the types of keys that come in sorted order, as a map's own keys do.
///
/// Declared fields are sorted too, so the search goes on where the last one ended.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    fields: &'a Fields,
    next: usize,
    element: Option<TypeId>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(map: &'a MapType) -> Keys<'a> {
        Keys {
            fields: &map.fields,
            next: 0,
            element: map.element,
        }
    }

    /// The declared field of this name.
    pub(crate) fn field(&mut self, key: &str) -> Option<&'a Field> {
        match self.fields.search_from(self.next, key) {
            Ok(at) => {
                self.next = at + 1;
                Some(&self.fields[at])
            }
            Err(at) => {
                self.next = at;
                None
            }
        }
    }

    /// The type of the value under this key; `None` if the key is not allowed.
    pub(crate) fn ty(&mut self, key: &str) -> Option<TypeId> {
        self.field(key).map(|field| field.ty).or(self.element)
    }

    /// The type of undeclared keys.
    pub(crate) fn element(&self) -> Option<TypeId> {
        self.element
    }
}

/// Whether a value of this type is always taken whole.
pub(crate) fn is_leaf(ty: &Type) -> bool {
    let list = ty
        .list
        .as_ref()
        .is_none_or(|list| list.topology == ListTopology::Atomic);
    list && ty.map.as_ref().is_none_or(|map| map.atomic)
}

/// Why a list item cannot be told apart from others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// A map in a set.
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    /// A list in a set.
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    /// A null in a set.
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
    /// A null in a list with keys.
    #[error("associative list with keys may not have a null element")]
    NullItem,
    /// A scalar or list in a list with keys.
    #[error("associative list with keys may not have non-map elements")]
    NotAMap,
    /// No key is present and none has a default.
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] \
         (and doesn't have default values for any key fields)"
    )]
    NoKeys(String),
}

/// What identifies `item` in a list that is merged item by item.
pub(crate) fn identity<'a>(
    types: &'a Types,
    list: &'a ListType,
    item: &'a Value,
) -> Result<Step<'a>, IdentityError> {
    let ListTopology::Map(keys) = &list.topology else {
        return match item {
            Value::Object(_) => Err(IdentityError::MapInSet),
            Value::Array(_) => Err(IdentityError::ListInSet),
            Value::Null => Err(IdentityError::NullInSet),
            scalar => Ok(Step::Value(scalar)),
        };
    };
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err(IdentityError::NullItem),
        _ => return Err(IdentityError::NotAMap),
    };
    let mut pairs: SmallVec<[_; 2]> = SmallVec::new();
    for key in keys {
        let value = map.get(key).or_else(|| {
            let element = types.get(list.element).map.as_ref()?;
            // Go cannot tell a null default from none.
            element
                .field(key)?
                .default
                .as_ref()
                .filter(|default| !default.is_null())
        });
        if let Some(value) = value {
            let at = pairs.partition_point(|(name, _): &(&object::Text, _)| *name <= key);
            pairs.insert(at, (key, value));
        }
    }
    if pairs.is_empty() {
        let names: Vec<String> = keys.iter().map(|key| quote(key)).collect();
        return Err(IdentityError::NoKeys(names.join(" ")));
    }
    Ok(Step::Key(pairs))
}

/// A list item with what identifies it.
pub(crate) type Item<'a> = (Step<'a>, &'a Value);

/// The items of a list in path order, equal ones in list order.
pub(crate) fn sorted_items<'a>(
    types: &'a Types,
    list: &'a ListType,
    items: &'a [Value],
) -> Result<Vec<Item<'a>>, (usize, IdentityError)> {
    let mut identified = identified_items(types, list, items)?;
    if !identified.is_sorted_by(|left, right| left.0.compare(&right.0).is_le()) {
        identified.sort_by(|left, right| left.0.compare(&right.0));
    }
    Ok(identified)
}

/// The items of a list in list order.
pub(crate) fn identified_items<'a>(
    types: &'a Types,
    list: &'a ListType,
    items: &'a [Value],
) -> Result<Vec<Item<'a>>, (usize, IdentityError)> {
    let identify = |(at, item): (usize, &'a Value)| match identity(types, list, item) {
        Ok(step) => Ok((step, item)),
        Err(error) => Err((at, error)),
    };
    items.iter().enumerate().map(identify).collect()
}
