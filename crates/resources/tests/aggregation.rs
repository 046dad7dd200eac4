//! APIs that others serve, as far as objects tell of them.

use object::{Value, value};
use resources::{Availability, RemoteApi, Resources};

use crate::fixture::{Ask, server};

async fn api_service(resources: &Resources, name: &str) -> Option<Value> {
    let catalogue = resources.catalogue();
    let kind = catalogue.resource("apiregistration.k8s.io", "v1", "apiservices");
    let record = resources.get(kind.unwrap(), "", name, None).await.ok()?;
    let stored = resources::record::Stored::new(&record.value).unwrap();
    Some(stored.tree(None).unwrap().into())
}

/// An API of a service that may or may not be there.
async fn remote(resources: &Resources) -> RemoteApi {
    let ask = Ask::new(resources, "apiregistration.k8s.io", "apiservices");
    let object = value!({
        "metadata": {"name": "v1.example.com"},
        "spec": {
            "group": "example.com", "version": "v1",
            "groupPriorityMinimum": 100, "versionPriority": 10,
            "insecureSkipTLSVerify": true,
            "service": {"namespace": "default", "name": "api"},
        },
    });
    ask.create(object).await.unwrap();
    let (_, mut apis) = resources.remote_apis().await.unwrap();
    apis.pop().unwrap()
}

#[tokio::test]
async fn what_is_served_here_has_an_api_service_that_is_available() {
    let resources = server().await;
    tokio::spawn(resources.clone().run_registration());
    let last = "v1.flowcontrol.apiserver.k8s.io";
    let mut seen = store::Revision(0);
    while api_service(&resources, last).await.is_none() {
        seen = resources.store().newer_than(seen).await.unwrap();
    }
    let core = api_service(&resources, "v1.").await.unwrap();
    let spec = value!({"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1});
    assert_eq!(core.get("spec"), Some(&spec));
    let label = core.at(&["metadata", "labels"]).unwrap();
    let onstart = value!({"kube-aggregator.kubernetes.io/automanaged": "onstart"});
    assert_eq!(label, &onstart);
    let conditions = core.at(&["status", "conditions"]).unwrap();
    let condition = &conditions.as_array().unwrap()[0];
    assert_eq!(condition.str_at(&["reason"]), Some("Local"));
    assert!(resources.remote_apis().await.unwrap().1.is_empty());
}

#[tokio::test]
async fn why_an_api_of_others_cannot_be_reached() {
    let resources = server().await;
    let api = remote(&resources).await;
    let reason = async || match resources.locate_api(&api).await {
        Ok(place) => place,
        Err(unavailable) => format!("{}: {}", unavailable.reason, unavailable.message),
    };
    let text = "ServiceNotFound: service/api in \"default\" is not present";
    assert_eq!(reason().await, text);
    let services = Ask::new(&resources, "", "services");
    let object = value!({
        "metadata": {"name": "api"},
        "spec": {"ports": [{"name": "https", "port": 444}]},
    });
    services.create(object).await.unwrap();
    let text = "ServicePortError: service/api in \"default\" is not listening on port 443";
    assert_eq!(reason().await, text);
    let ask = services.named("api");
    let port = value!({"spec": {"ports": [{"name": "https", "port": 443}]}});
    ask.merge(port).await.unwrap();
    let text = "EndpointsNotFound: cannot find endpointslices for service/api in \"default\"";
    assert_eq!(reason().await, text);
    let slices = Ask::new(&resources, "discovery.k8s.io", "endpointslices");
    let slice = |name: &str, port: &str| {
        value!({
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "api"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.3"]}],
            "ports": [{"name": port, "port": 8443}],
        })
    };
    slices.create(slice("a", "other")).await.unwrap();
    let text = "MissingEndpoints: endpointslices for service/api in \"default\" have no addresses \
                with port name \"https\"";
    assert_eq!(reason().await, text);
    slices.create(slice("b", "https")).await.unwrap();
    assert_eq!(reason().await, "10.1.2.3:8443");
}

#[tokio::test]
async fn a_report_of_the_same_state_writes_nothing() {
    let resources = server().await;
    let api = remote(&resources).await;
    assert!(!api.available);
    let found = Availability {
        available: true,
        reason: "Passed",
        message: "all checks passed".into(),
    };
    resources.report_api(&api.name, &found).await.unwrap();
    let before = resources.store().revision();
    resources.report_api(&api.name, &found).await.unwrap();
    assert_eq!(resources.store().revision(), before);
    assert!(resources.remote_apis().await.unwrap().1[0].available);
}
