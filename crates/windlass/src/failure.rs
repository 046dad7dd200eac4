//! What can go wrong on the command line, with the next step for the operator.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot use {}: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("{}", damage(.0))]
    Open(#[from] store::OpenError),
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("{0}")]
    Bootstrap(#[from] resources::Error),
    #[error("cannot make or read certificates: {0}")]
    Certificates(String),
    #[error("cannot use {}: {detail}", path.display())]
    Given { path: PathBuf, detail: String },
    #[error("cannot use {}: {detail}", path.display())]
    SigningKey { path: PathBuf, detail: String },
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Plugins(#[from] resources::admission::ChainError),
    #[error("{0}")]
    Encryption(#[from] resources::encryption::ConfigError),
    #[error("{}: there is no flag {key}", path.display())]
    UnknownKey {
        path: PathBuf,
        key: String,
        nearest: String,
    },
    #[error("{0}")]
    Audit(#[from] server::audit::Error),
    #[error("an audit log or webhook is named, but no policy")]
    NoAuditPolicy,
    #[error("{} is damaged", path.display())]
    Damaged { path: PathBuf },
    #[error("cannot start: {0}")]
    Runtime(io::Error),
}

/// What is damaged, without the advice, which is the hint.
fn damage(error: &store::OpenError) -> String {
    match error {
        store::OpenError::Corrupt { file, detail, .. } => format!("{file} is damaged: {detail}"),
        other => other.to_string(),
    }
}

impl Failure {
    /// What the program ends with: 2 if it was called in a wrong way.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::UnknownKey { .. } | Failure::NoAuditPolicy => 2,
            _ => 1,
        }
    }

    /// What to try next.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Failure::Directory { source, .. } | Failure::Write { source, .. } => {
                Some(match source.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "choose a directory that you may write to with --data".to_owned()
                    }
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        "make room on the disk, or choose another directory with --data".to_owned()
                    }
                    _ => "choose another directory with --data".to_owned(),
                })
            }
            Failure::Listen { source, address } => match source.kind() {
                io::ErrorKind::AddrInUse => Some(format!(
                    "another program uses port {}; stop it, or choose another port with --listen \
                     (port 0 picks a free one)",
                    address.port()
                )),
                io::ErrorKind::PermissionDenied => {
                    Some("choose a port above 1023 with --listen".to_owned())
                }
                _ => Some("choose another address with --listen".to_owned()),
            },
            Failure::Open(store::OpenError::Locked { .. }) => {
                Some("stop it first, or choose another directory with --data".to_owned())
            }
            Failure::Open(store::OpenError::Sealed { .. }) => Some(
                "name the configuration that holds its key with --encryption-provider-config"
                    .to_owned(),
            ),
            Failure::Open(store::OpenError::Corrupt { hint, .. }) => {
                Some(format!("{hint} with `windlass restore FILE --data DIR`"))
            }
            Failure::Certificates(_) | Failure::Read { .. } => Some(
                "delete the file that is named, and a new one is made; the certificate authority \
                 changes then, and so do the kubeconfigs that trust it"
                    .to_owned(),
            ),
            Failure::SigningKey { .. } => Some(
                "delete the file, and a new one is made; tokens of service accounts that were \
                 signed with the old one end then"
                    .to_owned(),
            ),
            Failure::Plugins(_) => {
                Some("change --enable-admission-plugins or --disable-admission-plugins".to_owned())
            }
            Failure::UnknownKey { nearest, .. } => Some(format!(
                "keys are the long names of the flags of `windlass serve`; the nearest is {nearest}"
            )),
            Failure::NoAuditPolicy => {
                Some("say which requests are recorded with --audit-policy-file".to_owned())
            }
            Failure::Damaged { .. } => Some(
                "keep the directory as it is, and make a new one of your last backup with \
                 `windlass restore FILE --data DIR`"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
