//! A record of who asked for what, and what became of it.
//!
//! A `Trail` is made for each request that the policy wants recorded, and follows it to its
//! answer. Without a policy there is none, and nothing is paid.
//!
//! Rules: credentials never enter an event; the bodies of secrets and token reviews only at level
//! RequestResponse; tokens inside bodies never. Contract: `endpoints/filters/audit.go` of the API
//! server.

mod event;
mod log;
mod policy;
mod webhook;

use std::borrow::Cow;
use std::io;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use auth::User;
use bytes::Bytes;
use flate2::read::GzDecoder;
use futures_util::Stream;
use hyper::Response;
use hyper::header::{self, HeaderMap, HeaderValue};
use object::{Map, Value, json, yaml};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use crate::body::Body;
use crate::protobuf;
use crate::request::{RequestInfo, ResourcePath};
use event::Answered;
pub use log::LogOptions;
use log::Message;
pub use policy::Policy;
use policy::{Decision, Level, Stage};
pub use webhook::WebhookOptions;

/// A longer name of a client is cut.
const USER_AGENT_BYTES_MAX: usize = 1024;
/// How long the last events may take when the server stops.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// The names of annotations that hold the patches of webhooks begin so.
const PATCHES: &str = "patch.webhook.admission.k8s.io/";
/// What takes longer is told with its latency.
const SLOW: Duration = Duration::from_millis(500);
/// A compressed answer is read up to here.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The policy cannot be used.
    #[error("the audit policy cannot be used: {0}")]
    Policy(String),
    /// The log cannot be opened.
    #[error("cannot open the audit log {}: {source}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The webhook's configuration cannot be used.
    #[error("the audit webhook {} cannot be used: {detail}", path.display())]
    Webhook {
        /// The file.
        path: PathBuf,
        /// Why not.
        detail: String,
    },
}

/// Records requests.
pub struct Audit {
    policy: Policy,
    log: Option<mpsc::Sender<Message>>,
    webhook: Option<mpsc::Sender<Message>>,
    events: AtomicU64,
    dropped: Arc<AtomicU64>,
}

impl Audit {
    /// Records what `policy` asks for. Needs a runtime for the webhook.
    ///
    /// # Errors
    /// The log or the webhook's configuration cannot be opened.
    pub fn new(
        policy: Policy,
        log: Option<LogOptions>,
        webhook: Option<WebhookOptions>,
    ) -> Result<Audit, Error> {
        let dropped = Arc::new(AtomicU64::new(0));
        Ok(Audit {
            policy,
            log: log.map(log::start).transpose()?,
            webhook: webhook
                .map(|options| webhook::start(options, Arc::clone(&dropped)))
                .transpose()?,
            events: AtomicU64::new(0),
            dropped,
        })
    }

    /// Begins to record a request, if the policy wants it.
    pub(crate) async fn begin(self: &Arc<Audit>, arrival: Arrival<'_>) -> Option<Arc<Trail>> {
        let decision = self
            .policy
            .decide(arrival.user.map(|it| &**it), arrival.info);
        if decision.level == Level::None {
            return None;
        }
        let known = arrival.user.is_some();
        let trail = Arc::new(Trail::new(Arc::clone(self), decision, arrival));
        if known {
            trail.record(Stage::RequestReceived, None).await;
        }
        Some(trail)
    }

    /// Waits until everything so far has been written.
    pub(crate) async fn flush(&self) {
        for queue in [&self.log, &self.webhook].into_iter().flatten() {
            let (done, written) = oneshot::channel();
            let flushed = async {
                if queue.send(Message::Flush(done)).await.is_ok() {
                    // Nothing is sent if the writer is gone.
                    let _ = written.await;
                }
            };
            if tokio::time::timeout(FLUSH_TIMEOUT, flushed).await.is_err() {
                warn!("the last audit events could not be written in time");
            }
        }
    }

