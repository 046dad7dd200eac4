//! Managed fields as JSON.

use object::{Map, Text, Value, json, time::Time};

use super::{ManagedFields, Manager, Operation, Style};
use crate::{
    FieldSet, KnownSets,
    scan::Scanner,
    set::{FieldsError, Form},
};

/// Why managed fields cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// Neither `Apply` nor `Update`.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// Fields cannot be read without knowing their version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// No format is named.
    #[error("missing fieldsType in managed fields entry {0}")]
    FieldsTypeMissing(usize),
    /// A format that is not known.
    #[error("invalid fieldsType {fields_type:?} in managed fields entry {entry}")]
    FieldsType {
        /// The format named.
        fields_type: String,
        /// The position of the entry.
        entry: usize,
    },
    /// The fields themselves.
    #[error("error decoding versioned set from managed fields entry {entry}: {source}")]
    Fields {
        /// The position of the entry.
        entry: usize,
        /// What is wrong.
        source: FieldsError,
    },
    /// A value of the wrong type.
    #[error("managed fields entry {entry}: {field} has the wrong type")]
    Type {
        /// The position of the entry.
        entry: usize,
        /// The field of the entry.
        field: &'static str,
    },
    /// Not a list at all.
    #[error("managedFields is not a list")]
    NotAList,
    /// Not JSON.
    #[error("managedFields is not JSON: {0}")]
    Json(String),
}

impl ManagedFields {
    /// Reads the list under `metadata.managedFields`; null is no managers.
    pub fn decode(list: &Value) -> Result<ManagedFields, DecodeError> {
        let entries = match list {
            Value::Array(entries) => entries,
            Value::Null => return Ok(ManagedFields::new()),
            _ => return Err(DecodeError::NotAList),
        };
        let mut managers = ManagedFields {
            managers: Vec::with_capacity(entries.len()),
        };
        for (at, entry) in entries.iter().enumerate() {
            managers.put(decode_entry(at, entry)?);
        }
        managers.sort();
        Ok(managers)
    }

    /// Reads the JSON text of the list.
    pub fn parse(text: &[u8]) -> Result<ManagedFields, DecodeError> {
        parse(text, None)
    }

    /// Reads the JSON text of the list, in which some sets may be known.
    pub fn parse_knowing(text: &[u8], known: &KnownSets) -> Result<ManagedFields, DecodeError> {
        parse(text, Some(known))
    }

    /// The list as a tree; `None` if there is no manager and the field is to be left out.
    pub fn encode(&self) -> Option<Value> {
        if self.is_empty() {
            return None;
        }
        Some(Value::Array(
            self.managers.iter().map(encode_entry).collect(),
        ))
    }

    /// Appends the JSON text of the list.
    pub fn write_json(&self, style: Style, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, manager) in self.managers.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            match style {
                Style::Typed => write_typed(manager, out),
                Style::Custom => write_custom(manager, out),
            }
        }
        out.push(b']');
    }
}

fn parse(text: &[u8], known: Option<&KnownSets>) -> Result<ManagedFields, DecodeError> {
    let plain = std::str::from_utf8(text).ok();
    if let Some(managers) = plain.and_then(|text| scan(&mut Scanner::new(text), known)) {
        return Ok(managers);
    }
    let list = json::parse(text).map_err(|error| DecodeError::Json(error.to_string()))?;
    ManagedFields::decode(&list)
}

/// Reads the list as [`ManagedFields::write_json`] writes it.
fn scan(text: &mut Scanner<'_>, known: Option<&KnownSets>) -> Option<ManagedFields> {
    let mut managers = ManagedFields::new();
    text.take(b'[')?;
    loop {
        managers.put(scan_entry(text, known)?);
        if text.take_if(b']') {
            managers.sort();
            return text.is_done().then_some(managers);
        }
        text.take(b',')?;
    }
}

fn scan_entry(text: &mut Scanner<'_>, known: Option<&KnownSets>) -> Option<Manager> {
    let mut manager = Manager {
        name: Text::default(),
        operation: Operation::Update,
        api_version: Text::default(),
        subresource: Text::default(),
        time: None,
        set: FieldSet::new(),
    };
    let (mut operation, mut fields_type) = (None, false);
    text.take(b'{')?;
    loop {
        let key = text.string()?;
        text.take(b':')?;
        match key.as_ref() {
            "manager" => manager.name = text.string()?.into(),
            "operation" => {
                operation = Some(match text.string()?.as_ref() {
                    "Apply" => Operation::Apply,
                    "Update" => Operation::Update,
                    _ => return None,
                });
            }
            "apiVersion" => manager.api_version = text.string()?.into(),
            "time" => manager.time = Some(Time::parse(&text.string()?).ok()?.unix_seconds()),
            "fieldsType" => fields_type = text.string()? == "FieldsV1",
            "fieldsV1" => {
                manager.set = match known {
                    Some(known) => scan_known(text.fields_text()?, known)?,
                    None => text.fields()?,
                };
            }
            "subresource" => manager.subresource = text.string()?.into(),
            _ => return None,
        }
        if text.take_if(b'}') {
            break;
        }
        text.take(b',')?;
    }
    manager.operation = operation?;
    (fields_type && !manager.api_version.is_empty()).then_some(manager)
}

