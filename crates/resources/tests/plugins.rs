//! What each plugin makes of a write: what it fills in, lets pass and refuses.

use auth::User;
use object::{Map, Value, value};
use resources::Resources;

use crate::fixture::{Ask, refusal, server, server_with, server_without};

/// A pod whose spec has more in it than a container.
pub(crate) fn pod(name: &str, more: Value) -> Value {
    let mut spec = Map::new();
    let container = value!({"name": "main", "image": "registry.example/app:1"});
    spec.insert("containers", value!([container]));
    for (key, value) in more.as_object().unwrap().iter() {
        spec.insert(key.clone(), value.clone());
    }
    value!({"metadata": {"name": name}, "spec": spec})
}

fn with_resources(name: &str, resources: Value) -> Value {
    let container =
        value!({"name": "main", "image": "registry.example/app:1", "resources": resources});
    pod(name, value!({"containers": [container]}))
}

pub(crate) async fn make(
    resources: &Resources,
    group: &str,
    resource: &str,
    object: Value,
) -> Value {
    let ask = Ask::new(resources, group, resource);
    ask.create(object).await.unwrap()
}

pub(crate) async fn pod_refusal(resources: &Resources, pod: Value) -> String {
    let text = refusal(Ask::new(resources, "", "pods").create(pod).await);
    let (_, detail) = text.split_once(" is forbidden: ").unwrap_or(("", &text));
    detail.to_owned()
}

async fn annotate_namespace(resources: &Resources, annotations: Value) {
    let ask = Ask::new(resources, "", "namespaces").named("default");
    let patch = value!({"metadata": {"annotations": annotations}});
    ask.merge(patch).await.unwrap();
}

#[tokio::test]
async fn limit_ranges_fill_in_and_bound() {
    let resources = server().await;
    let range = value!({
        "metadata": {"name": "range"},
        "spec": {"limits": [
            {
                "type": "Container",
                "default": {"cpu": "500m", "memory": "256Mi"},
                "defaultRequest": {"cpu": "100m"},
                "min": {"cpu": "50m"}, "max": {"cpu": "1"},
                "maxLimitRequestRatio": {"cpu": "5"},
            },
            {"type": "Pod", "max": {"memory": "1Gi"}},
            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}},
        ]},
    });
    make(&resources, "", "limitranges", range).await;
    let first = value!([{"name": "first", "image": "registry.example/app:1"}]);
    let filled = pod("filled", value!({"initContainers": first}));
    let filled = make(&resources, "", "pods", filled).await;
    let annotation = filled.at(&["metadata", "annotations", "kubernetes.io/limit-ranger"]);
    assert_eq!(
        annotation.and_then(Value::as_str),
        Some(
            "LimitRanger plugin set: cpu, memory request for container main; cpu, memory limit for \
             container main; cpu, memory request for init container first; cpu, memory limit for \
             init container first"
        )
    );
    let cpu = |request: &str, limit: &str| value!({"requests": {"cpu": request}, "limits": {"cpu": limit}});
    let huge = value!({"limits": {"cpu": "500m", "memory": "2Gi"}});
    for (wanted, expected) in [
        (
            cpu("1", "2"),
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            cpu("10m", "50m"),
            "minimum cpu usage per Container is 50m, but request is 10m",
        ),
        (
            cpu("100m", "600m"),
            "cpu max limit to request ratio per Container is 5, but provided ratio is 6.000000",
        ),
        (
            huge,
            "maximum memory usage per Pod is 1Gi, but limit is 2Gi",
        ),
        (
            cpu("10m", "2"),
            "[minimum cpu usage per Container is 50m, but request is 10m, maximum cpu usage per \
             Container is 1, but limit is 2, cpu max limit to request ratio per Container is 5, \
             but provided ratio is 200.000000]",
        ),
    ] {
        assert_eq!(
            pod_refusal(&resources, with_resources("x", wanted)).await,
            expected
        );
    }
    let claims = Ask::new(&resources, "", "persistentvolumeclaims");
    for (size, expected) in [
        (
            "512Mi",
            "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi",
        ),
        (
            "6Gi",
            "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi",
        ),
    ] {
        let text = refusal(claims.create(claim("data", "", size)).await);
        assert_eq!(
            text,
            format!("persistentvolumeclaims \"data\" is forbidden: {expected}")
        );
    }
    claims.create(claim("data", "", "2Gi")).await.unwrap();
}

