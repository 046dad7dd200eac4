//! Large and deep objects: nothing recurses without bound and nothing is quadratic.

use apply::{FieldSet, ManagedFields, Manager, OnConflict, Operation, Writer};
use object::{Map, Value, value};

use crate::support::{types::Schema, world::World};

fn by(name: &str) -> Writer<'_> {
    Writer {
        name,
        api_version: "v1",
        subresource: "",
    }
}

/// A chain of maps; taken apart level by level, because dropping it whole recurses.
struct Deep(Value);

impl Deep {
    fn new(levels: usize, leaf: i64) -> Deep {
        let deeper = |value, _| Value::Object(Map::from_entries(vec![("a".into(), value)]));
        Deep((0..levels).fold(leaf.into(), deeper))
    }
}

impl Drop for Deep {
    fn drop(&mut self) {
        let mut value = std::mem::take(&mut self.0);
        while let Value::Object(map) = &mut value {
            match map.remove("a") {
                Some(inner) => value = inner,
                None => break,
            }
        }
    }
}

#[test]
fn ten_thousand_levels_are_walked_without_recursion() {
    let schema = Schema::parse(r#""deduced""#);
    let typing = schema.typing();
    let (one, two) = (Deep::new(10_000, 1), Deep::new(10_000, 2));
    assert_eq!(
        apply::validate(&one.0, typing, apply::Repeats::Refused),
        Ok(())
    );
    let set = apply::field_set(&one.0, typing);
    assert_eq!(set.len(), 10_000);
    let change = apply::compare(&one.0, &two.0, typing).expect("valid");
    assert_eq!((change.modified.len(), change.added.len()), (1, 0));
    let merged = Deep(apply::merge(
        &one.0,
        Deep::new(10_000, 3).0.clone_deep(),
        typing,
    ));
    let leaf = apply::remove_items(merged.0.clone_deep(), &change.modified, typing);
    let left = Deep(leaf);
    assert_eq!(apply::field_set(&left.0, typing).len(), 9_999);
    let text = set.to_fields_v1();
    assert_eq!(FieldSet::from_fields_v1(text.as_bytes()), Ok(set));
}

/// Copies a chain of maps without recursion.
trait CloneDeep {
    fn clone_deep(&self) -> Value;
}

impl CloneDeep for Value {
    fn clone_deep(&self) -> Value {
        let mut levels = 0;
        let mut at = self;
        while let Some(inner) = at.get("a") {
            at = inner;
            levels += 1;
        }
        let deeper = |value, _| Value::Object(Map::from_entries(vec![("a".into(), value)]));
        (0..levels).fold(at.clone(), deeper)
    }
}

#[test]
fn ten_thousand_items_are_merged_in_one_pass() {
    let schema = Schema::parse(
        r#"{"fields":{"list":{"items":{"fields":{"name":"string","value":"number"}},"keys":["name"]}}}"#,
    );
    let mut world = World::new("v1", schema);
    let item =
        |at: usize, value: usize| value!({"name": (format!("n{at}")), "value": (value as i64)});
    let list = |items: Vec<Value>| value!({"list": items});
    let forward = list((0..10_000).map(|at| item(at, 0)).collect());
    world
        .apply(by("a"), &forward, OnConflict::Refuse)
        .expect("new");
    let backward = list((0..10_000).rev().map(|at| item(at, 1)).collect());
    world
        .apply(by("a"), &backward, OnConflict::Refuse)
        .expect("its own");
    assert_eq!(world.live.as_ref(), Some(&backward));
    let other = list((5_000..15_000).map(|at| item(at, 1)).collect());
    world
        .apply(by("b"), &other, OnConflict::Refuse)
        .expect("the same values");
    let shared = list((0..10).map(|at| item(at, 1)).collect());
    world
        .apply(by("a"), &shared, OnConflict::Refuse)
        .expect("giving up");
    let live = world
        .live
        .as_ref()
        .and_then(|live| live.get("list"))
        .and_then(Value::as_array);
    assert_eq!(live.map(<[Value]>::len), Some(10_010));
}

#[test]
fn three_hundred_managers_are_no_obstacle() {
    let mut world = World::new(
        "v1",
        Schema::parse(r#"{"fields":{"data":{"map":"string"}}}"#),
    );
    let keys: Map = (0..300)
        .map(|at| (format!("k{at}").into(), "1".into()))
        .collect();
    world.live = Some(value!({"data": keys}));
    world.managers = ManagedFields::from_managers((0..300).map(|at| {
        Manager {
            name: format!("m{at}").into(),
            operation: Operation::Apply,
            api_version: "v1".into(),
            subresource: Default::default(),
            time: Some(at),
            set: FieldSet::from_fields_v1(format!(r#"{{"f:data":{{"f:k{at}":{{}}}}}}"#).as_bytes())
                .expect("a set"),
        }
    }));
    let wanted: Map = (0..300)
        .map(|at| (format!("k{at}").into(), "2".into()))
        .collect();
    let refused = world.apply(
        by("new"),
        &value!({"data": (wanted.clone())}),
        OnConflict::Refuse,
    );
    let Err(apply::ApplyError::Conflicts(conflicts)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(conflicts.0.len(), 300);
    world
        .apply(by("new"), &value!({"data": wanted}), OnConflict::Force)
        .expect("forced");
    assert_eq!(world.managers.len(), 1);
}

#[test]
fn ten_thousand_levels_can_be_applied_and_given_up() {
    let mut world = World::new("v1", Schema::parse(r#""deduced""#));
    world
        .apply(by("a"), &Deep::new(10_000, 1).0, OnConflict::Refuse)
        .expect("new");
    world.update(by("u"), &Deep::new(10_000, 2).0);
    let refused = world.apply(by("a"), &Deep::new(10_000, 3).0, OnConflict::Refuse);
    assert!(refused.is_err());
    world
        .apply(by("a"), &Deep::new(10_000, 3).0, OnConflict::Force)
        .expect("forced");
    world
        .apply(by("a"), &value!({"b": 1}), OnConflict::Refuse)
        .expect("giving up");
    assert_eq!(world.live, Some(value!({"b": 1})));
}

#[test]
fn ten_thousand_conflicts_are_described_in_one_pass() {
    let schema = Schema::parse(
        r#"{"fields":{"list":{"items":{"fields":{"name":"string","value":"number"}},"keys":["name"]}}}"#,
    );
    let mut world = World::new("v1", schema);
    let list = |value: i64| {
        let item = |at: i64| value!({"name": (format!("n{at}")), "value": value});
        value!({"list": ((0..10_000).map(item).collect::<Vec<Value>>())})
    };
    world
        .apply(by("a"), &list(1), OnConflict::Refuse)
        .expect("new");
    let refused = world.apply(by("b"), &list(2), OnConflict::Refuse);
    let Err(apply::ApplyError::Conflicts(conflicts)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(conflicts.0.len(), 10_000);
    let as_told = |conflict: &apply::Conflict| {
        conflict.live == Some(1.into()) && conflict.wanted == Some(2.into())
    };
    assert!(conflicts.0.iter().all(as_told));
}
