//! The files of `--authentication-config` and `--authorization-config`, read again when they
//! change.
//!
//! A file that is wrong changes nothing: what was there before goes on, and the log says why, once
//! for each state of the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use auth::Trust;
use object::Text;
use resources::Resources;
use tracing::{error, info};

use super::{read_authentication, read_authorization, set_trust};
use crate::arguments::identity::Identity;
use crate::failure::Failure;

/// How often the files are looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The files, and what they are about.
pub(crate) struct Files {
    flags: Identity,
    resources: Resources,
    audiences: Vec<Text>,
    trust: Trust,
    authentication: Option<Seen>,
    authorization: Option<Seen>,
}

/// A file as it was when it was last read.
struct Seen {
    path: PathBuf,
    /// Its bytes, or why there are none.
    found: Result<Vec<u8>, String>,
}

impl Files {
    /// Begins with the files as they are now.
    pub(crate) fn new(
        flags: Identity,
        resources: Resources,
        audiences: Vec<Text>,
        trust: Trust,
    ) -> Files {
        let seen = |path: &Option<PathBuf>| {
            path.clone().map(|path| Seen {
                found: read(&path),
                path,
            })
        };
        Files {
            authentication: seen(&flags.authentication_config),
            authorization: seen(&flags.authorization_config),
            flags,
            resources,
            audiences,
            trust,
        }
    }

    /// Follows the files for as long as the server runs.
    pub(crate) async fn follow(mut self) {
        if self.authentication.is_none() && self.authorization.is_none() {
            return;
        }
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            self.look();
        }
    }

    /// Takes over what changed.
    fn look(&mut self) {
        if let Some(seen) = &mut self.authentication
            && let Some(found) = seen.changed()
        {
            let outcome = found.and_then(|text| {
                let config = read_authentication(&self.flags, &seen.path, &text)?;
                set_trust(&self.flags, config, &self.audiences, &self.trust)
            });
            seen.tell("authentication", outcome);
        }
        if let Some(seen) = &mut self.authorization
            && let Some(found) = seen.changed()
        {
            let outcome = found.and_then(|text| {
                let modes = read_authorization(&seen.path, &text, &self.resources)?;
                self.resources.replace_authorization(modes);
                Ok(())
            });
            seen.tell("authorization", outcome);
        }
    }
}

impl Seen {
    /// What is in the file, if that is not what was there before.
    fn changed(&mut self) -> Option<Result<Vec<u8>, Failure>> {
        let found = read(&self.path);
        if found == self.found {
            return None;
        }
        self.found.clone_from(&found);
        Some(found.map_err(|detail| Failure::Given {
            path: self.path.clone(),
            detail,
        }))
    }

    fn tell(&self, what: &'static str, outcome: Result<(), Failure>) {
        let file = self.path.display();
        match outcome {
            Ok(()) => info!(%file, what, "configuration replaced"),
            Err(problem) => {
                error!(%file, what, %problem, "the configuration before stays in use");
            }
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
