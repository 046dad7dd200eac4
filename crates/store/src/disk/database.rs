//! The checkpoint's database file: opening it, its state, and turning its failures into ours.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redb::{
    Builder, Database, ReadableDatabase, ReadableTableMetadata, StorageBackend, TableDefinition,
};

use super::codec::{u32_at, u64_at};
use super::failure::OpenError;
use super::files::{DataFile, Files, Presence};
use crate::record::Revision;

/// Every version that history or the newest state needs, in the order of its collection's commits:
/// packs of records, by the revision of the first.
pub(crate) const LOG: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("log");
/// Pack -> how many bytes of it are of versions that nothing needs, if any.
pub(crate) const GONE: TableDefinition<'_, (&str, u64), u64> = TableDefinition::new("gone");
/// Collection, name, revision -> the record's checksum, and whether it is a deletion.
pub(crate) const KEYS: TableDefinition<'_, (&str, &str, u64), u64> = TableDefinition::new("keys");
/// Revision -> time and bytes so far, one for each batch: what history's limits are found by.
pub(crate) const MARKS: TableDefinition<'_, u64, (u64, u64)> = TableDefinition::new("marks");
const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
const STATE_KEY: &str = "state";
const STATE_BYTES: usize = 72;

pub(crate) const FILE_NAME: &str = "checkpoint.redb";
const NEW_FILE_NAME: &str = "checkpoint.redb.new";
const FORMAT: u32 = 2;
/// One record to a pack, and all of it needed.
const FORMAT_BEFORE: u32 = 1;
/// Records are served from memory; this only has to hold the upper levels of the trees.
const CACHE_BYTES: usize = 4 * 1024 * 1024;
/// What is read at once where pages are read in order.
const AHEAD_BYTES: u64 = 128 * 1024;
/// A read this close behind the last one is in order.
const AHEAD_GAP_BYTES_MAX: u64 = 32 * 1024;
const KEY_DELETED: u64 = 1 << 32;

/// What the checkpoint says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Tells the files of one store from those of another.
    pub(crate) store: u64,
    /// Everything up to here is in the checkpoint.
    pub(crate) revision: Revision,
    /// The oldest revision that can be read.
    pub(crate) compacted: Revision,
    pub(crate) at_millis: u64,
    /// The bytes of all commits so far.
    pub(crate) bytes: u64,
    pub(crate) digest: Digest,
    /// How many packs there are.
    pub(crate) packs: u64,
}

/// A sum over all versions in the checkpoint, in any order: none is missing, none is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) versions: u64,
    sum: u64,
}

impl Digest {
    pub(crate) fn add(&mut self, revision: u64, checksum: u32) {
        self.versions = self.versions.wrapping_add(1);
        self.sum = self.sum.wrapping_add(mix(revision, checksum));
    }

    pub(crate) fn remove(&mut self, revision: u64, checksum: u32) {
        self.versions = self.versions.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(mix(revision, checksum));
    }
}

/// Spreads a version's identity over 64 bits, so that changes do not cancel out in a sum.
fn mix(revision: u64, checksum: u32) -> u64 {
    let mut bits = revision ^ (u64::from(checksum) << 32);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A value of the key table.
pub(crate) fn key_value(checksum: u32, deleted: bool) -> u64 {
    u64::from(checksum) | if deleted { KEY_DELETED } else { 0 }
}

/// The checksum in a value of the key table, and whether it is a deletion's.
pub(crate) fn parse_key_value(value: u64) -> (u32, bool) {
    (value as u32, value & KEY_DELETED != 0)
}

impl State {
    fn encode(&self) -> [u8; STATE_BYTES] {
        let mut out = [0; STATE_BYTES];
        out[4..8].copy_from_slice(&FORMAT.to_le_bytes());
        let fields = [
            self.store,
            self.revision.0,
            self.compacted.0,
            self.at_millis,
            self.bytes,
            self.digest.versions,
            self.digest.sum,
            self.packs,
        ];
        for (field, place) in fields.iter().zip(out[8..].chunks_exact_mut(8)) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let checksum = crc32fast::hash(&out[4..]);
        out[..4].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8], path: &Path) -> Result<State, OpenError> {
        if bytes.len() < 8 || crc32fast::hash(&bytes[4..]) != u32_at(bytes, 0) {
            return Err(OpenError::corrupt(
                path,
                "its state is not what was written",
            ));
        }
        let format = u32_at(bytes, 4);
        if ![FORMAT_BEFORE, FORMAT].contains(&format) || bytes.len() != STATE_BYTES {
            return Err(OpenError::Version {
                file: path.display().to_string(),
                found: format.to_string(),
                expected: FORMAT.to_string(),
            });
        }
        Ok(State {
            store: u64_at(bytes, 8),
            revision: Revision(u64_at(bytes, 16)),
            compacted: Revision(u64_at(bytes, 24)),
            at_millis: u64_at(bytes, 32),
            bytes: u64_at(bytes, 40),
            digest: Digest {
                versions: u64_at(bytes, 48),
                sum: u64_at(bytes, 56),
            },
            packs: match format {
                FORMAT_BEFORE => u64_at(bytes, 48),
                _ => u64_at(bytes, 64),
            },
        })
    }

    /// Writes the state as part of a transaction.
    pub(crate) fn write(&self, transaction: &redb::WriteTransaction) -> Result<(), redb::Error> {
        let mut table = transaction.open_table(STATE)?;
        table.insert(STATE_KEY, &self.encode()[..])?;
        Ok(())
    }

    /// Reads the state as a transaction sees it.
    pub(crate) fn read(
        transaction: &redb::ReadTransaction,
        path: &Path,
    ) -> Result<State, OpenError> {
        let bytes = guard(path, || {
            let table = transaction.open_table(STATE)?;
            Ok(table.get(STATE_KEY)?.map(|guard| guard.value().to_vec()))
        })?;
        let missing = || OpenError::corrupt(path, "its state is missing");
        State::decode(&bytes.ok_or_else(missing)?, path)
    }
}

