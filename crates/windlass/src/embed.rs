//! A server inside another program: for tests that want no second process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use clap::Parser as _;
use tokio::sync::oneshot;

use crate::arguments::{Arguments, Command};
use crate::serve::{self, Storage};
use crate::workers;

/// Threads that answer requests; a test asks few at a time.
const WORKERS: usize = 2;
/// A server that does not answer by then never will.
const START_MAX: Duration = Duration::from_secs(30);

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(String);

/// A server on threads of this process; it stops when it is dropped.
#[derive(Debug)]
pub struct Embedded {
    address: SocketAddr,
    data: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Embedded {
    /// Starts a server on a free port of 127.0.0.1 and waits until it answers.
    ///
    /// `data` is where credentials lie, and the objects too if `storage` is on disk. `flags` are
    /// those of `windlass serve`.
    ///
    /// # Errors
    /// A flag is wrong, or the server cannot use what it names.
    pub fn start(data: &Path, storage: Storage, flags: &[String]) -> Result<Embedded, StartError> {
        let place = data.display().to_string();
        let words = [
            "windlass",
            "serve",
            "--data",
            &place,
            "--listen",
            "127.0.0.1:0",
        ];
        let words = words.iter().map(|word| (*word).to_owned());
        let arguments = Arguments::try_parse_from(words.chain(flags.iter().cloned()));
        let arguments = arguments.map_err(|error| StartError(error.to_string()))?;
        let Command::Serve(options) = arguments.command() else {
            return Err(StartError("the flags name a command".to_owned()));
        };
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let body = move || {
            let ready = {
                let tell = tell.clone();
                // Nobody listens after a timeout, which has been reported by then.
                move |ready: serve::Ready<'_>| drop(tell.send(Ok(ready.address)))
            };
            let stop = async move {
                // A dropped sender is a dropped server.
                let _ = stopped.await;
            };
            let outcome = workers::roaming(WORKERS).and_then(|runtime| {
                let running = serve::run(*options, storage, Vec::new(), ready, async { Ok(stop) });
                serve::block_on(&runtime, running)
            });
            if let Err(failure) = outcome {
                let _ = tell.send(Err(failure.to_string()));
            }
        };
        let thread = std::thread::Builder::new()
            .name("windlass".to_owned())
            .spawn(body)
            .map_err(|error| StartError(error.to_string()))?;
        let address = told
            .recv_timeout(START_MAX)
            .map_err(|_| StartError("the server does not answer".to_owned()))?
            .map_err(StartError)?;
        Ok(Embedded {
            address,
            data: data.to_owned(),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its credentials are: `admin.kubeconfig`, `admin.token` and `ca.crt`.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Stops the server in good order.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.stop();
    }
}
