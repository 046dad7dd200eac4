//! Who depends on whom: for each uid, where the objects are that name it as an owner.
//!
//! It holds places, not objects: what else is needed is read from the store when it is needed.
//! An owner that nobody names costs nothing, and neither does an object without owners.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use object::{Map, Text, Value};

use crate::record::Stored;

/// Where an object is: the place of its kind among the collector's, and its stored name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Object {
    pub kind: u32,
    pub name: Arc<str>,
}

/// A uid in 16 bytes.
///
/// Any text can stand in an owner reference; one that is no uid is hashed. Whatever is found by
/// this is checked against the text, so that two texts with one number do no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Uid(u128);

impl Uid {
    pub(super) fn new(text: &str) -> Uid {
        let mut number = 0u128;
        let mut digits = 0;
        for byte in text.bytes().filter(|byte| *byte != b'-') {
            let Some(digit) = char::from(byte).to_digit(16) else {
                digits = 0;
                break;
            };
            number = number << 4 | u128::from(digit);
            digits += 1;
        }
        if digits != 32 {
            let half = |seed: u8| {
                let mut hasher = DefaultHasher::new();
                (seed, text).hash(&mut hasher);
                u128::from(hasher.finish())
            };
            number = half(0) << 64 | half(1);
        }
        Uid(number)
    }
}

/// One owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub api_version: Text,
    pub kind: Text,
    pub name: Text,
    pub uid: Text,
    /// Whether the owner must not go before the dependent when it is deleted in the foreground.
    pub blocks: bool,
}

/// What the collector wants to know of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub uid: Text,
    pub owners: Vec<Reference>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether its dependents are to lose it and stay.
    pub orphans: bool,
    /// Whether its dependents are to go before it.
    pub waits: bool,
}

pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

impl Facts {
    /// Reads them out of a record, parsing no more than is needed.
    pub(super) fn read(value: &[u8]) -> Facts {
        let Ok(stored) = Stored::new(value) else {
            return Facts::default();
        };
        let mut facts = Facts {
            uid: stored.uid().into(),
            deleting: stored.is_deleting(),
            ..Facts::default()
        };
        if !facts.deleting && !stored.has_owners() {
            return facts;
        }
        let metadata = stored.metadata().unwrap_or_default();
        facts.owners = references(&metadata);
        let finalizers = metadata.get("finalizers").and_then(Value::as_array);
        for finalizer in finalizers.unwrap_or_default() {
            facts.orphans |= finalizer.as_str() == Some(ORPHAN);
            facts.waits |= finalizer.as_str() == Some(FOREGROUND);
        }
        facts
    }

    /// Whether it is being deleted and waits for its dependents.
    pub(super) fn is_waiting(&self) -> bool {
        self.deleting && self.waits
    }
}

fn references(metadata: &Map) -> Vec<Reference> {
    let references = metadata.get("ownerReferences").and_then(Value::as_array);
    let reference = |reference: &Value| {
        let text = |field| Text::from(reference.str_at(&[field]).unwrap_or_default());
        Reference {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            blocks: reference.get("blockOwnerDeletion") == Some(&Value::Bool(true)),
        }
    };
    references
        .unwrap_or_default()
        .iter()
        .map(reference)
        .collect()
}

/// The dependents of every uid that is named as an owner, and who waits for theirs.
#[derive(Debug, Default)]
pub(super) struct Graph {
    dependents: HashMap<Uid, BTreeSet<Object>>,
    waiting: HashMap<Uid, Object>,
}

impl Graph {
    /// Puts an object in place of what it was before; either may be nothing.
    pub(super) fn change(&mut self, object: &Object, before: &Facts, now: &Facts) {
        for owner in before.owners.iter().filter(|it| !now.owners.contains(it)) {
            let uid = Uid::new(&owner.uid);
            if now.owners.iter().any(|other| other.uid == owner.uid) {
                continue;
            }
            if let Some(dependents) = self.dependents.get_mut(&uid) {
                dependents.remove(object);
                if dependents.is_empty() {
                    self.dependents.remove(&uid);
                }
            }
        }
        for owner in &now.owners {
            let dependents = self.dependents.entry(Uid::new(&owner.uid)).or_default();
            dependents.insert(object.clone());
        }
        if now.is_waiting() {
            self.waiting.insert(Uid::new(&now.uid), object.clone());
        } else if before.is_waiting() {
            self.waiting.remove(&Uid::new(&before.uid));
        }
    }

    /// The objects that name this uid as an owner.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Object> {
        self.dependents
            .get(&Uid::new(uid))
            .into_iter()
            .flat_map(BTreeSet::iter)
    }

    /// Where the object of this uid is, if it waits for its dependents.
    pub(super) fn waiting(&self, uid: &str) -> Option<&Object> {
        self.waiting.get(&Uid::new(uid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(uid: &str, owners: &[&str]) -> Facts {
        let owner = |uid: &&str| Reference {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            name: "owner".into(),
            uid: (*uid).into(),
            blocks: false,
        };
        Facts {
            uid: uid.into(),
            owners: owners.iter().map(owner).collect(),
            ..Facts::default()
        }
    }

    #[test]
    fn an_object_is_found_by_each_of_its_owners_until_it_is_gone() {
        let mut graph = Graph::default();
        let object = Object {
            kind: 1,
            name: "default/a".into(),
        };
        let (none, one, two) = (
            Facts::default(),
            facts("a", &["x"]),
            facts("a", &["x", "y"]),
        );
        graph.change(&object, &none, &two);
        assert_eq!(graph.dependents("x").count(), 1);
        assert_eq!(graph.dependents("y").count(), 1);
        graph.change(&object, &two, &one);
        assert_eq!(graph.dependents("x").count(), 1);
        assert_eq!(graph.dependents("y").count(), 0);
        graph.change(&object, &one, &none);
        assert!(graph.dependents.is_empty());
    }

    #[test]
    fn uids_and_other_texts_are_told_apart() {
        let uid = "0fb9e6b4-1b7c-4d3a-9d0c-2d3e4f5a6b7c";
        assert_eq!(Uid::new(uid), Uid::new(uid));
        assert_ne!(Uid::new("a"), Uid::new("b"));
        assert_ne!(Uid::new(uid), Uid::new(&uid[..35]));
    }
}
