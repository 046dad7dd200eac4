//! The life of a request, top to bottom. Read this first.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use auth::{Attributes, Credentials, Peer, Refusal, User};
use bytes::Bytes;
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri};
use kinds::{Catalogue, Kind};
use resources::error::Subject;
use tracing::{debug, error};

use crate::alarm::Alarm;
use crate::answer::{self, Failure};
use crate::audit::{self, Trail};
use crate::body::Body;
use crate::flow::Asked;
use crate::lanes::{Errand, Place};
use crate::metrics::{self, Labels};
use crate::negotiate::{self, is_pretty};
use crate::openid::OpenId;
use crate::query::Query;
use crate::request::{BadPath, RequestInfo, ResourcePath};
use crate::serve::Stranger;
use crate::state::State;
use crate::{aggregate, debugging, health, impersonation, openapi, verbs, websocket};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Said to whoever sends a token that is not taken for one.
const SPACED_TOKEN: &str = "299 - \"the provided Authorization header contains extra space before \
                            the bearer token, and is ignored\"";
/// A body up to this size is worked through in well under a millisecond.
const SMALL_BYTES_MAX: u64 = 64 * 1024;
/// A request that is not a watch is given up after this long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Who asks, until that is found out.
static NOBODY: LazyLock<Arc<User>> = LazyLock::new(|| Arc::new(User::anonymous()));

/// What the verbs know of a request.
pub(crate) struct Call {
    pub state: Arc<State>,
    pub user: Arc<User>,
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub query: Query,
    pub incoming: Option<Incoming>,
    /// The connection itself, if the client wants to go on in another protocol.
    pub upgrade: Option<OnUpgrade>,
    /// Follows the request, if it is recorded.
    pub trail: Option<Arc<Trail>>,
    /// Tells when the request has taken too long.
    alarm: Alarm,
}

impl Call {
    /// A header as text.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Shows the request's body to whoever records it.
    pub(crate) fn note_body(&self, bytes: &Bytes) {
        if let Some(trail) = &self.trail
            && !bytes.is_empty()
        {
            trail.body(self.header(header::CONTENT_TYPE), bytes);
        }
    }

    /// Whether a person reads the answer.
    pub(crate) fn is_pretty(&self) -> bool {
        let user_agent = self.header(header::USER_AGENT).unwrap_or_default();
        is_pretty(self.query.text("pretty"), false, user_agent)
    }

    /// Answers with a failure.
    pub(crate) fn fail(&self, failure: impl Into<Failure>) -> Response<Body> {
        failure
            .into()
            .answer(self.header(header::ACCEPT), self.is_pretty())
    }
}

/// What the connection tells of a request.
pub(crate) struct Arrival {
    /// Who proved by a certificate who they are.
    pub peer: Option<Arc<Peer>>,
    /// Where it comes from.
    pub from: IpAddr,
    /// Where the connection is, if it can be elsewhere.
    pub place: Option<Arc<Place>>,
    /// What wakes the task that answers.
    pub alarm: Alarm,
}

/// Answers a request.
pub(crate) async fn handle(
    state: Arc<State>,
    arrival: Arrival,
    request: Request<Incoming>,
) -> Response<Body> {
    let began = Instant::now();
    let _under_way = state.metrics.enter();
    let audit_id = request
        .headers()
        .get(&AUDIT_ID)
        .cloned()
        .unwrap_or_else(|| {
            HeaderValue::from_str(&resources::ids::uuid()).expect("a uuid is header text")
        });
    let head = request.method() == Method::HEAD;
    let mut labels = Labels::default();
    let mut trail = None;
    // A panic costs this request, never the process.
    let answered = {
        let answering = pin!(answer_to(
            &state,
            arrival,
            &audit_id,
            request,
            &mut labels,
            &mut trail
        ));
        AssertUnwindSafe(answering).catch_unwind().await
    };
    if let Some(trail) = trail.filter(|_| answered.is_err()) {
        trail.panicked().await;
    }
    let mut answer = answered.unwrap_or_else(|_| {
        error!(audit_id = ?audit_id, "a request panicked");
        let text = "Internal error occurred: the server met a defect in itself; see its log";
        Failure::new(500, "InternalError", text).answer(None, false)
    });
    if head {
        *answer.body_mut() = Body::empty();
    }
    let headers = answer.headers_mut();
    headers.insert(AUDIT_ID, audit_id);
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-cache, private"));
    labels.code = answer.status().as_u16();
    state.metrics.count(labels, began.elapsed());
    answer
}

