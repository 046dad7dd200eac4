//! Bounds, factors and formats of numbers.
//!
//! Bounds are floats in a schema; upstream compares integers as integers where the bound is one,
//! and complains about the bound too where it is not.

use object::Value;
use object::field::{FieldError, Path};

use super::{printed, unplaced};
use crate::structural::{Checks, Structural, ValueType, formats};

/// The greatest integer that JSON numbers hold exactly in a float.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
const EPSILON: f64 = 1e-9;

pub(super) fn check(
    schema: &Structural,
    value: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let range = Range::of(schema);
    let Some(number) = value.as_float() else {
        return;
    };
    let text = match value {
        Value::Int(number) => number.to_string(),
        _ => plain_float(number),
    };
    errors.extend(range.complaint(&text, "Checked", path));
    let Some(checks) = schema.checks.as_deref() else {
        return;
    };
    if let Some(factor) = checks.multiple_of {
        let odd = range.complaint(&plain_float(factor), "MultipleOf", path);
        let native = odd.is_none();
        errors.extend(odd);
        errors.extend(multiple_of(value, number, factor, native, path));
    }
    bound(&range, checks, value, Bound::Minimum, path, errors);
    bound(&range, checks, value, Bound::Maximum, path, errors);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Minimum,
    Maximum,
}

fn bound(
    range: &Range<'_>,
    checks: &Checks,
    value: &Value,
    which: Bound,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let (limit, exclusive, prefix, relation) = match which {
        Bound::Minimum => (
            checks.minimum,
            checks.exclusive_minimum,
            "Minimum boundary",
            "greater than",
        ),
        Bound::Maximum => (
            checks.maximum,
            checks.exclusive_maximum,
            "Maximum boundary",
            "less than",
        ),
    };
    let Some(limit) = limit else {
        return;
    };
    let odd = range.complaint(&plain_float(limit), prefix, path);
    let native = odd.is_none();
    errors.extend(odd);
    let (order, limit_shown) = match value {
        Value::Int(number) if native => {
            let limit = limit as i64;
            (Some(number.cmp(&limit)), limit.to_string())
        }
        _ => {
            let number = value.as_float().unwrap_or_default();
            (number.partial_cmp(&limit), go_float(limit))
        }
    };
    let beyond = match (which, order) {
        (Bound::Maximum, Some(order)) => order.is_gt() || (exclusive && order.is_eq()),
        (Bound::Minimum, Some(order)) => order.is_lt() || (exclusive && order.is_eq()),
        (_, None) => false,
    };
    if !beyond {
        return;
    }
    let or_equal = if exclusive { "" } else { " or equal to" };
    let detail = format!("{path} in body should be {relation}{or_equal} {limit_shown}");
    let mut error = FieldError::invalid(path, value, detail);
    error.value = Some(shown(value, native));
    errors.push(error);
}

fn multiple_of(
    value: &Value,
    number: f64,
    factor: f64,
    native: bool,
    path: &Path<'_>,
) -> Option<FieldError> {
    let not_positive = |shown: String| {
        let detail = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        let mut error = FieldError::invalid(path, &Value::Null, detail);
        error.value = Some(shown);
        Some(error)
    };
    let (fits, factor_shown) = match value {
        Value::Int(number) if native => {
            let whole = factor as i64;
            if whole <= 0 {
                return not_positive(whole.to_string());
            }
            (number % whole == 0, whole.to_string())
        }
        _ => {
            if factor <= 0.0 {
                return not_positive(go_float(factor));
            }
            let times = if factor < 1.0 {
                1.0 / factor * number
            } else {
                number / factor
            };
            (is_integer(times), go_float(factor))
        }
    };
    if fits {
        return None;
    }
    let detail = format!("{path} in body should be a multiple of {factor_shown}");
    let mut error = FieldError::invalid(path, value, detail);
    error.value = Some(shown(value, native));
    Some(error)
}

/// An integer that had to be compared as a float is shown as one.
fn shown(value: &Value, native: bool) -> String {
    match value {
        Value::Int(number) if !native => go_float(*number as f64),
        other => printed(other),
    }
}

/// What a type and its format hold.
struct Range<'a> {
    name: &'static str,
    format: &'a str,
}

impl<'a> Range<'a> {
    fn of(schema: &'a Structural) -> Range<'a> {
        let name = match (schema.int_or_string, schema.value_type) {
            (false, Some(ValueType::Integer)) => "integer",
            (false, Some(ValueType::Number)) => "number",
            _ => "",
        };
        let format = match name {
            "" => "",
            _ => formats::of(schema),
        };
        Range { name, format }
    }

    fn complaint(&self, number: &str, prefix: &str, path: &Path<'_>) -> Option<FieldError> {
        let fits = match (self.name, self.format) {
            ("integer", "int32") => number.parse::<i32>().is_ok(),
            ("integer", _) => number.parse::<i64>().is_ok(),
            (_, "float") => number.parse::<f32>().is_ok_and(f32::is_finite),
            _ => true,
        };
        if fits {
            return None;
        }
        let format = match self.format {
            "" => " (default format)".to_owned(),
            format => format!(" with format {format}"),
        };
        let name = self.name;
        Some(unplaced(format!(
            "{prefix} value must be of type {name}{format} in {path}"
        )))
    }
}

/// Whether a float stands for an integer, with upstream's tolerance.
pub(super) fn is_integer(number: f64) -> bool {
    if !number.is_finite() || number.abs() > EXACT_MAX {
        return false;
    }
    let whole = number.trunc();
    if number == whole {
        return true;
    }
    // Go compares with the number as an unsigned integer, in which negative ones make no sense.
    let near = if number < 0.0 { 0.0 } else { whole };
    if near == 0.0 {
        return false;
    }
    let difference = (number - near).abs();
    difference / (number.abs() + near.abs()).min(f64::MAX) < EPSILON
}

/// All digits, without an exponent.
fn plain_float(number: f64) -> String {
    number.to_string()
}

/// A float as Go's `%v` prints it: the shortest digits, with an exponent of at least two digits
/// below 1e-4 and from 1e6 on.
pub fn go_float(number: f64) -> String {
    let text = format!("{number:e}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
