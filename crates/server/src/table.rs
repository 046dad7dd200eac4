//! Tables: rows of cells that clients print as they are.

use std::sync::Arc;

use kinds::Kind;
use object::{Map, Value, json};
use resources::record::object_header;
use resources::{Listed, Revision};

use crate::answer::Failure;
use crate::handle::Call;
use crate::negotiate::MetaVersion;
use crate::render::partial;

/// The metadata of a list or table.
#[derive(Debug, Default)]
pub(crate) struct Meta {
    pub revision: Option<Revision>,
    pub continue_token: String,
    pub remaining: Option<usize>,
    /// Whether a continue token is shown even where there is none, as lists of custom resources do.
    pub bare_token: bool,
}

impl Meta {
    pub(crate) fn of_object(revision: Option<Revision>) -> Meta {
        Meta {
            revision,
            ..Meta::default()
        }
    }

    pub(crate) fn of_list(listed: &Listed) -> Meta {
        Meta {
            revision: Some(listed.revision),
            continue_token: listed.continue_token.clone(),
            remaining: listed.remaining,
            bare_token: false,
        }
    }
}

/// What a row shows of its object beside the cells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    pub(crate) fn of(call: &Call) -> Result<Include, Failure> {
        match call.query.get("includeObject").unwrap_or_default() {
            "" | "Metadata" => Ok(Include::Metadata),
            "Object" => Ok(Include::Object),
            "None" => Ok(Include::Nothing),
            other => {
                let quoted = object::field::quote(other);
                let text = format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: \
                     {quoted}: must be 'Metadata', 'Object', 'None', or empty"
                );
                Err(Failure::new(400, "BadRequest", text))
            }
        }
    }
}

/// How a table is written.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    pub include: Include,
    pub version: MetaVersion,
    /// Whether the columns are described; in a watch only the first table does.
    pub columns: bool,
    /// The time that ages are counted to.
    pub now: i64,
}

/// The text of a table of these objects.
pub(crate) fn of_objects(
    call: &Call,
    kind: &Arc<Kind>,
    objects: &[Map],
    meta: Meta,
    version: MetaVersion,
) -> Result<Vec<u8>, Failure> {
    let include = Include::of(call)?;
    let style = Style {
        include,
        version,
        columns: true,
        now: call.state.resources.now(),
    };
    let mut text = Vec::with_capacity(256 + objects.len() * 512);
    write_rows(kind, objects, &meta, style, &mut text);
    Ok(text)
}

/// Appends a table of these objects.
pub(crate) fn write_rows(
    kind: &Kind,
    objects: &[Map],
    meta: &Meta,
    style: Style,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&object_header("Table", style.version.api_version()));
    meta.write(out);
    out.extend_from_slice(b",\"columnDefinitions\":");
    let columns = if style.columns {
        columns(kind)
    } else {
        Value::Null
    };
    json::write(&columns, out);
    out.extend_from_slice(b",\"rows\":[");
    for (place, object) in objects.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        json::write(&row(kind, object, style), out);
    }
    out.extend_from_slice(b"]}");
}

fn columns(kind: &Kind) -> Value {
    let columns = kind.columns().iter().map(|column| {
        object::value!({
            "name": (column.name.clone()),
            "type": (column.kind.clone()),
            "format": (column.format.clone()),
            "description": (column.description.clone()),
            "priority": (i64::from(column.priority)),
        })
    });
    Value::Array(columns.collect())
}

fn row(kind: &Kind, object: &Map, style: Style) -> Value {
    let shown = match style.include {
        Include::Nothing => Value::Null,
        Include::Metadata => partial(object.clone(), style.version).into(),
        Include::Object => object.clone().into(),
    };
    let mut row = Map::with_capacity(2);
    row.insert("cells", Value::Array(kinds::cells(kind, object, style.now)));
    let conditions = kinds::row_conditions(kind, object);
    if !conditions.is_empty() {
        row.insert("conditions", Value::Array(conditions));
    }
    row.insert("object", shown);
    row.into()
}
