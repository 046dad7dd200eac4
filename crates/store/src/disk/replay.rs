//! Reads the write-ahead log after a stop of any kind.
//!
//! The last group may be torn by a power cut; nobody was told of it, and it is dropped. Anything
//! else that does not add up is damage: commits that were acknowledged would be missing, so the
//! log is refused. A torn group is told from a damaged one by the zeros that were there before it:
//! a sector of a torn group that did not reach the disk is still zero.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::codec::{self, Stored, u32_at, u64_at};
use super::failure::OpenError;
use super::files::{DataFile, Files, Presence, SECTOR};
use super::segments::{Known, segment_path, segment_sequence};
use super::wal::{
    FORMAT, GROUP_END, GROUP_MAGIC, GoodEnd, HEADER_BYTES, SEGMENT_MAGIC, SegmentHeader,
    count_zero_sectors,
};
use crate::record::Revision;

/// What the log holds beside its commits.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Up to where it is good.
    pub(crate) good: GoodEnd,
    pub(crate) known: Vec<Known>,
    /// Segments that were made but never written.
    pub(crate) unused: Vec<PathBuf>,
    pub(crate) next_sequence: u64,
    /// Groups that were read.
    pub(crate) groups: usize,
    /// Bytes of a torn last group were found and left out.
    pub(crate) torn: bool,
}

#[derive(Debug)]
struct Found {
    header: SegmentHeader,
    file: Arc<dyn DataFile>,
    path: PathBuf,
}

/// Hands every commit newer than the checkpoint to `each`, in order.
pub(crate) fn replay(
    files: &dyn Files,
    directory: &Path,
    store: u64,
    checkpointed: Revision,
    each: &mut dyn FnMut(&Stored<'_>) -> Result<(), OpenError>,
) -> Result<Tail, OpenError> {
    let mut tail = Tail {
        next_sequence: 1,
        ..Tail::default()
    };
    let found = find_segments(files, directory, store, &mut tail)?;
    let chain = find_chain(&found, directory, checkpointed)?;
    let mut reader = Reader {
        checkpointed,
        newest: None,
        each,
        torn: false,
        groups: 0,
        last_group: 0,
    };
    for (index, segment) in chain.iter().enumerate() {
        let bytes = read_whole(segment)?;
        let end = chain.get(index + 1).map(|next| next.header.previous_end);
        let good = reader.segment(segment, &bytes, end)?;
        make_durable(
            segment,
            &bytes[reader.last_group..good as usize],
            reader.last_group,
        )
        .map_err(|error| OpenError::io("sync", &segment.path, error))?;
        tail.good = GoodEnd {
            sequence: segment.header.sequence,
            offset: good,
        };
        let last = reader.newest.unwrap_or_default();
        for known in &mut tail.known {
            if known.sequence == segment.header.sequence {
                known.last = last;
            }
        }
    }
    tail.torn = reader.torn;
    tail.groups = reader.groups;
    Ok(tail)
}

/// The segments with a header, by sequence.
fn find_segments(
    files: &dyn Files,
    directory: &Path,
    store: u64,
    tail: &mut Tail,
) -> Result<Vec<Found>, OpenError> {
    let names = files
        .list(directory)
        .map_err(|error| OpenError::io("list", directory, error))?;
    let mut sequences: Vec<u64> = names
        .iter()
        .filter_map(|name| segment_sequence(name))
        .collect();
    sequences.sort_unstable();
    let mut found = Vec::new();
    for sequence in sequences {
        tail.next_sequence = sequence + 1;
        let path = segment_path(directory, sequence);
        let read = |error| OpenError::io("read", &path, error);
        let file = files.open(&path, Presence::Existing).map_err(read)?;
        let mut sector = [0; SECTOR];
        if file.len().map_err(read)? >= SECTOR as u64 {
            file.read_at(0, &mut sector).map_err(read)?;
        }
        if sector.iter().all(|byte| *byte == 0) {
            tail.unused.push(path);
            continue;
        }
        let header = parse_header(&sector, &path)?;
        if header.sequence != sequence || header.store != store {
            return Err(OpenError::corrupt(
                &path,
                "it belongs to another store or place",
            ));
        }
        tail.known.push(Known {
            sequence,
            last: Revision(0),
        });
        found.push(Found { header, file, path });
    }
    Ok(found)
}

fn parse_header(sector: &[u8], path: &Path) -> Result<SegmentHeader, OpenError> {
    if sector[..8] != SEGMENT_MAGIC
        || crc32fast::hash(&sector[12..HEADER_BYTES]) != u32_at(sector, 8)
    {
        return Err(OpenError::corrupt(
            path,
            "its header is not what was written",
        ));
    }
    let format = u32_at(sector, 12);
    if format != FORMAT {
        return Err(OpenError::Version {
            file: path.display().to_string(),
            found: format.to_string(),
            expected: FORMAT.to_string(),
        });
    }
    Ok(SegmentHeader {
        store: u64_at(sector, 16),
        sequence: u64_at(sector, 24),
        first: Revision(u64_at(sector, 32)),
        previous: u64_at(sector, 40),
        previous_end: u64_at(sector, 48),
    })
}

/// The segments to read: from the newest back to where the checkpoint takes over.
fn find_chain<'a>(
    found: &'a [Found],
    directory: &Path,
    checkpointed: Revision,
) -> Result<Vec<&'a Found>, OpenError> {
    let mut chain: Vec<&Found> = found.last().into_iter().collect();
    while let Some(oldest) = chain.last()
        && oldest.header.first.0 > checkpointed.0 + 1
    {
        let previous = oldest.header.previous;
        let segment = found
            .iter()
            .find(|segment| segment.header.sequence == previous);
        chain.push(segment.ok_or_else(|| {
            let path = segment_path(directory, previous);
            let first = oldest.header.first;
            OpenError::corrupt(
                &path,
                format!("the commits before revision {first} are missing"),
            )
        })?);
    }
    chain.reverse();
    Ok(chain)
}

