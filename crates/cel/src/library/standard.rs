//! Operators, conversions and what every CEL has.
//!
//! Contract: cel-go `common/stdlib/standard.go` and the arithmetic of `common/types`.

use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{self, Value, order};
use std::cmp::Ordering;
use std::sync::Arc;

type Outcome<'v> = Result<Value<'v>, Fault>;

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "_?_:_",
        overloads: &[("conditional", "(bool, A, A) -> A")],
        native: never,
    },
    Declaration {
        name: "_&&_",
        overloads: &[("logical_and", "(bool, bool) -> bool")],
        native: never,
    },
    Declaration {
        name: "_||_",
        overloads: &[("logical_or", "(bool, bool) -> bool")],
        native: never,
    },
    Declaration {
        name: "!_",
        overloads: &[("logical_not", "(bool) -> bool")],
        native: not,
    },
    Declaration {
        name: "@not_strictly_false",
        overloads: &[("not_strictly_false", "(bool) -> bool")],
        native: never,
    },
    Declaration {
        name: "_==_",
        overloads: &[("equals", "(A, A) -> bool")],
        native: never,
    },
    Declaration {
        name: "_!=_",
        overloads: &[("not_equals", "(A, A) -> bool")],
        native: never,
    },
    Declaration {
        name: "_+_",
        overloads: &[
            ("add_bytes", "(bytes, bytes) -> bytes"),
            ("add_double", "(double, double) -> double"),
            ("add_duration_duration", "(duration, duration) -> duration"),
            (
                "add_duration_timestamp",
                "(duration, timestamp) -> timestamp",
            ),
            (
                "add_timestamp_duration",
                "(timestamp, duration) -> timestamp",
            ),
            ("add_int64", "(int, int) -> int"),
            ("add_list", "(list(A), list(A)) -> list(A)"),
            ("add_string", "(string, string) -> string"),
            ("add_uint64", "(uint, uint) -> uint"),
        ],
        native: add,
    },
    Declaration {
        name: "_/_",
        overloads: &[
            ("divide_double", "(double, double) -> double"),
            ("divide_int64", "(int, int) -> int"),
            ("divide_uint64", "(uint, uint) -> uint"),
        ],
        native: divide,
    },
    Declaration {
        name: "_%_",
        overloads: &[
            ("modulo_int64", "(int, int) -> int"),
            ("modulo_uint64", "(uint, uint) -> uint"),
        ],
        native: modulo,
    },
    Declaration {
        name: "_*_",
        overloads: &[
            ("multiply_double", "(double, double) -> double"),
            ("multiply_int64", "(int, int) -> int"),
            ("multiply_uint64", "(uint, uint) -> uint"),
        ],
        native: multiply,
    },
    Declaration {
        name: "-_",
        overloads: &[
            ("negate_double", "(double) -> double"),
            ("negate_int64", "(int) -> int"),
        ],
        native: negate,
    },
    Declaration {
        name: "_-_",
        overloads: &[
            ("subtract_double", "(double, double) -> double"),
            (
                "subtract_duration_duration",
                "(duration, duration) -> duration",
            ),
            ("subtract_int64", "(int, int) -> int"),
            (
                "subtract_timestamp_duration",
                "(timestamp, duration) -> timestamp",
            ),
            (
                "subtract_timestamp_timestamp",
                "(timestamp, timestamp) -> duration",
            ),
            ("subtract_uint64", "(uint, uint) -> uint"),
        ],
        native: subtract,
    },
    Declaration {
        name: "_<_",
        overloads: &[
            ("less_bool", "(bool, bool) -> bool"),
            ("less_int64", "(int, int) -> bool"),
            ("less_int64_double", "(int, double) -> bool"),
            ("less_int64_uint64", "(int, uint) -> bool"),
            ("less_uint64", "(uint, uint) -> bool"),
            ("less_uint64_double", "(uint, double) -> bool"),
            ("less_uint64_int64", "(uint, int) -> bool"),
            ("less_double", "(double, double) -> bool"),
            ("less_double_int64", "(double, int) -> bool"),
            ("less_double_uint64", "(double, uint) -> bool"),
            ("less_string", "(string, string) -> bool"),
            ("less_bytes", "(bytes, bytes) -> bool"),
            ("less_timestamp", "(timestamp, timestamp) -> bool"),
            ("less_duration", "(duration, duration) -> bool"),
        ],
        native: less,
    },
    Declaration {
        name: "_<=_",
        overloads: &[
            ("less_equals_bool", "(bool, bool) -> bool"),
            ("less_equals_int64", "(int, int) -> bool"),
            ("less_equals_int64_double", "(int, double) -> bool"),
            ("less_equals_int64_uint64", "(int, uint) -> bool"),
            ("less_equals_uint64", "(uint, uint) -> bool"),
            ("less_equals_uint64_double", "(uint, double) -> bool"),
            ("less_equals_uint64_int64", "(uint, int) -> bool"),
            ("less_equals_double", "(double, double) -> bool"),
            ("less_equals_double_int64", "(double, int) -> bool"),
            ("less_equals_double_uint64", "(double, uint) -> bool"),
            ("less_equals_string", "(string, string) -> bool"),
            ("less_equals_bytes", "(bytes, bytes) -> bool"),
            ("less_equals_timestamp", "(timestamp, timestamp) -> bool"),
            ("less_equals_duration", "(duration, duration) -> bool"),
        ],
        native: less_equals,
    },
    Declaration {
        name: "_>_",
        overloads: &[
            ("greater_bool", "(bool, bool) -> bool"),
            ("greater_int64", "(int, int) -> bool"),
            ("greater_int64_double", "(int, double) -> bool"),
            ("greater_int64_uint64", "(int, uint) -> bool"),
            ("greater_uint64", "(uint, uint) -> bool"),
            ("greater_uint64_double", "(uint, double) -> bool"),
            ("greater_uint64_int64", "(uint, int) -> bool"),
            ("greater_double", "(double, double) -> bool"),
            ("greater_double_int64", "(double, int) -> bool"),
            ("greater_double_uint64", "(double, uint) -> bool"),
            ("greater_string", "(string, string) -> bool"),
            ("greater_bytes", "(bytes, bytes) -> bool"),
            ("greater_timestamp", "(timestamp, timestamp) -> bool"),
            ("greater_duration", "(duration, duration) -> bool"),
        ],
        native: greater,
    },
    Declaration {
        name: "_>=_",
        overloads: &[
            ("greater_equals_bool", "(bool, bool) -> bool"),
            ("greater_equals_int64", "(int, int) -> bool"),
            ("greater_equals_int64_double", "(int, double) -> bool"),
            ("greater_equals_int64_uint64", "(int, uint) -> bool"),
            ("greater_equals_uint64", "(uint, uint) -> bool"),
            ("greater_equals_uint64_double", "(uint, double) -> bool"),
            ("greater_equals_uint64_int64", "(uint, int) -> bool"),
            ("greater_equals_double", "(double, double) -> bool"),
            ("greater_equals_double_int64", "(double, int) -> bool"),
            ("greater_equals_double_uint64", "(double, uint) -> bool"),
            ("greater_equals_string", "(string, string) -> bool"),
            ("greater_equals_bytes", "(bytes, bytes) -> bool"),
            ("greater_equals_timestamp", "(timestamp, timestamp) -> bool"),
            ("greater_equals_duration", "(duration, duration) -> bool"),
        ],
        native: greater_equals,
    },
    Declaration {
        name: "_[_]",
        overloads: &[
            ("index_list", "(list(A), int) -> A"),
            ("index_map", "(map(A, B), A) -> B"),
            (
                "optional_list_index_int",
                "(optional(list(V)), int) -> optional(V)",
            ),
            (
                "optional_map_index_value",
                "(optional(map(K, V)), K) -> optional(V)",
            ),
        ],
        native: never,
    },
    Declaration {
        name: "@in",
        overloads: &[
            ("in_list", "(A, list(A)) -> bool"),
            ("in_map", "(A, map(A, B)) -> bool"),
        ],
        native: contained,
    },
    Declaration {
        name: "size",
        overloads: &[
            ("size_bytes", "(bytes) -> int"),
            ("bytes_size", "bytes.() -> int"),
            ("size_list", "(list(A)) -> int"),
            ("list_size", "list(A).() -> int"),
            ("size_map", "(map(A, B)) -> int"),
            ("map_size", "map(A, B).() -> int"),
            ("size_string", "(string) -> int"),
            ("string_size", "string.() -> int"),
        ],
        native: size,
    },
    Declaration {
        name: "type",
        overloads: &[("type", "(A) -> type(A)")],
        native: type_of,
    },
    Declaration {
        name: "bool",
        overloads: &[
            ("bool_to_bool", "(bool) -> bool"),
            ("string_to_bool", "(string) -> bool"),
        ],
        native: |arguments, _| value::to_bool(&arguments[0]),
    },
    Declaration {
        name: "bytes",
        overloads: &[
            ("bytes_to_bytes", "(bytes) -> bytes"),
            ("string_to_bytes", "(string) -> bytes"),
        ],
        native: |arguments, _| value::to_bytes(&arguments[0]),
    },
    Declaration {
        name: "double",
        overloads: &[
            ("double_to_double", "(double) -> double"),
            ("int64_to_double", "(int) -> double"),
            ("string_to_double", "(string) -> double"),
            ("uint64_to_double", "(uint) -> double"),
        ],
        native: |arguments, _| value::to_double(&arguments[0]),
    },
    Declaration {
        name: "duration",
        overloads: &[
            ("duration_to_duration", "(duration) -> duration"),
            ("int64_to_duration", "(int) -> duration"),
            ("string_to_duration", "(string) -> duration"),
        ],
        native: |arguments, _| value::to_duration(&arguments[0]),
    },
    Declaration {
        name: "dyn",
        overloads: &[("to_dyn", "(A) -> dyn")],
        native: |arguments, _| Ok(arguments[0].clone()),
    },
    Declaration {
        name: "int",
        overloads: &[
            ("int64_to_int64", "(int) -> int"),
            ("double_to_int64", "(double) -> int"),
            ("duration_to_int64", "(duration) -> int"),
            ("string_to_int64", "(string) -> int"),
            ("timestamp_to_int64", "(timestamp) -> int"),
            ("uint64_to_int64", "(uint) -> int"),
        ],
        native: |arguments, _| value::to_int(&arguments[0]),
    },
    Declaration {
        name: "string",
        overloads: &[
            ("string_to_string", "(string) -> string"),
            ("bool_to_string", "(bool) -> string"),
            ("bytes_to_string", "(bytes) -> string"),
            ("double_to_string", "(double) -> string"),
            ("duration_to_string", "(duration) -> string"),
            ("int64_to_string", "(int) -> string"),
            ("timestamp_to_string", "(timestamp) -> string"),
            ("uint64_to_string", "(uint) -> string"),
            ("ip_to_string", "(IP) -> string"),
            ("cidr_to_string", "(CIDR) -> string"),
        ],
        native: |arguments, _| value::to_string(&arguments[0]),
    },
    Declaration {
        name: "timestamp",
        overloads: &[
            ("timestamp_to_timestamp", "(timestamp) -> timestamp"),
            ("int64_to_timestamp", "(int) -> timestamp"),
            ("string_to_timestamp", "(string) -> timestamp"),
        ],
        native: |arguments, _| value::to_timestamp(&arguments[0]),
    },
    Declaration {
        name: "uint",
        overloads: &[
            ("uint64_to_uint64", "(uint) -> uint"),
            ("double_to_uint64", "(double) -> uint"),
            ("int64_to_uint64", "(int) -> uint"),
            ("string_to_uint64", "(string) -> uint"),
        ],
        native: |arguments, _| value::to_uint(&arguments[0]),
    },
    Declaration {
        name: "cel.@mapInsert",
        overloads: &[
            ("@mapInsert_map_key_value", "(map(K, V), K, V) -> map(K, V)"),
            ("@mapInsert_map_map", "(map(K, V), map(K, V)) -> map(K, V)"),
        ],
        native: never,
    },
];

