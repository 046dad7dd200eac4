//! Who loses which fields when an object changes.
//!
//! Contract: structured-merge-diff `merge/update.go`. Whoever owns a field that the write adds or
//! modifies is in conflict with it; whoever owns a field that the write removes just loses it.

use object::Text;

use crate::{
    compare::{Comparison, Mismatch, compare},
    conflict::{Conflict, Conflicts},
    lookup::values_at,
    managed::{ManagedFields, Manager},
    set::FieldSet,
    versions::{ConvertError, Versioned, Versions},
};

/// Why a contest cannot be held in some version.
#[derive(Debug)]
pub(crate) enum ContestError {
    Convert(ConvertError),
    Mismatch,
}

impl From<ConvertError> for ContestError {
    fn from(error: ConvertError) -> ContestError {
        ContestError::Convert(error)
    }
}

impl From<Mismatch> for ContestError {
    fn from(_: Mismatch) -> ContestError {
        ContestError::Mismatch
    }
}

/// A change of an object, seen in every version that a manager needs.
pub(crate) struct Contest<'a> {
    live: Versioned<'a>,
    new: Versioned<'a>,
    versions: &'a dyn Versions,
    /// What changed in the version of the request, nothing filtered out.
    change: Comparison,
    seen: Vec<(Text, Seen)>,
}

enum Seen {
    /// There is no such version any more.
    Gone,
    Change {
        /// Added or modified.
        gained: FieldSet,
        removed: FieldSet,
    },
}

impl Seen {
    fn new(change: &Comparison, version: &str, versions: &dyn Versions) -> Seen {
        match versions.reset_fields(version) {
            Some(filter) => {
                let change = change.filter(filter);
                let gained = change.modified.union(&change.added);
                Seen::Change {
                    gained,
                    removed: change.removed,
                }
            }
            None => Seen::Change {
                gained: change.modified.union(&change.added),
                removed: change.removed.clone(),
            },
        }
    }
}

impl<'a> Contest<'a> {
    /// Compares both objects, which are in one version.
    pub(crate) fn new(
        live: Versioned<'a>,
        new: Versioned<'a>,
        versions: &'a dyn Versions,
    ) -> Result<Contest<'a>, ContestError> {
        let typing = versions.typing(new.version).ok_or(Mismatch)?;
        let change = compare(live.object, new.object, typing)?;
        let seen = vec![(
            new.version.into(),
            Seen::new(&change, new.version, versions),
        )];
        Ok(Contest {
            live,
            new,
            versions,
            change,
            seen,
        })
    }

    /// What changed in the version of the request, nothing filtered out.
    pub(crate) fn into_change(self) -> Comparison {
        self.change
    }

    fn seen_in(&mut self, version: &str) -> Result<&Seen, ContestError> {
        if let Some(at) = self.seen.iter().position(|(seen, _)| seen == version) {
            return Ok(&self.seen[at].1);
        }
        let seen = match self.in_version(version)? {
            Some(change) => Seen::new(&change, version, self.versions),
            None => Seen::Gone,
        };
        self.seen.push((version.into(), seen));
        Ok(&self.seen.last().expect("just pushed").1)
    }

    fn in_version(&self, version: &str) -> Result<Option<Comparison>, ContestError> {
        let Some(typing) = self.versions.typing(version) else {
            return Ok(None);
        };
        let live = self.live.convert(version, self.versions)?;
        let new = self.new.convert(version, self.versions)?;
        match (live, new) {
            // A version that only a webhook can convert to is not reached from here. What does not
            // fit it changes nothing that is owned in it, rather than locking the object.
            (Some(live), Some(new)) => Ok(Some(compare(&live, &new, typing).unwrap_or_default())),
            _ => Ok(None),
        }
    }

    /// Every field that someone other than `me` owns and that is added or modified.
    pub(crate) fn conflicts(
        &mut self,
        managers: &ManagedFields,
        me: &Manager,
    ) -> Result<Option<Conflicts>, ContestError> {
        let mut found: Vec<(String, &Manager, FieldSet)> = Vec::new();
        for manager in managers.managers() {
            if manager.is_same(me) {
                continue;
            }
            let Seen::Change { gained, .. } = self.seen_in(&manager.api_version)? else {
                continue;
            };
            let contested = manager.set.intersection(gained);
            if !contested.is_empty() {
                found.push((manager.identity().to_json(), manager, contested));
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        found.sort_by(|left, right| left.0.cmp(&right.0));
        let mut conflicts = Vec::new();
        for (_, manager, contested) in found {
            self.describe(manager, &contested, &mut conflicts)?;
        }
        Ok(Some(Conflicts(conflicts)))
    }

    fn describe(
        &self,
        manager: &Manager,
        contested: &FieldSet,
        out: &mut Vec<Conflict>,
    ) -> Result<(), ContestError> {
        let version = &manager.api_version;
        let Some(typing) = self.versions.typing(version) else {
            return Ok(());
        };
        let (Some(live), Some(new)) = (
            self.live.convert(version, self.versions)?,
            self.new.convert(version, self.versions)?,
        ) else {
            return Ok(());
        };
        let live = values_at(&live, contested, typing);
        let new = values_at(&new, contested, typing);
        for (path, (live, new)) in contested.paths().into_iter().zip(live.into_iter().zip(new)) {
            out.push(Conflict {
                manager: manager.identity(),
                path,
                live: live.cloned(),
                wanted: new.cloned(),
            });
        }
        Ok(())
    }

    /// Takes what changed from everyone but `me`; whoever is left with nothing goes.
    ///
    /// `on_error` says what happens where a version cannot be compared.
    pub(crate) fn settle(
        &mut self,
        managers: &mut ManagedFields,
        me: Option<&Manager>,
        on_error: OnError,
    ) -> Result<(), ContestError> {
        let mut kept: Vec<Manager> = Vec::with_capacity(managers.len() + 1);
        for mut manager in std::mem::take(managers.managers_mut()) {
            if me.is_some_and(|me| manager.is_same(me)) {
                kept.push(manager);
                continue;
            }
            match (self.seen_in(&manager.api_version), on_error) {
                (Ok(Seen::Gone), _) => continue,
                (Ok(Seen::Change { gained, removed }), _) => {
                    take(&mut manager.set, gained);
                    take(&mut manager.set, removed);
                }
                (Err(_), OnError::KeepFields) => {}
                (Err(error), OnError::Fail) => return Err(error),
            }
            kept.push(manager);
        }
        kept.retain(|manager| !manager.set.is_empty());
        *managers.managers_mut() = kept;
        Ok(())
    }
}

/// What happens to a manager in whose version the change cannot be seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    /// It keeps its fields: updates never fail because of managed fields.
    KeepFields,
    /// The write fails.
    Fail,
}

fn take(set: &mut FieldSet, lost: &FieldSet) {
    if !lost.is_empty() && !set.is_empty() {
        *set = set.difference(lost);
    }
}
