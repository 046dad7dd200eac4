//! Roles and bindings in force, and who may write them.

use std::sync::Arc;

use auth::{Aggregation, Attributes, Decision, User};
use object::{Value, value};
use resources::admission::Chain;
use resources::{Error, Resources};
use store::{FalseClock, Options, Store};

use crate::fixture::{Ask, server};

const GROUP: &str = "rbac.authorization.k8s.io";

fn jane() -> User {
    User::authenticated("jane", "", &[])
}

fn roles<'a>(resources: &'a Resources, resource: &'a str) -> Ask<'a> {
    Ask::new(resources, GROUP, resource)
}

fn by(user: User, ask: Ask<'_>) -> Ask<'_> {
    Ask { user, ..ask }
}

fn rule(resource: &str, verbs: &[&str]) -> Value {
    let verbs: Vec<Value> = verbs.iter().map(|verb| Value::from(*verb)).collect();
    let group = if resource.contains("role") { GROUP } else { "" };
    value!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    value!({
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "jane"}],
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
    })
}

/// Gives Jane a role of this name and rule in the namespace `default`.
async fn grant(resources: &Resources, name: &str, rule: Value) {
    let role = value!({"metadata": {"name": name}, "rules": [rule]});
    roles(resources, "roles").create(role).await.unwrap();
    roles(resources, "rolebindings")
        .create(binding(name, "Role", name))
        .await
        .unwrap();
}

async fn may(resources: &Resources, user: &User, verb: &str, resource: &str) -> bool {
    let (group, resource) = resource
        .split_once('.')
        .map_or(("", resource), |(it, group)| (group, it));
    let attributes = Attributes::Resource {
        verb,
        group,
        resource,
        namespace: "default",
        name: "x",
    };
    resources.authorize(user, attributes).await.unwrap() == Decision::Allow
}

async fn may_get(resources: &Resources, user: &User, path: &str) -> bool {
    let attributes = Attributes::Path { verb: "get", path };
    resources.authorize(user, attributes).await.unwrap() == Decision::Allow
}

#[tokio::test]
async fn a_change_is_in_force_for_the_next_decision() {
    let resources = server().await;
    let jane = jane();
    assert!(!may(&resources, &jane, "get", "pods").await);
    grant(&resources, "reader", rule("pods", &["get"])).await;
    assert!(may(&resources, &jane, "get", "pods").await);
    let more = value!({"rules": [(rule("pods", &["get", "list"]))]});
    roles(&resources, "roles")
        .named("reader")
        .merge(more)
        .await
        .unwrap();
    assert!(may(&resources, &jane, "list", "pods").await);
    roles(&resources, "roles")
        .named("reader")
        .delete()
        .await
        .unwrap();
    assert!(!may(&resources, &jane, "get", "pods").await);
    let refusal = resources
        .permit(
            &jane,
            Attributes::Path {
                verb: "get",
                path: "/x",
            },
        )
        .await;
    let refusal = refusal.unwrap().unwrap_err().to_string();
    assert_eq!(refusal, "forbidden: User \"jane\" cannot get path \"/x\"");
    let pods = Attributes::Resource {
        verb: "get",
        group: "",
        resource: "pods",
        namespace: "default",
        name: "x",
    };
    let reason = resources.explain(&jane, pods).await.unwrap().reason;
    assert_eq!(
        reason,
        "RBAC: role.rbac.authorization.k8s.io \"reader\" not found"
    );
}

#[tokio::test]
async fn rules_that_fell_behind_the_history_are_read_anew() {
    let clock = Arc::new(FalseClock::new(1_700_000_000_000));
    let options = Options {
        history_bytes: 4096,
        history_memory_bytes: 4096,
        clock: clock.clone(),
        ..Options::default()
    };
    let store = Store::memory(options);
    let resources = Resources::new(store, clock, Chain::without(&["ServiceAccount".to_owned()]));
    resources
        .bootstrap("127.0.0.1:6443".parse().unwrap())
        .await
        .unwrap();
    assert!(!may(&resources, &jane(), "get", "pods").await);
    grant(&resources, "reader", rule("pods", &["get"])).await;
    for number in 0..100 {
        let object = value!({"metadata": {"name": (format!("c{number}"))}});
        Ask::new(&resources, "", "configmaps")
            .create(object)
            .await
            .unwrap();
    }
    resources.store().maintain().await.unwrap();
    assert!(may(&resources, &jane(), "get", "pods").await);
}

