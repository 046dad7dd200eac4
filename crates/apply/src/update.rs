//! Who owns what after an update: POST, PUT and every patch but apply.
//!
//! Contract: apimachinery `util/managedfields` and structured-merge-diff `merge/update.go`. An
//! updater gains what it adds or changes, keeps what it gained before, and everyone loses what is
//! removed. An update never fails because of managed fields.

use std::sync::LazyLock;

use object::Value;

use crate::{
    contest::{Contest, OnError},
    managed::{ManagedFields, Manager, Operation},
    path::Path,
    reconcile::reconcile,
    set::FieldSet,
    versions::{Versioned, Versions},
};

/// Who writes, and through which endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The name of the manager; empty counts as `unknown`.
    pub name: &'a str,
    /// The version of the object that the endpoint serves, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
}

impl Writer<'_> {
    pub(crate) fn manager(&self, operation: Operation) -> Manager {
        let name = if self.name.is_empty() {
            "unknown"
        } else {
            self.name
        };
        Manager {
            name: name.into(),
            operation,
            api_version: self.api_version.into(),
            subresource: self.subresource.into(),
            time: None,
            set: FieldSet::new(),
        }
    }
}

/// The managers after an update of `live` (`None` if it is a creation) to `new`.
///
/// Neither object carries `metadata.managedFields`; the managers the write starts with come from
/// [`crate::starting_managers`]. A stored object that nobody manages stays so.
pub fn update(
    live: Option<&Value>,
    new: &Value,
    managers: ManagedFields,
    by: Writer<'_>,
    now: i64,
    versions: &dyn Versions,
) -> ManagedFields {
    if live.is_some() && managers.is_empty() {
        return managers;
    }
    let mut managers = match live {
        Some(live) => track(live, new, managers, by, now, versions),
        None => track(
            &versions.empty(by.api_version),
            new,
            managers,
            by,
            now,
            versions,
        ),
    };
    managers.cap_updaters();
    managers.sort();
    managers
}

/// Attributes the difference between two objects to the writer.
pub(crate) fn track(
    live: &Value,
    new: &Value,
    mut managers: ManagedFields,
    by: Writer<'_>,
    now: i64,
    versions: &dyn Versions,
) -> ManagedFields {
    let live = Versioned {
        object: live,
        version: by.api_version,
    };
    let new = Versioned {
        object: new,
        version: by.api_version,
    };
    // An object that does not fit its schema cannot be tracked; ownership stays as it was.
    let Ok(mut contest) = Contest::new(live, new, versions) else {
        return managers;
    };
    reconcile_all(&mut managers, versions);
    if contest
        .settle(&mut managers, None, OnError::KeepFields)
        .is_err()
    {
        return managers;
    }
    let change = contest.into_change();
    let mut gained = change.modified.union(&change.added);
    drop(change);
    if let Some(filter) = versions.reset_fields(by.api_version) {
        gained = filter.filter(&gained);
    }
    gained.remove(never_owned());
    if !gained.is_empty() {
        let mut me = by.manager(Operation::Update);
        me.time = Some(now);
        me.set = match managers.position(&me) {
            Some(at) => gained.union(&managers.managers()[at].set),
            None => gained,
        };
        managers.put(me);
    }
    managers
}

/// Brings every set up to date with the current schema; managers of versions that are gone go.
pub(crate) fn reconcile_all(managers: &mut ManagedFields, versions: &dyn Versions) {
    managers.managers_mut().retain_mut(|manager| {
        let Some(typing) = versions.typing(&manager.api_version) else {
            return false;
        };
        if let Some(set) = reconcile(&manager.set, typing) {
            manager.set = set;
        }
        true
    });
}

/// What the server itself decides about and nobody can own.
pub(crate) fn never_owned() -> &'static FieldSet {
    static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
        let metadata = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        let top = ["apiVersion", "kind", "metadata"].map(|name| Path::fields([name]));
        let below = metadata.map(|name| Path::fields(["metadata", name]));
        FieldSet::from_paths(top.into_iter().chain(below))
    });
    &NEVER_OWNED
}
