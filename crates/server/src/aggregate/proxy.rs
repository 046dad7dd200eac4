//! Passing a request on to the server of another API, and its answer back.

use std::sync::Arc;

use admission::client::{describe_handshake, server_name};
use auth::User;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, Either, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tracing::debug;

use super::{Remote, dial_error};
use crate::answer;
use crate::body::Body;
use crate::handle::Call;

/// What is sent.
pub(super) type Outgoing = Either<Empty<Bytes>, Incoming>;

/// What an API says about its resources is no longer than this.
pub(super) const DISCOVERY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// What is about one connection and not about what is asked.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const REMOTE_PREFIX: &str = "x-remote-";
const REDIRECTED: &str = "the backend attempted to redirect this request, which is not permitted";

/// Answers with what another server says.
pub(crate) async fn answer(call: &mut Call, remote: Arc<Remote>) -> Response<Body> {
    if !remote.api.available {
        return unavailable("service unavailable");
    }
    let Ok(place) = call.state.resources.locate_api(&remote.api).await else {
        return unavailable("service unavailable");
    };
    let upgrade = call.upgrade.take().filter(|_| wants_upgrade(&call.headers));
    let sent = match forward(call, &remote, &place, upgrade.is_some()).await {
        Ok(sent) => sent,
        Err(error) => return unavailable(&format!("error trying to reach service: {error}")),
    };
    match (sent.status(), upgrade) {
        (StatusCode::SWITCHING_PROTOCOLS, Some(client)) => join(client, sent),
        (status, _) if status.is_redirection() && sent.headers().contains_key("location") => {
            let mut refused = Response::new(Body::full(REDIRECTED.into()));
            *refused.status_mut() = StatusCode::BAD_GATEWAY;
            refused
        }
        _ => passed_back(sent),
    }
}

fn unavailable(text: &str) -> Response<Body> {
    answer::text(StatusCode::SERVICE_UNAVAILABLE, format!("{text}\n"))
}

fn wants_upgrade(headers: &HeaderMap) -> bool {
    let connection = headers.get_all(header::CONNECTION).iter();
    let mut connection = connection.filter_map(|value| value.to_str().ok());
    connection.any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

async fn forward(
    call: &mut Call,
    remote: &Remote,
    place: &str,
    upgrade: bool,
) -> Result<Response<Incoming>, String> {
    let body = call.incoming.take();
    let body = body.map_or(Either::Left(Empty::new()), Either::Right);
    let target = call.uri.path_and_query();
    let target = target.map_or_else(|| call.uri.path().to_owned(), ToString::to_string);
    let mut request = Request::new(body);
    *request.method_mut() = call.method.clone();
    *request.uri_mut() = target.parse::<Uri>().map_err(|error| error.to_string())?;
    *request.headers_mut() = headers_for(&call.headers, &call.user, place, upgrade);
    if upgrade {
        // The connection becomes the client's own.
        let mut sender = remote.connect(place).await?;
        let sent = sender.send_request(request).await;
        return sent.map_err(|error| error.to_string());
    }
    remote.send(place, request).await
}

/// The headers of a request on its way to another server: who asks is said by us alone.
fn headers_for(given: &HeaderMap, user: &User, place: &str, upgrade: bool) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let ours = name == header::AUTHORIZATION
            || name == header::HOST
            || name.as_str().starts_with(REMOTE_PREFIX)
            || name.as_str().starts_with("impersonate-");
        let hop = HOP_BY_HOP.contains(&name.as_str());
        let kept_hop = upgrade && matches!(name.as_str(), "connection" | "upgrade");
        if !ours && (!hop || kept_hop) {
            headers.append(name, value.clone());
        }
    }
    if let Ok(host) = HeaderValue::from_str(place) {
        headers.insert(header::HOST, host);
    }
    name_user(&mut headers, user);
    headers
}

fn name_user(headers: &mut HeaderMap, user: &User) {
    let mut add = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.append(name, value);
        }
    };
    add(USER, &user.name);
    if !user.uid.is_empty() {
        add(UID, &user.uid);
    }
    for group in &user.groups {
        add(GROUP, group);
    }
    for (key, values) in &user.extra {
        let name = format!("x-remote-extra-{}", escape(key));
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            values.iter().for_each(|value| add(name.clone(), value));
        }
    }
}