fn scan_known(fields: &str, known: &KnownSets) -> Option<FieldSet> {
    known.get(fields, || {
        let mut text = Scanner::new(fields);
        text.fields().filter(|_| text.is_done())
    })
}

fn decode_entry(at: usize, entry: &Value) -> Result<Manager, DecodeError> {
    let empty = Map::new();
    let entry = match entry {
        Value::Object(entry) => entry,
        Value::Null => &empty,
        _ => {
            return Err(DecodeError::Type {
                entry: at,
                field: "the entry",
            });
        }
    };
    let text = |field: &'static str| match entry.get(field) {
        None | Some(Value::Null) => Ok(Text::default()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(DecodeError::Type { entry: at, field }),
    };
    let operation = match text("operation")?.as_str() {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(DecodeError::Operation),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err(DecodeError::ApiVersion);
    }
    match text("fieldsType")?.as_str() {
        "FieldsV1" => {}
        "" => return Err(DecodeError::FieldsTypeMissing(at)),
        other => {
            return Err(DecodeError::FieldsType {
                fields_type: other.to_owned(),
                entry: at,
            });
        }
    }
    let time = match text("time")?.as_str() {
        "" => None,
        written => {
            let time = Time::parse(written).map_err(|_| DecodeError::Type {
                entry: at,
                field: "time",
            })?;
            Some(time.unix_seconds())
        }
    };
    let set = FieldSet::from_value(entry.get("fieldsV1").unwrap_or(&Value::Null))
        .map_err(|source| DecodeError::Fields { entry: at, source })?;
    let (name, subresource) = (text("manager")?, text("subresource")?);
    Ok(Manager {
        name,
        operation,
        api_version,
        subresource,
        time,
        set,
    })
}

fn time_text(seconds: i64) -> Text {
    Time::from_unix_seconds(seconds).to_string().into()
}

fn encode_entry(manager: &Manager) -> Value {
    let mut entry = Map::with_capacity(7);
    let mut text = |field: &str, value: &str| {
        if !value.is_empty() {
            entry.insert(field, value.into());
        }
    };
    text("apiVersion", &manager.api_version);
    text("fieldsType", "FieldsV1");
    text("manager", &manager.name);
    text("operation", manager.operation.as_str());
    text("subresource", &manager.subresource);
    text("time", &manager.time.map(time_text).unwrap_or_default());
    entry.insert("fieldsV1", manager.set.to_value());
    Value::Object(entry)
}

/// Writes `"name":"value"` unless the value is empty, with a comma before all but the first.
fn write_field(name: &str, value: &str, out: &mut Vec<u8>) {
    if value.is_empty() {
        return;
    }
    write_name(name, out);
    json::write_string(value, out);
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn write_time(time: Option<i64>, out: &mut Vec<u8>) {
    if let Some(seconds) = time {
        write_name("time", out);
        out.push(b'"');
        out.extend_from_slice(time_text(seconds).as_bytes());
        out.push(b'"');
    }
}

fn write_typed(manager: &Manager, out: &mut Vec<u8>) {
    out.push(b'{');
    write_field("manager", &manager.name, out);
    write_field("operation", manager.operation.as_str(), out);
    write_field("apiVersion", &manager.api_version, out);
    write_time(manager.time, out);
    write_field("fieldsType", "FieldsV1", out);
    write_name("fieldsV1", out);
    manager.set.write_fields_v1(Form::Typed, out);
    write_field("subresource", &manager.subresource, out);
    out.push(b'}');
}

fn write_custom(manager: &Manager, out: &mut Vec<u8>) {
    out.push(b'{');
    write_field("apiVersion", &manager.api_version, out);
    write_field("fieldsType", "FieldsV1", out);
    write_name("fieldsV1", out);
    manager.set.write_fields_v1(Form::Custom, out);
    write_field("manager", &manager.name, out);
    write_field("operation", manager.operation.as_str(), out);
    write_field("subresource", &manager.subresource, out);
    write_time(manager.time, out);
    out.push(b'}');
}
