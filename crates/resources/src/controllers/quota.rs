//! Keeps the status of quotas true: their limits as specified, and what is really used.
//!
//! Admission adds to what is used; only a count takes from it. A namespace is counted when a quota
//! comes or changes, when something it counts is deleted or shrinks, and now and then. While it is
//! counted nobody writes to it what a quota is about. Contract:
//! `pkg/controller/resourcequota/resource_quota_controller.go`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kinds::Kind;
use object::{Map, Text};
use store::{Event, Range};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::Resources;
use crate::admission::amounts::{self, Amounts};
use crate::admission::{Meter, QUOTAS, Selector};
use crate::error::Error;
use crate::write::Live;

/// Who writes the status of quotas.
const MANAGER: &str = "kube-controller-manager";
/// Changes within this time are counted together.
const SOON: Duration = Duration::from_millis(50);
/// A count takes at most one part in so many of the time.
const REST_FACTOR: u32 = 10;
/// A failed count is tried again after this long.
const AGAIN: Duration = Duration::from_secs(1);
/// Resources that no kind uses yet are looked for again after this long.
const LOOK: Duration = Duration::from_secs(5);
/// Everything is counted again after this long: pods run out of grace without an event, and charges
/// may be lost in a crash.
const RESYNC: Duration = Duration::from_secs(5 * 60);

/// Counts until the task is dropped.
pub(super) async fn run(resources: Resources) {
    loop {
        // It ends when it fell behind the history: then everything is looked at again.
        if let Err(error) = (Controller::new(resources.clone())).run().await {
            debug!(%error, "the count of quotas starts over");
        }
        tokio::time::sleep(SOON).await;
    }
}

struct Controller {
    resources: Resources,
    /// When each namespace is counted next.
    due: BTreeMap<Text, Instant>,
    /// Namespaces that are due only because a kind may have come that their quotas name.
    looks: BTreeSet<Text>,
    /// How long to wait before a namespace is counted again.
    rest: HashMap<Text, Duration>,
    /// Follows the collections that quotas are about.
    followers: JoinSet<Result<(), store::Error>>,
    followed: BTreeSet<Text>,
}

impl Controller {
    fn new(resources: Resources) -> Controller {
        Controller {
            resources,
            due: BTreeMap::new(),
            looks: BTreeSet::new(),
            rest: HashMap::new(),
            followers: JoinSet::new(),
            followed: BTreeSet::new(),
        }
    }

    async fn run(&mut self) -> Result<(), Error> {
        let kind = Arc::clone(self.resources.built_in(QUOTAS)?);
        let failed = |error| Error::from_store(error, Default::default);
        let store = self.resources.store.clone();
        let mut resync = Instant::now();
        let page = store
            .range(&kind.collection, Range::default())
            .await
            .map_err(failed)?;
        let watch = store.watch(&kind.collection, page.revision).await;
        let mut quotas = watch.map_err(failed)?;
        loop {
            if Instant::now() >= resync {
                resync = Instant::now() + RESYNC;
                let page = store.range(&kind.collection, Range::default()).await;
                for record in page.map_err(failed)?.records {
                    if let Some((namespace, _)) = record.name.split_once('/') {
                        self.plan_now(namespace.into());
                    }
                }
            }
            let next = self.due.iter().min_by_key(|(_, when)| **when);
            let next = next.map(|(namespace, when)| (namespace.clone(), *when));
            let wake = next.as_ref().map_or(resync, |(_, when)| resync.min(*when));
            tokio::select! {
                event = quotas.next() => self.see_quota(event.map_err(failed)?.as_ref()),
                freed = self.resources.quotas.freed() => {
                    for namespace in freed {
                        self.plan(namespace);
                    }
                }
                Some(ended) = self.followers.join_next() => {
                    ended.unwrap_or(Ok(())).map_err(failed)?;
                }
                () = sleep_until(wake) => {
                    if let Some((namespace, when)) = next
                        && when <= Instant::now()
                    {
                        self.due.remove(&namespace);
                        self.tend(&namespace).await;
                    }
                }
            }
        }
    }

