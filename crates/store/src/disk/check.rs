//! Reads every byte of a store that is not running and tells what is wrong with it.

use std::path::Path;
use std::sync::Arc;

use redb::{ReadableTable, ReadableTableMetadata};

use super::checkpoint::Checkpoint;
use super::codec::Stored;
use super::database::{self, GONE, KEYS, LOG, failure, guard, parse_key_value};
use super::failure::OpenError;
use super::files::Files;
use super::packs;
use super::sealer::Sealer;
use super::{load, replay, take_directory};
use crate::record::Revision;

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// The newest revision.
    pub revision: Revision,
    /// The oldest revision that can be read.
    pub compacted: Revision,
    /// How many records the newest state has.
    pub records: u64,
    /// How many versions there are, old ones and deletions included.
    pub versions: u64,
    /// How many groups of commits the write-ahead log holds.
    pub log_groups: usize,
    /// The log ends with a group that a power cut tore; nobody was told of it.
    pub torn_end: bool,
    /// What is wrong. Empty is good.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: String,
    /// Where and how.
    pub detail: String,
}

impl CheckReport {
    /// Counts a commit that only the log has.
    fn add(&mut self, record: &Stored<'_>) {
        self.revision = record.revision;
        self.versions += 1;
        match (record.replaces, record.deleted) {
            (Revision(0), _) => self.records += 1,
            (_, true) => self.records = self.records.saturating_sub(1),
            _ => {}
        }
    }

    /// Notes damage; any other failure ends the check.
    fn note(&mut self, error: OpenError) -> Result<(), OpenError> {
        match error {
            OpenError::Corrupt { file, detail, .. } => {
                self.problems.push(Problem { file, detail });
                Ok(())
            }
            error => Err(error),
        }
    }
}

/// Checks the store in a directory. Changes nothing but what a start after a crash would.
pub(crate) fn check(files: &Arc<dyn Files>, directory: &Path) -> Result<CheckReport, OpenError> {
    files
        .list(directory)
        .map_err(|error| OpenError::io("read", directory, error))?;
    let _lock = take_directory(&**files, directory)?;
    let path = database::path(directory);
    let mut report = CheckReport::default();
    let mut opened = match database::open(&**files, directory) {
        Ok(Some(opened)) => opened,
        Ok(None) => {
            report.note(OpenError::corrupt(&path, "it is missing"))?;
            return Ok(report);
        }
        Err(error) => {
            report.note(error)?;
            return Ok(report);
        }
    };
    match guard(&path, || Ok(opened.database.check_integrity()?)) {
        Ok(true) => {}
        Ok(false) => report.note(OpenError::corrupt(&path, "its pages needed repair"))?,
        Err(error) => {
            report.note(error)?;
            return Ok(report);
        }
    }
    let state = opened.state;
    report.revision = state.revision;
    report.compacted = state.compacted;
    report.versions = state.digest.versions;
    let sealer = Sealer::default();
    let checkpoint = Checkpoint::new(files.clone(), directory, opened, sealer.clone());
    match checkpoint.read(|transaction, state| load::load(transaction, &state, &path, &sealer)) {
        Ok(loaded) => report.records = loaded.iter().map(|one| one.keys.len() as u64).sum(),
        Err(error) => report.note(error)?,
    }
    let versions = checkpoint.read(|transaction, _| {
        check_versions(transaction, &path, &mut report).map_err(|error| failure(&path, error))
    });
    if let Err(error) = versions {
        report.note(error)?;
    }
    let tail = replay::replay(
        &**files,
        directory,
        state.store,
        state.revision,
        &mut |record| {
            report.add(record);
            Ok(())
        },
    );
    match tail {
        Ok(tail) => {
            report.log_groups = tail.groups;
            report.torn_end = tail.torn;
        }
        Err(error) => report.note(error)?,
    }
    checkpoint.close();
    Ok(report)
}

/// Checks each version against its checksum and its entry in the index.
fn check_versions(
    transaction: &redb::ReadTransaction,
    path: &Path,
    report: &mut CheckReport,
) -> Result<(), redb::Error> {
    let log = transaction.open_table(LOG)?;
    let keys = transaction.open_table(KEYS)?;
    // A checkpoint that was never written since it was of the format before has none.
    let gone = match transaction.open_table(GONE) {
        Err(redb::TableError::TableDoesNotExist(_)) => None,
        gone => Some(gone?),
    };
    let mut problem = |detail: String| {
        report.problems.push(Problem {
            file: path.display().to_string(),
            detail,
        });
    };
    let mut versions = 0;
    for entry in log.iter()? {
        let (place, pack) = entry?;
        let (collection, first) = place.value();
        let mut last = None;
        let mut gone_bytes = 0;
        for record in packs::records(pack.value()) {
            let record = match record {
                Ok(record) => record,
                Err(detail) => {
                    problem(format!("pack {first} of {collection}: {detail}"));
                    break;
                }
            };
            let revision = record.revision.0;
            let is_next = last.map_or(revision == first, |last| revision > last);
            last = Some(revision);
            let indexed = keys.get((collection, record.name, revision))?;
            let indexed = indexed.map(|value| parse_key_value(value.value()));
            match indexed {
                None => gone_bytes += record.encoded_len() as u64,
                Some(_) => versions += 1,
            }
            let is_indexed = indexed.is_none_or(|it| it == (record.checksum, record.deleted));
            if record.collection != collection || !is_next || !is_indexed {
                problem(format!(
                    "revision {revision} of {collection} is not what its index says"
                ));
            }
        }
        let noted = match &gone {
            Some(gone) => gone.get(place.value())?.map_or(0, |bytes| bytes.value()),
            None => 0,
        };
        if gone_bytes != noted {
            problem(format!(
                "pack {first} of {collection}: {gone_bytes} bytes are gone, {noted} were noted"
            ));
        }
    }
    if versions != keys.len()? {
        problem(format!("{} versions, {versions} are kept", keys.len()?));
    }
    Ok(())
}
