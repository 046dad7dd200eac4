//! APIs that other servers serve: who they are, whether they can be reached, and how.
//!
//! A request below `/apis/GROUP/VERSION` of such an API is passed on with the name of its user, on
//! a connection that our certificate vouches for. A follower keeps the table of these APIs, asks
//! each of them now and then for its resources, and writes into its APIService what came of it.
//! Contract: upstream's `kube-aggregator/pkg/apiserver/handler_proxy.go` and
//! `controllers/status/remote`.

pub(crate) mod discovery;
pub(crate) mod openapi;
mod pool;
mod proxy;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use admission::client::proxy_config;
use object::{Value, json};
use resources::{Availability, RemoteApi, Resources};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tracing::debug;

use openapi::Told;
use pool::Pool;
use proxy::{DISCOVERY_BYTES_MAX, Outgoing};

pub(crate) use proxy::answer;

/// Each API is asked again after this long, and sooner when something changes.
const ASK_EVERY: Duration = Duration::from_secs(30);
/// One that could not be reached is asked again sooner.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// Changes that come close together are looked at together.
const SETTLE: Duration = Duration::from_millis(50);
/// An API must say what it serves within this time.
const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// Who we are to other servers: a certificate and its key, as PEM.
#[derive(Clone)]
pub struct ProxyIdentity {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// The APIs that other servers serve.
#[derive(Default)]
pub(crate) struct Remotes {
    identity: OnceLock<ProxyIdentity>,
    table: RwLock<Arc<Table>>,
}

/// The APIs by group and version.
pub(crate) type Table = BTreeMap<(String, String), Arc<Remote>>;

/// One API of another server.
pub(crate) struct Remote {
    pub(crate) api: RemoteApi,
    tls: Result<TlsConnector, String>,
    /// Connections to it.
    pool: Arc<Pool<Outgoing>>,
    /// What it serves: an APIResourceList.
    pub(crate) resources: Option<Value>,
    /// What it says in OpenAPI.
    openapi: Arc<Told>,
}

impl Remotes {
    pub(crate) fn set_identity(&self, identity: ProxyIdentity) {
        // It is set once, before the server runs.
        let _ = self.identity.set(identity);
    }

    /// Who serves a path, if another server does.
    pub(crate) fn of_path(&self, path: &str) -> Option<Arc<Remote>> {
        let table = self.table();
        if table.is_empty() {
            return None;
        }
        let mut parts = path.strip_prefix("/apis/")?.splitn(3, '/');
        let place = (parts.next()?.to_owned(), parts.next()?.to_owned());
        table.get(&place).cloned()
    }

    /// The APIs of the moment.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_table(&self, table: Table) {
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
    }

    /// Keeps the table until the task is dropped.
    pub(crate) async fn follow(&self, resources: &Resources) {
        loop {
            let wait = match self.look(resources).await {
                Ok((revision, None)) => resources.api_services_changed(revision).await,
                Ok((revision, Some(pause))) => {
                    let changed = resources.remote_apis_changed(revision);
                    timeout(pause, changed).await.unwrap_or(Ok(()))
                }
                Err(error) => Err(error),
            };
            match wait {
                Ok(()) => sleep(SETTLE).await,
                Err(resources::Error::Unavailable { .. }) => return,
                Err(error) => {
                    debug!(%error, "other APIs are looked for again");
                    sleep(ASK_AGAIN).await;
                }
            }
        }
    }

    /// Reads which APIs there are and asks each; tells up to where that is known, and when to ask
    /// again if there are any.
    async fn look(
        &self,
        resources: &Resources,
    ) -> Result<(resources::Revision, Option<Duration>), resources::Error> {
        let (revision, apis) = resources.remote_apis().await?;
        let mut pause = (!apis.is_empty()).then_some(ASK_EVERY);
        let (old, mut table) = (self.table(), Table::new());
        let mut reports = Vec::new();
        for api in apis {
            let place = (api.group.clone(), api.version.clone());
            let known = old.get(&place).map(|remote| &**remote);
            let remote = self.remote(api, known);
            let (found, served) = match timeout(ASK_TIMEOUT, remote.ask(resources)).await {
                Ok(answer) => answer,
                Err(_) => {
                    let text = format!("timed out waiting for {}", remote.discovery_path());
                    (Availability::no("FailedDiscoveryCheck", text), None)
                }
            };
            if !found.available {
                pause = Some(ASK_AGAIN);
            }
            let kept = served.or_else(|| known.and_then(|known| known.resources.clone()));
            let mut api = remote.api.clone();
            api.available = found.available;
            let remote = Remote {
                api,
                resources: kept,
                ..remote
            };
            reports.push((remote.api.name.clone(), found));
            table.insert(place, Arc::new(remote));
        }
        self.set_table(table);
        // Who reads that an API is available finds it.
        for (name, found) in reports {
            if let Err(error) = resources.report_api(&name, &found).await {
                debug!(%error, "the state of an API is reported later");
            }
        }
        Ok((revision, pause))
    }

    fn remote(&self, api: RemoteApi, known: Option<&Remote>) -> Remote {
        let same = known.filter(|known| {
            let places = |api: &RemoteApi| (api.bundle.clone(), api.insecure);
            places(&known.api) == places(&api)
        });
        let (tls, pool, openapi) = match same {
            Some(known) => (
                known.tls.clone(),
                Arc::clone(&known.pool),
                Arc::clone(&known.openapi),
            ),
            None => (self.connector(&api), Arc::default(), Arc::default()),
        };
        Remote {
            api,
            tls,
            pool,
            resources: None,
            openapi,
        }
    }

    fn connector(&self, api: &RemoteApi) -> Result<TlsConnector, String> {
        let identity = self
            .identity
            .get()
            .ok_or("this server has no certificate")?;
        let read = |error: rustls::pki_types::pem::Error| error.to_string();
        let certificates = CertificateDer::pem_slice_iter(identity.certificate.as_bytes());
        let certificates: Result<Vec<_>, _> = certificates.collect();
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(read)?;
        let identity = (certificates.map_err(read)?, key);
        let config = proxy_config(api.bundle.clone(), api.insecure, identity)?;
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

impl Remote {
    /// Where it says what it serves.
    fn discovery_path(&self) -> String {
        format!("/apis/{}/{}", self.api.group, self.api.version)
    }

    /// Asks what it serves.
    async fn ask(&self, resources: &Resources) -> (Availability, Option<Value>) {
        let failed = |text: String| (Availability::no("FailedDiscoveryCheck", text), None);
        let place = match resources.locate_api(&self.api).await {
            Ok(place) => place,
            Err(unavailable) => return (unavailable, None),
        };
        let url = format!("https://{place}{}", self.discovery_path());
        let path = self.discovery_path();
        match self.fetch(&place, &path, DISCOVERY_BYTES_MAX).await {
            Ok((code, body)) if (200..300).contains(&code) => {
                let available = Availability {
                    available: true,
                    reason: "Passed",
                    message: "all checks passed".to_owned(),
                };
                (available, json::parse(&body).ok())
            }
            Ok((code, _)) => {
                let bad = format!("bad status from {url}: {code}");
                failed(format!("failing or missing response from {url}: {bad}"))
            }
            Err(error) => {
                let error = format!("Get \"{url}\": {error}");
                failed(format!("failing or missing response from {url}: {error}"))
            }
        }
    }
}

/// The system's error as Go words it.
fn dial_error(place: &str, error: &io::Error) -> String {
    let text = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        _ => error.to_string(),
    };
    format!("dial tcp {place}: connect: {text}")
}
