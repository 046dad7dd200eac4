//! The engine on disk: a write-ahead log for durability, a checkpoint behind it, memory in front.
//!
//! Two threads own all writing. The committer makes groups of commits durable in the log and
//! shows them; the keeper brings them into the checkpoint, drops old history and removes the log
//! that the checkpoint has replaced. Readers use memory, and the checkpoint for the past.

mod backup;
mod check;
mod checkpoint;
mod codec;
mod committer;
mod database;
mod failure;
mod files;
mod keeper;
mod load;
mod packs;
mod past;
mod replay;
mod sealer;
mod segments;
mod wal;
mod way;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::index::Index;
use crate::record::{Change, Committed, Error, Event, Page, Range, Record, Revision};
use crate::store::Options;
use crate::view::{Commit, Inner, View};
use crate::writer::{Group, Request, Writer};
use bytes::Bytes;
use checkpoint::Checkpoint;
use committer::{Committer, Job, Outbox};
use database::State;
use keeper::Keeper;
pub(crate) use sealer::Sealer;
use segments::Segments;
use wal::Log;

pub use backup::BackupReport;
pub(crate) use backup::{backup, restore};
pub(crate) use check::check;
pub use check::{CheckReport, Problem};
pub use failure::OpenError;
pub use files::{DataFile, Files, Lock, Presence, SystemFiles};

const LOCK_FILE_NAME: &str = "lock";
/// Requests that may wait for the committer.
const QUEUE_JOBS_MAX: usize = 4_096;
/// What their values may take, in kibibytes.
const QUEUE_KIBIBYTES_MAX: usize = 128 * 1024;

/// Commits wait while the log holds this much that the checkpoint lacks.
const BEHIND_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// After this long they are refused.
const BEHIND_WAIT_MAX: Duration = Duration::from_secs(10);

/// What the threads and the readers of one store share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) view: View,
    pub(crate) options: Options,
    checkpoint: Checkpoint,
    segments: Arc<Segments>,
    /// Bytes of commits that are in the log and not in the checkpoint.
    behind_bytes: AtomicU64,
    /// Why the checkpoint could not be written, the last time.
    failure: Mutex<Option<Error>>,
    /// Signalled whenever the checkpoint was written, or could not be.
    progress: Condvar,
}

impl Shared {
    fn set_failure(&self, error: Option<Error>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = error;
        self.progress.notify_all();
    }

    /// Holds the committer back while the log is far ahead of the checkpoint. Refuses, if the
    /// checkpoint cannot be written.
    fn wait_for_checkpoint(&self) -> Result<(), Error> {
        let is_behind = |failure: &mut Option<Error>| {
            failure.is_none() && self.behind_bytes.load(Ordering::SeqCst) > BEHIND_BYTES_MAX
        };
        if self.behind_bytes.load(Ordering::SeqCst) <= BEHIND_BYTES_MAX {
            return Ok(());
        }
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .progress
            .wait_timeout_while(failure, BEHIND_WAIT_MAX, is_behind);
        drop(waited);
        if self.behind_bytes.load(Ordering::SeqCst) <= BEHIND_BYTES_MAX {
            return Ok(());
        }
        Err(self.why_behind())
    }

    fn is_failing(&self) -> bool {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    fn why_failing(&self) -> Result<(), Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure
            .as_ref()
            .map_or(Ok(()), |error| Err(failure::repeat(error)))
    }

    /// Why commits are refused while the checkpoint is far behind.
    fn why_behind(&self) -> Error {
        self.why_failing()
            .err()
            .unwrap_or_else(|| Error::Unavailable {
                path: self.checkpoint.path().display().to_string(),
                source: Arc::new(std::io::Error::other(
                    "the checkpoint is too far behind the log",
                )),
            })
    }
}

