//! Cases of strategic merge patch, on a type like a pod's.

use object::{Value, value};
use schema::{Empty, Form, ListTopology, ListType, MapType, Patch, Scalar};

use super::*;

struct Graph {
    types: Types,
}

impl Graph {
    fn scalar(&mut self, scalar: Scalar, form: Form) -> TypeId {
        self.types.add(Type {
            scalar: Some(scalar),
            form,
            ..Type::default()
        })
    }

    fn list(&mut self, element: TypeId) -> TypeId {
        let list = Some(ListType {
            element,
            topology: ListTopology::Atomic,
        });
        self.types.add(Type {
            list,
            ..Type::default()
        })
    }

    fn dictionary(&mut self, element: TypeId) -> TypeId {
        let map = Some(MapType {
            element: Some(element),
            ..MapType::default()
        });
        self.types.add(Type {
            map,
            ..Type::default()
        })
    }

    fn record(&mut self, fields: &[(&str, TypeId, Patch)]) -> TypeId {
        let id = self.types.add(Type::default());
        self.set_record(id, fields);
        id
    }

    fn set_record(&mut self, id: TypeId, fields: &[(&str, TypeId, Patch)]) {
        let field = |(name, ty, patch): &(&str, TypeId, Patch)| Field {
            name: (*name).into(),
            ty: *ty,
            default: None,
            empty: Empty::Drop,
            patch: patch.clone(),
            tag: 0,
        };
        let mut fields: Vec<Field> = fields.iter().map(field).collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let map = Some(MapType {
            fields: fields.into(),
            ..MapType::default()
        });
        self.types.set(
            id,
            Type {
                map,
                ..Type::default()
            },
        );
    }
}

/// A type with a field for each strategy.
pub(in crate::patch) fn sample() -> (Types, TypeId) {
    let plain = Patch::default;
    let by = |key: &str| Patch {
        merge: true,
        merge_key: key.into(),
        ..Patch::default()
    };
    let replaced = Patch {
        replace: true,
        ..Patch::default()
    };
    let mut graph = Graph {
        types: Types::new(),
    };
    let string = graph.scalar(Scalar::String, Form::Plain);
    let number = graph.scalar(Scalar::Numeric, Form::Int32);
    let strings = graph.list(string);
    let lists = graph.list(strings);
    let labels = graph.dictionary(string);
    let port = graph.record(&[("port", number, plain()), ("name", string, plain())]);
    let ports = graph.list(port);
    let container = graph.record(&[
        ("name", string, plain()),
        ("image", string, plain()),
        ("args", strings, plain()),
        ("ports", ports, by("port")),
        ("labels", labels, plain()),
    ]);
    let containers = graph.list(container);
    let named = graph.dictionary(container);
    let strategy = graph.record(&[("type", string, plain()), ("rolling", container, plain())]);
    let node = graph.record(&[]);
    let nodes = graph.list(node);
    graph.set_record(
        node,
        &[
            ("name", string, plain()),
            ("nodes", nodes, by("name")),
            ("one", node, plain()),
        ],
    );
    let root = graph.record(&[
        ("finalizers", strings, by("")),
        ("args", strings, plain()),
        ("labels", labels, plain()),
        ("selector", labels, replaced),
        ("lists", lists, by("")),
        ("containers", containers, by("name")),
        ("keyless", containers, by("")),
        ("atomic", containers, plain()),
        ("ports", ports, by("port")),
        ("named", named, plain()),
        ("strategy", strategy, plain()),
        ("node", node, plain()),
        ("count", number, plain()),
    ]);
    (graph.types, root)
}

fn patched(document: Value, patch: Value) -> Result<Value, PatchError> {
    let (types, root) = sample();
    apply(&types, root, document, &patch)
}

