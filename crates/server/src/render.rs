//! Objects and lists as the client wants to see them.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::Response;
use hyper::header::{self, HeaderValue};
use kinds::Kind;
use object::{Map, Value, json};
use resources::body::{Media, package};
use resources::record::{NotARecord, Stored, object_header, write_number};
use resources::{Listed, Record, Resources, Revision};
use schema::protobuf::encode;

use crate::answer::{self, Failure};
use crate::body::{Body, ListBody};
use crate::handle::Call;
use crate::negotiate::{MetaVersion, Representation, Shape};
use crate::{protobuf, table};

/// Answers longer than this are compressed for clients that can read it.
const GZIP_BYTES_MIN: usize = 128 * 1024;

/// Answers with one stored object.
pub(crate) fn stored(
    call: &Call,
    kind: &Arc<Kind>,
    value: &[u8],
    revision: Option<Revision>,
    representation: Representation,
) -> Result<Response<Body>, Failure> {
    let record = Stored::new(value).map_err(|_| damaged(kind))?;
    let text = match representation.shape {
        Shape::Object => object_text(call, kind, &record, revision)?,
        Shape::Table(version) => {
            let meta = table::Meta::of_object(revision);
            let records = std::iter::once((value, revision));
            table::of_records(call, kind, records, &meta, version)?
        }
        Shape::Metadata(version) => {
            let mut text = Vec::with_capacity(1024);
            write_partial(call, kind, &record, revision, version, &mut text)?;
            text
        }
        Shape::MetadataList(_) => {
            return Err(not_a_list(kind, &kind.group, &kind.kind));
        }
    };
    Ok(finish(call, text, representation))
}

/// The text of one object in the version of `kind`.
pub(crate) fn object_text(
    call: &Call,
    kind: &Arc<Kind>,
    record: &Stored<'_>,
    revision: Option<Revision>,
) -> Result<Vec<u8>, Failure> {
    if call.state.resources.is_stored_form(kind) {
        let header = object_header(&kind.kind, &kind.api_version());
        let mut text = Vec::with_capacity(header.len() + record.item_len(Revision(u64::MAX)) + 1);
        record.write_object(&header, revision, &mut text);
        return Ok(text);
    }
    Ok(json::to_vec(&served(call, kind, record, revision)?.into()))
}

/// The tree of one object in the version of `kind`, with its managed fields.
pub(crate) fn served(
    call: &Call,
    kind: &Arc<Kind>,
    record: &Stored<'_>,
    revision: Option<Revision>,
) -> Result<Map, Failure> {
    tree(&call.state.resources, kind, record, revision).map_err(|_| damaged(kind))
}

/// The tree of one record in the version of `kind`.
pub(crate) fn tree(
    resources: &Resources,
    kind: &Arc<Kind>,
    record: &Stored<'_>,
    revision: Option<Revision>,
) -> Result<Map, NotARecord> {
    let mut tree = record.tree(revision)?;
    let managed = record.managed_fields();
    if !managed.is_empty() {
        let managed = json::parse(managed).map_err(|_| NotARecord)?;
        tree.object_at("metadata").insert("managedFields", managed);
    }
    Ok(resources.served_tree(kind, tree))
}

/// Only the metadata of an object.
pub(crate) fn partial(kind: &Kind, mut object: Map, version: MetaVersion) -> Map {
    hide_carriers(kind, &mut object);
    let mut partial = Map::with_capacity(3);
    partial.insert("apiVersion", version.api_version().into());
    partial.insert("kind", "PartialObjectMetadata".into());
    partial.insert(
        "metadata",
        object
            .remove("metadata")
            .unwrap_or_else(|| Map::new().into()),
    );
    partial
}

/// Drops the annotations that stand for fields of the kind.
fn hide_carriers(kind: &Kind, object: &mut Map) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let (Some(metadata), false) = (metadata, kind.rules.carriers.is_empty()) else {
        return;
    };
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|key, _| !kind.rules.carriers.contains(&key));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// Appends only the metadata of a record.
fn write_partial(
    call: &Call,
    kind: &Arc<Kind>,
    record: &Stored<'_>,
    revision: Option<Revision>,
    version: MetaVersion,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    if call.state.resources.is_stored_form(kind) && kind.rules.carriers.is_empty() {
        let header = object_header("PartialObjectMetadata", version.api_version());
        record.write_metadata(&header, revision, out);
        return Ok(());
    }
    let object = served(call, kind, record, revision)?;
    json::write(&partial(kind, object, version).into(), out);
    Ok(())
}

