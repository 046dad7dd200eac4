//! Cases: values, and the words in which they are refused.

use super::*;

/// One field of a schema, a value of it, and what is said.
fn check(field: Value, value: Value, expected: &[&str]) {
    let parsed = with_spec(value!({"f": (field.clone())}));
    let object = map(value!({"spec": {"f": (value.clone())}}));
    let errors = printed(&validate_object(&parsed, &object, None));
    assert_eq!(errors, expected, "{} {}", text(&field), text(&value));
}

#[test]
fn types_are_checked() {
    let wrong = |wanted: &str, found: &str| {
        format!(
            "spec.f: Invalid value: \"{found}\": spec.f in body must be of type {wanted}: \"{found}\""
        )
    };
    let cases = [
        ("string", value!(1), Some("integer")),
        ("string", value!(null), Some("null")),
        ("integer", value!("1"), Some("string")),
        ("integer", value!(2.0), None),
        ("number", value!(2), None),
        ("boolean", value!("true"), Some("string")),
        ("array", value!({}), Some("object")),
        ("object", value!([]), Some("array")),
    ];
    for (kind, value, found) in cases {
        let expected: Vec<String> = found.map(|found| wrong(kind, found)).into_iter().collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(value!({"type": kind}), value, &expected);
    }
    check(
        value!({"type": "integer"}),
        value!(1.5),
        &[
            "spec.f: Invalid value: \"number\": spec.f in body must be of type integer: \"number\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.f",
        ],
    );
    let either = value!({"x-kubernetes-int-or-string": true});
    check(either.clone(), value!("10%"), &[]);
    check(either.clone(), value!(10), &[]);
    check(
        either,
        value!(true),
        &[
            "spec.f: Invalid value: \"boolean\": spec.f in body must be of type integer,string: \"boolean\"",
        ],
    );
}

#[test]
fn bounds_are_checked() {
    let cases: [(Value, Value, &str); 12] = [
        (
            value!({"type": "integer", "minimum": 2}),
            value!(1),
            "spec.f: Invalid value: 1: spec.f in body should be greater than or equal to 2",
        ),
        (
            value!({"type": "number", "maximum": 0.00001}),
            value!(0.5),
            "spec.f: Invalid value: 0.5: spec.f in body should be less than or equal to 1e-05",
        ),
        (
            value!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}),
            value!(3),
            "spec.f: Invalid value: 3: spec.f in body should be less than 3",
        ),
        (
            value!({"type": "integer", "multipleOf": 2}),
            value!(3),
            "spec.f: Invalid value: 3: spec.f in body should be a multiple of 2",
        ),
        (
            value!({"type": "string", "maxLength": 1}),
            value!("ab"),
            "spec.f: Too long: may not be more than 1 byte",
        ),
        (
            value!({"type": "string", "minLength": 2}),
            value!("\u{e9}"),
            "spec.f: Invalid value: \"\u{e9}\": spec.f in body should be at least 2 chars long",
        ),
        (
            value!({"type": "string", "pattern": "^[a-z]+$"}),
            value!("A"),
            "spec.f: Invalid value: \"A\": spec.f in body should match '^[a-z]+$'",
        ),
        (
            value!({"type": "string", "enum": ["a", "b"]}),
            value!("c"),
            "spec.f: Unsupported value: \"c\": supported values: \"a\", \"b\"",
        ),
        (
            value!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
            value!(["a", "b"]),
            "spec.f: Too many: 2: must have at most 1 item",
        ),
        (
            value!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
            value!([]),
            "spec.f: Invalid value: 0: spec.f in body should have at least 1 items",
        ),
        (
            value!({"type": "object", "additionalProperties": {"type": "integer"}}),
            value!({"a.b": "x"}),
            "spec.f.a.b: Invalid value: \"string\": spec.f.a.b in body must be of type integer: \"string\"",
        ),
        (
            value!({"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}}),
            value!({}),
            "spec.f.q: Required value",
        ),
    ];
    for (field, value, expected) in cases {
        check(field, value, &[expected]);
    }
}