#[test]
fn maps_merge_and_null_deletes() {
    for (document, patch, wanted) in [
        (value!({"count": 1}), value!({}), value!({"count": 1})),
        (value!({"count": 1}), Value::Null, value!({"count": 1})),
        (
            value!({"count": 1}),
            value!({"count": 2}),
            value!({"count": 2}),
        ),
        (
            value!({"count": 1}),
            value!({"count": null, "args": null}),
            value!({}),
        ),
        (
            value!({"labels": {"a": "1", "b": "2"}}),
            value!({"labels": {"a": null, "c": "3"}}),
            value!({"labels": {"b": "2", "c": "3"}}),
        ),
        (
            value!({}),
            value!({"strategy": {"type": null, "rolling": {"name": "x", "args": [null]}}}),
            value!({"strategy": {"rolling": {"name": "x", "args": [null]}}}),
        ),
        (
            value!({"args": ["a"]}),
            value!({"args": ["b"]}),
            value!({"args": ["b"]}),
        ),
        (
            value!({"args": ["a"]}),
            value!({"args": "b"}),
            value!({"args": "b"}),
        ),
        (
            value!({"args": null}),
            value!({"args": ["b"]}),
            value!({"args": ["b"]}),
        ),
        (
            value!({"atomic": [{"name": "a", "image": "1"}]}),
            value!({"atomic": [{"name": "a", "args": null}]}),
            value!({"atomic": [{"name": "a", "args": null}]}),
        ),
        (
            value!({"labels": {"a": "1", "b": "2"}}),
            value!({"labels": {"$patch": "replace", "a": "3"}}),
            value!({"labels": {"a": "3"}}),
        ),
        (
            value!({"labels": {"a": "1"}}),
            value!({"labels": {"$patch": "delete", "a": "3"}}),
            value!({"labels": {}}),
        ),
        (
            value!({"count": 1}),
            value!({"labels": {"$patch": "explode"}}),
            value!({"count": 1}),
        ),
        (
            value!({"strategy": {"type": "a", "rolling": {"name": "x"}}}),
            value!({"strategy": {"$retainKeys": ["type"], "type": "b"}}),
            value!({"strategy": {"type": "b"}}),
        ),
        (
            value!({"strategy": {"type": "a", "rolling": {"name": "x"}}}),
            value!({"strategy": {"$retainKeys": ["rolling"], "type": null}}),
            value!({"strategy": {"rolling": {"name": "x"}}}),
        ),
    ] {
        assert_eq!(patched(document, patch.clone()), Ok(wanted), "{patch:?}");
    }
}

/// Each case: live names, names in the patch, the result, in one letter per item.
#[test]
fn scalars_merge_as_a_set_with_the_patch_first() {
    let list = |letters: &str| -> Value {
        letters
            .chars()
            .map(|letter| Value::from(letter.to_string()))
            .collect::<Vec<_>>()
            .into()
    };
    for (live, patch, wanted) in [
        ("ab", "c", "cab"),
        ("ab", "b", "ab"),
        ("ab", "ba", "ba"),
        ("abc", "cx", "abcx"),
        ("abc", "xc", "xabc"),
        ("aab", "bcc", "abc"),
        ("abc", "", "abc"),
    ] {
        let document = value!({"finalizers": (list(live))});
        let result = patched(document, value!({"finalizers": (list(patch))}));
        assert_eq!(
            result,
            Ok(value!({"finalizers": (list(wanted))})),
            "{live} {patch}"
        );
    }
}

fn containers(letters: &str) -> Value {
    let item = |letter: char| value!({"name": (letter.to_string())});
    letters.chars().map(item).collect::<Vec<_>>().into()
}

fn names(document: &Value) -> String {
    let items = document
        .get("containers")
        .and_then(Value::as_array)
        .unwrap_or_default();
    items
        .iter()
        .filter_map(|item| item.str_at(&["name"]))
        .collect()
}

#[test]
fn items_merge_by_key_with_the_patch_first() {
    for (live, patch, wanted) in [
        ("ab", "c", "cab"),
        ("ab", "b", "ab"),
        ("abc", "cb", "acb"),
        ("abc", "cx", "abcx"),
        ("", "ba", "ba"),
        ("ab", "", "ab"),
        ("aba", "b", "aab"),
    ] {
        let document = value!({"containers": (containers(live))});
        let result = patched(document, value!({"containers": (containers(patch))}));
        assert_eq!(
            result.as_ref().map(names).as_deref(),
            Ok(wanted),
            "{live} {patch}"
        );
    }
}

