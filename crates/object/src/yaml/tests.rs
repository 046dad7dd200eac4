//! What YAML becomes, what it is refused for, and how it is written.

use proptest::prelude::*;

use super::*;
use crate::{Map, Text, value};

#[test]
fn plain_scalars_mean_what_yaml_1_1_says() {
    let cases: &[(&str, Value)] = &[
        ("", Value::Null),
        ("~", Value::Null),
        ("null", Value::Null),
        ("Null", Value::Null),
        ("NULL", Value::Null),
        ("nULL", value!("nULL")),
        ("true", value!(true)),
        ("True", value!(true)),
        ("TRUE", value!(true)),
        ("yes", value!(true)),
        ("Yes", value!(true)),
        ("YES", value!(true)),
        ("on", value!(true)),
        ("y", value!(true)),
        ("Y", value!(true)),
        ("n", value!(false)),
        ("no", value!(false)),
        ("Off", value!(false)),
        ("FALSE", value!(false)),
        ("yEs", value!("yEs")),
        ("tRUE", value!("tRUE")),
        ("0", value!(0)),
        ("-0", value!(0)),
        ("+12", value!(12)),
        ("-12", value!(-12)),
        ("0777", value!(511)),
        ("0o17", value!(15)),
        ("08", value!(8)),
        ("0x1F", value!(31)),
        ("-0x1f", value!(-31)),
        ("0b101", value!(5)),
        ("-0b101", value!(-5)),
        ("1_000", value!(1000)),
        ("0x_ff", value!(255)),
        ("9223372036854775807", value!(i64::MAX)),
        ("-9223372036854775808", value!(i64::MIN)),
        ("18446744073709551615", value!(18_446_744_073_709_551_615.0)),
        ("18446744073709551616", value!(18_446_744_073_709_551_616.0)),
        ("1.5", value!(1.5)),
        ("1.0", value!(1)),
        ("1.", value!(1)),
        (".5", value!(0.5)),
        ("+.5", value!(0.5)),
        ("1e3", value!(1000)),
        ("12e03", value!(12_000)),
        ("685230.15e-2", value!(6852.3015)),
        ("1e21", value!(1e21)),
        ("1e999", value!("1e999")),
        ("1:30", value!("1:30")),
        ("190:20:30.15", value!("190:20:30.15")),
        ("2015-01-01", value!("2015-01-01")),
        ("2015-02-24T18:19:39.12Z", value!("2015-02-24T18:19:39.12Z")),
        ("v1", value!("v1")),
        ("-", value!([null])),
        ("-a", value!("-a")),
        ("0x", value!("0x")),
        ("0b2", value!("0b2")),
        ("1.2.3", value!("1.2.3")),
        ("1e", value!("1e")),
        (".", value!(".")),
        ("a:b", value!("a:b")),
        ("<<", value!("<<")),
        ("'yes'", value!("yes")),
        ("\"1\"", value!("1")),
        ("!!str yes", value!("yes")),
        ("!!str", value!("")),
        ("!!int 3", value!(3)),
        ("!!int '3'", value!(3)),
        ("!!float 3", value!(3)),
        ("!!bool no", value!(false)),
        ("!!null ''", Value::Null),
        ("!!timestamp 2015-01-01", value!("2015-01-01")),
        ("!!binary aGVsbG8=", value!("hello")),
        ("!!binary /w==", value!("\u{fffd}")),
        ("!local 12", value!("12")),
        ("! 12", value!("12")),
        ("!<tag:yaml.org,2002:int> 12", value!(12)),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text.as_bytes()).as_ref(), Ok(expected), "{text}");
    }
}

