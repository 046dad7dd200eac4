//! ResourceQuota: nobody uses more of a namespace than its quotas allow.
//!
//! A write is charged to the quotas before it is committed: their `status.used` grows in a commit
//! of its own, conditional on the version that was read, so that two writers never spend the same
//! rest. Writers of one namespace that come at the same time share that commit: the first one
//! charges for all who wait.
//!
//! From its charge to its commit a writer holds its namespace for reading. Whoever counts the real
//! usage (the controller) takes it for writing, and so never counts while something is charged and
//! not yet there. A charge whose write fails is found by the next count.

mod check;
mod scope;
mod usage;

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use auth::User;
use object::{Map, Text};
use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, oneshot};

use super::forbidden;
use super::lookup::Place;
use crate::body::Wanted;
use crate::error::Error;
use crate::options::WriteOptions;
use crate::write::{Attempt, Live};
use crate::{Request, Resources, Warnings};

use check::{Consumer, Quota};
pub(crate) use scope::Selector;
pub(crate) use usage::{Meter, is_extended, storage_class};

pub(crate) const QUOTAS: Place = ("", "v1", "resourcequotas");
/// How often a charge is tried again when somebody else changes the quota.
const ATTEMPTS_MAX: usize = 8;
/// Beyond this many namespaces, those that nobody uses are forgotten.
const NAMESPACES_MAX: usize = 1024;

/// What is going on about the quotas of each namespace.
#[derive(Default)]
pub(crate) struct Quotas {
    namespaces: Mutex<HashMap<Text, Arc<Namespace>>>,
    /// Namespaces whose usage may be less than their quotas say.
    freed: Mutex<BTreeSet<Text>>,
    notify: Notify,
}

#[derive(Default)]
struct Namespace {
    /// Read from a charge to its commit; written while usage is counted.
    settled: Arc<RwLock<()>>,
    waiting: Mutex<Vec<Waiting>>,
    /// Held by whoever charges for all who wait.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A writer who waits for its charge.
struct Waiting {
    consumer: Consumer,
    dry_run: bool,
    answer: oneshot::Sender<Verdict>,
}

/// What became of a charge.
#[derive(Debug)]
enum Verdict {
    Fits,
    /// Why it does not fit.
    Refused(String),
    Failed(Error),
}

/// A charge that is made good by the commit it is for.
#[must_use = "a charge is kept once its write is committed"]
pub(crate) struct Charge(Option<Held>);

struct Held {
    _settled: OwnedRwLockReadGuard<()>,
    quotas: Arc<Quotas>,
    namespace: Text,
    committed: bool,
}

impl Charge {
    /// No quota is about the write.
    pub(crate) fn none() -> Charge {
        Charge(None)
    }