/// Each case: live items, order, items of the patch, the result.
#[test]
fn the_order_of_a_list_can_be_set() {
    for (live, order, patch, wanted) in [
        ("ab", "ba", "", "ba"),
        ("abc", "ca", "", "bca"),
        ("abc", "ac", "", "abc"),
        ("abcd", "db", "b", "acdb"),
        ("ab", "axb", "x", "axb"),
        ("ab", "xb", "x", "xab"),
        ("", "ba", "ba", "ba"),
        ("ab", "", "", "ab"),
        ("ab", "zyb", "", "ab"),
    ] {
        let mut document = value!({"count": 1});
        let mut directive = value!({"$setElementOrder/containers": (containers(order))});
        if let Some(map) = document.as_object_mut().filter(|_| !live.is_empty()) {
            map.insert("containers", containers(live));
        }
        if let Some(map) = directive.as_object_mut().filter(|_| !patch.is_empty()) {
            map.insert("containers", containers(patch));
        }
        let result = patched(document, directive);
        assert_eq!(
            result.as_ref().map(names).as_deref(),
            Ok(wanted),
            "{live} {order} {patch}"
        );
    }
}

#[test]
fn items_keep_what_the_patch_does_not_mention() {
    let document = value!({"containers": [
        {"name": "a", "image": "1", "ports": [{"port": 80, "name": "web"}], "args": ["x"]},
        {"name": "b", "image": "1"},
    ]});
    let patch = value!({
        "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
        "containers": [{
            "name": "a",
            "args": null,
            "$setElementOrder/ports": [{"port": 80}, {"port": 81}],
            "ports": [{"port": 81}],
        }],
    });
    let wanted = value!({"containers": [
        {"name": "a", "image": "1", "ports": [{"port": 80, "name": "web"}, {"port": 81}]},
        {"name": "b", "image": "1"},
    ]});
    assert_eq!(patched(document, patch), Ok(wanted));
}

#[test]
fn which_items_do_directives_take_out() {
    for (document, patch, wanted) in [
        (
            value!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "a", "image": "x"}]}),
            value!({"containers": [{"name": "a", "$patch": "delete"}]}),
            value!({"containers": [{"name": "b"}]}),
        ),
        (
            value!({"containers": [{"name": "a"}]}),
            value!({"containers": [{"$patch": "replace"}, {"name": "b"}]}),
            value!({"containers": [{"name": "b"}]}),
        ),
        (
            value!({"containers": [{"name": "a"}]}),
            value!({"containers": [{"$patch": "replace"}]}),
            value!({"containers": []}),
        ),
        (
            value!({}),
            value!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "b"}]}),
            value!({"containers": [{"name": "b"}]}),
        ),
        (
            value!({"finalizers": ["a", "b", "a"]}),
            value!({"$deleteFromPrimitiveList/finalizers": ["a", "z"]}),
            value!({"finalizers": ["b"]}),
        ),
        (
            value!({"finalizers": ["a", "b"]}),
            value!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}),
            value!({"finalizers": ["c", "b"]}),
        ),
        (
            value!({"args": ["a", "b"]}),
            value!({"$deleteFromPrimitiveList/args": ["a"]}),
            value!({"args": ["b"]}),
        ),
        (
            value!({"finalizers": ["a"]}),
            value!({"$deleteFromPrimitiveList/finalizers": null}),
            value!({}),
        ),
        (
            value!({}),
            value!({"$deleteFromPrimitiveList/finalizers": ["a"]}),
            value!({}),
        ),
    ] {
        assert_eq!(patched(document, patch.clone()), Ok(wanted), "{patch:?}");
    }
}

#[test]
fn which_patches_are_badly_written() {
    for (patch, message) in [
        (
            value!({"$deleteFromPrimitiveList": []}),
            "invalid patch format of primitive list",
        ),
        (
            value!({"$setElementOrder": []}),
            "invalid patch format of setElementOrder list",
        ),
        (
            value!({"$retainKeys": "count"}),
            "invalid patch format of retainKeys",
        ),
        (
            value!({"$retainKeys": ["args"], "count": 2}),
            "invalid patch format of retainKeys",
        ),
    ] {
        let error = patched(value!({"count": 1}), patch).expect_err(message);
        assert!(
            matches!(error, PatchError::BadFormat(text) if text == message),
            "{error:?}"
        );
    }
    let error = patched(value!({}), value!([])).expect_err("a list is no patch");
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal array into Go value of type map[string]interface {}"
    );
}

