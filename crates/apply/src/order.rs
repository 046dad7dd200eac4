//! Equality and order of values, as ownership sees them.
//!
//! Contract: structured-merge-diff `value`. Numbers compare numerically whatever their kind, lists
//! element by element, maps entry by entry. Values that clients send may be ten thousand levels
//! deep, so beyond a few levels both functions work on a heap-allocated stack.

use std::cmp::Ordering;

use object::{Value, text_order};

/// Levels compared by plain recursion before the explicit stack takes over.
const RECURSION_MAX: u32 = 64;

/// Whether two values are the same, `1` and `1.0` included.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    same_within(left, right, RECURSION_MAX)
}

/// The total order across kinds: numbers, strings, booleans, lists, maps, null.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    compare_within(left, right, RECURSION_MAX)
}

fn same_within(left: &Value, right: &Value, levels: u32) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_))
            if levels == 0 =>
        {
            same_deep(left, right)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same_within(left, right, levels - 1))
        }
        (Value::Object(left), Value::Object(right)) => {
            let (left, right) = (left.entries(), right.entries());
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| {
                    left.0 == right.0 && same_within(&left.1, &right.1, levels - 1)
                })
        }
        _ => match (left.as_float(), right.as_float()) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        },
    }
}

fn same_deep(left: &Value, right: &Value) -> bool {
    let mut pending = vec![(left, right)];
    while let Some((left, right)) = pending.pop() {
        match (left, right) {
            (Value::Array(left), Value::Array(right)) => {
                if left.len() != right.len() {
                    return false;
                }
                pending.extend(left.iter().zip(right));
            }
            (Value::Object(left), Value::Object(right)) => {
                if left.len() != right.len() {
                    return false;
                }
                for (left, right) in left.entries().iter().zip(right.entries()) {
                    if left.0 != right.0 {
                        return false;
                    }
                    pending.push((&left.1, &right.1));
                }
            }
            _ => {
                if !same_within(left, right, 1) {
                    return false;
                }
            }
        }
    }
    true
}

fn compare_within(left: &Value, right: &Value, levels: u32) -> Ordering {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => text_order(left, right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_))
            if levels == 0 =>
        {
            compare_deep(left, right)
        }
        (Value::Array(left), Value::Array(right)) => left
            .iter()
            .zip(right)
            .map(|(left, right)| compare_within(left, right, levels - 1))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| left.len().cmp(&right.len())),
        (Value::Object(left), Value::Object(right)) => {
            let (left, right) = (left.entries(), right.entries());
            left.iter()
                .zip(right)
                .map(|(left, right)| {
                    left.0
                        .as_str()
                        .cmp(right.0.as_str())
                        .then_with(|| compare_within(&left.1, &right.1, levels - 1))
                })
                .find(|order| order.is_ne())
                .unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => match (left.as_float(), right.as_float()) {
            (Some(left), Some(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
            _ => rank(left).cmp(&rank(right)),
        },
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// What is left to compare on the explicit stack.
enum Pending<'a> {
    Names(&'a str, &'a str),
    Values(&'a Value, &'a Value),
    Lengths(usize, usize),
}

fn compare_deep(left: &Value, right: &Value) -> Ordering {
    let mut pending = vec![Pending::Values(left, right)];
    while let Some(next) = pending.pop() {
        let order = match next {
            Pending::Names(left, right) => left.cmp(right),
            Pending::Lengths(left, right) => left.cmp(&right),
            Pending::Values(Value::Array(left), Value::Array(right)) => {
                pending.push(Pending::Lengths(left.len(), right.len()));
                let pairs = left.iter().zip(right).rev_pairs();
                pending.extend(pairs.map(|(left, right)| Pending::Values(left, right)));
                Ordering::Equal
            }
            Pending::Values(Value::Object(left), Value::Object(right)) => {
                let (left, right) = (left.entries(), right.entries());
                pending.push(Pending::Lengths(left.len(), right.len()));
                for (left, right) in left.iter().zip(right).rev_pairs() {
                    pending.push(Pending::Values(&left.1, &right.1));
                    pending.push(Pending::Names(&left.0, &right.0));
                }
                Ordering::Equal
            }
            Pending::Values(left, right) => compare_within(left, right, 1),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Pairs from the last to the first, so that a stack yields the first one first.
trait ReversePairs<T> {
    fn rev_pairs(self) -> impl Iterator<Item = T>;
}

impl<T, I: Iterator<Item = T>> ReversePairs<T> for I {
    fn rev_pairs(self) -> impl Iterator<Item = T> {
        let mut pairs: Vec<T> = self.collect();
        pairs.reverse();
        pairs.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    #[test]
    fn values_of_all_kinds_have_one_order() {
        let sorted = [
            value!(-1),
            value!(1),
            value!(1.5),
            value!(9),
            value!(10),
            value!(""),
            value!("a"),
            value!("b"),
            value!(false),
            value!(true),
            value!([]),
            value!([1]),
            value!([1, 2]),
            value!([2]),
            value!({}),
            value!({"a": 1}),
            value!({"a": 1, "b": 1}),
            value!({"a": 2}),
            value!({"b": 1}),
            value!(null),
        ];
        for (at, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(compare(left, right), at.cmp(&other), "{left:?} {right:?}");
                assert_eq!(
                    compare_deep(left, right),
                    at.cmp(&other),
                    "{left:?} {right:?}"
                );
                assert_eq!(same(left, right), at == other, "{left:?} {right:?}");
                assert_eq!(same_deep(left, right), at == other, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn integers_and_floats_compare_numerically() {
        assert!(same(&value!([1]), &value!([1.0])));
        assert_eq!(compare(&value!(1), &value!(1.0)), Ordering::Equal);
        assert_eq!(compare(&value!(2), &value!(1.5)), Ordering::Greater);
    }
}
