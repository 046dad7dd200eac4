//! One file with the newest state of a store: written while it runs, restored into a new directory.
//!
//! The layout is in `docs/formats/disk.md`. History is not part of it: a restored store can be
//! read from the backup's revision on.

use std::io;
use std::path::{Path, PathBuf};

use super::codec::{self, Stored, u32_at, u64_at};
use super::database::{self, KEYS, LOG, MARKS, State, guard, key_value};
use super::failure::OpenError;
use super::files::{DataFile, Files, Presence};
use super::sealer::Sealer;
use super::{random, segments, take_directory};
use crate::index::Slice;
use crate::record::Revision;
use crate::view::View;

const MAGIC: [u8; 8] = *b"WLSTBAK\0";
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 40;
const BUFFER_BYTES: usize = 1024 * 1024;

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// The revision it is a state of.
    pub revision: Revision,
    /// How many records.
    pub records: u64,
    /// The size of the file.
    pub bytes: u64,
}

/// Writes the newest state of a store into a new file. Its name appears when it is whole.
pub(crate) fn backup(
    files: &dyn Files,
    view: &View,
    sealer: &Sealer,
    path: &Path,
) -> Result<BackupReport, OpenError> {
    if files.open(path, Presence::Existing).is_ok() {
        return Err(OpenError::Exists {
            path: path.display().to_string(),
        });
    }
    let partial = partial_path(path);
    let written = write(files, view, sealer, &partial)?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    files
        .rename(&partial, path)
        .and_then(|()| files.sync_directory(directory))
        .map_err(|error| OpenError::io("rename", &partial, error))?;
    Ok(written)
}

fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

fn write(
    files: &dyn Files,
    view: &View,
    sealer: &Sealer,
    path: &Path,
) -> Result<BackupReport, OpenError> {
    let (revision, slices) = view.snapshot();
    let records: u64 = slices
        .iter()
        .map(|(_, slice)| slice.count(revision) as u64)
        .sum();
    let put = |error| OpenError::io("write", path, error);
    match files.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(put(error)),
        _ => {}
    }
    let file = files.open(path, Presence::New).map_err(put)?;
    let mut out = Output {
        file: &*file,
        buffer: Vec::new(),
        bytes: 0,
    };
    out.buffer.extend_from_slice(&header(revision, records));
    for (collection, slice) in &slices {
        write_collection(&mut out, sealer, (collection, slice), revision).map_err(put)?;
    }
    out.flush().and_then(|()| file.sync()).map_err(put)?;
    Ok(BackupReport {
        revision,
        records,
        bytes: out.bytes,
    })
}

fn header(revision: Revision, records: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[12..16].copy_from_slice(&FORMAT.to_le_bytes());
    header[16..24].copy_from_slice(&revision.0.to_le_bytes());
    header[24..32].copy_from_slice(&records.to_le_bytes());
    let checksum = crc32fast::hash(&header[12..]);
    header[8..12].copy_from_slice(&checksum.to_le_bytes());
    header
}

fn write_collection(
    out: &mut Output<'_>,
    sealer: &Sealer,
    (collection, slice): (&str, &Slice),
    at: Revision,
) -> io::Result<()> {
    for (name, version) in slice.versions(at) {
        let sealed = sealer.seal(collection, name, &version.value);
        let record = Stored {
            collection,
            name,
            value: sealed.as_ref().unwrap_or(&version.value),
            revision: version.revision,
            created: version.created,
            replaces: Revision(0),
            prior: Revision(0),
            at_millis: 0,
            expires_millis: version.expires_millis,
            deleted: false,
            checksum: 0,
        };
        codec::encode_stored(&record, &mut out.buffer);
        if out.buffer.len() >= BUFFER_BYTES {
            out.flush()?;
        }
    }
    Ok(())
}

struct Output<'a> {
    file: &'a dyn DataFile,
    buffer: Vec<u8>,
    bytes: u64,
}

