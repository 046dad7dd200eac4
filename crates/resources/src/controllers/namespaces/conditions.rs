//! What keeps a namespace that is being deleted, as its status says it.
//!
//! Contract: the texts of upstream's `status_condition_utils.go`. All five conditions are written,
//! those without trouble too; a condition keeps its time while its status stays.

use std::collections::BTreeMap;

use kinds::Kind;
use object::{Map, Value, value};
use store::Record;

use crate::record::Stored;

/// What is left in a namespace.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// `resource.group` and how many of them.
    contents: BTreeMap<String, usize>,
    /// Finalizers and how many objects have them.
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
}

/// A condition that there is nothing to say about: type, reason, message.
const FINE: [[&str; 3]; 5] = [
    [
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ],
    [
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ],
    [
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ],
    [
        "NamespaceContentRemaining",
        "ContentRemoved",
        "All content successfully removed",
    ],
    [
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ],
];

impl Remains {
    /// Whether the namespace is empty, and everything could be tried.
    pub(super) fn is_nothing(&self) -> bool {
        self.contents.is_empty() && self.failures.is_empty()
    }

    /// Notes a failure.
    pub(super) fn failed(&mut self, text: String) {
        self.failures.push(text);
    }

    /// Notes objects that are left; tells whether something explains why.
    pub(super) fn add(&mut self, kind: &Kind, records: &[Record]) -> bool {
        let name = format!("{}.{}", kind.resource, kind.group);
        *self.contents.entry(name).or_default() += records.len();
        let mut explained = false;
        for record in records {
            let Ok(stored) = Stored::new(&record.value) else {
                continue;
            };
            let metadata = stored.metadata().unwrap_or_default();
            let finalizers = metadata.get("finalizers").and_then(Value::as_array);
            for finalizer in finalizers.unwrap_or_default() {
                let finalizer = finalizer.as_str().unwrap_or_default();
                *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
                explained = true;
            }
            // A grace period, such as that of a pod on a node, ends without us.
            let grace = metadata.get("deletionGracePeriodSeconds");
            explained |= grace.and_then(Value::as_int).is_some_and(|grace| grace > 0);
        }
        explained
    }

    /// Writes the conditions into a status; tells whether that changed it.
    pub(super) fn write(&self, status: &mut Map, now: &str) -> bool {
        let mut changed = false;
        let mut conditions = match status.get("conditions") {
            Some(Value::Array(conditions)) => conditions.clone(),
            _ => Vec::new(),
        };
        for (kind, trouble, reason, message) in self.conditions() {
            let state = if trouble { "True" } else { "False" };
            let at = |condition: &Value, field| condition.str_at(&[field]).map(str::to_owned);
            let old = conditions
                .iter()
                .position(|condition| condition.str_at(&["type"]) == Some(kind));
            let known = old.map(|old| &conditions[old]);
            let same_state = known.is_some_and(|old| old.str_at(&["status"]) == Some(state));
            let since = known.filter(|_| same_state);
            let since = since.and_then(|old| at(old, "lastTransitionTime"));
            let new = value!({
                "type": kind,
                "status": state,
                "lastTransitionTime": (since.unwrap_or_else(|| now.to_owned())),
                "reason": reason,
                "message": message,
            });
            match old {
                Some(old) if conditions[old] == new => {}
                Some(old) => {
                    conditions[old] = new;
                    changed = true;
                }
                None => {
                    conditions.push(new);
                    changed = true;
                }
            }
        }
        if changed {
            status.insert("conditions", Value::Array(conditions));
        }
        changed
    }

    /// Each condition: its type, whether it is trouble, reason and message.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        FINE.map(|[kind, reason, message]| match self.trouble(kind) {
            Some((reason, message)) => (kind, true, reason, message),
            None => (kind, false, reason, message.to_owned()),
        })
    }

    fn trouble(&self, kind: &str) -> Option<(&'static str, String)> {
        let list = |counts: &BTreeMap<String, usize>, word: &str| {
            let list = counts.iter();
            let list: Vec<_> = list
                .map(|(name, count)| format!("{name} {word} {count} resource instances"))
                .collect();
            list.join(", ")
        };
        match kind {
            "NamespaceDeletionContentFailure" if !self.failures.is_empty() => {
                let mut failures = self.failures.clone();
                failures.sort();
                let (count, all) = (failures.len(), failures.join(", "));
                Some((
                    "ContentDeletionFailed",
                    format!("Failed to delete all resource types, {count} remaining: {all}"),
                ))
            }
            "NamespaceContentRemaining" if !self.contents.is_empty() => {
                let all = list(&self.contents, "has");
                Some((
                    "SomeResourcesRemain",
                    format!("Some resources are remaining: {all}"),
                ))
            }
            "NamespaceFinalizersRemaining" if !self.finalizers.is_empty() => {
                let all = list(&self.finalizers, "in");
                Some((
                    "SomeFinalizersRemain",
                    format!("Some content in the namespace has finalizers remaining: {all}"),
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let mut remains = Remains::default();
        let mut status = Map::new();
        assert!(remains.write(&mut status, "then"));
        assert!(!remains.write(&mut status, "now"));
        remains.contents.insert("widgets.example.com".into(), 2);
        remains.finalizers.insert("example.com/hold".into(), 1);
        assert!(remains.write(&mut status, "now"));
        let conditions = status.get("conditions").and_then(Value::as_array);
        let conditions = conditions.unwrap_or_default();
        let texts: Vec<_> = conditions
            .iter()
            .map(|condition| {
                let at = |field| condition.str_at(&[field]).unwrap_or_default();
                (at("status"), at("lastTransitionTime"), at("message"))
            })
            .collect();
        let contents = "Some resources are remaining: widgets.example.com has 2 resource instances";
        let finalizers = "Some content in the namespace has finalizers remaining: \
                          example.com/hold in 1 resource instances";
        assert_eq!(texts[3], ("True", "now", contents));
        assert_eq!(texts[4], ("True", "now", finalizers));
        assert!(
            texts[..3]
                .iter()
                .all(|(status, since, _)| { (*status, *since) == ("False", "then") })
        );
    }
}
