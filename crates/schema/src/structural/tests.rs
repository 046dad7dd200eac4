//! Cases: schemas, and what becomes of values under them.

mod properties;
mod values;

use object::field::FieldError;
use object::{Map, Value, json, value};

use super::*;
use crate::decode::Unknown;

fn map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        other => panic!("{other:?} is no map"),
    }
}

fn schema(value: Value) -> Structural {
    Structural::parse(&map(value))
}

/// The schema of an object whose spec has these fields.
fn with_spec(fields: Value) -> Structural {
    schema(value!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": fields}},
    }))
}

fn printed(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn text(value: &Value) -> String {
    String::from_utf8(json::to_vec(value)).expect("JSON is UTF-8")
}

#[test]
fn a_schema_takes_little_memory_per_field() {
    // A schema of 30 KB has some three hundred fields; at this size that is well below 100 KB.
    assert!(
        size_of::<Structural>() <= 256,
        "{}",
        size_of::<Structural>()
    );
}

#[test]
fn a_schema_nested_too_deeply_is_cut() {
    let mut nested = value!({"type": "string"});
    for _ in 0..5000 {
        nested = value!({"type": "array", "items": nested});
    }
    let parsed = schema(nested);
    let depth = std::iter::successors(Some(&parsed), |node| node.items.as_deref()).count();
    assert_eq!(depth, SCHEMA_DEPTH_MAX + 2);
}

#[test]
fn the_type_graph_is_that_of_upstream() {
    use crate::{ListTopology, Scalar};
    let parsed = with_spec(value!({
        "plain": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"},
            }},
        },
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
                  "properties": {"a": {"type": "string"}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                 "properties": {"inner": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        "either": {"x-kubernetes-int-or-string": true},
        "time": {"type": "string", "format": "date-time"},
        "inside": {"type": "object", "x-kubernetes-embedded-resource": true,
                   "x-kubernetes-preserve-unknown-fields": true},
    }));
    let mut meta = crate::Types::new();
    let name = meta.add(crate::Type {
        scalar: Some(Scalar::String),
        ..crate::Type::default()
    });
    let (types, root) = compile(&parsed, (&meta, name));
    let shape = |id: crate::TypeId| types.get(id).map.as_ref().expect("a map");
    let root = shape(root);
    let names: Vec<&str> = root.fields.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["apiVersion", "kind", "metadata", "spec"]);
    assert_eq!(root.element, None);
    let spec = shape(root.field("spec").expect("it is declared").ty);
    let of = |name: &str| types.get(spec.field(name).expect("it is declared").ty);
    let list = |name: &str| of(name).list.clone().expect("a list");
    assert_eq!(list("plain").topology, ListTopology::Atomic);
    assert_eq!(list("set").topology, ListTopology::Set);
    let keys = vec!["port".into(), "protocol".into()];
    assert_eq!(list("map").topology, ListTopology::Map(keys));
    let item = shape(list("map").element);
    let protocol = item.field("protocol").expect("it is declared");
    assert_eq!(protocol.default, Some(value!("TCP")));
    assert!(of("whole").map.as_ref().is_some_and(|map| map.atomic));
    let labels = of("labels").map.as_ref().expect("a map");
    assert!(labels.element.is_some() && labels.fields.is_empty());
    let free = of("free").map.as_ref().expect("a map");
    let inner = shape(free.field("inner").expect("it is declared").ty);
    assert!(free.element.is_some() && inner.element.is_some());
    assert_eq!(of("either").scalar, Some(Scalar::Untyped));
    assert!(of("either").list.is_some() && of("either").map.is_some());
    assert_eq!(of("time").scalar, Some(Scalar::Untyped));
    let inside = of("inside").map.as_ref().expect("a map");
    assert!(inside.field("metadata").is_some());
}

