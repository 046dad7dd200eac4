//! Which types fit which, and what the unknown ones turn out to be.
//!
//! Contract: cel-go `checker/types.go`. A failed attempt leaves no trace: what it assumed about
//! unknown types is taken back.

use crate::function::Overload;
use crate::types::Type;
use std::sync::Arc;

/// What is known of unknown types so far.
#[derive(Default)]
pub(super) struct Unifier {
    known: Vec<Option<Type>>,
    /// What was there before each change of the attempt under way.
    undo: Vec<(usize, Option<Type>)>,
}

/// An overload whose parameters are fresh unknown types.
pub(super) struct Fresh {
    pub(super) arguments: Vec<Type>,
    pub(super) result: Type,
}

/// Of two types that fit each other, the one that says less.
pub(super) fn more_general<'a>(a: &'a Type, b: &'a Type) -> &'a Type {
    if says_no_more(a, b) { a } else { b }
}

fn says_no_more(a: &Type, b: &Type) -> bool {
    let open = |it: &Type| it.is_dyn() || matches!(it, Type::Parameter(_));
    match (a, b) {
        (a, _) if open(a) => true,
        (_, b) if open(b) => false,
        (Type::Type(_), Type::Type(_)) => true,
        (Type::List(a), Type::List(b)) => says_no_more(a, b),
        (Type::Map(a), Type::Map(b)) => says_no_more(&a.0, &b.0) && says_no_more(&a.1, &b.1),
        (Type::Opaque(a, of_a), Type::Opaque(b, of_b)) => {
            a == b
                && of_a.len() == of_b.len()
                && of_a
                    .iter()
                    .zip(of_b.iter())
                    .all(|(a, b)| says_no_more(a, b))
        }
        (a, b) => a == b,
    }
}

impl Unifier {
    /// A new unknown type.
    pub(super) fn fresh(&mut self) -> Type {
        self.known.push(None);
        Type::Parameter((self.known.len() - 1) as u32)
    }

    /// The overload with new unknown types for its parameters.
    pub(super) fn instantiate(&mut self, overload: &Overload) -> Fresh {
        let mut names = Vec::new();
        let mut renew = |of: &Type| self.renewed(of, &mut names);
        Fresh {
            arguments: overload.arguments.iter().map(&mut renew).collect(),
            result: renew(&overload.result),
        }
    }

    fn renewed(&mut self, of: &Type, names: &mut Vec<(u32, Type)>) -> Type {
        match of {
            Type::Parameter(name) => match names.iter().find(|(known, _)| known == name) {
                Some((_, fresh)) => fresh.clone(),
                None => {
                    let fresh = self.fresh();
                    names.push((*name, fresh.clone()));
                    fresh
                }
            },
            other => rebuilt(other, &mut |inner| self.renewed(inner, names)),
        }
    }

    /// Whether a value of type `a` may stand where `b` is wanted.
    pub(super) fn assign(&mut self, a: &Type, b: &Type) -> bool {
        self.undo.clear();
        let fits = self.fits(a, b);
        self.settle(fits)
    }

    /// As [`Unifier::assign`] for each pair; all or nothing.
    pub(super) fn assign_all(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        self.undo.clear();
        let fits =
            given.len() == wanted.len() && given.iter().zip(wanted).all(|(a, b)| self.fits(a, b));
        self.settle(fits)
    }

    fn settle(&mut self, fits: bool) -> bool {
        if !fits {
            while let Some((at, before)) = self.undo.pop() {
                self.known[at] = before;
            }
        }
        fits
    }

    fn find(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Parameter(number) => self.known[*number as usize].as_ref(),
            _ => None,
        }
    }

    fn learn(&mut self, unknown: u32, of: Type) {
        let at = unknown as usize;
        let before = self.known[at].replace(of);
        self.undo.push((at, before));
    }

    fn fits(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Parameter(unknown) = b {
            let (valid, known) = self.stands_for(a, *unknown);
            if valid || known {
                return valid;
            }
        }
        if let Type::Parameter(unknown) = a {
            return self.stands_for(b, *unknown).0;
        }
        match (a, b) {
            (a, b) if a.is_dyn_or_error() || b.is_dyn_or_error() => true,
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) => self.fits(a, b),
            (Type::Map(a), Type::Map(b)) => self.fits(&a.0, &b.0) && self.fits(&a.1, &b.1),
            (Type::Opaque(a, of_a), Type::Opaque(b, of_b)) => {
                let pairs = of_a.iter().zip(of_b.iter());
                a == b
                    && of_a.len() == of_b.len()
                    && pairs.into_iter().all(|(a, b)| self.fits(a, b))
            }
            (a, b) => a == b,
        }
    }

    /// Whether the unknown type can be this one, and whether something was known of it already.
    fn stands_for(&mut self, of: &Type, unknown: u32) -> (bool, bool) {
        if *of == Type::Parameter(unknown) {
            return (true, true);
        }
        if let Some(known) = self.known[unknown as usize].clone() {
            if *of == known {
                return (true, true);
            }
            if !self.fits(of, &known) {
                return (false, true);
            }
            let general = more_general(of, &known).clone();
            if !self.occurs(unknown, &general) {
                self.learn(unknown, general);
            }
            return (true, true);
        }
        if self.occurs(unknown, of) {
            return (false, false);
        }
        self.learn(unknown, of.clone());
        (true, false)
    }

    /// Whether the unknown type is part of the other, which would make it endless.
    fn occurs(&self, unknown: u32, within: &Type) -> bool {
        match within {
            Type::Parameter(other) if *other == unknown => true,
            Type::Parameter(_) => self.find(within).is_some_and(|it| self.occurs(unknown, it)),
            other => other
                .parameters()
                .into_iter()
                .any(|it| self.occurs(unknown, it)),
        }
    }

    /// Puts in what is known; with `close`, what is still unknown becomes dyn.
    pub(super) fn substitute(&self, of: &Type, close: bool) -> Type {
        if let Some(known) = self.find(of) {
            return self.substitute(known, close);
        }
        match of {
            Type::Parameter(_) if close => Type::Dyn,
            other => rebuilt(other, &mut |inner| self.substitute(inner, close)),
        }
    }
}

fn is_nullable(of: &Type) -> bool {
    matches!(
        of,
        Type::Null | Type::Opaque(..) | Type::Object(_) | Type::Duration | Type::Timestamp
    )
}

/// The type with each of its parameters passed through `change`.
fn rebuilt(of: &Type, change: &mut dyn FnMut(&Type) -> Type) -> Type {
    match of {
        Type::List(of) => Type::list(change(of)),
        Type::Map(of) => Type::map(change(&of.0), change(&of.1)),
        Type::Opaque(name, of) if !of.is_empty() => {
            Type::Opaque(name, of.iter().map(change).collect())
        }
        Type::Type(Some(of)) => Type::Type(Some(Arc::new(change(of)))),
        other => other.clone(),
    }
}
