//! What is recorded of requests, and what never is.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Launch, TestServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::raw::Connection;

const CANARY: &str = "canary-that-nobody-may-read";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(folder: &Folder, rules: &str, flags: &[&str]) -> TestServer {
    let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    let policy = folder.write("policy.yaml", &policy);
    let launch = Launch::new()
        .binary(env!("CARGO_BIN_EXE_windlass"))
        .flag("--controllers=none")
        .flag(format!("--audit-policy-file={policy}"));
    let launch = flags.iter().fold(launch, |launch, flag| launch.flag(*flag));
    launch.start().unwrap()
}

fn events(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    // The last line may be on its way: only what ends is a line.
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    text[..whole]
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The event of a request's end, as soon as it is there.
async fn ended(log: &Path, id: &str) -> Value {
    loop {
        let found = events(log)
            .into_iter()
            .find(|event| event["auditID"] == id && event["stage"] != "RequestReceived");
        if let Some(event) = found {
            return event;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn events_say_who_asked_for_what_and_what_became_of_it() {
    let folder = Folder::new("audit-fields");
    let log = folder.0.join("audit.log");
    let rules = "omitManagedFields: true\nrules:\n- level: RequestResponse\n";
    let server = start(
        &folder,
        rules,
        &[&format!("--audit-log-path={}", log.display())],
    );
    let mut admin = Connection::open(&server).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let body = r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#;
    let created = admin
        .ask(
            &format!("POST {maps}?pretty=1"),
            &["audit-id: one", "user-agent: me"],
            body,
        )
        .await;
    assert_eq!(created.code, 201);
    let event = ended(&log, "one").await;
    let expected = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse",
        "stage": "ResponseComplete", "requestURI": format!("{maps}?pretty=1"), "verb": "create",
        "user": {"username": "admin", "uid": "admin",
                 "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["127.0.0.1"], "userAgent": "me",
        "objectRef": {"resource": "configmaps", "namespace": "default", "name": "a",
                      "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestObject": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"},
                          "data": {"k": "v"}},
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&event[field], value, "{field}");
    }
    assert_eq!(event["responseObject"]["data"]["k"], "v");
    assert!(event["responseObject"]["metadata"]["managedFields"].is_null());
    assert_eq!(
        event["annotations"]["authorization.k8s.io/decision"],
        "allow"
    );
    assert_eq!(event["annotations"]["windlass/authenticator"], "token");
    let impersonate = [
        "impersonate-user: ann",
        "audit-id: two",
        "x-forwarded-for: 192.0.2.7",
    ];
    assert_eq!(
        admin.ask("GET /api/v1/nodes", &impersonate, "").await.code,
        403
    );
    let event = ended(&log, "two").await;
    assert_eq!(event["impersonatedUser"]["username"], "ann");
    assert_eq!(
        event["authenticationMetadata"],
        json!({"impersonationConstraint": "impersonate:user-info"})
    );
    assert_eq!(event["sourceIPs"], json!(["192.0.2.7", "127.0.0.1"]));
    assert_eq!(
        event["annotations"]["authorization.k8s.io/decision"],
        "forbid"
    );
    assert_eq!(event["responseStatus"]["reason"], "Forbidden");
    let protobuf = [
        "accept: application/vnd.kubernetes.protobuf",
        "audit-id: three",
    ];
    admin
        .send(&format!("GET {maps}/nothing"), &protobuf, "")
        .await;
    let event = ended(&log, "three").await;
    assert_eq!(event["responseStatus"]["reason"], "NotFound", "{event}");
}

/// The stages of a request, as soon as it has ended.
async fn stages(log: &Path, id: &str) -> Vec<String> {
    loop {
        let events = events(log).into_iter();
        let events = events.filter(|event| event["auditID"] == id);
        let stages = events.map(|event| event["stage"].as_str().unwrap_or_default().to_owned());
        let stages: Vec<String> = stages.collect();
        if stages.last().is_some_and(|last| last == "ResponseComplete") {
            return stages;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_a_request_used_is_noted() {
    let folder = Folder::new("audit-notes");
    let log = folder.0.join("audit.log");
    let rules = "rules:\n- level: Metadata\n";
    let path = format!("--audit-log-path={}", log.display());
    let server = start(&folder, rules, &[&path]);
    let mut admin = Connection::open(&server).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = r#"{"metadata":{"name":"robot"}}"#;
    admin.ask(&format!("POST {accounts}"), &[], account).await;
    let token = format!("POST {accounts}/robot/token");
    assert_eq!(
        admin.ask(&token, &["audit-id: token"], "{}").await.code,
        201
    );
    let event = ended(&log, "token").await;
    let id = &event["annotations"]["authentication.kubernetes.io/issued-credential-id"];
    assert!(id.as_str().unwrap().starts_with("JTI="), "{event}");
    let old = "GET /api/v1/namespaces/default/endpoints";
    assert_eq!(admin.ask(old, &["audit-id: old"], "").await.code, 200);
    let event = ended(&log, "old").await;
    assert_eq!(event["annotations"]["k8s.io/deprecated"], "true");
    // What is not there is not deprecated either.
    let none = "GET /api/v1/namespaces/default/endpoints/one/status";
    assert_eq!(admin.ask(none, &["audit-id: none"], "").await.code, 404);
    let event = ended(&log, "none").await;
    assert_eq!(event["annotations"].get("k8s.io/deprecated"), None);
}

#[tokio::test]
async fn a_watch_is_recorded_when_it_begins_and_when_it_ends() {
    let folder = Folder::new("audit-watch");
    let log = folder.0.join("audit.log");
    let rules = "omitStages: [RequestReceived]\nrules:\n- level: Metadata\n";
    let server = start(
        &folder,
        rules,
        &[&format!("--audit-log-path={}", log.display())],
    );
    let mut admin = Connection::open(&server).await;
    let watch = "GET /api/v1/namespaces/default/configmaps?watch=1";
    let expected = ["ResponseStarted", "ResponseComplete"];
    admin.send(watch, &["audit-id: watch"], "").await;
    assert_eq!(ended(&log, "watch").await["stage"], "ResponseStarted");
    drop(admin);
    assert_eq!(stages(&log, "watch").await, expected);
    // One that is refused begins and ends at once.
    let mut admin = Connection::open(&server).await;
    let stranger = ["audit-id: refused", "impersonate-user: ann"];
    assert_eq!(admin.ask(watch, &stranger, "").await.code, 403);
    assert_eq!(stages(&log, "refused").await, expected);
}

#[tokio::test]
async fn no_token_and_no_secret_is_recorded_below_the_highest_level() {
    let folder = Folder::new("audit-canary");
    for level in ["Metadata", "Request", "RequestResponse"] {
        let log = folder.0.join(format!("{level}.log"));
        let rules = format!("rules:\n- level: {level}\n");
        let server = start(
            &folder,
            &rules,
            &[&format!("--audit-log-path={}", log.display())],
        );
        let mut admin = Connection::open(&server).await;
        let secrets = "/api/v1/namespaces/default/secrets";
        let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": CANARY}}).to_string();
        let review = json!({"spec": {"token": CANARY}}).to_string();
        let patch = json!({"stringData": {"k": CANARY}}).to_string();
        let merge = [
            "content-type: application/merge-patch+json",
            "audit-id: last",
        ];
        assert_eq!(
            admin
                .ask(&format!("POST {secrets}"), &[], &secret)
                .await
                .code,
            201
        );
        assert_eq!(
            admin
                .ask(&format!("POST {secrets}"), &[], &secret)
                .await
                .code,
            409
        );
        assert_eq!(
            admin
                .ask(&format!("PUT {secrets}/s"), &[], &secret)
                .await
                .code,
            200
        );
        let reviews = "POST /apis/authentication.k8s.io/v1/tokenreviews";
        assert_eq!(admin.ask(reviews, &[], &review).await.code, 201);
        let bearer = format!("authorization: Bearer {CANARY}");
        admin.ask("GET /version", &[&bearer], "").await;
        assert_eq!(
            admin.ask(&format!("GET {secrets}"), &[], "").await.code,
            200
        );
        let length = format!("content-length: {}", patch.len());
        let headers = [merge[0], merge[1], length.as_str()];
        admin
            .send(&format!("PATCH {secrets}/s"), &headers, &patch)
            .await;
        admin.receive().await;
        ended(&log, "last").await;
        let token = server.token().unwrap();
        let encoded = "Y2FuYXJ5LXRoYXQtbm9ib2R5LW1heS1yZWFk";
        for event in events(&log) {
            let text = event.to_string();
            assert!(!text.contains(&token), "{level}: {text}");
            let shown = text.contains(CANARY) || text.contains(encoded);
            let secret = event["objectRef"]["resource"] == "secrets";
            assert!(
                !shown || (secret && level == "RequestResponse"),
                "{level}: {text}"
            );
        }
        assert!(!server.log().contains(CANARY));
    }
}

#[tokio::test]
async fn a_webhook_gets_batches() {
    let folder = Folder::new("audit-webhook");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    \
         server: http://{address}/audit\nusers:\n- name: u\n  user:\n    token: letmein\n"
    );
    let config = folder.write("webhook.yaml", &config);
    let rules = "rules:\n- {level: Metadata, nonResourceURLs: [/version]}\n";
    let flags = [
        format!("--audit-webhook-config-file={config}"),
        "--audit-webhook-batch-max-size=3".to_owned(),
    ];
    let server = start(&folder, rules, &flags.each_ref().map(String::as_str));
    let mut admin = Connection::open(&server).await;
    for _ in 0..2 {
        assert_eq!(admin.ask("GET /version", &[], "").await.code, 200);
    }
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut bytes = Vec::new();
    let list: Value = loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(list) = serde_json::from_str(body)
        {
            assert!(head.starts_with("POST /audit HTTP/1.1"), "{head}");
            assert!(head.contains("authorization: Bearer letmein"), "{head}");
            break list;
        }
    };
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(list["kind"], "EventList");
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    assert_eq!(list["items"][0]["requestURI"], "/version");
}
