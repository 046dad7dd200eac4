//! The declared fields of a struct, and how they are found.
//!
//! Every write walks its object beside the declared fields several times. A struct such as a pod's
//! has dozens of them and an object sets a few, so most of such a walk is stepping over fields that
//! are absent. The first bytes of all names are therefore kept side by side: what is stepped over
//! is a comparison of two numbers that lie next to each other, and the fields themselves are
//! touched only where something is found.

use std::cmp::Ordering;
use std::ops::Deref;

use object::text_head;

use crate::{Empty, Field, TypeId};

/// The declared fields of a struct, sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields {
    all: Vec<Field>,
    /// The head of each name, as [`text_head`] makes it.
    heads: Vec<u64>,
    /// Where the fields are that print something when they are absent.
    printed: Vec<usize>,
}

impl From<Vec<Field>> for Fields {
    /// Takes fields whose names ascend, which only debug builds check.
    fn from(all: Vec<Field>) -> Fields {
        debug_assert!(
            all.is_sorted_by(|one, next| one.name < next.name),
            "names ascend"
        );
        let heads = all.iter().map(|field| text_head(&field.name)).collect();
        let prints = |field: &Field| matches!(field.empty, Empty::Print | Empty::Null);
        let printed = (0..all.len()).filter(|at| prints(&all[*at])).collect();
        Fields {
            all,
            heads,
            printed,
        }
    }
}

impl Deref for Fields {
    type Target = [Field];

    fn deref(&self) -> &[Field] {
        &self.all
    }
}

impl Fields {
    /// Where the field of this name is, or else the first one behind where it would be. The search
    /// starts at `from`, for walks over sorted names.
    #[inline]
    pub fn search_from(&self, from: usize, name: &str) -> Result<usize, usize> {
        let head = text_head(name);
        let before = self.heads[from..].iter().take_while(|known| **known < head);
        self.among_equal_heads(from + before.count(), head, name)
    }

    /// Where the field of this name is, which mostly is at `guess`.
    #[inline]
    pub fn search_near(&self, guess: usize, name: &str) -> Option<usize> {
        let head = text_head(name);
        if self.heads.get(guess) == Some(&head) {
            let found = self.among_equal_heads(guess, head, name);
            if found.is_ok() {
                return found.ok();
            }
        }
        let at = self.heads.partition_point(|known| *known < head);
        self.among_equal_heads(at, head, name).ok()
    }

    /// Where the field of this name is.
    pub fn search(&self, name: &str) -> Option<usize> {
        let head = text_head(name);
        let at = self.heads.partition_point(|known| *known < head);
        self.among_equal_heads(at, head, name).ok()
    }

    #[inline]
    fn among_equal_heads(&self, mut at: usize, head: u64, name: &str) -> Result<usize, usize> {
        while self.heads.get(at) == Some(&head) {
            let known = &self.all[at].name;
            // Equal heads of short names are equal names, which most are.
            if known.len() == name.len() && name.len() <= size_of_val(&head) {
                return Ok(at);
            }
            match known.as_str().cmp(name) {
                Ordering::Less => at += 1,
                Ordering::Equal => return Ok(at),
                Ordering::Greater => break,
            }
        }
        Err(at)
    }

    /// Where the fields are that print something when they are absent, in order.
    pub(crate) fn printed(&self) -> &[usize] {
        &self.printed
    }

    /// The types of all fields, to change.
    pub(crate) fn types_mut(&mut self) -> impl Iterator<Item = &mut TypeId> {
        self.all.iter_mut().map(|field| &mut field.ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(names: &[&str]) -> Fields {
        let field = |name: &&str| Field {
            name: (*name).into(),
            ty: TypeId(0),
            default: None,
            empty: Empty::Drop,
            patch: Default::default(),
            tag: 0,
        };
        Fields::from(names.iter().map(field).collect::<Vec<_>>())
    }

    #[test]
    fn names_are_found_whatever_they_share_with_others() {
        let names = [
            "",
            "a",
            "a\0",
            "terminati",
            "terminationGracePeriod",
            "terminationMessage",
            "z",
        ];
        let fields = fields(&names);
        for (at, name) in names.iter().enumerate() {
            assert_eq!(fields.search(name), Some(at), "{name:?}");
            for from in 0..=at {
                assert_eq!(fields.search_from(from, name), Ok(at), "{name:?}");
            }
        }
        for (name, behind) in [("A", 1), ("b", 3), ("terminatio", 4), ("terminationX", 6)] {
            assert_eq!(fields.search(name), None, "{name:?}");
            assert_eq!(fields.search_from(0, name), Err(behind), "{name:?}");
        }
        assert_eq!(fields.search_from(7, "zz"), Err(7));
    }
}