#[test]
fn the_branch_that_fits_best_is_explained() {
    check(
        value!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        value!({"a": 1, "b": "x"}),
        &[
            "<nil>: Invalid value: \"\": \"spec.f\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ],
    );
    check(
        value!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "anyOf": [{"required": ["a"]}, {"properties": {"b": {"enum": ["k"]}}}]}),
        value!({"b": "x"}),
        &[
            "<nil>: Invalid value: \"\": \"spec.f\" must validate at least one schema (anyOf)",
            "spec.f.b: Unsupported value: \"x\": supported values: \"k\"",
        ],
    );
    check(
        value!({"type": "integer", "allOf": [{"minimum": 2}, {"maximum": 4}]}),
        value!(5),
        &[
            "spec.f: Invalid value: 5: spec.f in body should be less than or equal to 4",
            "<nil>: Invalid value: \"\": \"spec.f\" must validate all the schemas (allOf)",
        ],
    );
    check(
        value!({"type": "string", "not": {"enum": ["bad"]}}),
        value!("bad"),
        &["<nil>: Invalid value: \"\": \"spec.f\" must not validate the schema (not)"],
    );
}

#[test]
fn formats_are_checked() {
    let good = [
        ("date", "2020-02-29"),
        ("date-time", "2020-01-01t00:00:00.5+01:00"),
        ("duration", "3 days"),
        ("email", "Bob <a@b>"),
        ("hostname", "a.example"),
        ("ipv4", "01.2.3.4"),
        ("ipv6", "::1"),
        ("cidr", "::/0"),
        ("mac", "0123.4567.89ab"),
        ("uri", "http://[::1]:80/x?y"),
        ("uuid", "D9B2D63DA2334123847A7090A1A5F1F1"),
        ("isbn", "978-0321751041"),
        ("creditcard", "4111-1111-1111-1111"),
        ("byte", "YQ=="),
        ("k8s-short-name", "a-b"),
        ("not-known", "anything"),
    ];
    for (format, text) in good {
        check(
            value!({"type": "string", "format": format}),
            value!(text),
            &[],
        );
    }
    let bad = [
        ("date", "2020-02-30"),
        ("date-time", "2020-01-01T24:00:00Z"),
        ("duration", "1 fortnight"),
        ("email", "a"),
        ("hostname", "-a"),
        ("ipv4", "256.1.1.1"),
        ("ipv6", "1.2.3.4"),
        ("cidr", "1.2.3.4"),
        ("mac", "01:23"),
        ("uri", "x"),
        ("uuid", "x"),
        ("isbn", "0321751044"),
        ("creditcard", "4111111111111112"),
        ("byte", "YQ"),
        ("k8s-short-name", "a.b"),
    ];
    for (format, text) in bad {
        let expected = format!(
            "spec.f: Invalid value: \"{text}\": spec.f in body must be of type {format}: \"{text}\""
        );
        let field = value!({"type": "string", "format": format});
        check(field, value!(text), &[&expected]);
    }
    check(
        value!({"type": "integer", "format": "int32"}),
        value!(3_000_000_000_i64),
        &[
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.f",
        ],
    );
}

#[test]
fn unchanged_mistakes_are_forgiven() {
    let parsed = with_spec(value!({
        "a": {"type": "string", "maxLength": 2},
        "l": {"type": "array", "items": {"type": "string", "maxLength": 2}},
        "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
              "items": {"type": "object", "properties": {
                  "k": {"type": "string"}, "v": {"type": "string", "maxLength": 2}}}},
        "o": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["z"],
              "properties": {"x": {"type": "string", "maxLength": 2}}},
    }));
    let old = value!({"spec": {
        "a": "long", "l": ["long", "x"],
        "m": [{"k": "a", "v": "long"}, {"k": "b", "v": "x"}],
        "o": {"x": "long", "more": 1},
    }});
    let long = "Too long: may not be more than 2 bytes";
    let cases: Vec<(Value, Vec<String>)> = vec![
        (value!({"a": "long"}), vec![]),
        (value!({"a": "longer"}), vec![format!("spec.a: {long}")]),
        (value!({"l": ["long", "x"]}), vec![]),
        (
            value!({"l": ["long", "y"]}),
            vec![format!("spec.l[0]: {long}")],
        ),
        (
            value!({"m": [{"k": "b", "v": "y"}, {"k": "a", "v": "long"}]}),
            vec![],
        ),
        (
            value!({"m": [{"k": "c", "v": "long"}]}),
            vec![format!("spec.m[0].v: {long}")],
        ),
        // An object with an undeclared field never counts as unchanged.
        (
            value!({"o": {"x": "long", "more": 1}}),
            vec!["spec.o.z: Required value".to_owned()],
        ),
    ];
    let old = map(old);
    for (spec, expected) in cases {
        let new = map(value!({"spec": (spec.clone())}));
        let errors = printed(&validate_object(&parsed, &new, Some(&old)));
        assert_eq!(errors, expected, "{}", text(&spec));
    }
}
