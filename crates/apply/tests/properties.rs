//! What must hold whatever is written. `PROPTEST_CASES=100000` makes it a long run.

use apply::{
    FieldSet, KnownSets, ManagedFields, OnConflict, Path, PathElement, Style, Writer, compare,
    field_set, merge, remove_items, value_at,
};
use object::{Map, Text, Value};
use proptest::{collection, prelude::*, sample};

use crate::support::{types::Schema, world::World};

const SCHEMA: &str = r#"{"fields":{
    "leaf":"scalar","map":{"map":"scalar"},"amap":{"map":"scalar","atomic":true},
    "set":{"set":"scalar"},"list":{"list":"scalar"},"struct":{"fields":{"a":"scalar","b":{"map":"scalar"}}},
    "items":{"items":{"fields":{"k":"string","p":{"of":"number","default":1},"v":"scalar","t":{"set":"scalar"}}},
        "keys":["k","p"]},
    "any":"deduced"}}"#;

fn by(name: &str) -> Writer<'_> {
    Writer {
        name,
        api_version: "v1",
        subresource: "",
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        sample::select(vec!["a", "b", "c"]).prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
    ]
}

fn scalars(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    collection::btree_map(sample::select(keys), scalar(), 0..3).prop_map(|entries| {
        Value::Object(
            entries
                .into_iter()
                .map(|(key, value)| (Text::from(key), value))
                .collect(),
        )
    })
}

fn set() -> impl Strategy<Value = Value> {
    collection::vec(0..4i64, 0..4).prop_map(|mut numbers| {
        let mut seen = Vec::new();
        numbers.retain(|number| {
            !seen.contains(number) && {
                seen.push(*number);
                true
            }
        });
        Value::Array(numbers.into_iter().map(Value::from).collect())
    })
}

fn items() -> impl Strategy<Value = Value> {
    let item = (
        sample::select(vec!["x", "y"]),
        prop::option::of(1..3i64),
        prop::option::of(scalar()),
        prop::option::of(set()),
    );
    collection::vec(item, 0..4).prop_map(|items| {
        let mut seen = Vec::new();
        let mut out = Vec::new();
        for (key, port, value, tags) in items {
            let identity = (key, port.unwrap_or(1));
            if seen.contains(&identity) {
                continue;
            }
            seen.push(identity);
            let mut item = Map::new();
            item.insert("k", key.into());
            let fields = [("p", port.map(Value::from)), ("v", value), ("t", tags)];
            for (name, value) in fields {
                if let Some(value) = value {
                    item.insert(name, value);
                }
            }
            out.push(Value::Object(item));
        }
        Value::Array(out)
    })
}

fn deduced() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            collection::btree_map(sample::select(vec!["a", "b"]), inner, 0..3).prop_map(
                |entries| {
                    let entry = |(key, value)| (Text::from(key), value);
                    Value::Object(entries.into_iter().map(entry).collect())
                }
            ),
        ]
    })
}

/// A valid object of the schema above.
fn object() -> impl Strategy<Value = Value> {
    let some = |strategy: BoxedStrategy<Value>| prop::option::of(strategy);
    let structure =
        (some(scalar().boxed()), some(scalars(&["m", "n"]).boxed())).prop_map(|(a, b)| {
            let fields = [("a", a), ("b", b)];
            Value::Object(
                fields
                    .into_iter()
                    .filter_map(|(name, it)| Some((Text::from(name), it?)))
                    .collect(),
            )
        });
    (
        some(scalar().boxed()),
        some(scalars(&["a", "b", "c"]).boxed()),
        some(scalars(&["a", "b"]).boxed()),
        some(set().boxed()),
        some(set().boxed()),
        some(structure.boxed()),
        some(items().boxed()),
        some(deduced().boxed()),
    )
        .prop_map(|(leaf, map, amap, set, list, structure, items, any)| {
            let fields = [
                ("leaf", leaf),
                ("map", map),
                ("amap", amap),
                ("set", set),
                ("list", list),
                ("struct", structure),
                ("items", items),
                ("any", any),
            ];
            let field = |(name, value): (&str, Option<Value>)| Some((Text::from(name), value?));
            Value::Object(fields.into_iter().filter_map(field).collect())
        })
}

#[derive(Clone, Debug)]
enum Write {
    Apply(&'static str, Value),
    Update(&'static str, Value),
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let write = (sample::select(vec!["a", "b", "c"]), object(), any::<bool>());
    let write = write.prop_map(|(name, object, applies)| match applies {
        true => Write::Apply(name, object),
        false => Write::Update(name, object),
    });
    collection::vec(write, 1..6)
}

fn world(writes: &[Write]) -> World {
    let mut world = World::new("v1", Schema::parse(SCHEMA));
    for write in writes {
        match write {
            Write::Apply(name, object) => {
                world
                    .apply(by(name), object, OnConflict::Force)
                    .expect("force never conflicts");
            }
            Write::Update(name, object) => world.update(by(name), object),
        }
    }
    world
}

fn has_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        Value::Object(map) => map.is_empty() || map.iter().any(|(_, value)| has_empty(value)),
        _ => false,
    }
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[a-c.<é\"\\\\\u{2028}]{0,3}".prop_map(|name| PathElement::Field(name.into())),
        (0..3i64, "[a-b<&]{0,2}").prop_map(|(port, name)| {
            PathElement::key([("port", Value::from(port)), ("name", Value::from(name))])
        }),
        scalar().prop_map(PathElement::Value),
        (0..20i64).prop_map(PathElement::Index),
    ]
}