fn claim(name: &str, class: &str, size: &str) -> Value {
    value!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": size}},
        },
    })
}

#[tokio::test]
async fn runtime_classes_set_overhead_and_place() {
    let resources = server().await;
    let class = value!({
        "metadata": {"name": "sandbox"}, "handler": "runsc",
        "overhead": {"podFixed": {"cpu": "100m"}},
        "scheduling": {
            "nodeSelector": {"sandbox": "yes"},
            "tolerations": [{"key": "sandbox", "operator": "Exists"}],
        },
    });
    make(&resources, "node.k8s.io", "runtimeclasses", class).await;
    let named = |more: Value| {
        let mut more = more;
        let map = more.as_object_mut().unwrap();
        map.insert("runtimeClassName", "sandbox".into());
        pod("one", more)
    };
    let made = Ask::new(&resources, "", "pods").dry();
    let made = made.create(named(value!({}))).await.unwrap();
    assert_eq!(
        made.at(&["spec", "overhead"]),
        Some(&value!({"cpu": "100m"}))
    );
    assert_eq!(
        made.at(&["spec", "nodeSelector"]),
        Some(&value!({"sandbox": "yes"}))
    );
    let tolerations = made.at(&["spec", "tolerations"]).and_then(Value::as_array);
    assert_eq!(tolerations.map(<[Value]>::len), Some(3));
    for (pod, expected) in [
        (
            named(value!({"overhead": {"cpu": "1"}})),
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            pod("one", value!({"overhead": {"cpu": "1"}})),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            pod("one", value!({"runtimeClassName": "absent"})),
            "pod rejected: RuntimeClass \"absent\" not found",
        ),
        (
            named(value!({"nodeSelector": {"sandbox": "no"}})),
            "conflict: runtimeClass.scheduling.nodeSelector[sandbox] = yes; \
             pod.spec.nodeSelector[sandbox] = no",
        ),
    ] {
        assert_eq!(pod_refusal(&resources, pod).await, expected);
    }
}

#[tokio::test]
async fn claims_grow_where_their_class_can() {
    let resources = server().await;
    for (name, grows) in [("fixed", false), ("wide", true)] {
        let class = value!({
            "metadata": {"name": name}, "provisioner": "example.com/disk",
            "allowVolumeExpansion": grows,
        });
        make(&resources, "storage.k8s.io", "storageclasses", class).await;
        make(
            &resources,
            "",
            "persistentvolumeclaims",
            claim(name, name, "1Gi"),
        )
        .await;
    }
    let larger = || value!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let grow = async |name: &str| {
        let ask = Ask::new(&resources, "", "persistentvolumeclaims").named(name);
        ask.merge(larger()).await
    };
    for name in ["fixed", "wide"] {
        let ask = Ask::new(&resources, "", "persistentvolumeclaims").named(name);
        let bound = value!({"spec": {"volumeName": "disk"}});
        ask.merge(bound).await.unwrap();
        let ask = Ask::new(&resources, "", "persistentvolumeclaims")
            .named(name)
            .under("status");
        ask.merge(value!({"status": {"phase": "Bound"}}))
            .await
            .unwrap();
    }
    grow("wide").await.unwrap();
    assert_eq!(
        refusal(grow("fixed").await),
        "persistentvolumeclaims \"fixed\" is forbidden: only dynamically provisioned pvc can be \
         resized and the storageclass that provisions the pvc must support resize"
    );
}

/// A request for a certificate of `system:masters`, made for this test.
const MASTERS_REQUEST: &str = include_str!("masters.csr.base64");

