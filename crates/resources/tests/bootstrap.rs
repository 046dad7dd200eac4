//! The objects that a server makes for itself.

use std::net::SocketAddr;
use std::sync::Arc;

use object::{Value, json, value};
use resources::Resources;
use resources::admission::Chain;
use resources::record::Stored;
use store::{FalseClock, Options, Store};

/// Starts on this address, with what earlier starts left.
async fn start(store: &Store, address: &str) -> Resources {
    let clock = Arc::new(FalseClock::new(1_700_000_000_000));
    let chain = Chain::without(&["ServiceAccount".to_owned()]);
    let resources = Resources::new(store.clone(), clock, chain);
    let address: SocketAddr = address.parse().unwrap();
    resources.bootstrap(address).await.unwrap();
    resources
}

/// An object, and the list of its managers.
async fn read(resources: &Resources, group: &str, resource: &str, name: &str) -> (Value, Value) {
    let catalogue = resources.catalogue();
    let kind = catalogue.resource(group, "v1", resource).unwrap();
    let namespace = match (kind.namespaced, resource) {
        (false, _) => "",
        (true, "configmaps") => "kube-system",
        (true, _) => "default",
    };
    let record = resources.get(kind, namespace, name, None).await.unwrap();
    let stored = Stored::new(&record.value).unwrap();
    let managers = json::parse(stored.managed_fields()).unwrap();
    (stored.tree(None).unwrap().into(), managers)
}

#[tokio::test]
async fn the_address_of_the_server_is_told_anew_at_every_start() {
    let store = Store::memory(Options::default());
    for (address, ip, port) in [
        ("192.0.2.7:6443", "192.0.2.7", 6443),
        ("192.0.2.8:7443", "192.0.2.8", 7443),
    ] {
        let resources = start(&store, address).await;
        let (service, _) = read(&resources, "", "services", "kubernetes").await;
        assert_eq!(
            service.at(&["spec", "ports"]),
            Some(&value!([
                {"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}
            ]))
        );
        let (endpoints, _) = read(&resources, "", "endpoints", "kubernetes").await;
        let ports = value!([{"name": "https", "protocol": "TCP", "port": port}]);
        assert_eq!(
            endpoints.get("subsets"),
            Some(&value!([{"addresses": [{"ip": ip}], "ports": (ports.clone())}]))
        );
        let (slice, _) = read(
            &resources,
            "discovery.k8s.io",
            "endpointslices",
            "kubernetes",
        )
        .await;
        assert_eq!(
            slice.get("endpoints"),
            Some(&value!([{"addresses": [ip], "conditions": {"ready": true}}]))
        );
        assert_eq!(slice.get("ports"), Some(&ports));
    }
    // A slice is of one family for good; the server starts all the same.
    start(&store, "[2001:db8::1]:6443").await;
}

#[tokio::test]
async fn a_start_that_finds_everything_in_place_writes_nothing() {
    let store = Store::memory(Options::default());
    start(&store, "192.0.2.7:6443").await;
    let before = store.revision();
    start(&store, "192.0.2.7:6443").await;
    assert_eq!(store.revision(), before);
}

#[tokio::test]
async fn bootstrap_objects_belong_to_those_who_make_them_upstream() {
    let store = Store::memory(Options::default());
    let resources = start(&store, "192.0.2.7:6443").await;
    let flow = "flowcontrol.apiserver.k8s.io";
    for (group, resource, name, expected) in [
        (
            "",
            "services",
            "kubernetes",
            &[["kube-apiserver", "Update", ""]][..],
        ),
        (
            flow,
            "flowschemas",
            "exempt",
            &[["api-priority-and-fairness-config-producer-v1", "Update", ""]],
        ),
        (
            "networking.k8s.io",
            "servicecidrs",
            "kubernetes",
            &[
                ["kubernetes-service-cidr-controller", "Apply", "status"],
                ["kube-apiserver", "Update", ""],
            ],
        ),
    ] {
        let (_, managers) = read(&resources, group, resource, name).await;
        let managers = managers.as_array().unwrap().iter();
        let fields = ["manager", "operation", "subresource"];
        let managers =
            managers.map(|entry| fields.map(|field| entry.str_at(&[field]).unwrap_or_default()));
        assert_eq!(managers.collect::<Vec<_>>(), expected, "{resource}");
    }
}

#[tokio::test]
async fn controllers_find_the_day_since_when_tokens_are_tracked() {
    let store = Store::memory(Options::default());
    let resources = start(&store, "192.0.2.7:6443").await;
    let name = "kube-apiserver-legacy-service-account-token-tracking";
    let since = value!({"since": "2023-11-14"});
    let (found, _) = read(&resources, "", "configmaps", name).await;
    assert_eq!(found.get("data"), Some(&since));
}
