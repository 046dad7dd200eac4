//! Custom kinds: what their definitions make of the catalogue, and the life of a definition.
//!
//! One task follows the collection of definitions. It accepts names, establishes, and replaces the
//! catalogue; when a definition is being deleted, it deletes the objects and then lets the
//! definition go. It runs always, because nobody outside the server can do it. Whoever writes a
//! definition is answered when the task has seen the write, so that the next request finds the
//! kind served.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use auth::User;
use kinds::{Catalogue, Kind, custom};
use object::{Map, Value};
use store::{Event, Range, Record, Revision};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, warn};

use crate::body::Wanted;
use crate::error::{Error, Subject};
use crate::meta::{self, meta, meta_mut, meta_text};
use crate::options::WriteOptions;
use crate::record::Stored;
use crate::write::Draft;
use crate::{Request, Resources, Warnings};

/// Writers of a definition wait at most this long for it to take effect.
const SETTLE_MAX: Duration = Duration::from_secs(1);
/// A definition whose objects do not go is looked at again after this long, then after longer.
const AGAIN_FIRST: Duration = Duration::from_millis(50);
const AGAIN_LAST: Duration = Duration::from_secs(5);

/// So few definitions are not worth a thread of their own.
const SHARE_MIN: usize = 64;

/// How far the task has come: the revision up to which definitions are in the catalogue.
pub(crate) struct Progress(watch::Sender<Option<Revision>>);

impl Default for Progress {
    fn default() -> Progress {
        Progress(watch::Sender::new(None))
    }
}

/// The definitions and what they declare.
struct Definitions {
    resources: Resources,
    kind: Arc<Kind>,
    user: User,
    options: WriteOptions,
    /// By name.
    known: BTreeMap<String, Known>,
}

/// A definition.
struct Known {
    object: Map,
    revision: Revision,
    kinds: Vec<Arc<Kind>>,
}

impl Resources {
    /// The kind that declares kinds.
    fn definition_kind() -> Arc<Kind> {
        let kind = Catalogue::builtin().resource(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
        );
        Arc::clone(kind.expect("definitions are built in"))
    }

    /// Follows the definitions of custom kinds until the task is dropped. Answers through `ready`
    /// when those that are stored are served.
    pub async fn run_definitions(self, ready: tokio::sync::oneshot::Sender<()>) {
        let mut ready = Some(ready);
        let progress = Arc::clone(&self.definitions);
        // Its own writes must not wait for itself.
        let resources = Resources {
            definitions: Arc::default(),
            ..self
        };
        let mut definitions = Definitions {
            kind: Resources::definition_kind(),
            user: User::server(),
            options: WriteOptions {
                manager: "kube-apiserver".into(),
                ..WriteOptions::default()
            },
            known: BTreeMap::new(),
            resources,
        };
        loop {
            // It ends when it fell behind the history: then everything is read again.
            if let Err(error) = definitions.run(&progress, &mut ready).await {
                debug!(%error, "definitions are read again");
            }
            progress.0.send_replace(None);
            tokio::time::sleep(AGAIN_FIRST).await;
        }
    }

    /// Waits until a write of a definition has taken effect.
    pub(crate) async fn settle(&self, kind: &Kind, revision: Revision) {
        if !kind.rules.defines_kinds {
            return;
        }
        let mut progress = self.definitions.0.subscribe();
        if progress.borrow().is_none() {
            return;
        }
        let arrived = progress.wait_for(|seen| seen.is_none_or(|seen| seen >= revision));
        if timeout(SETTLE_MAX, arrived).await.is_err() {
            debug!("a definition takes effect later than its answer");
        }
    }
}

impl Definitions {
    async fn run(
        &mut self,
        progress: &Progress,
        ready: &mut Option<tokio::sync::oneshot::Sender<()>>,
    ) -> Result<(), store::Error> {
        let store = self.resources.store.clone();
        let page = store.range(&self.kind.collection, Range::default()).await?;
        self.known = read_all(&page.records);
        self.publish();
        if let Some(ready) = ready.take() {
            // Whoever waited may be gone; then nobody needs to know.
            let _ = ready.send(());
        }
        let mut due: BTreeMap<String, (Instant, Duration)> = BTreeMap::new();
        for record in &page.records {
            self.attend(&record.name, AGAIN_FIRST, &mut due).await;
        }
        progress.0.send_replace(Some(page.revision));
        let mut feed = store.watch(&self.kind.collection, page.revision).await?;
        loop {
            let next = due.iter().min_by_key(|(_, (when, _))| *when);
            let next = next.map(|(name, (when, wait))| (name.clone(), *when, *wait));
            let wake = next.as_ref().map_or(Instant::now(), |(_, when, _)| *when);
            tokio::select! {
                event = feed.next() => {
                    let event = event?;
                    let name = event.record.name.to_string();
                    due.remove(&name);
                    self.follow(&event);
                    for name in self.concerned(&name) {
                        self.attend(&name, AGAIN_FIRST, &mut due).await;
                    }
                    progress.0.send_replace(Some(event.record.revision));
                }
                () = sleep_until(wake), if next.is_some() => {
                    let Some((name, _, wait)) = next else { continue };
                    due.remove(&name);
                    self.attend(&name, (wait * 2).min(AGAIN_LAST), &mut due).await;
                }
            }
        }
    }

