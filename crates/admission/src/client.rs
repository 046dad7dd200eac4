//! HTTPS calls to webhooks: admission, conversion, and whatever else asks somebody outside.
//!
//! An [`Endpoint`] is one webhook as its configuration names it. It keeps the connections that it
//! opened, so a configuration is read once and its endpoint held for as long as it is in force.
//! A call has a deadline and a limit for the answer; redirects are not followed. Failures are
//! worded as clients of the Go server know them, because people search for these texts.

mod answer;
mod connect;
mod failure;
mod tls;

use std::pin::Pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use object::Value;

pub(crate) use answer::json_type;
pub use answer::{Review, read_object};
use connect::Idle;
pub use failure::CallError;
use tls::Trust;
pub use tls::{describe as describe_handshake, proxy_config, server_name};

/// Idle connections that an endpoint keeps; more are closed.
const IDLE_MAX: usize = 32;
/// An idle connection is closed after this long.
const IDLE_LIFE: Duration = Duration::from_secs(60);
/// The port of a service whose configuration names none.
const HTTPS_PORT: u16 = 443;

/// Where a service can be reached, asked anew for each connection.
pub trait Services: Send + Sync {
    /// The address of a service, as `host:port`; or why there is none.
    fn resolve<'a>(&'a self, service: &'a Service) -> Resolving<'a>;
}

/// An address that is being looked for.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

/// A service of the cluster that answers for a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The port of the service, not of what is behind it.
    pub port: u16,
}

/// What a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the first byte to the last.
    pub timeout: Duration,
    /// The body of the answer.
    pub answer_bytes_max: usize,
}

/// One webhook: where it is, whom to trust, and the connections that are open to it.
#[derive(Debug)]
pub struct Endpoint {
    place: Place,
    /// The name that the certificate must carry, and the host of the URL in messages.
    host: String,
    /// What stands after the host in requests and messages, without the query.
    path: String,
    trust: Trust,
    tls: OnceLock<Result<tls::Config, String>>,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
enum Place {
    /// A host and a port, and how the URL writes them.
    Host {
        port: u16,
        authority: String,
    },
    Service(Service),
}

impl Endpoint {
    /// The endpoint of a `clientConfig`, as admission configurations and definitions of custom
    /// resources have it.
    pub fn of_client_config(config: &Value) -> Result<Endpoint, CallError> {
        let bundle = config.str_at(&["caBundle"]).unwrap_or_default();
        let bundle = STANDARD
            .decode(bundle)
            .map_err(|error| CallError::Setup(format!("caBundle is not base64: {error}")))?;
        if let Some(service) = config.get("service").filter(|service| !service.is_null()) {
            let text = |field| service.str_at(&[field]).unwrap_or_default();
            let port = service.get("port").and_then(Value::as_int);
            let port = port.and_then(|port| u16::try_from(port).ok());
            let service = Service {
                namespace: text("namespace").to_owned(),
                name: text("name").to_owned(),
                port: port.filter(|port| *port != 0).unwrap_or(HTTPS_PORT),
            };
            return Ok(Endpoint::service(service, text("path"), bundle));
        }
        match config.str_at(&["url"]) {
            Some(url) => Endpoint::url(url, bundle),
            None => Err(CallError::Setup(
                "webhook configuration must have either service or URL".to_owned(),
            )),
        }
    }

