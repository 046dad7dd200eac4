//! Moving from client-side to server-side apply.

use apply::{ApplyError, OnConflict, Writer};
use object::{Value, json, value};

use crate::support::{types::Schema, world::World};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn by(name: &str) -> Writer<'_> {
    Writer {
        name,
        api_version: "v1",
        subresource: "",
    }
}

fn object(data: Value, annotations: Value) -> Value {
    value!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "n", "annotations": annotations}})
}

fn plain(data: Value) -> Value {
    value!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {"name": "n"}})
}

/// A world in which client-side apply wrote `applied`, and others made `data` of it.
fn world(applied: &Value, data: Value) -> World {
    let schema = Schema::parse(
        r#"{"fields":{"apiVersion":"string","kind":"string","data":{"map":"string"},
            "metadata":{"fields":{"name":"string","annotations":{"map":"string"}}}}}"#,
    );
    let mut world = World::new("v1", schema);
    let mut text = json::to_vec(applied);
    text.push(b'\n');
    let text = String::from_utf8(text).expect("JSON is text");
    let annotations = || value!({LAST_APPLIED: (text.as_str())});
    let first = applied.get("data").cloned().unwrap_or_default();
    world.update(
        by("kubectl-client-side-apply"),
        &object(first, annotations()),
    );
    world.update(by("other"), &object(data, annotations()));
    world
}

fn annotation(world: &World) -> Option<&str> {
    world
        .live
        .as_ref()?
        .at(&["metadata", "annotations"])?
        .get(LAST_APPLIED)?
        .as_str()
}

fn conflicts(outcome: Result<apply::Applied, ApplyError>) -> Vec<String> {
    match outcome {
        Ok(_) => Vec::new(),
        Err(ApplyError::Conflicts(conflicts)) => conflicts
            .0
            .iter()
            .map(|conflict| conflict.field())
            .collect(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn kubectl_takes_over_what_is_still_as_it_was_applied() {
    let applied = plain(value!({"a": "1", "b": "1"}));
    let mut world = world(&applied, value!({"a": "1", "b": "1", "c": "1"}));
    let wanted = plain(value!({"a": "2", "b": "1"}));
    assert_eq!(
        conflicts(world.apply(by("someone"), &wanted, OnConflict::Refuse)),
        [".data.a"],
        "the allowance is for kubectl alone"
    );
    world
        .apply(by("kubectl"), &wanted, OnConflict::Refuse)
        .expect("all conflicts are allowed");
    assert_eq!(
        annotation(&world),
        Some(
            "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"2\",\"b\":\"1\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"n\"}}\n"
        )
    );
    let owner = world
        .set_of("kubectl-client-side-apply/update")
        .map(apply::FieldSet::to_fields_v1);
    assert!(
        owner.is_some_and(|fields| fields.contains("f:kubectl.kubernetes.io")),
        "the annotation stays with who owned it"
    );
}

#[test]
fn values_that_changed_since_are_conflicts_still() {
    let applied = plain(value!({"a": "1", "b": "1"}));
    let mut world = world(&applied, value!({"a": "1", "b": "other"}));
    let wanted = plain(value!({"a": "2", "b": "2"}));
    assert_eq!(
        conflicts(world.apply(by("kubectl"), &wanted, OnConflict::Refuse)),
        [".data.b"],
        "only what is not allowed is reported"
    );
}

#[test]
fn an_unreadable_or_foreign_annotation_allows_nothing() {
    let applied = plain(value!({"a": "1"}));
    let texts = [
        "",
        "nonsense",
        "[]",
        r#"{"apiVersion":"v2","kind":"ConfigMap","data":{"a":"1"}}"#,
        r#"{"apiVersion":"v1","kind":"ConfigMap","unknown":1,"data":{"a":"1"}}"#,
    ];
    for text in texts {
        let mut world = world(&applied, value!({"a": "1", "x": "1"}));
        world.update(
            by("other"),
            &object(value!({"a": "1", "x": "1"}), value!({LAST_APPLIED: text})),
        );
        let wanted = plain(value!({"a": "2"}));
        assert_eq!(
            conflicts(world.apply(by("kubectl"), &wanted, OnConflict::Refuse)),
            [".data.a"],
            "{text}"
        );
        world
            .apply(by("kubectl"), &wanted, OnConflict::Force)
            .expect("forced");
        let repaired = annotation(&world).is_some_and(|text| text.contains(r#""a":"2""#));
        assert_eq!(repaired, !text.is_empty(), "{text}");
    }
}

#[test]
fn the_annotation_is_only_kept_current_where_it_is() {
    let applied = plain(value!({"a": "1"}));
    let mut world = world(&applied, value!({"a": "1"}));
    world
        .apply(
            by("someone"),
            &plain(value!({"b": "1"})),
            OnConflict::Refuse,
        )
        .expect("new field");
    assert!(annotation(&world).is_some_and(|text| !text.contains(r#""b""#)));
    world.update(by("other"), &plain(value!({"a": "1", "b": "1"})));
    world
        .apply(
            by("kubectl"),
            &plain(value!({"c": "1"})),
            OnConflict::Refuse,
        )
        .expect("new field");
    assert_eq!(annotation(&world), None);
}

#[test]
fn an_annotation_that_does_not_fit_is_removed() {
    let applied = plain(value!({"a": "1"}));
    let mut world = world(&applied, value!({"a": "1"}));
    let large = "x".repeat(300 * 1024);
    let wanted = plain(value!({"a": "1", "large": large}));
    world
        .apply(by("kubectl"), &wanted, OnConflict::Refuse)
        .expect("the object itself fits");
    assert_eq!(annotation(&world), None);
}

#[test]
fn applying_the_annotation_itself_does_not_nest_it() {
    let applied = plain(value!({"a": "1"}));
    let mut world = world(&applied, value!({"a": "1"}));
    let wanted = object(
        value!({"a": "1"}),
        value!({LAST_APPLIED: "{}", "other": "x"}),
    );
    world
        .apply(by("kubectl"), &wanted, OnConflict::Force)
        .expect("forced");
    assert_eq!(
        annotation(&world),
        Some(
            "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"1\"},\"kind\":\"ConfigMap\",\"metadata\":{\"annotations\":{\"other\":\"x\"},\"name\":\"n\"}}\n"
        )
    );
}