    /// Takes an event into account, unless it tells of a write that is known already.
    fn follow(&mut self, event: &Event) {
        let name = &*event.record.name;
        if event.deleted {
            self.known.remove(name);
        } else {
            match self.known.get(name) {
                Some(known) if known.revision >= event.record.revision => return,
                _ => self.learn(&event.record),
            }
        }
        self.publish();
    }

    fn learn(&mut self, record: &Record) {
        let Some(object) = read(record) else {
            return;
        };
        let kinds = match self.known.get(&*record.name) {
            // A change of its metadata changes nothing that is served.
            Some(known)
                if known.object.get("spec") == object.get("spec")
                    && known.object.get("status") == object.get("status") =>
            {
                known.kinds.clone()
            }
            _ => declared(&object, record),
        };
        let known = Known {
            object,
            revision: record.revision,
            kinds,
        };
        self.known.insert(record.name.to_string(), known);
    }

    /// Replaces the catalogue.
    fn publish(&self) {
        let kinds = self.known.values().flat_map(|known| &known.kinds);
        let served = |kind: &Kind| kind.custom.as_ref().is_some_and(|custom| custom.served);
        let catalogue = Catalogue::builtin().with_custom(kinds.cloned().collect(), served);
        self.resources.catalogue.store(Arc::new(catalogue));
        self.resources
            .served
            .send_modify(|generation| *generation += 1);
    }

    /// A definition, and those of its group that may have waited for one of its names.
    fn concerned(&self, name: &str) -> Vec<String> {
        let others = self.known.iter().filter(|(other, known)| {
            *other != name
                && group_of(other) == group_of(name)
                && !custom::names_accepted(&known.object)
        });
        let others = others.map(|(other, _)| other.clone());
        std::iter::once(name.to_owned()).chain(others).collect()
    }

    /// Does what a definition needs; notes when to look again, if that is not done by now.
    async fn attend(
        &mut self,
        name: &str,
        wait: Duration,
        due: &mut BTreeMap<String, (Instant, Duration)>,
    ) {
        match self.attend_or_fail(name).await {
            Ok(true) => {}
            Ok(false) => {
                due.insert(name.to_owned(), (Instant::now() + wait, wait));
            }
            Err(error) => {
                debug!(name, %error, "a definition is attended to again later");
                due.insert(name.to_owned(), (Instant::now() + wait, wait));
            }
        }
    }

    /// Whether nothing is left to do.
    async fn attend_or_fail(&mut self, name: &str) -> Result<bool, Error> {
        let Some(known) = self.known.get(name) else {
            return Ok(true);
        };
        if meta(&known.object).contains_key("deletionTimestamp") {
            return self.end(name).await;
        }
        let others = self.known.iter().filter(|(other, _)| {
            // Names compete only within a group.
            *other != name && group_of(other) == group_of(name)
        });
        let others: Vec<&Map> = others.map(|(_, known)| &known.object).collect();
        let now = self.resources.now_text();
        let status = custom::status(&known.object, &others, &now);
        let object = known.object.clone();
        self.write(name, &object, |object| {
            object.insert("status", status.into());
        })
        .await?;
        Ok(true)
    }

    /// Writes a changed definition, and learns of it at once rather than from the feed.
    async fn write(
        &mut self,
        name: &str,
        old: &Map,
        change: impl FnOnce(&mut Map),
    ) -> Result<(), Error> {
        let mut object = old.clone();
        change(&mut object);
        if object == *old {
            return Ok(());
        }
        let warnings = Warnings::default();
        let request = Request {
            kind: &self.kind,
            namespace: "",
            name,
            subresource: "status",
            user: &self.user,
            options: &self.options,
            warnings: &warnings,
        };
        let Some(live) = self.resources.live(&request).await? else {
            return Ok(());
        };
        if meta_text(live.map(), "resourceVersion") != meta_text(old, "resourceVersion") {
            // The feed brings the newer one.
            return Ok(());
        }
        self.resources
            .replace(&request, live, Wanted::by_server(object))
            .await?;
        let record = self.resources.get(&self.kind, "", name, None).await?;
        self.learn(&record);
        self.publish();
        Ok(())
    }

