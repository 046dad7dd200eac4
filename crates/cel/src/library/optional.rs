//! Values that may be absent.
//!
//! Contract: the optional types of cel-go `cel/library.go` in their latest version.

use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::Value;

type Outcome<'v> = Result<Value<'v>, Fault>;

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "optional.of",
        overloads: &[("optional_of", "(V) -> optional(V)")],
        native: |arguments, _| Ok(Value::some(arguments[0].clone())),
    },
    Declaration {
        name: "optional.ofNonZeroValue",
        overloads: &[("optional_ofNonZeroValue", "(V) -> optional(V)")],
        native: |arguments, _| match arguments[0].is_zero() {
            true => Ok(Value::Optional(None)),
            false => Ok(Value::some(arguments[0].clone())),
        },
    },
    Declaration {
        name: "optional.none",
        overloads: &[("optional_none", "() -> optional(V)")],
        native: |_, _| Ok(Value::Optional(None)),
    },
    Declaration {
        name: "value",
        overloads: &[("optional_value", "optional(V).() -> V")],
        native: |arguments, _| match arguments {
            [Value::Optional(Some(value))] => Ok(Value::clone(value)),
            [Value::Optional(None)] => Err(Fault::new("optional.none() dereference")),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "hasValue",
        overloads: &[("optional_hasValue", "optional(V).() -> bool")],
        native: |arguments, _| match arguments {
            [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "or",
        overloads: &[(
            "optional_or_optional",
            "optional(V).(optional(V)) -> optional(V)",
        )],
        native: never,
    },
    Declaration {
        name: "orValue",
        overloads: &[("optional_orValue_value", "optional(V).(V) -> V")],
        native: never,
    },
    Declaration {
        name: "_?._",
        overloads: &[("select_optional_field", "(dyn, string) -> optional(V)")],
        native: never,
    },
    Declaration {
        name: "_[?_]",
        overloads: &[
            (
                "list_optindex_optional_int",
                "(list(V), int) -> optional(V)",
            ),
            (
                "optional_list_optindex_optional_int",
                "(optional(list(V)), int) -> optional(V)",
            ),
            (
                "map_optindex_optional_value",
                "(map(K, V), K) -> optional(V)",
            ),
            (
                "optional_map_optindex_optional_value",
                "(optional(map(K, V)), K) -> optional(V)",
            ),
        ],
        native: never,
    },
    Declaration {
        name: "first",
        overloads: &[("list_first", "list(V).() -> optional(V)")],
        native: |arguments, _| match arguments {
            [Value::List(list)] => at(list.get(0)?),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "last",
        overloads: &[("list_last", "list(V).() -> optional(V)")],
        native: |arguments, _| match arguments {
            [Value::List(list)] if list.len() == 0 => Ok(Value::Optional(None)),
            [Value::List(list)] => at(list.get(list.len() - 1)?),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "optional.unwrap",
        overloads: &[("optional_unwrap", "(list(optional(V))) -> list(V)")],
        native: unwrap,
    },
    Declaration {
        name: "unwrapOpt",
        overloads: &[("optional_unwrapOpt", "list(optional(V)).() -> list(V)")],
        native: unwrap,
    },
];

/// For what the planner turns into something else than a call.
fn never<'v>(_: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    Err(Fault::no_overload())
}

fn at(value: Option<Value<'_>>) -> Outcome<'_> {
    Ok(value.map_or(Value::Optional(None), Value::some))
}

fn unwrap<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let [Value::List(list)] = arguments else {
        return Err(Fault::no_overload());
    };
    let mut items = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(value) => items.extend(value.map(|it| Value::clone(&it))),
            other => return Err(Fault::from(format!("value {other} is not optional"))),
        }
    }
    Ok(Value::list(items))
}
