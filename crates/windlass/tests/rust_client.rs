//! What a program written with the `kube` crate sees of a server process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures_util::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::config::{Config, Kubeconfig};
use kube::{Api, Client, Error, ResourceExt as _};
use serde_json::{Value, json};
use testkit::{Launch, TestServer};

pub(crate) fn start() -> TestServer {
    Launch::new()
        .binary(env!("CARGO_BIN_EXE_windlass"))
        .start()
        .unwrap()
}

pub(crate) async fn client(server: &TestServer) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

fn config_map(name: &str, colour: &str) -> ConfigMap {
    let value = json!({"metadata": {"name": name}, "data": {"colour": colour}});
    serde_json::from_value(value).unwrap()
}

fn colour(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["colour"]
}

#[tokio::test]
async fn a_new_server_has_its_namespaces() {
    let server = start();
    let namespaces: Api<Namespace> = Api::all(client(&server).await);
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        assert!(namespaces.get_opt(name).await.unwrap().is_some(), "{name}");
    }
    assert!(namespaces.get_opt("nowhere").await.unwrap().is_none());
}

#[tokio::test]
async fn objects_are_created_listed_in_pages_and_deleted() {
    let server = start();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    for number in 0..5 {
        let wanted = config_map(&format!("page-{number}"), "blue");
        maps.create(&PostParams::default(), &wanted).await.unwrap();
    }
    let mut names = Vec::new();
    let mut parameters = ListParams::default()
        .limit(2)
        .fields("metadata.name!=kube-root-ca.crt");
    loop {
        let page = maps.list(&parameters).await.unwrap();
        names.extend(page.items.iter().map(|item| item.name_any()));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["page-0", "page-1", "page-2", "page-3", "page-4"]);
    maps.delete("page-0", &DeleteParams::default())
        .await
        .unwrap();
    assert!(maps.get_opt("page-0").await.unwrap().is_none());
}

#[tokio::test]
async fn a_watch_shows_what_happens_after_its_revision() {
    let server = start();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    let first = maps
        .create(&PostParams::default(), &config_map("seen", "blue"))
        .await
        .unwrap();
    let revision = first.resource_version().unwrap();
    let events = maps
        .watch(
            &WatchParams::default().fields("metadata.name=seen"),
            &revision,
        )
        .await
        .unwrap();
    let merge = Patch::Merge(json!({"data": {"colour": "red"}}));
    maps.patch("seen", &PatchParams::default(), &merge)
        .await
        .unwrap();
    maps.delete("seen", &DeleteParams::default()).await.unwrap();
    let mut events = events.boxed();
    let changed = events.next().await.unwrap().unwrap();
    assert!(
        matches!(&changed, WatchEvent::Modified(map) if colour(map) == "red"),
        "{changed:?}"
    );
    let gone = events.next().await.unwrap().unwrap();
    assert!(
        matches!(&gone, WatchEvent::Deleted(map) if colour(map) == "red"),
        "{gone:?}"
    );
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let mut server = start();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    let kept = maps
        .create(&PostParams::default(), &config_map("kept", "blue"))
        .await
        .unwrap();
    server.restart().unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    let found = maps.get("kept").await.unwrap();
    assert_eq!(found, kept);
}

fn deployment(replicas: Option<i32>, image: &str) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        },
    });
    if let Some(replicas) = replicas {
        spec["replicas"] = json!(replicas);
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

#[tokio::test]
async fn appliers_conflict_share_and_take_over() {
    let server = start();
    let deployments: Api<Deployment> = Api::default_namespaced(client(&server).await);
    let apply = async |manager: &str, wanted: Value, force: bool| {
        let mut parameters = PatchParams::apply(manager);
        parameters.force = force;
        deployments
            .patch("web", &parameters, &Patch::Apply(wanted))
            .await
    };
    apply("one", deployment(Some(3), "app:1"), false)
        .await
        .unwrap();
    let refused = apply("two", deployment(Some(5), "app:1"), false)
        .await
        .unwrap_err();
    let Error::Api(status) = refused else {
        panic!("not an answer: {refused}")
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(
        status
            .message
            .contains(r#"conflict with "one": .spec.replicas"#),
        "{status:?}"
    );
    let taken = apply("two", deployment(Some(5), "app:1"), true)
        .await
        .unwrap();
    assert_eq!(taken.spec.replicas, Some(5));
    // The first applier lets go of replicas: they stay, for the second one owns them.
    let shared = apply("one", deployment(None, "app:1"), false)
        .await
        .unwrap();
    assert_eq!(shared.spec.replicas, Some(5));
    let managers: Vec<_> = shared
        .managed_fields()
        .iter()
        .filter_map(|entry| entry.manager.as_deref())
        .collect();
    assert_eq!(managers, ["one", "two"]);
}
