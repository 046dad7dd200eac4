//! Merge, comparison, removal, field sets and validation, one at a time.

use apply::{
    FieldSet, Path, Repeats, Typing, compare, field_set, merge, reconcile, remove_items, validate,
};
use object::{Value, json};

use crate::support::types::Schema;

fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn paths(set: &FieldSet) -> String {
    let paths: Vec<String> = set.paths().iter().map(Path::to_string).collect();
    paths.join(" ")
}

const GRAB_BAG: &str = r#"{"fields":{
    "numeric":"number","string":"string","bool":"boolean",
    "set":{"set":"scalar"},"list":{"list":"scalar"},"map":{"map":"scalar"},
    "amap":{"map":"scalar","atomic":true},"struct":{"fields":{"a":"number","b":"number"}},
    "items":{"items":{"fields":{"key":"string","id":"number","value":"scalar","tags":{"set":"string"},
        "deep":{"fields":{"x":"number"}},"labels":{"map":"string"}}},"keys":["key","id"]},
    "any":"deduced","whole":"anything"}}"#;

#[test]
fn a_configuration_wins_at_leaves_and_nothing_is_removed() {
    let schema = Schema::parse(GRAB_BAG);
    let cases = [
        (
            r#"{"numeric":1}"#,
            r#"{"numeric":3.14}"#,
            r#"{"numeric":3.14}"#,
        ),
        (
            r#"{"numeric":1}"#,
            r#"{"string":"a"}"#,
            r#"{"numeric":1,"string":"a"}"#,
        ),
        (
            r#"{"string":"a"}"#,
            r#"{"string":null}"#,
            r#"{"string":null}"#,
        ),
        (
            r#"{"map":{"a":1}}"#,
            r#"{"map":{"b":2}}"#,
            r#"{"map":{"a":1,"b":2}}"#,
        ),
        (
            r#"{"map":{"a":1}}"#,
            r#"{"map":null}"#,
            r#"{"map":{"a":1}}"#,
        ),
        (r#"{"map":{"a":1}}"#, r#"{"map":{}}"#, r#"{"map":{"a":1}}"#),
        (r#"{"map":{}}"#, r#"{"map":null}"#, r#"{"map":null}"#),
        (r#"{"map":null}"#, r#"{"map":{}}"#, r#"{"map":{}}"#),
        (r#"{}"#, r#"{"map":null}"#, r#"{"map":null}"#),
        (r#"{"set":["a"]}"#, r#"{"set":null}"#, r#"{"set":["a"]}"#),
        (r#"{"set":["a"]}"#, r#"{"set":[]}"#, r#"{"set":["a"]}"#),
        (r#"{"set":[]}"#, r#"{"set":null}"#, r#"{"set":null}"#),
        (r#"{"set":null}"#, r#"{"set":[]}"#, r#"{"set":[]}"#),
        (
            r#"{"struct":{"a":1}}"#,
            r#"{"struct":null}"#,
            r#"{"struct":{"a":1}}"#,
        ),
        (
            r#"{"struct":{}}"#,
            r#"{"struct":null}"#,
            r#"{"struct":null}"#,
        ),
        (r#"{"list":[1,2]}"#, r#"{"list":[3]}"#, r#"{"list":[3]}"#),
        (r#"{"list":[1,2]}"#, r#"{"list":null}"#, r#"{"list":null}"#),
        (
            r#"{"amap":{"a":1}}"#,
            r#"{"amap":{"b":1}}"#,
            r#"{"amap":{"b":1}}"#,
        ),
        (
            r#"{"amap":{"a":1}}"#,
            r#"{"amap":null}"#,
            r#"{"amap":null}"#,
        ),
        (r#"{"any":{"a":1}}"#, r#"{"any":1}"#, r#"{"any":1}"#),
        (r#"{"any":1}"#, r#"{"any":{"a":1}}"#, r#"{"any":{"a":1}}"#),
        (r#"{"any":{"a":1}}"#, r#"{"any":[1]}"#, r#"{"any":[1]}"#),
        (
            r#"{"any":{"a":1}}"#,
            r#"{"any":null}"#,
            r#"{"any":{"a":1}}"#,
        ),
        (r#"{"any":[1]}"#, r#"{"any":null}"#, r#"{"any":null}"#),
        (
            r#"{"whole":{"a":1}}"#,
            r#"{"whole":{"b":1}}"#,
            r#"{"whole":{"b":1}}"#,
        ),
        (
            r#"{"items":[{"key":"a","id":1,"value":1}]}"#,
            r#"{"items":[{"key":"a","id":1,"tags":["t"]},{"key":"a","id":2}]}"#,
            r#"{"items":[{"key":"a","id":1,"tags":["t"],"value":1},{"key":"a","id":2}]}"#,
        ),
    ];
    for (live, config, merged) in cases {
        let result = merge(&parse(live), parse(config), schema.typing());
        assert_eq!(result, parse(merged), "{live} + {config}");
    }
}

#[test]
fn items_follow_the_configuration_with_the_others_in_between() {
    let schema = Schema::parse(r#"{"set":"scalar"}"#);
    let cases = [
        ("a b c", "c d e f", "a b c d e f"),
        ("a b", "b a", "b a"),
        ("a b c d", "d e f a", "b c d e f a"),
        ("c d e f", "a c e", "a c d e f"),
        ("a b c g f", "c d e f", "a b c g d e f"),
        ("a b b", "b", "a b"),
        ("a b b", "c", "a b b c"),
        ("t f t", "f", "t f t"),
        ("t f t", "t", "t f"),
        ("a b c", "c a", "b c a"),
        ("", "a b", "a b"),
        ("a a a", "a b", "a b"),
        ("a b", "", "a b"),
        ("x a y b z", "b a", "x y b z a"),
    ];
    let list = |text: &str| Value::Array(text.split_whitespace().map(Value::from).collect());
    for (live, config, merged) in cases {
        let result = merge(&list(live), list(config), schema.typing());
        assert_eq!(result, list(merged), "{live} + {config}");
    }
}

#[test]
fn comparisons_tell_added_modified_and_removed_apart() {
    let schema = Schema::parse(GRAB_BAG);
    // Left, right, added, modified, removed.
    let cases = [
        (r#"{}"#, r#"{"map":{}}"#, ".map", "", ""),
        (r#"{"map":{}}"#, r#"{"map":null}"#, "", ".map", ""),
        (r#"{"map":null}"#, r#"{}"#, "", "", ".map"),
        (r#"{}"#, r#"{"map":{"a":1}}"#, ".map .map.a", "", ""),
        (r#"{"map":{"a":1}}"#, r#"{"map":{}}"#, "", "", ".map.a"),
        (r#"{"map":null}"#, r#"{"map":{"a":1}}"#, ".map.a", "", ""),
        (
            r#"{"map":{"a":1}}"#,
            r#"{"map":{"a":2,"b":1}}"#,
            ".map.b",
            ".map.a",
            "",
        ),
        (r#"{"numeric":1}"#, r#"{"numeric":1.0}"#, "", "", ""),
        (r#"{"set":[]}"#, r#"{"set":null}"#, "", ".set", ""),
        (r#"{"set":["a","b"]}"#, r#"{"set":["b","a"]}"#, "", "", ""),
        (
            r#"{"set":["a"]}"#,
            r#"{"set":["a","a"]}"#,
            r#".set[="a"]"#,
            "",
            r#".set[="a"]"#,
        ),
        (
            r#"{"set":["a","a"]}"#,
            r#"{"set":["a"]}"#,
            r#".set[="a"]"#,
            "",
            r#".set[="a"]"#,
        ),
        (r#"{"list":[1,2]}"#, r#"{"list":[1]}"#, "", ".list", ""),
        (r#"{"list":[1]}"#, r#"{"list":null}"#, "", ".list", ""),
        (r#"{"amap":{"a":1}}"#, r#"{"amap":{}}"#, "", ".amap", ""),
        (r#"{"any":{"a":1}}"#, r#"{"any":2}"#, "", ".any", ".any.a"),
        (r#"{"any":2}"#, r#"{"any":{"a":1}}"#, ".any.a", ".any", ""),
        (
            r#"{}"#,
            r#"{"items":[{"key":"a","id":1,"deep":{"x":1}}]}"#,
            r#".items .items[id=1,key="a"] .items[id=1,key="a"].deep .items[id=1,key="a"].id .items[id=1,key="a"].key .items[id=1,key="a"].deep.x"#,
            "",
            "",
        ),
        (
            r#"{"items":[{"key":"a","id":1}]}"#,
            r#"{"items":[{"key":"a","id":2}]}"#,
            r#".items[id=2,key="a"] .items[id=2,key="a"].id .items[id=2,key="a"].key"#,
            "",
            r#".items[id=1,key="a"] .items[id=1,key="a"].id .items[id=1,key="a"].key"#,
        ),
        (
            r#"{"items":[{"key":"a","id":1},{"key":"a","id":1,"value":1}]}"#,
            r#"{"items":[{"key":"a","id":1},{"key":"a","id":1,"value":2}]}"#,
            "",
            r#".items[id=1,key="a"]"#,
            "",
        ),
        (
            r#"{"items":[{"key":"a","id":1},{"key":"a","id":1},{"key":"b","value":1}]}"#,
            r#"{"items":[{"key":"a","id":1},{"key":"a","id":1},{"key":"b","value":2}]}"#,
            "",
            r#".items[key="b"].value"#,
            "",
        ),
    ];
    for (left, right, added, modified, removed) in cases {
        let change = compare(&parse(left), &parse(right), schema.typing()).expect("valid values");
        let found = (
            paths(&change.added),
            paths(&change.modified),
            paths(&change.removed),
        );
        let expected = (added.to_owned(), modified.to_owned(), removed.to_owned());
        assert_eq!(found, expected, "{left} -> {right}");
    }
    assert!(compare(&parse("{}"), &parse(r#"{"unknown":1}"#), schema.typing()).is_err());
}

#[test]
fn field_sets_own_leaves_items_and_keys() {
    let schema = Schema::parse(GRAB_BAG);
    let cases = [
        (r#"{"numeric":1,"string":"a"}"#, ".numeric .string"),
        (r#"{"map":{"a":1,"b":null}}"#, ".map.a .map.b"),
        (r#"{"map":{}}"#, ".map"),
        (r#"{"map":null}"#, ".map"),
        (r#"{"struct":{"a":1}}"#, ".struct.a"),
        (r#"{"struct":{}}"#, ".struct"),
        (r#"{"set":["a","b","a"]}"#, r#".set[="a"] .set[="b"]"#),
        (r#"{"set":[]}"#, ""),
        (r#"{"set":null}"#, ".set"),
        (r#"{"list":[]}"#, ".list"),
        (r#"{"list":[1,2]}"#, ".list"),
        (r#"{"amap":{}}"#, ".amap"),
        (r#"{"whole":{"a":{"b":1}}}"#, ".whole"),
        (r#"{"any":{"a":[1],"b":{"c":1}}}"#, ".any.a .any.b .any.b.c"),
        (
            r#"{"items":[{"key":"a","id":1,"deep":{"x":1},"labels":{"l":"1"}}]}"#,
            r#".items[id=1,key="a"] .items[id=1,key="a"].id .items[id=1,key="a"].key .items[id=1,key="a"].deep.x .items[id=1,key="a"].labels.l"#,
        ),
        (
            r#"{"items":[{"key":"a"},{"key":"a","value":1}]}"#,
            r#".items[key="a"]"#,
        ),
    ];
    for (value, owned) in cases {
        assert_eq!(
            paths(&field_set(&parse(value), schema.typing())),
            owned,
            "{value}"
        );
    }
}

#[test]
fn removal_leaves_null_where_a_container_ends_up_empty() {
    let schema = Schema::parse(GRAB_BAG);
    let cases = [
        (
            r#"{"numeric":1,"string":"a"}"#,
            r#"{"f:numeric":{}}"#,
            r#"{"string":"a"}"#,
        ),
        (r#"{"numeric":1}"#, r#"{"f:numeric":{}}"#, "null"),
        (
            r#"{"set":["a","b"]}"#,
            r#"{"f:set":{"v:\"a\"":{}}}"#,
            r#"{"set":["b"]}"#,
        ),
        (
            r#"{"set":["a"]}"#,
            r#"{"f:set":{"v:\"a\"":{}}}"#,
            r#"{"set":null}"#,
        ),
        (r#"{"list":[1]}"#, r#"{"f:list":{}}"#, "null"),
        (
            r#"{"list":[1],"numeric":1}"#,
            r#"{"f:list":{"v:1":{}}}"#,
            r#"{"list":null,"numeric":1}"#,
        ),
        (
            r#"{"struct":{"a":1}}"#,
            r#"{"f:struct":{"f:b":{}}}"#,
            r#"{"struct":{"a":1}}"#,
        ),
        (
            r#"{"struct":{}}"#,
            r#"{"f:struct":{"f:b":{}}}"#,
            r#"{"struct":null}"#,
        ),
        (
            r#"{"items":[{"key":"a","value":1},{"key":"b"}]}"#,
            r#"{"f:items":{"k:{\"key\":\"a\"}":{"f:value":{}},"k:{\"key\":\"b\"}":{}}}"#,
            r#"{"items":[{"key":"a"}]}"#,
        ),
    ];
    for (value, removed, left) in cases {
        let set = FieldSet::from_fields_v1(removed.as_bytes()).expect(removed);
        let result = remove_items(parse(value), &set, schema.typing());
        assert_eq!(result, parse(left), "{value} - {removed}");
    }
}

fn refusal(value: &str, typing: Typing<'_>) -> String {
    match validate(&parse(value), typing, Repeats::Refused) {
        Ok(()) => String::new(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn what_does_not_fit_is_refused_in_known_words() {
    let schema = Schema::parse(GRAB_BAG);
    let cases = [
        (
            r#"{"numeric":null,"map":null,"set":null,"struct":{"a":null}}"#,
            "",
        ),
        (r#"{"foo":1}"#, ".foo: field not declared in schema"),
        (
            r#"{"string":1}"#,
            ".string: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            r#"{"numeric":"a"}"#,
            ".numeric: expected numeric (int or float), got string",
        ),
        (r#"{"bool":"a"}"#, ".bool: expected boolean, got &{a}"),
        (r#"{"set":"a"}"#, ".set: expected list, got &{a}"),
        (r#"{"map":[1,"x"]}"#, ".map: expected map, got &{[1 x]}"),
        (
            r#"{"map":{"a":{}}}"#,
            ".map.a: expected any scalar, got &{map[]}",
        ),
        (
            r#"{"list":[1,[2]]}"#,
            ".list[1]: expected any scalar, got &{[2]}",
        ),
        (
            r#"{"set":[{}]}"#,
            ".set: element 0: associative list without keys has an element that's a map type",
        ),
        (
            r#"{"set":[1,[]]}"#,
            ".set: element 1: not supported: associative list with lists as elements",
        ),
        (
            r#"{"set":[null]}"#,
            ".set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            r#"{"items":[null]}"#,
            ".items: element 0: associative list with keys may not have a null element",
        ),
        (
            r#"{"items":[1]}"#,
            ".items: element 0: associative list with keys may not have non-map elements",
        ),
        (
            r#"{"items":[{"value":1}]}"#,
            r#".items: element 0: associative list with keys has an element that omits all key fields ["key" "id"] (and doesn't have default values for any key fields)"#,
        ),
        (r#"{"set":[1,2,1]}"#, ".set: duplicate entries for key [=1]"),
        (
            r#"{"items":[{"key":"a","id":443},{"key":"a","id":443}]}"#,
            r#".items: duplicate entries for key [id=443,key="a"]"#,
        ),
        (
            r#"{"items":[{"key":"a","odd":1}],"numeric":"x"}"#,
            "errors:\n  .items[key=\"a\"].odd: field not declared in schema\n  \
             .numeric: expected numeric (int or float), got string",
        ),
        ("1", "expected map, got &{1}"),
    ];
    for (value, message) in cases {
        assert_eq!(refusal(value, schema.typing()), message, "{value}");
    }
    let repeated = parse(r#"{"set":[1,1]}"#);
    assert_eq!(
        validate(&repeated, schema.typing(), Repeats::Allowed),
        Ok(())
    );
}

#[test]
fn sets_of_an_older_schema_collapse_where_it_became_atomic() {
    let schema = Schema::parse(
        r#"{"fields":{"struct":{"fields":{"a":"number"},"atomic":true},"list":{"list":"string"},
            "map":{"map":"string","atomic":true},"granular":{"map":"string"},
            "free":{"fields":{"known":{"list":"string"}},"rest":"deduced"},"deduced":{"map":"deduced"}}}"#,
    );
    let cases = [
        (r#"{"f:struct":{"f:a":{}}}"#, r#"{"f:struct":{}}"#),
        (r#"{"f:struct":{".":{},"f:a":{}}}"#, r#"{"f:struct":{}}"#),
        (r#"{"f:list":{"v:\"a\"":{}}}"#, r#"{"f:list":{}}"#),
        (
            r#"{"f:list":{"k:{\"n\":1}":{"f:x":{}}}}"#,
            r#"{"f:list":{}}"#,
        ),
        (
            r#"{"f:map":{"f:a":{}},"f:granular":{"f:a":{}}}"#,
            r#"{"f:granular":{"f:a":{}},"f:map":{}}"#,
        ),
        (
            r#"{"f:free":{"f:known":{"v:1":{}},"f:other":{"f:x":{}}}}"#,
            r#"{"f:free":{"f:known":{},"f:other":{"f:x":{}}}}"#,
        ),
    ];
    for (before, after) in cases {
        let set = FieldSet::from_fields_v1(before.as_bytes()).expect(before);
        let found = reconcile(&set, schema.typing()).map(|set| set.to_fields_v1());
        assert_eq!(found.as_deref(), Some(after), "{before}");
    }
    for unchanged in [
        r#"{"f:struct":{},"f:list":{},"f:granular":{".":{},"f:a":{}}}"#,
        r#"{"f:deduced":{"f:a":{"f:b":{}}}}"#,
        r#"{"f:gone":{"f:a":{}}}"#,
    ] {
        let set = FieldSet::from_fields_v1(unchanged.as_bytes()).expect(unchanged);
        assert_eq!(reconcile(&set, schema.typing()), None, "{unchanged}");
    }
}

#[test]
fn declared_parents_become_members_and_keys_do_not() {
    let schema = Schema::parse(GRAB_BAG);
    let set = r#"{"f:any":{"f:x":{"f:y":{}}},"f:items":{"k:{\"key\":\"a\"}":{"f:deep":{"f:x":{}},"f:labels":{"f:l":{}}}},"f:map":{"f:k":{"f:z":{}}}}"#;
    let set = FieldSet::from_fields_v1(set.as_bytes()).expect(set);
    let typing = schema.typing();
    assert_eq!(
        set.ensure_named_fields_are_members(typing.types, typing.root)
            .to_fields_v1(),
        r#"{"f:any":{".":{},"f:x":{"f:y":{}}},"f:items":{".":{},"k:{\"key\":\"a\"}":{"f:deep":{".":{},"f:x":{}},"f:labels":{".":{},"f:l":{}}}},"f:map":{".":{},"f:k":{"f:z":{}}}}"#
    );
}
