//! OpenAPI: what can be asked of the server, for tools that find it out.
//!
//! One document for each group and version in version 3 of OpenAPI, one for all in version 2.
//! A document is made when it is first asked for and kept compressed; nothing is kept before that.
//! Clients keep documents under the hash of their text, so a hash never stands for two texts.
//! Contract: kube-openapi `pkg/handler` and `pkg/handler3`. Documents hold no prose.

mod custom;
mod definitions;
mod document;
mod known;
mod operations;
mod pack;
mod parameters;
mod protobuf;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use kinds::{Catalogue, Kind};
use object::{Map, json, value};
use resources::Resources;

use self::custom::Source;
use self::definitions::Definitions;
use self::document::{Place, Version};
use self::pack::{Packed, unpack};
use crate::aggregate::openapi as remote;
use crate::answer::{self, Failure};
use crate::body::Body;
use crate::discovery::etag;
use crate::handle::Call;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROTOBUF: HeaderValue =
    HeaderValue::from_static("application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
/// What clients call it; the older name comes first.
const PROTOBUF_NAMES: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];
/// The index is sent without a type of its own, and upstream's server makes this of it.
const PLAIN_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const YEAR_SECONDS: i64 = 365 * 24 * 60 * 60;

/// The documents about what is served.
#[derive(Default)]
pub(crate) struct OpenApi {
    kept: Mutex<Option<Arc<Documents>>>,
}

/// The documents about one catalogue, and what was made of them so far.
struct Documents {
    catalogue: Arc<Catalogue>,
    custom: Source,
    documents: Vec<Arc<Document>>,
    index: OnceLock<Index>,
    version2: OnceLock<Packed>,
    version2_protobuf: OnceLock<Packed>,
}

/// A document of version 3.
struct Document {
    place: Place,
    /// What it is about; while the same kinds are served, the document stays.
    kinds: Vec<Arc<Kind>>,
    hash: OnceLock<String>,
    packed: OnceLock<Packed>,
}

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Protobuf,
}

/// Where the documents are.
struct Index {
    text: Bytes,
    etag: HeaderValue,
}

/// Answers a path below `/openapi/`, by whatever method it is asked for.
pub(crate) async fn answer(call: &Call, path: &str) -> Response<Body> {
    let has_remotes = !call.state.remotes.table().is_empty();
    if has_remotes && let Some(answer) = remote::answer(call, path).await {
        return answer;
    }
    let documents = call.state.openapi.about(&call.state.resources);
    let (making, wanted) = (Arc::clone(&documents), path.to_owned());
    let protobuf = accepted(call, Version::Two) == Some(Form::Protobuf);
    // Making a document takes some milliseconds, which no other request should wait for.
    let made = tokio::task::spawn_blocking(move || making.prepare(&wanted, protobuf)).await;
    if made.is_err() {
        let text = "Internal error occurred: a document could not be made; see the log";
        return call.fail(Failure::new(500, "InternalError", text));
    }
    if has_remotes && let Some(answer) = documents.merged(call, path).await {
        return answer;
    }
    documents.respond(call, path)
}

impl OpenApi {
    /// The documents about a catalogue: those kept, or new ones if others are served now.
    fn about(&self, resources: &Resources) -> Arc<Documents> {
        let catalogue = resources.catalogue();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(known) if Arc::ptr_eq(&known.catalogue, &catalogue) => Arc::clone(known),
            before => {
                let source = Source {
                    resources: resources.clone(),
                    runtime: tokio::runtime::Handle::current(),
                };
                let made = Documents::new(&catalogue, source, before.as_deref());
                Arc::clone(kept.insert(Arc::new(made)))
            }
        }
    }
}

