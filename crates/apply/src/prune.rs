//! Removes what an applier applied before and does not apply any more.
//!
//! Contract: structured-merge-diff `merge/update.go`. Something goes if the applier owned it, it is
//! not in the new configuration and nobody else owns it; what was never the applier's stays.

use std::borrow::Cow;

use object::{Text, Value};

use crate::{
    fields::field_set,
    managed::{ManagedFields, Manager},
    remove::remove_items,
    set::FieldSet,
    typed::Typing,
    versions::{ConvertError, Versioned, Versions},
};

/// The merged object, in version `version`, without what the applier gave up.
///
/// `last` is the applier's entry before this request; `managers` has its new one.
pub(crate) fn prune(
    merged: Value,
    version: &str,
    managers: &ManagedFields,
    last: &Manager,
    versions: &dyn Versions,
) -> Result<Value, ConvertError> {
    let last_version = last.api_version.as_str();
    let given_up = Versioned {
        object: &merged,
        version,
    };
    let Some(typing) = versions.typing(last_version) else {
        return Ok(merged);
    };
    let before = match given_up.convert(last_version, versions)? {
        Some(before) => before,
        None => return Ok(merged),
    };
    let before_set = named(field_set(&before, typing), typing);
    let last_set = named(last.set.clone(), typing);
    let without = remove_items(before.clone().into_owned(), &last_set, typing);
    let pruning = Pruning {
        before: &before,
        before_set: &before_set,
        last_version,
        versions,
    };
    let Some(kept_set) = pruning.add_back_owned(without, managers, typing)? else {
        return pruning.finish(before.clone().into_owned(), version);
    };
    let gone = before_set.difference(&kept_set).intersection(&last_set);
    if gone.is_empty() && last_version == version {
        drop(before);
        return Ok(merged);
    }
    let pruned = remove_items(before.clone().into_owned(), &gone, typing);
    pruning.finish(pruned, version)
}

fn named(set: FieldSet, typing: Typing<'_>) -> FieldSet {
    set.ensure_named_fields_are_members(typing.types, typing.root)
}

struct Pruning<'a> {
    /// The merged object in the version last applied.
    before: &'a Value,
    before_set: &'a FieldSet,
    last_version: &'a str,
    versions: &'a dyn Versions,
}

impl Pruning<'_> {
    /// Adds back what anyone owns and gives the fields of the result, in the version last applied.
    fn add_back_owned(
        &self,
        without: Value,
        managers: &ManagedFields,
        typing: Typing<'_>,
    ) -> Result<Option<FieldSet>, ConvertError> {
        let mut pruned = without;
        let mut pruned_version = self.last_version;
        let owned = owned_by_version(managers, self.last_version);
        for (version, owned) in &owned {
            let Some(typing) = self.versions.typing(version) else {
                continue;
            };
            let before = Versioned {
                object: self.before,
                version: self.last_version,
            };
            let Some(before) = before.convert(version, self.versions)? else {
                continue;
            };
            let kept = Versioned {
                object: &pruned,
                version: pruned_version,
            };
            let Some(kept) = kept.convert(version, self.versions)? else {
                continue;
            };
            let before_set = if *version == self.last_version {
                self.before_set.clone()
            } else {
                named(field_set(&before, typing), typing)
            };
            let kept_set = named(field_set(&kept, typing), typing);
            let wanted = kept_set.union(&named(owned.clone(), typing));
            let back = before_set.difference(&wanted);
            let next = remove_items(before.into_owned(), &back, typing);
            (pruned, pruned_version) = (next, version);
        }
        let pruned = Versioned {
            object: &pruned,
            version: pruned_version,
        };
        let pruned: Option<Cow<'_, Value>> = pruned.convert(self.last_version, self.versions)?;
        Ok(pruned.map(|pruned| named(field_set(&pruned, typing), typing)))
    }

    fn finish(&self, pruned: Value, version: &str) -> Result<Value, ConvertError> {
        let last = Versioned {
            object: &pruned,
            version: self.last_version,
        };
        match last.convert(version, self.versions)? {
            Some(Cow::Owned(converted)) => Ok(converted),
            _ => Ok(pruned),
        }
    }
}

/// What is owned in each version; the version last applied comes first, because the fields that
/// conversions depend on are back before anything is converted.
fn owned_by_version(managers: &ManagedFields, first: &str) -> Vec<(Text, FieldSet)> {
    let mut owned: Vec<(Text, FieldSet)> = Vec::new();
    for manager in managers.managers() {
        match owned
            .iter_mut()
            .find(|(version, _)| *version == manager.api_version)
        {
            Some((_, set)) => *set = set.union(&manager.set),
            None => owned.push((manager.api_version.clone(), manager.set.clone())),
        }
    }
    owned.sort_by_key(|(version, _)| version != first);
    owned
}
