//! The checkpoint: everything the log held once, in a database, written behind.
//!
//! Only the keeper writes it. If a write fails, the database is opened again, and written anew if
//! a sync failed; until that works the log keeps what the checkpoint lacks.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use redb::{ReadableDatabase, ReadableTable, ReadableTableMetadata};

use super::codec;
use super::database::{self, GONE, KEYS, LOG, MARKS, Opened, State, failure, guard, key_value};
use super::failure::OpenError;
use super::files::Files;
use super::packs::{self, Packer};
use super::sealer::Sealer;
use super::way::Way;
use crate::record::Revision;
use crate::view::Commit;

/// Revisions whose replaced versions are dropped in one transaction.
const COMPACT_REVISIONS: u64 = 32_768;

#[derive(Debug)]
pub(crate) struct Checkpoint {
    files: Arc<dyn Files>,
    directory: PathBuf,
    path: PathBuf,
    /// `None` after a failure, until the file is open again.
    opened: RwLock<Option<Opened>>,
    state: Mutex<State>,
    /// A sync failed, so the file may hold what the disk does not.
    needs_rewrite: AtomicBool,
    sealer: Sealer,
}

impl Checkpoint {
    pub(crate) fn new(
        files: Arc<dyn Files>,
        directory: &Path,
        opened: Opened,
        sealer: Sealer,
    ) -> Checkpoint {
        Checkpoint {
            files,
            directory: directory.to_path_buf(),
            path: database::path(directory),
            state: Mutex::new(opened.state),
            opened: RwLock::new(Some(opened)),
            needs_rewrite: AtomicBool::new(false),
            sealer,
        }
    }