/// The engine.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    jobs: mpsc::Sender<Job>,
    waiting_kibibytes: Arc<Semaphore>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    pub(crate) fn open(
        files: Arc<dyn Files>,
        directory: &Path,
        options: Options,
    ) -> Result<Engine, OpenError> {
        let lock = take_directory(&*files, directory)?;
        let opened = open_database(&files, directory)?;
        let sealer = Sealer::new(options.seal.clone());
        let checkpoint = Checkpoint::new(files.clone(), directory, opened, sealer);
        let recovered = Recovered::read(&*files, directory, &checkpoint)?;
        let Recovered {
            view,
            writer,
            replayed,
            tail,
        } = recovered;
        let remove = |path: &PathBuf| files.remove(path);
        if let Some(Err(error)) = tail.unused.iter().map(remove).find(Result::is_err) {
            return Err(OpenError::io("clear", directory, error));
        }
        let segments = Segments::new(files, directory, tail.known, tail.next_sequence);
        let segments = Arc::new(segments);
        let log = Log::new(segments.clone(), checkpoint.state().store, tail.good);
        let pending_bytes = replayed.iter().map(Commit::weight).sum();
        let shared = Arc::new(Shared {
            view,
            options,
            checkpoint,
            segments,
            behind_bytes: AtomicU64::new(pending_bytes),
            failure: Mutex::new(None),
            progress: Condvar::new(),
        });
        Engine::start(shared, writer, log, replayed, lock)
            .map_err(|error| OpenError::io("start the threads for", directory, error))
    }

    fn start(
        shared: Arc<Shared>,
        writer: Writer,
        log: Log,
        pending: Vec<Commit>,
        lock: Box<dyn std::any::Any + Send + Sync>,
    ) -> std::io::Result<Engine> {
        let (jobs, job_receiver) = mpsc::channel(QUEUE_JOBS_MAX);
        let (keeper, tasks) = std::sync::mpsc::channel();
        let keeper_thread = Keeper {
            shared: shared.clone(),
            tasks,
            jobs: jobs.downgrade(),
            pending_bytes: shared.behind_bytes.load(Ordering::SeqCst),
            pending_since: (!pending.is_empty()).then(std::time::Instant::now),
            pending,
            lock,
        };
        let committer = Committer {
            shared: shared.clone(),
            writer,
            log,
            jobs: job_receiver,
            keeper: Outbox::new(keeper),
        };
        let threads = vec![
            std::thread::Builder::new()
                .name("store-keeper".into())
                .spawn(move || keeper_thread.run())?,
            std::thread::Builder::new()
                .name("store-committer".into())
                .spawn(move || committer.run())?,
        ];
        let waiting_kibibytes = Arc::new(Semaphore::new(QUEUE_KIBIBYTES_MAX));
        Ok(Engine {
            shared,
            jobs,
            waiting_kibibytes,
            threads: Mutex::new(threads),
        })
    }

    pub(crate) async fn commit(&self, request: Request) -> Result<Committed, Error> {
        let bytes = match &request.change {
            Change::Put { value, .. } => value.len(),
            Change::Delete => 0,
        };
        let kibibytes = u32::try_from(bytes / 1024 + 1).expect("a record is a few mebibytes");
        let waiting = self.waiting_kibibytes.clone();
        let permit = waiting
            .acquire_many_owned(kibibytes)
            .await
            .map_err(|_| Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        let job = Job::Commit {
            request,
            reply,
            permit,
        };
        self.jobs.send(job).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    pub(crate) async fn maintain(&self) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.jobs
            .send(Job::Maintain { reply })
            .await
            .map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)??;
        let (reply, answer) = oneshot::channel();
        self.jobs
            .send(Job::Tidy { reply: Some(reply) })
            .await
            .map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)
    }

    pub(crate) async fn close(&self) {
        let _ = self.jobs.send(Job::Close).await;
        let threads = std::mem::take(&mut *self.threads());
        let joined = tokio::task::spawn_blocking(move || {
            for thread in threads {
                // A thread that panicked has said so; there is nothing left to close.
                let _ = thread.join();
            }
        });
        let _ = joined.await;
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn past_get(
        &self,
        collection: &str,
        name: &str,
        at: Revision,
    ) -> Result<Option<Record>, Error> {
        let (collection, name) = (collection.to_owned(), name.to_owned());
        self.past(move |checkpoint| past::get(checkpoint, &collection, &name, at))
            .await
    }

    pub(crate) async fn past_range(
        &self,
        collection: &str,
        range: &Range<'_>,
        at: Revision,
    ) -> Result<Page, Error> {
        let collection = collection.to_owned();
        let from = range
            .start
            .map_or(range.prefix, |start| start.max(range.prefix));
        let range = past::PastRange {
            prefix: range.prefix.to_owned(),
            from: from.to_owned(),
            at,
            limit: range.limit,
        };
        self.past(move |checkpoint| past::range(checkpoint, &collection, &range))
            .await
    }

    pub(crate) async fn past_events(
        &self,
        collection: Arc<str>,
        after: Revision,
        limit: usize,
    ) -> Result<Vec<Arc<Event>>, Error> {
        self.past(move |checkpoint| past::events(checkpoint, &collection, after, limit))
            .await
    }

    /// What stands between values and files.
    pub(crate) fn sealer(&self) -> &Sealer {
        self.shared.checkpoint.sealer()
    }

    /// Reads the checkpoint where that does not hold up others.
    async fn past<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Checkpoint) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = self.shared.clone();
        let task = tokio::task::spawn_blocking(move || read(&shared.checkpoint));
        task.await.map_err(|_| Error::Closed)?
    }
}

