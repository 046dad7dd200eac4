//! What JSON becomes, and what it is refused for.

use proptest::prelude::*;

use super::*;
use crate::{Map, Text, value};

fn text(value: &Value) -> String {
    String::from_utf8(to_vec(value)).unwrap()
}

fn rewritten(json: &str) -> String {
    text(&parse(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}")))
}

#[test]
fn values_are_read_and_written_as_go_does() {
    let cases = [
        ("null", "null"),
        (" true ", "true"),
        ("\tfalse\r\n", "false"),
        ("[]", "[]"),
        ("{ }", "{}"),
        ("[ 1 , 2 ]", "[1,2]"),
        (
            r#"{"b":1,"a":{"d":[{}],"c":[[]]}}"#,
            r#"{"a":{"c":[[]],"d":[{}]},"b":1}"#,
        ),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"":0}"#, r#"{"":0}"#),
        (
            r#""<a href=\"x\">&</a>""#,
            r#""\u003ca href=\"x\"\u003e\u0026\u003c/a\u003e""#,
        ),
        (
            r#""\u0000\u001f\u007f\b\f\n\r\t\/\\""#,
            "\"\\u0000\\u001f\u{7f}\\b\\f\\n\\r\\t/\\\\\"",
        ),
        (
            "\"\u{2028}\u{2029}\u{2027}\u{e9}\u{1f600}\"",
            "\"\\u2028\\u2029\u{2027}\u{e9}\u{1f600}\"",
        ),
        (r#""\ud83d\ude00""#, "\"\u{1f600}\""),
        (r#""\ud83d""#, "\"\u{fffd}\""),
        (r#""\ude00\ud83d""#, "\"\u{fffd}\u{fffd}\""),
        (r#""\ud83dx""#, "\"\u{fffd}x\""),
        (r#""\ud83d\u0041""#, "\"\u{fffd}A\""),
        (r#""\ud83d\ud83d\ude00""#, "\"\u{fffd}\u{1f600}\""),
        (r#""\u00E9\u00e9""#, "\"\u{e9}\u{e9}\""),
    ];
    for (json, expected) in cases {
        assert_eq!(rewritten(json), expected, "{json}");
    }
}

#[test]
fn numbers_are_integers_when_they_can_be() {
    let cases = [
        ("0", Value::Int(0)),
        ("-0", Value::Int(0)),
        ("-1", Value::Int(-1)),
        ("123456789012345678", Value::Int(123_456_789_012_345_678)),
        ("9223372036854775807", Value::Int(i64::MAX)),
        ("-9223372036854775808", Value::Int(i64::MIN)),
        (
            "9223372036854775808",
            Value::Float(9_223_372_036_854_775_808.0),
        ),
        (
            "-9223372036854775809",
            Value::Float(-9_223_372_036_854_775_808.0),
        ),
        ("1.0", Value::Float(1.0)),
        ("1e3", Value::Float(1000.0)),
        ("1E-2", Value::Float(0.01)),
        ("-0.0", Value::Float(-0.0)),
        ("0e+1", Value::Float(0.0)),
        ("1e-999", Value::Float(0.0)),
        ("100000000000000000000000", Value::Float(1e23)),
    ];
    for (json, expected) in cases {
        assert_eq!(parse(json.as_bytes()), Ok(expected), "{json}");
    }
}

#[test]
fn floats_are_printed_as_go_prints_them() {
    let cases = [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (9.5e-7, "9.5e-7"),
        (-1e-7, "-1e-7"),
        (1e-10, "1e-10"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-1.5e300, "-1.5e+300"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::NAN, "null"),
    ];
    for (number, expected) in cases {
        let mut out = Vec::new();
        write_float(number, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn syntax_errors_speak_as_go_does() {
    let cases: &[(&str, &str)] = &[
        ("", "unexpected end of JSON input"),
        ("  ", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("[1", "unexpected end of JSON input"),
        (r#"{"a""#, "unexpected end of JSON input"),
        (r#"{"a":"#, "unexpected end of JSON input"),
        (r#"{"a":1"#, "unexpected end of JSON input"),
        (r#"{"a":1,"#, "unexpected end of JSON input"),
        ("\"abc", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        (
            "\u{feff}{}",
            "invalid character 'ï' looking for beginning of value",
        ),
        ("[,", "invalid character ',' looking for beginning of value"),
        (
            "[1,]",
            "invalid character ']' looking for beginning of value",
        ),
        (
            "{,",
            "invalid character ',' looking for beginning of object key string",
        ),
        (
            r#"{"a":1,}"#,
            "invalid character '}' looking for beginning of object key string",
        ),
        (
            "{'a'",
            r"invalid character '\'' looking for beginning of object key string",
        ),
        (r#"{"a" 1"#, "invalid character '1' after object key"),
        (
            r#"{"a":1 "b""#,
            "invalid character '\"' after object key:value pair",
        ),
        ("[1 2]", "invalid character '2' after array element"),
        ("{} {", "invalid character '{' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ("[01]", "invalid character '1' after array element"),
        ("-", "invalid character ' ' in numeric literal"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("+1", "invalid character '+' looking for beginning of value"),
        (".5", "invalid character '.' looking for beginning of value"),
        (
            "1.",
            "invalid character ' ' after decimal point in numeric literal",
        ),
        (
            "1.x",
            "invalid character 'x' after decimal point in numeric literal",
        ),
        ("1e", "invalid character ' ' in exponent of numeric literal"),
        (
            "1e+x",
            "invalid character 'x' in exponent of numeric literal",
        ),
        (
            "tru",
            "invalid character ' ' in literal true (expecting 'e')",
        ),
        (
            "trux",
            "invalid character 'x' in literal true (expecting 'e')",
        ),
        (
            "fals3",
            "invalid character '3' in literal false (expecting 'e')",
        ),
        (
            "nulx",
            "invalid character 'x' in literal null (expecting 'l')",
        ),
        (
            "NaN",
            "invalid character 'N' looking for beginning of value",
        ),
        ("\"a\nb\"", r"invalid character '\n' in string literal"),
        ("\"a\u{0}b\"", r"invalid character '\x00' in string literal"),
        (r#""\x""#, "invalid character 'x' in string escape code"),
        ("\"\\", "invalid character ' ' in string escape code"),
        (
            r#""\u12x4""#,
            r"invalid character 'x' in \u hexadecimal character escape",
        ),
        (
            r#""\ud83d\u12"#,
            r"invalid character ' ' in \u hexadecimal character escape",
        ),
        (
            "1e999",
            "json: cannot unmarshal number 1e999 into Go value of type float64",
        ),
        (
            "[1e999,-1e999]",
            "json: cannot unmarshal number 1e999 into Go value of type float64",
        ),
        ("[1e999", "unexpected end of JSON input"),
    ];
    for (json, expected) in cases {
        let error = parse(json.as_bytes()).expect_err(json);
        assert_eq!(error.to_string(), *expected, "{json}");
        assert_eq!(parse_strict(json.as_bytes()), Err(error), "{json}");
    }
}

#[test]
fn a_sign_is_escaped_wherever_it_stands() {
    let signs = [
        ("\"", "\\\""),
        ("\\", "\\\\"),
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\n", "\\n"),
        ("\u{1f}", "\\u001f"),
        ("\u{2028}", "\\u2028"),
        ("é", "é"),
        ("\u{7f}", "\u{7f}"),
        ("=", "="),
    ];
    for (sign, escaped) in signs {
        for (before, after) in (0..20).flat_map(|before| (0..20).map(move |after| (before, after)))
        {
            let around =
                |middle: &str| format!("{}{middle}{}", "a".repeat(before), "z".repeat(after));
            let expected = format!("\"{}\"", around(escaped));
            assert_eq!(text(&around(sign).into()), expected);
        }
    }
}

#[test]
fn invalid_utf_8_becomes_the_replacement_character_byte_by_byte() {
    assert_eq!(parse(b"\"a\xff\xfeb\""), Ok(value!("a\u{fffd}\u{fffd}b")));
    assert_eq!(parse(b"\"\xe2\x82\""), Ok(value!("\u{fffd}\u{fffd}")));
    assert_eq!(
        parse(b"\"\xed\xa0\x80\""),
        Ok(value!("\u{fffd}\u{fffd}\u{fffd}"))
    );
    assert_eq!(parse(b"{\"\xff\":1}"), Ok(value!({"\u{fffd}": 1})));
}

#[test]
fn an_error_in_text_with_invalid_utf_8_names_the_byte_that_was_sent() {
    let cases: &[(&[u8], usize, u8)] = &[
        (b"\xff", 0, 0xff),
        (b"[\"\xff\xfe\",\xfd]", 6, 0xfd),
        (b"[\"\xff\xfe\xe9\",x]", 7, b'x'),
        (b"[\"\xff\", \"\xc3\xa9\" x]", 11, b'x'),
    ];
    for (json, expected, expected_byte) in cases {
        match parse(json) {
            Err(Error::Syntax { offset, byte, .. }) => {
                assert_eq!((offset, byte), (*expected, *expected_byte), "{json:?}");
            }
            other => panic!("{json:?}: {other:?}"),
        }
    }
}

#[test]
fn ten_thousand_levels_pass_and_one_more_does_not() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |levels: usize| {
            let inner = if open == "[" { "" } else { "1" };
            format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
        };
        let deepest = nested(DEPTH_MAX);
        let value = parse(deepest.as_bytes()).unwrap();
        assert_eq!(text(&value), deepest);
        let error = parse(nested(DEPTH_MAX + 1).as_bytes()).unwrap_err();
        let expected = format!("invalid character '{}' exceeded max depth", &open[..1]);
        assert_eq!(error.to_string(), expected);
        let mut indented = Vec::new();
        pretty(deepest.as_bytes(), &mut indented);
        assert_eq!(parse(&indented), Ok(value));
    }
}

#[test]
fn duplicate_fields_are_told_by_path_in_the_order_met() {
    let cases: &[(&str, &[&str])] = &[
        ("{}", &[]),
        (r#"{"b":1,"a":1}"#, &[]),
        (r#"{"a":1,"a":2,"a":3}"#, &["a"]),
        (
            r#"{"metadata":{"labels":{"a":"1","b":"2","a":"3"}}}"#,
            &["metadata.labels.a"],
        ),
        (
            r#"{"spec":{"containers":[{"name":"a"},{"name":"a","name":"b"}]}}"#,
            &["spec.containers[1].name"],
        ),
        (r#"{"a":1,"a":{"b":1,"b":2}}"#, &["a", "a.b"]),
        (
            r#"[[1,{"a":1,"a":1}],{"b":[],"b":[]}]"#,
            &["[0][1].a", "[1].b"],
        ),
        (r#"{"a":{"x":1,"x":1},"a":{"x":1,"x":1}}"#, &["a.x", "a"]),
        (r#"{"z":[{"a":[1,2,{"k":1,"k":2}]}]}"#, &["z[0].a[2].k"]),
        (r#"{"a":1,"\u0061":2}"#, &["a"]),
    ];
    for (json, expected) in cases {
        let (value, duplicates) = parse_strict(json.as_bytes()).unwrap();
        assert_eq!(duplicates, *expected, "{json}");
        assert_eq!(Ok(value), parse(json.as_bytes()), "{json}");
    }
}

#[test]
fn at_most_a_hundred_duplicate_fields_are_told() {
    let fields: Vec<String> = (0..300)
        .map(|index| format!("\"{}\":0", index % 150))
        .collect();
    let (_, duplicates) = parse_strict(format!("{{{}}}", fields.join(",")).as_bytes()).unwrap();
    assert_eq!(duplicates.len(), 100);
    assert_eq!(
        (duplicates[0].as_str(), duplicates[99].as_str()),
        ("0", "99")
    );
}

#[test]
fn objects_under_equal_keys_merge_when_asked() {
    let cases = [
        (
            r#"{"data":{"a":"1"},"data":{"b":"2"}}"#,
            value!({"data": {"a": "1", "b": "2"}}),
        ),
        (
            r#"{"a":{"x":{"y":1}},"a":{"x":{"z":2}}}"#,
            value!({"a": {"x": {"y": 1, "z": 2}}}),
        ),
        (r#"{"a":[1],"a":[2]}"#, value!({"a": [2]})),
        (r#"{"a":{"x":1},"a":null}"#, value!({"a": null})),
        (
            r#"{"a":{"x":1},"b":0,"a":{"x":2}}"#,
            value!({"a": {"x": 2}, "b": 0}),
        ),
    ];
    for (json, expected) in cases {
        let (merged, duplicates) = parse_merging(json.as_bytes()).unwrap();
        assert_eq!(merged, expected, "{json}");
        assert!(!duplicates.is_empty(), "{json}");
    }
}

#[test]
fn indented_text_is_what_go_makes() {
    let mut out = Vec::new();
    pretty(
        br#"{"a":[],"b":{},"c":[1,{"d":"x:,{}\"\\"}],"e":null}"#,
        &mut out,
    );
    let expected = r#"{
  "a": [],
  "b": {},
  "c": [
    1,
    {
      "d": "x:,{}\"\\"
    }
  ],
  "e": null
}"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter_map("finite", |number| number
            .is_finite()
            .then(|| number_as_written(number))),
        any::<String>().prop_map(Value::from),
        "[a-z<>&\"\\\\\n\u{2028}]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 8, |inner| {
        let key = "[a-c]{0,2}|\\PC{0,3}".prop_map(Text::from);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((key, inner), 0..8)
                .prop_map(|entries| Value::Object(Map::from_entries(entries))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in any_value()) {
        let compact = to_vec(&value);
        prop_assert_eq!(parse_strict(&compact), Ok((value.clone(), Vec::new())));
        let mut indented = Vec::new();
        pretty(&compact, &mut indented);
        prop_assert_eq!(parse(&indented), Ok(value));
    }

    #[test]
    fn no_bytes_make_it_panic(text in "[\\[\\]{}:,\"\\\\ua0-9.eE+ \n-]{0,40}", cut in any::<u8>()) {
        let mut text = text.into_bytes();
        text.push(cut);
        prop_assert_eq!(parse(&text), parse_strict(&text).map(|(value, _)| value));
    }
}
