//! What a node may do, by the pods that are bound to it.

use auth::{Attributes, Decision, User};
use object::{Value, value};
use resources::Resources;
use resources::authorization::{Mode, node_mode};

use crate::fixture::{Ask, server};

async fn cluster() -> Resources {
    let resources = server().await;
    let pod = |node: &str, name: &str| {
        value!({
            "metadata": {"name": name},
            "spec": {
                "nodeName": node,
                "serviceAccountName": "robot",
                "imagePullSecrets": [{"name": "pull"}],
                "containers": [{
                    "name": "c", "image": "i",
                    "env": [{
                        "name": "A",
                        "valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}},
                    }],
                    "envFrom": [{"configMapRef": {"name": "settings"}}],
                }],
                "volumes": [
                    {"name": "s", "secret": {"secretName": "mounted"}},
                    {"name": "p", "projected": {"sources": [{"configMap": {"name": "part"}}]}},
                    {"name": "v", "persistentVolumeClaim": {"claimName": "disk"}},
                    {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    }}}},
                ],
            },
        })
    };
    let pods = Ask::new(&resources, "", "pods");
    pods.create(pod("n1", "p1")).await.unwrap();
    let mut mirror = pod("n2", "p2");
    let metadata = mirror.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.unwrap().insert(
        "annotations",
        value!({"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}),
    );
    pods.create(mirror).await.unwrap();
    let modes = vec![node_mode(&resources), Mode::Rbac];
    resources.with_authorization(modes)
}

/// Whether a node may do what the words say: verb, group, resource, namespace, name.
async fn may(resources: &Resources, node: &str, words: &str) -> bool {
    let words: Vec<&str> = words.split(' ').collect();
    let word = |place: usize| match words[place] {
        "-" => "",
        word => word,
    };
    let attributes = Attributes::Resource {
        verb: word(0),
        group: word(1),
        resource: word(2),
        namespace: word(3),
        name: word(4),
    };
    let user = User::authenticated(&format!("system:node:{node}"), "", &["system:nodes"]);
    resources.authorize(&user, attributes).await.unwrap() == Decision::Allow
}

#[tokio::test]
async fn what_a_node_may_do() {
    let resources = cluster().await;
    let allowed = [
        "get - secrets default pull",
        "get - secrets default env",
        "watch - secrets default mounted",
        "list - configmaps default settings",
        "get - configmaps default part",
        "get - persistentvolumeclaims default disk",
        "get - persistentvolumeclaims default p1-e",
        "get - pods default p1",
        "get - serviceaccounts default robot",
        "create - serviceaccounts/token default robot",
        "get coordination.k8s.io leases kube-node-lease n1",
        "update storage.k8s.io csinodes - n1",
        "get - nodes - n1",
        "patch - nodes/status - n1",
        "create - events default -",
        "create authorization.k8s.io subjectaccessreviews - -",
    ];
    let refused = [
        "get - secrets default other",
        "get - secrets kube-system pull",
        "list - secrets default -",
        "list - secrets - -",
        "update - secrets default pull",
        "get - configmaps default other",
        "get - persistentvolumeclaims default other",
        "create - serviceaccounts/token default other",
        "get coordination.k8s.io leases kube-node-lease n2",
        "get coordination.k8s.io leases default n1",
        "update storage.k8s.io csinodes - n2",
        "get - nodes - n2",
        "list - nodes - -",
        "delete - nodes - n1",
        "get - persistentvolumes - other",
        "create rbac.authorization.k8s.io clusterrolebindings - -",
    ];
    for words in allowed {
        assert!(may(&resources, "n1", words).await, "{words}");
    }
    for words in refused {
        assert!(!may(&resources, "n1", words).await, "{words}");
    }
    // A node's own mirror pods open nothing, and other nodes' pods neither.
    for node in ["n2", "n3"] {
        assert!(!may(&resources, node, "get - secrets default pull").await);
    }
}

#[tokio::test]
async fn who_is_no_node_gets_nothing() {
    let resources = cluster().await;
    let attributes = Attributes::Resource {
        verb: "get",
        group: "",
        resource: "secrets",
        namespace: "default",
        name: "pull",
    };
    for (name, groups) in [
        ("system:node:n1", &[][..]),
        ("n1", &["system:nodes"]),
        ("system:node:", &["system:nodes"]),
    ] {
        let user = User::authenticated(name, "", groups);
        let decision = resources.authorize(&user, attributes).await.unwrap();
        assert_eq!(decision, Decision::Deny, "{name}");
    }
}
