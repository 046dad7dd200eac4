//! Actions on objects: binding, eviction, and what a create or delete says besides.

use object::{Value, value};
use resources::Error;

use crate::fixture::{Ask, refusal, server};

fn pod(name: &str) -> Value {
    value!({
        "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    })
}

fn binding(name: &str, node: &str) -> Value {
    value!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}})
}

fn eviction(name: &str) -> Value {
    value!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let resources = server().await;
    let pods = Ask::new(&resources, "", "pods");
    pods.create(pod("one")).await.unwrap();
    let bind = Ask::new(&resources, "", "pods")
        .named("one")
        .under("binding");
    let refused = refusal(bind.create(binding("two", "n1")).await);
    assert_eq!(refused, "name in URL does not match name in Binding object");
    assert_eq!(
        refusal(bind.create(binding("one", "")).await),
        "target.name: Required value"
    );
    let done = bind.create(binding("one", "n1")).await.unwrap();
    assert_eq!(done.str_at(&["status"]), Some("Success"));
    let refused = refusal(bind.create(binding("one", "n2")).await);
    assert_eq!(
        refused,
        "Operation cannot be fulfilled on pods/binding \"one\": pod one is already assigned to node \
         \"n1\""
    );
    let one = Ask::new(&resources, "", "pods").named("one");
    let bound = one.merge(value!({})).await.unwrap();
    assert_eq!(bound.str_at(&["spec", "nodeName"]), Some("n1"));
    assert_eq!(bound.at(&["metadata", "generation"]), Some(&Value::Int(1)));
    let conditions = bound
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap();
    assert_eq!(conditions[0].str_at(&["type"]), Some("PodScheduled"));

    pods.create(pod("two")).await.unwrap();
    let old_way = Ask::new(&resources, "", "bindings");
    old_way.create(binding("two", "n1")).await.unwrap();
    let absent = old_way.create(binding("three", "n1")).await;
    assert!(matches!(absent, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn an_action_needs_its_namespace_first() {
    let resources = server().await;
    let pods = || {
        Ask::new(&resources, "", "pods")
            .within("nowhere")
            .named("one")
    };
    // Neither names the pod of the path, which would be told where there is a namespace.
    let said = refusal(pods().under("binding").create(binding("two", "n1")).await);
    assert_eq!(said, "namespaces \"nowhere\" not found");
    let said = refusal(pods().under("eviction").create(eviction("two")).await);
    assert_eq!(said, "namespaces \"nowhere\" not found");
}

#[tokio::test]
async fn a_budget_stops_an_eviction() {
    let resources = server().await;
    let budgets = Ask::new(&resources, "policy", "poddisruptionbudgets");
    let selector = value!({"matchLabels": {"app": "a"}});
    let budget = value!({
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": selector},
    });
    budgets.create(budget).await.unwrap();
    let pods = Ask::new(&resources, "", "pods");
    for name in ["one", "two"] {
        pods.create(pod(name)).await.unwrap();
        let ready = value!([{"type": "Ready", "status": "True"}]);
        let status = value!({"status": {"phase": "Running", "conditions": ready}});
        let ask = Ask::new(&resources, "", "pods").named(name).under("status");
        ask.merge(status).await.unwrap();
    }
    let evict = Ask::new(&resources, "", "pods")
        .named("one")
        .under("eviction");
    let waiting = evict.create(eviction("one")).await;
    let Err(Error::TooManyRequests {
        causes,
        retry_after_seconds,
        ..
    }) = waiting
    else {
        panic!("{waiting:?}");
    };
    assert_eq!(retry_after_seconds, 10);
    assert_eq!(
        causes[0].message,
        "The disruption budget b is still being processed by the server."
    );
    let status = value!({
        "status": {
            "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
            "desiredHealthy": 1, "expectedPods": 2,
        },
    });
    let ask = Ask::new(&resources, "policy", "poddisruptionbudgets")
        .named("b")
        .under("status");
    ask.merge(status).await.unwrap();
    evict.create(eviction("one")).await.unwrap();
    let gone = Ask::new(&resources, "", "pods")
        .named("one")
        .merge(value!({}))
        .await;
    assert!(matches!(gone, Err(Error::NotFound(_))));
    let other = Ask::new(&resources, "", "pods")
        .named("two")
        .under("eviction");
    let Err(Error::TooManyRequests { causes, .. }) = other.create(eviction("two")).await else {
        panic!("the budget is used up");
    };
    assert_eq!(
        causes[0].message,
        "The disruption budget b needs 1 healthy pods and has 2 currently"
    );
}

#[tokio::test]
async fn a_pod_that_does_not_run_is_evicted_at_once() {
    let resources = server().await;
    let pods = Ask::new(&resources, "", "pods");
    pods.create(pod("one")).await.unwrap();
    let evict = Ask::new(&resources, "", "pods")
        .named("one")
        .under("eviction");
    let refused = refusal(evict.create(eviction("two")).await);
    assert_eq!(
        refused,
        "name in URL does not match name in Eviction object"
    );
    evict.create(eviction("one")).await.unwrap();
    let again = evict.create(eviction("one")).await;
    assert!(matches!(again, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn what_a_path_to_a_node_answers() {
    let resources = server().await;
    Ask::new(&resources, "", "pods")
        .create(pod("one"))
        .await
        .unwrap();
    let connect = |subresource| {
        Ask::new(&resources, "", "pods")
            .named("one")
            .under(subresource)
    };
    connect("log").connect("").await.unwrap();
    let cases = [
        ("log", "other", "container other is not valid for pod one"),
        ("exec", "", "pod one does not have a host assigned"),
        ("proxy", "", "address not allowed"),
    ];
    for (subresource, container, wanted) in cases {
        let refused = connect(subresource).connect(container).await.unwrap_err();
        assert_eq!(refused.to_string(), wanted, "{subresource}");
    }
    connect("binding")
        .create(binding("one", "n1"))
        .await
        .unwrap();
    let refused = connect("log").connect("").await.unwrap_err();
    assert_eq!(refused.to_string(), "pods \"n1\" not found");
}

#[tokio::test]
async fn deleting_a_job_without_a_policy_warns() {
    let resources = server().await;
    let template = value!({
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "registry.example/app:1"}],
        },
    });
    let job = value!({"metadata": {"name": "one"}, "spec": {"template": template}});
    Ask::new(&resources, "batch", "jobs")
        .create(job)
        .await
        .unwrap();
    let ask = Ask::new(&resources, "batch", "jobs").named("one");
    ask.delete().await.unwrap();
    let said = ask.warnings.take();
    assert!(
        said[0].starts_with("child pods are preserved by default"),
        "{said:?}"
    );
}

#[tokio::test]
async fn an_eviction_is_tried_in_the_ways_that_a_deletion_is() {
    let resources = server().await;
    let pod = value!({"metadata": {"name": "one"}, "spec": {
        "containers": [{"name": "main", "image": "registry.example/app:1"}]}});
    let pods = Ask::new(&resources, "", "pods");
    pods.create(pod).await.unwrap();
    let evict = pods.named("one").under("eviction");
    let eviction = value!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": "one"}, "deleteOptions": {"dryRun": ["Some"]}});
    assert_eq!(
        refusal(evict.create(eviction).await),
        "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: \
         supported values: \"All\""
    );
}
