//! kube-apiserver and etcd as child processes, from binaries that the user has.

use crate::failure::Failure;
use crate::{serve, shell};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the pair may take until it is ready.
const START_MAX: Duration = Duration::from_secs(60);
const TOKEN: &str = "reference-admin";

/// A running pair; dropped, both are killed and their directory removed.
pub(super) struct Reference {
    processes: Vec<Child>,
    directory: PathBuf,
    /// Where it listens.
    pub(super) url: String,
}

impl Reference {
    /// Starts both on fresh data and waits until they are ready.
    pub(super) fn start(apiserver: &Path, etcd: &Path) -> Result<Reference, Failure> {
        shell::need("openssl", "openssl")?;
        shell::need("curl", "curl")?;
        let directory = serve::scratch("reference")?;
        let [client, peer, port] = free_ports()?;
        let mut reference = Reference {
            processes: Vec::new(),
            directory,
            url: format!("https://127.0.0.1:{port}"),
        };
        let client = format!("http://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        reference.start_etcd(etcd, &client, &peer)?;
        reference.start_apiserver(apiserver, &client, port)?;
        reference.wait_until_ready()?;
        Ok(reference)
    }

    /// The administrator's token.
    pub(super) fn token(&self) -> &'static str {
        TOKEN
    }

    /// The process ids of both.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(Child::id)
    }

    fn start_etcd(&mut self, etcd: &Path, client: &str, peer: &str) -> Result<(), Failure> {
        let mut command = Command::new(etcd);
        command
            .arg("--data-dir")
            .arg(self.directory.join("etcd"))
            .args(["--listen-client-urls", client])
            .args(["--advertise-client-urls", client])
            .args(["--listen-peer-urls", peer])
            .args(["--initial-advertise-peer-urls", peer])
            .arg("--initial-cluster")
            .arg(format!("default={peer}"));
        self.spawn(command, "etcd.log")
    }

    fn start_apiserver(&mut self, binary: &Path, etcd: &str, port: u16) -> Result<(), Failure> {
        let key = self.directory.join("service-account.key");
        let mut openssl = shell::command("openssl", &["genrsa", "-out"]);
        shell::run(openssl.arg(&key).arg("2048").stderr(Stdio::null()))?;
        let tokens = self.directory.join("tokens.csv");
        let line = format!("{TOKEN},admin,admin,system:masters\n");
        std::fs::write(&tokens, line).map_err(|source| Failure::File {
            action: "write",
            path: tokens.clone(),
            source,
        })?;
        let mut command = Command::new(binary);
        command
            .args(["--etcd-servers", etcd])
            .args(["--bind-address", "127.0.0.1"])
            .args(["--secure-port", &port.to_string()])
            .args(["--service-cluster-ip-range", "10.0.0.0/24"])
            .args(["--service-account-issuer", "https://kubernetes.default.svc"])
            .args(["--authorization-mode", "RBAC"])
            .arg("--cert-dir")
            .arg(self.directory.join("certificates"))
            .arg("--service-account-key-file")
            .arg(&key)
            .arg("--service-account-signing-key-file")
            .arg(&key)
            .arg("--token-auth-file")
            .arg(&tokens);
        self.spawn(command, "kube-apiserver.log")
    }

    fn spawn(&mut self, mut command: Command, log: &str) -> Result<(), Failure> {
        let path = self.directory.join(log);
        let file = std::fs::File::create(&path).map_err(|source| Failure::File {
            action: "make",
            path: path.clone(),
            source,
        })?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        match command.stderr(file).spawn() {
            Ok(process) => {
                self.processes.push(process);
                Ok(())
            }
            Err(source) => Err(Failure::Start {
                command: format!("{command:?}"),
                source,
            }),
        }
    }

    fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        let header = format!("Authorization: Bearer {TOKEN}");
        let url = format!("{}/readyz", self.url);
        while began.elapsed() < START_MAX {
            let arguments = ["--silent", "--insecure", "--header", &header, &url];
            let answer = shell::command("curl", &arguments).output();
            if answer.is_ok_and(|answer| answer.stdout == b"ok") {
                return Ok(());
            }
            for process in &mut self.processes {
                if let Ok(Some(status)) = process.try_wait() {
                    let ended = format!("a process ended with {status}; {}", self.last_words());
                    return Err(Failure::unexpected("the reference", ended));
                }
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let late = format!("not ready within {START_MAX:?}; {}", self.last_words());
        Err(Failure::unexpected("the reference", late))
    }

    /// The last line that either of them logged.
    fn last_words(&self) -> String {
        let last = |name: &str| {
            let text = std::fs::read_to_string(self.directory.join(name)).unwrap_or_default();
            let line = text.lines().last().unwrap_or_default();
            format!("{name}: {line}")
        };
        format!("{}; {}", last("etcd.log"), last("kube-apiserver.log"))
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Ports that were free a moment ago.
fn free_ports() -> Result<[u16; 3], Failure> {
    let mut listeners = Vec::new();
    let mut ports = [0; 3];
    for port in &mut ports {
        // Held until all are found, so that none is found twice.
        let listener = TcpListener::bind("127.0.0.1:0");
        let bound = listener.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
        let (number, listener) = bound.map_err(|why| Failure::unexpected("a free port", why))?;
        *port = number;
        listeners.push(listener);
    }
    Ok(ports)
}
