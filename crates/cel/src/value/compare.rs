//! Equality and order.
//!
//! Contract: the `Equal` and `Compare` methods of cel-go `common/types` and of the Kubernetes
//! values: numbers compare across types, sets without order, lists of type map by their keys.

use super::list::find_by_keys;
use super::{Library, List, Map, Value};
use crate::evaluate::Fault;
use crate::shape::ListKind;
use crate::work::Work;
use object::Value as Json;
use std::cmp::Ordering;

/// Values nested deeper than this are not compared; an expression cannot build them so deep.
const DEPTH_MAX: u32 = 256;

/// Whether two values are equal.
pub(crate) fn equal(a: &Value<'_>, b: &Value<'_>) -> Result<bool, Fault> {
    equal_within(a, b, &Work::default())
}

/// As [`equal`], as long as there is work left.
pub(crate) fn equal_within(a: &Value<'_>, b: &Value<'_>, work: &Work) -> Result<bool, Fault> {
    equal_at(a, b, 0, work)
}

/// What looking at one pair of values takes, in nanoseconds.
const PAIR: u64 = 8;

fn equal_at(a: &Value<'_>, b: &Value<'_>, depth: u32, work: &Work) -> Result<bool, Fault> {
    if depth > DEPTH_MAX {
        return Err(Fault::new("values are nested too deep to be compared"));
    }
    work.spend(PAIR)?;
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            // The longer one was counted when the comparison was charged.
            work.glance(a.len().max(b.len()))?;
            **a == **b
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            work.glance(a.len().max(b.len()))?;
            a == b
        }
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a.nanos() == b.nanos(),
        (Value::Type(a), Value::Type(b)) => a.name() == b.name(),
        (Value::List(a), Value::List(b)) => return equal_lists(a, b, depth, work),
        (Value::Map(a), Value::Map(b)) => return equal_maps(a, b, depth, work),
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return equal_at(a, b, depth + 1, work),
            (a, b) => a.is_none() && b.is_none(),
        },
        (Value::Library(a), Value::Library(b)) => return equal_library(a, b),
        (Value::Library(_), _) => return Err(Fault::no_overload()),
        (Value::Hidden(a), Value::Hidden(b)) => return equal_json(a, b, work),
        // Data of a schema refuses what is no list or map; what the expression made is unequal.
        (Value::List(List::Data(_, shape)), _) if !shape.is_any() => {
            return Err(Fault::no_overload());
        }
        (Value::Map(Map::Data(_, shape)), _) if !shape.is_any() => {
            return Err(Fault::no_overload());
        }
        (a, b) => numbers(a, b) == Some(Some(Ordering::Equal)),
    })
}

fn equal_library(a: &Library<'_>, b: &Library<'_>) -> Result<bool, Fault> {
    Ok(match (a, b) {
        (Library::Url(a), Library::Url(b)) => a.to_string() == b.to_string(),
        (Library::Ip(a), Library::Ip(b)) => a == b,
        (Library::Cidr(a), Library::Cidr(b)) => a == b,
        (Library::Quantity(a), Library::Quantity(b)) => a.cmp(b).is_eq(),
        (Library::Semver(a), Library::Semver(b)) => a.order(b).is_eq(),
        (Library::Format(a), Library::Format(b)) => a.name == b.name,
        _ => return Err(Fault::no_overload()),
    })
}

