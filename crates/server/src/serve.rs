//! Accepts connections, speaks TLS and HTTP, and stops in good order.
//!
//! Stopping: readiness turns false, no new connection is accepted, watches end on a frame
//! boundary, requests under way finish, and whoever is still there after the grace is cut off.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use auth::{Authenticator, Peer};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use resources::Resources;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use crate::aggregate::ProxyIdentity;
use crate::alarm::Alarm;
use crate::audit::Audit;
use crate::body::Body;
use crate::flow::Limits;
use crate::handle::{Arrival, handle};
use crate::lanes::{Lanes, Place, Socket};
use crate::peer::ClientCertificates;
use crate::resets::{Resets, UnderWay};
use crate::stall::{Streams, Unstalled};
use crate::state::State;

/// A client must finish its handshake within this time.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// A client must send the head of a request within this time.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Requests under way may take this long after the server was asked to stop.
const DRAIN_GRACE: Duration = Duration::from_secs(4);
/// HTTP/2 streams a connection may have at a time.
const STREAMS_MAX: u32 = 250;
/// A connection that resets this many streams without need is closed.
const RESETS_MAX: usize = 100;
/// No request head is larger than this.
const HEAD_BYTES_MAX: usize = 1024 * 1024;
/// How long to wait when the system has no more descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a server needs.
pub struct Options {
    /// The objects to serve.
    pub resources: Resources,
    /// Who may come in.
    pub authenticator: Authenticator,
    /// Whose client certificates count; `tls` takes any in its handshake.
    pub certificates: Arc<ClientCertificates>,
    /// Certificates and protocols.
    pub tls: Arc<ServerConfig>,
    /// How many requests are worked on at a time.
    pub limits: Limits,
    /// Records requests, if that is asked for.
    pub audit: Option<Audit>,
    /// How the server was started, for `/flagz`: flags by name.
    pub flags: BTreeMap<String, String>,
    /// Runtimes of one worker each, for connections that write; none if they are to stay.
    pub lanes: Vec<Handle>,
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    tls: TlsAcceptor,
    state: Arc<State>,
    lanes: Arc<Lanes>,
    address: SocketAddr,
}

/// How much a server is used.
pub struct Activity(Arc<State>);

impl Activity {
    /// How many requests have come so far.
    pub fn begun(&self) -> u64 {
        self.0.metrics.begun()
    }

    /// Drops what only makes the next requests faster.
    pub fn rest(&self) {
        self.0.messages.clear();
        self.0.resources.rest();
    }
}

impl Server {
    /// Takes over a socket that listens already.
    pub fn new(listener: TcpListener, options: Options) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let state = State::new(
            options.resources,
            options.authenticator,
            options.certificates,
            options.limits,
            options.audit,
            options.flags,
            address,
        );
        let tls = TlsAcceptor::from(options.tls);
        Ok(Server {
            listener,
            tls,
            state: Arc::new(state),
            lanes: Arc::new(Lanes::new(options.lanes)),
            address,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells the server who it is to the servers of other APIs.
    pub fn set_proxy_identity(&self, identity: ProxyIdentity) {
        self.state.remotes.set_identity(identity);
    }

    /// Everything that the server needs is there.
    pub fn set_ready(&self) {
        self.state.set_ready();
    }

    /// Something to tell by whether the server is used.
    pub fn activity(&self) -> Activity {
        Activity(Arc::clone(&self.state))
    }

    /// Serves until `stop` resolves, then drains.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let state = Arc::clone(&self.state);
        let audit = state.audit.clone();
        if let Err(error) = state.flow.load(&state.resources).await {
            warn!(%error, "flow control begins without its configuration");
        }
        let follower = tokio::spawn(async move { state.flow.follow(&state.resources).await });
        let state = Arc::clone(&self.state);
        let remotes = tokio::spawn(async move { state.remotes.follow(&state.resources).await });
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, from)) => {
                        let (tls, state) = (self.tls.clone(), Arc::clone(&self.state));
                        let lanes = Arc::clone(&self.lanes);
                        connections.spawn(serve_connection(socket, from.ip(), tls, state, lanes));
                    }
                    Err(error) => {
                        warn!(%error, "cannot accept a connection");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
            }
        }
        remotes.abort();
        drop(self.listener);
        self.state.stop();
        let drained = async { while connections.join_next().await.is_some() {} };
        if timeout(DRAIN_GRACE, drained).await.is_err() {
            debug!("cutting off the connections that are left");
        }
        connections.shutdown().await;
        follower.abort();
        if let Some(audit) = audit {
            audit.flush().await;
        }
    }
}