/// A key as a part of a header's name: what cannot stand there is written with percent signs.
fn escape(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        let legal = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        if legal {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// An answer on its way back.
fn passed_back(sent: Response<Incoming>) -> Response<Body> {
    let (mut parts, body) = sent.into_parts();
    for name in HOP_BY_HOP {
        parts.headers.remove(name);
    }
    let frames = stream::unfold(body, |mut body| async move {
        loop {
            let data = body.frame().await?.ok()?.into_data();
            if let Ok(data) = data {
                return Some((data, body));
            }
        }
    });
    Response::from_parts(parts, Body::stream(frames))
}

/// Joins two connections that go on in another protocol.
fn join(client: OnUpgrade, sent: Response<Incoming>) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *answer.headers_mut() = sent.headers().clone();
    tokio::spawn(async move {
        let joined = async {
            let server = hyper::upgrade::on(sent).await?;
            let client = client.await?;
            Ok::<_, hyper::Error>((TokioIo::new(client), TokioIo::new(server)))
        };
        match joined.await {
            Ok((mut client, mut server)) => {
                // Either side may leave without a word; then both are done.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
            Err(error) => debug!(%error, "a connection did not go on in another protocol"),
        }
    });
    answer
}

impl Remote {
    /// Sends a request on a connection that waits for one, or on a new one.
    async fn send(
        &self,
        place: &str,
        mut request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, String> {
        while let Some(mut sender) = self.pool.take(place) {
            match sender.try_send_request(request).await {
                Ok(sent) => {
                    self.pool.put(place, sender);
                    return Ok(sent);
                }
                Err(mut failed) => match failed.take_message() {
                    // It was closed before anything was sent.
                    Some(unsent) => request = unsent,
                    None => return Err(failed.error().to_string()),
                },
            }
        }
        let mut sender = self.connect(place).await?;
        let sent = sender.send_request(request).await;
        let sent = sent.map_err(|error| error.to_string())?;
        self.pool.put(place, sender);
        Ok(sent)
    }

    /// Opens a connection to the server at a place.
    async fn connect(&self, place: &str) -> Result<SendRequest<Outgoing>, String> {
        let tls = self.tls.as_ref().map_err(Clone::clone)?;
        let name = server_name(&format!("{}.{}.svc", self.api.service, self.api.namespace))?;
        let socket = TcpStream::connect(place).await;
        let socket = socket.map_err(|error| dial_error(place, &error))?;
        let _ = socket.set_nodelay(true);
        let stream = tls.connect(name, socket).await;
        let stream = stream.map_err(|error| describe_handshake(&error, place))?;
        let opened = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(|error| error.to_string())?;
        // The task ends with the connection, and the connection with its sender.
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                debug!(%error, "a connection to another API ended");
            }
        });
        Ok(sender)
    }

    /// Asks for a document, as somebody who may see everything.
    pub(super) async fn fetch(
        &self,
        place: &str,
        path: &str,
        bytes_max: usize,
    ) -> Result<(u16, Bytes), String> {
        let mut request = Request::new(Either::Left(Empty::new()));
        *request.method_mut() = Method::GET;
        *request.uri_mut() = path.parse::<Uri>().map_err(|error| error.to_string())?;
        let user = User {
            name: "system:kube-aggregator".into(),
            groups: vec!["system:masters".into()],
            ..User::default()
        };
        let mut headers = headers_for(&HeaderMap::new(), &user, place, false);
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::ACCEPT, json);
        *request.headers_mut() = headers;
        let sent = self.send(place, request).await?;
        let code = sent.status().as_u16();
        let body = Limited::new(sent.into_body(), bytes_max);
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok((code, body.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_said_by_this_server_alone() {
        let mut given = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer secret"),
            ("x-remote-user", "system:admin"),
            ("x-remote-extra-scopes", "all"),
            ("impersonate-user", "other"),
            ("connection", "keep-alive"),
            ("accept", "application/json"),
        ] {
            given.insert(HeaderName::from_static(name), value.parse().unwrap());
        }
        let mut user = User::authenticated("jane", "7", &["team"]);
        user.extra
            .insert("example.com/a b".into(), vec!["x".into()]);
        let headers = headers_for(&given, &user, "10.0.0.1:443", false);
        let text = |name: &str| {
            let values = headers.get_all(name).iter();
            let values: Vec<_> = values.map(|value| value.to_str().unwrap()).collect();
            values.join(",")
        };
        assert_eq!(text("authorization"), "");
        assert_eq!(text("impersonate-user"), "");
        assert_eq!(text("connection"), "");
        assert_eq!(text("accept"), "application/json");
        assert_eq!(text("host"), "10.0.0.1:443");
        assert_eq!(text("x-remote-user"), "jane");
        assert_eq!(text("x-remote-uid"), "7");
        assert_eq!(text("x-remote-group"), "team,system:authenticated");
        assert_eq!(text("x-remote-extra-scopes"), "");
        assert_eq!(text("x-remote-extra-example.com%2Fa%20b"), "x");
    }
}
