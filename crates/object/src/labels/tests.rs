//! Selectors in tables, and a round trip over generated ones.

use proptest::prelude::*;

use super::*;
use crate::value;

fn check_error(text: &str, expected: &str) {
    assert_eq!(
        LabelSelector::parse(text).unwrap_err(),
        expected,
        "of {text:?}"
    );
}

#[test]
fn parse_errors_are_upstreams_to_the_letter() {
    check_error(
        "==x",
        "found '==', expected: !, identifier, or 'end of string'",
    );
    check_error("n=1=2", "found '=', expected: ',' or 'end of string'");
    check_error(
        "bad key here",
        "unable to parse requirement: found 'key', expected: in, notin, =, ==, !=, gt, lt",
    );
    check_error(
        "n in (a",
        "unable to parse requirement: found '', expected: ',' or ')'",
    );
    check_error("n=a b", "found 'b', expected: ',' or 'end of string'");
    check_error("n,", "found '', expected: identifier after ','");
    check_error(
        "!",
        "unable to parse requirement: found '', expected: identifier",
    );
    check_error("!n in (a)", "found 'in', expected: ',' or 'end of string'");
    check_error(
        "n in a",
        "unable to parse requirement: found 'a' expected: '('",
    );
    check_error(
        "n in (",
        "unable to parse requirement: found '', expected: ',', ')' or identifier",
    );
    check_error(
        "n in (a,",
        "unable to parse requirement: found '', expected: ',', or identifier",
    );
    check_error(
        "n=(",
        "unable to parse requirement: found '(', expected: identifier",
    );
    check_error(
        "-x",
        "unable to parse requirement: <nil>: Invalid value: \"-x\": name part must consist of \
         alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    );
    check_error(
        "n>a",
        "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, \
         the value must be an integer",
    );
    check_error(
        "n=-a",
        "unable to parse requirement: values[0][n]: Invalid value: \"-a\": a valid label must be \
         an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
         and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
         regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    );
}

#[test]
fn selectors_print_in_one_form() {
    let cases = [
        ("", ""),
        (" z , a ", "a,z"),
        ("x in (b,,a),y", "x in (,a,b),y"),
        ("n in ()", "n in ()"),
        ("n notin(a,a)", "n notin (a)"),
        ("n = ,!m", "!m,n="),
        ("in in (in,notin)", "in in (in,notin)"),
        ("a==b,c!=d,e>1,f<2", "a==b,c!=d,e>1,f<2"),
        ("a\0=b", "a=b"),
        ("a,\0b", "a,b"),
        ("a=b\n\0nonsense=(", "a=b"),
    ];
    for (text, printed) in cases {
        let selector = LabelSelector::parse(text).expect(text);
        assert_eq!(selector.to_string(), printed, "of {text:?}");
    }
    assert!(LabelSelector::parse(" ").unwrap().is_everything());
}

#[test]
fn each_operator_selects_what_it_says() {
    let cases = [
        ("n=1", "0100"),
        ("n!=1", "1011"),
        ("n in (1,2)", "0110"),
        ("n notin (1,2)", "1001"),
        ("n", "0111"),
        ("!n", "1000"),
        ("n>1", "0010"),
        ("n<2", "0100"),
        ("n=1,n=2", "0000"),
        ("", "1111"),
    ];
    let objects = [None, Some("1"), Some("2"), Some("x")];
    for (text, expected) in cases {
        let selector = LabelSelector::parse(text).expect(text);
        let found: String = objects
            .iter()
            .map(|label| selector.matches(|key| label.filter(|_| key == "n")))
            .map(|matched| if matched { '1' } else { '0' })
            .collect();
        assert_eq!(found, expected, "of {text:?}");
    }
}

#[test]
fn the_structured_form_means_the_same() {
    let read = |selector: Value| LabelSelector::from_label_selector_value(&selector);
    assert_eq!(read(Value::Null), Ok(LabelSelector::nothing()));
    assert!(!LabelSelector::nothing().matches(|_| Some("a")));
    assert!(read(value!({})).unwrap().is_everything());
    let selector = read(value!({
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "a", "operator": "DoesNotExist"}
        ]
    }));
    assert_eq!(selector.unwrap().to_string(), "!a,b=1,c in (x,y)");
    let error = read(value!({"matchExpressions": [{"key": "a", "operator": "Maybe"}]}));
    assert_eq!(
        error.unwrap_err(),
        "\"Maybe\" is not a valid label selector operator"
    );
    let error = read(value!({"matchExpressions": [{"key": "a", "operator": "In"}]}));
    assert_eq!(
        error.unwrap_err(),
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    );
}

#[test]
fn an_exact_requirement_is_known() {
    let selector = LabelSelector::parse("a=1,b in (2),c in (3,4),d!=5").unwrap();
    assert_eq!(selector.requires_exact("a"), Some("1"));
    assert_eq!(selector.requires_exact("b"), Some("2"));
    assert_eq!(selector.requires_exact("c"), None);
    assert_eq!(selector.requires_exact("d"), None);
}

fn requirement() -> impl Strategy<Value = String> {
    let word = || "[a-z]{1,3}|in|notin|[0-9]{1,2}";
    let values = proptest::collection::vec("|in|[A-Z0-9]{1,2}", 0..4);
    let exact = (word(), "=|==|!=", "|in|[a-z0-9]{1,3}");
    prop_oneof![
        word().prop_map(|key| key),
        word().prop_map(|key| format!("!{key}")),
        exact.prop_map(|(key, operator, value)| format!("{key} {operator}{value}")),
        (word(), "[<>]", 0..99u8)
            .prop_map(|(key, operator, value)| format!("{key}{operator}{value}")),
        (word(), "in|notin", values)
            .prop_map(|(key, operator, values)| format!("{key} {operator} ({})", values.join(","))),
    ]
}

proptest! {
    #[test]
    fn a_printed_selector_reads_back_as_itself(
        parts in proptest::collection::vec(requirement(), 0..5),
    ) {
        let selector = LabelSelector::parse(&parts.join(" , ")).expect("generated to be valid");
        prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-c=!<>(), in\\x00é]{0,24}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
