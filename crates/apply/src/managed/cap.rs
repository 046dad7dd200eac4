//! A limit on how many updaters are remembered one by one.
//!
//! Contract: apimachinery `util/managedfields/internal/capmanagers.go`. Beyond the limit the
//! oldest updaters of a version are folded into one entry named `ancient-changes`.

use object::Text;

use super::{ManagedFields, Manager, Operation};
use crate::FieldSet;

/// More updaters than this are folded together.
pub(crate) const UPDATERS_MAX: usize = 10;

const ANCIENT: &str = "ancient-changes";

impl ManagedFields {
    /// Folds the oldest updaters until at most [`UPDATERS_MAX`] are left, where possible: the only
    /// updater of a version has nothing to be folded with.
    pub(crate) fn cap_updaters(&mut self) {
        let is_updater = |manager: &&Manager| manager.operation == Operation::Update;
        let mut count = self.managers.iter().filter(is_updater).count();
        if count <= UPDATERS_MAX {
            return;
        }
        let mut oldest: Vec<Manager> = self.managers.iter().filter(is_updater).cloned().collect();
        oldest.sort_by_cached_key(|manager| {
            (manager.time.unwrap_or(0), manager.identity().to_json())
        });
        let mut first_of_version: Vec<Manager> = Vec::new();
        for manager in oldest {
            if count <= UPDATERS_MAX {
                break;
            }
            let version = &manager.api_version;
            let first = first_of_version
                .iter()
                .find(|first| first.api_version == *version);
            match first.cloned() {
                None => first_of_version.push(manager),
                Some(first) => {
                    self.fold(&first, &manager);
                    count -= 1;
                }
            }
        }
    }

    /// Merges `newer` into the bucket of its version, which begins as `first` if there is none.
    fn fold(&mut self, first: &Manager, newer: &Manager) {
        let empty = Manager {
            name: ANCIENT.into(),
            subresource: Text::default(),
            set: FieldSet::new(),
            ..newer.clone()
        };
        // A bucket that is itself the next to be folded takes in the first entry instead: folded
        // into itself, it would lose what it holds.
        let folded = if newer.is_same(&empty) { first } else { newer };
        let mut bucket = match self.position(&empty) {
            Some(at) => self.managers.remove(at),
            None => {
                self.managers.retain(|manager| !manager.is_same(first));
                Manager {
                    set: first.set.clone(),
                    ..empty
                }
            }
        };
        self.managers.retain(|manager| !manager.is_same(folded));
        bucket.set = folded.set.union(&bucket.set);
        bucket.time = newer.time;
        self.managers.push(bucket);
    }
}
