//! Pages for whoever looks for a fault: what runs, how it was started, how healthy it has been.

use serde_json::Value;
use testkit::{Launch, TestServer};

use crate::raw::Connection;

fn start() -> TestServer {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    launch.flag("--controllers=none").start().unwrap()
}

#[tokio::test]
async fn pages_tell_what_runs_and_how_it_was_started() {
    let server = start();
    let mut admin = Connection::open(&server).await;
    let flags = admin.ask("GET /flagz", &[], "").await;
    assert_eq!(
        flags.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(
        flags.body.starts_with("\napiserver flagz\nWarning: "),
        "{}",
        flags.body
    );
    for line in ["controllers=none", "history=5m", "client-ca-file="] {
        assert!(flags.body.lines().any(|it| it == line), "{}", flags.body);
    }
    let form = "g=config.k8s.io;v=v1alpha1;as=Statusz";
    let accept = format!("accept: application/json;{form}");
    let status = admin.ask("GET /statusz", &[&accept], "").await;
    let content_type = format!("application/json;{form}");
    assert_eq!(status.header("content-type"), Some(content_type.as_str()));
    assert_eq!(
        status.header("warning"),
        Some(
            "299 - \"This version of the statusz endpoint is deprecated. Please use a newer \
             version.\""
        )
    );
    let object: Value = serde_json::from_str(&status.body).unwrap();
    assert_eq!(object["kind"], "Statusz");
    assert_eq!(object["apiVersion"], "config.k8s.io/v1alpha1");
    assert_eq!(object["metadata"]["name"], "apiserver");
    assert_eq!(object["emulationVersion"], "1.36");
    // An object has to be asked for by its full name.
    for accept in ["accept: application/json", "accept: text/html"] {
        let refused = admin.ask("GET /statusz", &[accept], "").await;
        assert_eq!(refused.code, 406, "{accept}");
        assert!(
            refused
                .body
                .contains("application/json, application/yaml, text/plain")
        );
    }
}

#[tokio::test]
async fn checks_of_health_are_counted() {
    let server = start();
    let mut admin = Connection::open(&server).await;
    for _ in 0..2 {
        assert_eq!(admin.ask("GET /livez", &[], "").await.code, 200);
    }
    let counts = admin.ask("GET /metrics/slis", &[], "").await.body;
    for line in [
        "kubernetes_healthcheck{name=\"ping\",type=\"livez\"} 1",
        "kubernetes_healthchecks_total{name=\"ping\",status=\"success\",type=\"livez\"} 2",
    ] {
        assert!(counts.lines().any(|it| it == line), "{counts}");
    }
}