    /// Deletes the objects of a definition, and lets it go when none is left.
    async fn end(&mut self, name: &str) -> Result<bool, Error> {
        let Some(known) = self.known.get(name) else {
            return Ok(true);
        };
        let cleanup = |finalizer: &Value| finalizer.as_str() == Some(custom::CLEANUP_FINALIZER);
        if !meta::finalizers(&known.object).iter().any(cleanup) {
            return Ok(true);
        }
        let object = known.object.clone();
        let stored = known
            .kinds
            .iter()
            .find(|kind| kind.version == kind.storage_version);
        if let Some(kind) = stored.cloned() {
            let now = self.resources.now_text();
            self.write(name, &object, |object| {
                custom::begin_deletion(object, &now);
            })
            .await?;
            let left = self.delete_objects(&kind).await?;
            if left > 0 {
                return Ok(false);
            }
        }
        self.let_go(name).await
    }

    /// Takes the finalizer off a definition whose objects are gone; the last state is only shown
    /// where others hold it.
    async fn let_go(&mut self, name: &str) -> Result<bool, Error> {
        let Some(known) = self.known.get(name) else {
            return Ok(true);
        };
        let object = known.object.clone();
        if meta::finalizers(&object).len() > 1 {
            let now = self.resources.now_text();
            self.write(name, &object, |object| {
                custom::finish_deletion(object, &now);
            })
            .await?;
        }
        let warnings = Warnings::default();
        let request = Request {
            kind: &self.kind,
            namespace: "",
            name,
            subresource: "",
            user: &self.user,
            options: &self.options,
            warnings: &warnings,
        };
        let Some(live) = self.resources.live(&request).await? else {
            return Ok(true);
        };
        let mut object = live.map().clone();
        custom::remove_finalizer(&mut object);
        meta_mut(&mut object).remove("resourceVersion");
        let owners = live.owners.clone();
        let finished =
            self.resources
                .finish_update(&request, live, Draft::by_server(object, owners));
        finished.await?;
        Ok(true)
    }

    /// Deletes every object of a kind; tells how many are held by finalizers.
    async fn delete_objects(&self, kind: &Arc<Kind>) -> Result<usize, Error> {
        let store = &self.resources.store;
        let page = store.range(&kind.collection, Range::default()).await;
        let page = page.map_err(|error| Error::from_store(error, Subject::default))?;
        let names = page.records.iter().map(|record| {
            let (namespace, name) = record.name.rsplit_once('/').unwrap_or(("", &record.name));
            (namespace.to_owned(), name.to_owned())
        });
        let by = (&self.user, &self.options);
        self.resources.delete_all(kind, names.collect(), by).await?;
        Ok(store.count(&kind.collection, "").await)
    }
}

fn read(record: &Record) -> Option<Map> {
    let tree = Stored::new(&record.value).and_then(|stored| stored.tree(Some(record.revision)));
    if tree.is_err() {
        warn!(name = %record.name, "a definition cannot be read; restore a backup");
    }
    tree.ok()
}

/// The kinds that a definition declares, if it is in force.
fn declared(object: &Map, record: &Record) -> Vec<Arc<Kind>> {
    if !custom::is_served(object) {
        return Vec::new();
    }
    let kinds = custom::kinds(object, record.created.0).into_iter();
    kinds.map(Arc::new).collect()
}

/// Reads definitions on every core: a server that has a thousand of them should start at once.
fn read_all(records: &[Record]) -> BTreeMap<String, Known> {
    let read_some = |records: &[Record]| -> Vec<(String, Known)> {
        let known = records.iter().filter_map(|record| {
            let object = read(record)?;
            let known = Known {
                kinds: declared(&object, record),
                object,
                revision: record.revision,
            };
            Some((record.name.to_string(), known))
        });
        known.collect()
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let share = records.len().div_ceil(cores).max(SHARE_MIN);
    std::thread::scope(|scope| {
        let mut shares = records.chunks(share);
        let mine = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || read_some(share)))
            .collect();
        let mut known: BTreeMap<String, Known> = read_some(mine).into_iter().collect();
        for other in others {
            known.extend(other.join().expect("reading a definition does not panic"));
        }
        known
    })
}

/// The group that a definition of this name is about.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}