fn equal_lists(a: &List<'_>, b: &List<'_>, depth: u32, work: &Work) -> Result<bool, Fault> {
    if let (List::Data(a, shape_a), List::Data(b, shape_b)) = (a, b)
        && shape_a.is_any()
        && shape_b.is_any()
    {
        return equal_arrays(a, b, work);
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    match a.kind() {
        ListKind::Atomic => {}
        ListKind::Set => return equal_sets(a, b, depth, work),
        ListKind::Map(keys) => return equal_map_lists(a, b, keys, depth, work),
    }
    for (a, b) in a.iter().zip(b.iter()) {
        if !equal_at(&a?, &b?, depth + 1, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_sets(a: &List<'_>, b: &List<'_>, depth: u32, work: &Work) -> Result<bool, Fault> {
    let known: Vec<Value<'_>> = a.iter().collect::<Result<_, _>>()?;
    'items: for item in b.iter() {
        let item = item?;
        for other in &known {
            if equal_at(other, &item, depth + 1, work)? {
                continue 'items;
            }
        }
        return Ok(false);
    }
    Ok(true)
}

fn equal_map_lists(
    a: &List<'_>,
    b: &List<'_>,
    keys: &[String],
    depth: u32,
    work: &Work,
) -> Result<bool, Fault> {
    let known: Vec<Value<'_>> = a.iter().collect::<Result<_, _>>()?;
    for item in b.iter() {
        let item = item?;
        let Some(at) = find_by_keys(&known, &item, keys)? else {
            return Ok(false);
        };
        if !equal_at(&known[at], &item, depth + 1, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(a: &Map<'_>, b: &Map<'_>, depth: u32, work: &Work) -> Result<bool, Fault> {
    match (a, b) {
        (Map::Data(a, shape_a), Map::Data(b, shape_b)) if shape_a.is_any() && shape_b.is_any() => {
            return equal_objects(a, b, work);
        }
        (Map::Made(a), Map::Made(b)) if a.name != b.name => return Ok(false),
        (Map::Made(a), Map::Made(b)) if a.fields.len() != b.fields.len() => return Ok(false),
        (Map::Lazy(_), _) | (_, Map::Lazy(_)) => return Err(Fault::no_overload()),
        _ if a.len() != b.len() => return Ok(false),
        _ => {}
    }
    for key in a.keys() {
        let (Some(left), Some(right)) = (a.find(&key)?, b.find(&key)?) else {
            // A null of a schema's object is absent; it may be absent in both.
            if a.find(&key)?.is_some() || b.find(&key)?.is_some() {
                return Ok(false);
            }
            continue;
        };
        if !equal_at(&left, &right, depth + 1, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_arrays(a: &[Json], b: &[Json], work: &Work) -> Result<bool, Fault> {
    match a.len() == b.len() {
        true => all_equal(a.iter().zip(b).collect(), work),
        false => Ok(false),
    }
}

fn equal_objects(a: &object::Map, b: &object::Map, work: &Work) -> Result<bool, Fault> {
    if a.len() != b.len() || !a.keys().zip(b.keys()).all(|(a, b)| a == b) {
        return Ok(false);
    }
    let values = a.iter().zip(b.iter());
    all_equal(values.map(|((_, a), (_, b))| (a, b)).collect(), work)
}

pub(super) fn equal_json(a: &Json, b: &Json, work: &Work) -> Result<bool, Fault> {
    all_equal(vec![(a, b)], work)
}

/// Compares raw data without recursion: data may be nested deeper than a stack allows.
fn all_equal(mut open: Vec<(&Json, &Json)>, work: &Work) -> Result<bool, Fault> {
    work.spend(PAIR * open.len() as u64)?;
    while let Some(pair) = open.pop() {
        let before = open.len();
        let same = match pair {
            (Json::Array(a), Json::Array(b)) => {
                open.extend(a.iter().zip(b));
                a.len() == b.len()
            }
            (Json::Object(a), Json::Object(b)) => {
                let keys = a.keys().zip(b.keys()).all(|(a, b)| a == b);
                open.extend(a.iter().zip(b.iter()).map(|((_, a), (_, b))| (a, b)));
                a.len() == b.len() && keys
            }
            (Json::Int(a), Json::Float(b)) | (Json::Float(b), Json::Int(a)) => {
                numbers(&Value::Int(*a), &Value::Double(*b)) == Some(Some(Ordering::Equal))
            }
            (Json::String(a), Json::String(b)) => {
                work.glance(a.len().min(b.len()))?;
                a == b
            }
            (a, b) => a == b,
        };
        if !same {
            return Ok(false);
        }
        work.spend(PAIR * (open.len() - before) as u64)?;
    }
    Ok(true)
}

/// The order of two numbers of any types; the inner `None` stands for a NaN.
fn numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Option<Ordering>> {
    let whole = |value: &Value<'_>| match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    };
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => Some(a.partial_cmp(b)),
        (Value::Double(a), b) => whole(b).map(|b| double_to_whole(*a, b)),
        (a, Value::Double(b)) => whole(a).map(|a| double_to_whole(*b, a).map(Ordering::reverse)),
        (a, b) => Some(Some(whole(a)?.cmp(&whole(b)?))),
    }
}

fn double_to_whole(double: f64, whole: i128) -> Option<Ordering> {
    double.partial_cmp(&(whole as f64))
}

/// The order of two values.
pub(crate) fn order(a: &Value<'_>, b: &Value<'_>) -> Result<Ordering, Fault> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Ok((**a).cmp(&**b)),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Ok(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(a.nanos().cmp(&b.nanos())),
        (a, b) => match numbers(a, b) {
            Some(Some(order)) => Ok(order),
            Some(None) => Err(Fault::new("NaN values cannot be ordered")),
            None => Err(Fault::no_overload()),
        },
    }
}