#[tokio::test]
async fn signers_are_spoken_for_by_those_who_may() {
    let resources = server().await;
    let request = |signer: &str| {
        value!({
            "metadata": {"name": "r"},
            "spec": {
                "request": (MASTERS_REQUEST.trim()), "signerName": signer, "usages": ["client auth"],
            },
        })
    };
    let requests = Ask::new(
        &resources,
        "certificates.k8s.io",
        "certificatesigningrequests",
    );
    assert_eq!(
        refusal(
            requests
                .create(request("kubernetes.io/kube-apiserver-client"))
                .await
        ),
        "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: use of \
         kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
    requests
        .create(request("example.com/signer"))
        .await
        .unwrap();
    let role = value!({
        "metadata": {"name": "signer"},
        "rules": [{
            "apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
            "resourceNames": ["example.com/*"], "verbs": ["approve", "sign"],
        }],
    });
    let group = "rbac.authorization.k8s.io";
    make(&resources, group, "clusterroles", role).await;
    let binding = value!({
        "metadata": {"name": "signer"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "signer"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "may"}],
    });
    make(&resources, group, "clusterrolebindings", binding).await;
    let approve = value!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "a", "message": "b"},
    ]}});
    let mark = value!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "a", "message": "b"},
        {"type": "Failed", "status": "True", "reason": "a", "message": "b"},
    ]}});
    for (under, patch, verb) in [("approval", approve, "approve"), ("status", mark, "sign")] {
        let ask = |user: &str| {
            let ask = Ask::new(
                &resources,
                "certificates.k8s.io",
                "certificatesigningrequests",
            );
            let mut ask = ask.named("r").under(under);
            ask.user = User::authenticated(user, "", &[]);
            ask
        };
        assert_eq!(
            refusal(ask("other").merge(patch.clone()).await),
            format!(
                "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not \
                 permitted to {verb} requests with signerName \"example.com/signer\""
            )
        );
        ask("may").merge(patch).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn accounts_limit_the_secrets_of_their_pods() {
    let resources = server_without(&[]).await;
    let account = value!({
        "metadata": {
            "name": "strict",
            "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"},
        },
        "automountServiceAccountToken": false,
        "secrets": [{"name": "known"}], "imagePullSecrets": [{"name": "pull"}],
    });
    make(&resources, "", "serviceaccounts", account).await;
    let with = |more: Value| {
        let mut pod = pod("one", more);
        let spec = pod.get_mut("spec").and_then(Value::as_object_mut).unwrap();
        spec.insert("serviceAccountName", "strict".into());
        pod
    };
    let volume = |name: &str| value!({"volumes": [{"name": "v", "secret": {"secretName": name}}]});
    let container = |more: Value| {
        let mut container = value!({"name": "main", "image": "registry.example/app:1"});
        let map = container.as_object_mut().unwrap();
        for (key, value) in more.as_object().unwrap().iter() {
            map.insert(key.clone(), value.clone());
        }
        value!({"containers": [container]})
    };
    let end = "is not allowed because service account strict does not reference that";
    for (more, expected) in [
        (
            volume("other"),
            format!("volume with secret.secretName=\"other\" {end} secret"),
        ),
        (
            container(value!({"envFrom": [{"secretRef": {"name": "other"}}]})),
            format!(
                "container main with envFrom referencing secret.secretName=\"other\" {end} secret"
            ),
        ),
        (
            container(value!({"env": [{
                "name": "KEY", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}},
            }]})),
            format!(
                "container main with envVar KEY referencing secret.secretName=\"other\" {end} secret"
            ),
        ),
        (
            value!({"imagePullSecrets": [{"name": "other"}]}),
            format!("imagePullSecrets[0].name=\"other\" {end} imagePullSecret"),
        ),
    ] {
        assert_eq!(pod_refusal(&resources, with(more)).await, expected);
    }
    let made = make(&resources, "", "pods", with(volume("known"))).await;
    assert_eq!(
        made.at(&["spec", "imagePullSecrets"]),
        Some(&value!([{"name": "pull"}]))
    );
    let volumes = made.at(&["spec", "volumes"]).and_then(Value::as_array);
    assert_eq!(
        volumes.map(<[Value]>::len),
        Some(1),
        "no token was asked for"
    );
    let mut mirror = pod("mirror", volume("known"));
    let annotations = value!({"kubernetes.io/config.mirror": "hash"});
    let metadata = mirror.get_mut("metadata").and_then(Value::as_object_mut);
    metadata.unwrap().insert("annotations", annotations);
    let text = pod_refusal(&resources, mirror).await;
    assert_eq!(text, "a mirror pod may not reference secrets");
}

