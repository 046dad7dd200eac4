//! `windlass serve`: from nothing to a server that answers, and back.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use auth::Issuer;
use resources::Resources;
use resources::admission::Chain;
use resources::encryption::Encryption;
use server::audit::{Audit, Policy};
use server::{ProxyIdentity, Server};
use store::{Store, SystemClock};
use tokio::net::TcpListener;
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

use crate::arguments::Serve;
use crate::control;
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::front_proxy;
use crate::identity::{self, Certificates, Files};
use crate::rest;
use crate::serving;
use crate::workers;

/// Where objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In memory: gone with the server.
    Memory,
    /// In the data directory.
    Disk,
}

/// A server that answers.
pub(crate) struct Ready<'a> {
    pub address: SocketAddr,
    /// Whether the data directory is new.
    pub new: bool,
    pub data: &'a Path,
    pub kubeconfig: &'a Path,
}

/// Serves until SIGTERM or SIGINT; `prepare` may still change the options when there is a log.
pub(crate) fn serve(
    mut options: Serve,
    prepare: impl FnOnce(&mut Serve) -> Result<(), Failure>,
) -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_max_level(options.log)
        .with_writer(std::io::stderr)
        .init();
    prepare(&mut options)?;
    let (runtimes, workers) = workers::one_a_processor()?;
    let lanes = runtimes.lanes.iter().map(|lane| lane.handle().clone());
    let pinned = options.pin_workers;
    let ready = move |ready: Ready<'_>| {
        // Not before: what the start has left behind, such as the threads of the store, may run
        // anywhere, and a thread is born where the one is that starts it.
        if pinned {
            workers.pin();
        }
        greet(ready);
    };
    let stop = async { stop_signal() };
    let running = run(options, Storage::Disk, lanes.collect(), ready, stop);
    block_on(&runtimes.shared, running)
}

/// Runs a server to its end.
pub(crate) fn block_on(
    runtime: &Runtime,
    running: impl Future<Output = Result<(), Failure>> + Send + 'static,
) -> Result<(), Failure> {
    // The first future runs on a worker too: the main thread's stack is not ours to size.
    let outcome = runtime.block_on(async { tokio::spawn(running).await });
    outcome.unwrap_or_else(|error| Err(Failure::Runtime(std::io::Error::other(error))))
}

/// Serves until `stop` gives a future that resolves; `ready` is told as soon as it answers.
/// Connections that write move to a lane, if there are any.
pub(crate) async fn run<S>(
    options: Serve,
    storage: Storage,
    lanes: Vec<Handle>,
    ready: impl FnOnce(Ready<'_>),
    stop: impl Future<Output = Result<S, Failure>>,
) -> Result<(), Failure>
where
    S: Future<Output = ()> + Send + 'static,
{
    let new = make_directory(&options.data)?;
    let store = open_store(&options, storage)?;
    let (listener, address) = listen(options.listen).await?;
    let (resources, made) = prepare(&options, &store, address).await?;
    let Certificates {
        serving,
        authorities,
        clients,
    } = made.certificates;
    let authority = serving.authority();
    let authenticator = identity::authenticator(
        &options.identity,
        &made.credentials,
        &resources,
        &made.issuer,
    )?;
    let files = Files::new(
        options.identity.clone(),
        resources.clone(),
        made.issuer.audiences().to_vec(),
        authenticator.trust(),
    );
    let server = Server::new(
        listener,
        server::Options {
            authenticator,
            resources: resources.clone(),
            tls: serving.tls(&clients)?,
            certificates: Arc::clone(&clients),
            limits: options.limits(),
            audit: make_audit(&options)?,
            flags: options.flags.0.clone(),
            lanes,
        },
    )
    .map_err(Failure::Runtime)?;
    server.set_proxy_identity(made.front_proxy.0);
    resources
        .publish_authorities(&authorities.clients_text()?, &made.front_proxy.1)
        .await?;
    control::listen(&options.data, store.clone()).await?;
    let which = options.controllers();
    let controllers = (!which.is_empty())
        .then(|| tokio::spawn(resources.clone().run_controllers(which, authority)));
    let renewal = tokio::spawn(serving::keep_current(serving, authorities, clients));
    let reading = tokio::spawn(files.follow());
    let (known, definitions_known) = tokio::sync::oneshot::channel();
    let definitions = tokio::spawn(resources.clone().run_definitions(known));
    // It answers as soon as the stored definitions are served; if it is gone, none is.
    let _ = definitions_known.await;
    let registration = tokio::spawn(resources.clone().run_registration());
    server.set_ready();
    let resting = tokio::spawn(rest::whenever_quiet(server.activity()));
    let running = tokio::spawn(server.run(stop.await?));
    ready(Ready {
        address,
        new,
        data: &options.data,
        kubeconfig: &made.kubeconfig,
    });
    // The task ends with the signal; it has nothing to give back.
    let _ = running.await;
    for task in [definitions, registration, renewal, reading, resting]
        .into_iter()
        .chain(controllers)
    {
        task.abort();
    }
    store.close().await;
    info!("stopped");
    Ok(())
}

/// Makes what the first start needs: the objects, the keys and who may use them.
async fn prepare(
    options: &Serve,
    store: &Store,
    address: SocketAddr,
) -> Result<(Resources, Made), Failure> {
    // Making keys and making objects both wait for the disk; they may wait together.
    let flags = options.clone();
    let making = tokio::task::spawn_blocking(move || make_credentials(&flags, address));
    kinds::validation::allow_privileged(options.allow_privileged);
    let chain = Chain::new(
        &options.enable_admission_plugins,
        &options.disable_admission_plugins,
    )?;
    let resources = Resources::new(store.clone(), Arc::new(SystemClock), chain)
        .with_server_side_apply(options.server_side_apply());
    resources.bootstrap(address).await?;
    let made = making.await;
    let made = made.map_err(|error| Failure::Runtime(std::io::Error::other(error)))??;
    let modes = identity::modes(&options.identity, &resources)?;
    let resources = resources
        .with_authorization(modes)
        .with_issuer(Arc::clone(&made.issuer));
    Ok((resources, made))
}

fn open_store(options: &Serve, storage: Storage) -> Result<Store, Failure> {
    let how = store::Options {
        history: options.history,
        history_bytes: options.history_bytes,
        seal: Some(make_seal(options)?),
        step_back: workers::step_back,
        ..store::Options::default()
    };
    match storage {
        Storage::Memory => Ok(Store::memory(how)),
        Storage::Disk => Ok(Store::open(&options.data, how)?),
    }
}

/// Reads a file that a flag names.
fn read_given(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::Given {
        path: path.to_owned(),
        detail: error.to_string(),
    })
}