    /// The write is committed.
    pub(crate) fn keep(mut self) {
        if let Some(held) = &mut self.0 {
            held.committed = true;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.committed {
            self.quotas.mark(&self.namespace);
        }
    }
}

/// Charges a write to the quotas of its namespace, or refuses it.
pub(super) async fn charge(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<Charge, Error> {
    if !request.kind.namespaced || !resources.has_quotas(request.namespace).await? {
        return Ok(Charge::none());
    }
    let meter = Meter::of(request.kind);
    let meter = meter.filter(|meter| meter.handles(request.subresource, object, old));
    let Some(meter) = meter else {
        return Ok(Charge::none());
    };
    let consumer = Consumer::new(meter, request.subresource, object, old, resources.now());
    let dry_run = request.options.dry_run;
    let namespace = resources.quotas.namespace(request.namespace);
    let settled = Arc::clone(&namespace.settled).read_owned().await;
    let held = Held {
        _settled: settled,
        quotas: Arc::clone(&resources.quotas),
        namespace: request.namespace.into(),
        committed: dry_run,
    };
    match settle(resources, namespace, &held.namespace, consumer, dry_run).await {
        Verdict::Fits => Ok(Charge(Some(held))),
        Verdict::Refused(detail) => {
            Charge(Some(held)).keep();
            Err(forbidden(request, object, detail))
        }
        Verdict::Failed(error) => Err(error),
    }
}

/// Waits until somebody has charged for this writer, or does it for all who wait.
async fn settle(
    resources: &Resources,
    namespace: Arc<Namespace>,
    name: &Text,
    consumer: Consumer,
    dry_run: bool,
) -> Verdict {
    let (answer, mut verdict) = oneshot::channel();
    lock(&namespace.waiting).push(Waiting {
        consumer,
        dry_run,
        answer,
    });
    let turn = tokio::select! {
        biased;
        verdict = &mut verdict => return verdict.unwrap_or_else(|_| Verdict::lost()),
        turn = Arc::clone(&namespace.turn).lock_owned() => turn,
    };
    if let Ok(verdict) = verdict.try_recv() {
        return verdict;
    }
    let waiting = std::mem::take(&mut *lock(&namespace.waiting));
    let (resources, name) = (resources.clone(), name.clone());
    // A task of its own: the others must not wait in vain if this one's client goes away.
    tokio::spawn(async move {
        charge_all(resources, name, waiting).await;
        drop(turn);
    });
    verdict.await.unwrap_or_else(|_| Verdict::lost())
}

impl Verdict {
    fn lost() -> Verdict {
        let text = "the charge to a quota was interrupted";
        Verdict::Failed(Error::Internal(text.to_owned()))
    }

    fn busy() -> Verdict {
        let text = "the quota of this namespace is changed by others; please try again";
        Verdict::Failed(Error::Unavailable(text.to_owned()))
    }
}

/// Charges for everyone who waits, and tells them.
///
/// The type is spelled out because a charge writes a quota's status, and a write may be charged.
fn charge_all(
    resources: Resources,
    namespace: Text,
    waiting: Vec<Waiting>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut verdicts: Vec<Option<Verdict>> = waiting.iter().map(|_| None).collect();
        let done = resources
            .charge_waiting(&namespace, &waiting, &mut verdicts)
            .await;
        if let Err(error) = done {
            tracing::warn!(%namespace, %error, "a quota could not be charged");
        }
        for (one, verdict) in waiting.into_iter().zip(verdicts) {
            let verdict = verdict.unwrap_or_else(Verdict::busy);
            if one.answer.send(verdict).is_err() {
                resources.quotas.mark(&namespace);
            }
        }
    })
}

impl Resources {
    /// Whether a namespace has any quota. Every write asks, so nothing is read.
    async fn has_quotas(&self, namespace: &str) -> Result<bool, Error> {
        let kind = self.built_in(QUOTAS)?;
        let mut prefix = Text::from(namespace);
        prefix.push('/');
        Ok(self.store.count(&kind.collection, &prefix).await > 0)
    }