    pub(crate) fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What stands between values and files.
    pub(crate) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn set_state(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Reads from one consistent state of the checkpoint.
    pub(crate) fn read<T>(
        &self,
        step: impl FnOnce(&redb::ReadTransaction, State) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        let Some(opened) = &*opened else {
            return Err(self.not_open());
        };
        let transaction = guard(&self.path, || Ok(opened.database.begin_read()?))?;
        let state = State::read(&transaction, &self.path)?;
        let mut result = None;
        guard(&self.path, || {
            result = Some(step(&transaction, state));
            Ok(())
        })?;
        result.expect("the step ran to its end")
    }

    fn not_open(&self) -> OpenError {
        let source = std::io::Error::other("it failed before and could not be opened again");
        OpenError::io("use", &self.path, source)
    }

    /// Adds commits that are durable in the log. Those it has already are left out.
    pub(crate) fn write(&self, commits: &[Commit], way: &Way<'_>) -> Result<(), OpenError> {
        self.open_again()?;
        let have = self.state().revision;
        let new = commits.partition_point(|commit| commit.revision <= have);
        let Some(last) = commits[new..].last() else {
            return Ok(());
        };
        let (newest, at_millis) = (last.revision, last.at_millis);
        self.transact(|transaction, state| {
            let mut log = transaction.open_table(LOG)?;
            let mut packer = Packer::default();
            let mut versions = Vec::with_capacity(commits.len() - new);
            for commit in &commits[new..] {
                way.give();
                let checksum = packer.add(&mut log, commit)?;
                let place = (&*commit.collection.name, &*commit.name, commit.revision.0);
                versions.push((place, key_value(checksum, commit.deleted)));
                state.digest.add(commit.revision.0, checksum);
                state.bytes += codec::encoded_len(commit) as u64;
            }
            packer.finish(&mut log)?;
            // In the order of the table, so that neighbours find their page where it was left.
            versions.sort_unstable();
            let mut keys = transaction.open_table(KEYS)?;
            for (place, value) in versions {
                way.give();
                keys.insert(place, value)?;
            }
            state.revision = newest;
            state.at_millis = at_millis;
            let mut marks = transaction.open_table(MARKS)?;
            marks.insert(newest.0, (at_millis, state.bytes))?;
            Ok(())
        })
    }

    /// The newest revision that is beyond the limits of history, in time or in bytes.
    pub(crate) fn beyond(
        &self,
        before_millis: u64,
        history_bytes: u64,
    ) -> Result<Option<Revision>, OpenError> {
        self.read(|transaction, state| {
            let bytes_before = state.bytes.saturating_sub(history_bytes);
            let search = || -> Result<Option<Revision>, redb::Error> {
                let mut beyond = None;
                for mark in transaction.open_table(MARKS)?.iter()? {
                    let (revision, mark) = mark?;
                    let (at_millis, bytes) = mark.value();
                    if at_millis >= before_millis && bytes > bytes_before {
                        break;
                    }
                    beyond = Some(Revision(revision.value()));
                }
                Ok(beyond.filter(|beyond| *beyond > state.compacted))
            };
            search().map_err(|error| failure(&self.path, error))
        })
    }

    /// Drops what no state at or after a revision needs, a step at a time.
    ///
    /// Returns the oldest revision that can still be read, which may be short of the goal.
    pub(crate) fn compact_step(
        &self,
        collections: &[Arc<str>],
        goal: Revision,
        way: &Way<'_>,
    ) -> Result<Revision, OpenError> {
        self.open_again()?;
        let from = self.state().compacted.0;
        let until = goal.0.min(from + COMPACT_REVISIONS);
        self.transact(|transaction, state| {
            let mut log = transaction.open_table(LOG)?;
            let mut keys = transaction.open_table(KEYS)?;
            let mut gone = transaction.open_table(GONE)?;
            for collection in collections {
                let mut replaced = replaced_versions(&log, collection, from, until, way)?;
                // In the order of the table, as they were written.
                replaced.sort_unstable();
                let mut revisions = Vec::new();
                for (name, revision) in replaced {
                    way.give();
                    let key = keys.remove((&**collection, &*name, revision))?;
                    if let Some(key) = key {
                        let checksum = database::parse_key_value(key.value()).0;
                        state.digest.remove(revision, checksum);
                        revisions.push(revision);
                    }
                }
                revisions.sort_unstable();
                packs::forget(&mut log, &mut gone, &keys, collection, &revisions, way)?;
            }
            let mut marks = transaction.open_table(MARKS)?;
            marks.retain_in(..until, |_, _| false)?;
            state.compacted = Revision(until);
            Ok(())
        })?;
        Ok(Revision(until))
    }

    fn transact(
        &self,
        step: impl FnOnce(&redb::WriteTransaction, &mut State) -> Result<(), redb::Error>,
    ) -> Result<(), OpenError> {
        let mut state = self.state();
        let result = {
            let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
            let Some(opened) = &*opened else {
                return Err(self.not_open());
            };
            guard(&self.path, || {
                let mut transaction = opened.database.begin_write()?;
                // Recovery after a kill then need not read the whole file.
                transaction.set_quick_repair(true);
                step(&transaction, &mut state)?;
                state.packs = transaction.open_table(LOG)?.len()?;
                state.write(&transaction)?;
                Ok(transaction.commit()?)
            })
        };
        match result {
            Ok(()) => self.set_state(state),
            Err(_) => self.give_up(),
        }
        result
    }

    /// Closes the database after a failure: it refuses to go on by itself.
    fn give_up(&self) {
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(failed) = opened.take() {
            let sync_failed = failed.sync_failed.clone();
            let _ = guard(&self.path, || {
                drop(failed);
                Ok(())
            });
            if sync_failed.load(Ordering::SeqCst) {
                self.needs_rewrite.store(true, Ordering::SeqCst);
            }
        }
    }

    fn open_again(&self) -> Result<(), OpenError> {
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        if opened.is_some() {
            return Ok(());
        }
        if self.needs_rewrite.load(Ordering::SeqCst) {
            database::rewrite(&*self.files, &self.directory)?;
            self.needs_rewrite.store(false, Ordering::SeqCst);
        }
        let again = database::open(&*self.files, &self.directory)?;
        let again = again.ok_or_else(|| OpenError::corrupt(&self.path, "it is missing"))?;
        self.set_state(again.state);
        *opened = Some(again);
        Ok(())
    }

    /// Closes the database in good order.
    pub(crate) fn close(&self) {
        let opened = self
            .opened
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let _ = guard(&self.path, || {
            drop(opened);
            Ok(())
        });
    }
}

/// The versions that commits of a collection in `from+1..=until` made old, and the deletions
/// among them.
fn replaced_versions(
    log: &impl ReadableTable<(&'static str, u64), &'static [u8]>,
    collection: &str,
    from: u64,
    until: u64,
    way: &Way<'_>,
) -> Result<Vec<(String, u64)>, redb::Error> {
    let mut gone = Vec::new();
    for entry in packs::covering(log, collection, from + 1..=until)? {
        way.give();
        let (_, pack) = entry?;
        for record in packs::records(pack.value()) {
            let record = record.map_err(redb::Error::Corrupted)?;
            if !(from + 1..=until).contains(&record.revision.0) {
                continue;
            }
            if record.replaces > Revision(0) {
                gone.push((record.name.to_owned(), record.replaces.0));
            }
            if record.deleted {
                gone.push((record.name.to_owned(), record.revision.0));
            }
        }
    }
    Ok(gone)
}
