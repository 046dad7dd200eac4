//! Any text is refused or becomes a program, which runs within its budget and does not panic.
#![no_main]

use cel::{Bindings, Budget, Environment, Type, Value};
use libfuzzer_sys::fuzz_target;

/// What one evaluation may cost.
const LIMIT: u64 = 10_000;

fuzz_target!(|input: (&str, &[u8])| {
    let (text, body) = input;
    let environment = Environment::new()
        .with_variable("object", Type::Dyn)
        .for_mutation();
    let Ok(program) = environment.compile(text) else {
        return;
    };
    let estimate = program.estimate();
    assert!(estimate.min <= estimate.max);
    let data = object::json::parse(body).unwrap_or_default();
    let bindings = Bindings::new().bind("object", Value::from_json(&data));
    let mut budget = Budget::new(LIMIT, 2 * LIMIT);
    let outcome = program.evaluate(&bindings, &mut budget);
    assert!(budget.remaining() <= 2 * LIMIT);
    if let Ok(value) = outcome {
        let _ = (value.to_string(), value.to_json());
    }
});
