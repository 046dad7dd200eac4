//! What can go wrong in a check, with what to try next.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Why a command of xtask failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line was not understood.
    #[error("{message}\n\n{usage}")]
    Usage {
        message: String,
        usage: &'static str,
    },
    /// A program ran and reported failure.
    #[error("`{command}` failed: {status}")]
    Command { command: String, status: String },
    /// A program could not be started.
    #[error("cannot start `{command}`: {source}")]
    Start { command: String, source: io::Error },
    /// A file or directory could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A program or a file gave something that we do not understand.
    #[error("cannot understand {what}: {why}")]
    Unexpected { what: String, why: String },
    /// A check found what it looks for.
    #[error("{check}: {} found\n  {}", count(findings.len()), findings.join("\n  "))]
    Findings {
        check: &'static str,
        findings: Vec<String>,
        hint: Option<String>,
    },
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>, usage: &'static str) -> Self {
        Failure::Usage {
            message: message.into(),
            usage,
        }
    }

    pub(crate) fn unexpected(what: impl Into<String>, why: impl ToString) -> Self {
        Failure::Unexpected {
            what: what.into(),
            why: why.to_string(),
        }
    }

    /// Fails when there are findings.
    pub(crate) fn unless_empty(
        check: &'static str,
        findings: Vec<String>,
        hint: Option<&str>,
    ) -> Result<(), Failure> {
        if findings.is_empty() {
            return Ok(());
        }
        Err(Failure::Findings {
            check,
            findings,
            hint: hint.map(str::to_owned),
        })
    }

    /// What the user may try next.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Failure::Findings { hint, .. } => hint.as_deref(),
            Failure::Start { .. } => Some("is it installed and on the PATH?"),
            _ => None,
        }
    }

    /// 2 for wrong usage, 1 for everything else.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage { .. } => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

fn count(findings: usize) -> String {
    if findings == 1 {
        "1 problem".to_owned()
    } else {
        format!("{findings} problems")
    }
}