impl Documents {
    fn new(catalogue: &Arc<Catalogue>, custom: Source, before: Option<&Documents>) -> Documents {
        let before: HashMap<String, &Arc<Document>> = before
            .into_iter()
            .flat_map(|before| &before.documents)
            .map(|document| (document.place.name(), document))
            .collect();
        let issuer = custom.resources.issuer();
        let openid = issuer.is_some_and(|issuer| issuer.configuration("").is_some());
        let places = document::places(catalogue, openid);
        let documents = places.into_iter().map(|place| {
            let kinds: Vec<Arc<Kind>> = place.kinds(catalogue).cloned().collect();
            match before.get(&place.name()) {
                Some(known) if known.is_about(&kinds) => Arc::clone(known),
                _ => Arc::new(Document {
                    place,
                    kinds,
                    hash: OnceLock::new(),
                    packed: OnceLock::new(),
                }),
            }
        });
        Documents {
            catalogue: Arc::clone(catalogue),
            custom,
            documents: documents.collect(),
            index: OnceLock::new(),
            version2: OnceLock::new(),
            version2_protobuf: OnceLock::new(),
        }
    }

    /// Makes what a path needs, unless it is there already.
    fn prepare(&self, path: &str, protobuf: bool) {
        match path {
            "/openapi/v2" => {
                self.version2();
                if protobuf {
                    self.version2_protobuf();
                }
            }
            "/openapi/v3" | "/openapi/v3/" => {
                self.index();
            }
            _ => {
                if let Some(document) = self.document(path) {
                    self.packed(document);
                }
            }
        }
    }

    /// The answer to a path with what other servers say about themselves; `None` if they do not.
    async fn merged(&self, call: &Call, path: &str) -> Option<Response<Body>> {
        match path {
            "/openapi/v3" | "/openapi/v3/" => {
                let ours = self.index().text.clone();
                let (text, etag) = remote::merge_index(call, &ours).await?;
                let text = text.into();
                Some(Index { text, etag }.respond(call))
            }
            "/openapi/v2" if accepted(call, Version::Two) == Some(Form::Json) => {
                let ours = unpack(self.version2());
                let (text, _) = remote::merge_version2(call, &ours).await?;
                let packed = Packed::of(|out| out.write_all(&text));
                Some(serve(call, Version::Two, with_etag, &packed))
            }
            _ => None,
        }
    }

    fn respond(&self, call: &Call, path: &str) -> Response<Body> {
        match path {
            "/openapi/v2" => {
                // Both forms have one tag, as upstream has it: `Vary` tells them apart.
                let etag = self.version2().etag.clone();
                let packed = match accepted(call, Version::Two) {
                    Some(Form::Protobuf) => self.version2_protobuf(),
                    _ => self.version2(),
                };
                serve(call, Version::Two, |_| with_etag(&etag), packed)
            }
            "/openapi/v3" => self.index().respond(call),
            _ => match self.document(path) {
                Some(document) => self.serve_document(call, path, document),
                None => status(StatusCode::NOT_FOUND),
            },
        }
    }

    fn serve_document(&self, call: &Call, path: &str, document: &Document) -> Response<Body> {
        let packed = self.packed(document);
        let head = |etag: &HeaderValue| match call.query.text("hash") {
            None => with_etag(etag),
            Some(hash) if hash == packed.hash => {
                let mut answer = with_etag(etag);
                let headers = answer.headers_mut();
                let immutable = HeaderValue::from_static("public, immutable");
                headers.insert(header::CACHE_CONTROL, immutable);
                let expires = call.state.resources.now() + YEAR_SECONDS;
                if let Ok(expires) = HeaderValue::from_str(&http_date(expires)) {
                    headers.insert(header::EXPIRES, expires);
                }
                answer
            }
            Some(_) => moved(&format!("{path}?hash={}", packed.hash)),
        };
        serve(call, Version::Three, head, packed)
    }

    /// The document that a path below `/openapi/v3/` names.
    fn document(&self, path: &str) -> Option<&Document> {
        let name = path.strip_prefix("/openapi/v3/")?;
        let mut documents = self.documents.iter().map(|document| &**document);
        documents.find(|document| document.place.name() == name)
    }