#[test]
fn undeclared_fields_are_dropped_and_told() {
    let parsed = with_spec(value!({
        "known": {"type": "string"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                 "properties": {"inner": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        "map": {"type": "object", "additionalProperties":
                {"type": "object", "properties": {"a": {"type": "string"}}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "any": {"type": "object", "additionalProperties": true},
    }));
    let mut object = map(value!({
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "one", "odd": 1},
        "spec": {
            "known": "x", "unknown": 1,
            "free": {"any": [1, {"b": 2}], "inner": {"a": "x", "gone": true}},
            "map": {"k": {"a": "x", "gone": 1}},
            "list": [{"a": "x", "gone": 1}, 5],
            "any": {"k": {"gone": 1}, "s": "x"},
        },
        "extra": {"a": 1},
    }));
    let dropped = prune(&parsed, &mut object, Unknown::Report);
    let expected = [
        "extra",
        "spec.any.k.gone",
        "spec.free.inner.gone",
        "spec.list[0].gone",
        "spec.map.k.gone",
        "spec.unknown",
    ];
    assert_eq!(dropped, expected);
    assert_eq!(
        object.get("spec").map(text).as_deref(),
        Some(
            r#"{"any":{"k":{},"s":"x"},"free":{"any":[1,{"b":2}],"inner":{"a":"x"}},"known":"x","list":[{"a":"x"},5],"map":{"k":{"a":"x"}}}"#
        )
    );
    assert!(
        object
            .get("metadata")
            .is_some_and(|meta| meta.get("odd").is_some())
    );
}

#[test]
fn defaults_fill_what_is_absent_or_null() {
    let parsed = with_spec(value!({
        "d": {"type": "object", "default": {"x": {"y": 1}}, "properties": {
            "x": {"type": "object", "properties": {
                "y": {"type": "integer"}, "z": {"type": "string", "default": "zz"}}}}},
        "n": {"type": "string", "nullable": true, "default": "n"},
        "nn": {"type": "string", "default": "nn"},
        "none": {"type": "string"},
        "l": {"type": "array", "items": {"type": "object", "properties": {
            "a": {"type": "string", "default": "aa"}}}},
        "m": {"type": "object", "additionalProperties": {"type": "string", "default": "x"}},
    }));
    let cases = [
        ("{}", r#"{"d":{"x":{"y":1,"z":"zz"}},"n":"n","nn":"nn"}"#),
        (
            r#"{"n":null,"nn":null,"none":null,"d":{}}"#,
            r#"{"d":{},"n":null,"nn":"nn"}"#,
        ),
        (
            r#"{"d":{"x":{}},"n":"","nn":"","l":[{},{"a":"b"}],"m":{"k":null}}"#,
            r#"{"d":{"x":{"z":"zz"}},"l":[{"a":"aa"},{"a":"b"}],"m":{"k":"x"},"n":"","nn":""}"#,
        ),
    ];
    for (spec, expected) in cases {
        let spec = json::parse(spec.as_bytes()).expect("a JSON text");
        let mut object = map(value!({"spec": spec}));
        prune_nulls(&parsed, &mut object);
        fill_defaults(&parsed, &mut object);
        assert_eq!(object.get("spec").map(text).as_deref(), Some(expected));
    }
}

#[test]
fn sets_and_list_maps_hold_nothing_twice() {
    let parsed = with_spec(value!({
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {"type": "object"}},
        "sets": {"type": "object", "additionalProperties": {
            "type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}},
    }));
    let object = map(value!({"spec": {
        "set": ["a", "b", "a", "a", "b"],
        "map": [{"port": 1, "protocol": "TCP"}, {"port": 1}, {"protocol": "TCP", "port": 1}],
        "sets": {"k": [1, 1.0, 1]},
    }}));
    let expected = [
        r#"spec.map[2]: Duplicate value: {"port":1,"protocol":"TCP"}"#,
        "spec.set[2]: Duplicate value: \"a\"",
        "spec.set[4]: Duplicate value: \"b\"",
        "spec.sets[k][2]: Duplicate value: 1",
    ];
    assert_eq!(printed(&check_unique(&parsed, &object)), expected);
    let object = map(value!({"spec": {"map": [{"port": 1}, "x"]}}));
    let expected =
        ["spec.map[1]: Invalid value: \"x\": must be an object for an array of list-type map"];
    assert_eq!(printed(&check_unique(&parsed, &object)), expected);
}
