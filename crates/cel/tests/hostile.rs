//! Whatever is written or bound: no panic, and never more than the limit allows.

use cel::{Bindings, Budget, Environment, Error, Type, Value};
use object::value;
use proptest::prelude::*;

const LIMIT: u64 = 100_000;

fn run(text: &str) -> Option<Result<String, Error>> {
    let data = value!({"s": "text", "n": 3, "l": [1, 2, 3], "m": {"a": "b"}});
    let environment = Environment::new()
        .with_variable("object", Type::Dyn)
        .for_mutation();
    let program = environment.compile(text).ok()?;
    let bindings = Bindings::new().bind("object", Value::from_json(&data));
    let mut budget = Budget::new(LIMIT, LIMIT);
    let outcome = program.evaluate(&bindings, &mut budget);
    Some(outcome.map(|value| value.to_string()))
}

/// Pieces of expressions, so that many of them compile.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("object"),
        Just("object.l"),
        Just("object.m"),
        Just("object.s"),
        Just("x"),
        Just("1"),
        Just("-9223372036854775808"),
        Just("2u"),
        Just("1.5"),
        Just("''"),
        Just("'a'"),
        Just("b'\\xff'"),
        Just("null"),
        Just("true"),
        Just("[]"),
        Just("{}"),
        Just("duration('1h')"),
        Just("timestamp(0)"),
        Just("ip('::1')"),
        Just("quantity('1Gi')"),
        Just("optional.none()"),
        Just("lists.range(1000)"),
    ]
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (pair.clone(), operator()).prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            (pair.clone(), member()).prop_map(|((a, b), name)| format!("({a}).{name}({b})")),
            inner.clone().prop_map(|a| format!("dyn({a})")),
            pair.clone().prop_map(|(a, b)| format!("({a}).map(x, {b})")),
            pair.clone().prop_map(|(a, b)| format!("({a}).all(x, {b})")),
            pair.clone()
                .prop_map(|(a, b)| format!("({a}).filter(x, {b})")),
            pair.clone().prop_map(|(a, b)| format!("({a})[{b}]")),
            pair.clone()
                .prop_map(|(a, b)| format!("'%s %d'.format([{a}, {b}])")),
            pair.prop_map(|(a, b)| format!("[{a}, dyn({b})]")),
            inner.prop_map(|a| format!("Object{{a: {a}}}")),
        ]
    })
}

fn operator() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("+"),
        Just("-"),
        Just("*"),
        Just("/"),
        Just("%"),
        Just("=="),
        Just("<"),
        Just("in"),
        Just("&&"),
        Just("||"),
    ]
}

fn member() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("split"),
        Just("replace"),
        Just("substring"),
        Just("indexOf"),
        Just("lastIndexOf"),
        Just("charAt"),
        Just("join"),
        Just("matches"),
        Just("findAll"),
        Just("flatten"),
        Just("orValue"),
        Just("add"),
        Just("sum"),
        Just("distinct"),
        Just("size"),
        Just("getHours"),
    ]
}

proptest! {
    #[test]
    fn any_text_is_refused_or_runs(text in "\\PC{0,40}") {
        run(&text);
    }

    #[test]
    fn any_expression_is_refused_or_runs(text in expression()) {
        run(&text);
    }

    #[test]
    fn a_budget_is_never_overdrawn(text in expression(), total in 0_u64..5_000) {
        let environment = Environment::new().with_variable("object", Type::Dyn).for_mutation();
        if let Ok(program) = environment.compile(&text) {
            let data = value!({"s": "text", "l": [1, 2, 3], "m": {"a": "b"}});
            let bindings = Bindings::new().bind("object", Value::from_json(&data));
            let mut budget = Budget::new(1_000, total);
            let outcome = program.evaluate(&bindings, &mut budget);
            prop_assert!(budget.remaining() <= total);
            if total - budget.remaining() > 1_000 {
                prop_assert!(matches!(outcome, Err(Error::CallLimit | Error::Budget)));
            }
        }
    }
}

