//! Objects whose atomic parts stay text.
//!
//! What is atomic is only ever compared, copied and written as a whole, and text can be compared,
//! copied and written many times faster than a tree. In an outline, a list or map that is atomic
//! and not empty is therefore a string: its JSON in the one form that the writer gives it. That is
//! done only where the type takes nothing else, so that such a string cannot be mistaken for a
//! value; the walkers, which take these places whole, need not know.
//!
//! An outline nests at most [`DEPTH_MAX`] levels, so the functions here may recurse.

mod read;

use std::borrow::Cow;

use object::{Text, Value, json};
use schema::{ListTopology, ListType, Type, TypeId, Types};

pub(crate) use self::read::Room;
use crate::{
    path::{Path, PathElement},
    set::FieldFilter,
    typed::{Keys, Typing, child_type},
    versions::{ConvertError, Versions},
};

/// The most levels of an outline; what nests deeper stays a tree.
const DEPTH_MAX: u32 = 64;

/// Whether the parts of an object that are atomic are trees or texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    Trees,
    Texts,
}

/// Whether a value of this type that is not empty is a text in an outline, unless it is an item of
/// a list that is merged item by item.
pub(crate) fn is_part(ty: &Type) -> bool {
    match (&ty.scalar, &ty.list, &ty.map) {
        (None, Some(list), None) => list.topology == ListTopology::Atomic,
        (None, None, Some(map)) => map.atomic,
        _ => false,
    }
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// An item of a list that is merged item by item, and so looked into.
    Item,
    /// Anywhere else.
    Field,
}

impl Place {
    fn item_of(list: &ListType) -> Place {
        match list.topology {
            ListTopology::Atomic => Place::Field,
            ListTopology::Set | ListTopology::Map(_) => Place::Item,
        }
    }

    /// Whether a value of this type that stands here and is not empty is a text.
    fn is_part(self, ty: &Type) -> bool {
        self == Place::Field && is_part(ty)
    }
}

/// Makes an outline of an object that fits its type; false if it nests too deeply for that.
pub(crate) fn fold(object: &mut Value, typing: Typing<'_>) -> bool {
    if !each_part(object, typing, Place::Field, DEPTH_MAX, &mut |_| {}) {
        return false;
    }
    each_part(object, typing, Place::Field, DEPTH_MAX, &mut |part| {
        let is_empty = match part {
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => true,
        };
        if !is_empty {
            *part = Value::String(Text::from_utf8_lossy(&json::to_vec(part)));
        }
    })
}

/// Makes a whole tree of an outline.
pub(crate) fn unfold(outline: &mut Value, typing: Typing<'_>) {
    unfold_at(outline, &Path::default(), typing);
}

/// Makes a whole tree of what stands at a path of an outline.
pub(crate) fn unfold_at(value: &mut Value, path: &Path, typing: Typing<'_>) {
    let mut elements = path.0.iter();
    let root = elements.try_fold(typing.root, |ty, element| {
        child_type(typing.types.get(ty), element)
    });
    // Below what has no type nothing is a part.
    let Some(root) = root else { return };
    let place = match path.0.last() {
        None | Some(PathElement::Field(_)) => Place::Field,
        Some(_) => Place::Item,
    };
    let typing = Typing { root, ..typing };
    each_part(value, typing, place, DEPTH_MAX, &mut |part| {
        if let Value::String(text) = part {
            *part = json::parse(text.as_bytes()).expect("the text of a part is JSON");
        }
    });
}

/// Visits the places of parts; false if there are more levels than allowed.
fn each_part(
    value: &mut Value,
    typing: Typing<'_>,
    place: Place,
    levels: u32,
    visit: &mut impl FnMut(&mut Value),
) -> bool {
    let ty = typing.types.get(typing.root);
    if place.is_part(ty) {
        visit(value);
        return true;
    }
    let mut below = |value: &mut Value, root: TypeId, place| match levels.checked_sub(1) {
        Some(levels) => each_part(value, Typing { root, ..typing }, place, levels, visit),
        None => false,
    };
    match (value, &ty.map, &ty.list) {
        (Value::Object(map), Some(ty), _) => {
            let mut keys = Keys::new(ty);
            map.iter_mut()
                .all(|(key, value)| keys.ty(key).is_none_or(|ty| below(value, ty, Place::Field)))
        }
        (Value::Array(items), _, Some(list)) => items
            .iter_mut()
            .all(|item| below(item, list.element, Place::item_of(list))),
        _ => true,
    }
}

/// Whether an object that is no outline would be another as one.
fn has_parts(value: &Value, ty: TypeId, place: Place, types: &Types) -> bool {
    let ty = types.get(ty);
    match (value, &ty.map, &ty.list) {
        (Value::Object(map), Some(of), _) if !map.is_empty() => {
            let mut keys = Keys::new(of);
            place.is_part(ty)
                || map.iter().any(|(key, value)| {
                    let ty = keys.ty(key);
                    ty.is_some_and(|ty| has_parts(value, ty, Place::Field, types))
                })
        }
        (Value::Array(items), _, Some(of)) if !items.is_empty() => {
            let place_below = Place::item_of(of);
            place.is_part(ty)
                || items
                    .iter()
                    .any(|item| has_parts(item, of.element, place_below, types))
        }
        _ => false,
    }
}

/// Appends the JSON of what an outline stands for.
pub(crate) fn write(outline: &Value, typing: Typing<'_>, out: &mut Vec<u8>) {
    write_value(outline, Some(typing.root), typing.types, out);
}

fn write_value(value: &Value, ty: Option<TypeId>, types: &Types, out: &mut Vec<u8>) {
    let ty = ty.map(|ty| types.get(ty));
    match (value, ty) {
        (Value::String(text), Some(ty)) if is_part(ty) => out.extend_from_slice(text.as_bytes()),
        (Value::Object(map), Some(ty)) if !map.is_empty() => {
            let mut keys = ty.map.as_ref().map(Keys::new);
            for (at, (key, value)) in map.iter().enumerate() {
                out.push(if at == 0 { b'{' } else { b',' });
                json::write_string(key, out);
                out.push(b':');
                let ty = keys.as_mut().and_then(|keys| keys.ty(key));
                write_value(value, ty, types, out);
            }
            out.push(b'}');
        }
        (Value::Array(items), Some(ty)) if !items.is_empty() => {
            let element = ty.list.as_ref().map(|list| list.element);
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { b'[' } else { b',' });
                write_value(item, element, types, out);
            }
            out.push(b']');
        }
        _ => json::write(value, out),
    }
}

/// The same versions, for outlines in one of them.
pub(crate) struct Outlined<'a>(pub(crate) &'a dyn Versions);

impl Versions for Outlined<'_> {
    fn typing(&self, api_version: &str) -> Option<Typing<'_>> {
        self.0.typing(api_version)
    }

    fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, ConvertError> {
        self.0.convert(object, from, to)
    }

    fn reset_fields(&self, api_version: &str) -> Option<&FieldFilter> {
        self.0.reset_fields(api_version)
    }

    fn empty(&self, api_version: &str) -> Cow<'_, Value> {
        let empty = self.0.empty(api_version);
        let Some(typing) = self.typing(api_version) else {
            return empty;
        };
        if !has_parts(&empty, typing.root, Place::Field, typing.types) {
            return empty;
        }
        let mut empty = empty.into_owned();
        fold(&mut empty, typing);
        Cow::Owned(empty)
    }
}
