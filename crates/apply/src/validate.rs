//! Whether a value fits its type, in the words that clients know.
//!
//! Contract: structured-merge-diff `typed/validate.go`. Every mistake is reported at once, in path
//! order; only a map with an undeclared key and a list with an item that has no identity are not
//! looked into further.

use std::fmt;

use object::{Text, Value};
use schema::{ListTopology, ListType, Scalar, Type, TypeId, Types};

use crate::{
    go,
    outline::{Parts, is_part},
    path::{Levels, Step},
    typed::{IdentityError, Keys, Shape, Typing, identity, shape},
};

/// Whether items of one list may share an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// As in objects that were stored before.
    Allowed,
    /// As in applied configurations.
    Refused,
}

/// What is wrong at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// The path, such as `.spec.ports[port=80]`; empty for the object itself.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for TypeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => out.write_str(&self.message),
            path => write!(out, "{path}: {}", self.message),
        }
    }
}

/// Everything that is wrong with a value; at least one mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TypeErrors(pub Vec<TypeError>);

impl fmt::Display for TypeErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => one.fmt(out),
            several => {
                out.write_str("errors:")?;
                several
                    .iter()
                    .try_for_each(|error| write!(out, "\n  {error}"))
            }
        }
    }
}

/// More mistakes than this are not collected.
const ERRORS_MAX: usize = 100;

/// Checks a value against its type.
pub fn validate(value: &Value, typing: Typing<'_>, repeats: Repeats) -> Result<(), TypeErrors> {
    validate_with(Parts::Trees, value, typing, repeats)
}

/// Checks a value or an outline against its type.
pub(crate) fn validate_with(
    parts: Parts,
    value: &Value,
    typing: Typing<'_>,
    repeats: Repeats,
) -> Result<(), TypeErrors> {
    let mut walk = Walk {
        parts,
        types: typing.types,
        path: Levels::new(),
        errors: Vec::new(),
        repeats,
    };
    let mut open: Levels<Open<'_>> = Levels::new();
    open.extend(walk.enter(value, typing.root));
    while let Some(level) = open.last_mut() {
        if walk.errors.len() >= ERRORS_MAX {
            break;
        }
        let Some((step, value, ty)) = walk.next(level) else {
            open.pop();
            walk.path.pop();
            continue;
        };
        if fits_as_scalar(walk.types.get(ty), value) {
            continue;
        }
        walk.path.push(step);
        match walk.enter(value, ty) {
            Some(below) => open.push(below),
            None => {
                walk.path.pop();
            }
        }
    }
    if walk.errors.is_empty() {
        Ok(())
    } else {
        Err(TypeErrors(walk.errors))
    }
}

struct Walk<'a> {
    parts: Parts,
    types: &'a Types,
    path: Levels<Step<'a>>,
    errors: Vec<TypeError>,
    repeats: Repeats,
}

enum Open<'a> {
    Map {
        entries: &'a [(Text, Value)],
        keys: Keys<'a>,
    },
    List {
        items: &'a [Value],
        at: usize,
        list: &'a ListType,
        identities: Identities<'a>,
    },
}

/// What identifies the items of a list, as far as it is known.
struct Identities<'a> {
    steps: Vec<Step<'a>>,
    /// Positions of items whose identity stood before, in order.
    repeated: Vec<usize>,
    /// Why the item after the last step has none.
    error: Option<IdentityError>,
}

impl<'a> Walk<'a> {
    fn report(&mut self, step: Option<&Step<'_>>, message: String) {
        let mut path: String = self.path.iter().map(Step::to_string).collect();
        if let Some(step) = step {
            path.push_str(&step.to_string());
        }
        self.errors.push(TypeError { path, message });
    }

