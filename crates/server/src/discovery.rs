//! Discovery: which groups, versions and resources there are, in every form clients ask for.
//!
//! Documents are built on first use and kept for as long as the same kinds are served.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Response, StatusCode};
use kinds::{Catalogue, Group, Kind, Subresource};
use object::{Map, Value, json, value};
use resources::body::Media;
use ring::digest::{self, digest};

use crate::aggregate::Table;
use crate::aggregate::discovery::{Form, add_groups};
use crate::answer::{self, Failure};
use crate::body::Body;
use crate::negotiate::{self, Offer, Representation, Stream, wants_aggregated};
use crate::{protobuf, render};

/// What follows the media type of the document that tells everything at once.
const AGGREGATED: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const OFFER: Offer = Offer {
    tables: false,
    metadata: false,
    plain_text: false,
    protobuf: true,
    router: true,
    stream: Stream::No,
};

/// The discovery documents.
pub(crate) struct Discovery {
    address: SocketAddr,
    aggregated: Mutex<Option<Arc<Aggregated>>>,
}

/// The documents that tell everything at once, about one catalogue.
struct Aggregated {
    catalogue: Arc<Catalogue>,
    remotes: Arc<Table>,
    core: OnceLock<Tagged>,
    groups: OnceLock<Tagged>,
}

/// A document and the tag that tells whether a client has it already.
struct Tagged {
    text: Bytes,
    etag: HeaderValue,
}

impl Discovery {
    pub(crate) fn new(address: SocketAddr) -> Discovery {
        Discovery {
            address,
            aggregated: Mutex::new(None),
        }
    }

    /// Answers a discovery path; `None` if the path is none. `pretty` is what the query says of it.
    pub(crate) fn answer(
        &self,
        catalogue: &Arc<Catalogue>,
        remotes: &Arc<Table>,
        method: &Method,
        path: &str,
        headers: &hyper::HeaderMap,
        pretty: Option<&str>,
    ) -> Option<Response<Body>> {
        let inner = path.strip_prefix('/').unwrap_or(path);
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let parts: Vec<&str> = inner.split('/').collect();
        if !matches!(
            parts.as_slice(),
            ["api"] | ["api", _] | ["apis"] | ["apis", _] | ["apis", _, _]
        ) {
            return None;
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let accept = text(header::ACCEPT);
        let user_agent = text(header::USER_AGENT).unwrap_or_default();
        let pretty = |accepted| negotiate::is_pretty(pretty, accepted, user_agent);
        // Documents of single built-in versions come from behind a router, which is strict.
        let router = match parts.as_slice() {
            ["api", ..] | ["apis", "apiregistration.k8s.io"] => true,
            ["apis", group, _] => group_named(Catalogue::builtin(), group).is_some(),
            _ => false,
        };
        let document = match parts.as_slice() {
            ["api"] | ["apis"] if let Some(media) = wants_aggregated(accept) => {
                let representation = Representation {
                    media,
                    pretty: pretty(false),
                    ..Representation::default()
                };
                return Some(self.aggregated(
                    catalogue,
                    remotes,
                    parts[0],
                    representation,
                    headers,
                ));
            }
            ["api"] => Some(self.core_versions()),
            ["apis"] => Some(group_list(catalogue, remotes)),
            ["api", version] => resource_list(catalogue, "", version),
            ["apis", group] => one_group(catalogue, remotes, group),
            ["apis", group, version] => resource_list(catalogue, group, version),
            _ => None,
        };
        let Some(document) = document else {
            return Some(if router {
                Failure::no_such_resource().answer(accept, pretty(false))
            } else {
                answer::page_not_found()
            });
        };
        if router && *method != Method::GET {
            return Some(Failure::method_not_allowed().answer(accept, pretty(false)));
        }
        let offer = Offer { router, ..OFFER };
        Some(match negotiate::accept(accept, offer) {
            Ok(mut representation) => {
                representation.pretty = pretty(representation.pretty);
                respond(document, representation)
            }
            Err(refused) => Failure::from(refused).answer(accept, pretty(false)),
        })
    }

    fn core_versions(&self) -> Map {
        let ip = self.address.ip();
        let ip = resources::bootstrap::advertised(ip).unwrap_or(ip);
        let address = SocketAddr::new(ip, self.address.port()).to_string();
        object(value!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [
                {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
            ],
        }))
    }

