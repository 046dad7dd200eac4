//! Expressions as users write them: what they give, what they cost and how they fail.

extern crate windlass_cel as cel;

mod compile;
mod cost;
mod data;
mod expressions;
mod hostile;
mod limits;

use cel::{Bindings, Budget, Environment, Value};

/// A value as the tables write it.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Uint(number) => format!("{number}u"),
        Value::String(text) => format!("'{}'", &**text),
        Value::Bytes(bytes) => format!("b'{}'", bytes.escape_ascii()),
        Value::List(_) | Value::Map(_) => match value.to_json() {
            Ok(json) => String::from_utf8(object::json::to_vec(&json)).expect("JSON is text"),
            Err(error) => error.to_string(),
        },
        Value::Optional(Some(inner)) => format!("optional({})", shown(inner)),
        other => other.to_string(),
    }
}

/// What an expression without variables gives.
fn evaluated(text: &str) -> String {
    let program = match Environment::new().compile(text) {
        Ok(program) => program,
        Err(issues) => return format!("compile: {issues}"),
    };
    match program.evaluate(&Bindings::new(), &mut Budget::new(1_000_000, 10_000_000)) {
        Ok(value) => shown(&value),
        Err(error) => format!("error: {error}"),
    }
}
