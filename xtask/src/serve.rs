//! A release server as a child process, in a fresh directory and on a free port.

use crate::failure::Failure;
use crate::shell;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a server may take until it says where it listens.
const START_MAX: Duration = Duration::from_secs(20);

/// How long a server may take to end when it is told to.
const STOP_MAX: Duration = Duration::from_secs(10);

/// A running server; dropped, it is told to end and its directory removed.
pub(crate) struct Server {
    process: Child,
    /// Where its data lies.
    pub(crate) data: PathBuf,
    /// Where it listens, such as `https://127.0.0.1:40123`.
    pub(crate) url: String,
}

impl Server {
    /// Starts a server on a fresh directory below the target directory.
    pub(crate) fn start_fresh(name: &str, flags: &[&str]) -> Result<Self, Failure> {
        let data = scratch(name)?;
        Self::start(&build_release()?, &data, flags)
    }

    /// Starts a server on `data` and waits until it listens.
    pub(crate) fn start(binary: &Path, data: &Path, flags: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(binary);
        command
            .arg("serve")
            .arg("--data")
            .arg(data)
            .args(["--listen", "127.0.0.1:0"])
            .args(flags);
        let mut process =
            command
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|source| Failure::Start {
                    command: format!("{command:?}"),
                    source,
                })?;
        match read_address(process.stdout.take().expect("stdout is piped")) {
            Ok(url) => Ok(Server {
                process,
                data: data.to_owned(),
                url,
            }),
            Err(failure) => {
                // The reason is on the server's stderr, which the user sees.
                let _ = process.kill();
                let _ = process.wait();
                Err(failure)
            }
        }
    }

    /// The process id, for those who measure.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The file with the administrator's token.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.data.join("admin.token")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = self.pid().to_string();
        let _ = shell::run(&mut shell::command("kill", &["-TERM", &pid]));
        let told = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) && told.elapsed() < STOP_MAX {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

/// Builds the server as users run it and returns the path of the binary.
pub(crate) fn build_release() -> Result<PathBuf, Failure> {
    shell::run(&mut shell::cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        "windlass",
    ]))?;
    Ok(target_directory()?.join("release").join("windlass"))
}

/// An empty directory of this name below the target directory.
pub(crate) fn scratch(name: &str) -> Result<PathBuf, Failure> {
    let path = target_directory()?
        .join("xtask")
        .join(format!("{name}-{}", std::process::id()));
    if path.exists() {
        std::fs::remove_dir_all(&path).map_err(|source| Failure::File {
            action: "empty",
            path: path.clone(),
            source,
        })?;
    }
    match std::fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(Failure::File {
            action: "make",
            path,
            source,
        }),
    }
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> Result<PathBuf, Failure> {
    let metadata = crate::dependencies::metadata(&["--no-deps"])?;
    let directory = metadata["target_directory"].as_str();
    directory
        .map(PathBuf::from)
        .ok_or_else(|| Failure::unexpected("cargo metadata", "no target"))
}

/// Waits for the line with the address; a thread reads on, so that the server never blocks on a
/// full pipe.
fn read_address(stdout: ChildStdout) -> Result<String, Failure> {
    let (found, address) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(url) = line.trim().strip_prefix("listening on ") {
                // The receiver is gone after a timeout, which has been reported by then.
                let _ = found.send(url.to_owned());
            }
        }
    });
    address.recv_timeout(START_MAX).map_err(|why| match why {
        mpsc::RecvTimeoutError::Timeout => {
            Failure::unexpected("the server", format!("no address within {START_MAX:?}"))
        }
        mpsc::RecvTimeoutError::Disconnected => {
            Failure::unexpected("the server", "it ended before it listened")
        }
    })
}
