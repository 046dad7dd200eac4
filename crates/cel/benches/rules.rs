//! What rules cost in time: `cargo bench -p windlass-cel`.
//!
//! Prints the time of one evaluation. The first figure is a promise: a rule over a list of 1,000
//! items takes less than a millisecond. The last ones are expressions that run into the limit.
//! Then comes how long calls on large values go on when there is hardly anything left to spend: a
//! limit is worth as much as the longest call that cannot be interrupted.

#![allow(clippy::print_stdout)]

extern crate windlass_cel as cel;

use cel::{Bindings, Budget, CALL_COST_MAX, Environment, ListKind, Property, Shape, Value};
use std::sync::Arc;
use std::time::Instant;

const ITEMS: i64 = 1_000;

const RULES: [(&str, &str); 7] = [
    (
        "names of 1,000 items",
        "self.items.all(x, x.name.startsWith('item-') && x.n >= 0)",
    ),
    (
        "filter and map 1,000 items",
        "self.items.filter(x, x.n > 10).map(x, x.name).size() > 0",
    ),
    (
        "patterns over 1,000 items",
        "self.items.all(x, x.name.matches('^item-[0-9]+$'))",
    ),
    (
        "a small rule",
        "self.items.size() < 2000 && has(self.items)",
    ),
    (
        "unique names, up to the limit",
        "self.items.all(x, self.items.exists_one(y, y.name == x.name))",
    ),
    (
        "three loops, up to the limit",
        "self.items.all(x, self.items.all(y, self.items.all(z, z.n >= 0)))",
    ),
    (
        "growing text, up to the limit",
        "lists.range(100000).map(x, 'abcdefghij').join('').replace('', 'abcdefghij').size() > 0",
    ),
];

/// Calls on a text of 1.5 MB and a list of 100,000 numbers.
const LARGE: [&str; 20] = [
    "self.text.matches('(a|aa)+b$')",
    "self.text.replace('a', 'bb') == ''",
    "self.text.split('').size() == 0",
    "self.text.upperAscii() == ''",
    "(self.text + self.text + self.text).size() == 0",
    "self.text.findAll('a').size() == 0",
    "self.text.lastIndexOf('b') == 0",
    "self.text.substring(3) == ''",
    "bytes(self.text) == b''",
    "string(bytes(self.text)) == ''",
    "isURL(self.text) || isQuantity(self.text) || isIP(self.text)",
    "'%s'.format([self.list]) == ''",
    "self.list.map(x, self.list).size() == 0",
    "self.list == self.list.map(x, x)",
    "self.list.isSorted() && self.list.sum() == 0",
    "self.list.indexOf(-1) == 0",
    "self.list.distinct().size() == 0",
    "self.list.sort().size() == 0",
    "sets.equivalent(self.list, self.list)",
    "self.list.all(x, x in self.list)",
];
/// What such a call finds left.
const LITTLE: u64 = 1_000;

fn main() {
    limits();
    large();
}

fn large() {
    let text = "a".repeat(1_500_000);
    let list = object::Value::Array((0..100_000).map(object::Value::Int).collect());
    let data = object::value!({"text": text, "list": list});
    let property = |name: &str, shape: Shape| Property {
        name: name.to_owned(),
        shape: Arc::new(shape),
        required: true,
    };
    let numbers = Shape::list(Arc::new(Shape::int()), ListKind::Atomic, None);
    let text = Shape::string("", None, None);
    let shape = Shape::object(vec![property("list", numbers), property("text", text)]);
    let shape = shape.shared("selfType");
    let environment = Environment::new().with_data("self", &shape);
    for expression in LARGE {
        let program = environment.compile(expression).expect("a rule");
        let value = Value::from_data(&data, &shape).expect("data");
        let bindings = Bindings::new().bind("self", value);
        let mut best = u128::MAX;
        let mut outcome = "done";
        for _ in 0..5 {
            let mut budget = Budget::new(LITTLE, LITTLE);
            let started = Instant::now();
            if program.evaluate(&bindings, &mut budget).is_err() {
                outcome = "stopped";
            }
            best = best.min(started.elapsed().as_micros());
        }
        println!("{expression}: {outcome} after {best} us");
    }
}

fn limits() {
    let property = |name: &str, shape: Shape| Property {
        name: name.to_owned(),
        shape: Arc::new(shape),
        required: true,
    };
    let text = Shape::string("", None, None);
    let item = Shape::object(vec![property("name", text), property("n", Shape::int())]);
    let list = Shape::list(Arc::new(item), ListKind::Atomic, None);
    let shape = Shape::object(vec![property("items", list)]).shared("selfType");
    let items = (0..ITEMS).map(|n| {
        let name = format!("item-{n}");
        object::value!({"name": name, "n": n})
    });
    let items = object::Value::Array(items.collect());
    let data = object::value!({"items": items});
    let environment = Environment::new().with_data("self", &shape);
    for (name, rule) in RULES {
        let started = Instant::now();
        let program = environment.compile(rule).expect("a rule");
        let compiled = started.elapsed();
        let value = Value::from_data(&data, &shape).expect("data");
        let bindings = Bindings::new().bind("self", value);
        let mut best = u128::MAX;
        let mut outcome = String::new();
        for _ in 0..20 {
            let mut budget = Budget::new(CALL_COST_MAX, u64::MAX);
            let started = Instant::now();
            let result = program.evaluate(&bindings, &mut budget);
            best = best.min(started.elapsed().as_micros());
            let cost = u64::MAX - budget.remaining();
            outcome = match result {
                Ok(value) => format!("{value}, cost {cost}"),
                Err(error) => format!("{error}"),
            };
        }
        let compiled = compiled.as_micros();
        println!("{name}: {best} us ({outcome}), compiled in {compiled} us");
    }
}