#[tokio::test]
async fn an_ingress_without_a_class_gets_the_default_one() {
    let resources = server().await;
    let group = "networking.k8s.io";
    let ingress = |class: Option<&str>| {
        let mut spec = Map::new();
        let backend = value!({"service": {"name": "web", "port": {"number": 80}}});
        spec.insert("defaultBackend", backend);
        if let Some(class) = class {
            spec.insert("ingressClassName", class.into());
        }
        value!({"metadata": {"name": "web"}, "spec": spec})
    };
    let class_of = async |wanted: Value| {
        let made = Ask::new(&resources, group, "ingresses").dry();
        let made = made.create(wanted).await.unwrap();
        let class = made.str_at(&["spec", "ingressClassName"]);
        class.map(str::to_owned)
    };
    assert_eq!(class_of(ingress(None)).await, None);
    for (name, mark) in [("a", "false"), ("b", "true")] {
        let annotations = value!({"ingressclass.kubernetes.io/is-default-class": mark});
        let class = value!({
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"controller": "example.com/ingress"},
        });
        make(&resources, group, "ingressclasses", class).await;
    }
    assert_eq!(class_of(ingress(None)).await.as_deref(), Some("b"));
    assert_eq!(class_of(ingress(Some("a"))).await.as_deref(), Some("a"));
}

#[tokio::test]
async fn namespaces_that_end_take_nothing_new() {
    let resources = server().await;
    let namespaces = Ask::new(&resources, "", "namespaces");
    let wanted = value!({"metadata": {"name": "old"}});
    namespaces.create(wanted).await.unwrap();
    let maps = || Ask::new(&resources, "", "configmaps").within("old");
    let map = |name: &str| value!({"metadata": {"name": name}});
    maps().create(map("a")).await.unwrap();
    let old = Ask::new(&resources, "", "namespaces").named("old");
    old.delete().await.unwrap();
    assert_eq!(
        refusal(maps().create(map("b")).await),
        "configmaps \"b\" is forbidden: unable to create new content in namespace old because it \
         is being terminated"
    );
    let data = value!({"data": {"key": "value"}});
    maps().named("a").merge(data).await.unwrap();
    let nowhere = Ask::new(&resources, "", "configmaps").within("nowhere");
    let refused = refusal(nowhere.create(map("a")).await);
    assert_eq!(refused, "namespaces \"nowhere\" not found");
    let stays = Ask::new(&resources, "", "namespaces").named("kube-system");
    let refused = stays.delete().await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "namespaces \"kube-system\" is forbidden: this namespace may not be deleted"
    );
}

#[tokio::test]
async fn pods_made_for_a_node_carry_its_place() {
    let resources = server().await;
    let node = value!({"metadata": {
        "name": "n", "labels": {"topology.kubernetes.io/zone": "a", "other": "b"},
    }});
    make(&resources, "", "nodes", node).await;
    let made = make(
        &resources,
        "",
        "pods",
        pod("one", value!({"nodeName": "n"})),
    )
    .await;
    let labels = value!({"topology.kubernetes.io/zone": "a"});
    assert_eq!(made.at(&["metadata", "labels"]), Some(&labels));
}

#[tokio::test]
async fn resizes_stay_within_the_node() {
    let resources = server().await;
    make(&resources, "", "nodes", value!({"metadata": {"name": "n"}})).await;
    let node = Ask::new(&resources, "", "nodes").named("n").under("status");
    let capacity = value!({"cpu": "1", "memory": "1Gi"});
    let status = value!({"status": {"allocatable": (capacity.clone()), "capacity": capacity}});
    node.merge(status).await.unwrap();
    let container = |cpu: &str| {
        value!({
            "name": "main", "image": "registry.example/app:1",
            "resources": {"requests": {"cpu": cpu}},
        })
    };
    let one = pod(
        "one",
        value!({"nodeName": "n", "containers": [(container("100m"))]}),
    );
    make(&resources, "", "pods", one).await;
    let resize = async |cpu: &str| {
        let ask = Ask::new(&resources, "", "pods")
            .named("one")
            .under("resize");
        ask.merge(value!({"spec": {"containers": [(container(cpu))]}}))
            .await
    };
    assert_eq!(
        refusal(resize("2").await),
        "pods \"one\" is forbidden: node didn't have enough allocatable resources: cpu, requested: \
         2000, allocatable: 1000"
    );
    resize("500m").await.unwrap();
}

