//! From what a client sent, or the store held, to an object of the kind.
//!
//! Contract: `unstructuredSchemaCoercer` of upstream's `customresource_handler.go`: metadata is
//! read as its own type, then the rest is pruned, then the metadata of embedded resources is read,
//! then defaults are filled in. A client's mistake in metadata is an error; one that was stored
//! long ago is dropped.

use object::field::{FieldError, Path};
use object::{Map, Value};
use schema::decode::{TypeError, Unknown, decode};
use schema::structural::{Structural, fill_defaults, prune, prune_nulls};

use super::Custom;
use super::definition::OBJECT_META;
use crate::catalogue::Catalogue;

/// What becomes of metadata that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Malformed {
    Refuse,
    Drop,
}

impl Custom {
    /// Reads a body. The fields that were dropped come sorted, those of metadata first.
    pub(crate) fn read(
        &self,
        mut object: Map,
        unknown: Unknown,
    ) -> Result<(Map, Vec<String>), TypeError> {
        let dropped = self.coerce(&mut object, unknown, Malformed::Refuse)?;
        self.apply_defaults(&mut object);
        let texts = dropped
            .into_iter()
            .map(|path| format!("unknown field \"{path}\""))
            .collect();
        Ok((object, texts))
    }

    /// Gives a stored object the form that this version has today.
    pub(crate) fn read_stored(&self, object: &mut Map) {
        // Nothing is refused that was stored, so there is no mistake to tell.
        let _ = self.coerce(object, Unknown::Drop, Malformed::Drop);
        self.apply_defaults(object);
    }

    /// Fills what is absent.
    pub(crate) fn apply_defaults(&self, object: &mut Map) {
        fill_defaults(&self.schema, object);
    }

    fn coerce(
        &self,
        object: &mut Map,
        unknown: Unknown,
        malformed: Malformed,
    ) -> Result<Vec<String>, TypeError> {
        let mut coercer = Coercer {
            unknown,
            malformed,
            dropped: Vec::new(),
        };
        if let Some(metadata) = object.get_mut("metadata") {
            coercer.metadata(metadata, &Path::root())?;
        }
        let mut dropped = std::mem::take(&mut coercer.dropped);
        dropped.extend(prune(&self.schema, object, unknown));
        prune_nulls(&self.schema, object);
        if self.has_embedded {
            coercer.map(&self.schema, object, &Path::root())?;
            coercer.dropped.sort_unstable();
            dropped.extend(coercer.dropped);
        }
        Ok(dropped)
    }
}

/// Reads the metadata of objects, and of objects inside objects.
struct Coercer {
    unknown: Unknown,
    malformed: Malformed,
    dropped: Vec<String>,
}

impl Coercer {
    fn map(
        &mut self,
        schema: &Structural,
        object: &mut Map,
        path: &Path<'_>,
    ) -> Result<(), TypeError> {
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
    ) -> Result<(), TypeError> {
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

    fn embedded(&mut self, object: &mut Map, path: &Path<'_>) -> Result<(), TypeError> {
        for key in ["apiVersion", "kind"] {
            match object.get(key) {
                None | Some(Value::String(_)) => {}
                Some(_) if self.malformed == Malformed::Drop => {
                    object.remove(key);
                }
                Some(other) => {
                    return Err(refusal(&path.field(key), other, "must be a string"));
                }
            }
        }
        let Some(metadata) = object.get_mut("metadata") else {
            return Ok(());
        };
        let before = metadata.clone();
        if let Err(error) = self.metadata(metadata, path) {
            return Err(refusal(
                &path.field("metadata"),
                &before,
                &error.to_string(),
            ));
        }
        Ok(())
    }

    /// Reads metadata as the type that every object has.
    fn metadata(&mut self, metadata: &mut Value, parent: &Path<'_>) -> Result<(), TypeError> {
        match read_meta(metadata.clone(), self.unknown) {
            Ok((read, unknown)) => {
                *metadata = read;
                self.note(unknown, parent);
                Ok(())
            }
            Err(error) if self.malformed == Malformed::Refuse => Err(error),
            Err(_) => {
                *metadata = Value::Object(readable_parts(metadata));
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
    if let Some(meta) = read.as_object_mut() {
        if meta.get("creationTimestamp").is_some_and(Value::is_null) {
            meta.remove("creationTimestamp");
        }
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

fn refusal(path: &Path<'_>, value: &Value, detail: &str) -> TypeError {
    TypeError::Malformed {
        fields: Vec::new(),
        message: FieldError::invalid(path, value, detail).to_string(),
    }
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