/// Writes the last group again and syncs it.
///
/// What a process wrote just before it ended may be in the system's memory alone, and after a
/// sync that failed another sync does not change that. It is about to become visible, so it has
/// to be durable first.
fn make_durable(segment: &Found, bytes: &[u8], offset: usize) -> std::io::Result<()> {
    segment.file.write_at(offset as u64, bytes)?;
    segment.file.sync()
}

fn read_whole(segment: &Found) -> Result<Vec<u8>, OpenError> {
    let read = |error| OpenError::io("read", &segment.path, error);
    let len = segment.file.len().map_err(read)?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    segment.file.read_at(0, &mut bytes).map_err(read)?;
    Ok(bytes)
}

struct Reader<'a> {
    checkpointed: Revision,
    newest: Option<Revision>,
    each: &'a mut dyn FnMut(&Stored<'_>) -> Result<(), OpenError>,
    torn: bool,
    groups: usize,
    /// Where the last group that was read begins; with the header, if it is the first.
    last_group: usize,
}

/// One place in a segment.
enum Place {
    /// A group of this many bytes, with its first revision and its records.
    Group {
        bytes: usize,
        first: Revision,
        body: std::ops::Range<usize>,
    },
    /// Zeros.
    Nothing,
    /// A group that did not reach the disk in full.
    Torn,
}

