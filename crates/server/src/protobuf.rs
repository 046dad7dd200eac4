//! Answers in protobuf: the JSON that every answer is made of, put into messages and envelopes.

use bytes::Bytes;
use kinds::{Catalogue, Kind};
use object::{Map, Value, json, value};
use schema::TypeId;
use schema::protobuf::{
    ListHead, decode, encode, read_envelope, read_list, write_envelope, write_list,
    write_watch_frame,
};

use crate::table;

/// The media type of protobuf answers.
pub(crate) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The media type of protobuf watches.
pub(crate) const WATCH_CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Room for the field's number and length before an item of a list.
const ITEM_HEAD_BYTES: usize = 6;
/// Room for a list's own metadata.
const LIST_HEAD_BYTES: usize = 256;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// An answer's JSON text in protobuf; `None` if there is no message for what it holds.
pub(crate) fn of_json(text: &[u8]) -> Option<Bytes> {
    let value = json::parse(text).ok()?;
    let object = value.as_object()?;
    let (api_version, kind) = type_of(object);
    let raw = message(api_version, kind, &value)?;
    let mut out = Vec::new();
    write_envelope(api_version, kind, &raw, &mut out);
    Some(out.into())
}

/// A list whose items are messages already.
pub(crate) fn of_messages(kind: &Kind, meta: &table::Meta, items: &[Bytes]) -> Bytes {
    let version = meta.revision.map(|revision| revision.0.to_string());
    let head = ListHead {
        resource_version: version.as_deref().unwrap_or_default(),
        continue_token: &meta.continue_token,
        remaining_item_count: meta.remaining.map(|count| count as i64),
    };
    let bytes: usize = items.iter().map(Bytes::len).sum();
    let mut raw = Vec::with_capacity(bytes + items.len() * ITEM_HEAD_BYTES + LIST_HEAD_BYTES);
    write_list(&head, items.iter().map(|item| &item[..]), &mut raw);
    let mut out = Vec::new();
    write_envelope(&kind.api_version(), &kind.list_kind, &raw, &mut out);
    out.into()
}

/// A frame begins with its length in this many bytes.
pub(crate) const FRAME_HEAD_BYTES: usize = 4;

/// One frame of a watch; empty if there is no message for what it holds.
pub(crate) fn frame(event: &str, object: &Value) -> Bytes {
    let mut out = Vec::new();
    if let Some(map) = object.as_object() {
        let (api_version, kind) = type_of(map);
        if let Some(raw) = message(api_version, kind, object) {
            write_watch_frame(event, api_version, kind, &raw, &mut out);
        }
    }
    out.into()
}

/// The tree of a protobuf answer or body; `None` if it is none of ours.
pub(crate) fn to_value(bytes: &[u8]) -> Option<Value> {
    let envelope = read_envelope(bytes).ok()?;
    let (api_version, kind) = (envelope.api_version.as_str(), envelope.kind.as_str());
    let catalogue = Catalogue::builtin();
    let mut tree = match root_of(catalogue, api_version, kind) {
        Some(root) => decode(catalogue.types(), root, envelope.raw).ok()?,
        None => {
            let item = catalogue
                .kinds()
                .iter()
                .find(|known| known.list_kind == kind && known.api_version() == api_version)?;
            let items = read_list(envelope.raw).ok()?.into_iter();
            let items: Option<Vec<Value>> = items
                .map(|raw| decode(&item.types, item.root, raw).ok())
                .collect();
            value!({"metadata": {}, "items": (items?)})
        }
    };
    let object = tree.as_object_mut()?;
    object.insert("kind", kind.into());
    object.insert("apiVersion", api_version.into());
    Some(tree)
}

fn type_of(object: &Map) -> (&str, &str) {
    let text = |field: &str| {
        object
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    (text("apiVersion"), text("kind"))
}

fn message(api_version: &str, kind: &str, object: &Value) -> Option<Vec<u8>> {
    let catalogue = Catalogue::builtin();
    let mut raw = Vec::new();
    if let Some(root) = root_of(catalogue, api_version, kind) {
        encode(catalogue.types(), root, object, &mut raw);
        return Some(raw);
    }
    // What is left is a list of a built-in kind.
    let item = catalogue
        .kinds()
        .iter()
        .find(|known| known.list_kind == kind && known.api_version() == api_version)?;
    let items: Vec<Vec<u8>> = object
        .get("items")?
        .as_array()?
        .iter()
        .map(|object| {
            let mut raw = Vec::new();
            encode(&item.types, item.root, object, &mut raw);
            raw
        })
        .collect();
    let meta = |field| object.at(&["metadata", field]);
    let head = ListHead {
        resource_version: meta("resourceVersion")
            .and_then(Value::as_str)
            .unwrap_or_default(),
        continue_token: meta("continue").and_then(Value::as_str).unwrap_or_default(),
        remaining_item_count: meta("remainingItemCount").and_then(Value::as_int),
    };
    write_list(&head, items.iter().map(Vec::as_slice), &mut raw);
    Some(raw)
}

/// The message of a single object.
fn root_of(catalogue: &Catalogue, api_version: &str, kind: &str) -> Option<TypeId> {
    let definition = |name: &str| catalogue.definition(name);
    match (api_version, kind) {
        ("v1", "Status")
        | ("" | "v1", "APIVersions" | "APIGroup" | "APIGroupList" | "APIResourceList") => {
            definition(&format!("{META}{kind}"))
        }
        ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList") => {
            definition("io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList")
        }
        ("autoscaling/v1", "Scale") => definition("io.k8s.api.autoscaling.v1.Scale"),
        ("authentication.k8s.io/v1", "TokenRequest") => {
            definition("io.k8s.api.authentication.v1.TokenRequest")
        }
        (
            "meta.k8s.io/v1" | "meta.k8s.io/v1beta1",
            "PartialObjectMetadata" | "PartialObjectMetadataList",
        ) => definition(&format!("{META}{kind}")),
        _ => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            catalogue
                .by_kind(group, version, kind)
                .map(|kind| kind.root)
        }
    }
}
