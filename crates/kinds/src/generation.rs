//! When `metadata.generation` counts up.
//!
//! Clients wait for a controller to have seen the generation they wrote, so it must count exactly
//! the changes that the controller has to act upon.

use object::{Map, Text, Value};

/// When `metadata.generation` counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Never: the field stays absent.
    None,
    /// With every change of `spec`.
    Spec,
    /// With every change outside `metadata` and `status`.
    AllButStatus,
    /// With every change of `spec` or of the annotations, but not through `/status`.
    SpecAndAnnotations,
    /// With every change outside `metadata`.
    All,
    /// With every change outside `metadata`, or of the labels.
    AllAndLabels,
    /// With every change of `spec`, from nothing: the field is absent until the first change.
    SpecOnceChanged,
    /// With every change of `spec`, be it that something absent is now empty.
    ExactSpec,
    /// With every change outside `metadata` and `status`, be it that something absent is now empty.
    ExactAllButStatus,
    /// Never: the field is 1 for life.
    Fixed,
}

impl Generation {
    /// The generation of a new object; `None` where the field stays absent.
    pub fn first(self) -> Option<i64> {
        match self {
            Generation::None | Generation::SpecOnceChanged => None,
            _ => Some(1),
        }
    }

    /// Whether something empty where nothing was is a change. Contract: the strategies of
    /// upstream that compare with `reflect.DeepEqual`.
    pub fn counts_blanks(self) -> bool {
        matches!(self, Generation::ExactSpec | Generation::ExactAllButStatus)
    }

    /// Whether the change from `old` to `new` through this subresource (empty for the object
    /// itself) makes a new generation.
    pub fn counts(self, new: &Map, old: &Map, subresource: &str) -> bool {
        let spec_changed = || new.get("spec") != old.get("spec");
        let metadata_changed = |key: &str| in_metadata(new, key) != in_metadata(old, key);
        match self {
            Generation::None | Generation::Fixed => false,
            Generation::Spec | Generation::SpecOnceChanged | Generation::ExactSpec => {
                spec_changed()
            }
            Generation::SpecAndAnnotations => {
                spec_changed() || (subresource != "status" && metadata_changed("annotations"))
            }
            Generation::All => differ_outside(new, old, &["metadata"]),
            Generation::AllButStatus | Generation::ExactAllButStatus => {
                differ_outside(new, old, &["metadata", "status"])
            }
            Generation::AllAndLabels => {
                metadata_changed("labels") || differ_outside(new, old, &["metadata"])
            }
        }
    }
}

fn in_metadata<'a>(object: &'a Map, key: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(key)
}

/// Whether anything else differs; in which version an object comes does not matter.
fn differ_outside(new: &Map, old: &Map, parts: &[&str]) -> bool {
    let counts = |(key, _): &(&Text, &Value)| {
        !parts.contains(&key.as_str()) && !matches!(key.as_str(), "apiVersion" | "kind")
    };
    !new.iter().filter(counts).eq(old.iter().filter(counts))
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    #[test]
    fn which_change_makes_a_new_generation() {
        let old = value!({"apiVersion": "v1", "metadata": {}, "spec": 1, "status": 1, "more": 1});
        let changes = [
            ("version", value!({"apiVersion": "v2"})),
            ("labels", value!({"metadata": {"labels": {}}})),
            ("annotations", value!({"metadata": {"annotations": {}}})),
            ("spec", value!({"spec": 2})),
            ("status", value!({"status": 2})),
            ("more", value!({"more": 2})),
        ];
        let cases = [
            (Generation::None, ""),
            (Generation::Fixed, ""),
            (Generation::Spec, "spec"),
            (Generation::SpecOnceChanged, "spec"),
            (Generation::SpecAndAnnotations, "annotations spec"),
            (Generation::All, "spec status more"),
            (Generation::AllButStatus, "spec more"),
            (Generation::AllAndLabels, "labels spec status more"),
        ];
        let Value::Object(old) = old else {
            panic!("the literal is a map")
        };
        for (generation, expected) in cases {
            let counted: Vec<&str> = changes
                .iter()
                .filter(|(_, change)| {
                    let mut new = old.clone();
                    for (key, value) in change.as_object().into_iter().flat_map(Map::iter) {
                        new.insert(key.clone(), value.clone());
                    }
                    generation.counts(&new, &old, "")
                })
                .map(|(name, _)| *name)
                .collect();
            assert_eq!(counted.join(" "), expected, "{generation:?}");
        }
    }

    #[test]
    fn annotations_do_not_count_through_the_status() {
        let (Value::Object(old), Value::Object(new)) = (
            value!({"spec": 1}),
            value!({"spec": 1, "metadata": {"annotations": {}}}),
        ) else {
            panic!("the literals are maps")
        };
        assert!(Generation::SpecAndAnnotations.counts(&new, &old, ""));
        assert!(!Generation::SpecAndAnnotations.counts(&new, &old, "status"));
    }

    #[test]
    fn which_objects_begin_with_a_generation() {
        assert_eq!(Generation::None.first(), None);
        assert_eq!(Generation::SpecOnceChanged.first(), None);
        assert_eq!(Generation::Fixed.first(), Some(1));
        assert_eq!(Generation::Spec.first(), Some(1));
    }
}