#[test]
fn documents_are_read_as_kubectl_users_expect() {
    let cases: &[(&str, Value)] = &[
        ("# nothing\n", Value::Null),
        ("---\n", Value::Null),
        ("a: 1\n---\nb: 2\n", value!({"a": 1})),
        ("a: 1\n---\n[broken\n", value!({"a": 1})),
        ("---\na: 1\n...\nrest", value!({"a": 1})),
        ("%YAML 1.1\n---\na: 1\n", value!({"a": 1})),
        (
            "%TAG !e! tag:yaml.org,2002:\n---\na: !e!str 1\n",
            value!({"a": "1"}),
        ),
        ("\u{feff}a: 1\n", value!({"a": 1})),
        ("a:\n- 1\n- 2\nb:\n  - 3\n", value!({"a": [1, 2], "b": [3]})),
        (
            "a:\n  b:\n    c: x\n  d: z\n",
            value!({"a": {"b": {"c": "x"}, "d": "z"}}),
        ),
        (
            "- a: 1\n  b: 2\n-\n  c: 3\n- - 4\n",
            value!([{"a": 1, "b": 2}, {"c": 3}, [4]]),
        ),
        ("a:\nb:\n", value!({"a": null, "b": null})),
        (
            "{a: 1, b: [x, 'y'], c: {}, d}",
            value!({"a": 1, "b": ["x", "y"], "c": {}, "d": null}),
        ),
        ("[a: 1, {b: 2}]", value!([{"a": 1}, {"b": 2}])),
        (
            "a: 1 # one\n# two\nb: 'x # y'\n",
            value!({"a": 1, "b": "x # y"}),
        ),
        ("a: 1\r\nb: x\r\n", value!({"a": 1, "b": "x"})),
        (
            "a: |\n  x\n   y\n\n  z\n\nb: 1\n",
            value!({"a": "x\n y\n\nz\n", "b": 1}),
        ),
        ("a: |-\n  x\n\n", value!({"a": "x"})),
        ("a: |+\n  x\n\n", value!({"a": "x\n\n"})),
        (
            "a: >\n  x\n  y\n\n  z\n   w\n",
            value!({"a": "x y\nz\n w\n"}),
        ),
        ("a: |2\n    x\n", value!({"a": "  x\n"})),
        ("a: |\n  x", value!({"a": "x"})),
        ("a: b\n  c\n\n  d\n", value!({"a": "b c\nd"})),
        ("a: 'b\n  c''d'\n", value!({"a": "b c'd"})),
        (
            "a: \"b\\\n  c\\x41\\u00e9\\U0001F600\\t\"\n",
            value!({"a": "bcA\u{e9}\u{1f600}\t"}),
        ),
        ("? a\n: 1\n? b\n", value!({"a": 1, "b": null})),
        (
            "a: &x {m: 1}\nb: *x\n",
            value!({"a": {"m": 1}, "b": {"m": 1}}),
        ),
        (
            "a: &x 1\nb: *x\nc: &x 2\nd: *x\n",
            value!({"a": 1, "b": 1, "c": 2, "d": 2}),
        ),
        (
            "b: &b {x: 1, z: 2}\nc:\n  <<: *b\n  z: 3\n",
            value!({"b": {"x": 1, "z": 2}, "c": {"x": 1, "z": 3}}),
        ),
        ("<<: [{x: 1}, {x: 2, z: 2}]\n", value!({"x": 1, "z": 2})),
        ("'<<': 1\n", value!({"<<": 1})),
        (
            "1: a\ntrue: b\n1.5: c\n~x: d\n",
            value!({"1": "a", "true": "b", "1.5": "c", "~x": "d"}),
        ),
        (
            "0x10: a\nyes: b\n1e6: c\n2001-01-01: d\n",
            value!({"16": "a", "true": "b", "1e+06": "c", "2001-01-01": "d"}),
        ),
        ("a: 1\na: 2\n", value!({"a": 2})),
        (
            "url: http://x:80/y?z#w\n",
            value!({"url": "http://x:80/y?z#w"}),
        ),
        (
            "{\"a\": 1.0, \"b\": 1e3, \"c\": 1.5}",
            value!({"a": 1, "b": 1000, "c": 1.5}),
        ),
        ("{\"a\":\t1,\n\t\"b\": 2}", value!({"a": 1, "b": 2})),
        ("{a: 1,\n\tb: 2}", value!({"a": 1, "b": 2})),
        ("a:\t1\n", value!({"a": 1})),
        (
            "&a a: &b b\nc: [*a, *b]\n",
            value!({"a": "b", "c": ["a", "b"]}),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text.as_bytes()).as_ref(), Ok(expected), "{text}");
    }
}

