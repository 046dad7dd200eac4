//! Cases of JSON patch.

use object::{Map, value};

use super::*;

fn patched(document: Value, patch: Value) -> Result<Value, PatchError> {
    JsonPatch::read(patch)?.apply(document)
}

#[test]
fn which_operations_apply_and_to_what() {
    let list = || value!({"l": [1, 2, 3]});
    let nested = || value!({"a": {"b": 1}, "c": null});
    for (document, patch, wanted) in [
        (nested(), value!([]), nested()),
        (nested(), Value::Null, nested()),
        (
            nested(),
            value!([{"op": "add", "path": "/d", "value": {}}]),
            value!({"a": {"b": 1}, "c": null, "d": {}}),
        ),
        (
            nested(),
            value!([{"op": "add", "path": "/a/b", "value": 2}]),
            value!({"a": {"b": 2}, "c": null}),
        ),
        (
            nested(),
            value!([{"op": "add", "path": "/a/c"}]),
            value!({"a": {"b": 1, "c": null}, "c": null}),
        ),
        (
            nested(),
            value!([{"op": "add", "path": "/", "value": 1}]),
            value!({"": 1, "a": {"b": 1}, "c": null}),
        ),
        (
            nested(),
            value!([{"op": "add", "path": "skipped/d", "value": 1}]),
            value!({"a": {"b": 1}, "c": null, "d": 1}),
        ),
        (
            nested(),
            value!([{"op": "remove", "path": "/a/b"}]),
            value!({"a": {}, "c": null}),
        ),
        (
            nested(),
            value!([{"op": "remove", "path": "/c"}]),
            value!({"a": {"b": 1}}),
        ),
        (
            nested(),
            value!([{"op": "replace", "path": "/a/new", "value": 1}]),
            value!({"a": {"b": 1, "new": 1}, "c": null}),
        ),
        (
            nested(),
            value!([{"op": "replace", "path": "", "value": [1]}]),
            value!([1]),
        ),
        (
            nested(),
            value!([{"op": "move", "from": "/a/b", "path": "/d"}]),
            value!({"a": {}, "c": null, "d": 1}),
        ),
        (
            nested(),
            value!([{"op": "copy", "from": "/a", "path": "/d"}]),
            value!({"a": {"b": 1}, "c": null, "d": {"b": 1}}),
        ),
        (
            nested(),
            value!([{"op": "copy", "from": "/none", "path": "/d"}]),
            value!({"a": {"b": 1}, "c": null, "d": null}),
        ),
        (
            nested(),
            value!([{"op": "copy", "from": "/a", "path": "/a/a"}]),
            value!({"a": {"a": {"b": 1}, "b": 1}, "c": null}),
        ),
        (
            list(),
            value!([{"op": "add", "path": "/l/-", "value": 4}]),
            value!({"l": [1, 2, 3, 4]}),
        ),
        (
            list(),
            value!([{"op": "add", "path": "/l/3", "value": 4}]),
            value!({"l": [1, 2, 3, 4]}),
        ),
        (
            list(),
            value!([{"op": "add", "path": "/l/0", "value": 0}]),
            value!({"l": [0, 1, 2, 3]}),
        ),
        (
            list(),
            value!([{"op": "add", "path": "/l/-1", "value": 4}]),
            value!({"l": [1, 2, 3, 4]}),
        ),
        (
            list(),
            value!([{"op": "add", "path": "/l/-4", "value": 0}]),
            value!({"l": [0, 1, 2, 3]}),
        ),
        (
            list(),
            value!([{"op": "remove", "path": "/l/-1"}]),
            value!({"l": [1, 2]}),
        ),
        (
            list(),
            value!([{"op": "replace", "path": "/l/1", "value": null}]),
            value!({"l": [1, null, 3]}),
        ),
        (
            list(),
            value!([{"op": "move", "from": "/l/0", "path": "/l/2"}]),
            value!({"l": [2, 3, 1]}),
        ),
        (
            list(),
            value!([{"op": "copy", "from": "/l/-1", "path": "/l/0"}]),
            value!({"l": [3, 1, 2, 3]}),
        ),
        (
            list(),
            value!([{"op": "test", "path": "/l", "value": [1, 2, 3]}]),
            list(),
        ),
        (
            list(),
            value!([{"op": "test", "path": "", "value": {"l": [1, 2, 3]}}]),
            list(),
        ),
        (
            nested(),
            value!([{"op": "test", "path": "/c", "value": null}]),
            nested(),
        ),
        (
            nested(),
            value!([{"op": "test", "path": "/none"}]),
            nested(),
        ),
        (
            nested(),
            value!([{"op": "test", "path": "/a", "value": {"b": 1}}]),
            nested(),
        ),
        (
            value!({"a/b": {"~": 1}}),
            value!([{"op": "test", "path": "/a~1b/~0", "value": 1}]),
            value!({"a/b": {"~": 1}}),
        ),
        (
            value!([1]),
            value!([{"op": "add", "path": "/0", "value": 0}]),
            value!([0, 1]),
        ),
    ] {
        assert_eq!(patched(document, patch.clone()), Ok(wanted), "{patch:?}");
    }
}

