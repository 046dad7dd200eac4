//! How many requests are worked on at a time, and whose turn it is.

use testkit::{Launch, TestServer};

use crate::raw::{Answer, Connection};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn start(flags: &[&str]) -> TestServer {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let launch = flags.iter().fold(launch, |launch, flag| launch.flag(*flag));
    launch.start().unwrap()
}

/// Begins a write whose body never comes: it is under way until the connection is dropped. The
/// server asks for the body, by a 100, when the request's turn has come.
async fn occupy(server: &TestServer, user: &str) -> Connection {
    let mut connection = Connection::open(server).await;
    let headers = [
        &format!("impersonate-user: {user}"),
        "content-type: application/json",
        "content-length: 100",
        "expect: 100-continue",
    ];
    connection.send(&format!("POST {MAPS}"), &headers, "").await;
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

/// Lets everybody write config maps.
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
    let mut first = occupy(&server, "ann").await;
    let mut second = occupy(&server, "ann").await;
    assert_eq!(first.receive().await.code, 100);
    assert_eq!(second.receive().await.code, 100);
    let refused = write(&server, &["impersonate-user: bob"]).await;
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
    "type":"Queue","queuing":{"queues":1024,"handSize":2,"queueLengthLimit":3}}}}}"#;
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
    // One seat and two queues of three: the eighth request is refused, whichever that is.
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    flood(&server, "ann", 8, &tell).await;
    let (mut seat, mut refused) = (None, None);
    while seat.is_none() || refused.is_none() {
        let heard: Heard = told.recv().await.unwrap();
        match heard.answer.code {
            100 => seat = Some(heard),
            _ => refused = Some(heard.answer),
        }
    }
    let refused = refused.unwrap();
    assert_eq!(refused.code, 429, "{}", refused.body);
    assert_eq!(
        refused.header("x-kubernetes-pf-flowschema-uid"),
        Some(&*expected)
    );
    // The other client has two queues of its own: its seventh request is refused, so that six
    // are known to wait.
    flood(&server, "bob", 7, &tell).await;
    let refused = told.recv().await.unwrap();
    assert_eq!((refused.user, refused.answer.code), ("bob", 429));
    // It waits for the one seat, not for the flood: as requests go away one by one, its turn
    // comes after the three of that queue of the flood which has waited longest, at the latest.
    let mut turns = Vec::new();
    while turns.last() != Some(&"bob") {
        drop(seat.take());
        while seat.is_none() {
            let heard = told.recv().await.unwrap();
            match heard.answer.code {
                100 => seat = Some(heard),
                // More are refused if a queue is shared: queues are chosen by a hash.
                code => assert_eq!((heard.user, code), ("bob", 429)),
            }
        }
        turns.extend(seat.as_ref().map(|heard| heard.user));
    }
    assert!(turns.len() <= 4, "{turns:?}");
}

/// What the server said to a request of a flood: 100 once it has the seat.
struct Heard {
    user: &'static str,
    answer: Answer,
    /// The request is under way as long as this is kept.
    _connection: Connection,
}

/// Begins so many writes of a user, and has told what the server says to each.
async fn flood(
    server: &TestServer,
    user: &'static str,
    size: usize,
    tell: &tokio::sync::mpsc::UnboundedSender<Heard>,
) {
    for _ in 0..size {
        let mut connection = occupy(server, user).await;
        let tell = tell.clone();
        tokio::spawn(async move {
            let answer = connection.receive().await;
            let _ = tell.send(Heard {
                user,
                answer,
                _connection: connection,
            });
        });
    }
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