#[test]
fn which_patches_do_not_fit_the_type() {
    let document = value!({
        "args": ["a"],
        "containers": [{"name": "a"}, {"name": "b"}],
        "finalizers": ["f"],
        "keyless": [{"name": "a"}],
        "labels": {"a": "1"},
        "named": {"x": {"name": "x"}},
    });
    for (patch, message) in [
        (
            value!({"containers": [{"image": "x"}]}),
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            value!({"containers": [{"$patch": "delete"}]}),
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            value!({"containers": [{"name": "a", "$patch": "merge"}]}),
            "merging lists cannot yet be specified in the patch",
        ),
        (
            value!({"containers": [{"name": "a", "$patch": "explode"}]}),
            "unknown patch type: explode in map: map[$patch:explode name:a]",
        ),
        (
            value!({"labels": {"$patch": "merge", "b": "2"}}),
            "unknown patch type: merge in map: map[$patch:merge b:2]",
        ),
        (
            value!({"keyless": [{"name": "b"}]}),
            "cannot merge lists without merge key for struct",
        ),
        (
            value!({"finalizers": ["g", 1]}),
            "list element types are not identical: [[f] [g 1]]",
        ),
        (
            value!({"named": {"x": {"image": "1"}}}),
            "merging an object in json but data type is not struct, instead is: map",
        ),
        (
            value!({"$setElementOrder/unknown": []}),
            "unable to find api field in struct for the json field \"unknown\"",
        ),
        (
            value!({"$setElementOrder/containers": {}}),
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            value!({
                "$setElementOrder/containers": [{"name": "b"}],
                "containers": [{"name": "a"}],
            }),
            "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n\
             [map[name:b]]\n",
        ),
    ] {
        let error = patched(document.clone(), patch).expect_err(message);
        assert_eq!(error, PatchError::Misfit(message.to_owned()));
    }
    let lists = patched(value!({"lists": [["a"]]}), value!({"lists": [["b"]]}));
    assert_eq!(
        lists,
        Err(PatchError::Misfit("unexpected slice of slice".to_owned()))
    );
}

#[test]
fn a_patch_of_a_recursive_type_cannot_exhaust_the_stack() {
    let nested = |levels: usize| {
        let mut node = value!({"name": "leaf"});
        for _ in 0..levels {
            node = value!({"one": node});
        }
        value!({"node": node})
    };
    let shallow = nested(MERGE_DEPTH_MAX - 2);
    assert_eq!(patched(shallow.clone(), shallow.clone()), Ok(shallow));
    let error = patched(nested(5_000), nested(5_000)).expect_err("far too deep");
    assert_eq!(error.to_string(), "the patch merges deeper than 512 levels");
    assert_eq!(patched(value!({}), nested(5_000)), Ok(nested(5_000)));
}

#[test]
fn large_lists_and_maps_merge_in_linear_time() {
    let count = 50_000;
    let item = |at: usize| value!({"name": (format!("n{at}"))});
    let items =
        |from: usize| -> Value { (from..from + count).map(item).collect::<Vec<_>>().into() };
    let key = |at: usize| (Text::from(format!("k{at:07}")), Value::from("v"));
    let labels = |offset| Value::Object((0..count).map(|at| key(at * 2 + offset)).collect());
    let document = value!({"containers": (items(0)), "labels": (labels(0))});
    let patch = value!({
        "$setElementOrder/containers": (items(count / 2)),
        "containers": (items(count / 2)),
        "labels": (labels(1)),
    });
    let merged = patched(document, patch).expect("the patch fits");
    assert_eq!(names_count(&merged), count + count / 2);
    assert_eq!(
        merged
            .get("labels")
            .and_then(Value::as_object)
            .map(Map::len),
        Some(2 * count)
    );
}

fn names_count(document: &Value) -> usize {
    document
        .get("containers")
        .and_then(Value::as_array)
        .map_or(0, <[Value]>::len)
}

#[test]
fn a_map_that_is_replaced_keeps_nothing_and_knows_no_directives() {
    for (patch, wanted) in [
        (value!({"b": "2"}), value!({"b": "2"})),
        (value!({"$patch": "delete"}), value!({"$patch": "delete"})),
    ] {
        let document = value!({"selector": {"a": "1"}});
        let after = patched(document, value!({"selector": (patch)}));
        assert_eq!(after, Ok(value!({"selector": (wanted)})));
    }
}
