//! Packs: the checkpoint's records, many to one value of its database.
//!
//! A value costs the database a walk down its tree and at least a page of its own, which for
//! records of a kilobyte or two is several times what their bytes cost. So the commits of one
//! batch that belong to the same collection are written one behind the other, up to a size.
//!
//! What history no longer needs stays in its pack until half of the pack is gone; then the rest is
//! written anew. The keys of the index say which records live.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;

use redb::{AccessGuard, Range, ReadableTable, Table};

use super::codec::{self, Stored};
use super::database::failure;
use super::failure::OpenError;
use super::way::Way;
use crate::record::Revision;
use crate::view::Commit;

/// A pack is closed before it grows beyond this; a larger record is a pack of its own. With its key
/// it then fits a page of 64 KiB: the database's pages are powers of two.
const PACK_BYTES_MAX: usize = 63 * 1024;

/// The key of a pack: its collection, and the revision of its first record.
type Place = (&'static str, u64);

/// The table of packs, as it is written.
pub(crate) type Packs<'t> = Table<'t, Place, &'static [u8]>;
/// How many bytes of a pack are gone, for packs of which any are.
pub(crate) type Gone<'t> = Table<'t, Place, u64>;
/// The table of keys, as it is written.
pub(crate) type Keys<'t> = Table<'t, (&'static str, &'static str, u64), u64>;

/// Puts the commits of a batch into packs.
#[derive(Default)]
pub(crate) struct Packer<'c> {
    open: HashMap<&'c str, Pack>,
}

#[derive(Default)]
struct Pack {
    first: u64,
    bytes: Vec<u8>,
}

impl<'c> Packer<'c> {
    /// Adds the next commit and returns its checksum.
    pub(crate) fn add(
        &mut self,
        packs: &mut Packs<'_>,
        commit: &'c Commit,
    ) -> Result<u32, redb::Error> {
        let collection = &*commit.collection.name;
        let pack = self.open.entry(collection).or_default();
        if pack.bytes.len() + codec::encoded_len(commit) > PACK_BYTES_MAX {
            pack.close(packs, collection)?;
        }
        if pack.bytes.is_empty() {
            pack.first = commit.revision.0;
        }
        Ok(codec::encode(commit, &mut pack.bytes))
    }

    /// Writes what is not full.
    pub(crate) fn finish(self, packs: &mut Packs<'_>) -> Result<(), redb::Error> {
        for (collection, mut pack) in self.open {
            pack.close(packs, collection)?;
        }
        Ok(())
    }
}

impl Pack {
    fn close(&mut self, packs: &mut Packs<'_>, collection: &str) -> Result<(), redb::Error> {
        if !self.bytes.is_empty() {
            packs.insert((collection, self.first), &self.bytes[..])?;
            self.bytes.clear();
        }
        Ok(())
    }
}

/// The records of a pack, each checked; after a damaged one there are no more.
pub(crate) fn records(mut pack: &[u8]) -> impl Iterator<Item = Result<Stored<'_>, String>> {
    std::iter::from_fn(move || {
        if pack.is_empty() {
            return None;
        }
        let decoded = codec::decode(pack);
        pack = decoded.as_ref().map_or(&[], |(_, length)| &pack[*length..]);
        Some(decoded.map(|(record, _)| record))
    })
}

/// The packs of a collection that hold what was committed in a range of revisions. The first may
/// begin, and the last may end, outside of it.
pub(crate) fn covering<'t>(
    packs: &'t impl ReadableTable<Place, &'static [u8]>,
    collection: &str,
    revisions: RangeInclusive<u64>,
) -> Result<Range<'t, Place, &'static [u8]>, redb::StorageError> {
    let (from, until) = revisions.into_inner();
    let first = match packs
        .range((collection, 0)..=(collection, from))?
        .next_back()
    {
        Some(entry) => entry?.0.value().1,
        None => from,
    };
    packs.range((collection, first)..=(collection, until.max(first)))
}

/// Finds records of a collection, best in the order of their revisions: each pack is then looked
/// up only once.
pub(crate) struct Finder<'t, T> {
    packs: &'t T,
    path: &'t Path,
    collection: &'t str,
    following: Option<Range<'t, Place, &'static [u8]>>,
    pack: Option<AccessGuard<'t, &'static [u8]>>,
    /// Where in the pack the last record was found.
    offset: usize,
}

