//! Reading the operations of a JSON patch from a body.

use object::{Text, Value, field::quote};

use super::Operation;
use crate::patch::{PatchError, json_type};

/// As in upstream's strict decoder, more unknown fields than this are not listed.
const UNKNOWN_MAX: usize = 100;

/// The operations, and a text for each field that none of them has.
pub(super) fn operations(body: Value) -> Result<(Vec<Operation>, Vec<String>), PatchError> {
    let items = match body {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => return Err(wrong_type(&other, "value of type []handlers.jsonPatchOp")),
    };
    let mut unknown = Vec::new();
    let mut operations = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        operations.push(operation(index, item, &mut unknown)?);
    }
    Ok((operations, unknown))
}

fn operation(
    index: usize,
    item: Value,
    unknown: &mut Vec<String>,
) -> Result<Operation, PatchError> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Ok(Operation::default()),
        other => return Err(wrong_type(&other, "value of type handlers.jsonPatchOp")),
    };
    let mut operation = Operation::default();
    for (key, value) in map {
        match key.as_str() {
            "op" => operation.op = text("op", value)?,
            "path" => operation.path = text("path", value)?,
            "from" => operation.from = text("from", value)?,
            "value" => operation.value = Some(value),
            _ if unknown.len() < UNKNOWN_MAX => {
                let place = quote(&format!("[{index}].{key}"));
                unknown.push(format!("json patch unknown field {place}"));
            }
            _ => {}
        }
    }
    Ok(operation)
}

fn text(name: &str, value: Value) -> Result<Option<Text>, PatchError> {
    match value {
        Value::String(text) => Ok(Some(text)),
        Value::Null => Ok(None),
        other => Err(wrong_type(
            &other,
            &format!("struct field jsonPatchOp.{name} of type string"),
        )),
    }
}

fn wrong_type(found: &Value, wanted: &str) -> PatchError {
    PatchError::Undecodable(format!(
        "error decoding patch: json: cannot unmarshal {} into Go {wanted}",
        json_type(found)
    ))
}