/// Answers with an object that is not stored in this form. Only scales have tables, and what says
/// that an action is done is shown as it is.
pub(crate) fn virtual_object(
    call: &Call,
    kind: &Arc<Kind>,
    object: Map,
    representation: Representation,
) -> Result<Response<Body>, Failure> {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = text("kind").to_owned();
    let (group, _) = text("apiVersion").split_once('/').unwrap_or_default();
    let group = group.to_owned();
    let is_scale = name == "Scale";
    let text = match representation.shape {
        _ if name == "Status" => virtual_text(object),
        Shape::Table(version) if is_scale => table::of_scale(call, kind, object, version)?,
        Shape::Metadata(version) => virtual_text(partial(kind, object, version)),
        Shape::MetadataList(_) if is_scale && kind.is_custom() => {
            return Err(not_acceptable(
                "PartialObjectMetadataList",
                "not a list",
                "v1.Scale",
            ));
        }
        Shape::MetadataList(_) => return Err(not_a_list(kind, &group, &name)),
        _ => virtual_text(object),
    };
    Ok(finish(call, text, representation))
}

/// The text of an object that is not stored: kind, version and metadata first, as in every answer.
pub(crate) fn virtual_text(mut object: Map) -> Vec<u8> {
    let first = ["kind", "apiVersion", "metadata"];
    let first = first.map(|key| object.remove(key).map(|value| (key, value)));
    let rest = object.iter().map(|(key, value)| (key.as_str(), value));
    let first = first.iter().flatten().map(|(key, value)| (*key, value));
    let mut text = Vec::new();
    for (key, value) in first.chain(rest) {
        text.push(if text.is_empty() { b'{' } else { b',' });
        json::write_string(key, &mut text);
        text.push(b':');
        json::write(value, &mut text);
    }
    text.push(b'}');
    text
}

/// A list is asked for where there is one object.
fn not_a_list(kind: &Kind, group: &str, name: &str) -> Failure {
    if kind.is_custom() {
        return Failure::new(400, "BadRequest", "content is not a list");
    }
    let found = format!("{}.{name}", package(group));
    not_acceptable("PartialObjectMetadataList", "not a list", &found)
}

fn not_acceptable(wanted: &str, is: &str, found: &str) -> Failure {
    let text = format!("you requested {wanted}, but the requested object is {is} (*{found})");
    Failure::new(406, "NotAcceptable", text)
}

/// The text of a list of metadata alone.
fn metadata_list(
    call: &Call,
    kind: &Arc<Kind>,
    listed: &Listed,
    meta: &table::Meta,
    version: MetaVersion,
) -> Result<Vec<u8>, Failure> {
    let name = "PartialObjectMetadataList";
    if listed.records.is_empty() {
        let mut text = object_header(name, version.api_version());
        meta.write(&mut text);
        text.extend_from_slice(b",\"items\":null}");
        return Ok(text);
    }
    let mut text = list_head(name, version.api_version(), meta);
    for (place, record) in listed.records.iter().enumerate() {
        if place > 0 {
            text.push(b',');
        }
        let stored = Stored::new(&record.value).map_err(|_| damaged(kind))?;
        let revision = Some(record.revision);
        write_partial(call, kind, &stored, revision, version, &mut text)?;
    }
    text.extend_from_slice(b"]}");
    Ok(text)
}

/// Answers with a list.
pub(crate) fn list(
    call: &Call,
    kind: &Arc<Kind>,
    listed: Listed,
    representation: Representation,
) -> Result<Response<Body>, Failure> {
    let plain = call.state.resources.is_stored_form(kind);
    let mut meta = table::Meta::of_list(&listed);
    meta.bare_token = kind.is_custom() && representation.shape == Shape::Object;
    let is_protobuf = representation.media == Media::Protobuf && !kind.is_custom();
    if is_protobuf && representation.shape == Shape::Object {
        let messages = messages(call, kind, &listed)?;
        let bytes = protobuf::of_messages(kind, &meta, &messages);
        return Ok(compress(call, answer::encoded(bytes)));
    }
    let text = match representation.shape {
        Shape::Object if plain => {
            let item_header = if kind.is_custom() {
                object_header(&kind.kind, &kind.api_version())
            } else {
                Vec::new()
            };
            let head = list_head(&kind.list_kind, &kind.api_version(), &meta);
            let body = ListBody::new(head, item_header, listed.records);
            let as_it_is = representation.media == Media::Json && !representation.pretty;
            if as_it_is && (body.len() <= GZIP_BYTES_MIN || !takes_gzip(call)) {
                let mut answer = Response::new(Body::List(body));
                let content_type = HeaderValue::from_static("application/json");
                answer
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, content_type);
                return Ok(answer);
            }
            let mut text = body.collect();
            text.pop();
            text
        }
        Shape::Object => {
            let head = list_head(&kind.list_kind, &kind.api_version(), &meta);
            let items = objects(call, kind, &listed)?.into_iter().map(|mut object| {
                object.remove("kind");
                object.remove("apiVersion");
                object
            });
            tree_list(head, items)
        }
        Shape::Table(version) => {
            let records = listed.records.iter();
            let records = records.map(|record| (&record.value[..], Some(record.revision)));
            table::of_records(call, kind, records, &meta, version)?
        }
        Shape::MetadataList(version) => metadata_list(call, kind, &listed, &meta, version)?,
        Shape::Metadata(_) => {
            let found = if kind.is_custom() {
                "unstructured.UnstructuredList".to_owned()
            } else {
                format!("{}.{}", package(&kind.group), kind.list_kind)
            };
            return Err(not_acceptable("PartialObjectMetadata", "a list", &found));
        }
    };
    Ok(finish(call, text, representation))
}

