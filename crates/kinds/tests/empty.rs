//! Lists and dictionaries that are sent empty.

use object::{Map, Value, value};
use schema::decode::Unknown;
use windlass_kinds::{Catalogue, Kind};

fn kind(group: &str, version: &str, resource: &str) -> &'static Kind {
    let kind = Catalogue::builtin().resource(group, version, resource);
    kind.expect("it is built in")
}

fn map(value: Value) -> Map {
    value.as_object().expect("a map").clone()
}

#[test]
fn an_empty_list_that_always_prints_is_kept_until_it_is_stored() {
    let kind = kind("rbac.authorization.k8s.io", "v1", "clusterroles");
    let empty = Value::Array(Vec::new());
    // Who sends an empty list of rules owns it; who sends none, or null, does not.
    for (sent, read) in [
        (value!({"rules": []}), &empty),
        (value!({"rules": null}), &Value::Null),
        (value!({}), &Value::Null),
    ] {
        let reading = kind.read(map(sent), Unknown::Drop).expect("it can be read");
        assert_eq!(reading.object.get("rules"), Some(read));
        assert_eq!(reading.has_blanks, *read == empty);
        let printed = kind.print(reading.object);
        assert_eq!(printed.get("rules"), Some(&Value::Null));
    }
}

#[test]
fn which_blanks_does_an_object_have_until_it_is_stored() {
    let kind = kind("", "v1", "pods");
    let cases = [
        ("nodeSelector", value!({}), None),
        ("hostAliases", value!([]), None),
        // Upstream keeps these behind pointers, or always prints them.
        ("affinity", value!({}), Some(value!({}))),
        ("containers", value!([]), Some(value!(null))),
    ];
    for (field, sent, stored) in cases {
        let mut spec = Map::new();
        spec.insert(field, sent.clone());
        let reading = kind
            .read(map(value!({"spec": spec})), Unknown::Drop)
            .expect("it can be read");
        let held = reading.object.get("spec").and_then(|spec| spec.get(field));
        assert_eq!(held, Some(&sent), "{field}");
        assert_eq!(reading.has_blanks, field != "affinity", "{field}");
        let printed = kind.print(reading.object);
        let printed = printed.get("spec").and_then(|spec| spec.get(field));
        assert_eq!(printed, stored.as_ref(), "{field}");
    }
}

#[test]
fn defaults_tell_an_empty_list_from_an_absent_one() {
    let kind = kind("autoscaling", "v2", "horizontalpodautoscalers");
    let policies = |behavior: Value| {
        let sent = map(value!({"spec": {"behavior": behavior}}));
        let reading = kind.read(sent, Unknown::Drop).expect("it can be read");
        let path = ["spec", "behavior", "scaleUp", "policies"];
        let policies = Value::Object(reading.object).at(&path).cloned();
        policies.and_then(|policies| Some(policies.as_array()?.len()))
    };
    assert_eq!(policies(value!({"scaleUp": {"policies": []}})), Some(0));
    assert_eq!(policies(value!({"scaleUp": {}})), Some(2));
}