async fn answer_to(
    state: &Arc<State>,
    arrival: Arrival,
    audit_id: &HeaderValue,
    request: Request<Incoming>,
    labels: &mut Labels,
    trail: &mut Option<Arc<Trail>>,
) -> Response<Body> {
    let (mut parts, incoming) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let info = RequestInfo::new(&parts.method, parts.uri.path(), &query);
    let mut call = Call {
        state: Arc::clone(state),
        user: Arc::clone(&NOBODY),
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        query,
        incoming: Some(incoming),
        upgrade: parts.extensions.remove(),
        trail: None,
        alarm: arrival.alarm,
    };
    let info = match info {
        Ok(info) => info,
        Err(bad) => return refuse_path(&call, &bad),
    };
    labels.verb = info.verb;
    if let Some(place) = &arrival.place {
        place.suit(errand(&call, &info)).await;
    }
    if let Err(failure) = websocket::take_token(&mut call.headers) {
        return call.fail(failure);
    }
    let with_token = call.headers.contains_key(header::AUTHORIZATION);
    let spaced = call
        .header(header::AUTHORIZATION)
        .is_some_and(auth::is_ignored_bearer);
    let known = authenticate(&mut call, arrival.peer.as_deref(), &info.path).await;
    if let Some(audit) = &state.audit {
        let user = known.is_ok().then_some(&call.user);
        let begun = audit::Arrival {
            info: &info,
            user,
            id: audit_id,
            uri: call.uri.path_and_query().map_or("", |uri| uri.as_str()),
            peer: arrival.from,
            headers: &call.headers,
            authenticator: authenticator(user, with_token),
            note: user.and_then(|user| note_of_token(&call, user)),
        };
        call.trail = audit.begin(begun).await;
        trail.clone_from(&call.trail);
    }
    let (answer, is_stranger) = match known {
        Err(unknown) => {
            debug!(path = %info.path, why = %unknown, "credentials are wrong");
            let failure = Failure::new(401, "Unauthorized", "Unauthorized");
            (call.fail(failure), true)
        }
        Ok(()) => {
            let is_stranger = call.user.is_anonymous();
            (answer_user(&mut call, &info, labels).await, is_stranger)
        }
    };
    let mut answer = match trail.take() {
        None => answer,
        Some(trail) => trail.finish(answer).await,
    };
    if spaced {
        let headers = answer.headers_mut();
        headers.append(header::WARNING, HeaderValue::from_static(SPACED_TOKEN));
    }
    if is_stranger {
        mark_stranger(answer)
    } else {
        answer
    }
}

fn refuse_path(call: &Call, bad: &BadPath) -> Response<Body> {
    match bad {
        BadPath::Encoding => {
            let text = "the path of the request is not valid percent-encoded UTF-8";
            call.fail(Failure::new(400, "BadRequest", text))
        }
        BadPath::NoResource(path) => answer::no_request_info(&call.uri, path),
    }
}

/// What serving a request will be like, as far as its head tells.
fn errand(call: &Call, info: &RequestInfo) -> Errand {
    let is_small = match call.header(header::CONTENT_LENGTH) {
        Some(length) => matches!(length.parse::<u64>(), Ok(..=SMALL_BYTES_MAX)),
        None => !call.headers.contains_key(header::TRANSFER_ENCODING),
    };
    if info.resource.is_none() || info.is_long_running() || !is_small {
        return Errand::Long;
    }
    match info.verb {
        "create" | "update" | "patch" | "delete" => Errand::Write,
        "get" => Errand::Read,
        _ => Errand::Long,
    }
}

/// How a user was made out, for the record.
fn authenticator(user: Option<&Arc<User>>, with_token: bool) -> &'static str {
    match user {
        None => "none",
        Some(user) if user.is_anonymous() => "anonymous",
        Some(_) if with_token => "token",
        Some(_) => "certificate",
    }
}

/// What is to be told of the token that let a user in.
fn note_of_token(call: &Call, user: &User) -> Option<(&'static str, String)> {
    let resources = &call.state.resources;
    let header = call.header(header::AUTHORIZATION)?;
    resources
        .issuer()?
        .note(header, &user.name, resources.now())
}

