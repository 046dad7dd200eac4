//! Reading single values: which JSON types each form takes and how it is printed back.

use object::quantity::Quantity;
use object::time::{MicroTime, Time, go_duration_parse, go_duration_print};
use object::{Value, json};

use super::{Place, TypeError, base64};
use crate::{Form, MapType, Scalar, TypeId, Types};

/// Reads a value that is no map where a map is wanted and no list where a list is wanted.
pub(super) fn read(
    types: &Types,
    id: TypeId,
    value: &mut Value,
    place: &Place<'_>,
) -> Result<(), TypeError> {
    let ty = types.get(id);
    match ty.form {
        Form::Int32 => read_integer(id, types, value, place, i32::MIN.into(), i32::MAX.into()),
        Form::Int64 => read_integer(id, types, value, place, i64::MIN, i64::MAX),
        Form::Double => read_double(value, place),
        Form::Bytes => read_bytes(value, place),
        Form::Time | Form::MicroTime => read_time(ty.form, value, place),
        Form::Duration => read_duration(value, place),
        Form::Quantity => read_quantity(value, place),
        Form::IntOrString => read_int_or_string(value, place),
        Form::RawExtension | Form::AnyJson | Form::FieldsV1 => Ok(()),
        Form::Plain => match (ty.scalar, &*value) {
            (Some(Scalar::String), Value::String(_))
            | (Some(Scalar::Numeric), Value::Int(_) | Value::Float(_))
            | (Some(Scalar::Boolean), Value::Bool(_))
            | (
                Some(Scalar::Untyped),
                Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_),
            ) => Ok(()),
            _ => Err(mismatch(value, place, go_type(types, id))),
        },
    }
}

/// Neither a boolean nor a schema stands where one of them is wanted.
pub(super) fn no_schema_or_bool(place: &Place<'_>) -> TypeError {
    malformed(place, "boolean or JSON schema expected".to_owned())
}

/// Reads a list of strings that reads itself.
pub(super) fn read_strings(items: &mut [Value]) -> Result<(), TypeError> {
    for item in items {
        match item {
            Value::String(_) => {}
            Value::Null => *item = "".into(),
            other => return Err(mismatch_inside(other, "string")),
        }
    }
    Ok(())
}

fn read_integer(
    id: TypeId,
    types: &Types,
    value: &Value,
    place: &Place<'_>,
    min: i64,
    max: i64,
) -> Result<(), TypeError> {
    match value {
        Value::Int(number) if (min..=max).contains(number) => Ok(()),
        Value::Int(_) | Value::Float(_) => {
            Err(mismatch_text(number_text(value), place, go_type(types, id)))
        }
        _ => Err(mismatch(value, place, go_type(types, id))),
    }
}

fn read_double(value: &mut Value, place: &Place<'_>) -> Result<(), TypeError> {
    // Beyond this a float no longer holds every integer, so the number that is printed differs.
    const EXACT_MAX: u64 = 1 << 53;
    match value {
        Value::Float(_) => Ok(()),
        Value::Int(number) if number.unsigned_abs() > EXACT_MAX => {
            *value = Value::Float(*number as f64);
            Ok(())
        }
        Value::Int(_) => Ok(()),
        _ => Err(mismatch(value, place, "float64".to_owned())),
    }
}

fn read_bytes(value: &mut Value, place: &Place<'_>) -> Result<(), TypeError> {
    match value {
        Value::String(text) => match base64::canonical(text) {
            Ok(None) => Ok(()),
            Ok(Some(canonical)) => {
                *text = canonical;
                Ok(())
            }
            Err(at) => Err(TypeError::NotBase64 { at }),
        },
        // Go's decoder takes a list of numbers for a byte slice, too.
        Value::Array(items) => {
            let mut bytes = Vec::with_capacity(items.len());
            for item in items.iter() {
                match item {
                    Value::Null => bytes.push(0),
                    Value::Int(number @ 0..=255) => bytes.push(*number as u8),
                    Value::Int(_) | Value::Float(_) => {
                        return Err(mismatch_text(number_text(item), place, "uint8".to_owned()));
                    }
                    other => return Err(mismatch(other, place, "uint8".to_owned())),
                }
            }
            *value = Value::String(base64::encode(&bytes));
            Ok(())
        }
        _ => Err(mismatch(value, place, "[]uint8".to_owned())),
    }
}

fn read_int_or_string(value: &Value, place: &Place<'_>) -> Result<(), TypeError> {
    let wanted = || "int32".to_owned();
    match value {
        Value::String(_) => Ok(()),
        Value::Int(number) if i32::try_from(*number).is_ok() => Ok(()),
        Value::Int(_) | Value::Float(_) => Err(mismatch_text(number_text(value), place, wanted())),
        _ => Err(mismatch(value, place, wanted())),
    }
}

