//! How many requests are worked on at a time, and whose turn it is.

use testkit::{Launch, TestServer};

use crate::raw::{Answer, Connection};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn start(flags: &[&str]) -> TestServer {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let launch = flags.iter().fold(launch, |launch, flag| launch.flag(*flag));
    launch.start().unwrap()
}

/// Begins a write whose body never comes: it is under way until the connection is dropped.
async fn occupy(server: &TestServer, user: &str) -> Connection {
    let mut connection = Connection::open(server).await;
    let headers = [
        &format!("impersonate-user: {user}"),
        "content-type: application/json",
        "content-length: 100",
    ];
    connection
        .send(&format!("POST {MAPS}"), &headers, "{")
        .await;
    connection
}

async fn get(server: &TestServer, path: &str, user: &str) -> Answer {
    let mut connection = Connection::open(server).await;
    let impersonate = format!("impersonate-user: {user}");
    connection
        .ask(&format!("GET {path}"), &[&impersonate], "")
        .await
}

async fn write(server: &TestServer, headers: &[&str]) -> Answer {
    let mut connection = Connection::open(server).await;
    connection.ask(&format!("POST {MAPS}"), headers, "{}").await
}

/// Lets everybody write config maps, and waits until a write of `user` meets a limit.
async fn let_everybody_write(server: &TestServer) {
    let mut admin = Connection::open(server).await;
    let binding = r#"{"metadata":{"name":"all"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",
        "kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"Group",
        "apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"}]}"#;
    let path = "POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(admin.ask(path, &[], binding).await.code, 201);
}

#[tokio::test]
async fn plain_limits_refuse_writes_but_neither_reads_nor_masters() {
    let server = start(&[
        "--enable-priority-and-fairness=false",
        "--max-mutating-requests-inflight=2",
        "--max-requests-inflight=2",
    ]);
    let_everybody_write(&server).await;
    let _first = occupy(&server, "ann").await;
    let _second = occupy(&server, "ann").await;
    let refused = loop {
        let answer = write(&server, &["impersonate-user: bob"]).await;
        if answer.code != 422 {
            break answer;
        }
    };
    assert_eq!(refused.code, 429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(
        refused.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(refused.body, "Too many requests, please try again later.\n");
    assert_eq!(refused.header("x-kubernetes-pf-flowschema-uid"), None);
    assert_eq!(get(&server, MAPS, "bob").await.code, 200);
    assert_eq!(write(&server, &[]).await.code, 422);
}

const LEVEL: &str = r#"{"metadata":{"name":"narrow"},"spec":{"type":"Limited","limited":{
    "nominalConcurrencyShares":1,"lendablePercent":0,"borrowingLimitPercent":0,"limitResponse":{
    "type":"Queue","queuing":{"queues":64,"handSize":2,"queueLengthLimit":3}}}}}"#;
const SCHEMA: &str = r#"{"metadata":{"name":"narrow"},"spec":{"matchingPrecedence":50,
    "priorityLevelConfiguration":{"name":"narrow"},"distinguisherMethod":{"type":"ByUser"},
    "rules":[{"subjects":[{"kind":"User","user":{"name":"ann"}},
    {"kind":"User","user":{"name":"bob"}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],
    "resources":["*"],"clusterScope":true,"namespaces":["*"]}]}]}}"#;
const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

fn uid(object: &str) -> String {
    let object: serde_json::Value = serde_json::from_str(object).unwrap();
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn one_flooding_client_does_not_starve_another() {
    let server = start(&[
        "--max-mutating-requests-inflight=1",
        "--max-requests-inflight=0",
    ]);
    let_everybody_write(&server).await;
    let mut admin = Connection::open(&server).await;
    let path = format!("POST {FLOW}/prioritylevelconfigurations");
    let level = admin.ask(&path, &[], LEVEL).await;
    assert_eq!(level.code, 201, "{}", level.body);
    let path = format!("POST {FLOW}/flowschemas");
    let schema = admin.ask(&path, &[], SCHEMA).await;
    assert_eq!(schema.code, 201, "{}", schema.body);
    // In force as soon as a request says so.
    let expected = uid(&schema.body);
    loop {
        let answer = get(&server, MAPS, "bob").await;
        if answer.header("x-kubernetes-pf-flowschema-uid") == Some(&expected) {
            let level = uid(&level.body);
            assert_eq!(
                answer.header("x-kubernetes-pf-prioritylevel-uid"),
                Some(&*level)
            );
            break;
        }
    }
    // One seat and two queues of three: the rest of the flood is refused.
    let mut flood = Vec::new();
    for _ in 0..7 {
        flood.push(occupy(&server, "ann").await);
    }
    let refused = loop {
        let mut more = occupy(&server, "ann").await;
        let answer = tokio::time::timeout(std::time::Duration::from_millis(100), more.receive());
        match answer.await {
            Ok(answer) => break answer,
            Err(_) => flood.push(more),
        }
    };
    assert_eq!(refused.code, 429, "{}", refused.body);
    assert_eq!(
        refused.header("x-kubernetes-pf-flowschema-uid"),
        Some(&*expected)
    );
    // The other client waits for the one seat, not for the flood: as the flood goes away one by
    // one, its turn comes long before the last.
    let other = get(&server, MAPS, "bob");
    let mut other = std::pin::pin!(other);
    let waiting = flood.len();
    // Long enough for an answer on a busy machine; a turn that does not come takes all of it.
    let patience = std::time::Duration::from_secs(1);
    let other = loop {
        match tokio::time::timeout(patience, other.as_mut()).await {
            Ok(answer) => break answer,
            Err(_) => drop(flood.remove(0)),
        }
    };
    assert!(
        waiting - flood.len() <= 3,
        "{} of {waiting} left",
        flood.len()
    );
    assert_eq!(other.code, 200, "{}", other.body);
}

#[tokio::test]
async fn schemas_say_whether_their_level_exists() {
    let server = start(&[]);
    let mut admin = Connection::open(&server).await;
    let lost = SCHEMA.replace(
        r#""name":"narrow"},"distinguisher"#,
        r#""name":"lost"},"distinguisher"#,
    );
    let path = format!("POST {FLOW}/flowschemas");
    assert_eq!(admin.ask(&path, &[], &lost).await.code, 201);
    let cases = [
        ("exempt", "False", "Found", "\"exempt\" and it exists"),
        (
            "narrow",
            "True",
            "NotFound",
            "\"lost\" but there is no such object",
        ),
    ];
    for (name, status, reason, tail) in cases {
        let condition = loop {
            let answer = admin
                .ask(&format!("GET {FLOW}/flowschemas/{name}"), &[], "")
                .await;
            let object: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
            let condition = object["status"]["conditions"][0].clone();
            if !condition.is_null() {
                break condition;
            }
        };
        let message = condition["message"].as_str().unwrap();
        assert_eq!(condition["type"], "Dangling");
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&status.into(), &reason.into())
        );
        assert!(message.ends_with(tail), "{message}");
    }
}
