//! What the servers of other APIs say about themselves in OpenAPI, beside our own documents.
//!
//! Nothing is asked for before somebody wants to know. Version 3 has one document for each group
//! and version: the index names theirs, and a document is passed on as it comes. Version 2 is one
//! document, into which their paths and definitions are taken; ours count where both define one.
//! Contract: `kube-aggregator/pkg/controllers/openapi` and `openapiv3`.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use object::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::{ASK_TIMEOUT, Remote, Table};
use crate::answer;
use crate::body::Body;
use crate::discovery::etag;
use crate::handle::Call;

/// What another server said is not asked for again before this time has passed.
const FRESH: Duration = Duration::from_secs(60);
const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What a server said, and when.
#[derive(Default)]
pub(crate) struct Told {
    index: Mutex<Option<(Instant, Value)>>,
    version2: Mutex<Option<(Instant, Value)>>,
}

/// Which document is asked for.
#[derive(Clone, Copy)]
enum Which {
    Index,
    Version2,
}

/// Answers a path below `/openapi/` if other servers have a say in it; `ours` is the text of our
/// own document of that path.
pub(crate) async fn answer(call: &Call, path: &str) -> Option<Response<Body>> {
    let table = call.state.remotes.table();
    let name = path.strip_prefix("/openapi/v3/").unwrap_or_default();
    let place = name.strip_prefix("apis/").and_then(|it| it.split_once('/'));
    let (group, version) = place?;
    let key = (group.to_owned(), version.to_owned());
    let remote = table.get(&key).filter(|remote| remote.api.available)?;
    let target = call.uri.path_and_query().map_or(path, |it| it.as_str());
    let fetched = remote.fetch_from(call, target, DOCUMENT_BYTES_MAX).await;
    Some(match fetched {
        Ok((code, body)) => {
            let mut answer = Response::new(Body::full(body));
            *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
            let json = HeaderValue::from_static("application/json");
            answer.headers_mut().insert(header::CONTENT_TYPE, json);
            answer
        }
        Err(error) => {
            let text = format!("error trying to reach service: {error}\n");
            answer::text(StatusCode::SERVICE_UNAVAILABLE, text)
        }
    })
}

/// Our index of documents with those of other servers; `None` if there are none.
pub(crate) async fn merge_index(call: &Call, ours: &[u8]) -> Option<(Vec<u8>, HeaderValue)> {
    let mut index = json::parse(ours).ok()?;
    let paths = index.get_mut("paths")?.as_object_mut()?;
    let mut changed = false;
    for remote in available(&call.state.remotes.table()) {
        let name = format!("apis/{}/{}", remote.api.group, remote.api.version);
        let told = remote.told(call, Which::Index).await;
        let entry = told.as_ref().and_then(|told| told.at(&["paths", &name]));
        if let Some(entry) = entry {
            paths.insert(name.as_str(), entry.clone());
            changed = true;
        }
    }
    finished(index, changed)
}

/// Our document of version 2 with what other servers add to it; `None` if they add nothing.
pub(crate) async fn merge_version2(call: &Call, ours: &[u8]) -> Option<(Vec<u8>, HeaderValue)> {
    let table = call.state.remotes.table();
    let mut told = Vec::new();
    for remote in available(&table) {
        if let Some(document) = remote.told(call, Which::Version2).await {
            let prefix = format!("/apis/{}/{}", remote.api.group, remote.api.version);
            told.push((prefix, document));
        }
    }
    if told.is_empty() {
        return None;
    }
    let mut document = json::parse(ours).ok()?;
    let mut changed = false;
    for (prefix, theirs) in told {
        let is_theirs = |path: &str| {
            let rest = path.strip_prefix(&prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        for (field, any) in [("paths", false), ("definitions", true)] {
            let (Some(from), Some(into)) = (
                theirs.get(field).and_then(Value::as_object),
                document.get_mut(field).and_then(Value::as_object_mut),
            ) else {
                continue;
            };
            changed |= take(into, from, |key| any || is_theirs(key));
        }
    }
    finished(document, changed)
}

/// Takes what is wanted and not there yet.
fn take(into: &mut Map, from: &Map, wanted: impl Fn(&str) -> bool) -> bool {
    let mut changed = false;
    for (key, value) in from.iter() {
        if wanted(key) && !into.contains_key(key) {
            into.insert(key.clone(), value.clone());
            changed = true;
        }
    }
    changed
}

fn finished(document: Value, changed: bool) -> Option<(Vec<u8>, HeaderValue)> {
    changed.then(|| {
        let text = json::to_vec(&document);
        let etag = etag(&text);
        (text, etag)
    })
}

fn available(table: &Table) -> Vec<Arc<Remote>> {
    let remotes = table.values().filter(|remote| remote.api.available);
    remotes.cloned().collect()
}

impl Remote {
    /// A document of the server's own, asked for unless it was a short while ago.
    async fn told(&self, call: &Call, which: Which) -> Option<Value> {
        let (kept, path) = match which {
            Which::Index => (&self.openapi.index, "/openapi/v3"),
            Which::Version2 => (&self.openapi.version2, "/openapi/v2"),
        };
        // Whoever comes while it is asked waits for the answer.
        let mut kept = kept.lock().await;
        if let Some((when, document)) = &*kept
            && when.elapsed() < FRESH
        {
            return Some(document.clone()).filter(|it| !it.is_null());
        }
        let fetched = self.fetch_from(call, path, DOCUMENT_BYTES_MAX).await;
        let document = match fetched {
            Ok((200, body)) => json::parse(&body).unwrap_or_default(),
            Ok((code, _)) => {
                debug!(api = %self.api.name, code, path, "no document of another API");
                Value::Null
            }
            Err(error) => {
                debug!(api = %self.api.name, error, path, "no document of another API");
                Value::Null
            }
        };
        *kept = Some((Instant::now(), document.clone()));
        Some(document).filter(|it| !it.is_null())
    }

    async fn fetch_from(
        &self,
        call: &Call,
        path: &str,
        bytes_max: usize,
    ) -> Result<(u16, bytes::Bytes), String> {
        let place = call.state.resources.locate_api(&self.api).await;
        let place = place.map_err(|unavailable| unavailable.message)?;
        let fetching = self.fetch(&place, path, bytes_max);
        let fetched = timeout(ASK_TIMEOUT, fetching).await;
        fetched.unwrap_or_else(|_| Err("it does not answer in time".to_owned()))
    }
}
