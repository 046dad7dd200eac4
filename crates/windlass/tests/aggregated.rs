//! An API that another server serves, over real TLS.

use serde_json::{Value, json};
use testkit::{Launch, TestServer};

use crate::issuer::Outsider;
use crate::raw::Connection;

const GROUP: &str = "things.example.com";

/// Makes the API known, and waits until it is reached.
async fn register(server: &TestServer, outside: &Outsider, admin: &mut Connection) {
    let service = json!({
        "metadata": {"name": "things"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    let path = "POST /api/v1/namespaces/default/services";
    let made = admin.ask(path, &[], &service.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.body);
    let name = format!("v1.{GROUP}");
    let api = json!({
        "metadata": {"name": name},
        "spec": {
            "group": GROUP, "version": "v1", "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 100, "versionPriority": 10,
            "service": {
                "namespace": "default", "name": "things", "port": (outside.address.port()),
            },
        },
    });
    let apis = "/apis/apiregistration.k8s.io/v1/apiservices";
    let made = admin
        .ask(&format!("POST {apis}"), &[], &api.to_string())
        .await;
    assert_eq!(made.code, 201, "{}", made.body);
    loop {
        let found = admin.ask(&format!("GET {apis}/{name}"), &[], "").await;
        let found: Value = serde_json::from_str(&found.body).unwrap();
        let condition = &found["status"]["conditions"][0];
        if condition["status"] == "True" {
            break;
        }
        assert!(!server.log().contains("panicked"));
    }
}

async fn document(admin: &mut Connection, path: &str) -> Value {
    let answer = admin.ask(&format!("GET {path}"), &[], "").await;
    assert_eq!(answer.code, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

#[tokio::test]
async fn another_server_is_found_asked_and_described() {
    let outside = Outsider::start();
    let base = format!("/apis/{GROUP}/v1");
    let list = json!({"kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": format!("{GROUP}/v1"), "resources": [{"name": "things",
        "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get"]}]});
    outside.set(&base, &list.to_string());
    outside.set(&format!("{base}/things"), "{\"kind\":\"ThingList\"}");
    let name = format!("apis/{GROUP}/v1");
    let index = json!({"paths": {
        "apis/apps/v1": {"serverRelativeURL": "/elsewhere"},
        (name.clone()): {"serverRelativeURL": format!("/openapi/v3/{name}?hash=1")},
    }});
    outside.set("/openapi/v3", &index.to_string());
    outside.set(
        &format!("/openapi/v3/{name}?hash=1"),
        "{\"openapi\":\"3.0.0\"}",
    );
    let old = json!({
        "paths": {(format!("{base}/things")): {"get": {}}, "/apis/apps/v1/": {"get": "theirs"}},
        "definitions": {"com.example.Thing": {"type": "object"}},
    });
    outside.set("/openapi/v2", &old.to_string());

    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let server = launch.start().unwrap();
    let mut admin = Connection::open(&server).await;
    register(&server, &outside, &mut admin).await;

    let groups = document(&mut admin, "/apis").await;
    let groups = groups["groups"].as_array().unwrap();
    assert!(groups.iter().any(|group| group["name"] == GROUP));
    let before = outside.served.lock().unwrap().connections;
    for _ in 0..20 {
        let things = document(&mut admin, &format!("{base}/things")).await;
        assert_eq!(things["kind"], "ThingList");
    }
    let opened = outside.served.lock().unwrap().connections - before;
    assert!(opened <= 2, "{opened} connections for 20 requests");

    let merged = document(&mut admin, "/openapi/v3").await;
    let url = merged["paths"][&name]["serverRelativeURL"]
        .as_str()
        .unwrap();
    assert_eq!(url, format!("/openapi/v3/{name}?hash=1"));
    let own = merged["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str();
    assert_ne!(own, Some("/elsewhere"), "what we serve is ours to describe");
    let theirs = document(&mut admin, url).await;
    assert_eq!(theirs["openapi"], "3.0.0");
    let merged = document(&mut admin, "/openapi/v2").await;
    assert!(merged["paths"][format!("{base}/things")].is_object());
    assert_ne!(merged["paths"]["/apis/apps/v1/"]["get"], "theirs");
    assert!(merged["definitions"]["com.example.Thing"].is_object());
    let served = outside.served.lock().unwrap();
    assert!(
        served
            .sent
            .iter()
            .all(|sent| !sent.contains(&server.token().unwrap()))
    );
}
