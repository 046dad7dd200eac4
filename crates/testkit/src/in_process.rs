//! The server on threads of the test's own process: the fastest to start, and no binary is needed.

use std::path::PathBuf;

use windlass::Embedded;
pub use windlass::Storage;

use crate::directory::TemporaryDirectory;
use crate::{Error, Launch};

/// A server inside this process with its own port and directory; dropped, both are gone.
#[derive(Debug)]
pub struct InProcess {
    flags: Vec<String>,
    storage: Storage,
    server: Option<Embedded>,
    directory: TemporaryDirectory,
    url: String,
}

impl InProcess {
    /// Starts a server that keeps its objects in memory; [`Launch::start_in_process`] has more.
    pub fn start() -> Result<Self, Error> {
        Launch::new().start_in_process(Storage::Memory)
    }

    /// Where it listens, such as `https://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The directory with its credentials, and with its objects if they are on disk.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A kubeconfig file with which a client is an administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.data().join("admin.kubeconfig")
    }

    /// The certificate of the authority that signed the server's, as a PEM file.
    #[must_use]
    pub fn certificate_authority(&self) -> PathBuf {
        self.data().join("ca.crt")
    }

    /// The administrator's bearer token.
    pub fn token(&self) -> Result<String, Error> {
        crate::process::read_token(&self.data())
    }

    /// Stops the server in good order.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Stops the server and starts it on the same data, on another port.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop();
        let server = Embedded::start(&self.data(), self.storage, &self.flags);
        let server = server.map_err(|error| Error::Ended {
            log: error.to_string(),
        })?;
        self.url = format!("https://{}", server.address());
        self.server = Some(server);
        Ok(())
    }
}

impl Launch {
    /// Starts the server inside this process and waits until it answers. The binary is not used.
    pub fn start_in_process(self, storage: Storage) -> Result<InProcess, Error> {
        let mut server = InProcess {
            flags: self.into_flags(),
            storage,
            server: None,
            directory: TemporaryDirectory::new()?,
            url: String::new(),
        };
        server.restart()?;
        Ok(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_run_side_by_side_and_their_directories_go_with_them() {
        let servers: Vec<InProcess> = (0..3).map(|_| InProcess::start().unwrap()).collect();
        let mut urls: Vec<&str> = servers.iter().map(InProcess::url).collect();
        urls.sort_unstable();
        urls.dedup();
        assert_eq!(urls.len(), 3);
        let folders: Vec<PathBuf> = servers.iter().map(InProcess::data).collect();
        assert!(servers.iter().all(|server| server.kubeconfig().is_file()));
        assert!(!servers[0].token().unwrap().is_empty());
        drop(servers);
        assert!(folders.iter().all(|folder| !folder.exists()));
    }

    #[test]
    fn a_wrong_flag_is_named() {
        let error = Launch::new()
            .flag("--no-such-flag")
            .start_in_process(Storage::Memory)
            .unwrap_err();
        assert!(error.to_string().contains("--no-such-flag"), "{error}");
    }
}
