//! Objects inside objects: the metadata of embedded resources, and that of the object itself.
//!
//! Contract: `apiextensions-apiserver/pkg/apiserver/schema/objectmeta`.

use object::field::{FieldError, Path};
use object::{Map, Value, group, names};
use schema::decode::{Blank, TypeError, Unknown, decode, normalize};
use schema::structural::Structural;

use super::definition::OBJECT_META;
use crate::catalogue::Catalogue;
use crate::validation::meta;

/// What becomes of metadata that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Malformed {
    Refuse,
    Drop,
}

/// Reads the metadata of the objects inside a value, and that of the value itself if it is a
/// resource whatever its schema says.
pub(crate) fn coerce(
    schema: &Structural,
    value: &mut Value,
    resource: bool,
    path: &Path<'_>,
) -> Result<(), FieldError> {
    let mut coercer = Coercer::new(Unknown::Drop, Malformed::Refuse);
    if let Value::Object(object) = &mut *value
        && resource
        && !schema.embedded_resource
    {
        coercer.embedded(object, path)?;
    }
    coercer.value(schema, value, path)
}

/// Checks the objects inside a value, and the value itself if it is a resource whatever its schema
/// says.
pub(crate) fn validate(
    schema: &Structural,
    value: &Value,
    resource: bool,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Value::Object(object) = value
        && resource
        && !schema.embedded_resource
    {
        validate_resource(object, path, &mut errors);
    }
    validate_value(schema, value, path, &mut errors);
    errors
}

/// Reads the metadata of objects, and of objects inside objects.
pub(super) struct Coercer {
    unknown: Unknown,
    malformed: Malformed,
    /// The paths of fields that metadata does not have.
    pub(super) dropped: Vec<String>,
}

impl Coercer {
    pub(super) fn new(unknown: Unknown, malformed: Malformed) -> Coercer {
        Coercer {
            unknown,
            malformed,
            dropped: Vec::new(),
        }
    }

    /// Reads the metadata of every object inside a map, and its own if the schema says so.
    pub(super) fn map(
        &mut self,
        schema: &Structural,
        object: &mut Map,
        path: &Path<'_>,
    ) -> Result<(), FieldError> {
        if schema.embedded_resource {
            self.embedded(object, path)?;
        }
        for (key, value) in object.iter_mut() {
            if let Some(property) = schema.property(key) {
                self.value(property, value, &path.field(key))?;
            } else if let Some(below) = schema.additional_schema() {
                self.value(below, value, &path.key(key))?;
            }
        }
        Ok(())
    }

