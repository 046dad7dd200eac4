//! Loops: what macros such as `all` and `map` become.
//!
//! Contract: cel-go's folds over the trees of `parser/macro.go`. They are not run step by step
//! here, but each iteration is charged what those steps are.

use super::{Context, Fault, Outcome, Slot};
use crate::charge;
use crate::plan::{Body, Loop, Node};
use crate::value::{Entries, Key, Map, Value};
use std::sync::Arc;

/// What gathering one key of a map takes, in nanoseconds.
const KEY: u64 = 20;

/// What is under way in a loop: a result, or the first error.
type Running<T> = Result<T, Fault>;

impl<'p, 'v> Context<'p, 'v> {
    pub(super) fn repeat(&mut self, repeat: &'p Loop) -> Outcome<'v> {
        let range = self.evaluate(&repeat.range)?;
        let slot = repeat.slot;
        let mut step = Step {
            body: &repeat.body,
            result: Accumulated::of(&repeat.body),
        };
        let mut visit = |this: &mut Self, first: Outcome<'v>, second: Option<Outcome<'v>>| {
            this.set(slot, first);
            if let Some(second) = second {
                this.set(slot + 1, second);
            }
            step.run(this)
        };
        match (&range, repeat.two_variables) {
            (Value::List(list), two) => {
                for (index, item) in list.iter().enumerate() {
                    let more = match two {
                        true => visit(self, Ok(Value::Int(index as i64)), Some(item))?,
                        false => visit(self, item, None)?,
                    };
                    if !more {
                        break;
                    }
                }
            }
            (Value::Map(map), two) => {
                self.meter.work.spend(KEY * map.len().unwrap_or(0))?;
                for key in map.keys() {
                    let value = two.then(|| map.find(&key).map(|it| it.unwrap_or(Value::Null)));
                    if !visit(self, Ok(key), value)? {
                        break;
                    }
                }
            }
            (other, two) => return Err(no_range(other, two)),
        }
        self.slots[slot] = Slot::Empty;
        self.finish(step.result)
    }

    fn set(&mut self, slot: usize, value: Outcome<'v>) {
        self.slots[slot] = match value {
            Ok(value) => Slot::Value(value),
            Err(fault) => Slot::Failed(fault),
        };
    }

    fn finish(&mut self, result: Accumulated<'v>) -> Outcome<'v> {
        match result {
            Accumulated::Decided(result) => {
                self.meter.charge(1)?;
                result.map(Value::Bool)
            }
            Accumulated::Counted(result) => {
                self.meter.charge(2)?;
                result.map(|count| Value::Bool(count == 1))
            }
            Accumulated::List(result) => {
                self.meter.charge(1)?;
                result.map(Value::list)
            }
            Accumulated::Map(result) => {
                self.meter.charge(1)?;
                result.map(|entries| Value::Map(Map::Owned(Arc::new(entries))))
            }
        }
    }

    /// Whether the filter lets the item through.
    fn passes(&mut self, filter: Option<&'p Node>) -> Running<bool> {
        match filter {
            None => Ok(true),
            Some(filter) => match self.evaluate(filter)? {
                Value::Bool(flag) => Ok(flag),
                _ => Err(Fault::NoOverload),
            },
        }
    }
}

fn no_range(value: &Value<'_>, two_variables: bool) -> Fault {
    let of = value.type_of().name();
    Fault::from(match two_variables {
        true => format!("unsupported comprehension range type: {of}"),
        false => format!("got '{of}', expected iterable type"),
    })
}

enum Accumulated<'v> {
    Decided(Running<bool>),
    Counted(Running<i64>),
    List(Running<Vec<Value<'v>>>),
    Map(Running<Entries<'v>>),
}

impl Accumulated<'_> {
    fn of(body: &Body) -> Self {
        match body {
            Body::All(_) => Accumulated::Decided(Ok(true)),
            Body::Exists(_) => Accumulated::Decided(Ok(false)),
            Body::ExistsOne(_) => Accumulated::Counted(Ok(0)),
            Body::List { .. } => Accumulated::List(Ok(Vec::new())),
            Body::Map { .. } => Accumulated::Map(Ok(Entries::new())),
        }
    }
}

struct Step<'p, 'v> {
    body: &'p Body,
    result: Accumulated<'v>,
}

impl<'p, 'v> Step<'p, 'v> {
    /// One iteration; false ends the loop.
    fn run(&mut self, context: &mut Context<'p, 'v>) -> Result<bool, Fault> {
        match (self.body, &mut self.result) {
            (Body::All(predicate), Accumulated::Decided(result)) => {
                context.meter.charge(2)?;
                decide(context, predicate, result, false, 1)
            }
            (Body::Exists(predicate), Accumulated::Decided(result)) => {
                context.meter.charge(3)?;
                decide(context, predicate, result, true, 1)
            }
            (Body::ExistsOne(predicate), Accumulated::Counted(result)) => {
                match unlimited(context.passes(Some(predicate)))? {
                    Ok(true) => {
                        context.meter.charge(2)?;
                        if let Ok(count) = result {
                            *count += 1;
                        }
                    }
                    Ok(false) => {}
                    Err(fault) => fail(result, fault),
                }
                Ok(true)
            }
            (Body::List { filter, value }, Accumulated::List(result)) => {
                match unlimited(context.passes(filter.as_ref()))? {
                    Ok(true) => append(context, value, result)?,
                    Ok(false) => {}
                    Err(fault) => fail(result, fault),
                }
                Ok(true)
            }
            (Body::Map { filter, key, value }, Accumulated::Map(result)) => {
                match unlimited(context.passes(filter.as_ref()))? {
                    Ok(true) => insert(context, key.as_ref(), value, result)?,
                    Ok(false) => {}
                    Err(fault) => fail(result, fault),
                }
                Ok(true)
            }
            _ => Err(Fault::new("unsupported comprehension")),
        }
    }
}

/// Lets the limit end the loop and keeps other errors as values.
fn unlimited<T>(outcome: Running<T>) -> Result<Running<T>, Fault> {
    match outcome {
        Err(Fault::OverLimit) => Err(Fault::OverLimit),
        other => Ok(other),
    }
}

/// The first error stays.
fn fail<T>(result: &mut Running<T>, fault: Fault) {
    if result.is_ok() {
        *result = Err(fault);
    }
}

/// A step of `all` or `exists`; the loop's condition has been charged.
fn decide<'p, 'v>(
    context: &mut Context<'p, 'v>,
    predicate: &'p Node,
    result: &mut Running<bool>,
    decisive: bool,
    step_cost: u64,
) -> Result<bool, Fault> {
    if *result == Ok(decisive) {
        return Ok(false);
    }
    context.meter.charge(step_cost)?;
    match unlimited(context.evaluate(predicate))? {
        Ok(Value::Bool(flag)) if flag == decisive => *result = Ok(decisive),
        Ok(Value::Bool(_)) => {}
        Ok(_) => fail(result, Fault::NoOverload),
        Err(fault) => fail(result, fault),
    }
    Ok(true)
}

fn append<'p, 'v>(
    context: &mut Context<'p, 'v>,
    value: &'p Node,
    result: &mut Running<Vec<Value<'v>>>,
) -> Result<(), Fault> {
    // The accumulator, the sum, and a list around the value unless it is a constant.
    let list = match value {
        Node::Constant(_) => 0,
        _ => charge::LIST,
    };
    let value = unlimited(context.evaluate(value))?;
    context.meter.charge(2 + list)?;
    match (value, result) {
        (Ok(value), Ok(items)) => items.push(value),
        (Err(fault), result) => fail(result, fault),
        _ => {}
    }
    Ok(())
}

fn insert<'p, 'v>(
    context: &mut Context<'p, 'v>,
    key: Option<&'p Node>,
    value: &'p Node,
    result: &mut Running<Entries<'v>>,
) -> Result<(), Fault> {
    let key = match key {
        Some(key) => Some(unlimited(context.evaluate(key))?),
        None => None,
    };
    let value = unlimited(context.evaluate(value))?;
    context.meter.charge(2)?;
    let entries = match key {
        Some(key) => key.and_then(|key| Ok(vec![(key, value?)])),
        None => value.and_then(|value| merged(&value)),
    };
    match entries {
        Err(fault) => fail(result, fault),
        Ok(entries) => {
            for (key, value) in entries {
                add(result, &key, value);
            }
        }
    }
    Ok(())
}

fn merged<'v>(value: &Value<'v>) -> Result<Vec<(Value<'v>, Value<'v>)>, Fault> {
    let Value::Map(map) = value else {
        return Err(Fault::NoOverload);
    };
    let mut entries = Vec::new();
    for key in map.keys() {
        if let Some(value) = map.find(&key)? {
            entries.push((key, value));
        }
    }
    Ok(entries)
}

fn add<'v>(result: &mut Running<Entries<'v>>, key: &Value<'v>, value: Value<'v>) {
    let Ok(entries) = result else {
        return;
    };
    let of = key.type_of().name();
    match Key::from_value(key) {
        None => *result = Err(Fault::from(format!("unsupported key type: {of}"))),
        Some(index) if entries.contains_key(&index) => {
            *result = Err(Fault::from(format!(
                "insert failed: key {key} already exists"
            )));
        }
        Some(index) => {
            entries.insert(index, value);
        }
    }
}