    async fn charge_waiting(
        &self,
        namespace: &str,
        waiting: &[Waiting],
        verdicts: &mut [Option<Verdict>],
    ) -> Result<(), Error> {
        // Quotas that are charged already; only the others are looked at again.
        let mut done: BTreeSet<Text> = BTreeSet::new();
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 0 {
                // Whoever is refused now may be charged to another quota already.
                self.quotas.mark(&namespace.into());
            }
            let lives = self.quotas_of(namespace).await?;
            let lives: Vec<Live> = lives
                .into_iter()
                .filter(|live| !done.contains(live_name(live)))
                .collect();
            let mut quotas: Vec<Quota> = lives.iter().map(|live| Quota::new(live.map())).collect();
            for (one, verdict) in waiting.iter().zip(verdicts.iter_mut()) {
                if verdict.is_some() || one.answer.is_closed() {
                    continue;
                }
                let mut tried = quotas.clone();
                match check::charge(&mut tried, &one.consumer) {
                    Err(detail) => *verdict = Some(Verdict::Refused(detail)),
                    Ok(()) if one.dry_run => *verdict = Some(Verdict::Fits),
                    Ok(()) => quotas = tried,
                }
            }
            let mut stale = false;
            for (live, quota) in lives.into_iter().zip(&quotas) {
                if quota.changed {
                    if !self.write_used(namespace, live, quota).await? {
                        stale = true;
                        continue;
                    }
                    done.insert(quota.name.clone());
                }
            }
            if !stale {
                for verdict in verdicts.iter_mut().filter(|verdict| verdict.is_none()) {
                    *verdict = Some(Verdict::Fits);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// The quotas of a namespace.
    pub(crate) async fn quotas_of(&self, namespace: &str) -> Result<Vec<Live>, Error> {
        let kind = self.built_in(QUOTAS)?;
        let records = self.records_in(kind, namespace).await?;
        let lives = records.into_iter();
        lives.map(|record| self.take_apart(kind, record)).collect()
    }

    /// Writes what is used; `false` if somebody else was faster.
    async fn write_used(&self, namespace: &str, live: Live, quota: &Quota) -> Result<bool, Error> {
        let mut object = live.map().clone();
        let used = super::amounts::write(&quota.used);
        object.object_at("status").insert("used", used);
        self.write_quota_status(namespace, live, object, "kube-apiserver")
            .await
    }

    /// Writes the status of a quota as `manager`; `false` if somebody else was faster.
    pub(crate) async fn write_quota_status(
        &self,
        namespace: &str,
        live: Live,
        object: Map,
        manager: &str,
    ) -> Result<bool, Error> {
        let kind = self.built_in(QUOTAS)?;
        let options = WriteOptions {
            manager: manager.into(),
            ..WriteOptions::default()
        };
        let name = live_name(&live).to_owned();
        let request = Request {
            kind,
            namespace,
            name: &name,
            subresource: "status",
            user: &User::server(),
            options: &options,
            warnings: &Warnings::default(),
        };
        match self
            .replace(&request, live, Wanted::by_server(object))
            .await?
        {
            Attempt::Done(_) => Ok(true),
            Attempt::Stale => Ok(false),
        }
    }
}

fn live_name(live: &Live) -> &str {
    crate::meta::meta_text(live.map(), "name")
}

impl Quotas {
    fn namespace(&self, name: &str) -> Arc<Namespace> {
        let mut namespaces = lock(&self.namespaces);
        if let Some(known) = namespaces.get(name) {
            return Arc::clone(known);
        }
        if namespaces.len() >= NAMESPACES_MAX {
            // Nobody else can come to hold one: that takes the lock.
            namespaces.retain(|_, it| Arc::strong_count(it) > 1 || it.is_in_use());
        }
        let new = Arc::new(Namespace::default());
        namespaces.insert(name.into(), Arc::clone(&new));
        new
    }

    /// Waits for those who are charged in a namespace, and keeps others from it.
    pub(crate) async fn hold(&self, namespace: &str) -> OwnedRwLockWriteGuard<()> {
        let namespace = self.namespace(namespace);
        Arc::clone(&namespace.settled).write_owned().await
    }

    /// Notes that a namespace may use less than its quotas say.
    pub(crate) fn mark(&self, namespace: &Text) {
        lock(&self.freed).insert(namespace.clone());
        self.notify.notify_one();
    }

    /// The namespaces that were noted, as soon as there is one.
    pub(crate) async fn freed(&self) -> BTreeSet<Text> {
        loop {
            let freed = std::mem::take(&mut *lock(&self.freed));
            if !freed.is_empty() {
                return freed;
            }
            self.notify.notified().await;
        }
    }
}

impl Namespace {
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.settled) > 1 || Arc::strong_count(&self.turn) > 1
    }
}

/// Locks a mutex; a panic elsewhere does not spoil what it guards.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
