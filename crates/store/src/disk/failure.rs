//! How failures of the disk are told: what, where, and what to do.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::record::Error;

/// Why a store on disk could not be opened, backed up, restored or checked.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the directory.
    #[error(
        "{directory} is in use by another server (pid {pid}); \
         stop it first, or choose another directory"
    )]
    Locked {
        /// The directory.
        directory: String,
        /// Who holds it; zero if it did not say.
        pid: u32,
    },
    /// The directory or a file in it cannot be written.
    #[error(
        "cannot write {path}: {source}; give the server's user the right to, or choose another"
    )]
    NotWritable {
        /// The file or directory.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The disk is full.
    #[error("no space left for {path}; free some and start again, nothing is lost")]
    NoSpace {
        /// The file.
        path: String,
    },
    /// Bytes on disk are not what was written.
    #[error("{file} is damaged: {detail}; {hint}")]
    Corrupt {
        /// The file.
        file: String,
        /// Where and how.
        detail: String,
        /// What to do.
        hint: String,
    },
    /// A record is whole, but what it stands for cannot be had.
    #[error("the record {collection}{name} cannot be read: {detail}")]
    Sealed {
        /// The collection.
        collection: String,
        /// The name inside it.
        name: String,
        /// Why not.
        detail: String,
    },
    /// The files were written by a version that this one cannot read.
    #[error(
        "{file} has format {found}, this version reads {expected}; use the version that wrote it"
    )]
    Version {
        /// The file.
        file: String,
        /// The format found.
        found: String,
        /// The format that can be read.
        expected: String,
    },
    /// A file or directory is there that must not be.
    #[error("{path} exists already; choose another name, nothing was changed")]
    Exists {
        /// The file or directory.
        path: String,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {source}; check the disk and the system's log")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> OpenError {
        let path = path.display().to_string();
        match source.kind() {
            kind if is_full(kind) => OpenError::NoSpace { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                OpenError::NotWritable { path, source }
            }
            _ => OpenError::Io {
                action,
                path,
                source,
            },
        }
    }

    pub(crate) fn corrupt(file: &Path, detail: impl Into<String>) -> OpenError {
        OpenError::Corrupt {
            file: file.display().to_string(),
            detail: detail.into(),
            hint: "keep a copy of the directory, then restore a backup into a new one".into(),
        }
    }

    /// The same failure as the users of a running store are told it.
    pub(crate) fn into_error(self) -> Error {
        match self {
            OpenError::NoSpace { path } => Error::NoSpace { path },
            OpenError::Corrupt { file, detail, .. } => Error::Corrupt { path: file, detail },
            OpenError::Sealed {
                collection,
                name,
                detail,
            } => Error::Sealed {
                collection,
                name,
                detail,
            },
            OpenError::NotWritable { path, source } | OpenError::Io { path, source, .. } => {
                Error::Unavailable {
                    path,
                    source: Arc::new(source),
                }
            }
            OpenError::Locked { ref directory, .. } => {
                let path = directory.clone();
                Error::Unavailable {
                    path,
                    source: Arc::new(io::Error::other(self)),
                }
            }
            OpenError::Version { file: ref path, .. } | OpenError::Exists { ref path } => {
                let path = path.clone();
                Error::Unavailable {
                    path,
                    source: Arc::new(io::Error::other(self)),
                }
            }
        }
    }
}

/// A failed write as its caller is told it.
pub(crate) fn write_error(path: &Path, source: io::Error) -> Error {
    let path = path.display().to_string();
    if is_full(source.kind()) {
        Error::NoSpace { path }
    } else {
        Error::Unavailable {
            path,
            source: Arc::new(source),
        }
    }
}

/// The same failure again, for the next of those who wait for one group.
pub(crate) fn repeat(error: &Error) -> Error {
    match error {
        Error::NoSpace { path } => Error::NoSpace { path: path.clone() },
        Error::Unavailable { path, source } => Error::Unavailable {
            path: path.clone(),
            source: source.clone(),
        },
        Error::Corrupt { path, detail } => Error::Corrupt {
            path: path.clone(),
            detail: detail.clone(),
        },
        _ => Error::Closed,
    }
}

fn is_full(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
