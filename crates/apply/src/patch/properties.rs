//! What must hold for every document and every patch.

use object::{Map, Text, Value, value};
use proptest::collection::vec;
use proptest::prelude::*;

use super::json_patch::JsonPatch;
use super::strategic::tests::sample;
use super::{merge_patch, strategic};

/// Values over few keys, so that documents and patches meet.
fn any_value(nulls: bool) -> BoxedStrategy<Value> {
    let scalar = prop_oneof![
        (0..3i64).prop_map(Value::Int),
        any::<bool>().prop_map(Value::Bool),
        "[ab]?".prop_map(Value::from),
        Just(if nulls { Value::Null } else { Value::Int(7) }),
    ];
    scalar
        .prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::Array),
                entries(inner).prop_map(Value::Object),
            ]
        })
        .boxed()
}

fn entries(inner: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Map> {
    vec(("[abc~/]".prop_map(Text::from), inner), 0..4)
        .prop_map(Map::from_entries)
        .boxed()
}

fn any_map(nulls: bool) -> BoxedStrategy<Map> {
    entries(any_value(nulls))
}

/// The merge patch that turns `from` into `into`, neither of which holds nulls.
fn difference(from: &Map, into: &Map) -> Map {
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !into.contains_key(key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, wanted) in into.iter() {
        match (from.get(key), wanted) {
            (Some(here), _) if here == wanted => {}
            (Some(Value::Object(here)), Value::Object(wanted)) => {
                patch.insert(key.clone(), Value::Object(difference(here, wanted)));
            }
            _ => {
                patch.insert(key.clone(), wanted.clone());
            }
        }
    }
    patch
}

proptest! {
    #[test]
    fn a_merge_patch_applied_twice_is_applied_once(
        document in any_value(true),
        patch in any_map(true),
    ) {
        let once = merge_patch::apply(document, &patch);
        prop_assert_eq!(merge_patch::apply(once.clone(), &patch), once);
    }

    #[test]
    fn a_difference_is_a_merge_patch(from in any_map(false), into in any_map(false)) {
        let patch = difference(&from, &into);
        prop_assert_eq!(merge_patch::apply(Value::Object(from), &patch), Value::Object(into));
    }

    #[test]
    fn a_merge_patch_leaves_the_other_keys_alone(
        document in any_map(true),
        patch in any_map(true),
    ) {
        let patched = merge_patch::apply(Value::Object(document.clone()), &patch);
        for (key, value) in document.iter().filter(|(key, _)| !patch.contains_key(key)) {
            prop_assert_eq!(patched.get(key), Some(value));
        }
    }
}

fn path() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        "[abc]",
        "-?[0-2]",
        Just("-".to_owned()),
        Just("~1~0".to_owned())
    ];
    vec(step, 0..4).prop_map(|steps| steps.iter().map(|step| format!("/{step}")).collect())
}

fn operation(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let name = proptest::sample::select(names);
    (name, path(), path(), any_value(true)).prop_map(
        |(op, path, from, value)| value!({"op": op, "path": path, "from": from, "value": value}),
    )
}

proptest! {
    #[test]
    fn a_json_patch_of_tests_changes_nothing(
        document in any_value(true),
        tests in vec(operation(&["test"]), 0..4),
    ) {
        let patch = JsonPatch::read(Value::Array(tests)).expect("the operations are well formed");
        if let Ok(patched) = patch.apply(document.clone()) {
            prop_assert_eq!(patched, document);
        }
    }

    #[test]
    fn what_a_json_patch_adds_is_there_and_can_be_taken_away(
        document in any_map(true),
        value in any_value(true),
    ) {
        let patch = value!([
            {"op": "add", "path": "/new", "value": (value.clone())},
            {"op": "test", "path": "/new", "value": (value.clone())},
            {"op": "copy", "from": "/new", "path": "/copy"},
            {"op": "move", "from": "/copy", "path": "/moved"},
            {"op": "test", "path": "/moved", "value": value},
            {"op": "remove", "path": "/moved"},
            {"op": "remove", "path": "/new"},
        ]);
        let patch = JsonPatch::read(patch).expect("the operations are well formed");
        prop_assert_eq!(patch.apply(Value::Object(document.clone())), Ok(Value::Object(document)));
    }

    #[test]
    fn no_json_patch_makes_us_panic(
        document in any_value(true),
        operations in vec(operation(&["add", "remove", "replace", "move", "copy", "test"]), 0..8),
    ) {
        let patch = JsonPatch::read(Value::Array(operations)).expect("the operations are well formed");
        let first = patch.apply(document.clone());
        prop_assert_eq!(first, patch.apply(document));
    }
}

