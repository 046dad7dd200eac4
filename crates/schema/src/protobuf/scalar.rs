//! Values that have a form of their own in JSON: bytes, times, quantities and the like.
//!
//! Contract: the `Marshal` and `Unmarshal` methods that apimachinery writes by hand. A zero time
//! is an empty message; a time keeps no fraction, a micro time six digits of it.

use object::quantity::Quantity;
use object::time::{MicroTime, Time, go_duration_parse, go_duration_print};
use object::{Text, Value, json};

use super::wire::{BYTES, Backward, Fields, VARINT};
use super::{DecodeError, Failure};
use crate::decode::base64;

const SECOND_MICROS: i64 = 1_000_000;
const MICRO_NANOS: i64 = 1_000;
/// The seconds of the years 0 to 9999.
const TIME_SECONDS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

pub(super) fn write_bytes(number: u32, value: &Value, out: &mut Backward) {
    let text = value.as_str().unwrap_or_default();
    out.bytes(number, &base64::decode(text).unwrap_or_default());
}

pub(super) fn write_time(value: &Value, out: &mut Backward) {
    if let Some(Ok(time)) = value.as_str().map(Time::parse) {
        out.number(2, 0);
        out.number(1, time.unix_seconds());
    }
}

pub(super) fn write_micro_time(value: &Value, out: &mut Backward) {
    if let Some(Ok(time)) = value.as_str().map(MicroTime::parse) {
        let micros = time.unix_micros();
        out.number(2, micros.rem_euclid(SECOND_MICROS) * MICRO_NANOS);
        out.number(1, micros.div_euclid(SECOND_MICROS));
    }
}

pub(super) fn write_duration(value: &Value, out: &mut Backward) {
    let nanos = value.as_str().map(go_duration_parse);
    out.number(1, nanos.and_then(Result::ok).unwrap_or_default());
}

pub(super) fn write_int_or_string(value: &Value, out: &mut Backward) {
    let text = value.as_str();
    out.bytes(3, text.unwrap_or_default().as_bytes());
    out.number(2, value.as_int().unwrap_or_default());
    out.number(1, text.is_some().into());
}

pub(super) fn write_json(value: &Value, out: &mut Backward) {
    if !value.is_null() {
        out.bytes(1, &json::to_vec(value));
    }
}

pub(super) fn read_text(bytes: &[u8]) -> Text {
    match std::str::from_utf8(bytes) {
        Ok(text) => Text::from(text),
        Err(_) => Text::from_utf8_lossy(bytes),
    }
}

pub(super) fn read_bytes(bytes: &[u8]) -> Value {
    Value::String(base64::encode(bytes))
}

/// Reads a floating point number; one that is whole is an integer, as JSON has it.
pub(super) fn read_double(bits: u64) -> Result<Value, Failure> {
    const EXACT_MAX: f64 = (1_u64 << 53) as f64;
    let number = f64::from_bits(bits);
    if !number.is_finite() {
        return Err(DecodeError::Double(number).into());
    }
    let is_whole = number.fract() == 0.0 && number.abs() <= EXACT_MAX;
    let is_negative_zero = number == 0.0 && number.is_sign_negative();
    Ok(if is_whole && !is_negative_zero {
        Value::Int(number as i64)
    } else {
        Value::Float(number)
    })
}

pub(super) fn read_time(bytes: &[u8]) -> Result<Value, Failure> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (seconds, _) = timestamp(bytes)?;
    let time = Time::from_unix_seconds(seconds);
    Ok(if time.is_zero() {
        Value::Null
    } else {
        Value::String(time.to_text())
    })
}

pub(super) fn read_micro_time(bytes: &[u8]) -> Result<Value, Failure> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (seconds, nanos) = timestamp(bytes)?;
    let micros = seconds * SECOND_MICROS + nanos.div_euclid(MICRO_NANOS);
    let time = MicroTime::from_unix_micros(micros);
    Ok(if time.is_zero() {
        Value::Null
    } else {
        time.to_string().into()
    })
}

