//! What every request shares.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use auth::Authenticator;
use resources::Resources;
use tokio::sync::watch;

use crate::aggregate::Remotes;
use crate::audit::Audit;
use crate::discovery::Discovery;
use crate::flow::{Flow, Limits};
use crate::messages::Messages;
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::openid::OpenId;
use crate::peer::ClientCertificates;

/// A running server's parts.
pub(crate) struct State {
    pub resources: Resources,
    pub authenticator: Arc<Authenticator>,
    pub certificates: Arc<ClientCertificates>,
    pub discovery: Discovery,
    pub openapi: OpenApi,
    pub openid: Option<OpenId>,
    pub messages: Messages,
    pub metrics: Metrics,
    pub flow: Flow,
    pub remotes: Remotes,
    /// Records requests, if that is asked for.
    pub audit: Option<Arc<Audit>>,
    /// How the server was started: flags by name, and since when it runs.
    pub flags: BTreeMap<String, String>,
    pub started: i64,
    /// Whether the bootstrap objects are there.
    ready: AtomicBool,
    /// Turns true when the server begins to stop.
    stopping: watch::Sender<bool>,
}

impl State {
    pub(crate) fn new(
        resources: Resources,
        authenticator: Authenticator,
        certificates: Arc<ClientCertificates>,
        limits: Limits,
        audit: Option<Audit>,
        flags: BTreeMap<String, String>,
        address: std::net::SocketAddr,
    ) -> State {
        let authenticator = Arc::new(authenticator);
        let resources = resources.with_authenticator(Arc::clone(&authenticator));
        State {
            discovery: Discovery::new(address),
            openapi: OpenApi::default(),
            openid: resources
                .issuer()
                .and_then(|issuer| OpenId::new(issuer, address)),
            started: resources.now(),
            resources,
            authenticator,
            certificates,
            flags,
            messages: Messages::default(),
            metrics: Metrics::default(),
            flow: Flow::new(limits),
            remotes: Remotes::default(),
            audit: audit.map(Arc::new),
            ready: AtomicBool::new(false),
            stopping: watch::Sender::new(false),
        }
    }

    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Resolves when the server begins to stop.
    pub(crate) fn stopped(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}