impl Reader<'_> {
    /// Reads one segment up to a known end, or to where it ends by itself; returns the end.
    fn segment(
        &mut self,
        segment: &Found,
        bytes: &[u8],
        end: Option<u64>,
    ) -> Result<u64, OpenError> {
        let damage = |offset: usize, detail: &str| {
            OpenError::corrupt(&segment.path, format!("at byte {offset}: {detail}"))
        };
        let limit = end.map_or(bytes.len(), |end| {
            usize::try_from(end).unwrap_or(usize::MAX)
        });
        if limit > bytes.len() {
            return Err(damage(bytes.len(), "the file ends too early"));
        }
        let mut offset = SECTOR;
        self.last_group = 0;
        while offset < limit {
            let place = parse_group(&bytes[offset..limit], segment.header.sequence)
                .map_err(|detail| damage(offset, &detail))?;
            let Place::Group {
                bytes: length,
                first,
                body,
            } = place
            else {
                if end.is_some() {
                    return Err(damage(offset, "a group of commits is missing"));
                }
                self.torn |= matches!(place, Place::Torn);
                let rest = &bytes[(offset + SECTOR).min(limit)..limit];
                if has_later_group(rest, segment.header.sequence, self.newest) {
                    return Err(damage(
                        offset,
                        "a group is missing before one that is there",
                    ));
                }
                break;
            };
            let body = &bytes[offset + body.start..offset + body.end];
            self.group(first, body).map_err(|error| match error {
                GroupError::Damage(detail) => damage(offset, &detail),
                GroupError::Refused(error) => error,
            })?;
            self.last_group = if offset == SECTOR { 0 } else { offset };
            offset = (offset + length).next_multiple_of(SECTOR).min(limit);
        }
        Ok(offset as u64)
    }

    fn group(&mut self, first: Revision, mut body: &[u8]) -> Result<(), GroupError> {
        let expected = self.newest.map(|newest| newest.0 + 1);
        if expected.is_some_and(|expected| expected != first.0) {
            let detail = format!("revision {first} follows revision {:?}", self.newest);
            return Err(GroupError::Damage(detail));
        }
        let mut revision = first;
        while !body.is_empty() {
            let (record, length) = codec::decode(body).map_err(GroupError::Damage)?;
            if record.revision != revision {
                let detail = format!("revision {} instead of {revision}", record.revision);
                return Err(GroupError::Damage(detail));
            }
            if revision > self.checkpointed {
                (self.each)(&record).map_err(GroupError::Refused)?;
            }
            self.newest = Some(revision);
            revision = Revision(revision.0 + 1);
            body = &body[length..];
        }
        self.groups += 1;
        Ok(())
    }
}

enum GroupError {
    Damage(String),
    Refused(OpenError),
}

fn parse_group(bytes: &[u8], sequence: u64) -> Result<Place, String> {
    let sector = &bytes[..bytes.len().min(SECTOR)];
    if sector.iter().all(|byte| *byte == 0) {
        return Ok(Place::Nothing);
    }
    if !is_group_header(sector, sequence) {
        return Err("a group's header is not what was written".into());
    }
    let body_bytes = u32_at(sector, 28) as usize;
    let group_bytes = HEADER_BYTES + body_bytes;
    if group_bytes > bytes.len() || body_bytes < GROUP_END.len() {
        return Err(format!(
            "a group of {group_bytes} bytes does not fit its segment"
        ));
    }
    let group = &bytes[..group_bytes];
    let body = &group[HEADER_BYTES..];
    let (records, ending) = body.split_at(body_bytes - GROUP_END.len());
    if crc32fast::hash(body) == u32_at(sector, 32) {
        let first = Revision(u64_at(sector, 16));
        let body = HEADER_BYTES..HEADER_BYTES + records.len();
        return Ok(Place::Group {
            bytes: group_bytes,
            first,
            body,
        });
    }
    let unwritten = count_zero_sectors(group) > u32_at(sector, 36) as usize
        || ending.iter().all(|byte| *byte == 0);
    if unwritten {
        Ok(Place::Torn)
    } else {
        Err("a group's checksum does not match".into())
    }
}

fn is_group_header(sector: &[u8], sequence: u64) -> bool {
    sector.len() >= HEADER_BYTES
        && sector[..4] == GROUP_MAGIC
        && crc32fast::hash(&sector[8..HEADER_BYTES]) == u32_at(sector, 4)
        && u64_at(sector, 8) == sequence
}

/// Whether a group follows that was written after the one that is missing was durable.
fn has_later_group(bytes: &[u8], sequence: u64, newest: Option<Revision>) -> bool {
    bytes.chunks_exact(SECTOR).any(|sector| {
        is_group_header(sector, sequence)
            && newest.is_none_or(|newest| u64_at(sector, 16) > newest.0 + 1)
    })
}
