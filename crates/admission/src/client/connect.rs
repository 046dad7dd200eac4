//! Opening connections, and what can go wrong with them.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};

use super::{CallError, Endpoint, Place, Services, tls};

/// A connection that can carry a request.
#[derive(Debug)]
pub(super) struct Idle {
    pub(super) sender: SendRequest<Full<Bytes>>,
    pub(super) since: Instant,
    /// Both ends, as messages show them.
    ends: String,
}

impl Idle {
    /// What went wrong on this connection.
    pub(super) fn describe(&self, error: &hyper::Error) -> String {
        if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
            return "EOF".to_owned();
        }
        let source = std::error::Error::source(error);
        if let Some(error) = source.and_then(|source| source.downcast_ref::<Error>()) {
            return match error.kind() {
                ErrorKind::UnexpectedEof => "EOF".to_owned(),
                _ => format!("read tcp {}: read: {}", self.ends, io_text(error)),
            };
        }
        if error.is_parse() {
            return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
                .to_owned();
        }
        error.to_string()
    }
}

/// Whether the other side closed a connection before it answered anything.
pub(super) fn is_gone(error: &hyper::Error) -> bool {
    error.is_canceled() || error.is_closed() || error.is_incomplete_message()
}

impl Endpoint {
    /// Opens a connection; `transport` words its failure.
    pub(super) async fn connect(
        &self,
        services: &dyn Services,
        transport: impl Fn(String) -> CallError,
    ) -> Result<Idle, CallError> {
        let config = self.tls.get_or_init(|| self.trust.config());
        let config = config.clone().map_err(|cause| {
            CallError::Setup(format!("unable to load root certificates: {cause}"))
        })?;
        let name = tls::server_name(&self.host).map_err(&transport)?;
        let stream = self.dial(services).await.map_err(&transport)?;
        let ends = match (stream.local_addr(), stream.peer_addr()) {
            (Ok(local), Ok(peer)) => format!("{local}->{peer}"),
            _ => self.host.clone(),
        };
        // A question and its answer are each one write; there is nothing to gather.
        let _ = stream.set_nodelay(true);
        let stream = config.connect(name, stream).await;
        let stream = stream.map_err(|error| transport(tls::describe(&error, &ends)))?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| transport(error.to_string()))?;
        // The task ends with the connection, and the connection with its sender.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Idle {
            sender,
            since: Instant::now(),
            ends,
        })
    }

    async fn dial(&self, services: &dyn Services) -> Result<TcpStream, String> {
        let (host, port) = match &self.place {
            Place::Host { port, .. } => (self.host.clone(), *port),
            Place::Service(service) => {
                let address = services.resolve(service).await?;
                split(&address).ok_or_else(|| format!("{address:?} is no address"))?
            }
        };
        let addresses: Vec<SocketAddr> = match lookup_host((host.as_str(), port)).await {
            Ok(found) => found.collect(),
            Err(_) => return Err(format!("dial tcp: lookup {host}: no such host")),
        };
        let mut first = None;
        for address in &addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    let text = format!("dial tcp {address}: connect: {}", io_text(&error));
                    first.get_or_insert(text);
                }
            }
        }
        Err(first.unwrap_or_else(|| format!("dial tcp: lookup {host}: no such host")))
    }
}

fn split(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), port.parse().ok()?))
}

/// The system's error as Go words it.
fn io_text(error: &Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        ErrorKind::BrokenPipe => "broken pipe".to_owned(),
        ErrorKind::TimedOut => "connection timed out".to_owned(),
        ErrorKind::HostUnreachable => "no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}