    /// The endpoint at a URL; an empty bundle means the authorities that the system trusts.
    pub fn url(url: &str, bundle: Vec<u8>) -> Result<Endpoint, CallError> {
        let bad = |detail: String| CallError::Setup(format!("Unparsable URL: {detail}"));
        let uri: Uri = url.parse().map_err(|error| bad(format!("{error}")))?;
        let (Some("https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(bad(format!("{url:?} is no https URL")));
        };
        let host = authority.host();
        let host = host.strip_prefix('[').unwrap_or(host);
        let host = host.strip_suffix(']').unwrap_or(host);
        let place = Place::Host {
            port: authority.port_u16().unwrap_or(HTTPS_PORT),
            authority: authority.as_str().to_owned(),
        };
        Ok(Endpoint::new(place, host.to_owned(), uri.path(), bundle))
    }

    /// The endpoint behind a service.
    pub fn service(service: Service, path: &str, bundle: Vec<u8>) -> Endpoint {
        let host = format!("{}.{}.svc", service.name, service.namespace);
        Endpoint::new(Place::Service(service), host, path, bundle)
    }

    fn new(place: Place, host: String, path: &str, bundle: Vec<u8>) -> Endpoint {
        Endpoint {
            place,
            host,
            path: clean(path),
            trust: Trust::of_bundle(bundle),
            tls: OnceLock::new(),
            idle: Mutex::default(),
        }
    }

    /// The URL that a call with this timeout goes to.
    pub fn call_url(&self, timeout: Duration) -> String {
        format!("https://{}{}", self.authority(), self.target(timeout))
    }

    fn authority(&self) -> String {
        match &self.place {
            Place::Host { authority, .. } => authority.clone(),
            Place::Service(service) => format!("{}:{}", self.host, service.port),
        }
    }

    /// Path and query; the webhook is told how long we wait, in whole seconds.
    fn target(&self, timeout: Duration) -> String {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        format!("{}?timeout={seconds}s", self.path)
    }

    /// Sends JSON and gives back the body of the answer, if that is one of success.
    pub async fn post(
        &self,
        body: Bytes,
        limits: Limits,
        services: &dyn Services,
    ) -> Result<Bytes, CallError> {
        let exchange = self.exchange(body, limits, services);
        match tokio::time::timeout(limits.timeout, exchange).await {
            Ok(answered) => answered,
            Err(_) => Err(CallError::Transport {
                url: self.call_url(limits.timeout),
                cause: "context deadline exceeded".to_owned(),
            }),
        }
    }

    async fn exchange(
        &self,
        body: Bytes,
        limits: Limits,
        services: &dyn Services,
    ) -> Result<Bytes, CallError> {
        let transport = |cause| CallError::Transport {
            url: self.call_url(limits.timeout),
            cause,
        };
        // A connection that the other side closed meanwhile has not carried the question, or at
        // least no answer: it is asked once more, on a connection of its own.
        while let Some(mut idle) = self.take_idle() {
            let request = self.request(body.clone(), limits.timeout)?;
            match idle.sender.try_send_request(request).await {
                Ok(response) => return self.finish(idle, response, limits).await,
                Err(refused) if connect::is_gone(refused.error()) => {}
                Err(refused) => return Err(transport(idle.describe(refused.error()))),
            }
        }
        let mut fresh = self.connect(services, transport).await?;
        let request = self.request(body, limits.timeout)?;
        match fresh.sender.send_request(request).await {
            Ok(response) => self.finish(fresh, response, limits).await,
            Err(error) => Err(transport(fresh.describe(&error))),
        }
    }

    fn request(
        &self,
        body: Bytes,
        timeout: Duration,
    ) -> Result<hyper::Request<Full<Bytes>>, CallError> {
        hyper::Request::post(self.target(timeout))
            .header("Host", self.authority())
            .header("User-Agent", "windlass")
            .header("Accept", "application/json, */*")
            .header("Content-Type", "application/json")
            .body(Full::new(body))
            .map_err(|error| CallError::Setup(error.to_string()))
    }

    async fn finish(
        &self,
        connection: Idle,
        response: hyper::Response<hyper::body::Incoming>,
        limits: Limits,
    ) -> Result<Bytes, CallError> {
        let url = || self.call_url(limits.timeout);
        let body = answer::read(response, limits.answer_bytes_max, url).await?;
        self.keep(connection);
        body.check()
    }

    fn take_idle(&self) -> Option<Idle> {
        let mut all = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(idle) = all.pop() {
            if idle.since.elapsed() < IDLE_LIFE && idle.sender.is_ready() {
                return Some(idle);
            }
        }
        None
    }

    fn keep(&self, mut connection: Idle) {
        if connection.sender.is_closed() {
            return;
        }
        connection.since = Instant::now();
        let mut all = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < IDLE_MAX {
            all.push(connection);
        }
    }
}

/// A path as it is asked for: from the root, without empty and dotted parts. Those who join host
/// and path with a slash of their own reach the webhook, as they do upstream.
fn clean(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