/// Finds out who asks.
async fn authenticate(
    call: &mut Call,
    peer: Option<&Peer>,
    path: &str,
) -> Result<(), auth::Unauthorized> {
    let state = Arc::clone(&call.state);
    let proxied = peer
        .filter(|peer| peer.is_proxy)
        .and_then(|_| state.certificates.proxied(&call.headers));
    let credentials = Credentials {
        authorization: call.header(header::AUTHORIZATION),
        peer,
        proxied: proxied.as_ref(),
        path,
        now: state.resources.now(),
    };
    call.user = state.authenticator.authenticate(credentials).await?;
    state.certificates.clear(&mut call.headers);
    Ok(())
}

fn mark_stranger(mut answer: Response<Body>) -> Response<Body> {
    answer.extensions_mut().insert(Stranger);
    answer
}

/// Answers a request whose user is known.
async fn answer_user(call: &mut Call, info: &RequestInfo, labels: &mut Labels) -> Response<Body> {
    let resource = info.resource.as_ref().map(ResourcePath::with_subresource);
    let attributes = info.attributes(resource.as_deref());
    if let Err(failure) = impersonate(call, attributes).await {
        debug!(user = %call.user.name, path = %info.path, "refused to act as another");
        return call.fail(failure);
    }
    let limit = timeout(call, info);
    let time = match &limit {
        Ok(Some(limit)) => *limit,
        _ => REQUEST_TIMEOUT,
    };
    let asked = Asked {
        user: &call.user,
        info,
        query: &call.query,
        time,
    };
    let state = Arc::clone(&call.state);
    let admission = state.flow.admit(&state.resources, asked).await;
    let mut answer = match admission.refusal() {
        Some(refusal) => refusal,
        None => permitted(call, info, limit, labels).await,
    };
    admission.name(&mut answer);
    answer
}

/// Answers a request that has its turn, if its user may make it.
async fn permitted(
    call: &mut Call,
    info: &RequestInfo,
    limit: Result<Option<Duration>, Failure>,
    labels: &mut Labels,
) -> Response<Body> {
    let resource = info.resource.as_ref().map(ResourcePath::with_subresource);
    if let Err(failure) = check_permission(call, info.attributes(resource.as_deref())).await {
        debug!(user = %call.user.name, path = %info.path, "refused");
        return call.fail(failure);
    }
    match limit {
        Ok(None) => route(call, info, labels).await,
        Ok(Some(limit)) => {
            let accept = call.header(header::ACCEPT).map(str::to_owned);
            let alarm = call.alarm.clone();
            let routed = pin!(route(call, info, labels));
            alarm.within(limit, routed).await.unwrap_or_else(|| {
                let text = "Timeout: request did not complete within the allotted timeout";
                let failure = Failure::new(504, "Timeout", text).about(Subject::default());
                failure.answer(accept.as_deref(), false)
            })
        }
        Err(failure) => call.fail(failure),
    }
}

/// How long a request may take; `None` for those that last.
fn timeout(call: &Call, info: &RequestInfo) -> Result<Option<Duration>, Failure> {
    if info.verb == "watch" {
        return Ok(None);
    }
    let Some(text) = call.query.text("timeout") else {
        return Ok(Some(REQUEST_TIMEOUT));
    };
    let nanos = object::time::go_duration_parse(text).map_err(|error| {
        let text = format!("invalid timeout specified in the request URL - {error}");
        Failure::new(400, "BadRequest", text)
    })?;
    let nanos = u64::try_from(nanos).unwrap_or(0);
    let limit = if nanos == 0 {
        REQUEST_TIMEOUT
    } else {
        Duration::from_nanos(nanos)
    };
    Ok(Some(limit.min(REQUEST_TIMEOUT)))
}

/// Lets the user become whom the request's headers name, if they may.
async fn impersonate(call: &mut Call, attributes: Attributes<'_>) -> Result<(), Failure> {
    let wanted = impersonation::wanted(&call.headers)
        .map_err(|error| Failure::new(400, "BadRequest", error.to_string()).before_verbs())?;
    let Some(wanted) = wanted else { return Ok(()) };
    let resources = &call.state.resources;
    let actor = resources.act_as(&call.user, &wanted, attributes).await?;
    let actor = actor.map_err(forbidden)?;
    call.user = Arc::new(actor.user);
    if let Some(trail) = &call.trail {
        trail.impersonates(&call.user, actor.constraint);
    }
    Ok(())
}