    /// The definitions of everything, for the documents of version 2.
    fn all_definitions(&self) -> Definitions {
        let custom = self
            .catalogue
            .kinds()
            .iter()
            .filter(|kind| kind.is_custom());
        Definitions::new(&self.catalogue, Version::Two).with_custom(custom, &self.custom)
    }

    /// Writes a document of version 3.
    fn write(
        &self,
        document: &Document,
        builtin: &Definitions,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let place = &document.place;
        let custom = document.kinds.iter().filter(|kind| kind.is_custom());
        if custom.clone().next().is_none() {
            return place.write(&self.catalogue, builtin, out);
        }
        let definitions = builtin.with_custom(custom, &self.custom);
        place.write(&self.catalogue, &definitions, out)
    }

    fn packed<'a>(&'a self, document: &'a Document) -> &'a Packed {
        document.packed.get_or_init(|| {
            let definitions = Definitions::new(&self.catalogue, Version::Three);
            Packed::of(|out| self.write(document, &definitions, out))
        })
    }

    fn version2(&self) -> &Packed {
        self.version2.get_or_init(|| {
            let definitions = self.all_definitions();
            let places = self.documents.iter().map(|document| &document.place);
            Packed::of(|out| {
                document::write_all(places.clone(), &self.catalogue, &definitions, out)
            })
        })
    }

    fn version2_protobuf(&self) -> &Packed {
        self.version2_protobuf.get_or_init(|| {
            let definitions = self.all_definitions();
            let places = self.documents.iter().map(|document| &document.place);
            Packed::of(|out| {
                document::write_all_protobuf(places.clone(), &self.catalogue, &definitions, out)
            })
        })
    }

    /// The index needs the hash of every document, but keeps none of them.
    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let definitions = OnceLock::new();
            let mut paths = Map::with_capacity(self.documents.len());
            for document in &self.documents {
                let hash = document.hash.get_or_init(|| match document.packed.get() {
                    Some(packed) => packed.hash.clone(),
                    None => {
                        let definitions = definitions
                            .get_or_init(|| Definitions::new(&self.catalogue, Version::Three));
                        pack::hash(|out| self.write(document, definitions, out))
                    }
                });
                let name = document.place.name();
                let url = format!("/openapi/v3/{name}?hash={hash}");
                paths.insert(name.as_str(), value!({"serverRelativeURL": url}));
            }
            let text = json::to_vec(&value!({"paths": paths}));
            let etag = etag(&text);
            Index {
                text: text.into(),
                etag,
            }
        })
    }
}

impl Document {
    /// Whether it is about exactly these kinds.
    fn is_about(&self, kinds: &[Arc<Kind>]) -> bool {
        self.kinds.len() == kinds.len()
            && self
                .kinds
                .iter()
                .zip(kinds)
                .all(|(left, right)| Arc::ptr_eq(left, right))
    }
}

impl Index {
    fn respond(&self, call: &Call) -> Response<Body> {
        let mut answer = with_etag(&self.etag);
        if is_known(call, &self.etag) {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            return answer;
        }
        *answer.body_mut() = Body::full(self.text.clone());
        answer
            .headers_mut()
            .insert(header::CONTENT_TYPE, PLAIN_TEXT);
        answer
    }
}

/// Serves a document; `head` makes the answer that it goes into, or one that redirects.
fn serve(
    call: &Call,
    version: Version,
    head: impl FnOnce(&HeaderValue) -> Response<Body>,
    packed: &Packed,
) -> Response<Body> {
    let Some(form) = accepted(call, version) else {
        let mut refused = status(StatusCode::NOT_ACCEPTABLE);
        vary(&mut refused, version);
        return refused;
    };
    let mut answer = head(&packed.etag);
    vary(&mut answer, version);
    if answer.status() != StatusCode::OK {
        return answer;
    }
    if is_known(call, &packed.etag) {
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        return answer;
    }
    let headers = answer.headers_mut();
    let content_type = match form {
        Form::Json => JSON,
        Form::Protobuf => PROTOBUF,
    };
    headers.insert(header::CONTENT_TYPE, content_type);
    if takes_gzip(call) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        *answer.body_mut() = Body::full(packed.bytes.clone());
    } else {
        *answer.body_mut() = Body::full(unpack(packed));
    }
    answer
}

