//! Why a server for a test could not be had.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a server for a test could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No binary was named and none was found.
    #[error(
        "no windlass binary beside this test, in WINDLASS_BIN or on the PATH; \
         build one with `cargo build --package windlass`"
    )]
    NoBinary,
    /// The binary could not be started.
    #[error("cannot start {}: {source}", binary.display())]
    Start {
        /// What was to be started.
        binary: PathBuf,
        /// Why it was not.
        source: io::Error,
    },
    /// The server ended before it listened.
    #[error("the server ended before it listened:\n{log}")]
    Ended {
        /// What it wrote to stderr.
        log: String,
    },
    /// The server did not listen in time.
    #[error("the server does not listen after {waited:?}:\n{log}")]
    Silent {
        /// How long it had.
        waited: Duration,
        /// What it wrote to stderr.
        log: String,
    },
    /// A file or directory could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was to be done with it.
        action: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why it could not be done.
        source: io::Error,
    },
}