/// An open database file.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) database: Database,
    pub(crate) state: State,
    /// Set when a sync failed: what the file holds may not be on the disk, nor ever get there.
    pub(crate) sync_failed: Arc<AtomicBool>,
}

/// Opens the database of a store, if there is one.
pub(crate) fn open(files: &dyn Files, directory: &Path) -> Result<Option<Opened>, OpenError> {
    let path = directory.join(FILE_NAME);
    let file = match files.open(&path, Presence::Existing) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::io("open", &path, error)),
    };
    if file
        .is_empty()
        .map_err(|error| OpenError::io("read", &path, error))?
    {
        return Err(OpenError::corrupt(&path, "it is empty"));
    }
    let (backend, sync_failed) = Backend::new(file);
    let database = guard(&path, || Ok(builder().create_with_backend(backend)?))?;
    let state = guard(&path, || Ok(database.begin_read()?))
        .and_then(|transaction| State::read(&transaction, &path))?;
    Ok(Some(Opened {
        database,
        state,
        sync_failed,
    }))
}

/// Makes the database of a new store. Its name appears when it is whole.
pub(crate) fn create(
    files: &dyn Files,
    directory: &Path,
    state: State,
    fill: impl FnOnce(&redb::WriteTransaction, &mut State) -> Result<(), OpenError>,
) -> Result<Opened, OpenError> {
    let (path, new) = (directory.join(FILE_NAME), directory.join(NEW_FILE_NAME));
    remove_new(files, directory)?;
    let file = files
        .open(&new, Presence::New)
        .map_err(|error| OpenError::io("create", &new, error))?;
    let (backend, sync_failed) = Backend::new(file.clone());
    // Nobody finds the file before it has its name, so one sync at the end is enough.
    let sync_later = backend.sync_later.clone();
    sync_later.store(true, Ordering::SeqCst);
    let database = guard(&new, || Ok(builder().create_with_backend(backend)?))?;
    let transaction = guard(&new, || Ok(database.begin_write()?))?;
    let mut state = state;
    guard(&new, || {
        transaction.open_table(LOG)?;
        transaction.open_table(GONE)?;
        transaction.open_table(KEYS)?;
        transaction.open_table(MARKS)?;
        Ok(())
    })?;
    fill(&transaction, &mut state)?;
    guard(&new, || {
        state.packs = transaction.open_table(LOG)?.len()?;
        state.write(&transaction)?;
        Ok(transaction.commit()?)
    })?;
    sync_later.store(false, Ordering::SeqCst);
    file.sync()
        .map_err(|error| OpenError::io("sync", &new, error))?;
    put_in_place(files, &new, &path)?;
    Ok(Opened {
        database,
        state,
        sync_failed,
    })
}

/// Writes every byte of the database file anew, after a sync of it failed.
pub(crate) fn rewrite(files: &dyn Files, directory: &Path) -> Result<(), OpenError> {
    const STEP: u64 = 1024 * 1024;
    let (path, new) = (directory.join(FILE_NAME), directory.join(NEW_FILE_NAME));
    remove_new(files, directory)?;
    let copy = || {
        let from = files.open(&path, Presence::Existing)?;
        let to = files.open(&new, Presence::New)?;
        let len = from.len()?;
        let mut buffer = vec![0; STEP as usize];
        for offset in (0..len).step_by(STEP as usize) {
            let part = &mut buffer[..(len - offset).min(STEP) as usize];
            from.read_at(offset, part)?;
            to.write_at(offset, part)?;
        }
        to.sync()
    };
    copy().map_err(|error| OpenError::io("rewrite", &path, error))?;
    put_in_place(files, &new, &path)
}

