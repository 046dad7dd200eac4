//! Clients that list and watch while the server is killed, connections break and history ends.
//!
//! In the end every cache equals the store, every watcher saw what a watch guarantees, and what
//! each writer was told fits together. `WINDLASS_SOAK_CHANGES` and `WINDLASS_SOAK_SEED` make a
//! longer or another run; `cargo xtask soak` sets them.

mod follower;
mod gate;
mod guarantees;
mod history;
mod python;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{Config, Kubeconfig};
use kube::runtime::{reflector, watcher};
use kube::{Api, Client, ResourceExt as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use testkit::{Launch, TestServer};
use tokio::sync::watch;

use follower::Follower;
use gate::Gate;
use history::{Done, What};
use python::Python;

const CHANGES: usize = 500;
const WRITERS: u64 = 3;
const OBJECTS: u64 = 12;
/// Connections break this often in a run, and every other time the server is killed as well;
const ACCIDENTS: usize = 8;
/// more often in a long one.
const CHANGES_PER_ACCIDENT: usize = 10_000;
/// A follower that goes away does so for this many changes,
const ABSENCE_CHANGES: usize = 200;
/// in a long run for one in so many of all changes,
const ABSENCES_PER_RUN: usize = 200;
/// and for as long as it takes to forget them: a quick server makes many changes in a second.
const ABSENCE_LONG: Duration = Duration::from_secs(4);
/// A run of this many changes is a long one, and sees versions expire.
const CHANGES_WITH_EXPIRY: usize = 100_000;
const LAST: &str = "last";
/// However long a run is, it stands still only if something is wrong.
const STANDSTILL: Duration = Duration::from_secs(60);

/// Names with versions and contents.
pub(crate) type Objects = BTreeMap<String, (u64, String)>;

/// How many changes there were, and the version of the last one once it is known.
#[derive(Clone)]
pub(crate) struct Progress {
    state: watch::Receiver<(usize, Option<u64>)>,
}

impl Progress {
    /// The version of the last change, if there will be no other.
    pub(crate) fn last(&self) -> Option<u64> {
        self.state.borrow().1
    }

    /// Waits until the last change is known.
    pub(crate) async fn end(&self) {
        let mut state = self.state.clone();
        // The sender lives until everybody is home.
        let _ = state.wait_for(|(_, last)| last.is_some()).await;
    }

    /// Whether the writers are done.
    fn is_over(&self) -> bool {
        self.state.borrow().0 == usize::MAX
    }

    /// Waits until so many more changes happened, or the last.
    pub(crate) async fn later(&self, changes: usize) {
        let mut state = self.state.clone();
        let wanted = state.borrow().0.saturating_add(changes);
        // The sender lives until everybody is home.
        let _ = state
            .wait_for(|(changes, last)| *changes >= wanted || last.is_some())
            .await;
    }
}

/// Numbers that a seed decides.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The next number, below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

pub(crate) fn version_of(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_default().parse().unwrap_or(0)
}

pub(crate) fn content_of(object: &Value) -> String {
    object["data"]["n"].as_str().unwrap_or_default().to_owned()
}

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap())
}

