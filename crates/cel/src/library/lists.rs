//! Functions over lists.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/library/lists.go` and cel-go `ext/lists.go` in version 3.

use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{ITEMS_MAX, List, Value, order};
use std::cmp::Ordering;

type Outcome<'v> = Result<Value<'v>, Fault>;

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "isSorted",
        overloads: &[
            ("list_int_is_sorted_bool", "list(int).() -> bool"),
            ("list_uint_is_sorted_bool", "list(uint).() -> bool"),
            ("list_double_is_sorted_bool", "list(double).() -> bool"),
            ("list_bool_is_sorted_bool", "list(bool).() -> bool"),
            ("list_duration_is_sorted_bool", "list(duration).() -> bool"),
            (
                "list_timestamp_is_sorted_bool",
                "list(timestamp).() -> bool",
            ),
            ("list_string_is_sorted_bool", "list(string).() -> bool"),
            ("list_bytes_is_sorted_bool", "list(bytes).() -> bool"),
        ],
        native: is_sorted,
    },
    Declaration {
        name: "sum",
        overloads: &[("list_int_sum_int", "list(int).() -> int")],
        native: |arguments, _| sum(arguments, Value::Int(0)),
    },
    Declaration {
        name: "sum",
        overloads: &[("list_uint_sum_uint", "list(uint).() -> uint")],
        native: |arguments, _| sum(arguments, Value::Uint(0)),
    },
    Declaration {
        name: "sum",
        overloads: &[("list_double_sum_double", "list(double).() -> double")],
        native: |arguments, _| sum(arguments, Value::Double(0.0)),
    },
    Declaration {
        name: "sum",
        overloads: &[(
            "list_duration_sum_duration",
            "list(duration).() -> duration",
        )],
        native: |arguments, _| sum(arguments, Value::Duration(0)),
    },
    Declaration {
        name: "max",
        overloads: &[
            ("list_int_max_int", "list(int).() -> int"),
            ("list_uint_max_uint", "list(uint).() -> uint"),
            ("list_double_max_double", "list(double).() -> double"),
            ("list_bool_max_bool", "list(bool).() -> bool"),
            (
                "list_duration_max_duration",
                "list(duration).() -> duration",
            ),
            (
                "list_timestamp_max_timestamp",
                "list(timestamp).() -> timestamp",
            ),
            ("list_string_max_string", "list(string).() -> string"),
            ("list_bytes_max_bytes", "list(bytes).() -> bytes"),
        ],
        native: |arguments, _| extreme(arguments, Ordering::Less, "max called on empty list"),
    },
    Declaration {
        name: "min",
        overloads: &[
            ("list_int_min_int", "list(int).() -> int"),
            ("list_uint_min_uint", "list(uint).() -> uint"),
            ("list_double_min_double", "list(double).() -> double"),
            ("list_bool_min_bool", "list(bool).() -> bool"),
            (
                "list_duration_min_duration",
                "list(duration).() -> duration",
            ),
            (
                "list_timestamp_min_timestamp",
                "list(timestamp).() -> timestamp",
            ),
            ("list_string_min_string", "list(string).() -> string"),
            ("list_bytes_min_bytes", "list(bytes).() -> bytes"),
        ],
        native: |arguments, _| extreme(arguments, Ordering::Greater, "min called on empty list"),
    },
    Declaration {
        name: "indexOf",
        overloads: &[("list_a_index_of_int", "list(A).(A) -> int")],
        native: |arguments, meter| index_of(arguments, meter, false),
    },
    Declaration {
        name: "lastIndexOf",
        overloads: &[("list_a_last_index_of_int", "list(A).(A) -> int")],
        native: |arguments, meter| index_of(arguments, meter, true),
    },
    Declaration {
        name: "slice",
        overloads: &[("list_slice", "list(T).(int, int) -> list(T)")],
        native: slice,
    },
    Declaration {
        name: "flatten",
        overloads: &[
            ("list_flatten", "list(list(T)).() -> list(T)"),
            ("list_flatten_int", "list(dyn).(int) -> list(dyn)"),
        ],
        native: flatten,
    },
    Declaration {
        name: "sort",
        overloads: &[
            ("list_int_sort", "list(int).() -> list(int)"),
            ("list_uint_sort", "list(uint).() -> list(uint)"),
            ("list_double_sort", "list(double).() -> list(double)"),
            ("list_bool_sort", "list(bool).() -> list(bool)"),
            (
                "list_google.protobuf.Duration_sort",
                "list(duration).() -> list(duration)",
            ),
            (
                "list_google.protobuf.Timestamp_sort",
                "list(timestamp).() -> list(timestamp)",
            ),
            ("list_string_sort", "list(string).() -> list(string)"),
            ("list_bytes_sort", "list(bytes).() -> list(bytes)"),
        ],
        native: |arguments, meter| match arguments {
            [Value::List(list)] => sort(list, list, meter),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "@sortByAssociatedKeys",
        overloads: &[
            (
                "list_int_sortByAssociatedKeys",
                "list(T).(list(int)) -> list(T)",
            ),
            (
                "list_uint_sortByAssociatedKeys",
                "list(T).(list(uint)) -> list(T)",
            ),
            (
                "list_double_sortByAssociatedKeys",
                "list(T).(list(double)) -> list(T)",
            ),
            (
                "list_bool_sortByAssociatedKeys",
                "list(T).(list(bool)) -> list(T)",
            ),
            (
                "list_google.protobuf.Duration_sortByAssociatedKeys",
                "list(T).(list(duration)) -> list(T)",
            ),
            (
                "list_google.protobuf.Timestamp_sortByAssociatedKeys",
                "list(T).(list(timestamp)) -> list(T)",
            ),
            (
                "list_string_sortByAssociatedKeys",
                "list(T).(list(string)) -> list(T)",
            ),
            (
                "list_bytes_sortByAssociatedKeys",
                "list(T).(list(bytes)) -> list(T)",
            ),
        ],
        native: |arguments, meter| match arguments {
            [Value::List(list), Value::List(keys)] => sort(list, keys, meter),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "lists.range",
        overloads: &[("lists_range", "(int) -> list(int)")],
        native: range,
    },
    Declaration {
        name: "reverse",
        overloads: &[("list_reverse", "list(T).() -> list(T)")],
        native: |arguments, _| {
            let mut items = items(arguments)?;
            items.reverse();
            Ok(Value::list(items))
        },
    },
    Declaration {
        name: "distinct",
        overloads: &[("list_distinct", "list(T).() -> list(T)")],
        native: distinct,
    },
];

fn items<'v>(arguments: &[Value<'v>]) -> Result<Vec<Value<'v>>, Fault> {
    match arguments {
        [Value::List(list)] => list.iter().collect(),
        _ => Err(Fault::no_overload()),
    }
}

