//! What namespaces say about how privileged their pods may be, and who is told.

use object::{Value, value};
use resources::Resources;

use crate::fixture::{Ask, refusal, server};
use crate::plugins::{make, pod, pod_refusal};

async fn label_namespace(resources: &Resources, labels: Value) -> Vec<String> {
    let ask = Ask::new(resources, "", "namespaces").named("default");
    let patch = value!({"metadata": {"labels": labels}});
    ask.merge(patch).await.unwrap();
    ask.warnings.take()
}

#[tokio::test]
async fn namespaces_say_how_privileged_pods_may_be() {
    let resources = server().await;
    let plain = || pod("plain", value!({}));
    make(
        &resources,
        "",
        "pods",
        pod("root", value!({"hostPID": true})),
    )
    .await;
    make(
        &resources,
        "",
        "pods",
        pod("other", value!({"hostPID": true})),
    )
    .await;
    let level = |level: &str| value!({"pod-security.kubernetes.io/enforce": level});
    assert_eq!(
        label_namespace(&resources, level("baseline")).await,
        [
            "existing pods in namespace \"default\" violate the new PodSecurity enforce level \
             \"baseline:latest\"",
            "other (and 1 other pod): host namespaces",
        ]
    );
    make(&resources, "", "pods", plain()).await;
    assert_eq!(
        pod_refusal(&resources, pod("x", value!({"hostNetwork": true}))).await,
        "violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
    // A change that brings no new image is let pass.
    let root = Ask::new(&resources, "", "pods").named("root");
    root.merge(value!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .unwrap();
    let image = value!({"spec": {"containers": [
        {"name": "main", "image": "registry.example/app:2"},
    ]}});
    let text = refusal(root.merge(image).await);
    assert!(
        text.contains("violates PodSecurity \"baseline:latest\""),
        "{text}"
    );
    // Workloads are warned about, and made.
    let deployments = Ask::new(&resources, "apps", "deployments");
    let deployment = value!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "hostNetwork": true,
                    "containers": [{"name": "main", "image": "registry.example/app:1"}],
                },
            },
        },
    });
    deployments.create(deployment).await.unwrap();
    assert_eq!(
        deployments.warnings.take(),
        ["would violate PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"]
    );
    let scale = Ask::new(&resources, "apps", "deployments")
        .named("web")
        .under("scale");
    let wanted = value!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "web"}, "spec": {"replicas": 2},
    });
    scale.update_scale(wanted).await.unwrap();
    assert_eq!(scale.warnings.take(), Vec::<String>::new());
    let namespaces = Ask::new(&resources, "", "namespaces");
    let wrong = value!({"metadata": {
        "name": "wrong", "labels": {"pod-security.kubernetes.io/warn": "none"},
    }});
    assert_eq!(
        refusal(namespaces.create(wrong).await),
        "Namespace \"wrong\" is invalid: metadata.labels[pod-security.kubernetes.io/warn]: Invalid \
         value: \"none\": must be one of privileged, baseline, restricted"
    );
}

#[tokio::test]
async fn the_audit_log_is_told_what_pods_violate() {
    let resources = server().await;
    let prefix = "pod-security.kubernetes.io/";
    let namespaces = [
        (
            "open",
            value!({"pod-security.kubernetes.io/enforce-version": "v1.30"}),
        ),
        (
            "audited",
            value!({"pod-security.kubernetes.io/audit": "baseline"}),
        ),
        (
            "both",
            value!({
                "pod-security.kubernetes.io/enforce": "baseline",
                "pod-security.kubernetes.io/audit": "baseline",
            }),
        ),
    ];
    for (name, labels) in namespaces {
        let namespace = value!({"metadata": {"name": name, "labels": labels}});
        make(&resources, "", "namespaces", namespace).await;
    }
    let host = value!({"hostNetwork": true});
    let violation = "audit-violations=would violate PodSecurity \"baseline:latest\": host namespaces \
         (hostNetwork=true)";
    let free = "enforce-policy=privileged:latest";
    for (namespace, resource, spec, expected) in [
        ("open", "pods", &host, &[free][..]),
        ("open", "podtemplates", &host, &[]),
        ("audited", "pods", &host, &[free, violation]),
        ("audited", "pods", &value!({}), &[free]),
        (
            "both",
            "pods",
            &host,
            &["enforce-policy=baseline:latest", violation],
        ),
        ("both", "podtemplates", &host, &[violation]),
    ] {
        let ask = Ask::new(&resources, "", resource).within(namespace).dry();
        let made = pod("one", spec.clone());
        let object = match resource {
            "pods" => made,
            _ => value!({"metadata": {"name": "one"}, "template": made}),
        };
        let is_refused = ask.create(object).await.is_err();
        assert_eq!(is_refused, (namespace, resource) == ("both", "pods"));
        let notes = ask.warnings.annotations().into_iter();
        let notes = notes.map(|(key, value)| format!("{}={value}", key.replace(prefix, "")));
        assert_eq!(
            notes.collect::<Vec<String>>(),
            expected,
            "{namespace} {resource}"
        );
    }
}
