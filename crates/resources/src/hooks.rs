//! Webhooks and policies in force: what people configure to change or refuse writes.
//!
//! Configurations are kept ready for use. Nothing runs in the background: a request looks whether
//! one of their collections changed since they were read, which is a load each, and reads them
//! again if so. A change is thus in force for every request that begins after its answer.

mod admit;
mod ask;
mod matter;
mod mutating;
mod services;
mod validating;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use admission::metrics::Metrics;
use admission::webhook::Webhook;
use kinds::Catalogue;
use store::{Pulse, Range, Revision, Store};

use crate::Resources;
use crate::conversion::Converters;
use crate::error::{Error, Subject};
use crate::record::Stored;

pub(crate) use matter::Matter;

const GROUP: &str = "admissionregistration.k8s.io";
/// The collections of configurations, in the order of [`Set::configurations`].
const RESOURCES: [&str; 2] = [
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
];
const MUTATING: usize = 0;
const VALIDATING: usize = 1;

/// What is configured, as far as it was read.
pub(crate) struct Hooks {
    pulses: [Pulse; RESOURCES.len()],
    /// Everything up to this revision is in `current`.
    seen: AtomicU64,
    /// Whether there is anything in `current`.
    active: AtomicBool,
    current: RwLock<Arc<Set>>,
    /// One reads at a time.
    reading: tokio::sync::Mutex<()>,
    metrics: Metrics,
    /// The webhooks that convert custom resources, with their connections.
    pub(crate) converters: Converters,
}

/// Configurations, compiled.
#[derive(Default)]
pub(crate) struct Set {
    configurations: [BTreeMap<Arc<str>, Configuration>; RESOURCES.len()],
    mutating: Vec<Arc<Webhook>>,
    validating: Vec<Arc<Webhook>>,
}

/// One configuration as it was at a revision.
#[derive(Clone)]
struct Configuration {
    revision: Revision,
    webhooks: Vec<Arc<Webhook>>,
}

impl Hooks {
    pub(crate) fn new(store: &Store) -> Hooks {
        let pulses = RESOURCES.map(|resource| store.pulse(collection(resource)));
        Hooks {
            pulses,
            seen: AtomicU64::new(0),
            active: AtomicBool::new(false),
            current: RwLock::default(),
            reading: tokio::sync::Mutex::default(),
            metrics: Metrics::default(),
            converters: Converters::default(),
        }
    }

    fn is_fresh(&self) -> bool {
        let seen = Revision(self.seen.load(Ordering::Acquire));
        self.pulses.iter().all(|pulse| pulse.newest() <= seen)
    }

    fn current(&self) -> Arc<Set> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }
}

fn collection(resource: &str) -> &'static str {
    let kind = Catalogue::builtin().resource(GROUP, "v1", resource);
    &kind
        .expect("admission configurations are built in")
        .collection
}

impl Resources {
    /// What is configured now; `None` if that is nothing.
    pub(crate) async fn hooks_in_force(&self) -> Result<Option<Arc<Set>>, Error> {
        if !self.hooks.is_fresh() {
            self.read_hooks().await?;
        }
        let active = self.hooks.active.load(Ordering::Acquire);
        Ok(active.then(|| self.hooks.current()))
    }

    async fn read_hooks(&self) -> Result<(), Error> {
        let _reading = self.hooks.reading.lock().await;
        if self.hooks.is_fresh() {
            return Ok(());
        }
        let before = self.hooks.current();
        let mut set = Set::default();
        let mut seen = Revision(u64::MAX);
        for (place, resource) in RESOURCES.iter().enumerate() {
            let page = self
                .store
                .range(collection(resource), Range::default())
                .await;
            let page = page.map_err(|error| Error::from_store(error, Subject::default))?;
            seen = seen.min(page.revision);
            for record in page.records {
                let known = before.configurations[place].get(&record.name);
                let known = known.filter(|known| known.revision == record.revision);
                let configuration = match known {
                    Some(known) => known.clone(),
                    None => Configuration::read(&record)?,
                };
                set.configurations[place].insert(record.name, configuration);
            }
        }
        set.gather();
        let active = !set.is_empty();
        *self
            .hooks
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
        self.hooks.active.store(active, Ordering::Release);
        self.hooks.seen.store(seen.0, Ordering::Release);
        Ok(())
    }

    /// What was counted about webhooks, in Prometheus' text form.
    pub fn write_admission_metrics(&self, out: &mut String) {
        self.hooks.metrics.write(out);
    }
}

impl Configuration {
    fn read(record: &store::Record) -> Result<Configuration, Error> {
        let tree = Stored::new(&record.value).and_then(|stored| stored.tree(Some(record.revision)));
        let tree = tree.map_err(|error| Error::Internal(error.to_string()))?;
        let webhooks = Webhook::of_configuration(&tree);
        Ok(Configuration {
            revision: record.revision,
            webhooks: webhooks.into_iter().map(Arc::new).collect(),
        })
    }
}

impl Set {
    /// Puts webhooks into the order in which they are asked: by configuration, then as listed.
    fn gather(&mut self) {
        let webhooks = |place: usize| {
            let configurations = self.configurations[place].values();
            configurations
                .flat_map(|it| it.webhooks.iter().cloned())
                .collect()
        };
        (self.mutating, self.validating) = (webhooks(MUTATING), webhooks(VALIDATING));
    }

    /// Whether anything may change objects.
    fn mutates(&self) -> bool {
        !self.mutating.is_empty()
    }

    /// Whether anything may refuse objects that are valid.
    fn validates(&self) -> bool {
        !self.validating.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }
}
