//! How much of a device there is, and in which portions it may be asked for.

use object::field::{FieldError, Path};
use object::quantity::Quantity;
use object::{Map, Value};

use crate::validation::check::{Errors, Report};
use crate::validation::read::Read;

const OPTIONS_MAX: usize = 10;

/// Whether several claims may hold a device at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    Allowed,
    Refused,
}

/// Checks one capacity of a device.
pub(super) fn check(value: &Value, sharing: Sharing, path: &Path<'_>, errors: &mut Errors) {
    let Some(capacity) = value.as_object() else {
        return;
    };
    let Some(policy) = capacity.object("requestPolicy") else {
        return;
    };
    let path = path.field("requestPolicy");
    if sharing == Sharing::Refused {
        return errors.forbidden(&path, "allowMultipleAllocations must be true");
    }
    let (values, range) = (policy.list("validValues"), policy.object("validRange"));
    let whole = amount(capacity, "value").unwrap_or_else(Quantity::zero);
    let rule = match (values.is_empty(), range) {
        (true, None) => return,
        (false, Some(_)) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \
                          \"validRange\" at the same time";
            return errors.forbidden(&path, detail);
        }
        (false, None) => "validValues",
        (true, Some(_)) => "validRange",
    };
    let Some(usual) = amount(policy, "default") else {
        let detail = format!("required when {rule} is defined");
        return errors.required(&path.field("default"), &detail);
    };
    let path = path.field(rule);
    match range {
        None => among(&usual, &whole, values, &path, errors),
        Some(range) => within(&usual, &whole, range, &path, errors),
    }
}

fn amount(holder: &Map, key: &str) -> Option<Quantity> {
    holder
        .has(key)
        .then(|| Quantity::from_value(holder.value(key)).ok())?
}

/// Checks amounts of which one must be asked for.
fn among(
    usual: &Quantity,
    whole: &Quantity,
    values: &[Value],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let values: Vec<Quantity> = values
        .iter()
        .filter_map(|value| Quantity::from_value(value).ok())
        .collect();
    for (index, pair) in values.windows(2).enumerate() {
        if pair[0] > pair[1] {
            let detail = "values must be sorted in ascending order";
            errors.invalid(&path.index(index + 1), pair[1].to_string(), detail);
        }
    }
    let mut is_usual = false;
    if values.len() > OPTIONS_MAX {
        errors.push(FieldError::too_many(path, values.len(), OPTIONS_MAX));
    } else {
        for (index, value) in values.iter().enumerate() {
            if value > whole {
                let detail = format!("option is larger than capacity value: {whole}");
                errors.invalid(&path.index(index), value.to_string(), detail);
            }
            is_usual |= value == usual;
        }
        for (index, value) in values.iter().enumerate() {
            let number = value.value();
            if values[..index].iter().any(|other| other.value() == number) {
                errors.duplicate(&path.index(index), &number.to_string());
            }
        }
    }
    if !is_usual {
        let detail = "default value is not valid according to the requestPolicy";
        errors.invalid(path, usual.to_string(), detail);
    }
}

/// Checks bounds and steps between which anything may be asked for.
fn within(usual: &Quantity, whole: &Quantity, range: &Map, path: &Path<'_>, errors: &mut Errors) {
    let least_path = path.field("min");
    let Some(least) = amount(range, "min") else {
        return errors.required(&least_path, "required when validRange is defined");
    };
    if least > *whole {
        let detail = format!("min is larger than capacity value: {whole}");
        errors.invalid(&least_path, least.to_string(), detail);
    }
    if *usual < least {
        let detail = format!("default is less than min: {least}");
        errors.invalid(&least_path, usual.to_string(), detail);
    }
    let most = amount(range, "max");
    if let Some(most) = &most {
        let path = path.field("max");
        for (wrong, shown, detail) in [
            (
                least > *most,
                &least,
                format!("min is larger than max: {most}"),
            ),
            (
                most > whole,
                most,
                format!("max is larger than capacity value: {whole}"),
            ),
            (
                usual > most,
                usual,
                format!("default is more than max: {most}"),
            ),
        ] {
            if wrong {
                errors.invalid(&path, shown.to_string(), detail);
            }
        }
    }
    if let Some(step) = amount(range, "step") {
        let path = path.field("step");
        let mut first = least.clone();
        first.add(&step);
        if first > *whole {
            let detail = format!("one step {first} is larger than capacity value: {whole}");
            errors.invalid(&path, step.to_string(), detail);
        }
        for value in [Some(usual), most.as_ref()].into_iter().flatten() {
            if !is_on_step(value, &least, &step) {
                let detail =
                    format!("value is not a multiple of a given step ({step}) from ({least})");
                errors.invalid(&path, value.to_string(), detail);
            }
        }
    }
}

/// Whether whole steps lead to the value; steps of nothing lead anywhere.
fn is_on_step(value: &Quantity, least: &Quantity, step: &Quantity) -> bool {
    let added = value.value().wrapping_sub(least.value());
    added.checked_rem(step.value()).is_none_or(|rest| rest == 0)
}