/// The listed objects as messages.
fn messages(call: &Call, kind: &Arc<Kind>, listed: &Listed) -> Result<Vec<Bytes>, Failure> {
    let make = |record: &Record| {
        let stored = Stored::new(&record.value).map_err(|_| damaged(kind))?;
        let object = served(call, kind, &stored, Some(record.revision))?;
        let mut message = Vec::new();
        encode(&kind.types, kind.root, &object.into(), &mut message);
        // Without the room that it grew into, because it may be kept.
        Ok(Bytes::from(message.into_boxed_slice()))
    };
    call.state.messages.of(kind.root, &listed.records, make)
}

fn objects(call: &Call, kind: &Arc<Kind>, listed: &Listed) -> Result<Vec<Map>, Failure> {
    listed
        .records
        .iter()
        .map(|record| {
            let stored = Stored::new(&record.value).map_err(|_| damaged(kind))?;
            served(call, kind, &stored, Some(record.revision))
        })
        .collect()
}

fn tree_list(mut text: Vec<u8>, items: impl Iterator<Item = Map>) -> Vec<u8> {
    for (place, item) in items.enumerate() {
        if place > 0 {
            text.push(b',');
        }
        json::write(&Value::Object(item), &mut text);
    }
    text.extend_from_slice(b"]}");
    text
}

/// A list up to the bracket that opens its items.
fn list_head(kind: &str, api_version: &str, meta: &table::Meta) -> Vec<u8> {
    let mut out = object_header(kind, api_version);
    meta.write(&mut out);
    out.extend_from_slice(b",\"items\":[");
    out
}

impl table::Meta {
    /// Appends `"metadata":{...}`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"metadata\":{");
        if let Some(revision) = self.revision {
            out.extend_from_slice(b"\"resourceVersion\":\"");
            write_number(revision.0, out);
            out.push(b'"');
        }
        if !self.continue_token.is_empty() || self.bare_token {
            out.extend_from_slice(b",\"continue\":");
            json::write_string(&self.continue_token, out);
        }
        if let Some(remaining) = self.remaining {
            out.extend_from_slice(b",\"remainingItemCount\":");
            write_number(remaining as u64, out);
        }
        out.push(b'}');
    }
}

/// The last step of every answer that holds objects: representation and compression.
fn finish(call: &Call, text: Vec<u8>, representation: Representation) -> Response<Body> {
    compress(call, answer::encode(text, representation))
}

fn compress(call: &Call, mut answer: Response<Body>) -> Response<Body> {
    let Body::Full(Some(bytes)) = answer.body() else {
        return answer;
    };
    if bytes.len() > GZIP_BYTES_MIN && takes_gzip(call) {
        let packed = gzip(bytes);
        *answer.body_mut() = Body::full(packed);
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    answer
}

fn takes_gzip(call: &Call) -> bool {
    let accepted = call.header(header::ACCEPT_ENCODING).unwrap_or_default();
    accepted.split(',').any(|token| token.trim() == "gzip")
}

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    // Writing to memory does not fail.
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    packed.map_or_else(|_| Bytes::copy_from_slice(bytes), Bytes::from)
}

pub(crate) fn damaged(kind: &Kind) -> Failure {
    let text = format!(
        "Internal error occurred: a stored {} cannot be read",
        kind.kind
    );
    Failure::new(500, "InternalError", text)
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    #[test]
    fn an_object_that_is_not_stored_begins_with_its_kind() {
        let review = value!({
            "status": {"allowed": true},
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "kind": "SelfSubjectAccessReview",
            "spec": {},
        });
        let text = virtual_text(review.as_object().cloned().unwrap());
        assert_eq!(
            String::from_utf8_lossy(&text),
            "{\"kind\":\"SelfSubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\",\
             \"metadata\":{},\"spec\":{},\"status\":{\"allowed\":true}}"
        );
    }
}
