//! Webhooks and policies in force: what people configure to change or refuse writes.
//!
//! Configurations are kept ready for use. Nothing runs in the background: a request looks whether
//! one of their collections changed since they were read, which is a load each, and reads them
//! again if so. A change is thus in force for every request that begins after its answer.

mod admit;
mod answers;
mod ask;
mod changing;
mod matter;
mod merging;
mod mutating;
mod parameters;
mod policies;
mod services;
mod validating;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use admission::metrics::Metrics;
use admission::policy::{Binding, MutatingPolicy, ValidatingPolicy};
use admission::webhook::Webhook;
use kinds::Catalogue;
use object::Text;
use store::{Pulse, Range, Revision, Store};

use crate::Resources;
use crate::admission::{Chain, Plugin};
use crate::conversion::Converters;
use crate::error::{Error, Subject};
use crate::record::Stored;

pub(crate) use matter::Matter;

const GROUP: &str = "admissionregistration.k8s.io";
/// The collections of configurations, in the order of [`Set::configurations`].
const RESOURCES: [&str; 6] = [
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];
const MUTATING: usize = 0;
const VALIDATING: usize = 1;
const CHANGING_POLICIES: usize = 2;
const CHANGING_BINDINGS: usize = 3;
const POLICIES: usize = 4;
const BINDINGS: usize = 5;

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
    changing_policies: Vec<Bound<MutatingPolicy>>,
    policies: Vec<Bound<ValidatingPolicy>>,
}

/// A policy with its bindings, without which it is not in force.
struct Bound<P> {
    policy: Arc<P>,
    bindings: Vec<Arc<Binding>>,
}

/// One configuration as it was at a revision.
#[derive(Clone)]
struct Configuration {
    revision: Revision,
    compiled: Compiled,
}

#[derive(Clone)]
enum Compiled {
    Webhooks(Vec<Arc<Webhook>>),
    Changing(Arc<MutatingPolicy>),
    Policy(Arc<ValidatingPolicy>),
    Binding(Arc<Binding>),
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
                    None => Configuration::read(place, &record)?,
                };
                set.configurations[place].insert(record.name, configuration);
            }
        }
        set.gather();
        set.keep_enabled(&self.admission);
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
    fn read(place: usize, record: &store::Record) -> Result<Configuration, Error> {
        let tree = Stored::new(&record.value).and_then(|stored| stored.tree(Some(record.revision)));
        let tree = tree.map_err(|error| Error::Internal(error.to_string()))?;
        let compiled = match place {
            MUTATING | VALIDATING => {
                let webhooks = Webhook::of_configuration(&tree);
                Compiled::Webhooks(webhooks.into_iter().map(Arc::new).collect())
            }
            CHANGING_POLICIES => Compiled::Changing(Arc::new(MutatingPolicy::read(&tree))),
            POLICIES => Compiled::Policy(Arc::new(ValidatingPolicy::read(&tree))),
            _ => Compiled::Binding(Arc::new(Binding::read(&tree))),
        };
        Ok(Configuration {
            revision: record.revision,
            compiled,
        })
    }
}

impl Set {
    /// Puts everything into the order in which it is asked: by name, then as listed.
    fn gather(&mut self) {
        self.mutating = self.webhooks(MUTATING);
        self.validating = self.webhooks(VALIDATING);
        self.changing_policies = self.bound(CHANGING_POLICIES, CHANGING_BINDINGS, |it| match it {
            Compiled::Changing(policy) => Some((policy, &policy.policy.name)),
            _ => None,
        });
        self.policies = self.bound(POLICIES, BINDINGS, |it| match it {
            Compiled::Policy(policy) => Some((policy, &policy.policy.name)),
            _ => None,
        });
    }

    /// Leaves out what is switched off as a plugin.
    fn keep_enabled(&mut self, chain: &Chain) {
        if !chain.has(Plugin::MutatingAdmissionPolicy) {
            self.changing_policies.clear();
        }
        if !chain.has(Plugin::MutatingAdmissionWebhook) {
            self.mutating.clear();
        }
        if !chain.has(Plugin::ValidatingAdmissionPolicy) {
            self.policies.clear();
        }
        if !chain.has(Plugin::ValidatingAdmissionWebhook) {
            self.validating.clear();
        }
    }

    fn webhooks(&self, place: usize) -> Vec<Arc<Webhook>> {
        let all = self.configurations[place].values();
        let webhooks = all.flat_map(|configuration| match &configuration.compiled {
            Compiled::Webhooks(webhooks) => webhooks.as_slice(),
            _ => &[],
        });
        webhooks.cloned().collect()
    }

    /// The policies of a collection that bindings of another name.
    fn bound<P>(
        &self,
        policies: usize,
        bindings: usize,
        read: impl Fn(&Compiled) -> Option<(&Arc<P>, &Text)>,
    ) -> Vec<Bound<P>> {
        let policies = self.configurations[policies].values();
        let bound = policies.filter_map(|policy| {
            let (policy, name) = read(&policy.compiled)?;
            let all = self.configurations[bindings].values();
            let bindings = all.filter_map(|binding| match &binding.compiled {
                Compiled::Binding(binding) if binding.policy == *name => Some(Arc::clone(binding)),
                _ => None,
            });
            let bindings: Vec<Arc<Binding>> = bindings.collect();
            let policy = Arc::clone(policy);
            (!bindings.is_empty()).then_some(Bound { policy, bindings })
        });
        bound.collect()
    }

    /// Whether anything may change objects.
    fn mutates(&self) -> bool {
        !self.mutating.is_empty() || !self.changing_policies.is_empty()
    }

    /// Whether anything may refuse objects that are valid.
    fn validates(&self) -> bool {
        !self.validating.is_empty() || !self.policies.is_empty()
    }

    fn is_empty(&self) -> bool {
        !self.mutates() && !self.validates()
    }
}