    /// The documents about a catalogue: those kept, or new ones if others are served now.
    fn documents(&self, catalogue: &Arc<Catalogue>, remotes: &Arc<Table>) -> Arc<Aggregated> {
        let mut kept = self
            .aggregated
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(known)
                if Arc::ptr_eq(&known.catalogue, catalogue)
                    && Arc::ptr_eq(&known.remotes, remotes) =>
            {
                Arc::clone(known)
            }
            _ => {
                let made = Arc::new(Aggregated {
                    catalogue: Arc::clone(catalogue),
                    remotes: Arc::clone(remotes),
                    core: OnceLock::new(),
                    groups: OnceLock::new(),
                });
                Arc::clone(kept.insert(made))
            }
        }
    }

    fn aggregated(
        &self,
        catalogue: &Arc<Catalogue>,
        remotes: &Arc<Table>,
        prefix: &str,
        representation: Representation,
        headers: &hyper::HeaderMap,
    ) -> Response<Body> {
        let documents = self.documents(catalogue, remotes);
        let document = match prefix {
            "api" => documents
                .core
                .get_or_init(|| aggregate(catalogue, &Table::new(), |group| group.name.is_empty())),
            _ => documents
                .groups
                .get_or_init(|| aggregate(catalogue, remotes, |group| !group.name.is_empty())),
        };
        let known = headers.get(header::IF_NONE_MATCH) == Some(&document.etag);
        let mut answer = if known {
            let mut answer = Response::new(Body::empty());
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            answer
        } else {
            document.answer(representation)
        };
        let headers = answer.headers_mut();
        headers.insert(header::ETAG, document.etag.clone());
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        answer
    }
}

impl Tagged {
    /// The document in the form that is wanted; nearly everybody wants the one that is kept.
    fn answer(&self, representation: Representation) -> Response<Body> {
        let encoded = || answer::encode(self.text.to_vec(), representation);
        let (mut answer, name) = match representation.media {
            Media::Json if representation.pretty => (encoded(), "application/json"),
            Media::Json => (
                Response::new(Body::full(self.text.clone())),
                "application/json",
            ),
            Media::Yaml => (encoded(), "application/yaml"),
            Media::Protobuf => (encoded(), protobuf::CONTENT_TYPE),
        };
        if let Ok(name) = HeaderValue::from_str(&format!("{name}{AGGREGATED}")) {
            answer.headers_mut().insert(header::CONTENT_TYPE, name);
        }
        answer
    }
}

fn group_named<'a>(catalogue: &'a Catalogue, name: &str) -> Option<&'a Group> {
    let mut groups = catalogue.groups().iter();
    groups.find(|group| group.name == name && !name.is_empty())
}

fn group_list(catalogue: &Catalogue, remotes: &Table) -> Map {
    let groups = catalogue
        .groups()
        .iter()
        .filter(|group| !group.name.is_empty());
    let mut groups: Vec<Value> = groups.map(|group| group_document(group).into()).collect();
    add_groups(remotes, &mut groups, Form::Legacy);
    object(value!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// One group, with the versions of it that others serve.
fn one_group(catalogue: &Catalogue, remotes: &Table, name: &str) -> Option<Map> {
    let known = group_named(catalogue, name);
    let mut groups: Vec<Value> = known
        .map(|group| group_document(group).into())
        .into_iter()
        .collect();
    add_groups(remotes, &mut groups, Form::Legacy);
    let mut found = groups.into_iter();
    let mut document = object(found.find(|group| group.str_at(&["name"]) == Some(name))?);
    document.insert("kind", "APIGroup".into());
    document.insert("apiVersion", "v1".into());
    Some(document)
}

fn resource_list(catalogue: &Catalogue, group: &str, version: &str) -> Option<Map> {
    let kinds: Vec<&Kind> = kinds_of(catalogue, group, version).collect();
    let group_version = kinds.first()?.api_version();
    let mut resources = Vec::new();
    for kind in kinds {
        resources.push(resource_document(catalogue, kind));
        let nested = kind.subresources.iter();
        resources.extend(nested.map(|nested| subresource_document(kind, nested)));
    }
    let mut document = object(value!({
        "kind": "APIResourceList",
        "groupVersion": (group_version.as_str()),
        "resources": resources,
    }));
    if !group.is_empty() {
        document.insert("apiVersion", "v1".into());
    }
    Some(document)
}

fn kinds_of<'a>(
    catalogue: &'a Catalogue,
    group: &str,
    version: &str,
) -> impl Iterator<Item = &'a Kind> {
    let wanted = (group.to_owned(), version.to_owned());
    let kinds = catalogue.kinds().iter().map(|kind| &**kind);
    kinds.filter(move |kind| kind.group == wanted.0 && kind.version == wanted.1)
}

fn aggregate(catalogue: &Catalogue, remotes: &Table, belongs: impl Fn(&Group) -> bool) -> Tagged {
    let mut items = Vec::new();
    for group in catalogue.groups().iter().filter(|group| belongs(group)) {
        let mut metadata = Map::new();
        if !group.name.is_empty() {
            metadata.insert("name", Value::String(group.name.clone()));
        }
        let versions: Vec<Value> = group
            .versions
            .iter()
            .map(|version| {
                let kinds = kinds_of(catalogue, &group.name, version);
                let resources: Vec<Value> = kinds.map(aggregated_resource).collect();
                value!({
                    "version": (version.as_str()),
                    "resources": resources,
                    "freshness": "Current",
                })
            })
            .collect();
        items.push(value!({"metadata": metadata, "versions": versions}));
    }
    add_groups(remotes, &mut items, Form::Aggregated);
    let document = value!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let mut text = json::to_vec(&document);
    let etag = etag(&text);
    text.push(b'\n');
    Tagged {
        text: text.into(),
        etag,
    }
}

