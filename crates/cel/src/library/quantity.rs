//! Amounts such as `1.5Gi`.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/library/quantity.go`.

use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{Library, Value};
use object::quantity::{Format, Quantity};
use std::sync::Arc;

type Outcome<'v> = Result<Value<'v>, Fault>;

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "quantity",
        overloads: &[("string_to_quantity", "(string) -> Quantity")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => match Quantity::parse(text) {
                Ok(quantity) => Ok(wrap(quantity)),
                Err(error) => Err(Fault::from(error.to_string())),
            },
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "isQuantity",
        overloads: &[("is_quantity_string", "(string) -> bool")],
        native: |arguments, _| match arguments {
            [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text).is_ok())),
            _ => Err(Fault::no_overload()),
        },
    },
    Declaration {
        name: "sign",
        overloads: &[("quantity_sign", "(Quantity) -> int")],
        native: |arguments, _| Ok(Value::Int(one(arguments)?.sign().into())),
    },
    Declaration {
        name: "isGreaterThan",
        overloads: &[("quantity_is_greater_than", "Quantity.(Quantity) -> bool")],
        native: |arguments, _| {
            let (a, b) = two(arguments)?;
            Ok(Value::Bool(a.cmp(b).is_gt()))
        },
    },
    Declaration {
        name: "isLessThan",
        overloads: &[("quantity_is_less_than", "Quantity.(Quantity) -> bool")],
        native: |arguments, _| {
            let (a, b) = two(arguments)?;
            Ok(Value::Bool(a.cmp(b).is_lt()))
        },
    },
    Declaration {
        name: "compareTo",
        overloads: &[("quantity_compare_to", "Quantity.(Quantity) -> int")],
        native: |arguments, _| {
            let (a, b) = two(arguments)?;
            Ok(Value::Int(a.cmp(b) as i64))
        },
    },
    Declaration {
        name: "asApproximateFloat",
        overloads: &[("quantity_get_float", "Quantity.() -> double")],
        native: |arguments, _| Ok(Value::Double(one(arguments)?.approximate())),
    },
    Declaration {
        name: "asInteger",
        overloads: &[("quantity_get_int", "Quantity.() -> int")],
        native: |arguments, _| match integer(one(arguments)?) {
            Some(number) => Ok(Value::Int(number)),
            None => Err(Fault::new("cannot convert value to integer")),
        },
    },
    Declaration {
        name: "isInteger",
        overloads: &[("quantity_is_integer", "Quantity.() -> bool")],
        native: |arguments, _| Ok(Value::Bool(integer(one(arguments)?).is_some())),
    },
    Declaration {
        name: "add",
        overloads: &[
            ("quantity_add", "Quantity.(Quantity) -> Quantity"),
            ("quantity_add_int", "Quantity.(int) -> Quantity"),
        ],
        native: |arguments, meter| changed(arguments, meter, Quantity::add),
    },
    Declaration {
        name: "sub",
        overloads: &[
            ("quantity_sub", "Quantity.(Quantity) -> Quantity"),
            ("quantity_sub_int", "Quantity.(int) -> Quantity"),
        ],
        native: |arguments, meter| changed(arguments, meter, Quantity::sub),
    },
];

fn wrap<'v>(quantity: Quantity) -> Value<'v> {
    Value::Library(Library::Quantity(Arc::new(quantity)))
}

fn one<'a>(arguments: &'a [Value<'_>]) -> Result<&'a Quantity, Fault> {
    match arguments {
        [Value::Library(Library::Quantity(quantity))] => Ok(quantity),
        _ => Err(Fault::no_overload()),
    }
}

fn two<'a>(arguments: &'a [Value<'_>]) -> Result<(&'a Quantity, &'a Quantity), Fault> {
    match arguments {
        [
            Value::Library(Library::Quantity(a)),
            Value::Library(Library::Quantity(b)),
        ] => Ok((a, b)),
        _ => Err(Fault::no_overload()),
    }
}

/// The amount, if it is whole and fits.
fn integer(quantity: &Quantity) -> Option<i64> {
    let number = quantity.value();
    let same = Quantity::from_int(number, Format::DecimalSi);
    quantity.cmp(&same).is_eq().then_some(number)
}

fn changed<'v>(
    arguments: &[Value<'v>],
    _: &mut Meter,
    change: fn(&mut Quantity, &Quantity),
) -> Outcome<'v> {
    let (mut left, right) = match arguments {
        [
            Value::Library(Library::Quantity(a)),
            Value::Library(Library::Quantity(b)),
        ] => (Quantity::clone(a), Quantity::clone(b)),
        [Value::Library(Library::Quantity(a)), Value::Int(number)] => (
            Quantity::clone(a),
            Quantity::from_int(*number, Format::DecimalExponent),
        ),
        _ => return Err(Fault::no_overload()),
    };
    change(&mut left, &right);
    Ok(wrap(left))
}
