//! The log's segments: which there are, and the next one, which is ready before it is needed.
//!
//! A segment is filled with zeros before it is used, and that keeps the disk from commits. So the
//! next one is begun as soon as one is in use, and filled while hardly anything is committed; under
//! load at the pace at which the one in use is used up, so that it is just ready in time.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::failure::write_error;
use super::files::{DataFile, Files, SECTOR, aligned};
use crate::record::{Error, Revision};

/// The segment of a store that just opened: small, because opening has to be quick.
const SEGMENT_BYTES_FIRST: u64 = 256 * 1024;
/// Each of the others is twice as large as the one before it, between these two.
const SEGMENT_BYTES_MIN: u64 = 2 * 1024 * 1024;
const SEGMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Zeros that are written at once. The thread that prepares segments keeps as much memory.
const ZEROS_BYTES_MAX: u64 = 128 * 1024;
/// How long the thread that prepares segments lets commits go first before it looks again.
const PAUSE: Duration = Duration::from_millis(5);
/// Whoever commits less than this in a pause is not in a hurry.
const QUIET_BYTES: u64 = 16 * 1024;

/// The name of a segment's file.
pub(crate) fn segment_path(directory: &Path, sequence: u64) -> PathBuf {
    directory.join(format!("wal-{sequence:016x}.log"))
}

/// The sequence number in a segment's file name.
pub(crate) fn segment_sequence(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("wal-")?.strip_suffix(".log")?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// A segment that exists on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) sequence: u64,
    /// The newest commit in it that counts.
    pub(crate) last: Revision,
}

/// A segment full of zeros whose name is durable.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) file: Arc<dyn DataFile>,
    pub(crate) path: PathBuf,
    pub(crate) sequence: u64,
    pub(crate) bytes: u64,
}

/// What the committer and the keeper both know about the segments.
#[derive(Debug)]
pub(crate) struct Segments {
    files: Arc<dyn Files>,
    directory: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    next_sequence: u64,
    /// In order; the last one may be in use.
    known: VecDeque<Known>,
    in_use: Option<InUse>,
    /// The newest segment that was written to.
    newest_used: u64,
    /// What was ever written to segments.
    written_bytes: u64,
    next: Next,
    is_stopped: bool,
}

#[derive(Clone, Copy, Debug)]
struct InUse {
    sequence: u64,
    bytes: u64,
    used: u64,
}

/// The segment to be used next.
#[derive(Debug)]
enum Next {
    /// It could not be prepared: whoever needs it tries again, and learns why.
    Missing,
    Wanted {
        bytes: u64,
    },
    Preparing {
        bytes: u64,
        /// The committer waits for it.
        is_awaited: bool,
    },
    Ready(Segment),
}

