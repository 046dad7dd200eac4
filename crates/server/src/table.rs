//! Tables: rows of cells that clients print as they are.

use std::sync::Arc;

use kinds::{Column, Kind};
use object::{Map, Value, json};
use resources::record::{Stored, object_header};
use resources::{Listed, Revision};

use crate::answer::Failure;
use crate::handle::Call;
use crate::negotiate::MetaVersion;
use crate::render::{self, partial};

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

/// The text of a table of these records.
pub(crate) fn of_records<'a>(
    call: &Call,
    kind: &Arc<Kind>,
    records: impl ExactSizeIterator<Item = (&'a [u8], Option<Revision>)>,
    meta: &Meta,
    version: MetaVersion,
) -> Result<Vec<u8>, Failure> {
    let resources = &call.state.resources;
    let style = Style {
        include: Include::of(call)?,
        version,
        columns: true,
        now: resources.now(),
    };
    // A column of a custom resource may show anything of the object.
    let direct =
        resources.is_stored_form(kind) && kind.rules.carriers.is_empty() && !kind.shows_managers();
    let headers = Headers::new(kind, version);
    let is_blank = records.len() == 0 && has_plain_columns(kind);
    let mut text = Vec::with_capacity(256 + records.len() * 768);
    open_rows(kind, meta, style, &mut text);
    for (place, (record, revision)) in records.enumerate() {
        if place > 0 {
            text.push(b',');
        }
        let stored = Stored::new(record).map_err(|_| render::damaged(kind))?;
        if direct {
            let tree = stored.tree(revision).map_err(|_| render::damaged(kind))?;
            let tree = match kind.is_custom() {
                true => resources.served_tree(kind, tree),
                false => tree,
            };
            write_cells(kind, &tree, style.now, &mut text);
            write_stored(&stored, revision, style.include, &headers, &mut text);
        } else {
            let object = render::served(call, kind, &stored, revision)?;
            let cells = stored_cells(call, kind, &stored, style.now);
            json::write(&row(kind, &object, style, cells), &mut text);
        }
    }
    if is_blank {
        text.pop();
        text.extend_from_slice(b"null}");
    } else {
        text.extend_from_slice(b"]}");
    }
    Ok(text)
}

/// Whether upstream prints the kind with what every object has; an empty table then has no rows
/// rather than none.
fn has_plain_columns(kind: &Kind) -> bool {
    let names = kind.columns().iter().map(|column| column.name.as_str());
    !kind.is_custom() && names.eq(["Name", "Created At"])
}

/// The cells of an object whose version cannot hold all that is stored of it, if it is one.
fn stored_cells(
    call: &Call,
    kind: &Arc<Kind>,
    stored: &Stored<'_>,
    now: i64,
) -> Option<Vec<Value>> {
    let resources = &call.state.resources;
    if kind.is_custom() || resources.is_stored_form(kind) || kind.rules.carriers.is_empty() {
        return None;
    }
    let catalogue = resources.catalogue();
    let mut forms = catalogue.forms(&kind.collection);
    let whole = forms.find(|form| form.version == form.storage_version)?;
    let tree = stored.tree(None).ok()?;
    Some(kinds::cells(whole, &tree, now))
}

/// The text of a table of one scale.
pub(crate) fn of_scale(
    call: &Call,
    kind: &Kind,
    scale: Map,
    version: MetaVersion,
) -> Result<Vec<u8>, Failure> {
    let cells = kinds::scale_cells(kind, &scale, call.state.resources.now());
    let mut metadata = Map::new();
    if let Some(revision) = scale
        .get("metadata")
        .and_then(|it| it.get("resourceVersion"))
    {
        metadata.insert("resourceVersion", revision.clone());
    }
    let shown = match Include::of(call)? {
        Include::Nothing => Value::Null,
        Include::Metadata => partial(kind, scale, version).into(),
        Include::Object => scale.into(),
    };
    Ok(json::to_vec(&object::value!({
        "kind": "Table",
        "apiVersion": (version.api_version()),
        "metadata": metadata,
        "columnDefinitions": (describe(&kinds::scale_columns(kind))),
        "rows": [{"cells": cells, "object": shown}],
    })))
}

/// How the objects of rows begin.
struct Headers {
    metadata: Vec<u8>,
    object: Vec<u8>,
}

impl Headers {
    fn new(kind: &Kind, version: MetaVersion) -> Headers {
        Headers {
            metadata: object_header("PartialObjectMetadata", version.api_version()),
            object: object_header(&kind.kind, &kind.api_version()),
        }
    }
}

/// Appends a row up to the object in it.
fn write_cells(kind: &Kind, tree: &Map, now: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"cells\":");
    json::write(&kinds::cells(kind, tree, now).into(), out);
    let conditions = kinds::row_conditions(kind, tree);
    if !conditions.is_empty() {
        out.extend_from_slice(b",\"conditions\":");
        json::write(&conditions.into(), out);
    }
    out.extend_from_slice(b",\"object\":");
}

/// Appends the object of a row, copied from its record, and closes the row.
fn write_stored(
    stored: &Stored<'_>,
    revision: Option<Revision>,
    include: Include,
    headers: &Headers,
    out: &mut Vec<u8>,
) {
    match include {
        Include::Nothing => out.extend_from_slice(b"null"),
        Include::Metadata => stored.write_metadata(&headers.metadata, revision, out),
        Include::Object => stored.write_object(&headers.object, revision, out),
    }
    out.push(b'}');
}

/// Appends a table of these objects.
pub(crate) fn write_rows(
    kind: &Kind,
    objects: &[Map],
    meta: &Meta,
    style: Style,
    out: &mut Vec<u8>,
) {
    open_rows(kind, meta, style, out);
    for (place, object) in objects.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        json::write(&row(kind, object, style, None), out);
    }
    out.extend_from_slice(b"]}");
}

/// Appends a table up to the bracket that opens its rows.
fn open_rows(kind: &Kind, meta: &Meta, style: Style, out: &mut Vec<u8>) {
    out.extend_from_slice(&object_header("Table", style.version.api_version()));
    meta.write(out);
    out.extend_from_slice(b",\"columnDefinitions\":");
    let columns = if style.columns {
        describe(kind.columns())
    } else {
        Value::Null
    };
    json::write(&columns, out);
    out.extend_from_slice(b",\"rows\":[");
}

fn describe(columns: &[Column]) -> Value {
    let columns = columns.iter().map(|column| {
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

fn row(kind: &Kind, object: &Map, style: Style, cells: Option<Vec<Value>>) -> Value {
    let shown = match style.include {
        Include::Nothing => Value::Null,
        Include::Metadata => partial(kind, object.clone(), style.version).into(),
        Include::Object => object.clone().into(),
    };
    let mut row = Map::with_capacity(2);
    let cells = cells.unwrap_or_else(|| kinds::cells(kind, object, style.now));
    row.insert("cells", Value::Array(cells));
    let conditions = kinds::row_conditions(kind, object);
    if !conditions.is_empty() {
        row.insert("conditions", Value::Array(conditions));
    }
    row.insert("object", shown);
    row.into()
}