fn field_sets() -> impl Strategy<Value = FieldSet> {
    collection::vec(collection::vec(element(), 1..4).prop_map(Path), 0..12)
        .prop_map(FieldSet::from_paths)
}

proptest! {
    #[test]
    fn sets_survive_the_wire(set in field_sets()) {
        prop_assert_eq!(FieldSet::from_fields_v1(set.to_fields_v1().as_bytes()), Ok(set.clone()));
        prop_assert_eq!(FieldSet::from_value(&set.to_value()), Ok(set.clone()));
        prop_assert_eq!(FieldSet::from_paths(set.paths()), set);
    }

    #[test]
    fn set_algebra_is_that_of_sets(left in field_sets(), right in field_sets()) {
        let (union, both) = (left.union(&right), left.intersection(&right));
        let rest = left.difference(&right);
        prop_assert_eq!(&both.union(&rest), &left);
        prop_assert_eq!(rest.len() + both.len(), left.len());
        prop_assert_eq!(union.len(), rest.len() + right.len());
        prop_assert!(left.is_subset(&union) && right.is_subset(&union) && both.is_subset(&left));
        for path in union.paths() {
            prop_assert_eq!(both.contains(&path), left.contains(&path) && right.contains(&path));
            prop_assert_eq!(rest.contains(&path), left.contains(&path) && !right.contains(&path));
        }
        prop_assert_eq!(left.is_subset(&right), rest.is_empty());
        prop_assert_eq!(left.is_disjoint(&right), both.is_empty());
        prop_assert!(left.recursive_difference(&right).is_subset(&rest));
    }

    #[test]
    fn managed_fields_survive_both_styles(writes in writes()) {
        let managers = world(&writes).managers;
        for style in [Style::Typed, Style::Custom] {
            let mut text = Vec::new();
            managers.write_json(style, &mut text);
            prop_assert_eq!(ManagedFields::parse(&text), Ok(managers.clone()));
            let known = KnownSets::new();
            for _ in 0..2 {
                let read = ManagedFields::parse_knowing(&text, &known);
                prop_assert_eq!(&read, &Ok(managers.clone()));
                let mut again = Vec::new();
                read.expect("just compared").write_json(style, &mut again);
                prop_assert_eq!(&again, &text);
            }
        }
        let tree = managers.encode().unwrap_or_default();
        prop_assert_eq!(ManagedFields::decode(&tree), Ok(managers));
    }

    #[test]
    fn applying_again_changes_nothing(writes in writes(), object in object()) {
        let mut world = world(&writes);
        // A container emptied by the first apply is null after it and empty after the second, as
        // upstream has it; from then on nothing moves.
        let emptied = has_empty(&object);
        for _ in 0..if emptied { 2 } else { 1 } {
            world.apply(by("a"), &object, OnConflict::Force).expect("forced");
        }
        // An object that nobody manages any more is attributed to everyone before it is applied.
        prop_assume!(!world.managers.is_empty());
        let (live, managers) = (world.live.clone(), world.managers.clone());
        let again = world.apply(by("a"), &object, OnConflict::Refuse);
        prop_assert!(again.is_ok_and(|again| !again.changed()));
        prop_assert_eq!(world.live, live);
        prop_assert_eq!(world.managers, managers);
    }

    #[test]
    fn an_applier_owns_exactly_what_it_asked_for(writes in writes(), object in object()) {
        let mut world = world(&writes);
        world.apply(by("a"), &object, OnConflict::Force).expect("forced");
        let asked = field_set(&object, world.kind.versions["v1"].typing());
        prop_assert_eq!(world.set_of("a").cloned().unwrap_or_default(), asked);
    }

    #[test]
    fn an_applied_leaf_has_the_applied_value(writes in writes(), object in object()) {
        let mut world = world(&writes);
        world.apply(by("a"), &object, OnConflict::Force).expect("forced");
        let typing = world.kind.versions["v1"].typing();
        let live = world.live.clone().unwrap_or_default();
        for path in field_set(&object, typing).leaves().paths() {
            let asked = value_at(&object, &path, typing);
            let found = value_at(&live, &path, typing);
            let container = matches!(asked, Some(Value::Object(map)) if map.is_empty());
            prop_assert!(container || asked == found, "{}: {:?} {:?}", path, asked, found);
        }
    }

    #[test]
    fn force_leaves_one_owner_of_what_was_in_conflict(writes in writes(), object in object()) {
        let mut world = world(&writes);
        let refused = world.apply(by("z"), &object, OnConflict::Refuse);
        if let Err(apply::ApplyError::Conflicts(conflicts)) = refused {
            world.apply(by("z"), &object, OnConflict::Force).expect("forced");
            for conflict in conflicts.0 {
                let owners = world.managers.managers().iter();
                let owners: Vec<&str> = owners
                    .filter(|manager| manager.set.contains(&conflict.path))
                    .map(|manager| manager.name.as_str())
                    .collect();
                prop_assert!(owners.is_empty() || owners == ["z"], "{} {:?}", conflict.path, owners);
            }
        }
    }

    #[test]
    fn a_refused_apply_changes_nothing(writes in writes(), object in object()) {
        let mut world = world(&writes);
        let before = (world.live.clone(), world.managers.clone());
        if world.apply(by("z"), &object, OnConflict::Refuse).is_err() {
            prop_assert_eq!((world.live, world.managers), before);
        }
    }

    #[test]
    fn giving_up_never_changes_what_another_applier_owns(
        writes in writes(),
        mine in object(),
        theirs in object(),
    ) {
        let mut world = world(&writes);
        world.apply(by("mine"), &mine, OnConflict::Force).expect("forced");
        world.apply(by("theirs"), &theirs, OnConflict::Force).expect("forced");
        let before = world.live.clone().unwrap_or_default();
        let nothing = Value::Object(Map::new());
        world.apply(by("mine"), &nothing, OnConflict::Refuse).expect("nothing conflicts");
        let after = world.live.clone().unwrap_or_default();
        let typing = world.kind.versions["v1"].typing();
        for path in field_set(&theirs, typing).leaves().paths() {
            let (was, is) = (value_at(&before, &path, typing), value_at(&after, &path, typing));
            // A container that they own as such may lose what was only mine.
            let container = matches!(was, Some(Value::Object(_) | Value::Null));
            prop_assert!(container || was == is, "{}: {:?} {:?}", path, was, is);
        }
        prop_assert_eq!(world.set_of("mine"), None);
    }

    #[test]
    fn disjoint_appliers_commute(left in object(), right in object()) {
        let only = |object: &Value, names: &[&str]| {
            let entries = object.as_object().into_iter().flat_map(|map| map.iter());
            let kept = entries.filter(|(name, _)| names.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        };
        let mut left = only(&left, &["leaf", "map", "items", "any"]);
        let mut right = only(&right, &["amap", "set", "list", "struct"]);
        // Each owns something: an object that nobody manages would be attributed first.
        left.as_object_mut().expect("a map").insert("leaf", "l".into());
        right.as_object_mut().expect("a map").insert("list", Value::Array(Vec::new()));
        let run = |first: (&str, &Value), second: (&str, &Value)| {
            let mut world = World::new("v1", Schema::parse(SCHEMA));
            for (name, object) in [first, second] {
                world.apply(by(name), object, OnConflict::Refuse).expect("nothing in common");
            }
            world
        };
        let one = run(("l", &left), ("r", &right));
        let other = run(("r", &right), ("l", &left));
        prop_assert_eq!(one.live.unwrap_or_default(), other.live.unwrap_or_default());
        prop_assert!(one.managers.same_owners(&other.managers));
    }

    #[test]
    fn merging_invents_nothing(live in object(), config in object()) {
        let schema = Schema::parse(SCHEMA);
        let typing = schema.typing();
        let merged = merge(&live, config.clone(), typing);
        let owned = field_set(&merged, typing);
        let given = field_set(&live, typing).union(&field_set(&config, typing));
        prop_assert!(owned.leaves().is_subset(&given), "{:?} {:?}", owned, given);
        for path in owned.leaves().paths() {
            let found = value_at(&merged, &path, typing);
            let either = [value_at(&live, &path, typing), value_at(&config, &path, typing)];
            prop_assert!(either.contains(&found), "{}", path);
        }
        prop_assert_eq!(merge(&merged, config, typing), merged);
    }

    #[test]
    fn an_updater_owns_exactly_what_it_changed(writes in writes(), object in object()) {
        let mut world = world(&writes);
        if world.managers.is_empty() {
            // An object that nobody manages is not tracked; rejecting the case would end long runs.
            return Ok(());
        }
        let before = world.live.clone().unwrap_or_default();
        world.update(by("fresh"), &object);
        let typing = world.kind.versions["v1"].typing();
        let change = compare(&before, &object, typing).expect("valid");
        let gained = change.modified.union(&change.added);
        prop_assert_eq!(world.set_of("fresh/update").cloned().unwrap_or_default(), gained);
    }

    #[test]
    fn what_is_removed_is_gone(object in object(), other in object()) {
        let schema = Schema::parse(SCHEMA);
        let typing = schema.typing();
        let set = field_set(&other, typing);
        let left = remove_items(object.clone(), &set, typing);
        for path in set.leaves().paths() {
            prop_assert_eq!(value_at(&left, &path, typing), None, "{}", path);
        }
        prop_assert_eq!(remove_items(object.clone(), &FieldSet::new(), typing).is_null(),
            object == Value::Object(Map::new()));
    }
}
