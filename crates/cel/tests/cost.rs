//! What expressions cost.

use cel::{Bindings, Environment};

fn cost(text: &str) -> u64 {
    let program = Environment::new().compile(text).expect("an expression");
    let (outcome, cost) = program.evaluate_metered(&Bindings::new(), 1_000_000);
    outcome.expect("a value");
    cost
}

#[test]
fn running_costs_what_upstream_counts() {
    let cases = [
        ("1", 0),
        ("1 + 2", 1),
        ("1 == 2", 1),
        ("[1, 2]", 0),
        ("[1 + 1, 2]", 11),
        ("{'a': 1 + 1}", 31),
        ("1 in [1, 2]", 0),
        ("'abcdefghijk'.startsWith('a')", 2),
        ("'abcdefghijk'.contains('abc')", 2),
        ("'a' + 'b'", 1),
        ("true && false", 0),
        ("[1, 2, 3].all(x, x > 0)", 16),
        ("[1, 2].exists(x, x > 5)", 13),
        ("[1, 2].map(x, x)", 27),
        ("[1, 2].filter(x, x > 1)", 18),
        ("true ? 1 + 1 : 2", 1),
        ("has({'a': 1}.a)", 1),
        ("{'a': 1}.a", 2),
        ("'aaaaaaaaaa'.matches('a+')", 2),
        ("lists.range(5)", 16),
        ("string(1)", 0),
    ];
    for (text, expected) in cases {
        assert_eq!(cost(text), expected, "{text}");
    }
}