/// Seconds from the start of 1970 and nanoseconds from there, both within the years that have
/// four digits.
fn timestamp(bytes: &[u8]) -> Result<(i64, i64), Failure> {
    const SECOND_NANOS: i64 = SECOND_MICROS * MICRO_NANOS;
    let [seconds, nanos] = numbers(bytes, ["seconds", "nanos"])?;
    let nanos = i64::from(nanos as i32);
    let (carry, nanos) = (
        nanos.div_euclid(SECOND_NANOS),
        nanos.rem_euclid(SECOND_NANOS),
    );
    let seconds = seconds.saturating_add(carry);
    if TIME_SECONDS.contains(&seconds) {
        Ok((seconds, nanos))
    } else {
        Err(DecodeError::Time { seconds }.into())
    }
}

pub(super) fn read_duration(bytes: &[u8]) -> Result<Value, Failure> {
    let [nanos] = numbers(bytes, ["duration"])?;
    Ok(go_duration_print(nanos).into())
}

/// Reads a message whose first fields are numbers.
fn numbers<const N: usize>(bytes: &[u8], names: [&str; N]) -> Result<[i64; N], Failure> {
    let mut values = [0; N];
    let mut fields = Fields::new(bytes);
    while let Some(key) = fields.next_key()? {
        match (names.get(key.number as usize - 1), key.wire) {
            (Some(_), VARINT) => values[key.number as usize - 1] = fields.varint()? as i64,
            (Some(name), wire) => return Err(wrong_wire_type(wire, name)),
            (None, wire) => fields.skip(wire)?,
        }
    }
    Ok(values)
}

pub(super) fn read_quantity(bytes: &[u8]) -> Result<Value, Failure> {
    match first_bytes(bytes, "string")? {
        None => Ok("0".into()),
        Some(text) => {
            let text = String::from_utf8_lossy(text);
            Ok(Quantity::canonical_text(&text)
                .map_err(DecodeError::from)?
                .into())
        }
    }
}

pub(super) fn read_int_or_string(bytes: &[u8]) -> Result<Value, Failure> {
    let (mut kind, mut integer, mut text) = (0, 0, Text::default());
    let mut fields = Fields::new(bytes);
    while let Some(key) = fields.next_key()? {
        match (key.number, key.wire) {
            (1, VARINT) => kind = fields.varint()? as i64,
            (2, VARINT) => integer = fields.varint()? as i32,
            (3, BYTES) => text = read_text(fields.bytes()?),
            (number @ 1..=3, wire) => {
                let name = ["type", "intVal", "strVal"][number as usize - 1];
                return Err(wrong_wire_type(wire, name));
            }
            (_, wire) => fields.skip(wire)?,
        }
    }
    match kind {
        0 => Ok(integer.into()),
        1 => Ok(text.into()),
        other => Err(DecodeError::IntOrString(other).into()),
    }
}

/// Reads JSON text; none of it is `null`.
pub(super) fn read_json(bytes: &[u8], object: bool) -> Result<Value, Failure> {
    let value = match first_bytes(bytes, "raw")? {
        None | Some([]) => return Ok(Value::Null),
        Some(text) => json::parse(text).map_err(DecodeError::from)?,
    };
    match value {
        Value::Object(_) | Value::Null => Ok(value),
        _ if object => Err(DecodeError::FieldSet.into()),
        _ => Ok(value),
    }
}

/// The bytes of the field 1, which is the only one.
fn first_bytes<'b>(bytes: &'b [u8], name: &str) -> Result<Option<&'b [u8]>, Failure> {
    let mut found = None;
    let mut fields = Fields::new(bytes);
    while let Some(key) = fields.next_key()? {
        match (key.number, key.wire) {
            (1, BYTES) => found = Some(fields.bytes()?),
            (1, wire) => return Err(wrong_wire_type(wire, name)),
            (_, wire) => fields.skip(wire)?,
        }
    }
    Ok(found)
}

#[cold]
pub(super) fn wrong_wire_type(wire: u8, field: &str) -> Failure {
    let field = field.to_owned();
    DecodeError::WrongWireType { wire, field }.into()
}