/// A document of the sample type: keys of lists are unique, as storage has them.
fn document() -> impl Strategy<Value = Value> {
    let names =
        || proptest::sample::subsequence(vec!["a", "b", "c", "d", "e"], 0..5).prop_shuffle();
    (names(), names(), names(), any::<bool>()).prop_map(|(finalizers, containers, labels, full)| {
        let container = |name: &str| {
            value!({"name": name, "image": "1", "ports": [{"port": 80, "name": name}, {"port": 81}]})
        };
        let mut map = Map::new();
        map.insert("finalizers", finalizers.into_iter().map(Value::from).collect::<Vec<_>>().into());
        let labels = labels.into_iter().map(|label| (label.into(), "v".into())).collect();
        map.insert("labels", Value::Object(labels));
        if full {
            let items: Vec<Value> = containers.into_iter().map(container).collect();
            map.insert("containers", items.into());
            map.insert("strategy", value!({"type": "a", "rolling": {"name": "x"}}));
        }
        Value::Object(map)
    })
}

/// A patch of the sample type that uses every directive.
fn strategic_patch() -> impl Strategy<Value = Value> {
    let names =
        || proptest::sample::subsequence(vec!["a", "c", "e", "x", "y"], 0..5).prop_shuffle();
    (names(), names(), names(), 0..6usize).prop_map(|(items, finalizers, gone, form)| {
        let scalars = |names: Vec<&str>| Value::Array(names.into_iter().map(Value::from).collect());
        let keys: Vec<Value> = items.iter().map(|name| value!({"name": (*name)})).collect();
        let changed = |(at, name): (usize, &&str)| match (form, at) {
            (0, 0) => value!({"name": (*name), "$patch": "delete"}),
            (1, 0) => value!({"name": (*name), "ports": [{"port": 81, "$patch": "delete"}]}),
            _ => value!({"name": (*name), "image": "2", "ports": [{"port": 82}, {"port": 80}]}),
        };
        let mut containers: Vec<Value> = items.iter().enumerate().map(changed).collect();
        let mut patch = value!({
            "finalizers": (scalars(finalizers)),
            "$deleteFromPrimitiveList/finalizers": (scalars(gone)),
        });
        let map = patch.as_object_mut().expect("it was written as a map");
        match form {
            2 => {
                map.insert("$setElementOrder/containers", keys.into());
            }
            3 => containers.push(value!({"$patch": "replace"})),
            4 => {
                map.insert("strategy", value!({"$retainKeys": ["type"], "type": "b"}));
                map.insert("labels", value!({"$patch": "replace", "z": "1"}));
            }
            _ => {
                map.insert("labels", value!({"a": null, "z": "1"}));
            }
        }
        map.insert("containers", containers.into());
        patch
    })
}

proptest! {
    #[test]
    fn a_strategic_patch_applied_twice_is_applied_once(
        document in document(),
        patch in strategic_patch(),
    ) {
        let (types, root) = sample();
        let apply = |document| strategic::apply(&types, root, document, &patch);
        if let Ok(once) = apply(document) {
            // Items that a patch adds are taken over as they are; merging them settles nested
            // directives, so the second result is the one that must stay.
            let twice = apply(once).expect("a patch applies to its own result");
            prop_assert_eq!(apply(twice.clone()), Ok(twice));
        }
    }

    #[test]
    fn a_strategic_patch_without_lists_is_a_merge_patch(
        document in any_map(false),
        patch in any_map(true),
    ) {
        let (types, root) = sample();
        let wrap = |map: Map| Map::from_entries(vec![("labels".into(), Value::Object(map))]);
        let scalars = |mut map: Map| {
            map.retain(|_, value| !matches!(value, Value::Array(_) | Value::Object(_)));
            map
        };
        let (document, patch) = (wrap(scalars(document)), wrap(scalars(patch)));
        let merged = merge_patch::apply(Value::Object(document.clone()), &patch);
        let document = Value::Object(document);
        prop_assert_eq!(
            strategic::apply(&types, root, document, &Value::Object(patch)),
            Ok(merged)
        );
    }

    #[test]
    fn no_strategic_patch_makes_us_panic(document in document(), patch in any_strategic()) {
        let (types, root) = sample();
        let first = strategic::apply(&types, root, document.clone(), &patch);
        prop_assert_eq!(first, strategic::apply(&types, root, document, &patch));
    }
}

/// Patches with the right words in the wrong places.
fn any_strategic() -> impl Strategy<Value = Value> {
    let key = proptest::sample::select(vec![
        "containers",
        "finalizers",
        "labels",
        "strategy",
        "name",
        "node",
        "ports",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/containers",
        "$deleteFromPrimitiveList/finalizers",
        "$setElementOrder",
    ]);
    let scalar = prop_oneof![
        Just(Value::Null),
        proptest::sample::select(vec!["a", "b", "delete", "replace", "merge"])
            .prop_map(Value::from),
        (0..2i64).prop_map(Value::Int),
    ];
    scalar.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((key.clone().prop_map(Text::from), inner), 0..5)
                .prop_map(|entries| Value::Object(Map::from_entries(entries))),
        ]
    })
}
