//! The write-ahead log: what makes a commit durable.
//!
//! A group of commits is one write and one sync into a segment that was filled with zeros before,
//! so that the sync has no file size and no block map to write. The layout and the reasons are in
//! `docs/formats/disk.md`.
//!
//! Rules: a group is written only after the one before it is durable. After a failure nothing
//! more is written to that segment: the next group starts a new one, whose header says how much
//! of the old one counts.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::codec;
use super::failure::write_error;
use super::files::{DataFile, Files, SECTOR, aligned};
use crate::record::{Error, Revision};
use crate::view::Commit;

pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const SEGMENT_MAGIC: [u8; 8] = *b"WLSTWAL\0";
pub(crate) const GROUP_MAGIC: [u8; 4] = *b"WGRP";
/// Ends each group: it cannot be the zeros that were there before.
pub(crate) const GROUP_END: [u8; 8] = *b"WGRPEND\n";
pub(crate) const FORMAT: u32 = 1;

/// The segment of a store that just opened: small, because opening has to be quick.
const SEGMENT_BYTES_FIRST: u64 = 256 * 1024;
const SEGMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Zeros that are written at once. The thread that prepares segments keeps as much memory.
const ZEROS_BYTES_MAX: u64 = 128 * 1024;

/// The first sector of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) store: u64,
    pub(crate) sequence: u64,
    pub(crate) first: Revision,
    /// The segment that holds the commits before `first`; zero for none.
    pub(crate) previous: u64,
    /// How many bytes of it count.
    pub(crate) previous_end: u64,
}

