//! Lists as sets.
//!
//! Contract: cel-go `ext/sets.go`.

use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{List, Value};

type Outcome<'v> = Result<Value<'v>, Fault>;

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "sets.contains",
        overloads: &[("list_sets_contains_list", "(list(T), list(T)) -> bool")],
        native: |arguments, meter| {
            let (a, b) = lists(arguments, meter)?;
            Ok(Value::Bool(includes(a, b, meter)?))
        },
    },
    Declaration {
        name: "sets.equivalent",
        overloads: &[("list_sets_equivalent_list", "(list(T), list(T)) -> bool")],
        native: |arguments, meter| {
            let (a, b) = lists(arguments, meter)?;
            Ok(Value::Bool(
                includes(a, b, meter)? && includes(b, a, meter)?,
            ))
        },
    },
    Declaration {
        name: "sets.intersects",
        overloads: &[("list_sets_intersects_list", "(list(T), list(T)) -> bool")],
        native: intersects,
    },
];

fn lists<'a, 'v>(
    arguments: &'a [Value<'v>],
    meter: &Meter,
) -> Result<(&'a List<'v>, &'a List<'v>), Fault> {
    match arguments {
        [Value::List(a), Value::List(b)] => {
            meter.allow(a.len().saturating_mul(b.len()))?;
            Ok((a, b))
        }
        _ => Err(Fault::no_overload()),
    }
}

fn has<'v>(list: &List<'v>, wanted: &Value<'v>, meter: &Meter) -> Result<bool, Fault> {
    for item in list.iter() {
        if meter.same(&item?, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn includes<'v>(list: &List<'v>, wanted: &List<'v>, meter: &Meter) -> Result<bool, Fault> {
    for item in wanted.iter() {
        if !has(list, &item?, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'v>(arguments: &[Value<'v>], meter: &mut Meter) -> Outcome<'v> {
    let (a, b) = lists(arguments, meter)?;
    for item in a.iter() {
        if has(b, &item?, meter)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
