//! What lies on disk when resources are encrypted.

use std::path::Path;
use std::process::Command;

use testkit::{Launch, TestServer};

use crate::raw::Connection;

const CANARY: &str = "canary-on-the-disk";
/// The same in base64, as an object holds it.
const ENCODED: &str = "Y2FuYXJ5LW9uLXRoZS1kaXNr";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn config(flags: &[&str]) -> String {
    let made = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .arg("encryption-config")
        .args(flags)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap()
}

/// A server whose configuration is the file `encryption.yaml` beside its data.
fn start(file: &Path) -> TestServer {
    Launch::new()
        .binary(env!("CARGO_BIN_EXE_windlass"))
        .flag(format!("--encryption-provider-config={}", file.display()))
        .flag("--controllers=none")
        .start()
        .unwrap()
}

/// The files of a folder that hold a text, other than credentials.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            if bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
            {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found
}

async fn write_canary(server: &TestServer, name: &str) {
    let mut admin = Connection::open(server).await;
    let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"k":"{ENCODED}"}}}}"#);
    assert_eq!(
        admin.ask(&format!("POST {SECRETS}"), &[], &body).await.code,
        201
    );
}

async fn read(server: &TestServer, name: &str) -> String {
    let mut admin = Connection::open(server).await;
    let answer = admin.ask(&format!("GET {SECRETS}/{name}"), &[], "").await;
    assert_eq!(answer.code, 200, "{}", answer.body);
    answer.body
}

fn version(object: &str) -> String {
    let object: serde_json::Value = serde_json::from_str(object).unwrap();
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn backup(server: &TestServer, file: &Path) {
    let done = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["backup", "--data"])
        .arg(server.data())
        .arg(file)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test]
async fn no_file_holds_an_encrypted_resource_in_plain() {
    let folder = std::env::temp_dir().join(format!("windlass-seal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("encryption.yaml");
    std::fs::write(&file, config(&["--provider=aesgcm", "--resources=secrets"])).unwrap();
    let mut server = start(&file);
    write_canary(&server, "s").await;
    let mut admin = Connection::open(&server).await;
    let plain = format!(r#"{{"metadata":{{"name":"plain"}},"data":{{"k":"{CANARY}-plain"}}}}"#);
    let maps = "POST /api/v1/namespaces/default/configmaps";
    assert_eq!(admin.ask(maps, &[], &plain).await.code, 201);
    backup(&server, &folder.join("backup"));
    // Of what is not encrypted the files do tell, so the search would find it.
    assert!(!files_with(&server.data(), &format!("{CANARY}-plain")).is_empty());
    assert_eq!(files_with(&server.data(), ENCODED), Vec::<String>::new());
    assert_eq!(files_with(&folder, ENCODED), Vec::<String>::new());
    assert!(!files_with(&server.data(), "k8s:enc:aesgcm:v1:key1:").is_empty());
    // From the log, and once more when the checkpoint has it.
    for _ in 0..2 {
        server.restart().unwrap();
        assert!(read(&server, "s").await.contains(ENCODED));
        assert_eq!(files_with(&server.data(), ENCODED), Vec::<String>::new());
    }
    // The backup holds it encrypted, and opens with the same key.
    let restored = folder.join("restored");
    let done = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["restore", "--data"])
        .arg(&restored)
        .arg(folder.join("backup"))
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(files_with(&restored, ENCODED), Vec::<String>::new());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_new_key_is_taken_by_a_write_that_changes_nothing() {
    let folder = std::env::temp_dir().join(format!("windlass-rekey-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("encryption.yaml");
    let first = config(&["--key-name=old"]);
    std::fs::write(&file, &first).unwrap();
    let mut server = start(&file);
    write_canary(&server, "s").await;
    let old_keys = first
        .lines()
        .skip_while(|line| !line.contains("- name: old"));
    let old_keys: Vec<&str> = old_keys.take(2).collect();
    let second = config(&["--key-name=new"]);
    let both = second.replace(
        "  - identity",
        &format!("{}\n  - identity", old_keys.join("\n")),
    );
    std::fs::write(&file, &both).unwrap();
    server.restart().unwrap();
    let before = read(&server, "s").await;
    let mut admin = Connection::open(&server).await;
    let put = format!("PUT {SECRETS}/s");
    let after = admin.ask(&put, &[], &before).await;
    assert_eq!(after.code, 200, "{}", after.body);
    assert_ne!(
        version(&after.body),
        version(&before),
        "nothing was written"
    );
    let again = admin.ask(&put, &[], &after.body).await;
    assert_eq!(
        version(&again.body),
        version(&after.body),
        "written without need"
    );
    // The old key is not needed any more.
    std::fs::write(&file, &second).unwrap();
    server.kill();
    // History may still hold the old form; the newest state does not.
    server.restart().unwrap();
    assert!(read(&server, "s").await.contains(ENCODED));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_wrong_key_names_the_record_and_serves_nothing() {
    let folder = std::env::temp_dir().join(format!("windlass-wrong-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("encryption.yaml");
    std::fs::write(&file, config(&[])).unwrap();
    let mut server = start(&file);
    write_canary(&server, "s").await;
    std::fs::write(&file, config(&[])).unwrap();
    let error = server.restart().unwrap_err().to_string();
    assert!(
        error.contains("the record /registry/secrets/default/s cannot be read"),
        "{error}"
    );
    assert!(error.contains("the key \"key1\" of secretbox"), "{error}");
    assert!(error.contains("hint: "), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