    fn value(
        &mut self,
        schema: &Structural,
        value: &mut Value,
        path: &Path<'_>,
    ) -> Result<(), FieldError> {
        match value {
            Value::Object(map) => self.map(schema, map, path),
            Value::Array(items) => {
                let Some(below) = schema.items.as_deref() else {
                    return Ok(());
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(below, item, &path.index(index))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn embedded(&mut self, object: &mut Map, path: &Path<'_>) -> Result<(), FieldError> {
        for key in ["apiVersion", "kind"] {
            match object.get(key) {
                None | Some(Value::String(_)) => {}
                Some(_) if self.malformed == Malformed::Drop => {
                    object.remove(key);
                }
                Some(other) => {
                    let detail = "must be a string";
                    return Err(FieldError::invalid(&path.field(key), other, detail));
                }
            }
        }
        let Some(metadata) = object.get_mut("metadata") else {
            return Ok(());
        };
        let before = metadata.clone();
        self.metadata(metadata, path).map_err(|error| {
            FieldError::invalid(&path.field("metadata"), &before, error.to_string())
        })
    }

    /// Reads metadata as the type that every object has.
    pub(super) fn metadata(
        &mut self,
        metadata: &mut Value,
        parent: &Path<'_>,
    ) -> Result<(), TypeError> {
        let before = (self.malformed == Malformed::Drop).then(|| metadata.clone());
        match (read_meta(std::mem::take(metadata), self.unknown), before) {
            (Ok((read, unknown)), _) => {
                *metadata = read;
                self.note(unknown, parent);
                Ok(())
            }
            (Err(error), None) => Err(error),
            (Err(_), Some(before)) => {
                *metadata = Value::Object(readable_parts(&before));
                Ok(())
            }
        }
    }

    /// Takes the path out of texts such as `unknown field "labels"`.
    fn note(&mut self, unknown: Vec<String>, parent: &Path<'_>) {
        let prefix = parent.field("metadata").to_string();
        for text in unknown {
            if let Some(path) = text.split('"').nth(1) {
                self.dropped.push(format!("{prefix}.{path}"));
            }
        }
    }
}

/// Reads metadata; its fields and those that are unknown.
fn read_meta(metadata: Value, unknown: Unknown) -> Result<(Value, Vec<String>), TypeError> {
    let metadata = match metadata {
        Value::Null => Value::Object(Map::new()),
        object @ Value::Object(_) => object,
        other => {
            return Err(TypeError::Mismatch {
                found: json_type(&other).to_owned(),
                owner: String::new(),
                fields: Vec::new(),
                wanted: "v1.ObjectMeta".to_owned(),
            });
        }
    };
    let types = Catalogue::builtin().types();
    let read = decode(types, *OBJECT_META, metadata, unknown).map_err(name_owner);
    let (mut read, unknown) = read?;
    normalize(types, *OBJECT_META, &mut read, Blank::AsShown);
    if let Some(meta) = read.as_object_mut()
        && meta.get("creationTimestamp").is_some_and(Value::is_null)
    {
        meta.remove("creationTimestamp");
    }
    Ok((read, unknown))
}

/// Names the struct that declares a field of metadata.
fn name_owner(error: TypeError) -> TypeError {
    match error {
        TypeError::Mismatch {
            found,
            fields,
            wanted,
            ..
        } => {
            let owner = match (fields.len(), fields.first().map(String::as_str)) {
                (2.., Some("ownerReferences")) => "OwnerReference",
                (2.., Some("managedFields")) => "ManagedFieldsEntry",
                (0, _) => "",
                _ => "ObjectMeta",
            };
            TypeError::Mismatch {
                found,
                owner: owner.to_owned(),
                fields,
                wanted,
            }
        }
        other => other,
    }
}

/// The fields of metadata that can be read alone.
fn readable_parts(metadata: &Value) -> Map {
    let fields = metadata.as_object().into_iter().flat_map(Map::iter);
    let read = fields.filter_map(|(key, value)| {
        let single: Map = [(key.clone(), value.clone())].into_iter().collect();
        match read_meta(Value::Object(single), Unknown::Drop) {
            Ok((Value::Object(read), _)) => Some(read),
            _ => None,
        }
    });
    let mut parts = Map::new();
    for single in read {
        for (key, value) in single.iter() {
            parts.insert(key.clone(), value.clone());
        }
    }
    parts
}

/// What Go's decoder calls a value.
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

/// Checks every object inside a map, and the map itself if the schema says so.
pub(super) fn validate_map(
    schema: &Structural,
    object: &Map,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if schema.embedded_resource {
        validate_resource(object, path, errors);
    }
    for (key, value) in object.iter() {
        if let Some(property) = schema.property(key) {
            validate_value(property, value, &path.field(key), errors);
        } else if let Some(below) = schema.additional_schema() {
            validate_value(below, value, &path.key(key), errors);
        }
    }
}

fn validate_value(
    schema: &Structural,
    value: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    match (value, schema.items.as_deref()) {
        (Value::Object(map), _) => validate_map(schema, map, path, errors),
        (Value::Array(items), Some(below)) => {
            for (index, item) in items.iter().enumerate() {
                validate_value(below, item, &path.index(index), errors);
            }
        }
        _ => {}
    }
}

/// Checks the kind, version and metadata of an object inside the object.
fn validate_resource(object: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for key in ["apiVersion", "kind"] {
        let at = path.field(key);
        let Some(value) = object.get(key) else {
            errors.push(FieldError::required(&at, ""));
            continue;
        };
        let detail = match value {
            Value::String(text) if text.is_empty() => Some("must not be empty".to_owned()),
            Value::String(text) if key == "apiVersion" => group::parse_api_version(text)
                .err()
                .map(|error| error.to_string()),
            Value::String(text) => {
                let complaints = names::dns1035_label(&text.to_lowercase());
                let prefix = "may have mixed case, but should otherwise match: ";
                (!complaints.is_empty()).then(|| format!("{prefix}{}", complaints.join(",")))
            }
            _ => Some("must be a string".to_owned()),
        };
        errors.extend(detail.map(|detail| FieldError::invalid(&at, value, detail)));
    }
    if let Some(Value::Object(metadata)) = object.get("metadata") {
        let prefix = path.to_string();
        for mut error in meta::validate_embedded(metadata) {
            if !prefix.is_empty() {
                error.field = format!("{prefix}.{}", error.field);
            }
            errors.push(error);
        }
    }
}
