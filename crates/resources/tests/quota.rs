//! Quotas, tried on objects in memory: alone, among many writers, and with their controller.

use std::sync::Arc;
use std::time::Duration;

use object::{Value, value};
use resources::{Controller, Resources};
use store::Revision;
use tokio::task::JoinSet;

use crate::fixture::{Ask, refusal, server};

const WRITERS: usize = 64;

/// A quota with its status, as a controller would write it.
async fn quota(resources: &Resources, hard: Value, used: Value) {
    let quotas = Ask::new(resources, "", "resourcequotas");
    let quota = value!({"metadata": {"name": "q"}, "spec": {"hard": (hard.clone())}});
    quotas.create(quota).await.unwrap();
    let status = value!({"status": {"hard": hard, "used": used}});
    let quotas = quotas.named("q").under("status");
    quotas.merge(status).await.unwrap();
}

async fn used(resources: &Resources) -> Value {
    let quotas = Ask::new(resources, "", "resourcequotas").named("q").dry();
    let quota = quotas.merge(value!({})).await.unwrap();
    let used = quota.at(&["status", "used"]);
    used.cloned().unwrap_or_default()
}

fn config_map(name: &str) -> Value {
    value!({"metadata": {"name": name}})
}

#[tokio::test]
async fn used_grows_with_each_object_and_stops_at_the_limit() {
    let resources = server().await;
    quota(
        &resources,
        value!({"configmaps": "2"}),
        value!({"configmaps": "0"}),
    )
    .await;
    let maps = Ask::new(&resources, "", "configmaps");
    maps.create(config_map("a")).await.unwrap();
    assert_eq!(used(&resources).await, value!({"configmaps": "1"}));
    let dry = Ask::new(&resources, "", "configmaps").dry();
    dry.create(config_map("b")).await.unwrap();
    assert_eq!(used(&resources).await, value!({"configmaps": "1"}));
    maps.create(config_map("b")).await.unwrap();
    let refused = "configmaps \"c\" is forbidden: exceeded quota: q, requested: configmaps=1, \
                   used: configmaps=2, limited: configmaps=2";
    assert_eq!(refusal(maps.create(config_map("c")).await), refused);
    assert_eq!(refusal(dry.create(config_map("c")).await), refused);
    // An update is no new object.
    let a = Ask::new(&resources, "", "configmaps").named("a");
    a.merge(value!({"data": {"key": "value"}})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_at_once_never_exceed_a_quota() {
    let resources = Arc::new(server().await);
    let limit = 100;
    quota(
        &resources,
        value!({"configmaps": "100", "count/configmaps": "1000"}),
        value!({"configmaps": "0", "count/configmaps": "0"}),
    )
    .await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let resources = Arc::clone(&resources);
        writers.spawn(async move {
            let mut made = 0;
            for number in 0..4 {
                let name = format!("{writer}-{number}");
                let maps = Ask::new(&resources, "", "configmaps");
                match maps.create(config_map(&name)).await {
                    Ok(_) => made += 1,
                    Err(error) => {
                        let text = error.to_string();
                        assert!(
                            text.contains("exceeded quota: q, requested: configmaps=1"),
                            "{text}"
                        );
                    }
                }
            }
            made
        });
    }
    let made: usize = writers.join_all().await.into_iter().sum();
    assert_eq!(made, limit);
    let expected = value!({"configmaps": "100", "count/configmaps": "100"});
    assert_eq!(used(&resources).await, expected);
}

/// Creators and deleters work while the controller counts: the limit holds at every revision.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_deleted_is_given_back_and_never_twice() {
    let resources = Arc::new(server().await);
    let running = resources.as_ref().clone();
    tokio::spawn(running.run_controllers(vec![Controller::ResourceQuota], String::new()));
    let limit = 20;
    let quotas = Ask::new(&resources, "", "resourcequotas");
    let wanted = value!({"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "20"}}});
    quotas.create(wanted).await.unwrap();
    until(&resources, "the quota is counted", async || {
        used(&resources).await == value!({"count/secrets": "0"})
    })
    .await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let resources = Arc::clone(&resources);
        writers.spawn(async move {
            for number in 0..6 {
                let name = format!("{writer}-{number}");
                let secrets = Ask::new(&resources, "", "secrets");
                let created = secrets
                    .create(value!({"metadata": {"name": (name.as_str())}}))
                    .await;
                let there = count(&resources, "secrets").await;
                assert!(there <= limit, "{there} secrets");
                if created.is_ok() {
                    let secrets = Ask::new(&resources, "", "secrets").named(&name);
                    secrets.delete().await.unwrap();
                }
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    until(&resources, "everything is given back", async || {
        used(&resources).await == value!({"count/secrets": "0"})
    })
    .await;
}

async fn count(resources: &Resources, resource: &str) -> usize {
    let catalogue = resources.catalogue();
    let kind = catalogue.resource("", "v1", resource).unwrap();
    resources.store().count(&kind.collection, "default/").await
}

/// Waits until something is so; only changes of the store can make it so.
async fn until(resources: &Resources, what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        let mut seen = Revision(0);
        while !is_so().await {
            seen = resources.store().newer_than(seen).await.unwrap();
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert!(waited.is_ok(), "not within 20 s: {what}");
}

#[tokio::test]
async fn the_controller_counts_what_is_there() {
    let resources = server().await;
    let pod = |name: &str| {
        value!({"metadata": {"name": name}, "spec": {"containers": [{
            "name": "main", "image": "registry.example/app:1",
            "resources": {"requests": {"cpu": "100m"}},
        }]}})
    };
    let pods = Ask::new(&resources, "", "pods");
    for name in ["a", "b"] {
        pods.create(pod(name)).await.unwrap();
    }
    let running = resources.clone();
    tokio::spawn(running.run_controllers(vec![Controller::ResourceQuota], String::new()));
    let wanted = value!({
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": "3", "requests.cpu": "1", "count/deployments.apps": "1"}},
    });
    let quotas = Ask::new(&resources, "", "resourcequotas");
    quotas.create(wanted).await.unwrap();
    until(&resources, "two pods are counted", async || {
        let expected = value!({"pods": "2", "requests.cpu": "200m", "count/deployments.apps": "0"});
        used(&resources).await == expected
    })
    .await;
    // A pod that ended gives back what it used, and only what is counted by number stays.
    let status = value!({"status": {"phase": "Succeeded"}});
    let ended = Ask::new(&resources, "", "pods").named("a").under("status");
    ended.merge(status).await.unwrap();
    until(&resources, "one pod ended", async || {
        used(&resources).await.str_at(&["pods"]) == Some("1")
    })
    .await;
    let quotas = Ask::new(&resources, "", "resourcequotas").named("q");
    let wider = value!({"spec": {"hard": {"pods": "5", "requests.cpu": null, "secrets": "9"}}});
    quotas.merge(wider).await.unwrap();
    until(&resources, "the limits are the new ones", async || {
        let expected = value!({"pods": "1", "count/deployments.apps": "0", "secrets": "0"});
        used(&resources).await == expected
    })
    .await;
}

/// A create that fails after it was charged is counted out again.
#[tokio::test]
async fn a_charge_without_an_object_is_taken_back() {
    let resources = server().await;
    let running = resources.clone();
    tokio::spawn(running.run_controllers(vec![Controller::ResourceQuota], String::new()));
    let maps = Ask::new(&resources, "", "configmaps");
    maps.create(config_map("a")).await.unwrap();
    let wanted = value!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "3"}}});
    let quotas = Ask::new(&resources, "", "resourcequotas");
    quotas.create(wanted).await.unwrap();
    let one = value!({"configmaps": "1"});
    until(&resources, "one is counted", async || {
        used(&resources).await == one
    })
    .await;
    let refused = refusal(maps.create(config_map("a")).await);
    assert_eq!(refused, "configmaps \"a\" already exists");
    until(&resources, "one is left", async || {
        used(&resources).await == one
    })
    .await;
}

/// A kind that does not exist yet is no reason to count again and again, or not at all.
#[tokio::test]
async fn what_no_kind_uses_is_left_out_of_the_count() {
    let resources = server().await;
    let running = resources.clone();
    tokio::spawn(running.run_controllers(vec![Controller::ResourceQuota], String::new()));
    let hard = value!({"configmaps": "3", "count/widgets.example.com": "1"});
    let wanted = value!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    let quotas = Ask::new(&resources, "", "resourcequotas");
    quotas.create(wanted).await.unwrap();
    let none = value!({"configmaps": "0"});
    until(&resources, "it is counted", async || {
        used(&resources).await == none
    })
    .await;
    let maps = Ask::new(&resources, "", "configmaps");
    maps.create(config_map("a")).await.unwrap();
    assert_eq!(used(&resources).await, value!({"configmaps": "1"}));
    let a = Ask::new(&resources, "", "configmaps").named("a");
    a.delete().await.unwrap();
    until(&resources, "it is given back", async || {
        used(&resources).await == none
    })
    .await;
}