fn tls(server: &TestServer) -> Arc<rustls::ClientConfig> {
    let authority = std::fs::read(server.certificate_authority()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&authority) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

async fn maps(server: &TestServer, gate: &Gate) -> Api<ConfigMap> {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .unwrap();
    config.cluster_url = format!("https://{}", gate.address).parse().unwrap();
    Api::default_namespaced(Client::try_from(config).unwrap())
}

/// A writer and what it was told.
struct Writer {
    maps: Api<ConfigMap>,
    random: Random,
    number: u64,
    clock: Arc<AtomicU64>,
    history: Arc<Mutex<Vec<Done>>>,
    changes: watch::Sender<(usize, Option<u64>)>,
    wanted: usize,
}

impl Writer {
    async fn run(mut self) {
        let mut step = 0;
        while self.changes.borrow().0 < self.wanted {
            step += 1;
            let object = format!("object-{}", self.random.below(OBJECTS));
            let content = format!("{}-{step}", self.number);
            let began = self.clock.fetch_add(1, Ordering::SeqCst);
            let told = self.act(&object, &content).await;
            let ended = self.clock.fetch_add(1, Ordering::SeqCst);
            let changed = matches!(told, Some(What::Wrote(..) | What::Deleted));
            if let Some(what) = told {
                let done = Done {
                    object,
                    began,
                    ended,
                    what,
                };
                self.history.lock().unwrap().push(done);
            }
            if changed {
                self.changes.send_modify(|(changes, _)| *changes += 1);
            }
        }
    }

    async fn act(&mut self, name: &str, content: &str) -> Option<What> {
        let new = |version: Option<&str>| -> ConfigMap {
            let metadata = json!({"name": name, "resourceVersion": version});
            serde_json::from_value(json!({"metadata": metadata, "data": {"n": content}})).unwrap()
        };
        let wrote = |over| {
            move |written: ConfigMap| What::Wrote(content.to_owned(), version(&written), over)
        };
        let perhaps = What::PerhapsWrote(content.to_owned());
        let parameters = PostParams::default();
        match self.random.below(8) {
            0..=1 => {
                let made = self.maps.create(&parameters, &new(None)).await;
                told(made.map(wrote(None)), perhaps)
            }
            2..=3 => {
                let found = self.maps.get_opt(name).await.ok()??;
                let over = found.resource_version();
                let new = new(over.as_deref());
                let put = self.maps.replace(name, &parameters, &new).await;
                told(put.map(wrote(Some(version(&found)))), perhaps)
            }
            4..=5 => {
                let patch = Patch::Merge(json!({"data": {"n": content}}));
                let patched = self.maps.patch(name, &PatchParams::default(), &patch).await;
                told(patched.map(wrote(None)), perhaps)
            }
            6 => {
                let deleted = self.maps.delete(name, &DeleteParams::default()).await;
                told(deleted.map(|_| What::Deleted), What::PerhapsDeleted)
            }
            _ => match self.maps.get_opt(name).await.ok()? {
                Some(found) => Some(What::Read(content_in(&found), version(&found))),
                None => Some(What::ReadNothing),
            },
        }
    }
}

/// What an answer tells; one that was lost, or is the server's fault, leaves it open.
fn told(answer: Result<What, kube::Error>, perhaps: What) -> Option<What> {
    match answer {
        Ok(what) => Some(what),
        Err(kube::Error::Api(status)) if status.code < 500 => None,
        Err(_) => Some(perhaps),
    }
}

fn version(map: &ConfigMap) -> u64 {
    map.resource_version().unwrap().parse().unwrap()
}

fn content_in(map: &ConfigMap) -> String {
    let data = map.data.as_ref();
    data.and_then(|data| data.get("n"))
        .cloned()
        .unwrap_or_default()
}

/// A cache as programs written with `kube` keep it.
async fn reflect(maps: Api<ConfigMap>, config: watcher::Config, progress: Progress) -> Objects {
    let (reader, writer) = reflector::store();
    let mut events = std::pin::pin!(reflector(writer, watcher(maps, config)));
    loop {
        let objects: Objects = reader
            .state()
            .iter()
            .map(|map| (map.name_any(), (version(map), content_in(map))))
            .collect();
        let last = objects.get(LAST).map(|(version, _)| *version);
        if progress.last().is_some_and(|end| last >= Some(end)) {
            return objects;
        }
        tokio::select! {
            event = events.next() => {
                if event.unwrap().is_err() {
                    // The next change tells that the server answers again.
                    progress.later(1).await;
                }
            }
            () = progress.end(), if progress.last().is_none() => {}
        }
    }
}

/// Breaks connections and kills the server now and then.
async fn accidents(
    mut server: TestServer,
    gate: Gate,
    progress: Progress,
    (count, every): (usize, usize),
) -> TestServer {
    for accident in 0..count {
        progress.later(every).await;
        if progress.is_over() {
            break;
        }
        if accident % 2 == 1 {
            let restarted = tokio::task::spawn_blocking(move || {
                server.restart().unwrap();
                server
            });
            server = restarted.await.unwrap();
            gate.lead_to(server.url());
        }
        gate.cut();
    }
    server
}

async fn write_last(maps: &Api<ConfigMap>) -> u64 {
    let last = json!({"metadata": {"name": LAST}, "data": {"n": "last"}});
    let last: ConfigMap = serde_json::from_value(last).unwrap();
    loop {
        match maps.create(&PostParams::default(), &last).await {
            Ok(written) => return version(&written),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                return version(&maps.get(LAST).await.unwrap());
            }
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caches_equal_the_store_after_kills_cuts_and_expiry() {
    let changes = usize::try_from(number("WINDLASS_SOAK_CHANGES", CHANGES as u64)).unwrap();
    let clock = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let seed = number("WINDLASS_SOAK_SEED", clock as u64 | 1);
    println!("WINDLASS_SOAK_CHANGES={changes} WINDLASS_SOAK_SEED={seed}");
    let server = Launch::new()
        .binary(env!("CARGO_BIN_EXE_windlass"))
        .flag("--history")
        .flag("1s")
        .start()
        .unwrap();
    let gate = Gate::open(server.url()).await;
    let (tell, state) = watch::channel((0, None));
    let progress = Progress { state };
    let (tls, token) = (tls(&server), server.token().unwrap());
    let is_long = changes >= CHANGES_WITH_EXPIRY;
    let following: Vec<_> = (1..=3)
        .map(|each| {
            let follower = Follower {
                gate: gate.clone(),
                tls: Arc::clone(&tls),
                token: token.clone(),
                progress: progress.clone(),
                random: Random(seed.wrapping_add(each)),
                absences: each,
                absence_changes: ABSENCE_CHANGES.max(changes / ABSENCES_PER_RUN),
                absence_time: if is_long {
                    ABSENCE_LONG
                } else {
                    Duration::ZERO
                },
            };
            tokio::spawn(follower.run())
        })
        .collect();
    let configs = [
        watcher::Config::default().page_size(5),
        watcher::Config::default().streaming_lists(),
    ];
    let mut reflecting = Vec::new();
    for config in configs {
        let maps = maps(&server, &gate).await;
        reflecting.push(tokio::spawn(reflect(maps, config, progress.clone())));
    }
    let (clock, history) = (Arc::default(), Arc::default());
    let mut writing = Vec::new();
    for number in 0..WRITERS {
        let writer = Writer {
            maps: maps(&server, &gate).await,
            random: Random(seed.wrapping_mul(number + 3) | 1),
            number,
            clock: Arc::clone(&clock),
            history: Arc::clone(&history),
            changes: tell.clone(),
            wanted: changes,
        };
        writing.push(tokio::spawn(writer.run()));
    }
    let python = Python::start(&server, &gate);
    let count = ACCIDENTS.max(changes / CHANGES_PER_ACCIDENT);
    let how_often = (count, changes / (count + 2));
    let troubled = tokio::spawn(accidents(server, gate.clone(), progress.clone(), how_often));
    let all = async {
        for writer in writing {
            writer.await.unwrap();
        }
        // Followers that are away come back for the last change.
        let end = write_last_when_writers_are_done(&gate, troubled, &tell).await;
        let mut followed = Vec::new();
        for follower in following {
            followed.push(follower.await.unwrap());
        }
        let mut reflected = Vec::new();
        for reflector in reflecting {
            reflected.push(reflector.await.unwrap());
        }
        if let Some(python) = python {
            let last = end.1;
            let cache = tokio::task::spawn_blocking(move || python.finish(last));
            reflected.push(cache.await.unwrap());
        }
        (end, followed, reflected)
    };
    let limit = STANDSTILL + Duration::from_millis(20) * u32::try_from(changes).unwrap();
    let ((server, end), followed, reflected) = tokio::time::timeout(limit, all).await.unwrap();
    let stored: Objects = maps(&server, &gate)
        .await
        .list(&Default::default())
        .await
        .unwrap()
        .iter()
        .map(|map| (map.name_any(), (version(map), content_in(map))))
        .collect();
    assert_eq!(stored[LAST].0, end);
    for (place, follower) in followed.iter().enumerate() {
        assert_eq!(follower.objects, stored, "follower {place}");
    }
    for (place, objects) in reflected.iter().enumerate() {
        assert_eq!(*objects, stored, "reflector {place}");
    }
    let expired: usize = followed.iter().map(|follower| follower.expired).sum();
    let logs: Vec<_> = followed.into_iter().map(|follower| follower.log).collect();
    let seen: usize = logs.iter().map(Vec::len).sum();
    println!("{seen} things were seen, {expired} versions had expired");
    assert!(expired > 0 || !is_long);
    assert_eq!(guarantees::check(&logs), []);
    assert_eq!(history::check(&history.lock().unwrap()), []);
}

/// Waits for the last accident, makes the last change and tells everyone of it.
async fn write_last_when_writers_are_done(
    gate: &Gate,
    troubled: tokio::task::JoinHandle<TestServer>,
    tell: &watch::Sender<(usize, Option<u64>)>,
) -> (TestServer, u64) {
    tell.send_modify(|(changes, _)| *changes = usize::MAX);
    let server = troubled.await.unwrap();
    let end = write_last(&maps(&server, gate).await).await;
    tell.send_modify(|(_, last)| *last = Some(end));
    (server, end)
}