impl Segments {
    pub(crate) fn new(
        files: Arc<dyn Files>,
        directory: &Path,
        known: Vec<Known>,
        next_sequence: u64,
    ) -> Segments {
        let state = State {
            next_sequence,
            known: known.into(),
            in_use: None,
            newest_used: 0,
            written_bytes: 0,
            next: Next::Wanted {
                bytes: SEGMENT_BYTES_FIRST,
            },
            is_stopped: false,
        };
        Segments {
            files,
            directory: directory.to_path_buf(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares segments as they are wanted, until `stop`. Runs on a thread of its own.
    ///
    /// Failing is no harm: the committer then tries for itself, and its caller learns why it
    /// cannot.
    pub(crate) fn prepare(&self) {
        let mut state = self.state();
        while !state.is_stopped {
            let Next::Wanted { bytes } = state.next else {
                state = self.wait(state);
                continue;
            };
            state.next = Next::Preparing {
                bytes,
                is_awaited: false,
            };
            drop(state);
            let made = self.create(bytes, |filled| self.wait_for_turn(filled, bytes));
            state = self.state();
            state.next = made.map_or(Next::Missing, Next::Ready);
            state.drop_overtaken(&*self.files);
            self.changed.notify_all();
        }
    }

    /// Waits until more than this of the next segment should be filled. An error, if it is not
    /// needed any more.
    fn wait_for_turn(&self, filled: u64, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        loop {
            if state.is_stopped {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if state.is_due(filled, bytes) {
                return Ok(());
            }
            let written_before = state.written_bytes;
            let waited = self.changed.wait_timeout(state, PAUSE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.written_bytes - written_before < QUIET_BYTES {
                return Ok(());
            }
        }
    }

    /// Ends `prepare`.
    pub(crate) fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    /// A segment with room for this many bytes that comes after all that were used. It is in use
    /// from now on.
    pub(crate) fn take(&self, bytes: u64) -> Result<Segment, Error> {
        let ready = self.take_ready(bytes);
        let segment = match ready {
            Some(segment) => segment,
            None => self.create(bytes.max(SEGMENT_BYTES_FIRST), |_| Ok(()))?,
        };
        let mut state = self.state();
        state.in_use = Some(InUse {
            sequence: segment.sequence,
            bytes: segment.bytes,
            used: 0,
        });
        state.newest_used = segment.sequence;
        state.known.push_back(Known {
            sequence: segment.sequence,
            last: Revision(0),
        });
        state.drop_overtaken(&*self.files);
        if matches!(state.next, Next::Missing | Next::Wanted { .. }) {
            state.next = state.wanted();
        }
        self.changed.notify_all();
        Ok(segment)
    }

    fn take_ready(&self, wanted: u64) -> Option<Segment> {
        let mut state = self.state();
        while let Next::Preparing { bytes, is_awaited } = &mut state.next
            && *bytes >= wanted
        {
            // To begin another one would take longer than to wait for this one.
            *is_awaited = true;
            self.changed.notify_all();
            state = self.wait(state);
        }
        match std::mem::replace(&mut state.next, Next::Missing) {
            Next::Ready(segment) if segment.bytes >= wanted => Some(segment),
            // Nobody has begun it, and the caller makes one now.
            Next::Wanted { .. } => None,
            other => {
                state.next = other;
                None
            }
        }
    }

    /// Makes a segment, and asks before each of its parts.
    fn create(
        &self,
        bytes: u64,
        mut may_fill: impl FnMut(u64) -> io::Result<()>,
    ) -> Result<Segment, Error> {
        let bytes = bytes.next_multiple_of(SECTOR as u64);
        let sequence = {
            let mut state = self.state();
            state.next_sequence += 1;
            state.next_sequence - 1
        };
        let path = segment_path(&self.directory, sequence);
        let made = self.files.create_direct(&path).and_then(|file| {
            let mut buffer = vec![0; bytes.min(ZEROS_BYTES_MAX) as usize];
            let zeros = aligned(&mut buffer, 0);
            let mut offset = 0;
            while offset < bytes {
                may_fill(offset)?;
                let step = (bytes - offset).min(zeros.len() as u64);
                file.write_at(offset, &zeros[..step as usize])?;
                offset += step;
            }
            file.sync()?;
            self.files.sync_directory(&self.directory)?;
            Ok(file)
        });
        match made {
            Ok(file) => Ok(Segment {
                file,
                path,
                sequence,
                bytes,
            }),
            Err(error) => {
                // Half a segment is of no use, and on a full disk its blocks are.
                let _ = self.files.remove(&path);
                Err(write_error(&path, error))
            }
        }
    }

    /// The segment in use holds commits up to this one, and so many bytes.
    pub(crate) fn note_written(&self, last: Revision, used: u64) {
        let mut state = self.state();
        if let Some(known) = state.known.back_mut() {
            known.last = last;
        }
        if let Some(in_use) = &mut state.in_use {
            let written = used - in_use.used;
            in_use.used = used;
            state.written_bytes += written;
        }
    }

    /// Leaves the segment in use as it is after a failure. Nothing in it counts if it was not used.
    pub(crate) fn give_up(&self, segment: &Segment, used: u64) {
        let mut state = self.state();
        state.in_use = None;
        if used == 0 {
            // If it stays, recovery finds out by itself.
            state
                .known
                .retain(|known| known.sequence != segment.sequence);
            drop(state);
            let _ = self.files.remove(&segment.path);
        }
    }

    /// Removes the segments that hold nothing newer than what is checkpointed, oldest first.
    ///
    /// Each removal is durable before the next: a segment that was given up must never outlive
    /// the one that took its place.
    pub(crate) fn remove_until(&self, checkpointed: Revision) -> io::Result<()> {
        loop {
            // The lock is not held while the disk works.
            let oldest = self.state().oldest_unneeded(checkpointed);
            let Some(oldest) = oldest else {
                return Ok(());
            };
            match self.files.remove(&segment_path(&self.directory, oldest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => self.files.sync_directory(&self.directory)?,
            }
            self.state().known.pop_front();
        }
    }

    /// Removes everything when the store closes with all commits in the checkpoint.
    pub(crate) fn remove_all(&self, checkpointed: Revision) -> io::Result<()> {
        let next = {
            let mut state = self.state();
            state.in_use = None;
            std::mem::replace(&mut state.next, Next::Missing)
        };
        if let Next::Ready(segment) = next {
            self.files.remove(&segment.path)?;
        }
        self.remove_until(checkpointed)
    }
}

impl State {
    /// Whether the next segment has to be filled beyond this now, whoever commits meanwhile: it
    /// begins when a quarter of the one in use is used up, and is done before all of it is.
    fn is_due(&self, filled: u64, bytes: u64) -> bool {
        let is_awaited = matches!(
            self.next,
            Next::Preparing {
                is_awaited: true,
                ..
            }
        );
        let Some(in_use) = self.in_use.filter(|_| !is_awaited) else {
            return true;
        };
        let (begin, end) = (in_use.bytes / 4, in_use.bytes / 8 * 7);
        in_use.used > begin && filled * (end - begin) <= bytes * (in_use.used - begin)
    }

    /// The segment after the one in use, yet to be prepared.
    fn wanted(&self) -> Next {
        let before = self.in_use.map_or(0, |in_use| in_use.bytes);
        Next::Wanted {
            bytes: (before * 2).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
        }
    }

    /// Gives up the next segment if a later one is in use already: recovery relies on segments
    /// being used in the order of their numbers.
    fn drop_overtaken(&mut self, files: &dyn Files) {
        if let Next::Ready(segment) = &self.next
            && segment.sequence < self.newest_used
        {
            let _ = files.remove(&segment.path);
            self.next = self.wanted();
        }
    }

    fn oldest_unneeded(&self, checkpointed: Revision) -> Option<u64> {
        let oldest = self.known.front()?;
        let in_use = self.in_use.map(|in_use| in_use.sequence);
        (oldest.last <= checkpointed && in_use != Some(oldest.sequence)).then_some(oldest.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn state(used: Option<u64>, is_awaited: bool) -> State {
        State {
            next_sequence: 3,
            known: VecDeque::new(),
            in_use: used.map(|used| InUse {
                sequence: 1,
                bytes: 8 * MIB,
                used,
            }),
            newest_used: 1,
            written_bytes: 0,
            next: Next::Preparing {
                bytes: 16 * MIB,
                is_awaited,
            },
            is_stopped: false,
        }
    }

    #[test]
    fn a_segment_is_filled_at_the_pace_at_which_the_one_before_is_used() {
        let is_due = |used, filled| state(Some(used), false).is_due(filled, 16 * MIB);
        assert!(!is_due(MIB, 0), "it is early");
        assert!(!is_due(2 * MIB, 0));
        assert!(is_due(2 * MIB + 1, 0));
        // Between 2 and 7 MiB, 3.2 MiB for each that is used.
        assert!(is_due(4 * MIB, 6 * MIB));
        assert!(!is_due(4 * MIB, 7 * MIB));
        assert!(is_due(7 * MIB, 16 * MIB - 1), "the rest, before the end");
    }

    #[test]
    fn a_segment_that_is_waited_for_is_filled_at_once() {
        assert!(state(Some(0), true).is_due(0, 16 * MIB));
        assert!(state(None, false).is_due(0, 16 * MIB), "the first one");
    }
}