impl<'t, T: ReadableTable<Place, &'static [u8]>> Finder<'t, T> {
    pub(crate) fn new(packs: &'t T, path: &'t Path, collection: &'t str) -> Self {
        Finder {
            packs,
            path,
            collection,
            following: None,
            pack: None,
            offset: 0,
        }
    }

    /// The record of a revision, which has to be there and to be of this key.
    pub(crate) fn find(&mut self, revision: Revision, name: &str) -> Result<Stored<'_>, OpenError> {
        // Where most packs are needed, the next one is cheaper to have than to look up.
        let is_found = self.seek(revision)?
            || (self.step()? && self.seek(revision)?)
            || (self.jump(revision)? && self.seek(revision)?);
        let pack = self.pack.as_ref().filter(|_| is_found);
        let Some(pack) = pack else {
            return Err(self.damaged(revision, "it is missing"));
        };
        let decoded = codec::decode(&pack.value()[self.offset..]);
        let (record, _) = decoded.map_err(|detail| self.damaged(revision, &detail))?;
        if (record.collection, record.name) != (self.collection, name) {
            return Err(self.damaged(revision, "another record is in its place"));
        }
        Ok(record)
    }

    /// Goes on in the pack to a revision, if it is there.
    fn seek(&mut self, revision: Revision) -> Result<bool, OpenError> {
        let Some(pack) = &self.pack else {
            return Ok(false);
        };
        let bytes = pack.value();
        while self.offset < bytes.len() {
            let head = codec::peek(&bytes[self.offset..]);
            let (found, length) = head.map_err(|detail| self.damaged(revision, &detail))?;
            if found >= revision {
                return Ok(found == revision);
            }
            self.offset += length;
        }
        Ok(false)
    }

    fn step(&mut self) -> Result<bool, OpenError> {
        let Some(following) = &mut self.following else {
            return Ok(false);
        };
        let next = following.next().transpose();
        let next = next.map_err(|error| failure(self.path, error.into()))?;
        self.pack = next.map(|(_, pack)| pack);
        self.offset = 0;
        Ok(self.pack.is_some())
    }

    fn jump(&mut self, revision: Revision) -> Result<bool, OpenError> {
        let following = covering(self.packs, self.collection, revision.0..=u64::MAX);
        self.following = Some(following.map_err(|error| failure(self.path, error.into()))?);
        self.step()
    }

    fn damaged(&self, revision: Revision, detail: &str) -> OpenError {
        damaged(self.path, self.collection, revision, detail)
    }
}

/// What is told when a record is not what it should be.
pub(crate) fn damaged(
    path: &Path,
    collection: &str,
    revision: Revision,
    detail: &str,
) -> OpenError {
    OpenError::corrupt(
        path,
        format!("revision {revision} of {collection}: {detail}"),
    )
}

/// Takes note that records of a collection are gone, whose keys are gone already. Packs of which
/// the greater part is gone are written anew without it.
///
/// The revisions ascend.
pub(crate) fn forget(
    packs: &mut Packs<'_>,
    gone: &mut Gone<'_>,
    keys: &Keys<'_>,
    collection: &str,
    revisions: &[u64],
    way: &Way<'_>,
) -> Result<(), redb::Error> {
    let mut rest = revisions;
    while let Some(next) = rest.first() {
        way.give();
        let pack = pack_with(packs, collection, *next)?;
        let (left, bytes) = count_gone(&pack.bytes, rest).map_err(redb::Error::Corrupted)?;
        if left.len() == rest.len() {
            return Err(lost(collection, *next));
        }
        rest = left;
        let place = (collection, pack.first);
        let bytes = bytes + gone.get(place)?.map_or(0, |before| before.value());
        if bytes * 2 < pack.bytes.len() as u64 {
            gone.insert(place, bytes)?;
            continue;
        }
        packs.remove(place)?;
        gone.remove(place)?;
        if bytes < pack.bytes.len() as u64 {
            living(&pack.bytes, keys)?.close(packs, collection)?;
        }
    }
    Ok(())
}

/// The pack that holds a revision.
fn pack_with(packs: &Packs<'_>, collection: &str, revision: u64) -> Result<Pack, redb::Error> {
    let found = covering(packs, collection, revision..=revision)?.next();
    let (place, pack) = found.ok_or_else(|| lost(collection, revision))??;
    Ok(Pack {
        first: place.value().1,
        bytes: pack.value().to_vec(),
    })
}

fn lost(collection: &str, revision: u64) -> redb::Error {
    redb::Error::Corrupted(format!("revision {revision} of {collection} is missing"))
}

/// Which of the revisions come after a pack, and the bytes of those that are in it.
fn count_gone<'r>(pack: &[u8], mut revisions: &'r [u64]) -> Result<(&'r [u64], u64), String> {
    let (mut offset, mut bytes) = (0, 0);
    while offset < pack.len() {
        let (revision, length) = codec::peek(&pack[offset..])?;
        if revisions.first() == Some(&revision.0) {
            bytes += length as u64;
            revisions = &revisions[1..];
        }
        offset += length;
    }
    Ok((revisions, bytes))
}

/// The records of a pack that have a key.
fn living(pack: &[u8], keys: &Keys<'_>) -> Result<Pack, redb::Error> {
    let mut kept = Pack::default();
    let mut offset = 0;
    for record in records(pack) {
        let record = record.map_err(redb::Error::Corrupted)?;
        let length = record.encoded_len();
        let place = (record.collection, record.name, record.revision.0);
        if keys.get(place)?.is_some() {
            if kept.bytes.is_empty() {
                kept.first = record.revision.0;
            }
            kept.bytes.extend_from_slice(&pack[offset..offset + length]);
        }
        offset += length;
    }
    Ok(kept)
}