impl Output<'_> {
    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(self.bytes, &self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Makes a store in a directory that holds none from a backup.
pub(crate) fn restore(
    files: &dyn Files,
    path: &Path,
    directory: &Path,
) -> Result<BackupReport, OpenError> {
    let mut input = Input::open(files, path)?;
    let _lock = take_directory(files, directory)?;
    let names = files
        .list(directory)
        .map_err(|error| OpenError::io("list", directory, error))?;
    let is_store =
        |name: &String| name == database::FILE_NAME || segments::segment_sequence(name).is_some();
    if names.iter().any(is_store) {
        return Err(OpenError::Exists {
            path: directory.display().to_string(),
        });
    }
    let (revision, records) = (input.revision, input.records);
    let state = State {
        store: random(),
        revision,
        compacted: revision,
        ..State::default()
    };
    let target = database::path(directory);
    database::create(files, directory, state, |transaction, state| {
        fill(transaction, state, &mut input, &target)
    })?;
    Ok(BackupReport {
        revision,
        records,
        bytes: input.bytes,
    })
}

fn fill(
    transaction: &redb::WriteTransaction,
    state: &mut State,
    input: &mut Input,
    target: &Path,
) -> Result<(), OpenError> {
    let mut last: Option<(String, String)> = None;
    let mut buffer = Vec::new();
    for _ in 0..input.records {
        input.next_record(&mut buffer)?;
        let (record, _) = codec::decode(&buffer).map_err(|detail| input.damaged(&detail))?;
        let key = (record.collection.to_owned(), record.name.to_owned());
        let in_order = last.as_ref().is_none_or(|last| *last < key);
        if !in_order || record.deleted || record.revision > state.revision {
            return Err(input.damaged("a record does not belong where it is"));
        }
        guard(target, || {
            let place = (record.collection, record.revision.0);
            transaction.open_table(LOG)?.insert(place, &buffer[..])?;
            let value = key_value(record.checksum, false);
            let place = (record.collection, record.name, record.revision.0);
            transaction.open_table(KEYS)?.insert(place, value)?;
            Ok(())
        })?;
        state.digest.add(record.revision.0, record.checksum);
        last = Some(key);
    }
    if input.offset != input.bytes {
        return Err(input.damaged("something follows the last record"));
    }
    guard(target, || {
        transaction
            .open_table(MARKS)?
            .insert(state.revision.0, (0, 0))?;
        Ok(())
    })
}

/// A backup that is being read.
struct Input {
    file: std::sync::Arc<dyn DataFile>,
    path: PathBuf,
    revision: Revision,
    records: u64,
    bytes: u64,
    offset: u64,
}

impl Input {
    fn open(files: &dyn Files, path: &Path) -> Result<Input, OpenError> {
        let read = |error| OpenError::io("read", path, error);
        let file = files.open(path, Presence::Existing).map_err(read)?;
        let bytes = file.len().map_err(read)?;
        let mut header = [0; HEADER_BYTES];
        if bytes < HEADER_BYTES as u64 {
            return Err(OpenError::corrupt(path, "it is too short to be a backup"));
        }
        file.read_at(0, &mut header).map_err(read)?;
        if header[..8] != MAGIC || crc32fast::hash(&header[12..]) != u32_at(&header, 8) {
            return Err(OpenError::corrupt(
                path,
                "it does not begin as a backup does",
            ));
        }
        let format = u32_at(&header, 12);
        if format != FORMAT {
            return Err(OpenError::Version {
                file: path.display().to_string(),
                found: format.to_string(),
                expected: FORMAT.to_string(),
            });
        }
        Ok(Input {
            file,
            path: path.to_path_buf(),
            revision: Revision(u64_at(&header, 16)),
            records: u64_at(&header, 24),
            bytes,
            offset: HEADER_BYTES as u64,
        })
    }

    fn damaged(&self, detail: &str) -> OpenError {
        OpenError::corrupt(&self.path, format!("before byte {}: {detail}", self.offset))
    }

    /// Reads the bytes of the next record.
    fn next_record(&mut self, buffer: &mut Vec<u8>) -> Result<(), OpenError> {
        let left = self.bytes - self.offset;
        let mut head = [0; 8];
        if left < head.len() as u64 {
            return Err(self.damaged("records are missing"));
        }
        let read = |error| OpenError::io("read", &self.path, error);
        self.file.read_at(self.offset, &mut head).map_err(read)?;
        let length = u64::from(u32_at(&head, 4));
        if length > left {
            return Err(self.damaged("a record is cut off"));
        }
        buffer.resize(length as usize, 0);
        self.file.read_at(self.offset, buffer).map_err(read)?;
        self.offset += length;
        Ok(())
    }
}