#[test]
fn errors_speak_as_upstream_does() {
    let cases: &[(&str, &str)] = &[
        (
            "apiVersion: v1\nkind: ConfigMap\n\tmetadata: x\n",
            "line 3: found a tab character that violates indentation",
        ),
        (
            "apiVersion: v1\nkind: [unclosed\n",
            "line 2: did not find expected ',' or ']'",
        ),
        (
            "{\"apiVersion\": \"v1\",",
            "line 1: did not find expected node content",
        ),
        ("a: [", "line 1: did not find expected node content"),
        ("a: b: c", "mapping values are not allowed in this context"),
        (
            "x: 1\na: b: c",
            "line 2: mapping values are not allowed in this context",
        ),
        (
            "a: - b",
            "block sequence entries are not allowed in this context",
        ),
        ("a: 1\nb\n", "line 3: could not find expected ':'"),
        ("a: 1\nb\nc: 2\n", "line 3: could not find expected ':'"),
        ("a:\n  - b\n c: d\n", "line 2: did not find expected key"),
        ("a:\n  - b\n  c\n", "line 4: could not find expected ':'"),
        ("- a\nb: c\n", "line 1: did not find expected '-' indicator"),
        ("a: 'x\n", "line 2: found unexpected end of stream"),
        (
            "a: \"x\n--- \n",
            "line 2: found unexpected document indicator",
        ),
        ("a: \"\\z\"", "found unknown escape character"),
        ("a: \"\\xZZ\"", "did not find expected hexdecimal number"),
        (
            "a: \"\\ud800\"",
            "found invalid Unicode character escape code",
        ),
        ("a: @b", "found character that cannot start any token"),
        ("a: `b`", "found character that cannot start any token"),
        ("\ta: b", "found character that cannot start any token"),
        ("a: *b", "unknown anchor 'b' referenced"),
        ("a: &b [*b]", "anchor 'b' value contains itself"),
        (
            "a: & b",
            "did not find expected alphabetic or numeric character",
        ),
        ("a: !x!y z", "found undefined tag handle"),
        ("a: |x\n", "did not find expected comment or line break"),
        ("a: |0\n", "found an indentation indicator equal to 0"),
        ("%FOO 1\n---\n", "found unknown directive name"),
        ("%YAML 1.2\n---\n", "found incompatible YAML document"),
        (
            "%YAML 1.1\na: b\n",
            "line 1: did not find expected <document start>",
        ),
        ("a: !!int x", "cannot decode !!str `x` as a !!int"),
        ("a: !!int 1.5", "cannot decode !!float `1.5` as a !!int"),
        (
            "a: !!binary x",
            "!!binary value contains invalid base64 data",
        ),
        (
            "<<: 1",
            "map merge requires map or sequence of maps as the value",
        ),
        (
            "<<: [1]",
            "map merge requires map or sequence of maps as the value",
        ),
        (
            "a: &a [{}]\n<<: *a\n",
            "map merge requires map or sequence of maps as the value",
        ),
        (
            "{{ .Values.x }}: y",
            "invalid map key: map[interface {}]interface {}{\".Values.x\":interface {}(nil)}",
        ),
        ("[1, a]: y", "invalid map key: []interface {}{1, \"a\"}"),
        ("a: \u{7f}", "control characters are not allowed"),
    ];
    for (text, expected) in cases {
        let error = parse(text.as_bytes()).expect_err(text);
        assert_eq!(error.to_string(), format!("yaml: {expected}"), "{text}");
    }
    let cases: &[(&[u8], &str)] = &[
        (b"a: .nan", "json: unsupported value: NaN"),
        (b"a: -.inf", "json: unsupported value: -Inf"),
        (
            b"~: x",
            "unsupported map key of type: %!s(<nil>), key: <nil>",
        ),
        (b"a: \xff", "yaml: invalid leading UTF-8 octet"),
        (b"a: \xe2\x82", "yaml: incomplete UTF-8 octet sequence"),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).expect_err(expected).to_string(), *expected);
    }
}

#[test]
fn duplicate_keys_are_told_by_line() {
    let cases: &[(&str, &[&str])] = &[
        ("a: 1\nb: 2\n", &[]),
        (
            "kind: x\ndata:\n  a: '1'\n  a: '2'\n",
            &["line 4: key \"a\" already set in map"],
        ),
        (
            "{\"data\":{\"a\":\"3\",\"a\":\"4\"}}",
            &["line 1: key \"a\" already set in map"],
        ),
        (
            "a: 1\na:\n  b: 1\n  b: 2\n",
            &[
                "line 4: key \"b\" already set in map",
                "line 3: key \"a\" already set in map",
            ],
        ),
        (
            "1: a\n1: b\nyes: c\ntrue: d\n",
            &[
                "line 2: key 1 already set in map",
                "line 4: key true already set in map",
            ],
        ),
        ("1: a\n'1': b\n", &[]),
        (
            "b: &b {x: 1}\nc:\n  <<: *b\n  x: 2\n",
            &["line 4: key \"x\" already set in map"],
        ),
    ];
    for (text, expected) in cases {
        let (value, messages) = parse_strict(text.as_bytes()).unwrap();
        assert_eq!(messages, *expected, "{text}");
        assert_eq!(Ok(value), parse(text.as_bytes()), "{text}");
    }
}

