//! Who owns what: the entries of `metadata.managedFields`.
//!
//! Contract: apimachinery `util/managedfields/internal`. There is one entry per identity: an
//! applier is known by name and subresource, an updater by version as well. In memory the entries
//! are always in wire order, so that printing is a plain loop.

mod cap;
mod start;
mod wire;

use std::cmp::Ordering;

use object::{Text, json};

pub use self::{start::starting_managers, wire::DecodeError};
use crate::FieldSet;

/// How a manager wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By applying a configuration: it owns exactly what it applied last.
    Apply,
    /// By any other write: it owns what it changed.
    Update,
}

impl Operation {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// One manager and the fields it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The name the client gave.
    pub name: Text,
    /// How it wrote.
    pub operation: Operation,
    /// The version of the object in which `set` is to be read, such as `apps/v1`.
    pub api_version: Text,
    /// The subresource it wrote through; empty for the object itself.
    pub subresource: Text,
    /// Seconds since 1970, if the manager ever changed a value.
    pub time: Option<i64>,
    /// What it owns.
    pub set: FieldSet,
}

/// What makes two entries the same manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name the client gave.
    pub name: Text,
    /// How it wrote.
    pub operation: Operation,
    /// The version, for updaters; empty for appliers.
    pub api_version: Text,
    /// The subresource; empty for the object itself.
    pub subresource: Text,
}

impl Identity {
    /// The compact JSON that upstream sorts managers by.
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(96);
        let mut field = |name: &str, value: &str| {
            if value.is_empty() {
                return;
            }
            out.push(if out.is_empty() { b'{' } else { b',' });
            json::write_string(name, &mut out);
            out.push(b':');
            json::write_string(value, &mut out);
        };
        field("manager", &self.name);
        field("operation", self.operation.as_str());
        field("apiVersion", &self.api_version);
        field("subresource", &self.subresource);
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// How conflict messages name a manager: `"name" with subresource "status" using v1`.
impl std::fmt::Display for Identity {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quote = object::field::quote;
        out.write_str(&quote(&self.name))?;
        if !self.subresource.is_empty() {
            write!(out, " with subresource {}", quote(&self.subresource))?;
        }
        match self.operation {
            Operation::Update => write!(out, " using {}", self.api_version),
            Operation::Apply => Ok(()),
        }
    }
}

impl Manager {
    /// What makes this manager the same as another.
    pub fn identity(&self) -> Identity {
        Identity {
            name: self.name.clone(),
            operation: self.operation,
            api_version: match self.operation {
                Operation::Apply => Text::default(),
                Operation::Update => self.api_version.clone(),
            },
            subresource: self.subresource.clone(),
        }
    }

    /// Whether two entries belong to one manager.
    pub fn is_same(&self, other: &Manager) -> bool {
        self.operation == other.operation
            && self.name == other.name
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The order of entries on the wire.
    fn wire_order(&self, other: &Manager) -> Ordering {
        self.operation
            .cmp(&other.operation)
            .then_with(|| self.time.unwrap_or(0).cmp(&other.time.unwrap_or(0)))
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }
}

/// All managers of one object, in wire order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields {
    managers: Vec<Manager>,
}

/// How an object prints its managed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Built-in kinds: fields in path order, entry keys as declared.
    Typed,
    /// Custom resources: all keys sorted.
    Custom,
}

impl ManagedFields {
    /// No managers.
    pub fn new() -> ManagedFields {
        ManagedFields::default()
    }

    /// These managers; of equal identities the last one stays.
    pub fn from_managers(managers: impl IntoIterator<Item = Manager>) -> ManagedFields {
        let mut all = ManagedFields::new();
        for manager in managers {
            all.put(manager);
        }
        all.sort();
        all
    }

    /// The managers in wire order.
    pub fn managers(&self) -> &[Manager] {
        &self.managers
    }

    /// Whether there is no manager.
    pub fn is_empty(&self) -> bool {
        self.managers.is_empty()
    }

    /// How many managers there are.
    pub fn len(&self) -> usize {
        self.managers.len()
    }

    /// Whether both have the same managers owning the same fields, whatever the times.
    pub fn same_owners(&self, other: &ManagedFields) -> bool {
        self.managers.len() == other.managers.len()
            && self.managers.iter().all(|mine| {
                other.managers.iter().any(|theirs| {
                    mine.is_same(theirs)
                        && mine.api_version == theirs.api_version
                        && mine.set == theirs.set
                })
            })
    }

    /// Takes the times of `old` if nothing but times has changed since.
    ///
    /// A write that changes neither the object nor any owner must not be stored because of the
    /// clock alone. Entries are matched by manager, not by position, since a new time moves them.
    pub fn without_new_times(self, old: &ManagedFields) -> ManagedFields {
        if self.same_owners(old) {
            old.clone()
        } else {
            self
        }
    }

    /// The same, unless a new time has moved an entry.
    ///
    /// Upstream compares entry by entry, so a move is written; once, since the entry then is where
    /// its time puts it.
    pub fn without_new_times_in_place(self, old: &ManagedFields) -> ManagedFields {
        let mut entries = self.managers.iter().zip(&old.managers);
        if entries.all(|(mine, theirs)| mine.is_same(theirs)) {
            self.without_new_times(old)
        } else {
            self
        }
    }

    pub(crate) fn position(&self, manager: &Manager) -> Option<usize> {
        self.managers
            .iter()
            .position(|other| other.is_same(manager))
    }

    /// Adds a manager or replaces the one with its identity; the order is left to [`Self::sort`].
    pub(crate) fn put(&mut self, manager: Manager) {
        match self.position(&manager) {
            Some(at) => self.managers[at] = manager,
            None => self.managers.push(manager),
        }
    }

    pub(crate) fn managers_mut(&mut self) -> &mut Vec<Manager> {
        &mut self.managers
    }

    pub(crate) fn sort(&mut self) {
        self.managers.sort_by(Manager::wire_order);
    }
}