#[test]
fn what_would_take_forever_is_stopped() {
    let doubled = format!("object.l{}", ".map(x, x)".repeat(40));
    let joined = format!(
        "{}.size() > 0",
        (0..60).fold("object.l".to_owned(), |list, _| {
            format!("[{list}].map(y, y + y)[0]")
        })
    );
    let cases = [
        "lists.range(1000000000).size() > 0".to_owned(),
        "lists.range(300).all(a, lists.range(300).all(b, lists.range(300).all(c, a + b >= 0)))"
            .to_owned(),
        "lists.range(20000).map(x, 'a').join('').replace('', 'aaaaaaaaaaaaaaaa').size() > 0"
            .to_owned(),
        "lists.range(20000).distinct().size() > 0".to_owned(),
        "lists.range(3000).map(x, string(x)).all(x, 'a'.matches(x + '{1000}'))".to_owned(),
        format!("{doubled}.size() >= 0"),
        joined,
    ];
    for text in cases {
        let outcome = run(&text);
        let is_bounded = matches!(
            outcome,
            None | Some(Ok(_) | Err(Error::CallLimit | Error::Budget | Error::Evaluation(_)))
        );
        assert!(is_bounded, "{text}");
    }
    let stopped = run("lists.range(1000000000).size() > 0");
    assert!(
        matches!(stopped, Some(Err(Error::CallLimit))),
        "{stopped:?}"
    );
}

/// Comparing large objects, or reading a long number, costs one unit of what is charged.
#[test]
fn what_costs_little_and_takes_long_is_stopped() {
    let words: Vec<object::Value> = (0..20_000)
        .map(|it| format!("w{it}").as_str().into())
        .collect();
    let entries = (0..20_000).map(|it| (format!("k{it}"), object::Value::Int(it)));
    let mut map = object::Map::new();
    entries.for_each(|(key, item)| _ = map.insert(key, item));
    let text = "1".repeat(1_000_000);
    let data = value!({"text": text, "words": words, "map": map});
    let environment = Environment::new().with_variable("object", Type::Dyn);
    let run = |text: &str| {
        let program = environment.compile(text).expect("an expression");
        let bindings = Bindings::new().bind("object", Value::from_json(&data));
        program.evaluate(&bindings, &mut Budget::new(1_000_000, 10_000_000))
    };
    for body in [
        "object == object",
        "object.map.exists(k, true)",
        "[object.words, object.words].flatten().size() > 0",
        "object.text.find('') == ''",
        "'%s'.format([object.words]) != ''",
    ] {
        let stopped = run(&format!("lists.range(90000).all(x, {body})"));
        assert!(
            matches!(stopped, Err(Error::CallLimit)),
            "{body}: {stopped:?}"
        );
        assert_eq!(run(body).map(|it| it.as_bool()), Ok(Some(true)), "{body}");
    }
}

#[test]
fn the_deepest_expressions_fit_a_small_stack() {
    let nested = [
        format!("{}1{}", "(".repeat(249), ")".repeat(249)),
        format!("{}true", "!".repeat(10_000)),
        format!("1{}", " + 1".repeat(249)),
        format!("object{}", ".a".repeat(248)),
        format!("{}1{}", "[".repeat(249), "]".repeat(249)),
        format!("{}1{}", "dyn(".repeat(240), ")".repeat(240)),
        format!("{}true{}", "object.l.all(x, ".repeat(120), ")".repeat(120)),
        format!("{}x{}", "[1].map(x, ".repeat(120), ")".repeat(120)),
        format!("{}1 : 2{}", "true ? (".repeat(100), ") : 3".repeat(100)),
        format!("optional.of(1){}", ".optMap(x, x)".repeat(200)),
    ];
    let worker = std::thread::Builder::new().stack_size(2 << 20);
    let thread = worker.spawn(move || nested.iter().for_each(|text| drop(run(text))));
    thread.expect("a thread").join().expect("no overflow");
    let too_deep = format!("{}1{}", "(".repeat(300), ")".repeat(300));
    let issues = Environment::new().compile(&too_deep).expect_err("too deep");
    assert_eq!(
        issues.to_string(),
        "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
    );
}
