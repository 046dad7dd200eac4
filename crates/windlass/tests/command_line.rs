//! Flags from files, and the flags of kube-apiserver.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::{InProcess, Launch, Storage};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_holds_flags_and_the_command_line_wins() {
    let folder = Folder::new("config");
    let file = folder.0.join("windlass.yaml");
    // The log says nothing at this level; the listening address of the command line wins.
    std::fs::write(
        &file,
        "log: off\nlisten: 192.0.2.1:1\ncontrollers: [none]\n",
    )
    .unwrap();
    let server = Launch::new()
        .binary(env!("CARGO_BIN_EXE_windlass"))
        .flag(format!("--config={}", file.display()))
        .start()
        .unwrap();
    assert!(server.url().starts_with("https://127.0.0.1:"));
}

#[test]
fn an_unknown_key_is_a_wrong_use_with_a_hint() {
    let folder = Folder::new("config-wrong");
    let file = folder.0.join("windlass.yaml");
    std::fs::write(&file, "max-request-inflight: 7\n").unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["serve", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(
        said.contains("there is no flag max-request-inflight"),
        "{said}"
    );
    assert!(
        said.contains("the nearest is max-requests-inflight"),
        "{said}"
    );
}

fn kube_apiserver(folder: &Path) -> PathBuf {
    let program = folder.join("kube-apiserver");
    symlink(env!("CARGO_BIN_EXE_windlass"), &program).unwrap();
    program
}

#[test]
fn called_as_kube_apiserver_it_serves_from_the_directory_of_certificates() {
    let folder = Folder::new("kube-apiserver");
    let certificates = folder.0.join("certs");
    let program = kube_apiserver(&folder.0);
    let help = Command::new(&program).arg("--help").output().unwrap();
    assert!(help.status.success());
    let child = Command::new(&program)
        .args([
            "--bind-address=127.0.0.1",
            "--secure-port=0",
            "--allow-privileged=true",
        ])
        .args([
            "--etcd-servers=http://127.0.0.1:1",
            "--authorization-mode",
            "RBAC",
        ])
        .args([
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24",
        ])
        .arg(format!("--cert-dir={}", certificates.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut child = Running(child);
    let stdout = child.0.stdout.take().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
    let first = lines.map_while(Result::ok).next().unwrap();
    assert!(
        first.starts_with("listening on https://127.0.0.1:"),
        "{first}"
    );
    for name in [
        "apiserver.crt",
        "apiserver.key",
        "windlass-data/admin.kubeconfig",
    ] {
        assert!(certificates.join(name).is_file(), "{name}");
    }
}

#[tokio::test]
async fn a_server_inside_the_test_is_the_same_server() {
    let mut server = Launch::new()
        .flag("--controllers=none")
        .start_in_process(Storage::Disk)
        .unwrap();
    let ask = async |server: &InProcess| {
        let kubeconfig = kube::config::Kubeconfig::read_from(server.kubeconfig()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await;
        let client = kube::Client::try_from(config.unwrap()).unwrap();
        let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
            kube::Api::default_namespaced(client);
        maps
    };
    let map = serde_json::json!({"metadata": {"name": "kept"}});
    let map = serde_json::from_value(map).unwrap();
    ask(&server)
        .await
        .create(&Default::default(), &map)
        .await
        .unwrap();
    server.restart().unwrap();
    assert!(ask(&server).await.get_opt("kept").await.unwrap().is_some());
}