#[tokio::test]
async fn everyones_rights_are_those_of_the_stored_roles() {
    let resources = server().await;
    let (jane, anonymous) = (jane(), User::anonymous());
    for (path, to_jane, to_anyone) in [
        ("/healthz", true, true),
        ("/version", true, true),
        ("/apis", true, false),
        ("/openapi/v3", true, false),
        ("/metrics", false, false),
        ("/healthz/ping", false, false),
    ] {
        assert_eq!(may_get(&resources, &jane, path).await, to_jane, "{path}");
        assert_eq!(
            may_get(&resources, &anonymous, path).await,
            to_anyone,
            "{path}"
        );
    }
    let review = "selfsubjectaccessreviews.authorization.k8s.io";
    assert!(may(&resources, &jane, "create", review).await);
    assert!(!may(&resources, &anonymous, "create", review).await);
    // An operator who takes the binding away takes the right away.
    roles(&resources, "clusterrolebindings")
        .named("system:discovery")
        .delete()
        .await
        .unwrap();
    assert!(!may_get(&resources, &jane, "/apis").await);
}

#[tokio::test]
async fn aggregated_roles_are_gathered_only_if_the_server_is_to() {
    for (aggregation, expected) in [(Aggregation::Stored, false), (Aggregation::Gathered, true)] {
        let resources = server().await.with_role_aggregation(aggregation);
        let admin = binding("b", "ClusterRole", "admin");
        roles(&resources, "rolebindings")
            .create(admin)
            .await
            .unwrap();
        assert_eq!(may(&resources, &jane(), "create", "pods").await, expected);
        assert!(!may(&resources, &jane(), "create", "nodes").await);
    }
}

async fn refused(attempt: impl Future<Output = Result<Value, Error>>) -> String {
    attempt.await.unwrap_err().to_string()
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_hold() {
    let resources = server().await;
    grant(&resources, "writer", rule("roles", &["create", "update"])).await;
    grant(&resources, "reader", rule("configmaps", &["get", "list"])).await;
    let writer = || by(jane(), roles(&resources, "roles"));
    let small = value!({"metadata": {"name": "r"}, "rules": [(rule("configmaps", &["get"]))]});
    writer().create(small).await.unwrap();
    let large = value!({
        "metadata": {"generateName": "r-"},
        "rules": [(rule("configmaps", &["get", "delete", "patch"])), (rule("secrets", &["get"]))],
    });
    assert_eq!(
        refused(writer().create(large.clone())).await,
        "roles.rbac.authorization.k8s.io is forbidden: user \"jane\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not \
         currently held:\n\
         {APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"delete\" \"patch\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"
    );
    // What she may not grant she may not spread by a patch either, but garbage may be collected.
    let big = value!({"metadata": {"name": "big"}, "rules": [(rule("secrets", &["get"]))]});
    roles(&resources, "roles").create(big).await.unwrap();
    let labelled = value!({"metadata": {"labels": {"a": "b"}}});
    assert!(
        refused(writer().named("big").merge(labelled))
            .await
            .contains("not currently held")
    );
    let held = value!({"metadata": {"finalizers": ["x.io/y"]}});
    writer().named("big").merge(held).await.unwrap();
    grant(&resources, "escalator", rule("roles", &["escalate"])).await;
    writer().create(large).await.unwrap();
}

#[tokio::test]
async fn nobody_binds_what_they_do_not_hold() {
    let resources = server().await;
    let big = value!({"metadata": {"name": "big"}, "rules": [(rule("secrets", &["get"]))]});
    roles(&resources, "roles").create(big).await.unwrap();
    let binder = || by(jane(), roles(&resources, "rolebindings"));
    let text = refused(binder().create(binding("b", "Role", "big"))).await;
    assert!(
        text.starts_with("rolebindings.rbac.authorization.k8s.io \"b\" is forbidden"),
        "{text}"
    );
    assert_eq!(
        refused(binder().create(binding("b", "ClusterRole", "absent"))).await,
        "rolebindings.rbac.authorization.k8s.io \"absent\" not found"
    );
    let mut bind = rule("roles", &["bind"]);
    let names = value!(["big"]);
    bind.as_object_mut().unwrap().insert("resourceNames", names);
    grant(&resources, "binder", bind).await;
    binder().create(binding("b", "Role", "big")).await.unwrap();
    let admin = refused(binder().create(binding("c", "ClusterRole", "cluster-admin"))).await;
    assert!(
        admin.contains("{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"),
        "{admin}"
    );
}

#[tokio::test]
async fn a_role_that_gathers_others_takes_full_power() {
    let resources = server().await;
    let gathering = value!({
        "metadata": {"name": "g"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    });
    let writer = by(jane(), roles(&resources, "clusterroles"));
    assert_eq!(
        refused(writer.create(gathering.clone())).await,
        "clusterroles.rbac.authorization.k8s.io \"g\" is forbidden: must have cluster-admin \
         privileges to use the aggregationRule"
    );
    let admin = binding("jane", "ClusterRole", "cluster-admin");
    roles(&resources, "clusterrolebindings")
        .create(admin)
        .await
        .unwrap();
    writer.create(gathering).await.unwrap();
}
