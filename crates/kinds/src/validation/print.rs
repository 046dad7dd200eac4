//! Values inside messages, printed with their fields in the order of upstream's structs.
//!
//! A tree sorts its keys, upstream's printer follows the declaration. A [`Shape`] says that order
//! for the few structs that are ever printed whole.

use object::field::{FieldError, Mistake, Path};
use object::{Map, Value, json};

/// How a struct prints: its fields in order.
pub(crate) struct Shape(pub(crate) &'static [Field]);

/// A field of a [`Shape`].
pub(crate) struct Field {
    /// Its key in the tree.
    pub(crate) key: &'static str,
    /// Its name in print.
    pub(crate) name: &'static str,
    /// What is printed when it is absent; nothing if this is `None`.
    pub(crate) absent: Option<&'static str>,
    /// How its structs print, or the structs in its list.
    pub(crate) shape: Option<&'static Shape>,
}

impl Field {
    /// A field with a JSON name that is left out when it is absent or has no entries.
    pub(crate) const fn optional(key: &'static str) -> Field {
        Field {
            key,
            name: key,
            absent: None,
            shape: None,
        }
    }

    /// A field with a JSON name that always prints.
    pub(crate) const fn always(key: &'static str, absent: &'static str) -> Field {
        Field {
            key,
            name: key,
            absent: Some(absent),
            shape: None,
        }
    }

    /// A field of a struct without JSON names: it prints under its Go name, always.
    pub(crate) const fn plain(
        key: &'static str,
        name: &'static str,
        absent: &'static str,
    ) -> Field {
        Field {
            key,
            name,
            absent: Some(absent),
            shape: None,
        }
    }

    /// The same field, holding structs of this shape.
    pub(crate) const fn of(self, shape: &'static Shape) -> Field {
        Field {
            shape: Some(shape),
            ..self
        }
    }
}

/// An owner reference.
pub(crate) const OWNER_REFERENCE: Shape = Shape(&[
    Field::always("apiVersion", "\"\""),
    Field::always("kind", "\"\""),
    Field::always("name", "\"\""),
    Field::always("uid", "\"\""),
    Field::optional("controller"),
    Field::optional("blockOwnerDeletion"),
]);

/// The metadata of an object.
pub(crate) const OBJECT_META: Shape = Shape(&[
    Field::optional("name"),
    Field::optional("generateName"),
    Field::optional("namespace"),
    Field::optional("resourceVersion"),
    Field::optional("generation"),
    Field::optional("labels"),
    Field::optional("annotations"),
    Field::optional("ownerReferences").of(&OWNER_REFERENCE),
    Field::optional("finalizers"),
    Field::optional("managedFields").of(&MANAGED_FIELDS),
]);

/// An entry of managed fields.
pub(crate) const MANAGED_FIELDS: Shape = Shape(&[
    Field::optional("manager"),
    Field::optional("operation"),
    Field::optional("apiVersion"),
    Field::optional("time"),
    Field::optional("fieldsType"),
    Field::optional("fieldsV1"),
    Field::optional("subresource"),
]);

/// A label selector.
pub(crate) const LABEL_SELECTOR: Shape = Shape(&[
    Field::optional("matchLabels"),
    Field::optional("matchExpressions").of(&Shape(&[
        Field::always("key", "\"\""),
        Field::always("operator", "\"\""),
        Field::optional("values"),
    ])),
]);

/// Reports a value that is printed in the order of its struct.
pub(crate) fn invalid(
    path: &Path<'_>,
    value: &Value,
    shape: &Shape,
    detail: impl Into<String>,
) -> FieldError {
    invalid_text(path, print(value, Some(shape)), detail)
}

/// Reports a value that has been printed already.
pub(crate) fn invalid_text(
    path: &Path<'_>,
    value: String,
    detail: impl Into<String>,
) -> FieldError {
    FieldError {
        mistake: Mistake::Invalid,
        field: path.to_string(),
        value: Some(value),
        detail: detail.into(),
    }
}

/// Prints a value; a struct, or each struct of a list, after its shape.
pub(crate) fn print(value: &Value, shape: Option<&Shape>) -> String {
    let mut out = String::new();
    write(value, shape, &mut out);
    out
}

fn write(value: &Value, shape: Option<&Shape>, out: &mut String) {
    match (value, shape) {
        (Value::Object(map), Some(shape)) => write_struct(map, shape, out),
        (Value::Array(items), Some(_)) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, shape, out);
            }
            out.push(']');
        }
        _ => out.push_str(&String::from_utf8_lossy(&json::to_vec(value))),
    }
}

fn has_no_entries(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn write_struct(map: &Map, shape: &Shape, out: &mut String) {
    out.push('{');
    let mut first = true;
    for field in shape.0 {
        let present = map.get(field.key).filter(|value| !value.is_null());
        if field.absent.is_none() && present.is_none_or(has_no_entries) {
            continue;
        }
        if !first {
            out.push(',');
        }
        first = false;
        out.push('"');
        out.push_str(field.name);
        out.push_str("\":");
        match (present, field.absent) {
            (Some(value), _) => write(value, field.shape, out),
            (None, absent) => out.push_str(absent.unwrap_or("null")),
        }
    }
    out.push('}');
}