#[tokio::test]
async fn plugins_that_are_off_by_default_can_be_switched_on() {
    let resources = server_with(
        &[
            "AlwaysPullImages",
            "LimitPodHardAntiAffinityTopology",
            "DenyServiceExternalIPs",
            "ExtendedResourceToleration",
            "PodNodeSelector",
            "PodTolerationRestriction",
            "NamespaceAutoProvision",
            "NamespaceExists",
            "AlwaysAdmit",
        ],
        &["ServiceAccount"],
    )
    .await;
    annotate_namespace(
        &resources,
        value!({
            "scheduler.alpha.kubernetes.io/node-selector": "disk=fast, zone=a",
            "scheduler.alpha.kubernetes.io/defaultTolerations":
                "[{\"key\": \"team\", \"operator\": \"Exists\"}]",
        }),
    )
    .await;
    let gpu = value!({"limits": {"example.com/gpu": "1"}});
    let made = make(&resources, "", "pods", with_resources("one", gpu)).await;
    let spec = made.get("spec").unwrap();
    let containers = spec.get("containers").and_then(Value::as_array).unwrap();
    assert_eq!(containers[0].str_at(&["imagePullPolicy"]), Some("Always"));
    assert_eq!(
        spec.get("nodeSelector"),
        Some(&value!({"disk": "fast", "zone": "a"}))
    );
    let tolerations = spec.get("tolerations").and_then(Value::as_array).unwrap();
    let keys: Vec<&str> = tolerations
        .iter()
        .filter_map(|it| it.str_at(&["key"]))
        .collect();
    assert_eq!(
        keys,
        [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
            "team",
            "example.com/gpu",
        ]
    );
    assert_eq!(
        pod_refusal(
            &resources,
            pod("x", value!({"nodeSelector": {"zone": "b"}}))
        )
        .await,
        "pod node label selector conflicts with its namespace node label selector"
    );
    let affinity = value!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}},
        ],
    }}});
    assert_eq!(
        pod_refusal(&resources, pod("x", affinity)).await,
        "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key \
         kubernetes.io/hostname is allowed"
    );
    let service = value!({
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]},
    });
    assert_eq!(
        refusal(Ask::new(&resources, "", "services").create(service).await),
        "services \"s\" is forbidden: Use of external IPs is denied by admission control"
    );
    let whitelist = value!({
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist":
            "[{\"key\": \"team\", \"operator\": \"Exists\"}]",
    });
    annotate_namespace(&resources, whitelist).await;
    assert_eq!(
        pod_refusal(&resources, pod("x", value!({}))).await,
        "pod tolerations (possibly merged with namespace default tolerations) conflict with its \
         namespace whitelist"
    );
    let maps = Ask::new(&resources, "", "configmaps").within("fresh");
    maps.create(value!({"metadata": {"name": "a"}}))
        .await
        .unwrap();
}

#[tokio::test]
async fn always_deny_leaves_the_server_itself_alone() {
    let resources = server_with(&["AlwaysDeny"], &["ServiceAccount"]).await;
    let maps = Ask::new(&resources, "", "configmaps");
    let text = "is forbidden: admission control is denying all modifications";
    let refused = refusal(maps.create(value!({"metadata": {"name": "a"}})).await);
    assert_eq!(refused, format!("configmaps \"a\" {text}"));
    let services = Ask::new(&resources, "", "services").named("kubernetes");
    let refused = services.delete().await.unwrap_err().to_string();
    assert_eq!(refused, format!("services \"kubernetes\" {text}"));
}