/// Times are printed in UTC, to the second or the microsecond; the zero time is `null`.
fn read_time(form: Form, value: &mut Value, place: &Place<'_>) -> Result<(), TypeError> {
    let text = string_inside(value, place)?;
    let printed = match form {
        Form::MicroTime => {
            MicroTime::parse(text).map(|time| (!time.is_zero()).then(|| time.to_string()))
        }
        _ => Time::parse(text).map(|time| (!time.is_zero()).then(|| time.to_string())),
    };
    match printed {
        Ok(printed) => {
            *value = printed.map_or(Value::Null, Value::from);
            Ok(())
        }
        Err(message) => Err(malformed(place, message)),
    }
}

fn read_duration(value: &mut Value, place: &Place<'_>) -> Result<(), TypeError> {
    match go_duration_parse(string_inside(value, place)?) {
        Ok(nanoseconds) => {
            *value = go_duration_print(nanoseconds).into();
            Ok(())
        }
        Err(message) => Err(malformed(place, message)),
    }
}

fn read_quantity(value: &mut Value, place: &Place<'_>) -> Result<(), TypeError> {
    let canonical = match &*value {
        Value::String(text) => Quantity::canonical_text(text.trim()),
        value => Quantity::from_value(value).map(|quantity| quantity.canonical().into()),
    };
    match canonical {
        Ok(text) => {
            *value = Value::String(text);
            Ok(())
        }
        Err(error) => Err(malformed(place, error.to_string())),
    }
}

/// The text of a value that reads itself from a string.
fn string_inside<'v>(value: &'v Value, place: &Place<'_>) -> Result<&'v str, TypeError> {
    value
        .as_str()
        .ok_or_else(|| mismatch(value, place, "string".to_owned()))
}

fn malformed(place: &Place<'_>, message: String) -> TypeError {
    TypeError::Malformed {
        fields: place.fields(),
        message,
    }
}

fn mismatch(value: &Value, place: &Place<'_>, wanted: String) -> TypeError {
    mismatch_text(json_type(value).to_owned(), place, wanted)
}

fn mismatch_text(found: String, place: &Place<'_>, wanted: String) -> TypeError {
    TypeError::Mismatch {
        found,
        owner: String::new(),
        fields: place.fields(),
        wanted,
    }
}

/// A mismatch found by a value that reads itself, which does not know where it stands.
fn mismatch_inside(value: &Value, wanted: &str) -> TypeError {
    TypeError::Mismatch {
        found: json_type(value).to_owned(),
        owner: String::new(),
        fields: Vec::new(),
        wanted: wanted.to_owned(),
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn number_text(value: &Value) -> String {
    format!("number {}", json_text(value))
}

fn json_text(value: &Value) -> String {
    String::from_utf8_lossy(&json::to_vec(value)).into_owned()
}

/// The Go type that upstream would name, as far as the type graph knows it.
fn go_type(types: &Types, id: TypeId) -> String {
    const NESTING_SHOWN_MAX: usize = 8;
    let mut name = String::new();
    let mut id = id;
    let mut ty = types.get(id);
    for _ in 0..NESTING_SHOWN_MAX {
        if let (
            Form::Plain,
            Some(MapType {
                element: Some(element),
                ..
            }),
        ) = (ty.form, &ty.map)
        {
            name.push_str("map[string]");
            id = *element;
            ty = types.get(id);
        } else if let (Form::Plain, None, Some(list)) = (ty.form, &ty.map, &ty.list) {
            name.push_str("[]");
            id = list.element;
            ty = types.get(id);
        } else {
            break;
        }
    }
    // Every such map has this name.
    if name == "map[string]" && ty.form == Form::Quantity {
        return "v1.ResourceList".to_owned();
    }
    if let (Form::Plain, Some(known)) = (ty.form, types.name_of(id)) {
        name.push_str(&known);
        return name;
    }
    name.push_str(match (ty.form, ty.scalar) {
        (Form::Int32, _) => "int32",
        (Form::Int64, _) => "int64",
        (Form::Double, _) => "float64",
        (Form::Bytes, _) => "[]uint8",
        (Form::Time, _) => "v1.Time",
        (Form::MicroTime, _) => "v1.MicroTime",
        (Form::Duration, _) => "v1.Duration",
        (Form::Quantity, _) => "resource.Quantity",
        (Form::IntOrString, _) => "intstr.IntOrString",
        (Form::RawExtension | Form::AnyJson | Form::FieldsV1, _) => "interface {}",
        (Form::Plain, Some(Scalar::String)) => "string",
        (Form::Plain, Some(Scalar::Numeric)) => "float64",
        (Form::Plain, Some(Scalar::Boolean)) => "bool",
        (Form::Plain, _) => "struct",
    });
    name
}