fn remove_new(files: &dyn Files, directory: &Path) -> Result<(), OpenError> {
    let new = directory.join(NEW_FILE_NAME);
    match files.remove(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(OpenError::io("remove", &new, error))
        }
        _ => Ok(()),
    }
}

fn put_in_place(files: &dyn Files, new: &Path, path: &Path) -> Result<(), OpenError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    files
        .rename(new, path)
        .and_then(|()| files.sync_directory(directory))
        .map_err(|error| OpenError::io("rename", new, error))
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Runs a step of the database. A damaged file can make it panic, which is no reason for us to.
pub(crate) fn guard<T>(
    path: &Path,
    step: impl FnOnce() -> Result<T, redb::Error>,
) -> Result<T, OpenError> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result.map_err(|error| failure(path, error)),
        Err(_) => Err(OpenError::corrupt(
            path,
            "its structure does not hold together",
        )),
    }
}

/// A failure of the database, as we tell it.
pub(crate) fn failure(path: &Path, error: redb::Error) -> OpenError {
    match error {
        redb::Error::Io(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
                OpenError::corrupt(path, error.to_string())
            }
            _ => OpenError::io("use", path, error),
        },
        redb::Error::UpgradeRequired(version) => OpenError::Version {
            file: path.display().to_string(),
            found: format!("redb {version}"),
            expected: "redb 3".into(),
        },
        redb::Error::PreviousIo | redb::Error::DatabaseClosed => {
            OpenError::io("use", path, io::Error::other(error.to_string()))
        }
        error => OpenError::corrupt(path, error.to_string()),
    }
}

/// Lets the database use our files.
struct Backend {
    file: Arc<dyn DataFile>,
    sync_failed: Arc<AtomicBool>,
    sync_later: Arc<AtomicBool>,
    ahead: Mutex<ReadAhead>,
}

/// Pages that follow the last one that was read. A start reads the whole file page by page, mostly
/// in order; one call to the system for each page is what it would spend its time on.
#[derive(Default)]
struct ReadAhead {
    offset: u64,
    bytes: Vec<u8>,
    /// Where the last read ended.
    last_end: u64,
}

impl ReadAhead {
    /// Copies from what was read ahead, if it is there.
    fn copy(&mut self, offset: u64, out: &mut [u8]) -> bool {
        self.last_end = offset + out.len() as u64;
        let start = offset
            .checked_sub(self.offset)
            .and_then(|start| usize::try_from(start).ok());
        let part = start.and_then(|start| self.bytes.get(start..start.checked_add(out.len())?));
        part.map(|part| out.copy_from_slice(part)).is_some()
    }
}

impl Backend {
    fn new(file: Arc<dyn DataFile>) -> (Backend, Arc<AtomicBool>) {
        let sync_failed: Arc<AtomicBool> = Arc::default();
        let sync_later = Arc::default();
        let backend = Backend {
            file,
            sync_failed: sync_failed.clone(),
            sync_later,
            ahead: Mutex::default(),
        };
        (backend, sync_failed)
    }
}

impl Backend {
    /// To be called after the file has changed: until then, somebody may read ahead what it held.
    fn forget_ahead(&self) {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = ReadAhead::default();
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(out)
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let is_next = offset >= ahead.last_end && offset - ahead.last_end < AHEAD_GAP_BYTES_MAX;
        if ahead.copy(offset, out) {
            return Ok(());
        }
        let len = if is_next {
            self.file.len()?.saturating_sub(offset)
        } else {
            0
        };
        if len.min(AHEAD_BYTES) < out.len() as u64 {
            return self.file.read_at(offset, out);
        }
        let mut bytes = std::mem::take(&mut ahead.bytes);
        bytes.resize(len.min(AHEAD_BYTES) as usize, 0);
        self.file.read_at(offset, &mut bytes)?;
        *ahead = ReadAhead {
            offset,
            bytes,
            last_end: offset,
        };
        ahead.copy(offset, out);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.forget_ahead();
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.sync_later.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.file
            .sync()
            .inspect_err(|_| self.sync_failed.store(true, Ordering::SeqCst))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, data)?;
        self.forget_ahead();
        Ok(())
    }
}

/// The path of a store's database.
pub(crate) fn path(directory: &Path) -> PathBuf {
    directory.join(FILE_NAME)
}
