//! The write-ahead log: what makes a commit durable.
//!
//! A group of commits is one write and one sync into a segment that was filled with zeros before,
//! so that the sync has no file size and no block map to write. The layout and the reasons are in
//! `docs/formats/disk.md`.
//!
//! Rules: a group is written only after the one before it is durable. After a failure nothing
//! more is written to that segment: the next group starts a new one, whose header says how much
//! of the old one counts.

use std::sync::Arc;

use super::codec;
use super::failure::write_error;
use super::files::{SECTOR, aligned};
use super::segments::{Segment, Segments};
use crate::record::{Error, Revision};
use crate::view::Commit;

pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const SEGMENT_MAGIC: [u8; 8] = *b"WLSTWAL\0";
pub(crate) const GROUP_MAGIC: [u8; 4] = *b"WGRP";
/// Ends each group: it cannot be the zeros that were there before.
pub(crate) const GROUP_END: [u8; 8] = *b"WGRPEND\n";
pub(crate) const FORMAT: u32 = 1;

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

/// The place up to which the log is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GoodEnd {
    pub(crate) sequence: u64,
    pub(crate) offset: u64,
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
                self.segments.note_written(last, good.offset);
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
        Ok(GoodEnd {
            sequence: active.segment.sequence,
            offset: active.offset,
        })
    }

    /// Goes on in a new segment with room for this many bytes.
    fn roll(&mut self, bytes: u64) -> Result<(), Error> {
        self.active = None;
        let segment = self.segments.take(bytes)?;
        self.active = Some(Active { segment, offset: 0 });
        Ok(())
    }

    fn give_up(&mut self) {
        if let Some(Active { segment, offset }) = self.active.take() {
            self.segments.give_up(&segment, offset);
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