async fn check_permission(call: &Call, attributes: Attributes<'_>) -> Result<(), Failure> {
    let resources = &call.state.resources;
    let permitted = resources.permit(&call.user, attributes).await?;
    if let Some(trail) = &call.trail {
        let reason = if call.user.is_master() {
            String::new()
        } else {
            resources.explain(&call.user, attributes).await?.reason
        };
        let decision = if permitted.is_ok() { "allow" } else { "forbid" };
        trail.decided(decision, reason);
    }
    permitted.map_err(forbidden)
}

fn forbidden(refusal: Refusal) -> Failure {
    let message = refusal.to_string();
    let subject = Subject {
        group: refusal.group,
        resource: refusal.resource,
        name: refusal.name,
    };
    Failure::new(403, "Forbidden", message)
        .about(subject)
        .before_verbs()
}

async fn route(call: &mut Call, info: &RequestInfo, labels: &mut Labels) -> Response<Body> {
    if let Some(remote) = call.state.remotes.of_path(&info.path) {
        return Box::pin(aggregate::answer(call, remote)).await;
    }
    let Some(path) = &info.resource else {
        if info.path.starts_with("/openapi/") {
            return Box::pin(openapi::answer(call, &info.path)).await;
        }
        return other_path(call, &info.path);
    };
    let catalogue = call.state.resources.catalogue();
    let kind = catalogue.resource(&path.group, &path.version, &path.resource);
    let Some(kind) = kind else {
        // Whoever serves custom kinds passes on what it does not know, and nobody is left.
        let mut groups = Catalogue::builtin().groups().iter();
        return match groups.find(|group| group.name == path.group) {
            Some(_) => call.fail(Failure::no_such_resource()),
            None => answer::page_not_found(),
        };
    };
    if kind.is_custom() && !kind.reaches(&path.namespace, info.verb) {
        return answer::page_not_found();
    }
    name_labels(labels, kind);
    verbs::answer(call, kind, info.verb, path).await
}

fn name_labels(labels: &mut Labels, kind: &Kind) {
    labels.group.clone_from(&kind.group);
    labels.version.clone_from(&kind.version);
    labels.resource.clone_from(&kind.resource);
}

fn other_path(call: &Call, path: &str) -> Response<Body> {
    let state = &call.state;
    if let Some(answer) = health::answer(state, path, &call.query) {
        return answer;
    }
    if let Some(answer) = debugging::answer(call, path) {
        return answer;
    }
    let catalogue = state.resources.catalogue();
    let discovery = &state.discovery;
    let remotes = state.remotes.table();
    let pretty = call.query.text("pretty");
    let found = discovery.answer(
        &catalogue,
        &remotes,
        &call.method,
        path,
        &call.headers,
        pretty,
    );
    if let Some(answer) = found {
        return answer;
    }
    if let Some(answer) = state.openid.as_ref().and_then(|it| it.answer(call, path)) {
        return answer;
    }
    match path {
        "/version" | "/version/" if call.method != Method::GET => {
            call.fail(Failure::method_not_allowed())
        }
        "/version" | "/version/" => match negotiate::accept_json(call.header(header::ACCEPT)) {
            Ok(()) => health::version(),
            Err(failure) => call.fail(failure),
        },
        "/metrics" => metrics::answer(state),
        "/metrics/slis" => metrics::answer_checks(state),
        "/" | "/index.html" => index(state),
        _ if path.starts_with("/api/") => call.fail(Failure::no_such_resource()),
        _ => answer::page_not_found(),
    }
}

/// `/`: the paths there are.
fn index(state: &State) -> Response<Body> {
    let openid: &[&str] = if state.openid.is_some() {
        &OpenId::PATHS
    } else {
        &[]
    };
    let mut paths: Vec<String> = openid.iter().copied().map(str::to_owned).collect();
    let always = [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/flagz",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/statusz",
        "/version",
    ];
    paths.extend(always.map(str::to_owned));
    paths.extend(health::paths());
    for group in state
        .resources
        .catalogue()
        .groups()
        .iter()
        .filter(|it| !it.name.is_empty())
    {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(
            group
                .versions
                .iter()
                .map(|version| format!("/apis/{}/{version}", group.name)),
        );
    }
    paths.sort();
    let paths: Vec<object::Value> = paths.into_iter().map(object::Value::from).collect();
    let document = object::value!({"paths": paths});
    let mut text = Vec::new();
    object::json::pretty(&object::json::to_vec(&document), &mut text);
    let mut answer = Response::new(Body::full(text.into()));
    *answer.status_mut() = StatusCode::OK;
    let content_type = HeaderValue::from_static("application/json");
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    answer
}