#[test]
fn alias_bombs_are_refused() {
    let mut nodes = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        nodes.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let long = "x".repeat(100_000);
    let bytes = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 1000].join(", "));
    let mut merges = "a0: &a0 {k: v}\n".to_owned();
    for level in 1..30 {
        let before = level - 1;
        merges.push_str(&format!(
            "a{level}: &a{level} {{<<: [*a{before}, *a{before}]}}\n"
        ));
    }
    for bomb in [nodes, bytes, merges] {
        let error = parse(bomb.as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "yaml: document contains excessive aliasing"
        );
    }
}

#[test]
fn ten_thousand_levels_pass_and_one_more_does_not() {
    let flow = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let json = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let block = |levels: usize| format!("{}x", "- ".repeat(levels));
    let aliased = |levels: usize| {
        let chain = (1..levels).map(|level| format!("- &a{level} [*a{}]\n", level - 1));
        format!("- &a0 x\n{}", chain.collect::<String>())
    };
    let nestings: [&dyn Fn(usize) -> String; 3] = [&flow, &json, &block];
    for nested in nestings {
        assert!(parse(nested(json::DEPTH_MAX).as_bytes()).is_ok());
        let error = parse(nested(json::DEPTH_MAX + 1).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "yaml: exceeded max depth of 10000");
    }
    assert!(parse(aliased(10).as_bytes()).is_ok());
    assert!(parse(aliased(20_000).as_bytes()).is_err());
}

