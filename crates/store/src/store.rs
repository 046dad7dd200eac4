//! The door: one `Store`, whatever keeps the records.
//!
//! Reads come from memory and never wait for a disk, unless they ask for a past that memory no
//! longer holds. A commit returns when it is durable and visible.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::disk::{self, BackupReport, CheckReport, Files, OpenError, SystemFiles};
use crate::memory;
use crate::record::{Change, Committed, Error, Event, Expect, Page, Range, Record, Revision};
use crate::seal::Seal;
use crate::view::{Collection, Lookup, View};
use crate::watch::{Pulse, Watch};
use crate::writer::{Request, Writer};

/// How a store behaves.
#[derive(Clone)]
pub struct Options {
    /// How long old versions and events are kept.
    pub history: Duration,
    /// How many bytes of old versions and events are kept, if that is reached first.
    pub history_bytes: u64,
    /// How many bytes of them may be in memory; the rest is read from disk when asked for.
    pub history_memory_bytes: u64,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes what is written to disk out of values; `None` writes them as they are.
    pub seal: Option<Arc<dyn Seal>>,
    /// Called by each thread that brings commits where nobody waits for them, when it begins: it
    /// may step back behind those that somebody waits for.
    pub step_back: fn(),
}

impl Default for Options {
    fn default() -> Options {
        Options {
            history: Duration::from_secs(5 * 60),
            history_bytes: 1024 * 1024 * 1024,
            history_memory_bytes: 64 * 1024 * 1024,
            clock: Arc::new(SystemClock),
            seal: None,
            step_back: || {},
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Options")
            .field("history", &self.history)
            .field("history_bytes", &self.history_bytes)
            .field("history_memory_bytes", &self.history_memory_bytes)
            .finish_non_exhaustive()
    }
}

impl Options {
    pub(crate) fn history_millis(&self) -> u64 {
        u64::try_from(self.history.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A revisioned, watchable key space. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    inside: Arc<Inside>,
}

/// What a store and its watches share.
#[derive(Debug)]
pub(crate) enum Inside {
    Memory(Arc<memory::Engine>),
    Disk(disk::Engine),
}

impl Inside {
    pub(crate) fn view(&self) -> &View {
        match self {
            Inside::Memory(engine) => &engine.view,
            Inside::Disk(engine) => &engine.shared.view,
        }
    }

    /// What stands between values and files.
    fn sealer(&self) -> disk::Sealer {
        match self {
            Inside::Memory(_) => disk::Sealer::default(),
            Inside::Disk(engine) => engine.sealer().clone(),
        }
    }

    /// Events that memory forgot, after a revision, at least one.
    pub(crate) async fn past_events(
        &self,
        collection: &Arc<Collection>,
        after: Revision,
        limit: usize,
    ) -> Result<Vec<Arc<Event>>, Error> {
        match self {
            Inside::Memory(engine) => Err(Error::Compacted {
                asked: after,
                oldest: engine.view.compacted(),
            }),
            Inside::Disk(engine) => {
                engine
                    .past_events(collection.name.clone(), after, limit)
                    .await
            }
        }
    }
}

impl Store {
    /// A store in memory alone, for tests.
    pub fn memory(options: Options) -> Store {
        Store {
            inside: Arc::new(Inside::Memory(memory::Engine::start(options))),
        }
    }

    /// A store in a directory, which is made if it is not there.
    ///
    /// Recovers everything that was acknowledged, however the last process ended.
    pub fn open(directory: &Path, options: Options) -> Result<Store, OpenError> {
        Store::open_with(Arc::new(SystemFiles), directory, options)
    }

    /// Like [`Store::open`] with a file system of one's own: one that fails, for tests.
    pub fn open_with(
        files: Arc<dyn Files>,
        directory: &Path,
        options: Options,
    ) -> Result<Store, OpenError> {
        let engine = disk::Engine::open(files, directory, options)?;
        Ok(Store {
            inside: Arc::new(Inside::Disk(engine)),
        })
    }

    /// Makes a new directory from a backup.
    pub fn restore(file: &Path, directory: &Path) -> Result<BackupReport, OpenError> {
        disk::restore(&SystemFiles, file, directory)
    }

    /// Reads every byte of a store that is not running, and tells what is wrong with it.
    pub fn check(directory: &Path) -> Result<CheckReport, OpenError> {
        disk::check(&(Arc::new(SystemFiles) as Arc<dyn Files>), directory)
    }

    /// Writes the newest state into one file, while the store runs.
    pub async fn backup(&self, file: &Path) -> Result<BackupReport, OpenError> {
        let (inside, file) = (self.inside.clone(), file.to_path_buf());
        let task = tokio::task::spawn_blocking(move || {
            disk::backup(&SystemFiles, inside.view(), &inside.sealer(), &file)
        });
        task.await
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }

    fn view(&self) -> &View {
        self.inside.view()
    }

    /// The newest revision that can be seen.
    pub fn revision(&self) -> Revision {
        self.view().visible()
    }

    /// Waits until something newer than a revision can be seen, in whichever collection.
    pub async fn newer_than(&self, revision: Revision) -> Result<Revision, Error> {
        loop {
            let published = self.view().published.notified();
            tokio::pin!(published);
            // Listen before looking: what is published in between must not be slept through.
            published.as_mut().enable();
            if self.view().is_closed() {
                return Err(Error::Closed);
            }
            let visible = self.revision();
            if visible > revision {
                return Ok(visible);
            }
            published.await;
        }
    }

    /// The oldest revision that can be read; older ones are refused with [`Error::Compacted`].
    pub fn compacted(&self) -> Revision {
        self.view().compacted()
    }

    /// The newest version of a key.
    pub async fn get(&self, collection: &str, name: &str) -> Result<Option<Record>, Error> {
        Ok(self.view().get(collection, name))
    }

    /// A key as it was at a revision.
    pub async fn get_at(
        &self,
        collection: &str,
        name: &str,
        at: Revision,
    ) -> Result<Option<Record>, Error> {
        match self.view().get_at(collection, name, at)? {
            Lookup::Known(record) => Ok(record),
            Lookup::Forgotten => match &*self.inside {
                Inside::Memory(_) => Err(self.too_old(at)),
                Inside::Disk(engine) => engine.past_get(collection, name, at).await,
            },
        }
    }

    /// Part of a collection in name order, all of it as it was at one revision.
    pub async fn range(&self, collection: &str, range: Range<'_>) -> Result<Page, Error> {
        match self.view().range(collection, &range)? {
            Lookup::Known(page) => Ok(page),
            Lookup::Forgotten => {
                let at = range.at.expect("memory never forgets the newest state");
                match &*self.inside {
                    Inside::Memory(_) => Err(self.too_old(at)),
                    Inside::Disk(engine) => engine.past_range(collection, &range, at).await,
                }
            }
        }
    }

    fn too_old(&self, asked: Revision) -> Error {
        Error::Compacted {
            asked,
            oldest: self.compacted(),
        }
    }

    /// Changes one key if it is as expected. Returns when the change is durable and visible.
    ///
    /// Dropping the future leaves the commit either done in full or not done at all.
    pub async fn commit(
        &self,
        collection: &str,
        name: &str,
        expect: Expect,
        change: Change,
    ) -> Result<Committed, Error> {
        if self.view().is_closed() {
            return Err(Error::Closed);
        }
        Request::check_size(collection, name, &change)?;
        let collection = self.view().collection_or_new(collection);
        let mut request = Request {
            collection,
            name: name.into(),
            expect,
            change,
            sealed: None,
        };
        match &*self.inside {
            Inside::Memory(engine) => engine.commit(request),
            Inside::Disk(engine) => {
                let (collection, sealer) = (Arc::clone(&request.collection), engine.sealer());
                if let Change::Put { value, .. } = &request.change {
                    request.sealed = sealer.seal(&collection.name, name, value);
                }
                let committed = engine.commit(request).await?;
                sealer.stale().remove(&collection.name, name);
                Ok(committed)
            }
        }
    }

    /// Whether a key would be written in another form than it was.
    pub fn is_stale(&self, collection: &str, name: &str) -> bool {
        match &*self.inside {
            Inside::Memory(_) => false,
            Inside::Disk(engine) => engine.sealer().stale().holds(collection, name),
        }
    }

    /// The events of a collection after a revision, in order, without gaps.
    ///
    /// A revision in the future waits for it; one older than history is [`Error::Compacted`].
    pub async fn watch(&self, collection: &str, after: Revision) -> Result<Watch, Error> {
        if self.view().is_closed() {
            return Err(Error::Closed);
        }
        let collection = self.view().collection_or_new(collection);
        Watch::new(self.inside.clone(), collection, after)
    }

    /// Tells when a collection changed last.
    ///
    /// Whoever keeps something made of a collection compares this with the revision it was read
    /// at, and reads again only when it has to.
    pub fn pulse(&self, collection: &str) -> Pulse {
        Pulse(self.view().collection_or_new(collection))
    }

    /// How many keys exist whose names begin with a prefix.
    pub async fn count(&self, collection: &str, prefix: &str) -> usize {
        self.view().count(collection, prefix)
    }

    /// The names of the collections that hold anything, sorted.
    pub fn collections(&self) -> Vec<String> {
        let all = self.view().all();
        let used = all
            .iter()
            .filter(|collection| !collection.read().index.is_empty());
        used.map(|collection| collection.name.to_string()).collect()
    }

    /// Deletes expired keys and drops history beyond its limits, by the clock as it is now.
    ///
    /// This happens once a second anyway; a test that moves a false clock need not wait.
    pub async fn maintain(&self) -> Result<(), Error> {
        match &*self.inside {
            Inside::Memory(engine) => {
                engine.maintain();
                Ok(())
            }
            Inside::Disk(engine) => engine.maintain().await,
        }
    }

    /// Finishes what was accepted, ends all watches and refuses what comes after.
    pub async fn close(&self) {
        match &*self.inside {
            Inside::Memory(engine) => engine.view.close(),
            Inside::Disk(engine) => engine.close().await,
        }
    }
}

/// Locks a mutex; a panic elsewhere does not spoil what it guards.
pub(crate) fn lock(writer: &Mutex<Writer>) -> std::sync::MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}