impl Drop for Engine {
    /// Waits for what was accepted: the directory is free when the store is gone.
    fn drop(&mut self) {
        let threads = std::mem::take(&mut *self.threads());
        let (closed, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut self.jobs, closed));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// Makes the directory and takes its lock.
fn take_directory(
    files: &dyn Files,
    directory: &Path,
) -> Result<Box<dyn std::any::Any + Send + Sync>, OpenError> {
    files
        .create_directory(directory)
        .map_err(|error| OpenError::io("create", directory, error))?;
    let path = directory.join(LOCK_FILE_NAME);
    match files
        .lock(&path)
        .map_err(|error| OpenError::io("lock", &path, error))?
    {
        Lock::Taken(lock) => Ok(lock),
        Lock::HeldBy(pid) => Err(OpenError::Locked {
            directory: directory.display().to_string(),
            pid,
        }),
    }
}

/// Opens the checkpoint, or makes one in a directory that never held a store.
fn open_database(files: &Arc<dyn Files>, directory: &Path) -> Result<database::Opened, OpenError> {
    if let Some(opened) = database::open(&**files, directory)? {
        return Ok(opened);
    }
    let names = files
        .list(directory)
        .map_err(|error| OpenError::io("list", directory, error))?;
    if names
        .iter()
        .any(|name| segments::segment_sequence(name).is_some())
    {
        let path = database::path(directory);
        return Err(OpenError::corrupt(
            &path,
            "it is missing beside its write-ahead log",
        ));
    }
    let state = State {
        store: random(),
        ..State::default()
    };
    database::create(&**files, directory, state, |_, _| Ok(()))
}

/// A number that tells stores apart; it guards against mixed-up files, not against attackers.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A store's state as its files tell it.
struct Recovered {
    view: View,
    writer: Writer,
    /// Commits that the checkpoint lacks.
    replayed: Vec<Commit>,
    tail: replay::Tail,
}

impl Recovered {
    fn read(
        files: &dyn Files,
        directory: &Path,
        checkpoint: &Checkpoint,
    ) -> Result<Recovered, OpenError> {
        let state = checkpoint.state();
        let loaded = checkpoint.read(|transaction, state| {
            load::load(transaction, &state, checkpoint.path(), checkpoint.sealer())
        })?;
        let view = View::default();
        let mut writer = Writer::resume(state.revision, state.at_millis);
        for collection in loaded {
            let place = view.collection_or_new(&collection.name);
            for (name, version) in &collection.keys {
                writer.adopt(&place, name, version);
            }
            let index = Index::from_sorted(collection.keys.into_iter());
            place.recover(Inner::recovered(index, collection.last));
        }
        view.compact(state.compacted);
        view.publish(state.revision);
        let mut replayed: Vec<Commit> = Vec::new();
        let mut unread = Unread::default();
        let tail = replay::replay(
            files,
            directory,
            state.store,
            state.revision,
            &mut |record| {
                let place = view.collection_or_new(record.collection);
                let value = unread.open(checkpoint.sealer(), record);
                let commit = record.commit(place, value);
                if !writer.follows(&commit) {
                    let detail = format!("revision {} replaces another version", record.revision);
                    return Err(OpenError::corrupt(directory, detail));
                }
                writer.apply(&view, &Group::of(commit.clone()));
                replayed.push(commit);
                Ok(())
            },
        )?;
        unread.check()?;
        Ok(Recovered {
            view,
            writer,
            replayed,
            tail,
        })
    }
}

/// Records of the log that could not be opened.
///
/// One that a later commit replaces does no harm: a key that is no longer needed may be gone. What
/// stands in its place in memory is what was written, which is no value and cannot be read as one.
#[derive(Default)]
struct Unread(BTreeMap<(String, String), OpenError>);

impl Unread {
    fn open(&mut self, sealer: &Sealer, record: &codec::Stored<'_>) -> Bytes {
        let key = (record.collection.to_owned(), record.name.to_owned());
        self.0.remove(&key);
        if record.deleted {
            sealer.stale().remove(record.collection, record.name);
            return Bytes::new();
        }
        match sealer.open(record.collection, record.name, record.value) {
            Ok(value) => value,
            Err(error) => {
                self.0.insert(key, error);
                Bytes::copy_from_slice(record.value)
            }
        }
    }

    fn check(self) -> Result<(), OpenError> {
        match self.0.into_values().next() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