/// For what the planner turns into something else than a call.
fn never<'v>(_: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    Err(Fault::no_overload())
}

fn not<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    match arguments {
        [Value::Bool(flag)] => Ok(Value::Bool(!flag)),
        _ => Err(Fault::no_overload()),
    }
}

fn int<'v>(number: Option<i64>) -> Outcome<'v> {
    number
        .map(Value::Int)
        .ok_or_else(|| Fault::new("integer overflow"))
}

fn uint<'v>(number: Option<u64>) -> Outcome<'v> {
    number
        .map(Value::Uint)
        .ok_or_else(|| Fault::new("unsigned integer overflow"))
}

fn duration<'v>(nanos: Option<i64>) -> Outcome<'v> {
    nanos
        .map(Value::Duration)
        .ok_or_else(|| Fault::new("duration overflow"))
}

fn add<'v>(arguments: &[Value<'v>], meter: &mut Meter) -> Outcome<'v> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => int(a.checked_add(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_add(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a + b)),
        [Value::String(a), Value::String(b)] => {
            meter.allow_bytes((a.len() + b.len()) as u64)?;
            Ok(Value::owned_text(format!("{}{}", &**a, &**b)))
        }
        [Value::Bytes(a), Value::Bytes(b)] => {
            meter.allow_bytes((a.len() + b.len()) as u64)?;
            let joined: Arc<[u8]> = a.iter().chain(b.iter()).copied().collect();
            Ok(Value::Bytes(joined))
        }
        [Value::List(a), Value::List(b)] => Ok(Value::List(a.join(b)?)),
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_add(*b)),
        [Value::Timestamp(time), Value::Duration(nanos)]
        | [Value::Duration(nanos), Value::Timestamp(time)] => {
            time.plus((*nanos).into()).map(Value::Timestamp)
        }
        _ => Err(Fault::no_overload()),
    }
}

