//! Names in tables: what passes, what does not, and in which words.

use super::*;

fn check(rule: impl Fn(&str) -> Vec<String>, good: &[&str], bad: &[&str]) {
    for text in good {
        assert_eq!(rule(text), Vec::<String>::new(), "{text:?} is fine");
    }
    for text in bad {
        assert!(!rule(text).is_empty(), "{text:?} is wrong");
    }
}

#[test]
fn each_rule_takes_the_good_and_refuses_the_bad() {
    let (long, longer) = ("a".repeat(63), "a".repeat(64));
    check(
        dns1123_label,
        &["a", "0", "a-b", "0--9", &long],
        &["", "-a", "a-", "A", "a.b", "a_b", "é", "a ", "a\n", &longer],
    );
    let (wide, wider) = ("a".repeat(253), "a".repeat(254));
    check(
        dns1123_subdomain,
        &["a", "a.b", "1.2.3", "a-b.c", &wide],
        &["", ".", "a.", ".a", "a..b", "a-.b", "A", &wider],
    );
    check(dns1035_label, &["a", "a1", "a-1"], &["", "1a", "a-", "-"]);
    check(
        dns1123_subdomain_with_underscore,
        &["_a", "a_b.c", "_sip._tcp.x"],
        &["_", "__a", "a_"],
    );
    check(
        wildcard_dns1123_subdomain,
        &["*.a", "*.a.b"],
        &["*", "a.b", "*.", "*.*.a", "*a.b"],
    );
    check(
        label_value,
        &["", "a", "A_b.c-9", &long],
        &["-", "a b", "a.", "é", &longer],
    );
    let prefixed = format!("{wide}/{long}");
    check(
        qualified_name,
        &["a", "A.b_c", "x.io/A", &prefixed],
        &["", "/", "a/", "/a", "a/b/c", "X.io/a", "-a", &longer],
    );
    check(
        config_map_key,
        &["a", ".a", "A_b-", "-", &wide],
        &["", ".", "..", "..a", "a/b", &wider],
    );
    check(
        env_var_name,
        &["A", "_", "-a", ".b", "a1"],
        &["", "1a", "a=b", "..", "..a"],
    );
    check(
        relaxed_env_var_name,
        &["1 a~", "!"],
        &["", "a=b", "é", "\t", "\u{7f}"],
    );
    check(c_identifier, &["_", "a1"], &["", "1", "a-b"]);
    check(http_header_name, &["X-A", "-"], &["", "a_b", "a:"]);
    check(
        percent,
        &["0%", "100%"],
        &["", "%", "1", "1.5%", "-1%", "1%%"],
    );
    check(
        port_name,
        &["http", "p-1", "a"],
        &["", "1", "-a", "a-", "a--b", "A", "a234567890123456"],
    );
    check(
        path_segment,
        &["", "a:b", "..."],
        &[".", "..", "a/b", "a%b"],
    );
}

#[test]
fn numbers_have_bounds() {
    assert!(port_number(1).is_empty() && port_number(65535).is_empty());
    assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
    assert_eq!(unix_id(-1), ["must be between 0 and 2147483647, inclusive"]);
}

#[test]
fn complaints_are_upstreams_to_the_letter() {
    let cases: &[(Vec<String>, &str)] = &[
        (
            dns1123_subdomain("Upper_Case"),
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (
            dns1123_label("A"),
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
             '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
             '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
        (dns1123_label("a.b"), "must not contain dots"),
        (
            qualified_name("bad key!"),
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start \
             and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
             '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            qualified_name("a/b/c"),
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and \
             must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  \
             or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
             and '/' (e.g. 'example.com/MyName')",
        ),
        (
            label_value("bad value!"),
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  \
             or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            dns1123_subdomain(&"a".repeat(254)),
            "must be no more than 253 characters",
        ),
        (
            label_value(&"a".repeat(64)),
            "must be no more than 63 bytes",
        ),
        (
            qualified_name(&"a".repeat(64)),
            "name part must be no more than 63 bytes",
        ),
        (path_segment(".."), "may not be '..'"),
        (path_segment("a%"), "may not contain '%'"),
    ];
    for (complaints, expected) in cases {
        assert_eq!(complaints, &[expected.to_owned()]);
    }
    assert_eq!(qualified_name("/")[0], "prefix part must be non-empty");
    assert_eq!(qualified_name("/")[1], "name part must be non-empty");
}

#[test]
fn a_generated_name_may_end_in_a_dash() {
    assert!(name_is_dns_subdomain("web-", true).is_empty());
    assert!(!name_is_dns_subdomain("web-", false).is_empty());
    assert!(!name_is_dns_label("-", true).is_empty());
    assert!(name_is_dns_label(&format!("{}-", "a".repeat(63)), true).is_empty());
    assert!(!name_is_dns1035_label("é-", true).is_empty());
    assert!(name_is_path_segment("..", true).is_empty());
    assert_eq!(name_is_path_segment("..", false), ["may not be '..'"]);
}

#[test]
fn domains_are_checked_with_their_field() {
    let root = Path::root();
    let path = root.field("name");
    let text = |errors: Vec<FieldError>| crate::field::summary(&errors);
    assert_eq!(
        text(fully_qualified_name(&path, "")),
        "name: Required value"
    );
    assert_eq!(
        text(fully_qualified_name(&path, "a.b")),
        "name: Invalid value: \"a.b\": should be a domain with at least three segments separated \
         by dots"
    );
    assert!(fully_qualified_name(&path, "a.b.c").is_empty());
    assert!(fully_qualified_domain_name(&path, "a.b.").is_empty());
    assert!(!fully_qualified_domain_name(&path, "a").is_empty());
    assert!(!fully_qualified_domain_name(&path, &format!("{}.b", "a".repeat(64))).is_empty());
    assert!(domain_prefixed_path(&path, "acme.io/foo%20").is_empty());
    assert_eq!(
        text(domain_prefixed_path(&path, "acme.io/a b")),
        "name: Invalid value: \"a b\": Invalid path (regex used for validation is \
         '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
    );
    assert_eq!(
        text(domain_prefixed_key(&path, "foo")),
        "name: Invalid value: \"foo\": must be a domain-prefixed key (such as \"acme.io/foo\")"
    );
}
