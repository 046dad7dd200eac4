//! Cases: patterns in Go's dialect, what they match, and what is said about those that are none.

use super::*;

#[test]
fn patterns_mean_what_go_means() {
    let cases = [
        ("^\\d+\\w\\s$", "1a ", true),
        ("^\\d+$", "\u{661}", false),
        ("^[\\w.-]+$", "a-b.c_d", true),
        ("^[\\w.-]+$", "\u{e9}", false),
        ("^[[:alpha:]&&]$", "&", true),
        ("^[]a]$", "]", true),
        ("^[a-]$", "-", true),
        ("^[^\\d]$", "x", true),
        ("(?i)^ab\\b", "AB c", true),
        ("(?i)^ab\\b", "abc", false),
        ("^\\Qa.b\\E{2}$", "a.bb", true),
        ("a{,3}", "a{,3}", true),
        ("a{,3}", "aaa", false),
        ("^{$", "{", true),
        ("\\pL", "\u{e9}", true),
        ("^\\x{e9}$", "\u{e9}", true),
        ("^(a|b)*?c$", "abc", true),
        ("^[a-z]([-a-z0-9]*[a-z0-9])?$", "my-name", true),
    ];
    for (pattern, text, expected) in cases {
        assert_eq!(Pattern::check(pattern), Ok(()), "{pattern}");
        assert_eq!(
            Pattern::new(pattern).matches(text),
            expected,
            "{pattern} {text}"
        );
    }
}

#[test]
fn mistakes_are_told_in_the_words_of_go() {
    let cases = [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(+", "missing argument to repetition operator: `+`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("x+*", "invalid nested repetition operator: `+*`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("\\p{Foo}", "invalid character class range: `\\p{Foo}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(a{1000}){1000}", "invalid repeat count: `{1000}`"),
        ("\\1", "invalid escape sequence: `\\1`"),
        ("\\q", "invalid escape sequence: `\\q`"),
        ("\\x{110000}", "invalid escape sequence: `\\x{110000`"),
        ("(?=x)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?z)", "invalid or unsupported Perl syntax: `(?z`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ];
    for (pattern, expected) in cases {
        let error = Pattern::check(pattern).expect_err(pattern);
        assert_eq!(error.message, expected, "{pattern}");
    }
}