/// The quoted SHA-512 of a document, in upper case as upstream prints it.
pub(crate) fn etag(text: &[u8]) -> HeaderValue {
    let digest = digest(&digest::SHA512, text);
    let mut tag = String::with_capacity(130);
    tag.push('"');
    for byte in digest.as_ref() {
        tag.push_str(&format!("{byte:02X}"));
    }
    tag.push('"');
    HeaderValue::from_str(&tag).expect("hexadecimal digits are header text")
}

fn respond(document: Map, representation: Representation) -> Response<Body> {
    answer::encode(render::virtual_text(document), representation)
}

fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn group_document(group: &Group) -> Map {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| group_version(&group.name, version))
        .collect();
    let preferred = group_version(&group.name, group.preferred());
    object(value!({
        "name": (group.name.as_str()),
        "versions": versions,
        "preferredVersion": preferred,
    }))
}

fn group_version(group: &str, version: &str) -> Value {
    value!({"groupVersion": (format!("{group}/{version}")), "version": version})
}

fn texts(list: &[object::Text]) -> Value {
    Value::Array(list.iter().cloned().map(Value::String).collect())
}

fn resource_document(catalogue: &Catalogue, kind: &Kind) -> Value {
    let mut document = object(value!({
        "name": (kind.resource.as_str()),
        "singularName": (kind.singular.as_str()),
        "namespaced": (kind.namespaced),
        "kind": (kind.kind.as_str()),
        "verbs": (texts(&kind.verbs)),
    }));
    if !kind.short_names.is_empty() {
        document.insert("shortNames", texts(&kind.short_names));
    }
    if !kind.categories.is_empty() {
        document.insert("categories", texts(&kind.categories));
    }
    let stored = |verb: &object::Text| verb == "create" || kind.is_custom();
    if kind.verbs.iter().any(|verb| verb == "list") && kind.verbs.iter().any(stored) {
        let hash = storage_version_hash(catalogue, kind);
        document.insert("storageVersionHash", hash.into());
    }
    document.into()
}

/// Kinds that upstream still stores in their beta version, which is what their hash stands for.
const HASHED_AS_BETA: [(&str, &str); 3] = [
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
    ),
];

/// Tells clients whether the stored form changed: eight bytes of a digest.
fn storage_version_hash(catalogue: &Catalogue, kind: &Kind) -> String {
    let stored = catalogue
        .resource(&kind.group, &kind.version, &kind.resource)
        .map_or(kind, |kind| catalogue.stored_kind(kind));
    let kind = (stored.group.as_str(), stored.kind.as_str());
    let version = match HASHED_AS_BETA.contains(&kind) {
        true => "v1beta1",
        false => stored.version.as_str(),
    };
    let text = format!("{}/{version}/{}", stored.group, stored.kind);
    STANDARD.encode(&digest(&digest::SHA256, text.as_bytes()).as_ref()[..8])
}

fn subresource_document(kind: &Kind, nested: &Subresource) -> Value {
    let mut document = object(value!({
        "name": (format!("{}/{}", kind.resource, nested.name)),
        "singularName": "",
        "namespaced": (kind.namespaced),
        "kind": (nested.kind.as_str()),
        "verbs": (texts(&nested.verbs)),
    }));
    if !nested.group.is_empty() || !nested.version.is_empty() {
        document.insert("group", Value::String(nested.group.clone()));
        document.insert("version", Value::String(nested.version.clone()));
    }
    document.into()
}

fn aggregated_resource(kind: &Kind) -> Value {
    let mut document = object(value!({
        "resource": (kind.resource.as_str()),
        "responseKind": (response_kind(kind, "", "", &kind.kind)),
        "scope": (if kind.namespaced { "Namespaced" } else { "Cluster" }),
        "singularResource": (kind.singular.as_str()),
        "verbs": (texts(&kind.verbs)),
    }));
    if !kind.short_names.is_empty() {
        document.insert("shortNames", texts(&kind.short_names));
    }
    if !kind.categories.is_empty() {
        document.insert("categories", texts(&kind.categories));
    }
    if !kind.subresources.is_empty() {
        let nested: Vec<Value> = kind
            .subresources
            .iter()
            .map(|nested| {
                let (group, version) = (nested.group.as_str(), nested.version.as_str());
                let response = response_kind(kind, group, version, &nested.kind);
                value!({
                    "subresource": (nested.name.as_str()),
                    "responseKind": response,
                    "verbs": (texts(&nested.verbs)),
                })
            })
            .collect();
        document.insert("subresources", nested.into());
    }
    document.into()
}

/// The kind of an answer; upstream says its group and version for custom resources alone, or where
/// they are not those of the resource.
fn response_kind(of: &Kind, group: &str, version: &str, kind: &str) -> Value {
    let (group, version) = match of.is_custom() && group.is_empty() && version.is_empty() {
        true => (of.group.as_str(), of.version.as_str()),
        false => (group, version),
    };
    value!({"group": group, "version": version, "kind": kind})
}