async fn serve_connection(
    socket: TcpStream,
    from: IpAddr,
    tls: TlsAcceptor,
    state: Arc<State>,
    lanes: Arc<Lanes>,
) {
    let place = lanes.place();
    // Each part of a connection's life has memory of its own, which is given back at its end: most
    // connections are watches, which wait for most of theirs.
    let Some(stream) = Box::pin(accept(socket, tls, place.clone())).await else {
        return;
    };
    let peer = peer(&stream, &state.certificates);
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let place = place.filter(|_| !http2);
    let alarm = Alarm::default();
    let own = (place.clone(), alarm.clone());
    // Only who proved who they are may keep an HTTP/2 connection for more than one request: it is
    // cheap to misuse.
    let stranger = Arc::new(Notify::new());
    let unknown = Arc::clone(&stranger);
    let resets = Arc::new(Resets::new());
    let counted = Arc::clone(&resets);
    let mut stopped = state.stopped();
    let service = service_fn(move |request| {
        let unknown = Arc::clone(&unknown);
        let under_way = UnderWay::new(&counted);
        let (place, alarm) = own.clone();
        let arrival = Arrival {
            peer: peer.clone(),
            from,
            place,
            // It wakes one task, and each request of HTTP/2 is one.
            alarm: if http2 { Alarm::default() } else { alarm },
        };
        // In a box: it is large, and would be copied from hand to hand.
        let answering = Box::pin(handle(Arc::clone(&state), arrival, request));
        answering.map(move |answer| {
            under_way.answered();
            if answer.extensions().get::<Stranger>().is_some() {
                unknown.notify_one();
            }
            Ok::<_, Infallible>(answer)
        })
    });
    let io = TokioIo::new(stream);
    let stopping = async move {
        let _ = stopped.wait_for(|stopping| *stopping).await;
    };
    if !http2 {
        let driven = Box::pin(serve_http1(io, service, alarm, stopping));
        return lanes.drive(driven, place).await;
    }
    tokio::select! {
        () = serve_http2(io, service, stopping, &stranger) => {}
        () = resets.spent() => debug!("too many requests were taken back"),
    }
}

/// Serves a connection whose requests come one after the other.
async fn serve_http1<S: Answers>(
    io: TokioIo<Stream>,
    service: S,
    alarm: Alarm,
    stopping: impl Future<Output = ()>,
) where
    S::Future: Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(alarm)
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(io, service)
        .with_upgrades();
    let mut connection = pin!(connection);
    told(tokio::select! {
        result = connection.as_mut() => result,
        () = stopping => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    });
}

/// Serves a connection whose requests come side by side. A stranger's only until one is answered.
async fn serve_http2<S: Answers>(
    io: TokioIo<Stream>,
    service: S,
    stopping: impl Future<Output = ()>,
    stranger: &Notify,
) where
    S::Future: Send + 'static,
{
    let connection = http2::Builder::new(Streams)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .serve_connection(io, service);
    // In a box, because it is large.
    let mut connection = Box::pin(connection);
    told(tokio::select! {
        result = connection.as_mut() => result,
        () = stopping => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = stranger.notified() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    });
}

/// What answers the requests of a connection.
trait Answers:
    Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Send + 'static
{
}

impl<S> Answers for S where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Send + 'static
{
}

/// How a connection ended, for the log.
fn told(result: hyper::Result<()>) {
    if let Err(error) = result {
        debug!(%error, "connection ended");
    }
}

/// What a connection's bytes pass through.
type Stream = TlsStream<Unstalled<Socket>>;

async fn accept(socket: TcpStream, tls: TlsAcceptor, place: Option<Arc<Place>>) -> Option<Stream> {
    // Small answers must not wait for more.
    let _ = socket.set_nodelay(true);
    let socket = Unstalled::new(Socket::new(socket, place));
    match timeout(HANDSHAKE_TIMEOUT, tls.accept(socket)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => debug!(%error, "handshake failed"),
        Err(_) => debug!("handshake took too long"),
    }
    None
}

/// Marks the answer to somebody who did not prove who they are.
#[derive(Clone, Copy)]
pub(crate) struct Stranger;

fn peer(stream: &Stream, certificates: &ClientCertificates) -> Option<Arc<Peer>> {
    let chain = stream.get_ref().1.peer_certificates()?;
    certificates.peer(chain).map(Arc::new)
}
