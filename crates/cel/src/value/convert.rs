//! Conversions between types.
//!
//! Contract: the `ConvertToType` methods of cel-go `common/types` over Go's `strconv`.

use super::{Library, Map, Timestamp, Value, print_double, time};
use crate::evaluate::Fault;
use crate::types::Type;
use object::time::go_duration_parse;
use std::sync::Arc;

fn refused(value: &Value<'_>, wanted: Type) -> Fault {
    let (from, to) = (value.type_of().name(), wanted.name());
    Fault::from(format!("type conversion error from '{from}' to '{to}'"))
}

pub(crate) fn to_bool<'v>(value: &Value<'v>) -> Result<Value<'v>, Fault> {
    match value {
        Value::Bool(flag) => Ok(Value::Bool(*flag)),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => Err(refused(value, Type::Bool)),
        },
        _ => Err(Fault::no_overload()),
    }
}

pub(crate) fn to_bytes<'v>(value: &Value<'v>) -> Result<Value<'v>, Fault> {
    match value {
        Value::Bytes(bytes) => Ok(Value::Bytes(bytes.clone())),
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
        _ => Err(Fault::no_overload()),
    }
}

pub(crate) fn to_double<'v>(value: &Value<'v>) -> Result<Value<'v>, Fault> {
    match value {
        Value::Double(number) => Ok(Value::Double(*number)),
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::String(text) => {
            let parsed = text.parse::<f64>().ok();
            // What is too large for a float is refused; only a word makes an infinity.
            let named = text.to_ascii_lowercase().contains("inf");
            let number = parsed.filter(|it| it.is_finite() || it.is_nan() || named);
            number
                .map(Value::Double)
                .ok_or_else(|| refused(value, Type::Double))
        }
        _ => Err(Fault::no_overload()),
    }
}

pub(crate) fn to_int<'v>(value: &Value<'v>) -> Result<Value<'v>, Fault> {
    let overflow = || Fault::new("integer overflow");
    match value {
        Value::Int(number) => Ok(Value::Int(*number)),
        Value::Uint(number) => i64::try_from(*number)
            .map(Value::Int)
            .map_err(|_| overflow()),
        Value::Double(number) => {
            let fits = *number > i64::MIN as f64 && *number < i64::MAX as f64;
            fits.then_some(Value::Int(*number as i64))
                .ok_or_else(overflow)
        }
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        Value::Timestamp(time) => Ok(Value::Int(time.seconds())),
        Value::String(text) => text
            .parse()
            .map(Value::Int)
            .map_err(|_| refused(value, Type::Int)),
        _ => Err(Fault::no_overload()),
    }
}

pub(crate) fn to_uint<'v>(value: &Value<'v>) -> Result<Value<'v>, Fault> {
    let overflow = || Fault::new("unsigned integer overflow");
    match value {
        Value::Uint(number) => Ok(Value::Uint(*number)),
        Value::Int(number) => u64::try_from(*number)
            .map(Value::Uint)
            .map_err(|_| overflow()),
        Value::Double(number) => {
            let fits = *number >= 0.0 && *number < u64::MAX as f64;
            fits.then_some(Value::Uint(*number as u64))
                .ok_or_else(overflow)
        }
        Value::String(text) if !text.starts_with('+') => text
            .parse()
            .map(Value::Uint)
            .map_err(|_| refused(value, Type::Uint)),
        Value::String(_) => Err(refused(value, Type::Uint)),
        _ => Err(Fault::no_overload()),
    }
}

pub(crate) fn to_duration<'v>(value: &Value<'v>) -> Result<Value<'v>, Fault> {
    match value {
        Value::Duration(nanos) => Ok(Value::Duration(*nanos)),
        Value::String(text) => go_duration_parse(text)
            .map(Value::Duration)
            .map_err(|_| refused(value, Type::Duration)),
        Value::Int(_) => Err(refused(value, Type::Duration)),
        _ => Err(Fault::no_overload()),
    }
}

pub(crate) fn to_timestamp<'v>(value: &Value<'v>) -> Result<Value<'v>, Fault> {
    let overflow = || Fault::new("timestamp overflow");
    match value {
        Value::Timestamp(time) => Ok(Value::Timestamp(*time)),
        Value::Int(seconds) => Timestamp::from_seconds(*seconds)
            .map(Value::Timestamp)
            .ok_or_else(overflow),
        Value::String(text) => time::parse_rfc3339(text)
            .map(Value::Timestamp)
            .ok_or_else(|| refused(value, Type::Timestamp)),
        _ => Err(Fault::no_overload()),
    }
}

pub(crate) fn to_string<'v>(value: &Value<'v>) -> Result<Value<'v>, Fault> {
    let text: Arc<str> = match value {
        Value::String(_) => return Ok(value.clone()),
        Value::Bool(flag) => flag.to_string().into(),
        Value::Int(number) => number.to_string().into(),
        Value::Uint(number) => number.to_string().into(),
        Value::Double(number) => print_double(*number).into(),
        Value::Bytes(bytes) => std::str::from_utf8(bytes)
            .map_err(|_| Fault::new("invalid UTF-8 in bytes, cannot convert to string"))?
            .into(),
        Value::Duration(nanos) => time::print_duration(*nanos).into(),
        Value::Timestamp(time) => time.to_string().into(),
        Value::Library(Library::Ip(address)) => address.to_string().into(),
        Value::Library(Library::Cidr(cidr)) => cidr.to_string().into(),
        _ => return Err(Fault::no_overload()),
    };
    Ok(Value::owned_text(text))
}

/// Decodes standard base64 with padding; line breaks in it are skipped, as Go does.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|it| !matches!(it, b'\n' | b'\r'))
        .collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let padding = digits.iter().rev().take_while(|it| **it == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3);
    for group in digits[..digits.len() - padding].chunks(4) {
        let mut bits: u32 = 0;
        for digit in group {
            bits = bits << 6 | u32::from(base64_digit(*digit)?);
        }
        bits <<= 6 * (4 - group.len());
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(&bytes[1..group.len()]);
    }
    Some(out)
}

fn base64_digit(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

impl<'v> Value<'v> {
    /// The value as JSON, if it has a form there.
    ///
    /// # Errors
    /// What has none, such as a duration or a key that is no text.
    pub fn to_json(&self) -> Result<object::Value, crate::Error> {
        let none = || {
            crate::Error::from(Fault::from(format!(
                "cannot convert a value of type {} to JSON",
                self.type_of().name()
            )))
        };
        Ok(match self {
            Value::Null => object::Value::Null,
            Value::Bool(flag) => object::Value::Bool(*flag),
            Value::Int(number) => object::Value::Int(*number),
            Value::Uint(number) => match i64::try_from(*number) {
                Ok(number) => object::Value::Int(number),
                Err(_) => object::Value::Float(*number as f64),
            },
            Value::Double(number) => object::Value::Float(*number),
            Value::String(text) => object::Value::from(&**text),
            Value::List(list) => {
                let items = list
                    .iter()
                    .map(|item| item.map_err(crate::Error::from)?.to_json());
                object::Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Map(Map::Data(map, _)) => object::Value::Object((*map).clone()),
            Value::Map(map) => {
                let mut out = object::Map::new();
                for key in map.keys() {
                    let name = key.as_text().ok_or_else(none)?;
                    if let Some(value) = map.find(&key).map_err(crate::Error::from)? {
                        out.insert(name, value.to_json()?);
                    }
                }
                object::Value::Object(out)
            }
            Value::Optional(Some(inner)) => inner.to_json()?,
            Value::Hidden(data) => (*data).clone(),
            _ => return Err(none()),
        })
    }
}