impl SegmentHeader {
    fn encode(&self, out: &mut [u8]) {
        out[..8].copy_from_slice(&SEGMENT_MAGIC);
        out[12..16].copy_from_slice(&FORMAT.to_le_bytes());
        let fields = [
            self.store,
            self.sequence,
            self.first.0,
            self.previous,
            self.previous_end,
        ];
        for (field, place) in fields.iter().zip(out[16..].chunks_exact_mut(8)) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let checksum = crc32fast::hash(&out[12..HEADER_BYTES]);
        out[8..12].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// The name of a segment's file.
pub(crate) fn segment_path(directory: &Path, sequence: u64) -> PathBuf {
    directory.join(format!("wal-{sequence:016x}.log"))
}

/// The sequence number in a segment's file name.
pub(crate) fn segment_sequence(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("wal-")?.strip_suffix(".log")?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// The place up to which the log is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GoodEnd {
    pub(crate) sequence: u64,
    pub(crate) offset: u64,
}

/// A segment that exists on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) sequence: u64,
    /// The newest commit in it that counts.
    pub(crate) last: Revision,
}

/// What the committer and the keeper both know about the segments.
#[derive(Debug)]
pub(crate) struct Segments {
    files: Arc<dyn Files>,
    directory: PathBuf,
    state: Mutex<SegmentsState>,
    changed: Condvar,
}

#[derive(Debug)]
struct SegmentsState {
    next_sequence: u64,
    /// In order; the last one may be in use.
    known: VecDeque<Known>,
    in_use: Option<u64>,
    /// The newest segment that was written to.
    newest_used: u64,
    /// The segment to be used next.
    prepared: Option<Segment>,
    /// A segment of this size should be prepared.
    wanted_bytes: Option<u64>,
    /// A segment of this size is being prepared.
    preparing_bytes: Option<u64>,
    is_stopped: bool,
}

#[derive(Debug)]
struct Segment {
    file: Arc<dyn DataFile>,
    path: PathBuf,
    sequence: u64,
    bytes: u64,
}

impl Segments {
    pub(crate) fn new(
        files: Arc<dyn Files>,
        directory: &Path,
        known: Vec<Known>,
        next_sequence: u64,
    ) -> Segments {
        let state = SegmentsState {
            next_sequence,
            known: known.into(),
            in_use: None,
            newest_used: 0,
            prepared: None,
            wanted_bytes: Some(SEGMENT_BYTES_FIRST),
            preparing_bytes: None,
            is_stopped: false,
        };
        Segments {
            files,
            directory: directory.to_path_buf(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, SegmentsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares segments as they are wanted, until `stop`. Runs on a thread of its own.
    ///
    /// Failing is no harm: the committer then tries for itself, and its caller learns why it
    /// cannot.
    pub(crate) fn prepare(&self) {
        let mut state = self.state();
        while !state.is_stopped {
            let Some(bytes) = state.wanted_bytes.take() else {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.preparing_bytes = Some(bytes);
            drop(state);
            let made = self.create(bytes);
            state = self.state();
            state.preparing_bytes = None;
            if let Ok(segment) = made {
                state.offer(segment, &*self.files);
            }
            self.changed.notify_all();
        }
    }

    /// Ends `prepare`.
    pub(crate) fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    /// A segment with room for this many bytes that comes after all that were used.
    fn next(&self, bytes: u64) -> Result<Segment, Error> {
        let mut state = self.state();
        while state
            .preparing_bytes
            .is_some_and(|preparing| preparing >= bytes)
            && state.prepared.is_none()
        {
            // To begin another one would take longer than to wait for this one.
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(segment) = state.prepared.take_if(|segment| segment.bytes >= bytes) {
            return Ok(segment);
        }
        drop(state);
        self.create(bytes.max(SEGMENT_BYTES_FIRST))
    }

    /// Makes a segment full of zeros whose name is durable.
    fn create(&self, bytes: u64) -> Result<Segment, Error> {
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

    /// Removes the segments that hold nothing newer than what is checkpointed, oldest first.
    ///
    /// Each removal is durable before the next: a segment that was given up must never outlive
    /// the one that took its place.
    pub(crate) fn remove_until(&self, checkpointed: Revision) -> std::io::Result<()> {
        loop {
            let oldest = {
                let state = self.state();
                match state.known.front() {
                    Some(oldest)
                        if oldest.last <= checkpointed && state.in_use != Some(oldest.sequence) =>
                    {
                        *oldest
                    }
                    _ => return Ok(()),
                }
            };
            match self
                .files
                .remove(&segment_path(&self.directory, oldest.sequence))
            {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => self.files.sync_directory(&self.directory)?,
            }
            self.state().known.pop_front();
        }
    }

    /// Removes everything when the store closes with all commits in the checkpoint.
    pub(crate) fn remove_all(&self, checkpointed: Revision) -> std::io::Result<()> {
        let prepared = {
            let mut state = self.state();
            state.in_use = None;
            state.prepared.take()
        };
        if let Some(segment) = prepared {
            self.files.remove(&segment.path)?;
        }
        self.remove_until(checkpointed)
    }
}

impl SegmentsState {
    /// Takes a prepared segment, unless a later one is in use already: recovery relies on segments
    /// being used in the order of their numbers.
    fn offer(&mut self, segment: Segment, files: &dyn Files) {
        if segment.sequence > self.newest_used {
            self.prepared = Some(segment);
        } else {
            let _ = files.remove(&segment.path);
        }
    }
}

/// The writing end, owned by the committer.
#[derive(Debug)]
pub(crate) struct Log {
    segments: Arc<Segments>,
    store: u64,
    active: Option<Active>,
    good: GoodEnd,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Active {
    segment: Segment,
    offset: u64,
}

impl Log {
    pub(crate) fn new(segments: Arc<Segments>, store: u64, good: GoodEnd) -> Log {
        Log {
            segments,
            store,
            active: None,
            good,
            buffer: Vec::new(),
        }
    }

    /// Makes a group of commits durable.
    pub(crate) fn append(&mut self, commits: &[Commit]) -> Result<(), Error> {
        let first = commits[0].revision;
        let last = commits[commits.len() - 1].revision;
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.write(&mut buffer, commits, first);
        if buffer.capacity() <= 1024 * 1024 {
            self.buffer = buffer;
        }
        match result {
            Ok(good) => {
                self.good = good;
                let mut state = self.segments.state();
                if let Some(known) = state.known.back_mut() {
                    known.last = last;
                }
                Ok(())
            }
            Err(error) => {
                self.give_up();
                Err(error)
            }
        }
    }

    fn write(
        &mut self,
        buffer: &mut Vec<u8>,
        commits: &[Commit],
        first: Revision,
    ) -> Result<GoodEnd, Error> {
        // Room for a segment's header comes first; whether it is needed is known afterwards.
        buffer.clear();
        buffer.resize(SECTOR + HEADER_BYTES, 0);
        for commit in commits {
            codec::encode(commit, buffer);
        }
        buffer.extend_from_slice(&GROUP_END);
        let group_bytes = (buffer.len() - SECTOR) as u64;
        let room = self
            .active
            .as_ref()
            .map_or(0, |active| active.segment.bytes - active.offset);
        if room < group_bytes.next_multiple_of(SECTOR as u64) {
            self.roll(group_bytes + 2 * SECTOR as u64)?;
        }
        let active = self.active.as_mut().expect("there is a segment with room");
        seal_group(
            &mut buffer[SECTOR..],
            active.segment.sequence,
            first,
            commits.len(),
        );
        let (offset, from) = if active.offset == 0 {
            let header = SegmentHeader {
                store: self.store,
                sequence: active.segment.sequence,
                first,
                previous: self.good.sequence,
                previous_end: self.good.offset,
            };
            header.encode(&mut buffer[..SECTOR]);
            (0, 0)
        } else {
            (active.offset, SECTOR)
        };
        let bytes = aligned(buffer, from);
        let Segment { file, path, .. } = &active.segment;
        file.write_at(offset, bytes)
            .map_err(|error| write_error(path, error))?;
        file.sync().map_err(|error| write_error(path, error))?;
        active.offset = offset + bytes.len() as u64;
        let mut state = self.segments.state();
        let is_covered = state.prepared.is_some() || state.preparing_bytes.is_some();
        if !is_covered && active.offset * 2 > active.segment.bytes {
            let bytes = (active.segment.bytes * 4).clamp(SEGMENT_BYTES_FIRST, SEGMENT_BYTES_MAX);
            state.wanted_bytes = Some(bytes);
            self.segments.changed.notify_all();
        }
        Ok(GoodEnd {
            sequence: active.segment.sequence,
            offset: active.offset,
        })
    }

    /// Goes on in a new segment with room for this many bytes.
    fn roll(&mut self, bytes: u64) -> Result<(), Error> {
        self.active = None;
        let segment = self.segments.next(bytes)?;
        let mut state = self.segments.state();
        state.in_use = Some(segment.sequence);
        state.newest_used = segment.sequence;
        if let Some(overtaken) = state.prepared.take() {
            state.offer(overtaken, &*self.segments.files);
        }
        state.known.push_back(Known {
            sequence: segment.sequence,
            last: Revision(0),
        });
        drop(state);
        self.active = Some(Active { segment, offset: 0 });
        Ok(())
    }

    /// Leaves the segment in use as it is after a failure.
    fn give_up(&mut self) {
        let Some(active) = self.active.take() else {
            return;
        };
        let mut state = self.segments.state();
        state.in_use = None;
        if active.offset == 0 {
            // Nothing in it counts. If it stays, recovery finds out by itself.
            state
                .known
                .retain(|known| known.sequence != active.segment.sequence);
            drop(state);
            let _ = self.segments.files.remove(&active.segment.path);
        }
    }
}

/// Fills in the header of a group whose body is in place.
fn seal_group(group: &mut [u8], sequence: u64, first: Revision, count: usize) {
    let narrow = "a group is bounded by the committer";
    let body_bytes = u32::try_from(group.len() - HEADER_BYTES).expect(narrow);
    let body_checksum = crc32fast::hash(&group[HEADER_BYTES..]);
    group[..4].copy_from_slice(&GROUP_MAGIC);
    group[8..16].copy_from_slice(&sequence.to_le_bytes());
    group[16..24].copy_from_slice(&first.0.to_le_bytes());
    group[24..28].copy_from_slice(&u32::try_from(count).expect(narrow).to_le_bytes());
    group[28..32].copy_from_slice(&body_bytes.to_le_bytes());
    group[32..36].copy_from_slice(&body_checksum.to_le_bytes());
    let zero_sectors = u32::try_from(count_zero_sectors(group)).expect(narrow);
    group[36..40].copy_from_slice(&zero_sectors.to_le_bytes());
    let checksum = crc32fast::hash(&group[8..HEADER_BYTES]);
    group[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// How many whole sectors hold nothing but zeros.
pub(crate) fn count_zero_sectors(bytes: &[u8]) -> usize {
    bytes
        .chunks(SECTOR)
        .filter(|sector| sector.iter().all(|byte| *byte == 0))
        .count()
}