#[tokio::test]
async fn nobody_blocks_the_deletion_of_what_they_cannot_finalize() {
    let resources = server_with(
        &["OwnerReferencesPermissionEnforcement"],
        &["ServiceAccount"],
    )
    .await;
    let owner = make(
        &resources,
        "",
        "configmaps",
        value!({"metadata": {"name": "owner"}}),
    )
    .await;
    let uid = owner.str_at(&["metadata", "uid"]).unwrap();
    let owned = |blocks: bool| {
        value!({"metadata": {"name": "owned", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid,
            "blockOwnerDeletion": blocks,
        }]}})
    };
    let ask = || {
        let mut ask = Ask::new(&resources, "", "secrets");
        ask.user = User::authenticated("someone", "", &[]);
        ask
    };
    assert_eq!(
        refusal(ask().create(owned(true)).await),
        "secrets \"owned\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers \
         to a resource you can't set finalizers on: , <nil>"
    );
    ask().create(owned(false)).await.unwrap();
    let none = value!({"metadata": {"ownerReferences": null}});
    assert_eq!(
        refusal(ask().named("owned").merge(none.clone()).await),
        "secrets \"owned\" is forbidden: cannot set an ownerRef on a resource you can't delete: , \
         <nil>"
    );
    let admin = Ask::new(&resources, "", "secrets").named("owned");
    admin.merge(none).await.unwrap();
}

#[tokio::test]
async fn a_node_writes_about_itself_alone() {
    let resources = server_with(&["NodeRestriction"], &["ServiceAccount"]).await;
    let ask = |resource: &'static str| {
        let mut ask = Ask::new(&resources, "", resource);
        ask.user = User::authenticated("system:node:one", "", &["system:nodes"]);
        ask
    };
    let node = |name: &str, label: &str| {
        let mut labels = Map::new();
        labels.insert(label, "x".into());
        value!({"metadata": {"name": name, "labels": labels}})
    };
    for (object, expected) in [
        (
            node("two", "kubernetes.io/os"),
            "nodes \"two\" is forbidden: node \"one\" is not allowed to modify node \"two\"",
        ),
        (
            node("one", "node-restriction.kubernetes.io/a"),
            "nodes \"one\" is forbidden: node \"one\" is not allowed to set the following labels: \
             node-restriction.kubernetes.io/a",
        ),
        (
            node("one", "app.kubernetes.io/name"),
            "nodes \"one\" is forbidden: node \"one\" is not allowed to set the following labels: \
             app.kubernetes.io/name",
        ),
    ] {
        assert_eq!(refusal(ask("nodes").create(object).await), expected);
    }
    ask("nodes")
        .create(node("one", "kubernetes.io/os"))
        .await
        .unwrap();
    let taints = value!({"spec": {"taints": []}});
    assert_eq!(
        refusal(ask("nodes").named("one").merge(taints).await),
        "nodes \"one\" is forbidden: node \"one\" is not allowed to modify taints"
    );
    assert_eq!(
        refusal(ask("pods").create(pod("p", value!({}))).await),
        "pods \"p\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" annotation, \
         node \"one\" can only create mirror pods"
    );
    make(
        &resources,
        "",
        "pods",
        pod("mine", value!({"nodeName": "one"})),
    )
    .await;
    make(&resources, "", "pods", pod("other", value!({}))).await;
    let running = || value!({"status": {"phase": "Running"}});
    let mine = ask("pods").named("mine").under("status");
    mine.merge(running()).await.unwrap();
    assert_eq!(
        refusal(
            ask("pods")
                .named("other")
                .under("status")
                .merge(running())
                .await
        ),
        "pods \"other\" is forbidden: node \"one\" can only update pod status for pods with \
         spec.nodeName set to itself"
    );
    let refused = ask("pods").named("other").delete().await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "pods \"other\" is forbidden: node \"one\" can only delete pods with spec.nodeName set to \
         itself"
    );
}

#[tokio::test]
async fn devices_that_others_hold_are_for_namespaces_of_administrators() {
    let resources = server().await;
    let claim = |name: &str| {
        value!({"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "r",
            "exactly": {"deviceClassName": "c", "adminAccess": true}}]}}})
    };
    let ask = || Ask::new(&resources, "resource.k8s.io", "resourceclaims");
    assert_eq!(
        refusal(ask().create(claim("one")).await),
        "ResourceClaim.resource.k8s.io \"one\" is invalid: spec.devices.requests[0].adminAccess: \
         Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: \
         true` label on the containing namespace"
    );
    let label = value!({"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}});
    let namespace = Ask::new(&resources, "", "namespaces").within("");
    namespace.named("default").merge(label).await.unwrap();
    ask().create(claim("one")).await.unwrap();
}