#[test]
fn objects_are_written_as_upstream_writes_them() {
    let cases: &[(Value, &str)] = &[
        (Value::Null, "null\n"),
        (value!("x"), "x\n"),
        (value!({}), "{}\n"),
        (value!([]), "[]\n"),
        (
            value!({"b": [1, {"c": true, "a": []}], "a": {"x": null, "e": {}}}),
            "a:\n  e: {}\n  x: null\nb:\n- 1\n- a: []\n  c: true\n",
        ),
        (
            value!([[1, 2], [[3]], {"a": [4]}]),
            "- - 1\n  - 2\n- - - 3\n- a:\n  - 4\n",
        ),
        (
            value!({"fieldsV1": {"f:data": {".": {}, "f:a": {}}}}),
            "fieldsV1:\n  f:data:\n    .: {}\n    f:a: {}\n",
        ),
        (value!({"k:{\"name\":\"a\"}": 1}), "k:{\"name\":\"a\"}: 1\n"),
        (
            value!({"a10": 1, "a2": 2, "a-b": 3, "ab": 4, "A": 5}),
            "A: 5\na-b: 3\na2: 2\na10: 1\nab: 4\n",
        ),
        (
            value!({"a": "x\ny\n", "b": "x\ny", "c": "x\n\n", "d": " x\n", "e": "x \ny"}),
            "a: |\n  x\n  y\nb: |-\n  x\n  y\nc: |+\n  x\n\nd: |2\n   x\ne: \"x \\ny\"\n",
        ),
        (value!([{"a": "x\n"}, "y\n"]), "- a: |\n    x\n- |\n  y\n"),
        (
            value!({"f": 1.5, "g": 1e21, "h": 1e-7, "i": 3.0, "j": 1234567.5}),
            "f: 1.5\ng: 1e+21\nh: 1e-07\ni: 3\nj: 1.2345675e+06\n",
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(to_string(value), *expected);
    }
}

#[test]
fn strings_are_quoted_only_when_they_must_be() {
    let cases = [
        ("", "\"\""),
        ("a", "a"),
        ("true", "\"true\""),
        ("y", "\"y\""),
        ("Off", "\"Off\""),
        ("null", "\"null\""),
        ("~", "\"~\""),
        ("1", "\"1\""),
        ("0x1f", "\"0x1f\""),
        ("1e3", "\"1e3\""),
        ("1_000", "\"1_000\""),
        ("1:30", "\"1:30\""),
        ("1.2.3", "1.2.3"),
        ("2024-01-02T03:04:05Z", "\"2024-01-02T03:04:05Z\""),
        ("2024-01-02", "\"2024-01-02\""),
        ("2024-13-02", "2024-13-02"),
        (
            "6e1f2c34-5b7a-4a6e-9d0e-1c2b3a4d5e6f",
            "6e1f2c34-5b7a-4a6e-9d0e-1c2b3a4d5e6f",
        ),
        ("12e45", "\"12e45\""),
        ("100m", "100m"),
        (
            "configmaps \"none\" not found",
            "configmaps \"none\" not found",
        ),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("*", "'*'"),
        ("'a'", "'''a'''"),
        ("\"a\"", "'\"a\"'"),
        ("{a}", "'{a}'"),
        ("- a", "'- a'"),
        ("-a", "-a"),
        ("--- a", "'--- a'"),
        ("-", "'-'"),
        (":", "':'"),
        ("?", "'?'"),
        ("<<", "\"<<\""),
        ("=", "="),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("a\tb", "\"a\\tb\""),
        ("\u{e9}", "\u{e9}"),
        ("\u{1f600}", "\"\\U0001F600\""),
        ("\u{7f}\u{1}", "\"\\x7F\\x01\""),
        ("\u{a0}", "\u{a0}"),
        ("\u{feff}", "\"\\uFEFF\""),
    ];
    for (text, expected) in cases {
        assert_eq!(
            to_string(&value!(text)),
            format!("{expected}\n"),
            "{text:?}"
        );
        let entry = to_string(&Value::Object(Map::from_entries(vec![(
            text.into(),
            value!(1),
        )])));
        assert_eq!(entry, format!("{expected}: 1\n"), "{text:?}");
    }
}

#[test]
fn long_lines_fold_behind_column_eighty() {
    let words = vec!["word"; 40].join(" ");
    let cases = [
        (words.clone(), 16, 16),
        (format!("- {words}"), 16, 16),
        (format!("\u{1}{words}"), 15, 16),
    ];
    for (text, first, second) in cases {
        let written = to_string(&value!({"a": (text.as_str())}));
        let lines: Vec<usize> = written
            .lines()
            .map(|line| line.matches("word").count())
            .collect();
        assert_eq!(lines[..2], [first, second], "{written}");
        assert!(
            written
                .lines()
                .skip(1)
                .all(|line| line.starts_with("  word")),
            "{written}"
        );
        assert_eq!(
            parse(written.as_bytes()),
            Ok(value!({"a": (text.as_str())}))
        );
    }
}

#[test]
fn a_long_key_stands_behind_a_question_mark() {
    let key = "k".repeat(129);
    let map = |value: Value| Value::Object(Map::from_entries(vec![(key.as_str().into(), value)]));
    assert_eq!(to_string(&map(value!(1))), format!("? {key}\n: 1\n"));
    assert_eq!(
        to_string(&map(value!([1, 2]))),
        format!("? {key}\n: - 1\n  - 2\n")
    );
    assert_eq!(
        to_string(&map(value!({"a": 1}))),
        format!("? {key}\n: a: 1\n")
    );
    let lines = value!({"a\nb": "c"});
    assert_eq!(to_string(&lines), "? |-\n  a\n  b\n: c\n");
    assert_eq!(parse(to_string(&lines).as_bytes()), Ok(lines));
}

#[test]
fn a_very_deep_tree_is_written_in_little_space() {
    let text = format!("{}\"\u{7f}\"{}", "[".repeat(9_999), "]".repeat(9_999));
    let value = json::parse(text.as_bytes()).unwrap();
    let written = to_string(&value);
    assert!(written.len() < 4 * text.len());
    assert_eq!(parse(written.as_bytes()), Ok(value));
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{0,8}",
        "[ \n\t:#'\"\\\\,?!&*|>%@`{}\\[\\]-]{1,3}",
        "[0-9_.:eE+-]{1,6}",
        "\\PC{0,4}",
        any::<char>().prop_map(String::from),
        Just("true".to_owned()),
        Just("a long piece of text that will make the writer fold the line it is on".to_owned()),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter_map("finite", |number| {
            number.is_finite().then(|| json::number_as_written(number))
        }),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((any_text().prop_map(Text::from), inner), 0..6)
                .prop_map(|entries| Value::Object(Map::from_entries(entries))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in any_value()) {
        let written = to_string(&value);
        let read = parse(written.as_bytes());
        prop_assert_eq!(read, Ok(value), "{}", written);
    }

    #[test]
    fn json_is_yaml(value in any_value()) {
        let object = Value::Object(Map::from_entries(vec![("a".into(), value)]));
        prop_assert_eq!(parse(&json::to_vec(&object)), Ok(object));
    }

    #[test]
    fn no_text_makes_it_panic(text in any_text()) {
        if let Ok(value) = parse(text.as_bytes()) {
            prop_assert_eq!(parse(to_string(&value).as_bytes()), Ok(value));
        }
    }
}
