//! Garbage collection: what depends on an owner that is gone goes too.
//!
//! The collector follows every collection in one order: it looks at nothing before all that was
//! written up to then is in its graph. What it does about an object is decided by the stored
//! object and its stored owners, never by the graph, which only says where to look. It deletes
//! through the same path as everyone else. Contract: upstream's `pkg/controller/garbagecollector`.

mod graph;
mod work;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kinds::Kind;
use store::{Range, Watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use self::graph::{Facts, Graph, Object};
use self::work::Job;
use super::{AGAIN_FIRST, Identity, MANAGER, WRITES_AT_A_TIME, again_and_again};
use crate::Resources;
use crate::error::Error;

/// What failed is tried again after at most this long.
const RETRY_LAST: Duration = Duration::from_secs(60);
/// Changes that come close together are looked at together.
const SETTLE: Duration = Duration::from_millis(2);
/// Objects read at once when a collection is first seen.
const PAGE_RECORDS: usize = 1000;
/// Objects decided about before others get their turn on the thread.
const DECISIONS_AT_A_TIME: usize = 256;

/// Collects until the store is closed.
pub(super) async fn run(resources: Resources) {
    let start = || async { Collector::new(resources.clone()).run().await };
    again_and_again("garbage-collector-controller", start).await;
}

/// A kind that is followed.
struct Source {
    kind: Arc<Kind>,
    watch: Watch,
}

/// The collector's state.
struct Collector {
    resources: Resources,
    identity: Identity,
    sources: Vec<Source>,
    graph: Graph,
    /// Objects to look at.
    queue: BTreeSet<Object>,
    /// Objects that are being written.
    busy: HashSet<Object>,
    /// Objects to look at again.
    later: BTreeSet<(Instant, Object)>,
    /// Objects whose last job failed, and how long to wait after the next failure.
    failed: HashMap<Object, Duration>,
    jobs: JoinSet<Outcome>,
    /// Whether some owner was of a kind that is not served.
    unknown_kinds: bool,
}

/// What became of a job.
struct Outcome {
    object: Object,
    result: Result<(), Error>,
}

impl Collector {
    fn new(resources: Resources) -> Collector {
        Collector {
            resources,
            identity: Identity::new(MANAGER),
            sources: Vec::new(),
            graph: Graph::default(),
            queue: BTreeSet::new(),
            busy: HashSet::new(),
            later: BTreeSet::new(),
            failed: HashMap::new(),
            jobs: JoinSet::new(),
            unknown_kinds: false,
        }
    }

    async fn run(mut self) -> Result<(), store::Error> {
        let mut kinds = self.resources.catalogue_changes();
        self.find_kinds().await?;
        loop {
            let seen = self.catch_up().await?;
            self.take_due();
            if self.start_jobs().await? == DECISIONS_AT_A_TIME {
                tokio::task::yield_now().await;
                continue;
            }
            let next = self.later.first().map(|(when, _)| *when);
            tokio::select! {
                newer = self.resources.store.newer_than(seen) => {
                    newer?;
                    sleep(SETTLE).await;
                }
                Some(done) = self.jobs.join_next() => self.finish(done),
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
                Ok(()) = kinds.changed() => self.find_kinds().await?,
            }
            while let Some(done) = self.jobs.try_join_next() {
                self.finish(done);
            }
        }
    }

    /// Follows the kinds that are not followed yet.
    async fn find_kinds(&mut self) -> Result<(), store::Error> {
        let mut found = false;
        for kind in self.resources.deletable_kinds() {
            if !kind.rules.garbage_collected {
                continue;
            }
            let same = |source: &&mut Source| source.kind.collection == kind.collection;
            if let Some(source) = self.sources.iter_mut().find(same) {
                source.kind = kind;
                continue;
            }
            found = true;
            self.follow(kind).await?;
        }
        if found && std::mem::take(&mut self.unknown_kinds) {
            // An owner of a kind that was unknown may be known now.
            for place in 0..self.sources.len() {
                self.look_at_all(place).await?;
            }
        }
        Ok(())
    }

    async fn follow(&mut self, kind: Arc<Kind>) -> Result<(), store::Error> {
        let place = self.sources.len();
        let store = self.resources.store.clone();
        // The watch begins before the listing: an object may be seen twice, never missed.
        let watch = store.watch(&kind.collection, store.revision()).await?;
        self.sources.push(Source { kind, watch });
        self.look_at_all(place).await
    }

    /// Reads a whole collection into the graph.
    async fn look_at_all(&mut self, place: usize) -> Result<(), store::Error> {
        let store = self.resources.store.clone();
        let collection = self.sources[place].kind.collection.clone();
        let mut start: Option<String> = None;
        loop {
            let range = Range {
                start: start.as_deref(),
                limit: PAGE_RECORDS,
                ..Range::default()
            };
            let page = store.range(&collection, range).await?;
            for record in &page.records {
                let object = self.object(place, &record.name);
                self.saw(object, &Facts::default(), &Facts::read(&record.value));
            }
            match page.records.last() {
                Some(last) if page.remaining > 0 => start = Some(format!("{}\0", last.name)),
                _ => return Ok(()),
            }
            tokio::task::yield_now().await;
        }
    }

    fn object(&self, place: usize, name: &Arc<str>) -> Object {
        Object {
            kind: u32::try_from(place).expect("there are few kinds"),
            name: Arc::clone(name),
        }
    }

    /// Takes in everything that can be seen now; tells up to where.
    async fn catch_up(&mut self) -> Result<store::Revision, store::Error> {
        let target = self.resources.store.revision();
        for place in 0..self.sources.len() {
            loop {
                let watch = &mut self.sources[place].watch;
                let event = match watch.try_next()? {
                    Some(event) => event,
                    // Behind what memory holds: the next event comes from disk.
                    None if watch.position() < target => watch.next().await?,
                    None => break,
                };
                let object = self.object(place, &event.record.name);
                let before = event.previous.as_ref();
                let before = before.map(|record| Facts::read(&record.value));
                let before = before.unwrap_or_default();
                if event.deleted {
                    self.lost(&object, &before);
                } else {
                    self.saw(object, &before, &Facts::read(&event.record.value));
                }
            }
        }
        Ok(target)
    }

    /// An object is there, or has changed.
    fn saw(&mut self, object: Object, before: &Facts, now: &Facts) {
        self.graph.change(&object, before, now);
        if before.owners != now.owners {
            self.wake_owners(before);
            self.queue.insert(object.clone());
        }
        if now.is_waiting() && !before.is_waiting() {
            self.queue.extend(self.graph.dependents(&now.uid).cloned());
        }
        let to_do = now.deleting && (now.orphans || now.waits);
        if to_do {
            self.queue.insert(object);
        }
    }

    /// An object is gone.
    fn lost(&mut self, object: &Object, last: &Facts) {
        self.graph.change(object, last, &Facts::default());
        self.wake_owners(last);
        self.queue.extend(self.graph.dependents(&last.uid).cloned());
    }

    /// Owners that wait for their dependents look whether they still have to.
    fn wake_owners(&mut self, dependent: &Facts) {
        for owner in &dependent.owners {
            if let Some(waiting) = self.graph.waiting(&owner.uid) {
                self.queue.insert(waiting.clone());
            }
        }
    }

    fn take_due(&mut self) {
        let now = Instant::now();
        while self.later.first().is_some_and(|(when, _)| *when <= now) {
            let due = self.later.pop_first();
            self.queue.extend(due.map(|(_, object)| object));
        }
    }

    /// Decides about objects of the queue and starts what is to be done; tells how many.
    async fn start_jobs(&mut self) -> Result<usize, store::Error> {
        let mut decided = 0;
        while decided < DECISIONS_AT_A_TIME && self.jobs.len() < WRITES_AT_A_TIME {
            let mut queue = self.queue.iter();
            let Some(object) = queue.find(|it| !self.busy.contains(it)).cloned() else {
                break;
            };
            self.queue.remove(&object);
            decided += 1;
            if let Some(job) = self.decide(&object).await? {
                self.start(object, job);
            }
        }
        Ok(decided)
    }

    fn start(&mut self, object: Object, job: Job) {
        self.busy.insert(object.clone());
        let kind = Arc::clone(&self.sources[object.kind as usize].kind);
        let (resources, identity) = (self.resources.clone(), self.identity.clone());
        self.jobs.spawn(async move {
            let result = job.run(&resources, &identity, &kind, &object.name).await;
            Outcome { object, result }
        });
    }

    fn finish(&mut self, done: Result<Outcome, tokio::task::JoinError>) {
        let Ok(Outcome { object, result }) = done else {
            // Only a panic ends a job otherwise; its object is looked at when it changes.
            return self.busy.clear();
        };
        self.busy.remove(&object);
        match result {
            Ok(()) => {
                self.failed.remove(&object);
            }
            Err(error) => {
                debug!(object = %object.name, %error, "collected again later");
                let wait = self.failed.entry(object.clone()).or_insert(AGAIN_FIRST);
                self.later.insert((Instant::now() + *wait, object));
                *wait = (*wait * 2).min(RETRY_LAST);
            }
        }
    }
}