    /// Counts a namespace soon, once for everything that happens until then.
    fn plan(&mut self, namespace: Text) {
        let wait = self.rest.get(&namespace).copied().unwrap_or(SOON);
        let when = Instant::now() + wait;
        if self.looks.remove(&namespace) {
            self.due.insert(namespace, when);
        } else {
            self.due.entry(namespace).or_insert(when);
        }
    }

    /// Counts a namespace at once.
    fn plan_now(&mut self, namespace: Text) {
        self.looks.remove(&namespace);
        self.due.insert(namespace, Instant::now());
    }

    fn see_quota(&mut self, event: &Event) {
        let Some((namespace, _)) = event.record.name.split_once('/') else {
            return;
        };
        let kind = self.resources.built_in(QUOTAS);
        let tree = kind.and_then(|kind| self.resources.tree(kind, event.record.clone()));
        // What admission adds needs no count.
        let is_incomplete = |quota: Map| !is_complete(&self.resources, &quota);
        if !event.deleted && tree.is_ok_and(is_incomplete) {
            self.plan_now(namespace.into());
        }
    }

    async fn tend(&mut self, namespace: &Text) {
        let started = Instant::now();
        let only_looks = self.looks.remove(namespace);
        match self.count(namespace, only_looks).await {
            Ok(Counted::Nothing) => {
                self.rest.remove(namespace);
            }
            Ok(Counted::Partly) => {
                self.looks.insert(namespace.clone());
                self.due.insert(namespace.clone(), Instant::now() + LOOK);
            }
            Ok(Counted::New) => {
                // Whoever was on its way when the quota came was not charged.
                self.due.insert(namespace.clone(), Instant::now() + AGAIN);
            }
            Ok(Counted::Again) => {
                let rest = started.elapsed() * REST_FACTOR;
                self.rest.insert(namespace.clone(), rest.max(SOON));
            }
            Err(error) => {
                debug!(%namespace, %error, "a namespace is counted again later");
                self.due.insert(namespace.clone(), Instant::now() + AGAIN);
            }
        }
    }

    async fn count(&mut self, namespace: &Text, only_looks: bool) -> Result<Counted, Error> {
        let resources = self.resources.clone();
        let _alone = resources.quotas.hold(namespace).await;
        let quotas = resources.quotas_of(namespace).await?;
        let complete = |live: &Live| is_complete(&resources, live.map());
        let is_new = !quotas.iter().all(complete);
        let is_partly = |live: &Live| {
            let hard = part(live.map(), "spec", "hard");
            hard.keys().any(|name| !is_measured(&resources, name))
        };
        let counted = match quotas.as_slice() {
            [] => Counted::Nothing,
            _ if is_new => Counted::New,
            quotas if quotas.iter().any(is_partly) => Counted::Partly,
            _ => Counted::Again,
        };
        if is_new || !only_looks {
            for live in quotas {
                self.count_quota(namespace, live).await?;
            }
        }
        Ok(counted)
    }

    async fn count_quota(&mut self, namespace: &Text, live: Live) -> Result<(), Error> {
        let quota = live.map();
        let hard = part(quota, "spec", "hard");
        let selectors = Selector::of_quota(quota);
        let mut used = part(quota, "status", "used");
        for kind in kinds_of(&self.resources, &hard) {
            self.follow(&kind).await?;
            used.extend(self.usage(namespace, &kind, &hard, &selectors).await?);
        }
        used.retain(|name, _| hard.contains_key(name));
        let unchanged = used == part(quota, "status", "used");
        if unchanged && is_complete(&self.resources, quota) {
            return Ok(());
        }
        let mut object = quota.clone();
        let status = object.object_at("status");
        status.insert("hard", amounts::write(&hard));
        status.insert("used", amounts::write(&used));
        let written = self
            .resources
            .write_quota_status(namespace, live, object, MANAGER)
            .await?;
        if !written {
            let text = "a quota was changed while its namespace was counted";
            return Err(Error::Unavailable(text.to_owned()));
        }
        Ok(())
    }

