//! The controllers inside, tried on objects in memory.

use std::time::Duration;

use object::{Value, value};
use resources::options::{DeleteOptions, Propagation};
use resources::record::Stored;
use resources::{Controller, Error, Resources};
use store::Revision;

use crate::fixture::{Ask, server};

/// A server whose controllers run.
async fn tended() -> Resources {
    let resources = server().await;
    let all = Controller::ALL.to_vec();
    tokio::spawn(
        resources
            .clone()
            .run_controllers(all, "a certificate".into()),
    );
    resources
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

fn config_map(name: &str) -> Value {
    value!({"metadata": {"name": name}})
}

/// A ConfigMap that another one owns.
fn owned(name: &str, owner: &Value) -> Value {
    let uid = owner.str_at(&["metadata", "uid"]).unwrap();
    let owner_name = owner.str_at(&["metadata", "name"]).unwrap();
    owned_by(name, "v1", "ConfigMap", owner_name, uid)
}

fn owned_by(name: &str, version: &str, kind: &str, owner: &str, uid: &str) -> Value {
    value!({"metadata": {"name": name, "ownerReferences": [{
        "apiVersion": version, "kind": kind, "name": owner, "uid": uid,
        "blockOwnerDeletion": true,
    }]}})
}

async fn make(resources: &Resources, object: Value) -> Value {
    let ask = Ask::new(resources, "", "configmaps");
    ask.create(object).await.unwrap()
}

/// A ConfigMap as it is stored.
async fn stored(resources: &Resources, name: &str) -> Option<Value> {
    let kind = kinds::Catalogue::builtin().resource("", "v1", "configmaps");
    match resources.get(kind.unwrap(), "default", name, None).await {
        Ok(record) => {
            let stored = Stored::new(&record.value).unwrap();
            Some(stored.tree(Some(record.revision)).unwrap().into())
        }
        Err(Error::NotFound(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

async fn delete(resources: &Resources, name: &str, propagation: Propagation) {
    let options = DeleteOptions {
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    let ask = Ask::new(resources, "", "configmaps").named(name);
    ask.delete_with(options).await.unwrap();
}

#[tokio::test]
async fn what_depends_on_a_deleted_owner_goes_after_it() {
    let resources = tended().await;
    let owner = make(&resources, config_map("owner")).await;
    let child = make(&resources, owned("child", &owner)).await;
    make(&resources, owned("grandchild", &child)).await;
    make(&resources, config_map("stranger")).await;
    delete(&resources, "owner", Propagation::Background).await;
    until(&resources, "both are collected", async || {
        stored(&resources, "grandchild").await.is_none()
    })
    .await;
    assert!(stored(&resources, "child").await.is_none());
    assert!(stored(&resources, "stranger").await.is_some());
}

#[tokio::test]
async fn an_owner_deleted_in_the_foreground_goes_last() {
    let resources = tended().await;
    let owner = make(&resources, config_map("owner")).await;
    let child = make(&resources, owned("child", &owner)).await;
    make(&resources, owned("grandchild", &child)).await;
    let start = resources.store().revision();
    delete(&resources, "owner", Propagation::Foreground).await;
    until(&resources, "all are collected", async || {
        stored(&resources, "owner").await.is_none()
    })
    .await;
    let kind = kinds::Catalogue::builtin().resource("", "v1", "configmaps");
    let collection = &kind.unwrap().collection;
    let mut watch = resources.store().watch(collection, start).await.unwrap();
    let mut gone = Vec::new();
    while let Some(event) = watch.try_next().unwrap() {
        if event.deleted {
            gone.push(event.record.name.to_string());
        }
    }
    let order = ["default/grandchild", "default/child", "default/owner"];
    assert_eq!(gone, order);
}

#[tokio::test]
async fn a_circle_deleted_in_the_foreground_comes_to_an_end() {
    let resources = tended().await;
    let one = make(&resources, config_map("one")).await;
    let two = make(&resources, owned("two", &one)).await;
    let circle = owned("one", &two);
    let references = circle.at(&["metadata", "ownerReferences"]).unwrap().clone();
    let ask = Ask::new(&resources, "", "configmaps").named("one");
    let patch = value!({"metadata": {"ownerReferences": references}});
    ask.merge(patch).await.unwrap();
    delete(&resources, "one", Propagation::Foreground).await;
    until(&resources, "both are gone", async || {
        stored(&resources, "one").await.is_none() && stored(&resources, "two").await.is_none()
    })
    .await;
}

#[tokio::test]
async fn orphans_stay_and_forget_their_owner() {
    let resources = tended().await;
    let owner = make(&resources, config_map("owner")).await;
    make(&resources, owned("child", &owner)).await;
    delete(&resources, "owner", Propagation::Orphan).await;
    until(&resources, "the owner is gone", async || {
        stored(&resources, "owner").await.is_none()
    })
    .await;
    let child = stored(&resources, "child").await.unwrap();
    assert!(child.at(&["metadata", "ownerReferences"]).is_none());
}

#[tokio::test]
async fn which_references_to_absent_owners_are_collected() {
    let resources = tended().await;
    let namespaces = Ask::new(&resources, "", "namespaces");
    let space = namespaces.create(config_map("space")).await.unwrap();
    let space = space.str_at(&["metadata", "uid"]).unwrap();
    let living = make(&resources, config_map("living")).await;
    let uid = living.str_at(&["metadata", "uid"]).unwrap();
    let other = "11111111-2222-3333-4444-555555555555";
    let cases = [
        ("never-there", "v1", "ConfigMap", "nobody", other, false),
        ("another-uid", "v1", "ConfigMap", "living", other, false),
        ("living-owner", "v1", "ConfigMap", "living", uid, true),
        ("cluster-owner", "v1", "Namespace", "space", space, true),
        ("unknown-kind", "example.com/v1", "Widget", "w", other, true),
    ];
    for (name, version, kind, owner, uid, _) in cases {
        make(&resources, owned_by(name, version, kind, owner, uid)).await;
    }
    until(&resources, "absent owners are noticed", async || {
        let mut left = Vec::new();
        for (name, .., stays) in cases {
            if stored(&resources, name).await.is_some() != stays {
                left.push(name);
            }
        }
        left.is_empty()
    })
    .await;
}

#[tokio::test]
async fn one_living_owner_is_enough_and_the_dead_one_is_forgotten() {
    let resources = tended().await;
    let living = make(&resources, config_map("living")).await;
    let dying = make(&resources, config_map("dying")).await;
    let mut child = owned("child", &living);
    let second = owned("child", &dying);
    let second = second.at(&["metadata", "ownerReferences"]).unwrap();
    let second = second.as_array().unwrap()[0].clone();
    let metadata = child.get_mut("metadata").unwrap();
    let list = metadata.get_mut("ownerReferences").unwrap();
    list.as_array_mut().unwrap().push(second);
    make(&resources, child).await;
    delete(&resources, "dying", Propagation::Background).await;
    until(&resources, "the dead owner is forgotten", async || {
        let child = stored(&resources, "child").await.unwrap();
        let owners = child.at(&["metadata", "ownerReferences"]).unwrap();
        owners.as_array().unwrap().len() == 1
    })
    .await;
}

#[tokio::test]
async fn an_object_of_the_cluster_is_not_owned_by_one_of_a_namespace() {
    let resources = tended().await;
    let roles = Ask::new(&resources, "rbac.authorization.k8s.io", "clusterroles");
    let uid = "11111111-2222-3333-4444-555555555555";
    let role = owned_by("role", "v1", "ConfigMap", "nobody", uid);
    roles.create(role).await.unwrap();
    // What is written later is looked at later: once it is gone, the role has been looked at.
    make(
        &resources,
        owned_by("later", "v1", "ConfigMap", "nobody", uid),
    )
    .await;
    until(&resources, "absent owners are noticed", async || {
        stored(&resources, "later").await.is_none()
    })
    .await;
    let kind = roles.resources.catalogue();
    let kind = kind.resource("rbac.authorization.k8s.io", "v1", "clusterroles");
    resources
        .get(kind.unwrap(), "", "role", None)
        .await
        .unwrap();
}

#[tokio::test]
async fn rules_of_chosen_cluster_roles_are_aggregated() {
    let resources = tended().await;
    let ask = Ask::new(&resources, "rbac.authorization.k8s.io", "clusterroles");
    let role = value!({
        "metadata": {"name": "all"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"add": "true"}}]},
    });
    ask.create(role).await.unwrap();
    let rule = value!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let part = value!({
        "metadata": {"name": "part", "labels": {"add": "true"}},
        "rules": [(rule.clone())],
    });
    ask.create(part).await.unwrap();
    let rules = async |name: &str| {
        let kind = resources.catalogue();
        let kind = kind.resource("rbac.authorization.k8s.io", "v1", "clusterroles");
        let record = resources.get(kind.unwrap(), "", name, None).await.unwrap();
        let stored = Stored::new(&record.value).unwrap();
        let tree = Value::from(stored.tree(None).unwrap());
        tree.get("rules").cloned().unwrap_or_default()
    };
    until(&resources, "the rule arrives", async || {
        rules("all").await == value!([(rule.clone())])
    })
    .await;
    until(&resources, "the bootstrap's roles are filled", async || {
        let rules = rules("admin").await;
        rules.as_array().is_some_and(|rules| rules.len() > 10)
    })
    .await;
    ask.named("part").delete().await.unwrap();
    until(&resources, "the rule leaves", async || {
        rules("all").await.as_array().unwrap_or_default().is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_policy_says_which_expressions_do_not_fit() {
    let resources = tended().await;
    let group = "admissionregistration.k8s.io";
    let ask = Ask::new(&resources, group, "validatingadmissionpolicies");
    let policy = value!({
        "metadata": {"name": "policy"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"],
                "resources": ["deployments"],
            }]},
            "validations": [{"expression": "object.spec.replicas == 'x'"}],
        },
    });
    ask.create(policy).await.unwrap();
    let status = async || {
        let kind = resources.catalogue();
        let kind = kind.resource(group, "v1", "validatingadmissionpolicies");
        let record = resources
            .get(kind.unwrap(), "", "policy", None)
            .await
            .unwrap();
        let tree = Stored::new(&record.value).unwrap().tree(None).unwrap();
        Value::from(tree).get("status").cloned().unwrap_or_default()
    };
    until(&resources, "the status arrives", async || {
        status().await.get("observedGeneration") == Some(&Value::Int(1))
    })
    .await;
    let warnings = status().await;
    let warnings = warnings
        .get("typeChecking")
        .and_then(|it| it.get("expressionWarnings"));
    let warning = &warnings.and_then(Value::as_array).unwrap_or_default()[0];
    let field = warning.str_at(&["fieldRef"]);
    assert_eq!(field, Some("spec.validations[0].expression"));
    let text = warning.str_at(&["warning"]).unwrap_or_default();
    assert!(
        text.starts_with("apps/v1, Kind=Deployment: ERROR: "),
        "{text}"
    );
}

#[tokio::test]
async fn a_namespace_that_cannot_go_says_what_remains() {
    let resources = tended().await;
    let namespaces = Ask::new(&resources, "", "namespaces");
    let space = namespaces.create(config_map("space")).await.unwrap();
    let kind = kinds::Catalogue::builtin().resource("", "v1", "configmaps");
    let kind = kind.unwrap();
    let held = value!({"metadata": {
        "name": "held", "namespace": "space", "finalizers": ["example.com/hold"],
    }});
    let ask = Ask::new(&resources, "", "configmaps").within("space");
    ask.create(held).await.unwrap();
    assert!(space.str_at(&["status", "phase"]) == Some("Active"));
    Ask::new(&resources, "", "namespaces")
        .named("space")
        .delete()
        .await
        .unwrap();
    let message = async || {
        let kind = kinds::Catalogue::builtin().resource("", "v1", "namespaces");
        let record = resources.get(kind.unwrap(), "", "space", None).await.ok()?;
        let tree = Stored::new(&record.value).unwrap().tree(None).unwrap();
        let tree = Value::from(tree);
        let conditions = tree.at(&["status", "conditions"])?.as_array()?;
        let remains = conditions
            .iter()
            .find(|it| it.str_at(&["type"]) == Some("NamespaceFinalizersRemaining"))?;
        remains.str_at(&["message"]).map(str::to_owned)
    };
    until(&resources, "the status says what remains", async || {
        message().await.as_deref()
            == Some(
                "Some content in the namespace has finalizers remaining: example.com/hold in 1 \
                 resource instances",
            )
    })
    .await;
    let free = value!({"metadata": {"finalizers": null}});
    let ask = Ask::new(&resources, "", "configmaps").within("space");
    ask.named("held").merge(free).await.unwrap();
    until(&resources, "the namespace is gone", async || {
        let kind = kinds::Catalogue::builtin().resource("", "v1", "namespaces");
        let found = resources.get(kind.unwrap(), "", "space", None).await;
        found.is_err()
    })
    .await;
    assert_eq!(resources.store().count(&kind.collection, "space/").await, 0);
}