    /// Events recorded and events let go.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (
            self.events.load(Ordering::Relaxed),
            self.dropped.load(Ordering::Relaxed),
        )
    }

    /// Hands an event to those that wait for no one; `true` if the log has to be waited for.
    fn offer(&self, line: &[u8]) {
        self.events.fetch_add(1, Ordering::Relaxed);
        if let Some(webhook) = &self.webhook
            && webhook.try_send(Message::Line(line.to_vec())).is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A request that has just come.
pub(crate) struct Arrival<'a> {
    pub info: &'a RequestInfo,
    /// Unknown if the credentials were wrong.
    pub user: Option<&'a Arc<User>>,
    pub id: &'a HeaderValue,
    pub uri: &'a str,
    pub peer: IpAddr,
    pub headers: &'a HeaderMap,
    /// How the user was made out.
    pub authenticator: &'static str,
    /// What is to be told of the user's token.
    pub note: Option<(&'static str, String)>,
}

/// What is known of a request that is being recorded.
pub(crate) struct Trail {
    audit: Arc<Audit>,
    decision: Decision,
    id: String,
    uri: String,
    verb: &'static str,
    is_long_running: bool,
    user: Option<Arc<User>>,
    path: Option<ResourcePath>,
    addresses: Vec<String>,
    user_agent: String,
    received: String,
    began: Instant,
    notes: Mutex<Notes>,
}

/// What is learnt on the way.
#[derive(Default)]
pub(crate) struct Notes {
    impersonated: Option<Arc<User>>,
    impersonation_constraint: Option<&'static str>,
    annotations: Vec<(Cow<'static, str>, String)>,
    request: Option<Value>,
}

impl Trail {
    fn new(audit: Arc<Audit>, decision: Decision, arrival: Arrival<'_>) -> Trail {
        let agent = arrival.headers.get(header::USER_AGENT);
        let agent = agent.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let mut user_agent = agent.unwrap_or_default();
        if user_agent.len() > USER_AGENT_BYTES_MAX {
            user_agent.truncate(user_agent.floor_char_boundary(USER_AGENT_BYTES_MAX));
            user_agent.push_str("...TRUNCATED");
        }
        let authenticator = ("windlass/authenticator", arrival.authenticator.to_owned());
        let annotations = [authenticator].into_iter().chain(arrival.note);
        let notes = Notes {
            annotations: annotations
                .map(|(key, value)| (key.into(), value))
                .collect(),
            ..Notes::default()
        };
        Trail {
            audit,
            decision,
            id: arrival.id.to_str().unwrap_or_default().to_owned(),
            uri: arrival.uri.to_owned(),
            verb: arrival.info.verb,
            is_long_running: arrival.info.is_long_running(),
            user: arrival.user.cloned(),
            path: arrival.info.resource.clone(),
            addresses: addresses(arrival.headers, arrival.peer),
            user_agent,
            received: timestamp(),
            began: Instant::now(),
            notes: Mutex::new(notes),
        }
    }

    /// The user acts as another, by a constrained way or by the old one.
    pub(crate) fn impersonates(&self, user: &Arc<User>, constraint: Option<&'static str>) {
        let mut notes = self.notes();
        notes.impersonated = Some(Arc::clone(user));
        notes.impersonation_constraint = constraint;
    }

    /// Whether the user may do this, and why.
    pub(crate) fn decided(&self, decision: &'static str, reason: String) {
        let annotations = &mut self.notes().annotations;
        annotations.push(("authorization.k8s.io/decision".into(), decision.to_owned()));
        annotations.push(("authorization.k8s.io/reason".into(), reason));
    }

    /// What admission has to say about the request.
    pub(crate) fn admitted(&self, annotations: Vec<(String, String)>) {
        let mut annotations = annotations;
        // What webhooks change is a part of the object, and shown where the object is.
        annotations.retain(|(name, _)| self.shows_request() || !name.starts_with(PATCHES));
        let annotations = annotations.into_iter();
        let annotations = annotations.map(|(name, value)| (name.into(), value));
        self.notes().annotations.extend(annotations);
    }

    /// The body of the request.
    pub(crate) fn body(&self, content_type: Option<&str>, bytes: &Bytes) {
        let tree = tree(content_type.unwrap_or_default(), bytes);
        let Some(mut tree) = tree else { return };
        if let (Some(path), Value::Object(object)) = (&self.path, &mut tree) {
            name_kind(path, self.verb, object);
        }
        self.soften(&mut tree);
        self.notes().request = Some(tree);
    }

    /// Whether the body of the request may be seen.
    fn shows_request(&self) -> bool {
        match self.decision.level {
            Level::None | Level::Metadata => false,
            Level::Request => !self.is_secret(),
            Level::RequestResponse => true,
        }
    }

    /// Whether bodies here carry what opens other doors.
    fn is_secret(&self) -> bool {
        self.path.as_ref().is_some_and(|path| {
            let name = (path.group.as_str(), path.resource.as_str());
            matches!(
                name,
                ("", "secrets") | ("authentication.k8s.io", "tokenreviews")
            ) || path.subresource == "token"
        })
    }

    /// Takes out what no event shows.
    fn soften(&self, tree: &mut Value) {
        let Value::Object(object) = tree else { return };
        if self.is_secret() {
            for part in ["spec", "status"] {
                if let Some(part) = object.get_mut(part).and_then(Value::as_object_mut) {
                    part.remove("token");
                }
            }
        }
        if self.decision.omit_managed_fields {
            drop_managed_fields(object);
        }
    }

    /// Records the answer, and lets it go on its way.
    pub(crate) async fn finish(self: Arc<Self>, mut answer: Response<Body>) -> Response<Body> {
        let is_stream = matches!(answer.body(), Body::Stream(_));
        let answered = match is_stream {
            true => Answered::new(answer.status()),
            false => self.read(&mut answer),
        };
        if self.is_long_running || self.user.is_none() {
            self.record(Stage::ResponseStarted, Some(&answered)).await;
        }
        // Whoever does not get in is told so before the request has begun: it has no end.
        if self.user.is_none() {
            return answer;
        }
        if is_stream {
            let body = std::mem::replace(answer.body_mut(), Body::empty());
            *answer.body_mut() = self.follow(body, answered);
            return answer;
        }
        self.note_latency();
        self.record(Stage::ResponseComplete, Some(&answered)).await;
        answer
    }

    /// What is told of an answer.
    fn read(&self, answer: &mut Response<Body>) -> Answered {
        let mut answered = Answered::new(answer.status());
        // Other paths answer with texts and documents that are no objects.
        let is_object = self.path.is_some() || self.uri.starts_with("/api");
        let whole = is_object && self.decision.level == Level::RequestResponse;
        if whole || answered.code >= 400 || self.verb.starts_with("delete") {
            let mut tree = answer_tree(answer);
            if let Some(tree) = &mut tree {
                self.soften(tree);
            }
            answered.status = match &tree {
                Some(Value::Object(map)) if is_status(map) => Some(map.clone()),
                _ => None,
            };
            answered.object = tree;
        }
        answered
    }

    /// Tells how long a slow request took; those that last are meant to be slow.
    fn note_latency(&self) {
        let elapsed = self.began.elapsed();
        if elapsed <= SLOW || self.is_long_running {
            return;
        }
        let nanos = i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX);
        let text = object::time::go_duration_print(nanos);
        let key = "apiserver.latency.k8s.io/total";
        self.notes().annotations.push((key.into(), text));
    }

    /// Records that the server failed.
    pub(crate) async fn panicked(&self) {
        let mut status = Map::new();
        status.insert("status", "Failure".into());
        status.insert("reason", "InternalError".into());
        let answered = Answered {
            code: 500,
            status: Some(status),
            object: None,
        };
        self.record(Stage::Panic, Some(&answered)).await;
    }

    /// A body that records its end.
    fn follow(self: Arc<Self>, body: Body, answered: Answered) -> Body {
        match body {
            Body::Stream(frames) => Body::stream(Followed {
                frames,
                trail: self,
                answered,
            }),
            other => other,
        }
    }

    async fn record(&self, stage: Stage, answered: Option<&Answered>) {
        let Some(line) = self.line(stage, answered) else {
            return;
        };
        self.audit.offer(&line);
        if let Some(log) = &self.audit.log
            && log.send(Message::Line(line)).await.is_err()
        {
            warn!("the audit log has ended");
        }
    }

    /// Like `record` where nothing can wait: an event for which there is no room is let go.
    fn record_now(&self, stage: Stage, answered: Option<&Answered>) {
        let Some(line) = self.line(stage, answered) else {
            return;
        };
        self.audit.offer(&line);
        if let Some(log) = &self.audit.log
            && log.try_send(Message::Line(line)).is_err()
        {
            self.audit.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn line(&self, stage: Stage, answered: Option<&Answered>) -> Option<Vec<u8>> {
        if self.decision.omit_stages.contains(&stage) {
            return None;
        }
        let now = if stage == Stage::RequestReceived {
            self.received.clone()
        } else {
            timestamp()
        };
        Some(event::write(self, &self.notes(), stage, &now, answered))
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream whose end is recorded, however it comes.
struct Followed {
    frames: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    trail: Arc<Trail>,
    answered: Answered,
}

impl Stream for Followed {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.frames.as_mut().poll_next(context)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let stage = Stage::ResponseComplete;
        self.trail.record_now(stage, Some(&self.answered));
    }
}

/// The object of an answer.
fn answer_tree(answer: &mut Response<Body>) -> Option<Value> {
    let bytes = answer.body_mut().whole()?;
    let text = |name| {
        let value = answer.headers().get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    };
    if text(header::CONTENT_ENCODING) == "gzip" {
        let mut plain = Vec::new();
        let mut decoder = GzDecoder::new(&bytes[..]).take(ANSWER_BYTES_MAX);
        decoder.read_to_end(&mut plain).ok()?;
        return tree(text(header::CONTENT_TYPE), &plain);
    }
    tree(text(header::CONTENT_TYPE), &bytes)
}

fn tree(content_type: &str, bytes: &[u8]) -> Option<Value> {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        protobuf::CONTENT_TYPE => protobuf::to_value(bytes),
        _ if media.ends_with("yaml") => yaml::parse(bytes).ok(),
        _ if media.ends_with("json") || media.is_empty() => json::parse(bytes).ok(),
        _ => None,
    }
}

fn is_status(object: &Map) -> bool {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    (text("apiVersion"), text("kind")) == (Some("v1"), Some("Status"))
}

/// Bodies need not say what they are: then the path does.
fn name_kind(path: &ResourcePath, verb: &str, object: &mut Map) {
    if object.contains_key("kind") || verb == "patch" {
        return;
    }
    let catalogue = kinds::Catalogue::builtin();
    let kind = catalogue.resource(&path.group, &path.version, &path.resource);
    match kind {
        _ if verb.starts_with("delete") => {
            object.insert("kind", "DeleteOptions".into());
            object.insert("apiVersion", "meta.k8s.io/__internal".into());
        }
        Some(kind) if path.subresource.is_empty() => {
            object.insert("kind", kind.kind.clone().into());
            object.insert("apiVersion", kind.api_version().into());
        }
        _ => {}
    }
}

fn drop_managed_fields(object: &mut Map) {
    let clean = |object: &mut Map| {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata {
            metadata.remove("managedFields");
        }
    };
    clean(object);
    for (list, part) in [("items", None), ("rows", Some("object"))] {
        let items = object.get_mut(list).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            let item = match part {
                Some(part) => item.get_mut(part),
                None => Some(item),
            };
            if let Some(item) = item.and_then(Value::as_object_mut) {
                clean(item);
            }
        }
    }
}

/// Where a request came from: what proxies say, and who connected.
fn addresses(headers: &HeaderMap, peer: IpAddr) -> Vec<String> {
    let text = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let mut out: Vec<String> = Vec::new();
    let forwarded = text("x-forwarded-for");
    let named = forwarded.split(',').map(str::to_owned);
    for part in named.chain([text("x-real-ip")]) {
        if let Ok(address) = part.trim().parse::<IpAddr>() {
            let address = address.to_string();
            if !out.contains(&address) {
                out.push(address);
            }
        }
    }
    let peer = peer.to_canonical().to_string();
    if out.last() != Some(&peer) {
        out.push(peer);
    }
    out
}

/// The time of day with microseconds.
fn timestamp() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let text = object::time::Time::from_unix_seconds(seconds).to_string();
    format!(
        "{}.{:06}Z",
        text.trim_end_matches('Z'),
        since.subsec_micros()
    )
}