#[test]
fn which_operations_do_not_apply() {
    for operation in [
        value!({"op": "leap", "path": "/a"}),
        value!({"path": "/a"}),
        value!({"op": "add", "value": 1}),
        value!({"op": "add", "path": "", "value": 1}),
        value!({"op": "add", "path": "/none/x", "value": 1}),
        value!({"op": "add", "path": "/null/x", "value": 1}),
        value!({"op": "add", "path": "/text/x", "value": 1}),
        value!({"op": "add", "path": "/list/4", "value": 1}),
        value!({"op": "add", "path": "/list/x", "value": 1}),
        value!({"op": "add", "path": "/list/-5", "value": 1}),
        value!({"op": "add", "path": "nowhere", "value": 1}),
        value!({"op": "remove", "path": "/none"}),
        value!({"op": "remove", "path": ""}),
        value!({"op": "remove", "path": "/list/-"}),
        value!({"op": "remove", "path": "/list/3"}),
        value!({"op": "replace", "path": "/list/3", "value": 1}),
        value!({"op": "replace", "path": "/list/-", "value": 1}),
        value!({"op": "replace", "path": "", "value": 1}),
        value!({"op": "replace", "path": ""}),
        value!({"op": "move", "path": "/x"}),
        value!({"op": "move", "from": "/none", "path": "/x"}),
        value!({"op": "move", "from": "/map", "path": "/map/x"}),
        value!({"op": "copy", "from": "/list/9", "path": "/x"}),
        value!({"op": "copy", "from": "/text/x", "path": "/x"}),
        value!({"op": "copy", "path": "/x"}),
        value!({"op": "test", "path": "/text", "value": "other"}),
        value!({"op": "test", "path": "/text"}),
        value!({"op": "test", "path": "/number", "value": 1.0}),
        value!({"op": "test", "path": "/none", "value": 1}),
        value!({"op": "test", "path": "/none/x", "value": null}),
        Value::Null,
    ] {
        let document =
            value!({"text": "a", "number": 1, "null": null, "list": [1, 2, 3], "map": {}});
        let error = patched(document, Value::Array(vec![operation.clone()]));
        assert!(
            matches!(error, Err(PatchError::NotApplicable(_))),
            "{operation:?}: {error:?}"
        );
    }
}

#[test]
fn which_bodies_are_no_patches() {
    for (body, message) in [
        (
            value!({"op": "add"}),
            "error decoding patch: json: cannot unmarshal object into Go value of type \
             []handlers.jsonPatchOp",
        ),
        (
            value!([1]),
            "error decoding patch: json: cannot unmarshal number into Go value of type \
             handlers.jsonPatchOp",
        ),
        (
            value!([{"op": "add", "path": 5}]),
            "error decoding patch: json: cannot unmarshal number into Go struct field \
             jsonPatchOp.path of type string",
        ),
    ] {
        let error = JsonPatch::read(body).expect_err(message);
        assert_eq!(error, PatchError::Undecodable(message.to_owned()));
    }
}