/// What stands between records and files: without a configuration nothing is encrypted, and what
/// is encrypted is refused.
fn make_seal(options: &Serve) -> Result<Arc<Encryption>, Failure> {
    match &options.encryption_provider_config {
        Some(path) => Ok(Encryption::parse(&read_given(path)?)?),
        None => Ok(Encryption::none()),
    }
}

/// What records requests; nothing without a policy.
fn make_audit(options: &Serve) -> Result<Option<Audit>, Failure> {
    let Some(path) = &options.audit_policy_file else {
        return match (options.audit_log(), options.audit_webhook()) {
            (None, None) => Ok(None),
            _ => Err(Failure::NoAuditPolicy),
        };
    };
    let policy = Policy::parse(&read_given(path)?)?;
    Ok(Some(Audit::new(
        policy,
        options.audit_log(),
        options.audit_webhook(),
    )?))
}

/// Takes a port, and tells which it is.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let failed = |source| Failure::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let own = listener.local_addr().map_err(failed)?;
    Ok((listener, own))
}

/// What is made at the first start and read at others.
struct Made {
    credentials: Arc<Credentials>,
    certificates: Certificates,
    issuer: Arc<Issuer>,
    kubeconfig: PathBuf,
    /// Who the server is to others, and the authority behind that.
    front_proxy: (ProxyIdentity, String),
}

fn make_credentials(options: &Serve, address: SocketAddr) -> Result<Made, Failure> {
    let credentials = Arc::new(Credentials::open(&options.data)?);
    let certificates = identity::certificates(&options.identity, &credentials, address)?;
    let authority = certificates.serving.authority();
    Ok(Made {
        kubeconfig: credentials.write_kubeconfig(address, &authority)?,
        issuer: Arc::new(identity::issuer(&options.identity, &credentials)?),
        front_proxy: front_proxy::open(&options.data)?,
        certificates,
        credentials,
    })
}

/// Makes the directory if it is missing; tells whether it did.
pub(crate) fn make_directory(path: &Path) -> Result<bool, Failure> {
    let failed = |source| Failure::Directory {
        path: path.to_owned(),
        source,
    };
    if path.is_dir() {
        return Ok(false);
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed)?;
    Ok(true)
}

fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::Runtime)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::Runtime)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[expect(
    clippy::print_stdout,
    reason = "what a person at the terminal needs to go on"
)]
fn greet(ready: Ready<'_>) {
    let state = if ready.new { " (new)" } else { "" };
    println!("listening on https://{}", ready.address);
    println!("data in {}{state}", ready.data.display());
    println!(
        "try:  KUBECONFIG={} kubectl get namespaces",
        ready.kubeconfig.display()
    );
}
