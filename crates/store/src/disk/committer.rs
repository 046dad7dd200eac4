//! The one thread that commits: takes whatever waits, makes it durable with one sync, shows it.
//!
//! Order: check against the newest state, write, sync, apply, publish, answer. Nobody is told of
//! anything before the sync, not even of a conflict with a commit of the same group.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc as threads;

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::Shared;
use super::failure::repeat;
use super::keeper::Task;
use super::wal::Log;
use crate::record::{Change, Committed, Error};
use crate::view::{Collection, Commit, wake};
use crate::writer::{Group, Request, Writer};

/// The most commits that share one sync.
const GROUP_COMMITS_MAX: usize = 1_024;
/// A group ends when it holds this much; a single larger record is a group of its own.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Expired keys deleted in one group.
const EXPIRED_BATCH: usize = 256;
/// Old versions and events in memory, beside a sixteenth of what the live records take.
const WINDOW_BYTES_BASE: u64 = 8 * 1024 * 1024;

/// The keeper is handed this much at once; once a second it gets whatever there is.
const PARCEL_BYTES: u64 = 4 * 1024 * 1024;

type Reply = oneshot::Sender<Result<Committed, Error>>;

/// What the committer is asked to do.
pub(crate) enum Job {
    /// Change one key. The permit counts its bytes while it waits.
    Commit {
        request: Request,
        reply: Reply,
        permit: OwnedSemaphorePermit,
    },
    /// Delete expired keys, then have the keeper do its round; it answers.
    Maintain {
        reply: oneshot::Sender<Result<(), Error>>,
    },
    /// Delete expired keys and forget what need not be remembered.
    Tidy { reply: Option<oneshot::Sender<()>> },
    /// Finish what waits and end.
    Close,
}

pub(crate) struct Committer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) writer: Writer,
    pub(crate) log: Log,
    pub(crate) jobs: mpsc::Receiver<Job>,
    pub(crate) keeper: Outbox,
}

/// Commits on their way to the keeper.
///
/// They go in larger parcels: waking the keeper for each group would cost as much as the group,
/// and there is no hurry, because the log has them.
pub(crate) struct Outbox {
    keeper: threads::Sender<Task>,
    commits: Vec<Commit>,
    bytes: u64,
}

impl Outbox {
    pub(crate) fn new(keeper: threads::Sender<Task>) -> Outbox {
        Outbox {
            keeper,
            commits: Vec::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, commits: Vec<Commit>, bytes: u64) {
        self.commits.extend(commits);
        self.bytes += bytes;
        if self.bytes >= PARCEL_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.commits.is_empty() {
            self.bytes = 0;
            // The keeper outlives the committer.
            let _ = self
                .keeper
                .send(Task::Write(std::mem::take(&mut self.commits)));
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A request of a group, with what its sender is to be told once the group is durable.
struct Waiting {
    reply: Reply,
    outcome: Result<Committed, Error>,
}

impl Committer {
    /// Works until it is told to close, or nobody can ask for anything any more.
    pub(crate) fn run(mut self) {
        while let Some(job) = self.jobs.blocking_recv() {
            self.handle(job);
        }
        self.shared.view.close();
    }

    fn handle(&mut self, job: Job) {
        match job {
            Job::Commit {
                request,
                reply,
                permit,
            } => {
                let next = self.commit_group(request, reply, permit);
                if let Some(job) = next {
                    self.handle(job);
                }
            }
            Job::Maintain { reply } => {
                self.delete_expired();
                self.keeper.flush();
                // Dropping the reply, when the keeper is gone, tells its receiver.
                let _ = self.keeper.keeper.send(Task::Round { reply });
            }
            Job::Tidy { reply } => {
                self.delete_expired();
                self.keeper.flush();
                self.forget();
                if let Some(reply) = reply {
                    let _ = reply.send(());
                }
            }
            // What is in the queue already is still done.
            Job::Close => self.jobs.close(),
        }
    }

    /// Commits a request and those that wait behind it. Returns a job of another kind, if that
    /// is what ended the group.
    fn commit_group(
        &mut self,
        request: Request,
        reply: Reply,
        permit: OwnedSemaphorePermit,
    ) -> Option<Job> {
        let now = self.shared.options.clock.now_millis();
        let mut group = Group::default();
        let mut waiting = Vec::new();
        let mut permits = vec![permit];
        let mut bytes = size(&request);
        let outcome = self.writer.prepare(&mut group, request, now);
        waiting.push(Waiting { reply, outcome });
        let mut next = None;
        while waiting.len() < GROUP_COMMITS_MAX && bytes < GROUP_BYTES_MAX {
            match self.jobs.try_recv() {
                Ok(Job::Commit {
                    request,
                    reply,
                    permit,
                }) => {
                    bytes += size(&request);
                    let outcome = self.writer.prepare(&mut group, request, now);
                    waiting.push(Waiting { reply, outcome });
                    permits.push(permit);
                }
                Ok(job) => {
                    next = Some(job);
                    break;
                }
                Err(_) => break,
            }
        }
        let result = self.make_durable(group);
        for Waiting { reply, outcome } in waiting {
            let outcome = match &result {
                Ok(_) => outcome,
                Err(error) => Err(repeat(error)),
            };
            // Who stopped waiting does not want to know.
            let _ = reply.send(outcome);
        }
        // After the replies: the watchers may be many, and a writer waits for its answer.
        wake(&result.unwrap_or_default());
        self.forget();
        next
    }

    /// Makes a group durable and visible. Returns the collections whose watchers are to be woken.
    fn make_durable(&mut self, group: Group) -> Result<Vec<Arc<Collection>>, Error> {
        let changed = group.changed();
        if changed.is_empty() {
            return Ok(changed);
        }
        self.shared.wait_for_checkpoint()?;
        self.log.append(&group.commits)?;
        let bytes: u64 = group.commits.iter().map(Commit::weight).sum();
        self.shared.behind_bytes.fetch_add(bytes, Ordering::SeqCst);
        self.writer.apply(&self.shared.view, &group);
        self.keeper.add(group.commits, bytes);
        Ok(changed)
    }

    fn delete_expired(&mut self) {
        let now = self.shared.options.clock.now_millis();
        loop {
            let expired = self.writer.expired(now, EXPIRED_BATCH);
            if expired.is_empty() {
                return;
            }
            let mut group = Group::default();
            for request in expired {
                let done = self.writer.prepare(&mut group, request, now);
                assert!(done.is_ok(), "only a key's newest version can expire");
            }
            // A disk that fails now is tried again at the next round.
            let Ok(changed) = self.make_durable(group) else {
                return;
            };
            wake(&changed);
        }
    }

    /// Keeps memory within its budget: what is dropped here is in the checkpoint.
    fn forget(&mut self) {
        let budget = WINDOW_BYTES_BASE + self.writer.live_bytes() / 16;
        let budget = budget.min(self.shared.options.history_memory_bytes);
        let checkpointed = self.shared.checkpoint.state().revision;
        let compacted = self.shared.view.compacted();
        self.writer
            .forget_while(&self.shared.view, |_, bytes, revision| {
                revision <= checkpointed && (bytes > budget || revision <= compacted)
            });
    }
}

fn size(request: &Request) -> usize {
    match &request.change {
        Change::Put { value, .. } => value.len() + request.name.len(),
        Change::Delete => request.name.len(),
    }
}
