//! The thread that writes behind: checkpoint, compaction, and the log's segments.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::Shared;
use super::committer::Job;
use super::failure::OpenError;
use super::way::Way;
use crate::record::{Error, Revision};
use crate::view::Commit;

/// History and keys wait no longer than this for their end.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// Commits wait about so long for the checkpoint. They are safe in the log meanwhile; what grows is
/// the time that a start after a crash takes.
const WRITE_AFTER: Duration = Duration::from_secs(5);
/// Commits of this size in sum are written at once.
const BATCH_BYTES: u64 = 32 * 1024 * 1024;

/// What the keeper is asked to do.
pub(crate) enum Task {
    /// Bring these commits into the checkpoint at some time.
    Write(Vec<Commit>),
    /// Do everything that is due, now.
    Round {
        reply: oneshot::Sender<Result<(), Error>>,
    },
}

pub(crate) struct Keeper {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tasks: Receiver<Task>,
    /// The way to the committer; it may be gone already.
    pub(crate) jobs: mpsc::WeakSender<Job>,
    /// Commits that are in the log only.
    pub(crate) pending: Vec<Commit>,
    pub(crate) pending_bytes: u64,
    /// Since when there are any.
    pub(crate) pending_since: Option<Instant>,
    pub(crate) lock: Box<dyn std::any::Any + Send + Sync>,
}

impl Keeper {
    /// Works until the committer is gone, then closes everything in good order.
    pub(crate) fn run(mut self) {
        let segments = self.shared.segments.clone();
        let step_back = self.shared.options.step_back;
        step_back();
        std::thread::scope(|scope| {
            let prepare = || {
                step_back();
                segments.prepare();
            };
            let thread = std::thread::Builder::new().name("store-segments".into());
            // Without it the committer prepares its segments itself.
            let _ = thread.spawn_scoped(scope, prepare);
            self.work();
            segments.stop();
        });
        self.finish();
    }

    fn work(&mut self) {
        let mut last_round = Instant::now();
        loop {
            let wait = ROUND_INTERVAL.saturating_sub(last_round.elapsed());
            match self.tasks.recv_timeout(wait) {
                Ok(Task::Write(commits)) => {
                    self.pending_since.get_or_insert_with(Instant::now);
                    self.pending_bytes += commits.iter().map(Commit::weight).sum::<u64>();
                    self.pending.extend(commits);
                    if self.pending_bytes >= BATCH_BYTES && !self.shared.is_failing() {
                        self.write_pending();
                    }
                }
                Ok(Task::Round { reply }) => {
                    let _ = reply.send(self.round());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if last_round.elapsed() >= ROUND_INTERVAL {
                let waited = self.pending_since.map(|since| since.elapsed());
                if waited >= Some(WRITE_AFTER) || self.shared.is_failing() {
                    self.write_pending();
                }
                // A failure is told to those whose commits it will stop.
                let _ = self.forget();
                last_round = Instant::now();
                if let Some(jobs) = self.jobs.upgrade() {
                    let _ = jobs.try_send(Job::Tidy { reply: None });
                }
            }
        }
    }

    fn round(&mut self) -> Result<(), Error> {
        self.write_pending();
        self.forget()
    }

    fn way(&self) -> Way<'_> {
        Way::new(&self.shared.view)
    }

    fn forget(&self) -> Result<(), Error> {
        self.shared.why_failing()?;
        self.compact().map_err(OpenError::into_error)
    }

    /// Brings the checkpoint up to date and removes the log it replaces.
    fn write_pending(&mut self) {
        if self.pending.is_empty() {
            self.shared.set_failure(None);
            return;
        }
        let result = self.shared.checkpoint.write(&self.pending, &self.way());
        let checkpointed = self.shared.checkpoint.state().revision;
        // Also after a failure: what was written before it was written.
        let done = self
            .pending
            .partition_point(|commit| commit.revision <= checkpointed);
        let bytes: u64 = self
            .pending
            .drain(..done)
            .map(|commit| commit.weight())
            .sum();
        self.pending_bytes -= bytes;
        self.pending_since = (!self.pending.is_empty()).then(Instant::now);
        self.shared.behind_bytes.fetch_sub(bytes, Ordering::SeqCst);
        let removed = match &result {
            Ok(()) => self.shared.segments.remove_until(checkpointed),
            Err(_) => Ok(()),
        };
        // Segments that stay a little longer do no harm; the next round tries again.
        drop(removed);
        self.shared
            .set_failure(result.err().map(OpenError::into_error));
    }

    /// Drops history beyond its limits from the checkpoint.
    fn compact(&self) -> Result<(), OpenError> {
        let options = &self.shared.options;
        let now = options.clock.now_millis();
        let before = now.saturating_sub(options.history_millis());
        let Some(goal) = self
            .shared
            .checkpoint
            .beyond(before, options.history_bytes)?
        else {
            return Ok(());
        };
        let collections: Vec<_> = self
            .shared
            .view
            .all()
            .iter()
            .map(|collection| collection.name.clone())
            .collect();
        let mut reached = Revision(0);
        while reached < goal {
            reached = self
                .shared
                .checkpoint
                .compact_step(&collections, goal, &self.way())?;
            self.shared.view.compact(reached);
        }
        Ok(())
    }

    fn finish(mut self) {
        self.write_pending();
        let is_whole = self.pending.is_empty();
        self.shared.checkpoint.close();
        if is_whole && !self.shared.is_failing() {
            let checkpointed = self.shared.checkpoint.state().revision;
            // What cannot be removed now is found to be old when the store opens again.
            let _ = self.shared.segments.remove_all(checkpointed);
        }
        drop(self.lock);
    }
}
