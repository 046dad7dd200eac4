//! Why a tree cannot be read as a type, in the words of upstream's converter of trees.
//!
//! Contract: apimachinery `runtime/converter.go`. A strategic merge patch makes a tree that is
//! read by reflection and not by the decoder of JSON, so the same mistake has another message. It
//! names no field. Values that read themselves, such as times, are read by their own decoders.

use object::Value;

use super::{DECODE_DEPTH_MAX, Place, TypeError, is_free, scalar};
use crate::{Form, Scalar, Type, TypeId, Types};

/// The first mistake of a tree, if there is one that the converter has words for.
pub fn conversion_error(types: &Types, root: TypeId, value: &Value) -> Option<String> {
    misfit(types, root, value, 0)
}

fn misfit(types: &Types, id: TypeId, value: &Value, depth: usize) -> Option<String> {
    let ty = types.get(id);
    if depth > DECODE_DEPTH_MAX || is_free(ty.form) || matches!(value, Value::Null) {
        return None;
    }
    match ty.form {
        Form::Time | Form::MicroTime | Form::Duration | Form::Quantity | Form::IntOrString => {
            return reads_itself(types, id, value);
        }
        Form::Bytes => return bytes(types, id, value),
        _ => {}
    }
    match (value, &ty.map, &ty.list) {
        (Value::Object(map), Some(shape), _) => map.iter().find_map(|(key, value)| {
            let element = shape.field(key).map(|field| field.ty).or(shape.element);
            misfit(types, element?, value, depth + 1)
        }),
        (Value::Array(items), _, Some(list)) => items
            .iter()
            .find_map(|item| misfit(types, list.element, item, depth + 1)),
        (value, Some(shape), _) if ty.form == Form::Plain => Some(match shape.element {
            None => format!("cannot restore struct from: {}", go_kind(value)),
            Some(_) => format!("cannot restore map from {}", go_kind(value)),
        }),
        (value, None, Some(_)) if ty.form == Form::Plain => {
            Some(format!("cannot restore slice from {}", go_kind(value)))
        }
        (value, _, _) => single(ty, value),
    }
}

/// What is wrong with a value that is neither map nor list.
fn single(ty: &Type, value: &Value) -> Option<String> {
    let wanted = match (ty.form, ty.scalar) {
        (Form::Int32, _) => "int32",
        (Form::Int64, _) => "int64",
        (Form::Double, _) | (_, Some(Scalar::Numeric)) => "float64",
        (_, Some(Scalar::Boolean)) => "bool",
        (_, Some(Scalar::String)) => "string",
        (_, Some(Scalar::Untyped) | None) => return None,
    };
    match (wanted, value) {
        ("string", Value::String(_))
        | ("bool", Value::Bool(_))
        | ("float64", Value::Int(_) | Value::Float(_))
        | ("int32" | "int64", Value::Int(_)) => None,
        // Go converts a number to the character of that number, but not here.
        ("string", Value::Int(_)) | ("int32" | "int64", Value::Float(_)) => {
            Some(format!("cannot convert {} to {wanted}", go_kind(value)))
        }
        _ => Some(format!("unrecognized type: {wanted}")),
    }
}

fn bytes(types: &Types, id: TypeId, value: &Value) -> Option<String> {
    match value {
        Value::String(_) => {
            reads_itself(types, id, value).map(|text| format!("error decoding from json: {text}"))
        }
        Value::Array(_) => None,
        other => Some(format!("cannot restore slice from {}", go_kind(other))),
    }
}

/// What the decoder says of a value that does not know where it stands.
fn reads_itself(types: &Types, id: TypeId, value: &Value) -> Option<String> {
    let mut error = scalar::read(types, id, &mut value.clone(), &Place::root()).err()?;
    if let TypeError::Mismatch { fields, .. } = &mut error {
        fields.clear();
    }
    Some(error.to_string())
}

/// What Go calls the value that stands in a tree.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