fn is_sorted<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let items = items(arguments)?;
    for pair in items.windows(2) {
        if order(&pair[0], &pair[1])?.is_gt() {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'v>(arguments: &[Value<'v>], zero: Value<'v>) -> Outcome<'v> {
    let mut total = zero;
    for item in items(arguments)? {
        total = match (total, item) {
            (Value::Int(a), Value::Int(b)) => Value::Int(
                a.checked_add(b)
                    .ok_or_else(|| Fault::new("no such overload"))?,
            ),
            (Value::Uint(a), Value::Uint(b)) => Value::Uint(
                a.checked_add(b)
                    .ok_or_else(|| Fault::new("no such overload"))?,
            ),
            (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
            (Value::Duration(a), Value::Duration(b)) => Value::Duration(
                a.checked_add(b)
                    .ok_or_else(|| Fault::new("no such overload"))?,
            ),
            _ => return Err(Fault::no_overload()),
        };
    }
    Ok(total)
}

fn extreme<'v>(arguments: &[Value<'v>], worse: Ordering, empty: &'static str) -> Outcome<'v> {
    let mut items = items(arguments)?.into_iter();
    let mut best = items.next().ok_or_else(|| Fault::new(empty))?;
    for item in items {
        if order(&best, &item)? == worse {
            best = item;
        }
    }
    Ok(best)
}

fn index_of<'v>(arguments: &[Value<'v>], meter: &Meter, last: bool) -> Outcome<'v> {
    let [Value::List(list), wanted] = arguments else {
        return Err(Fault::no_overload());
    };
    let mut found = -1;
    for (index, item) in list.iter().enumerate() {
        if meter.same(&item?, wanted)? {
            found = index as i64;
            if !last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn slice<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = arguments else {
        return Err(Fault::no_overload());
    };
    let refused = |why: String| Err(Fault::from(format!("cannot slice({start}, {end}), {why}")));
    if *start < 0 || *end < 0 {
        return refused("negative indexes not supported".to_owned());
    }
    if start > end {
        return refused("start index must be less than or equal to end index".to_owned());
    }
    if list.len() < *end as u64 {
        return refused(format!("list is length {}", list.len()));
    }
    let part = list
        .iter()
        .skip(*start as usize)
        .take((end - start) as usize);
    Ok(Value::list(part.collect::<Result<_, _>>()?))
}

fn flatten<'v>(arguments: &[Value<'v>], _: &mut Meter) -> Outcome<'v> {
    let (list, depth) = match arguments {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        _ => return Err(Fault::no_overload()),
    };
    if depth < 0 {
        return Err(Fault::new("level must be non-negative"));
    }
    let mut out = Vec::new();
    let mut open = vec![(list.iter(), depth)];
    while let Some((items, depth)) = open.last_mut() {
        let depth = *depth;
        match items.next().transpose()? {
            None => {
                open.pop();
            }
            Some(Value::List(inner)) if depth > 0 => open.push((inner.iter(), depth - 1)),
            Some(other) => out.push(other),
        }
        if out.len() as u64 > ITEMS_MAX {
            return Err(Fault::OverLimit);
        }
    }
    Ok(Value::list(out))
}

