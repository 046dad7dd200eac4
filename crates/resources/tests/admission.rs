//! What plugins make of a plain create.

use object::{Value, value};

use crate::fixture::{Ask, refusal, server, server_without};

fn pod(name: &str) -> Value {
    value!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    })
}

#[tokio::test]
async fn a_plain_pod_gets_priority_and_tolerations() {
    let resources = server().await;
    let created = Ask::new(&resources, "", "pods")
        .create(pod("one"))
        .await
        .unwrap();
    let spec = created.get("spec").unwrap();
    assert_eq!(spec.get("priority"), Some(&Value::Int(0)));
    assert_eq!(
        spec.str_at(&["preemptionPolicy"]),
        Some("PreemptLowerPriority")
    );
    let tolerations = value!([
        {
            "key": "node.kubernetes.io/not-ready", "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": 300,
        },
        {
            "key": "node.kubernetes.io/unreachable", "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": 300,
        },
    ]);
    assert_eq!(spec.get("tolerations"), Some(&tolerations));
}

#[tokio::test]
async fn a_toleration_of_everything_stands_alone() {
    let resources = server().await;
    let mut wanted = pod("one");
    let all = value!([{"operator": "Exists"}]);
    let spec = wanted
        .get_mut("spec")
        .and_then(Value::as_object_mut)
        .unwrap();
    spec.insert("tolerations", all.clone());
    let created = Ask::new(&resources, "", "pods")
        .create(wanted)
        .await
        .unwrap();
    assert_eq!(created.at(&["spec", "tolerations"]), Some(&all));
}

#[tokio::test]
async fn a_plugin_that_is_switched_off_does_nothing() {
    let resources =
        server_without(&["ServiceAccount", "Priority", "DefaultTolerationSeconds"]).await;
    let created = Ask::new(&resources, "", "pods")
        .create(pod("one"))
        .await
        .unwrap();
    for field in ["priority", "preemptionPolicy", "tolerations"] {
        assert_eq!(created.at(&["spec", field]), None, "{field}");
    }
}

#[tokio::test]
async fn which_priority_a_class_gives() {
    let resources = server().await;
    let pods = Ask::new(&resources, "", "pods");
    let classes = Ask::new(&resources, "scheduling.k8s.io", "priorityclasses");
    let with = |class: &str, priority: Value| {
        let mut wanted = pod("one");
        let spec = wanted
            .get_mut("spec")
            .and_then(Value::as_object_mut)
            .unwrap();
        spec.insert("priorityClassName", class.into());
        if !priority.is_null() {
            spec.insert("priority", priority);
        }
        wanted
    };
    let refused = refusal(pods.create(with("absent", Value::Null)).await);
    assert_eq!(
        refused,
        "pods \"one\" is forbidden: no PriorityClass with name absent was found"
    );
    let refused = refusal(pods.create(with("system-node-critical", 7.into())).await);
    assert_eq!(
        refused,
        "pods \"one\" is forbidden: the integer value of priority (7) must not be provided in pod \
         spec; priority admission controller computed 2000001000 from the given PriorityClass name"
    );
    let class = |name: &str| {
        value!({
            "metadata": {"name": name}, "value": 5, "globalDefault": true,
            "preemptionPolicy": "Never",
        })
    };
    classes.create(class("usual")).await.unwrap();
    let refused = refusal(classes.create(class("other")).await);
    assert_eq!(
        refused,
        "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass usual is already \
         marked as default. Only one default can exist"
    );
    let created = pods.create(pod("two")).await.unwrap();
    let spec = created.get("spec").unwrap();
    assert_eq!(spec.str_at(&["priorityClassName"]), Some("usual"));
    assert_eq!(spec.get("priority"), Some(&Value::Int(5)));
    assert_eq!(spec.str_at(&["preemptionPolicy"]), Some("Never"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_as_an_account_that_exists() {
    let resources = server_without(&[]).await;
    let pods = Ask::new(&resources, "", "pods");
    let refused = refusal(pods.create(pod("one")).await);
    assert_eq!(
        refused,
        "pods \"one\" is forbidden: error looking up service account default/default: \
         serviceaccount \"default\" not found"
    );
    let account = value!({"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "pull"}]});
    Ask::new(&resources, "", "serviceaccounts")
        .create(account)
        .await
        .unwrap();
    let created = pods.create(pod("one")).await.unwrap();
    let spec = created.get("spec").unwrap();
    assert_eq!(spec.str_at(&["serviceAccountName"]), Some("default"));
    assert_eq!(spec.str_at(&["serviceAccount"]), Some("default"));
    assert_eq!(
        spec.get("imagePullSecrets"),
        Some(&value!([{"name": "pull"}]))
    );
    let volumes = spec.get("volumes").and_then(Value::as_array).unwrap();
    let name = volumes[0].str_at(&["name"]).unwrap();
    assert!(
        name.starts_with("kube-api-access-") && name.len() == 21,
        "{name}"
    );
    let container = &spec.get("containers").and_then(Value::as_array).unwrap()[0];
    let mount = value!([{
        "name": name, "readOnly": true,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }]);
    assert_eq!(container.get("volumeMounts"), Some(&mount));
}

#[tokio::test]
async fn storage_objects_are_protected_and_nodes_tainted() {
    let resources = server().await;
    let claim = value!({
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let created = Ask::new(&resources, "", "persistentvolumeclaims")
        .create(claim.clone())
        .await
        .unwrap();
    let finalizers = value!(["kubernetes.io/pvc-protection"]);
    assert_eq!(created.at(&["metadata", "finalizers"]), Some(&finalizers));
    assert_eq!(created.at(&["spec", "storageClassName"]), None);
    let node = value!({"metadata": {"name": "n"}});
    let created = Ask::new(&resources, "", "nodes")
        .create(node)
        .await
        .unwrap();
    let taints = value!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    assert_eq!(created.at(&["spec", "taints"]), Some(&taints));

    let classes = Ask::new(&resources, "storage.k8s.io", "storageclasses");
    for (name, mark) in [("a", "false"), ("b", "true"), ("c", "true")] {
        let annotations = value!({"storageclass.kubernetes.io/is-default-class": mark});
        let class = value!({
            "metadata": {"name": name, "annotations": annotations},
            "provisioner": "example.com/disk",
        });
        classes.create(class).await.unwrap();
    }
    let ask = Ask::new(&resources, "", "persistentvolumeclaims").dry();
    let mut other = claim;
    other
        .get_mut("metadata")
        .unwrap()
        .as_object_mut()
        .unwrap()
        .insert("name", "x".into());
    let created = ask.create(other).await.unwrap();
    assert_eq!(created.str_at(&["spec", "storageClassName"]), Some("b"));
}

#[tokio::test]
async fn the_classes_of_the_system_stay() {
    let resources = server().await;
    let ask = Ask::new(&resources, "scheduling.k8s.io", "priorityclasses");
    let refused = ask
        .named("system-node-critical")
        .delete()
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "priorityclasses.scheduling.k8s.io \"system-node-critical\" is forbidden: this is a system \
         priority class and cannot be deleted"
    );
}