#[test]
fn fields_that_mean_nothing_are_listed() {
    let patch = JsonPatch::read(value!([
        {"op": "test", "path": "/a"},
        {"op": "test", "path": "/a", "Op": 1, "colour": "red"},
    ]))
    .expect("unknown fields are no error");
    assert_eq!(
        patch.unknown_fields(),
        [
            r#"json patch unknown field "[1].Op""#,
            r#"json patch unknown field "[1].colour""#
        ]
    );
}

#[test]
fn how_many_operations_are_too_many() {
    let operations = |count| Value::Array(vec![value!({"op": "test", "path": "/a"}); count]);
    assert_eq!(
        patched(value!({}), operations(OPERATIONS_MAX)),
        Ok(value!({}))
    );
    let error = JsonPatch::read(operations(OPERATIONS_MAX + 1)).expect_err("one too many");
    assert_eq!(
        error.to_string(),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn copies_may_not_grow_the_document_without_bound() {
    let double = value!({"op": "copy", "from": "/l", "path": "/l/-"});
    let error = patched(
        value!({"l": ["0123456789"]}),
        Value::Array(vec![double; 40]),
    );
    let Err(PatchError::NotApplicable(message)) = error else {
        panic!("{error:?}")
    };
    assert!(message.contains("exceeding the limit 3145728"), "{message}");
}

#[test]
fn copies_may_not_nest_the_document_without_bound() {
    // Each copy puts the whole chain at its own end, so that its depth doubles.
    let double = |times: u32| {
        let path = format!("/a{}", "/x".repeat(2_usize.pow(times)));
        value!({"op": "copy", "from": "/a", "path": path})
    };
    let nest = |times| {
        patched(
            value!({"a": {}}),
            Value::Array((0..times).map(double).collect()),
        )
    };
    assert_eq!(nest(10).map(|document| nesting(&document)), Ok(1024 + 1));
    let Err(PatchError::NotApplicable(message)) = nest(20) else {
        panic!("it nests too deeply")
    };
    assert_eq!(message, "the patched document exceeds 10000 levels");
}

#[test]
fn moves_may_not_nest_the_document_without_bound() {
    let chain = |levels| (1..levels).fold(value!({}), |inner, _| value!({"x": inner}));
    let sink = value!([{"op": "move", "from": "/deep", "path": "/b/b/b"}]);
    let patched = |levels| {
        patched(
            value!({"deep": (chain(levels)), "b": {"b": {}}}),
            sink.clone(),
        )
    };
    assert!(patched(json::DEPTH_MAX - 3).is_ok());
    let Err(PatchError::NotApplicable(message)) = patched(json::DEPTH_MAX - 2) else {
        panic!("it nests too deeply")
    };
    assert_eq!(message, "the patched document exceeds 10000 levels");
}

#[test]
fn moving_up_and_down_does_not_use_up_the_depth() {
    let down = value!({"op": "move", "from": "/a", "path": "/b/c/d/e"});
    let up = value!({"op": "move", "from": "/b/c/d/e", "path": "/a"});
    let operations = [down, up]
        .into_iter()
        .cycle()
        .take(OPERATIONS_MAX)
        .collect();
    let document = value!({"a": 1, "b": {"c": {"d": {}}}});
    assert_eq!(
        patched(document.clone(), Value::Array(operations)),
        Ok(document)
    );
}

#[test]
fn a_huge_list_cannot_be_shifted_ten_thousand_times() {
    let items = vec![Value::Null; 200_000];
    let insert = value!({"op": "add", "path": "/0", "value": 1});
    let error = patched(
        Value::Array(items),
        Value::Array(vec![insert; OPERATIONS_MAX]),
    );
    let Err(PatchError::NotApplicable(message)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(message, "the patch moves more than 50000000 entries");
}

#[test]
fn keys_are_found_in_large_maps_quickly() {
    let map: Map = (0..1_000)
        .map(|at| (format!("k{at}").into(), 1.into()))
        .collect();
    let test =
        |at: usize| value!({"op": "test", "path": (format!("/k{}", at % 1_000)), "value": 1});
    let operations = (0..OPERATIONS_MAX).map(test).collect();
    let document = Value::Object(map);
    assert_eq!(
        patched(document.clone(), Value::Array(operations)),
        Ok(document)
    );
}
