//! Audit events to an HTTPS endpoint, in batches.
//!
//! The queue is bounded: when the endpoint is slower than the requests, events are counted and let
//! go, for no request waits for another machine. Contract: the batching webhook backend of the API
//! server, with its limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use object::{Value, yaml};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tracing::warn;

use super::Error;
use super::log::Message;

/// Events beyond this are counted and let go.
const QUEUE_EVENTS_MAX: usize = 10_000;
/// A batch that takes longer has failed.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const ATTEMPTS_MAX: u32 = 5;

/// Where batches go, and how large they get.
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// A kubeconfig file that names the endpoint and how to get in.
    pub config: PathBuf,
    /// No batch holds more events.
    pub batch_events_max: usize,
    /// An event waits no longer for others to join it.
    pub batch_wait_max: Duration,
    /// How long to wait before the second attempt; each further one waits half as long again.
    pub backoff: Duration,
}

/// The other side.
struct Endpoint {
    uri: Uri,
    tls: Option<TlsConnector>,
    authorization: Option<HeaderValue>,
}

/// Reads the configuration and starts the task, which ends with the last sender.
pub(crate) fn start(
    options: WebhookOptions,
    dropped: Arc<AtomicU64>,
) -> Result<mpsc::Sender<Message>, Error> {
    let endpoint = Endpoint::read(&options.config)?;
    let (sender, queue) = mpsc::channel(QUEUE_EVENTS_MAX);
    tokio::spawn(run(options, endpoint, queue, dropped));
    Ok(sender)
}

async fn run(
    options: WebhookOptions,
    endpoint: Endpoint,
    mut queue: mpsc::Receiver<Message>,
    dropped: Arc<AtomicU64>,
) {
    while let Some(first) = queue.recv().await {
        let mut batch = Vec::new();
        let mut flush = add(first, &mut batch);
        let end = Instant::now() + options.batch_wait_max;
        while flush.is_none() && batch.len() < options.batch_events_max {
            match timeout_at(end, queue.recv()).await {
                Ok(Some(message)) => flush = add(message, &mut batch),
                Ok(None) | Err(_) => break,
            }
        }
        if !batch.is_empty() {
            let events = batch.len() as u64;
            if !deliver(&options, &endpoint, &batch).await {
                dropped.fetch_add(events, Ordering::Relaxed);
            }
        }
        if let Some(done) = flush {
            // Nobody may wait any more.
            let _ = done.send(());
        }
    }
}

fn add(message: Message, batch: &mut Vec<Vec<u8>>) -> Option<tokio::sync::oneshot::Sender<()>> {
    match message {
        Message::Line(line) => {
            batch.push(line);
            None
        }
        Message::Flush(done) => Some(done),
    }
}

async fn deliver(options: &WebhookOptions, endpoint: &Endpoint, batch: &[Vec<u8>]) -> bool {
    let mut text = Vec::with_capacity(batch.iter().map(Vec::len).sum::<usize>() + 128);
    text.extend_from_slice(
        b"{\"kind\":\"EventList\",\"apiVersion\":\"audit.k8s.io/v1\",\"metadata\":{},\"items\":[",
    );
    text.extend_from_slice(&batch.join(&b","[..]));
    text.extend_from_slice(b"]}\n");
    let text = Bytes::from(text);
    let mut wait = options.backoff;
    for attempt in 1..=ATTEMPTS_MAX {
        let sent = timeout(CALL_TIMEOUT, endpoint.post(text.clone())).await;
        let error = match sent {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it gave no answer in time".to_owned(),
        };
        warn!(error, attempt, "the audit webhook did not take a batch");
        if attempt < ATTEMPTS_MAX {
            sleep(wait).await;
            wait += wait / 2;
        }
    }
    false
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

impl Endpoint {
    fn read(path: &Path) -> Result<Endpoint, Error> {
        let wrong = |detail: String| Error::Webhook {
            path: path.to_owned(),
            detail,
        };
        let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let config = yaml::parse(&text).map_err(|error| wrong(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Endpoint::of(&config, folder).map_err(|error| wrong(error.to_string()))
    }

    fn of(config: &Value, folder: &Path) -> Result<Endpoint, Failed> {
        let context = config.str_at(&["current-context"]).unwrap_or_default();
        let context = named(config, "contexts", context);
        let choose = |part: &str| {
            let name = context.and_then(|context| context.str_at(&["context", part]));
            name.unwrap_or_default().to_owned()
        };
        let cluster = named(config, "clusters", &choose("cluster"));
        let cluster = cluster.and_then(|cluster| cluster.get("cluster"));
        let server = cluster.and_then(|cluster| cluster.str_at(&["server"]));
        let uri: Uri = server.ok_or("it names no server")?.parse()?;
        let user = named(config, "users", &choose("user")).and_then(|user| user.get("user"));
        let data = |part: Option<&Value>, name: &str| -> Result<Option<Vec<u8>>, Failed> {
            let Some(part) = part else { return Ok(None) };
            if let Some(text) = part.str_at(&[&format!("{name}-data")]) {
                return Ok(Some(STANDARD.decode(text)?));
            }
            match part.str_at(&[name]) {
                Some(file) => Ok(Some(std::fs::read(folder.join(file))?)),
                None => Ok(None),
            }
        };
        let tls = if uri.scheme_str() == Some("https") {
            let authority = data(cluster, "certificate-authority")?;
            let certificate = data(user, "client-certificate")?.zip(data(user, "client-key")?);
            Some(connector(authority, certificate)?)
        } else {
            None
        };
        let token = user.and_then(|user| user.str_at(&["token"]));
        let authorization = token
            .map(|token| HeaderValue::from_str(&format!("Bearer {token}")))
            .transpose()?;
        Ok(Endpoint {
            uri,
            tls,
            authorization,
        })
    }

    async fn post(&self, text: Bytes) -> Result<(), Failed> {
        let host = self.uri.host().ok_or("it names no host")?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let default = if self.tls.is_some() { 443 } else { 80 };
        let port = self.uri.port_u16().unwrap_or(default);
        let socket = TcpStream::connect((host, port)).await?;
        match &self.tls {
            Some(tls) => {
                let name = ServerName::try_from(host.to_owned())?;
                self.send(tls.connect(name, socket).await?, text).await
            }
            None => self.send(socket, text).await,
        }
    }

    async fn send<S>(&self, stream: S, text: Bytes) -> Result<(), Failed>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
        let connection = tokio::spawn(connection);
        let path = self.uri.path_and_query().map_or("/", |it| it.as_str());
        let authority = self.uri.authority().map_or("", |it| it.as_str());
        let mut request = Request::post(path)
            .header(header::HOST, authority)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(text))?;
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut();
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        let answer = sender.send_request(request).await?;
        connection.abort();
        if answer.status().is_success() {
            return Ok(());
        }
        Err(format!("it answered {}", answer.status()).into())
    }
}

fn named<'a>(config: &'a Value, list: &str, name: &str) -> Option<&'a Value> {
    let items = config.get(list).and_then(Value::as_array)?;
    let found = items
        .iter()
        .find(|item| item.str_at(&["name"]) == Some(name));
    // A file that chooses nothing has only one of each.
    found.or(items.first().filter(|_| name.is_empty()))
}

fn connector(
    authority: Option<Vec<u8>>,
    certificate: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<TlsConnector, Failed> {
    let authority = authority.ok_or("it names no certificate-authority")?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&authority) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match certificate {
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(&certificate);
            let chain = chain.collect::<Result<Vec<_>, _>>()?;
            config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(&key)?)?
        }
        None => config.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}