fn sort<'v>(list: &List<'v>, keys: &List<'v>, meter: &Meter) -> Outcome<'v> {
    if list.len() != keys.len() {
        return Err(Fault::from(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys \
             list, but got {} and {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    meter.allow(list.len())?;
    let keys: Vec<Value<'v>> = keys.iter().collect::<Result<_, _>>()?;
    let items: Vec<Value<'v>> = list.iter().collect::<Result<_, _>>()?;
    let Some(first) = keys.first() else {
        return Ok(Value::list(items));
    };
    if order(first, first) == Err(Fault::NoOverload) {
        return Err(Fault::new("list elements must be comparable"));
    }
    let of = first.type_of();
    if keys.iter().any(|key| key.type_of() != of) {
        return Err(Fault::new("list elements must have the same type"));
    }
    let mut pairs: Vec<(Value<'v>, Value<'v>)> = keys.into_iter().zip(items).collect();
    // What cannot be ordered, a NaN, stays where it is.
    pairs.sort_by(|a, b| order(&a.0, &b.0).unwrap_or(Ordering::Equal));
    let sorted = pairs.into_iter().map(|(_, item)| item);
    Ok(Value::list(sorted.collect()))
}

fn range<'v>(arguments: &[Value<'v>], meter: &mut Meter) -> Outcome<'v> {
    let [Value::Int(end)] = arguments else {
        return Err(Fault::no_overload());
    };
    // The list is charged once it is there; one that cannot be paid for is not made.
    meter.allow(u64::try_from(*end).unwrap_or(0))?;
    Ok(Value::list((0..*end).map(Value::Int).collect()))
}

fn distinct<'v>(arguments: &[Value<'v>], meter: &mut Meter) -> Outcome<'v> {
    let items = items(arguments)?;
    let count = items.len() as u64;
    meter.allow(count.saturating_mul(count))?;
    let mut seen: Vec<Value<'v>> = Vec::new();
    for item in items {
        let mut known = false;
        for other in &seen {
            known = known || meter.same(other, &item)?;
        }
        if !known {
            seen.push(item);
        }
    }
    Ok(Value::list(seen))
}
