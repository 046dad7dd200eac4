//! What is refused when an expression is compiled, in upstream's words.

use cel::{Environment, Issues};

fn refused(text: &str) -> String {
    match Environment::new().compile(text) {
        Ok(_) => "accepted".to_owned(),
        Err(issues) => first_lines(&issues),
    }
}

/// The messages without the lines that show the place.
fn first_lines(issues: &Issues) -> String {
    let printed = issues.to_string();
    let lines = printed.lines().filter(|line| !line.starts_with(" | "));
    let stripped = lines.map(|line| line.strip_prefix("ERROR: <input>:").unwrap_or(line));
    stripped.collect::<Vec<_>>().join("\n")
}

const STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                      NUM_UINT, STRING, BYTES, IDENTIFIER}";

#[test]
fn syntax_errors_read_as_upstream_writes_them() {
    let cases = [
        (
            "1 +",
            "1:4: Syntax error: mismatched input '<EOF>' expecting STARTS",
        ),
        (
            "",
            "1:0: Syntax error: mismatched input '<EOF>' expecting STARTS",
        ),
        (
            "1 + +",
            "1:5: Syntax error: mismatched input '+' expecting STARTS\n\
                   1:6: Syntax error: mismatched input '<EOF>' expecting STARTS",
        ),
        (
            "1 2",
            "1:3: Syntax error: extraneous input '2' expecting <EOF>",
        ),
        ("(1", "1:3: Syntax error: missing ')' at '<EOF>'"),
        (
            "1 + $",
            "1:5: Syntax error: token recognition error at: '$'\n\
                   1:6: Syntax error: mismatched input '<EOF>' expecting STARTS",
        ),
        (
            "[1].",
            "1:5: Syntax error: no viable alternative at input '.'",
        ),
        (
            "[1].true",
            "1:5: Syntax error: mismatched input 'true' expecting IDENTIFIER",
        ),
        (
            "a ? b",
            "1:6: Syntax error: mismatched input '<EOF>' expecting ':'",
        ),
        ("if", "1:1: reserved identifier: if"),
        ("99999999999999999999", "1:1: invalid int literal"),
        ("[1].all(1, true)", "1:9: argument must be a simple name"),
        ("[1].map(1, true)", "1:9: argument is not an identifier"),
        ("has(1)", "1:5: invalid argument to has() macro"),
        (
            "'abc",
            "1:1: Syntax error: token recognition error at: ''abc'\n\
                  1:5: Syntax error: mismatched input '<EOF>' expecting STARTS",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected.replace("STARTS", STARTS), "{text}");
    }
}

#[test]
fn type_errors_read_as_upstream_writes_them() {
    let cases = [
        ("x", "1:1: undeclared reference to 'x' (in container '')"),
        (
            "foo(1)",
            "1:4: undeclared reference to 'foo' (in container '')",
        ),
        (
            "'a'.foo()",
            "1:8: undeclared reference to 'foo' (in container '')",
        ),
        (
            "1 + 'a'",
            "1:3: found no matching overload for '_+_' applied to '(int, string)'",
        ),
        (
            "'a'.size(1)",
            "1:9: found no matching overload for 'size' applied to 'string.(int)'",
        ),
        ("1 && true", "1:1: expected type 'bool' but found 'int'"),
        ("(1).a", "1:4: type 'int' does not support field selection"),
        ("[1, 'a']", "1:5: expected type 'int' but found 'string'"),
        (
            "{'a': 1, 'b': 'c'}",
            "1:15: expected type 'int' but found 'string'",
        ),
        (
            "(1).all(x, true)",
            "1:2: expression of type 'int' cannot be range of a comprehension \
                              (must be list, map, or dynamic)",
        ),
        (
            "[1].filter(x, x)",
            "1:11: found no matching overload for '_?_:_' applied to '(int, \
                              list(int), list(int))'",
        ),
        ("duration('x')", "1:10: invalid duration argument"),
        ("timestamp('x')", "1:11: invalid timestamp argument"),
        ("'a'.matches('(')", "1:13: invalid matches argument"),
        (
            "'%d'.format(['a'])",
            "1:14: error during formatting: decimal clause can only be used \
                                on integers, was given string",
        ),
        (
            "'%d'.format([1, 2])",
            "1:12: too many arguments supplied to string.format (expected 1, \
                                 got 2)",
        ),
        ("'%d %d'.format([1])", "1:15: index 1 out of range"),
        (
            "'%q'.format([1])",
            "1:12: could not parse formatting clause: unrecognized formatting \
                              clause \"q\"",
        ),
        (
            "Object{}",
            "1:7: undeclared reference to 'Object' (in container '')",
        ),
        (
            "jsonpatch.escapeKey('a')",
            "1:1: undeclared reference to 'jsonpatch' (in container '')\n\
                                      1:20: undeclared reference to 'escapeKey' (in container '')",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn a_place_is_shown_under_the_text() {
    let issues = Environment::new()
        .compile("true &&\n  x")
        .expect_err("x is unknown");
    let expected = "ERROR: <input>:2:3: undeclared reference to 'x' (in container '')\n \
                    |   x\n | ..^";
    assert_eq!(issues.to_string(), expected);
}
