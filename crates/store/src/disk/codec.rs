//! One commit as bytes: the same in the write-ahead log, the checkpoint and a backup.
//!
//! The layout is in `docs/formats/disk.md`. The checksum covers everything, so a record that
//! decodes is the record that was written, under the key it was written for.

use std::sync::Arc;

use bytes::Bytes;

use crate::record::Revision;
use crate::view::{Collection, Commit};

/// The bytes of a record before its texts and value.
const HEADER_BYTES: usize = 68;
const FLAG_DELETED: u8 = 1;

/// A record as it was found on disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stored<'a> {
    pub(crate) collection: &'a str,
    pub(crate) name: &'a str,
    pub(crate) value: &'a [u8],
    pub(crate) revision: Revision,
    pub(crate) created: Revision,
    /// The version of the key that this one replaces; zero for none.
    pub(crate) replaces: Revision,
    /// The commit before this one in the same collection; zero for none.
    pub(crate) prior: Revision,
    pub(crate) at_millis: u64,
    pub(crate) expires_millis: u64,
    pub(crate) deleted: bool,
    /// The checksum of the whole.
    pub(crate) checksum: u32,
}

impl Stored<'_> {
    /// How many bytes it takes.
    pub(crate) fn encoded_len(&self) -> usize {
        HEADER_BYTES + self.collection.len() + self.name.len() + self.value.len()
    }

    /// The commit that was written; `value` is what its written form stands for.
    pub(crate) fn commit(&self, collection: Arc<Collection>, value: Bytes) -> Commit {
        let sealed = (*value != *self.value).then(|| Bytes::copy_from_slice(self.value));
        Commit {
            collection,
            name: self.name.into(),
            value,
            sealed,
            revision: self.revision,
            created: self.created,
            replaces: self.replaces,
            prior: self.prior,
            deleted: self.deleted,
            at_millis: self.at_millis,
            expires_millis: self.expires_millis,
        }
    }
}

/// How many bytes a commit takes.
pub(crate) fn encoded_len(commit: &Commit) -> usize {
    HEADER_BYTES + commit.collection.name.len() + commit.name.len() + commit.written().len()
}

/// Appends a commit and returns its checksum.
pub(crate) fn encode(commit: &Commit, out: &mut Vec<u8>) -> u32 {
    encode_stored(
        &Stored {
            collection: &commit.collection.name,
            name: &commit.name,
            value: commit.written(),
            revision: commit.revision,
            created: commit.created,
            replaces: commit.replaces,
            prior: commit.prior,
            at_millis: commit.at_millis,
            expires_millis: commit.expires_millis,
            deleted: commit.deleted,
            checksum: 0,
        },
        out,
    )
}

/// Appends a record and returns its checksum; the one it carries is not looked at.
pub(crate) fn encode_stored(record: &Stored<'_>, out: &mut Vec<u8>) -> u32 {
    let start = out.len();
    let length = record.encoded_len();
    let narrow = "sizes are checked before a commit is accepted";
    out.reserve(length);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&u32::try_from(length).expect(narrow).to_le_bytes());
    for revision in [
        record.revision,
        record.created,
        record.replaces,
        record.prior,
    ] {
        out.extend_from_slice(&revision.0.to_le_bytes());
    }
    out.extend_from_slice(&record.at_millis.to_le_bytes());
    out.extend_from_slice(&record.expires_millis.to_le_bytes());
    out.extend_from_slice(&[if record.deleted { FLAG_DELETED } else { 0 }, 0]);
    out.extend_from_slice(
        &u16::try_from(record.collection.len())
            .expect(narrow)
            .to_le_bytes(),
    );
    out.extend_from_slice(
        &u16::try_from(record.name.len())
            .expect(narrow)
            .to_le_bytes(),
    );
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(
        &u32::try_from(record.value.len())
            .expect(narrow)
            .to_le_bytes(),
    );
    out.extend_from_slice(record.collection.as_bytes());
    out.extend_from_slice(record.name.as_bytes());
    out.extend_from_slice(record.value);
    let checksum = crc32fast::hash(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// What the record at the start of the bytes says of itself, unchecked: its revision, and how many
/// bytes it takes.
pub(crate) fn peek(bytes: &[u8]) -> Result<(Revision, usize), String> {
    if bytes.len() < HEADER_BYTES {
        return Err(format!("a record is cut off after {} bytes", bytes.len()));
    }
    let length = u32_at(bytes, 4) as usize;
    if length < HEADER_BYTES || length > bytes.len() {
        return Err(format!(
            "a record claims {length} bytes, {} are there",
            bytes.len()
        ));
    }
    Ok((Revision(u64_at(bytes, 8)), length))
}

/// The record at the start of the bytes, and how many of them it takes.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Stored<'_>, usize), String> {
    let (revision, length) = peek(bytes)?;
    let bytes = &bytes[..length];
    let checksum = u32_at(bytes, 0);
    let actual = crc32fast::hash(&bytes[4..]);
    if checksum != actual {
        return Err(format!(
            "a record has checksum {actual:08x} instead of {checksum:08x}"
        ));
    }
    let collection_len = usize::from(u16_at(bytes, 58));
    let name_len = usize::from(u16_at(bytes, 60));
    let texts = &bytes[HEADER_BYTES..];
    if collection_len + name_len + u32_at(bytes, 64) as usize != texts.len() {
        return Err("a record's parts do not add up".into());
    }
    let (collection, rest) = texts.split_at(collection_len);
    let (name, value) = rest.split_at(name_len);
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| "a name is not text".to_owned());
    let record = Stored {
        collection: text(collection)?,
        name: text(name)?,
        value,
        revision,
        created: Revision(u64_at(bytes, 16)),
        replaces: Revision(u64_at(bytes, 24)),
        prior: Revision(u64_at(bytes, 32)),
        at_millis: u64_at(bytes, 40),
        expires_millis: u64_at(bytes, 48),
        deleted: bytes[56] & FLAG_DELETED != 0,
        checksum,
    };
    Ok((record, length))
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_and_every_flipped_bit_is_noticed() {
        let record = Stored {
            collection: "apps/deployments",
            name: "team-a/web",
            value: b"{\"spec\":{}}",
            revision: Revision(9),
            created: Revision(3),
            replaces: Revision(8),
            prior: Revision(8),
            at_millis: 1_700_000_000_000,
            expires_millis: 1_700_000_060_000,
            deleted: true,
            checksum: 0,
        };
        let mut bytes = Vec::new();
        let checksum = encode_stored(&record, &mut bytes);
        let expected = Stored { checksum, ..record };
        assert_eq!(decode(&bytes).unwrap(), (expected, bytes.len()));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