fn vary(answer: &mut Response<Body>, version: Version) {
    let names = match version {
        Version::Two => "Accept-Encoding, Accept",
        Version::Three => "Accept, Accept-Encoding",
    };
    let names = HeaderValue::from_static(names);
    answer.headers_mut().insert(header::VARY, names);
}

fn with_etag(etag: &HeaderValue) -> Response<Body> {
    let mut answer = status(StatusCode::OK);
    answer.headers_mut().insert(header::ETAG, etag.clone());
    answer
}

/// Sends the client to the document under its present hash.
fn moved(location: &str) -> Response<Body> {
    let mut answer = answer::text(
        StatusCode::MOVED_PERMANENTLY,
        format!("<a href=\"{location}\">Moved Permanently</a>.\n\n"),
    );
    let headers = answer.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, html);
    if let Ok(location) = HeaderValue::from_str(location) {
        headers.insert(header::LOCATION, location);
    }
    answer
}

fn status(code: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = code;
    answer
}

/// Whether the client has this text already.
fn is_known(call: &Call, etag: &HeaderValue) -> bool {
    let known = call.header(header::IF_NONE_MATCH).unwrap_or_default();
    let etag = etag.to_str().unwrap_or_default();
    known.split(',').map(str::trim).any(|tag| {
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        tag == "*" || tag == etag
    })
}

fn takes_gzip(call: &Call) -> bool {
    let accepted = call.header(header::ACCEPT_ENCODING).unwrap_or_default();
    accepted.split(',').any(|token| token.trim() == "gzip")
}

/// The form that the client likes best of those there are.
fn accepted(call: &Call, version: Version) -> Option<Form> {
    let accept = call.header(header::ACCEPT).unwrap_or("*/*");
    negotiate(accept, version)
}

fn negotiate(accept: &str, version: Version) -> Option<Form> {
    let mut clauses: Vec<(f64, usize, &str)> = accept
        .split(',')
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            let quality = quality.and_then(|quality| quality.parse().ok());
            (quality.unwrap_or(1.0), media.matches('*').count(), media)
        })
        .collect();
    // The most wanted first, and what is named before what is meant by a star.
    clauses.sort_by(|one, other| (other.0.total_cmp(&one.0)).then(one.1.cmp(&other.1)));
    clauses.iter().find_map(|(_, _, media)| match *media {
        "application/json" | "application/*" | "*/*" | "*" => Some(Form::Json),
        media if version == Version::Two && PROTOBUF_NAMES.contains(&media) => Some(Form::Protobuf),
        _ => None,
    })
}

/// A time as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(unix_seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    // The date comes out of the form that objects carry: `1994-11-06T08:49:37Z`.
    let text = object::time::Time::from_unix_seconds(unix_seconds).to_string();
    let day = usize::try_from(unix_seconds.div_euclid(86_400).rem_euclid(7)).unwrap_or_default();
    let (date, clock) = text
        .trim_end_matches('Z')
        .split_once('T')
        .unwrap_or_default();
    let mut parts = date.split('-');
    let (year, month, date) = (parts.next(), parts.next(), parts.next());
    let month: usize = month.and_then(|month| month.parse().ok()).unwrap_or(1);
    let month = MONTHS
        .get(month.wrapping_sub(1))
        .copied()
        .unwrap_or_default();
    let (year, date) = (year.unwrap_or_default(), date.unwrap_or_default());
    format!("{}, {date} {month} {year} {clock} GMT", DAYS[day])
}

#[cfg(test)]
mod tests;