fn subtract<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => int(a.checked_sub(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_sub(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_sub(*b)),
        [Value::Timestamp(time), Value::Duration(nanos)] => {
            time.plus(-i128::from(*nanos)).map(Value::Timestamp)
        }
        [Value::Timestamp(a), Value::Timestamp(b)] => {
            duration(i64::try_from(a.nanos() - b.nanos()).ok())
        }
        _ => Err(Fault::no_overload()),
    }
}

fn multiply<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => int(a.checked_mul(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_mul(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => Err(Fault::no_overload()),
    }
}

fn divide<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Fault::new("division by zero"))
        }
        [Value::Int(a), Value::Int(b)] => int(a.checked_div(*b)),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a / b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => Err(Fault::no_overload()),
    }
}

fn modulo<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Fault::new("modulus by zero"))
        }
        [Value::Int(a), Value::Int(b)] => int(a.checked_rem(*b)),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a % b)),
        _ => Err(Fault::no_overload()),
    }
}

fn negate<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    match arguments {
        [Value::Int(number)] => int(number.checked_neg()),
        [Value::Double(number)] => Ok(Value::Double(-number)),
        [Value::Duration(nanos)] => duration(nanos.checked_neg()),
        _ => Err(Fault::no_overload()),
    }
}

fn compared<'v>(arguments: &[Value<'v>], holds: fn(Ordering) -> bool) -> Outcome<'v> {
    match arguments {
        [a, b] => order(a, b).map(|order| Value::Bool(holds(order))),
        _ => Err(Fault::no_overload()),
    }
}

fn less<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    compared(arguments, Ordering::is_lt)
}

fn less_equals<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    compared(arguments, Ordering::is_le)
}

fn greater<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    compared(arguments, Ordering::is_gt)
}

fn greater_equals<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    compared(arguments, Ordering::is_ge)
}

fn contained<'v>(arguments: &[Value<'v>], meter: &mut Meter) -> Outcome<'v> {
    match arguments {
        [wanted, Value::List(list)] => {
            for item in list.iter() {
                if meter.same(&item?, wanted)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        [wanted, Value::Map(map)] => Ok(Value::Bool(map.find(wanted)?.is_some())),
        _ => Err(Fault::no_overload()),
    }
}

fn size<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    match arguments {
        [Value::Library(_)] => Err(Fault::no_overload()),
        [value] => match value.size() {
            Some(size) => Ok(Value::Int(size as i64)),
            None => Err(Fault::no_overload()),
        },
        _ => Err(Fault::no_overload()),
    }
}

fn type_of<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    Ok(Value::Type(Arc::new(arguments[0].type_of())))
}
