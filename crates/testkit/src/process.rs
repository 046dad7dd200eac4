//! The server as a process of its own: what a user runs, killed as a machine fails.

use crate::Error;
use crate::directory::TemporaryDirectory;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a server may take until it says where it listens.
const START_MAX: Duration = Duration::from_secs(30);

/// How a server for a test is started.
#[derive(Debug, Default)]
pub struct Launch {
    binary: Option<PathBuf>,
    flags: Vec<String>,
}

impl Launch {
    /// The binary in `WINDLASS_BIN`, else the one beside this test, else the one on the PATH.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs this binary.
    #[must_use]
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// Passes one more word to `windlass serve`.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// The words to pass on.
    pub(crate) fn into_flags(self) -> Vec<String> {
        self.flags
    }

    /// Starts the server and waits until it listens.
    pub fn start(self) -> Result<TestServer, Error> {
        let binary = match self.binary {
            Some(binary) => binary,
            None => find_binary().ok_or(Error::NoBinary)?,
        };
        let directory = TemporaryDirectory::new()?;
        let flags = self.flags;
        let mut server = TestServer {
            binary,
            flags,
            directory,
            process: None,
            url: String::new(),
        };
        server.restart()?;
        Ok(server)
    }
}

/// A running server with its own port and directory; dropped, both are gone.
#[derive(Debug)]
pub struct TestServer {
    binary: PathBuf,
    flags: Vec<String>,
    directory: TemporaryDirectory,
    process: Option<Child>,
    url: String,
}

impl TestServer {
    /// Starts a server with default flags; [`Launch`] has the others.
    pub fn start() -> Result<Self, Error> {
        Launch::new().start()
    }

    /// Where it listens, such as `https://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The directory with its data.
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
        read_token(&self.data())
    }

    /// The id of its process; 0 if it does not run.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.as_ref().map_or(0, Child::id)
    }

    /// Everything that the server wrote to stderr.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Kills the server at once, as a crash does.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Both fail only when the process has ended by itself.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Kills the server if it runs and starts it on the same data, on another port.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill();
        let path = self.log_file();
        let log = match File::options().create(true).append(true).open(&path) {
            Ok(log) => log,
            Err(source) => {
                return Err(Error::File {
                    action: "open",
                    path,
                    source,
                });
            }
        };
        let mut command = Command::new(&self.binary);
        command
            .arg("serve")
            .arg("--data")
            .arg(self.data())
            .args(["--listen", "127.0.0.1:0"]);
        command
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut process = command.spawn().map_err(|source| Error::Start {
            binary: self.binary.clone(),
            source,
        })?;
        let stdout = process.stdout.take().expect("stdout is piped");
        self.process = Some(process);
        match listening(stdout).recv_timeout(START_MAX) {
            Ok(url) => {
                self.url = url;
                Ok(())
            }
            Err(why) => {
                self.kill();
                let log = self.log();
                Err(match why {
                    mpsc::RecvTimeoutError::Timeout => Error::Silent {
                        waited: START_MAX,
                        log,
                    },
                    mpsc::RecvTimeoutError::Disconnected => Error::Ended { log },
                })
            }
        }
    }

    fn log_file(&self) -> PathBuf {
        self.directory.path().join("stderr.log")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The administrator's token in a data directory.
pub(crate) fn read_token(data: &Path) -> Result<String, Error> {
    let path = data.join("admin.token");
    match std::fs::read_to_string(&path) {
        Ok(token) => Ok(token.trim().to_owned()),
        Err(source) => Err(Error::File {
            action: "read",
            path,
            source,
        }),
    }
}

/// Receives the address as soon as the server prints it.
///
/// A thread reads on to the end, so that the server never blocks on a full pipe.
fn listening(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (found, address) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(url) = line.trim().strip_prefix("listening on ") {
                // Nobody receives after a timeout, which has been reported by then.
                let _ = found.send(url.to_owned());
            }
        }
    });
    address
}

fn find_binary() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("WINDLASS_BIN") {
        return Some(PathBuf::from(named));
    }
    // A test runs from `target/PROFILE/deps`, an example from `target/PROFILE/examples`.
    let test = std::env::current_exe().ok()?;
    let beside = test
        .parent()
        .and_then(Path::parent)
        .map(|folder| folder.join("windlass"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("windlass"));
    beside
        .into_iter()
        .chain(on_path)
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// A program cannot be started while another thread's child still has it open for writing, so
    /// these tests write and start theirs one after the other.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    /// A program in place of the server, so that these tests need no other crate to be built.
    struct StandIn {
        path: PathBuf,
        _folder: TemporaryDirectory,
        _turn: MutexGuard<'static, ()>,
    }

    fn stand_in(script: &str) -> StandIn {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = TemporaryDirectory::new().unwrap();
        let path = folder.path().join("windlass");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        StandIn {
            path,
            _folder: folder,
            _turn: turn,
        }
    }

    #[test]
    fn the_address_is_read_from_the_server_s_output() {
        let program = stand_in("echo hello; echo listening on https://127.0.0.1:1; exec sleep 60");
        let mut server = Launch::new().binary(&program.path).start().unwrap();
        assert_eq!(server.url(), "https://127.0.0.1:1");
        server.kill();
        server.restart().unwrap();
    }

    #[test]
    fn a_server_that_ends_at_once_tells_its_log() {
        let program = stand_in("echo error: no luck >&2; exit 1");
        let error = Launch::new().binary(&program.path).start().unwrap_err();
        assert!(
            matches!(&error, Error::Ended { log } if log.contains("no luck")),
            "{error}"
        );
    }

    #[test]
    fn flags_reach_the_server() {
        let program = stand_in("echo \"$@\" >&2; exit 1");
        let error = Launch::new()
            .binary(&program.path)
            .flag("--controllers")
            .flag("none")
            .start();
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("--listen 127.0.0.1:0 --controllers none"),
            "{error}"
        );
    }

    #[test]
    fn a_binary_that_is_not_there_is_named() {
        let error = Launch::new()
            .binary("/nowhere/windlass")
            .start()
            .unwrap_err();
        assert!(
            error.to_string().contains("cannot start /nowhere/windlass"),
            "{error}"
        );
    }
}