    /// Checks the value itself and gives what is to be checked beneath.
    fn enter(&mut self, value: &'a Value, ty: TypeId) -> Option<Open<'a>> {
        let ty = self.types.get(ty);
        if self.parts == Parts::Texts && matches!(value, Value::String(_)) && is_part(ty) {
            // Only what fits became a text.
            return None;
        }
        let Some(shape) = shape(ty, value) else {
            self.report(None, "schema error: invalid atom: inlined".to_owned());
            return None;
        };
        match (shape, value) {
            (_, Value::Null) => None,
            (Shape::Scalar(scalar), value) => {
                if let Some(message) = wrong_scalar(scalar, value) {
                    self.report(None, message);
                }
                None
            }
            (Shape::Map(map), Value::Object(entries)) => Some(Open::Map {
                entries: entries.entries(),
                keys: Keys::new(map),
            }),
            (Shape::List(list), Value::Array(items)) => {
                let identities = self.identities(list, items);
                Some(Open::List {
                    items,
                    at: 0,
                    list,
                    identities,
                })
            }
            (Shape::Map(_), value) => {
                self.report(None, format!("expected map, got &{{{}}}", go::plain(value)));
                None
            }
            (Shape::List(_), value) => {
                self.report(
                    None,
                    format!("expected list, got &{{{}}}", go::plain(value)),
                );
                None
            }
        }
    }

    fn identities(&self, list: &'a ListType, items: &'a [Value]) -> Identities<'a> {
        let mut found = Identities {
            steps: Vec::new(),
            repeated: Vec::new(),
            error: None,
        };
        if list.topology == ListTopology::Atomic {
            return found;
        }
        found.steps.reserve(items.len());
        for item in items {
            match identity(self.types, list, item) {
                Ok(step) => found.steps.push(step),
                Err(error) => {
                    found.error = Some(error);
                    break;
                }
            }
        }
        let steps = &found.steps;
        if self.repeats == Repeats::Refused
            && !steps.is_sorted_by(|left, right| left.compare(right).is_lt())
        {
            let mut order: Vec<usize> = (0..steps.len()).collect();
            order.sort_by(|left, right| steps[*left].compare(&steps[*right]));
            let again = order
                .windows(2)
                .filter(|pair| steps[pair[0]].compare(&steps[pair[1]]).is_eq());
            found.repeated = again.map(|pair| pair[1]).collect();
            found.repeated.sort_unstable();
        }
        found
    }

    fn next(&mut self, level: &mut Open<'a>) -> Option<(Step<'a>, &'a Value, TypeId)> {
        match level {
            Open::Map { entries, keys } => {
                let [(key, value), rest @ ..] = *entries else {
                    return None;
                };
                *entries = rest;
                let ty = keys.ty(key);
                if ty.is_none() {
                    *entries = &[];
                    self.report(
                        Some(&Step::Field(key)),
                        "field not declared in schema".to_owned(),
                    );
                }
                Some((Step::Field(key), value, ty?))
            }
            Open::List {
                items,
                at,
                list,
                identities,
            } => {
                let value = items.get(*at)?;
                let step = if list.topology == ListTopology::Atomic {
                    Step::Index(*at)
                } else if let Some(step) = identities.steps.get(*at) {
                    step.clone()
                } else {
                    let error = identities.error.take()?;
                    self.report(None, format!("element {at}: {error}"));
                    *items = &[];
                    return None;
                };
                if identities.repeated.binary_search(at).is_ok() {
                    self.report(None, format!("duplicate entries for key {step}"));
                }
                *at += 1;
                Some((step, value, list.element))
            }
        }
    }
}

/// Whether a value is of the scalar that its type takes, as most are.
fn fits_as_scalar(ty: &Type, value: &Value) -> bool {
    let is_scalar = !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
    is_scalar && ty.scalar.is_some_and(|scalar| fits(scalar, value))
}

fn fits(scalar: Scalar, value: &Value) -> bool {
    match scalar {
        Scalar::String => matches!(value, Value::String(_)),
        Scalar::Numeric => matches!(value, Value::Int(_) | Value::Float(_)),
        Scalar::Boolean => matches!(value, Value::Bool(_)),
        Scalar::Untyped => !matches!(value, Value::Array(_) | Value::Object(_)),
    }
}

fn wrong_scalar(scalar: Scalar, value: &Value) -> Option<String> {
    if fits(scalar, value) {
        return None;
    }
    Some(match scalar {
        Scalar::String => {
            format!(
                "expected string, got &value.valueUnstructured{{Value:{}}}",
                go::syntax(value)
            )
        }
        Scalar::Numeric => {
            format!(
                "expected numeric (int or float), got {}",
                go::type_name(value)
            )
        }
        Scalar::Boolean => format!("expected boolean, got &{{{}}}", go::plain(value)),
        Scalar::Untyped => format!("expected any scalar, got &{{{}}}", go::plain(value)),
    })
}