    /// What all objects of a kind use of the resources of a quota.
    async fn usage(
        &self,
        namespace: &str,
        kind: &Arc<Kind>,
        hard: &Amounts,
        selectors: &[Selector],
    ) -> Result<Amounts, Error> {
        let Some(meter) = Meter::of(kind) else {
            return Ok(Amounts::new());
        };
        let names = meter.matching(hard.keys());
        let mut used: Amounts = names
            .iter()
            .map(|name| (name.clone(), amounts::count(0)))
            .collect();
        if meter.only_counts() {
            let mut number = 0;
            if selectors.is_empty() {
                let prefix = format!("{namespace}/");
                let store = &self.resources.store;
                number = store.count(&kind.collection, &prefix).await;
            }
            for amount in used.values_mut() {
                *amount = amounts::count(number);
            }
            return Ok(used);
        }
        let now = self.resources.now();
        for record in self.resources.records_in(kind, namespace).await? {
            let object = self.resources.tree(kind, record)?;
            if meter.scopes(&object).match_all(selectors) {
                let usage = meter.usage(&object, now);
                amounts::add(&mut used, &amounts::mask(&usage, names.iter()));
            }
        }
        Ok(used)
    }

    /// Begins to follow what becomes of a kind's objects.
    async fn follow(&mut self, kind: &Arc<Kind>) -> Result<(), Error> {
        if !self.followed.insert(kind.collection.clone()) {
            return Ok(());
        }
        let store = self.resources.store.clone();
        let watch = store.watch(&kind.collection, store.revision()).await;
        let mut watch = watch.map_err(|error| Error::from_store(error, Default::default))?;
        let (resources, kind) = (self.resources.clone(), Arc::clone(kind));
        self.followers.spawn(async move {
            loop {
                let event = watch.next().await?;
                if let Some((namespace, _)) = event.record.name.split_once('/')
                    && frees(&resources, &kind, &event)
                {
                    resources.quotas.mark(&namespace.into());
                }
            }
        });
        Ok(())
    }
}

/// What a count found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// There is no quota.
    Nothing,
    /// A quota had never been counted before with its limits.
    New,
    /// Quotas that were counted before.
    Again,
    /// Such quotas, and one of them names a resource that no kind uses.
    Partly,
}

/// A list of amounts of a quota.
fn part(quota: &Map, part: &str, field: &str) -> Amounts {
    amounts::read(quota.get(part).and_then(|part| part.get(field)))
}

/// Whether the status has the limits of the spec, and a count for each that can be counted.
fn is_complete(resources: &Resources, quota: &Map) -> bool {
    let (wanted, hard) = (part(quota, "spec", "hard"), part(quota, "status", "hard"));
    let used = part(quota, "status", "used");
    let has_status = quota
        .get("status")
        .is_some_and(|status| status.get("hard").is_some_and(|it| !it.is_null()));
    let is_counted = |name: &Text| used.contains_key(name) || !is_measured(resources, name);
    wanted == hard && (has_status || wanted.is_empty()) && hard.keys().all(is_counted)
}

/// Whether there is a kind that uses a resource.
fn is_measured(resources: &Resources, name: &Text) -> bool {
    let one = Amounts::from([(name.clone(), amounts::one())]);
    !kinds_of(resources, &one).is_empty()
}

/// The stored kinds that resources of a quota are about, each once.
fn kinds_of(resources: &Resources, hard: &Amounts) -> Vec<Arc<Kind>> {
    let catalogue = resources.catalogue();
    let is_about = |kind: &&Arc<Kind>| {
        Arc::ptr_eq(catalogue.stored_kind(kind), kind)
            && Meter::of(kind).is_some_and(|meter| !meter.matching(hard.keys()).is_empty())
    };
    let kinds = catalogue.kinds().iter();
    kinds.filter(is_about).map(Arc::clone).collect()
}

/// Whether less is used after an event than before.
fn frees(resources: &Resources, kind: &Arc<Kind>, event: &Event) -> bool {
    if event.deleted {
        return true;
    }
    let Some(meter) = Meter::of(kind).filter(|meter| !meter.only_counts()) else {
        return false;
    };
    let Some(previous) = &event.previous else {
        return false;
    };
    let tree = |record: &store::Record| resources.tree(kind, record.clone());
    let (Ok(before), Ok(after)) = (tree(previous), tree(&event.record)) else {
        return false;
    };
    let now = resources.now();
    let (was, is) = (meter.usage(&before, now), meter.usage(&after, now));
    let shrank = was
        .iter()
        .any(|(name, amount)| is.get(name).is_none_or(|it| it < amount));
    shrank || meter.scopes(&before) != meter.scopes(&after)
}
