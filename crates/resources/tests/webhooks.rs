//! Webhooks that are really called: what they see, change and refuse, and what they can break.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use object::{Value, json, value};
use resources::options::DeleteOptions;
use resources::record::Stored;
use resources::{Error, Resources};

use crate::fixture::{Ask, refusal, server};
use crate::webhook_server::{Asked, Reply, WebhookServer};

const GROUP: &str = "admissionregistration.k8s.io";
const MUTATING: &str = "mutatingwebhookconfigurations";
const VALIDATING: &str = "validatingwebhookconfigurations";

/// A review that answers the one that was asked.
fn answer(asked: &Asked, response: &str) -> Reply {
    let review = json::parse(asked.body.as_bytes()).unwrap();
    let uid = review.str_at(&["request", "uid"]).unwrap();
    Reply::Json(format!(
        "{{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":\
         {{\"uid\":\"{uid}\",{response}}}}}"
    ))
}

fn patch(asked: &Asked, operations: &str) -> Reply {
    let patch = STANDARD.encode(operations);
    let response = format!("\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":\"{patch}\"");
    answer(asked, &response)
}

fn add_label(asked: &Asked, key: &str) -> Reply {
    patch(
        asked,
        &format!("[{{\"op\":\"add\",\"path\":\"/metadata/labels/{key}\",\"value\":\"yes\"}}]"),
    )
}

/// A webhook for everything that is done to config maps.
fn webhook(server: &WebhookServer, path: &str, more: Value) -> Value {
    let mut webhook = value!({
        "name": (format!("hook{}.example.com", path.replace('/', "."))),
        "clientConfig": {
            "url": (server.url(path)), "caBundle": (STANDARD.encode(&server.certificate)),
        },
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["configmaps"],
        }],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    });
    if let (Value::Object(webhook), Value::Object(more)) = (&mut webhook, more) {
        for (key, value) in more {
            webhook.insert(key, value);
        }
    }
    webhook
}

async fn configure(resources: &Resources, kind: &str, name: &str, webhooks: Vec<Value>) {
    let configuration = value!({"metadata": {"name": name}, "webhooks": webhooks});
    let made = Ask::new(resources, GROUP, kind).create(configuration).await;
    made.expect("the configuration is good");
}

fn config_map(name: &str) -> Value {
    value!({"metadata": {"name": name, "labels": {"a": "b"}}})
}

async fn create(resources: &Resources, name: &str) -> Result<Value, Error> {
    let ask = Ask::new(resources, "", "configmaps");
    ask.create(config_map(name)).await
}

/// What is stored about the owners of a config map.
async fn owners(resources: &Resources, name: &str) -> String {
    let kind = kinds::Catalogue::builtin().resource("", "v1", "configmaps");
    let record = resources
        .get(kind.unwrap(), "default", name, None)
        .await
        .unwrap();
    let stored = Stored::new(&record.value).unwrap();
    String::from_utf8_lossy(stored.managed_fields()).into_owned()
}

fn reviews(server: &WebhookServer) -> Vec<Value> {
    let asked = server.take();
    let parse = |asked: &Asked| json::parse(asked.body.as_bytes()).unwrap();
    asked.iter().map(parse).collect()
}

#[tokio::test]
async fn what_a_webhook_adds_is_stored_and_owned_by_nobody() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| add_label(asked, "hooked")).await;
    let webhooks = vec![webhook(&hook, "/m", value!({}))];
    configure(&resources, MUTATING, "one", webhooks).await;
    let created = create(&resources, "one").await.unwrap();
    let labels = created.at(&["metadata", "labels"]);
    assert_eq!(labels, Some(&value!({"a": "b", "hooked": "yes"})));
    let owners = owners(&resources, "one").await;
    assert!(
        owners.contains("f:a") && !owners.contains("hooked"),
        "{owners}"
    );
    let review = &reviews(&hook)[0];
    let object = review.at(&["request", "object", "metadata"]).unwrap();
    assert!(
        object.get("uid").is_none(),
        "a new object has no identity yet"
    );
    assert!(object.get("managedFields").is_some());
}

#[tokio::test]
async fn the_audit_log_is_told_what_webhooks_did() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| match asked.target.starts_with("/m") {
        true => add_label(asked, "hooked"),
        false => answer(asked, "\"allowed\":false"),
    })
    .await;
    let webhooks = ["/m", "/d"].map(|path| webhook(&hook, path, value!({})));
    configure(&resources, MUTATING, "one", webhooks.into()).await;
    let ask = Ask::new(&resources, "", "configmaps");
    assert!(ask.create(config_map("one")).await.is_err());
    let notes = ask.warnings.annotations();
    let note = |key: &str, index: u8| {
        let key = format!("{key}.webhook.admission.k8s.io/round_0_index_{index}");
        let found = notes.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    assert_eq!(
        note("patch", 0),
        "{\"configuration\":\"one\",\"webhook\":\"hook.m.example.com\",\"patch\":[{\"op\":\"add\",\
         \"path\":\"/metadata/labels/hooked\",\"value\":\"yes\"}],\"patchType\":\"JSONPatch\"}"
    );
    let first = "{\"configuration\":\"one\",\"webhook\":\"hook.m.example.com\",\"mutated\":true}";
    let second = "{\"configuration\":\"one\",\"webhook\":\"hook.d.example.com\",\"mutated\":false}";
    assert_eq!([note("mutation", 0), note("mutation", 1)], [first, second]);
}

#[tokio::test]
async fn a_configuration_is_in_force_at_once_and_no_longer_than_it_exists() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| answer(asked, "\"allowed\":false")).await;
    let webhooks = vec![webhook(&hook, "/v", value!({}))];
    assert!(create(&resources, "before").await.is_ok());
    configure(&resources, VALIDATING, "one", webhooks).await;
    assert_eq!(
        refusal(create(&resources, "during").await),
        "admission webhook \"hook.v.example.com\" denied the request without explanation"
    );
    let configuration = Ask::new(&resources, GROUP, VALIDATING).named("one");
    configuration.delete().await.unwrap();
    assert!(create(&resources, "after").await.is_ok());
}

#[tokio::test]
async fn a_denial_carries_the_webhooks_own_words() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| {
        let status = "\"status\":{\"message\":\"no\",\"code\":418,\"reason\":\"Teapot\"}";
        answer(
            asked,
            &format!("\"allowed\":false,\"warnings\":[\"mind\"],{status}"),
        )
    })
    .await;
    let webhooks = vec![webhook(&hook, "/v", value!({}))];
    configure(&resources, VALIDATING, "one", webhooks).await;
    let ask = Ask::new(&resources, "", "configmaps");
    let Err(Error::Denied(denial)) = ask.create(config_map("one")).await else {
        panic!("it is denied")
    };
    assert_eq!((denial.code, denial.reason.as_str()), (418, "Teapot"));
    let denied = "admission webhook \"hook.v.example.com\" denied the request: no";
    assert_eq!(denial.message, denied);
    assert_eq!(ask.warnings.take(), ["mind"]);
}

/// What breaks, as a webhook does it, and how that is worded.
fn broken(asked: &Asked) -> Reply {
    let path = asked.target.split('?').next().unwrap_or_default();
    match path {
        "/crash" => Reply::Close,
        "/late" => Reply::Silence,
        "/garbage" => Reply::Json("<html>".to_owned()),
        "/nothing" => Reply::Json("{}".to_owned()),
        "/large" => Reply::Json(format!("{{\"a\":\"{}\"}}", "x".repeat(16 << 20))),
        "/error" => Reply::Raw(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n".to_vec()),
        "/uid" => Reply::Json(
            "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":\
             {\"uid\":\"other\",\"allowed\":true}}"
                .to_owned(),
        ),
        "/patch" => patch(asked, "{\"op\":\"add\"}"),
        other => panic!("nobody asks for {other}"),
    }
}

#[tokio::test]
async fn a_webhook_that_breaks_refuses_or_is_left_out_as_configured() {
    let hook = WebhookServer::start(broken).await;
    let post = |path: &str, text: &str| format!("Post \"{}?timeout=1s\": {text}", hook.url(path));
    let cases = [
        ("/crash", post("/crash", "EOF")),
        ("/late", post("/late", "context deadline exceeded")),
        (
            "/garbage",
            // It is YAML as well, and there it is a text.
            "json parse error: json: cannot unmarshal string into Go value".to_owned(),
        ),
        ("/nothing", "webhook response was absent".to_owned()),
        (
            "/large",
            "the answer is larger than 8388608 bytes".to_owned(),
        ),
        (
            "/error",
            "the server is currently unable to handle the request".to_owned(),
        ),
        ("/uid", "expected response.uid=".to_owned()),
        (
            "/patch",
            "received undecodable patch in webhook response".to_owned(),
        ),
    ];
    for (path, expected) in cases {
        for policy in ["Fail", "Ignore"] {
            let resources = server().await;
            let more = value!({"failurePolicy": policy, "timeoutSeconds": 1});
            let webhooks = vec![webhook(&hook, path, more)];
            configure(&resources, MUTATING, "one", webhooks).await;
            let created = create(&resources, "one").await;
            if policy == "Ignore" {
                assert!(created.is_ok(), "{path}: {created:?}");
                continue;
            }
            let text = refusal(created);
            let name = path.replace('/', ".");
            let failed = format!(
                "Internal error occurred: failed calling webhook \"hook{name}.example.com\": "
            );
            assert!(text.starts_with(&failed), "{text}");
            assert!(text.contains(&expected), "{text}");
        }
    }
    let mut metrics = String::new();
    let resources = server().await;
    resources.write_admission_metrics(&mut metrics);
    assert_eq!(metrics, "", "nothing is counted where nobody was asked");
}

#[tokio::test]
async fn a_patch_that_makes_no_object_of_the_kind_refuses_whatever_is_configured() {
    let cases = [
        ("[{\"op\":\"remove\",\"path\":\"/data/x\"}]", "remove"),
        (
            "[{\"op\":\"add\",\"path\":\"/data\",\"value\":\"x\"}]",
            "cannot unmarshal string",
        ),
        (
            "[{\"op\":\"test\",\"path\":\"/kind\",\"value\":\"x\"}]",
            "testing value",
        ),
    ];
    for (operations, expected) in cases {
        let resources = server().await;
        let hook = WebhookServer::start(move |asked| patch(asked, operations)).await;
        let more = value!({"failurePolicy": "Ignore"});
        let webhooks = vec![webhook(&hook, "/m", more)];
        configure(&resources, MUTATING, "one", webhooks).await;
        let text = refusal(create(&resources, "one").await);
        assert!(text.starts_with("Internal error occurred: "), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn what_a_webhook_makes_of_an_object_is_validated() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| {
        patch(
            asked,
            "[{\"op\":\"add\",\"path\":\"/metadata/labels/a\",\"value\":\"not valid\"}]",
        )
    })
    .await;
    let webhooks = vec![webhook(&hook, "/m", value!({}))];
    configure(&resources, MUTATING, "one", webhooks).await;
    let text = refusal(create(&resources, "one").await);
    assert!(
        text.contains("metadata.labels: Invalid value: \"not valid\""),
        "{text}"
    );
}

#[tokio::test]
async fn nobody_is_asked_about_admission_itself() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| answer(asked, "\"allowed\":false")).await;
    let everything = value!({"rules": [{
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"],
    }]});
    for kind in [MUTATING, VALIDATING] {
        let webhooks = vec![webhook(&hook, "/v", everything.clone())];
        configure(&resources, kind, "closed", webhooks).await;
    }
    assert!(create(&resources, "one").await.is_err());
    hook.take();
    for kind in [MUTATING, VALIDATING] {
        let configuration = Ask::new(&resources, GROUP, kind).named("closed");
        let patched = configuration
            .merge(value!({"metadata": {"labels": {"a": "b"}}}))
            .await;
        assert!(patched.is_ok());
        assert!(configuration.delete().await.is_ok());
    }
    assert_eq!(hook.take().len(), 0);
    assert!(create(&resources, "one").await.is_ok());
}

#[tokio::test]
async fn those_who_ask_for_it_see_what_later_ones_changed() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| {
        let path = asked.target.split('?').next().unwrap_or_default();
        add_label(asked, path.trim_start_matches('/'))
    })
    .await;
    let again = value!({"reinvocationPolicy": "IfNeeded"});
    let webhooks = vec![
        webhook(&hook, "/first", again.clone()),
        webhook(&hook, "/once", value!({})),
        webhook(&hook, "/last", again),
    ];
    configure(&resources, MUTATING, "one", webhooks).await;
    create(&resources, "one").await.unwrap();
    let paths: Vec<String> = hook.take().into_iter().map(|asked| asked.target).collect();
    let expected = ["/first", "/once", "/last", "/first"].map(|path| format!("{path}?timeout=10s"));
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn configurations_are_asked_by_name_and_webhooks_as_listed() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| answer(asked, "\"allowed\":true")).await;
    let at = |path: &str| webhook(&hook, path, value!({}));
    configure(&resources, MUTATING, "b", vec![at("/b2"), at("/b1")]).await;
    configure(&resources, MUTATING, "a", vec![at("/a1")]).await;
    create(&resources, "one").await.unwrap();
    let paths: Vec<String> = hook.take().into_iter().map(|asked| asked.target).collect();
    let expected = ["/a1", "/b2", "/b1"].map(|path| format!("{path}?timeout=10s"));
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn a_deletion_shows_what_goes_and_cannot_be_changed() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| match asked.target.starts_with("/v") {
        true => answer(asked, "\"allowed\":false"),
        false => patch(asked, "[{\"op\":\"add\",\"path\":\"/x\",\"value\":1}]"),
    })
    .await;
    create(&resources, "one").await.unwrap();
    let webhooks = vec![webhook(&hook, "/v", value!({}))];
    configure(&resources, VALIDATING, "one", webhooks).await;
    let one = Ask::new(&resources, "", "configmaps").named("one");
    let options = DeleteOptions {
        grace_period_seconds: Some(3),
        ..DeleteOptions::default()
    };
    assert!(one.delete_with(options).await.is_err());
    let review = &reviews(&hook)[0];
    let request = review.get("request").unwrap();
    assert_eq!(request.str_at(&["operation"]), Some("DELETE"));
    assert_eq!(request.get("object"), Some(&Value::Null));
    assert_eq!(
        request.str_at(&["oldObject", "metadata", "name"]),
        Some("one")
    );
    let options = value!({
        "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 3,
    });
    assert_eq!(request.get("options"), Some(&options));

    let webhooks = vec![webhook(&hook, "/m", value!({}))];
    configure(&resources, MUTATING, "one", webhooks).await;
    assert_eq!(
        one.delete().await.unwrap_err().to_string(),
        "Internal error occurred: admission webhook \"hook.m.example.com\" attempted to modify \
         the object, which is not supported for this operation"
    );
}

#[tokio::test]
async fn an_equivalent_version_is_shown_in_the_version_of_the_rule() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| add_label(asked, "hooked")).await;
    let rules = value!({"rules": [{
        "apiGroups": ["autoscaling"], "apiVersions": ["v2"], "operations": ["*"],
        "resources": ["horizontalpodautoscalers"],
    }]});
    let webhooks = vec![webhook(&hook, "/m", rules)];
    configure(&resources, MUTATING, "one", webhooks).await;
    let ask = Ask::new(&resources, "autoscaling", "horizontalpodautoscalers");
    let created = ask
        .create(value!({
            "metadata": {"name": "one", "labels": {"a": "b"}},
            "spec": {
                "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            },
        }))
        .await
        .unwrap();
    assert_eq!(
        created.str_at(&["metadata", "labels", "hooked"]),
        Some("yes")
    );
    let review = &reviews(&hook)[0];
    let text = |path: &[&str]| review.str_at(path).map(str::to_owned);
    assert_eq!(text(&["request", "kind", "version"]).as_deref(), Some("v2"));
    assert_eq!(
        text(&["request", "requestKind", "version"]).as_deref(),
        Some("v1")
    );
    let shown = text(&["request", "object", "apiVersion"]);
    assert_eq!(shown.as_deref(), Some("autoscaling/v2"));
    assert!(
        review
            .at(&["request", "object", "spec", "metrics"])
            .is_some()
    );
}

#[tokio::test]
async fn a_scale_is_seen_as_a_scale() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| match asked.target.starts_with("/m") {
        true => patch(
            asked,
            "[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":2}]",
        ),
        false => answer(asked, "\"allowed\":true"),
    })
    .await;
    let labels = value!({"app": "web"});
    Ask::new(&resources, "apps", "deployments")
        .create(value!({
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": (labels.clone())},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": "registry.example/a:1"}]},
                },
            },
        }))
        .await
        .unwrap();
    let rules = value!({"rules": [{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"],
        "resources": ["deployments/scale"],
    }]});
    for (kind, path) in [(MUTATING, "/m"), (VALIDATING, "/v")] {
        let webhooks = vec![webhook(&hook, path, rules.clone())];
        configure(&resources, kind, "one", webhooks).await;
    }
    let ask = Ask::new(&resources, "apps", "deployments")
        .named("web")
        .under("scale");
    let scaled = ask
        .update_scale(value!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 5},
        }))
        .await
        .unwrap();
    assert_eq!(scaled.at(&["spec", "replicas"]), Some(&Value::Int(2)));
    let reviews = reviews(&hook);
    let replicas: Vec<Option<i64>> = reviews
        .iter()
        .map(|review| {
            review
                .at(&["request", "object", "spec", "replicas"])?
                .as_int()
        })
        .collect();
    assert_eq!(
        replicas,
        [Some(5), Some(2)],
        "first it is changed, then it is checked"
    );
    let owned = |side: &str| reviews[0].at(&["request", side, "metadata", "managedFields"]);
    assert!(owned("object").is_some() && owned("oldObject").is_some());
    let request = reviews[1].get("request").unwrap();
    assert_eq!(request.str_at(&["kind", "kind"]), Some("Scale"));
    assert_eq!(
        request.str_at(&["resource", "resource"]),
        Some("deployments")
    );
    assert_eq!(request.str_at(&["subResource"]), Some("scale"));
}

#[tokio::test]
async fn what_is_sent_to_a_subresource_is_seen_whole() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| answer(asked, "\"allowed\":true")).await;
    let pod = value!({
        "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "main", "image": "registry.example/a:1"}]},
    });
    Ask::new(&resources, "", "pods").create(pod).await.unwrap();
    let rules = value!({"rules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
        "resources": ["pods", "pods/binding", "pods/eviction"],
    }]});
    let webhooks = vec![webhook(&hook, "/v", rules)];
    configure(&resources, VALIDATING, "one", webhooks).await;
    let ask = || Ask::new(&resources, "", "pods").named("one");
    let binding = value!({"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "n"}});
    ask().under("binding").create(binding).await.unwrap();
    let eviction = value!({
        "metadata": {"name": "one"}, "deleteOptions": {"propagationPolicy": "Background"},
    });
    ask()
        .under("eviction")
        .dry()
        .create(eviction)
        .await
        .unwrap();
    for _ in 0..2 {
        ask().delete().await.unwrap();
    }
    let reviews = reviews(&hook);
    assert_eq!(
        reviews.len(),
        3,
        "a deletion that is under way needs no second leave"
    );
    let seen = |place: usize, path: &[&str]| {
        let request = reviews[place].get("request").unwrap();
        request.at(path).cloned().unwrap_or_default()
    };
    for (place, owned) in [(0, "f:target"), (1, "f:deleteOptions")] {
        assert_eq!(
            seen(place, &["object", "metadata", "namespace"]),
            "default".into()
        );
        let owners = seen(place, &["object", "metadata", "managedFields"]);
        assert!(
            json::to_vec(&owners)
                .windows(owned.len())
                .any(|it| it == owned.as_bytes())
        );
    }
    assert_eq!(
        seen(1, &["object", "deleteOptions", "dryRun"]),
        value!(["All"])
    );
    // The period that the pod asks for counts as said.
    assert_eq!(seen(2, &["options", "gracePeriodSeconds"]), Value::Int(30));
}

#[tokio::test]
async fn an_update_that_names_no_version_shows_none_before_it_is_checked() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| answer(asked, "\"allowed\":true")).await;
    create(&resources, "one").await.unwrap();
    for (kind, path) in [(MUTATING, "/m"), (VALIDATING, "/v")] {
        let webhooks = vec![webhook(&hook, path, value!({}))];
        configure(&resources, kind, "one", webhooks).await;
    }
    let ask = Ask::new(&resources, "", "configmaps").named("one");
    ask.update(config_map("one")).await.unwrap();
    let version = ["request", "object", "metadata", "resourceVersion"];
    let reviews = reviews(&hook);
    let shown = reviews.iter().map(|review| review.at(&version).is_some());
    assert_eq!(shown.collect::<Vec<bool>>(), [false, true]);
}

#[tokio::test]
async fn every_validating_webhook_is_asked_before_what_storage_fills_in() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| match asked.target.starts_with("/no") {
        true => answer(asked, "\"allowed\":false"),
        false => answer(asked, "\"allowed\":true"),
    })
    .await;
    let rules = value!({"rules": [{
        "apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["jobs"],
    }]});
    let webhooks = ["/no", "/yes"].map(|path| webhook(&hook, path, rules.clone()));
    configure(&resources, VALIDATING, "one", webhooks.into()).await;
    let job = value!({
        "metadata": {"name": "one"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "registry.example/a:1"}],
        }}},
    });
    let ask = Ask::new(&resources, "batch", "jobs");
    assert!(ask.create(job.clone()).await.is_err());
    let reviews = reviews(&hook);
    assert_eq!(reviews.len(), 2, "a refusal keeps nobody from being asked");
    for review in reviews {
        let job = review.at(&["request", "object"]).unwrap();
        assert_eq!(job.at(&["metadata", "labels"]), None);
    }
    let configurations = Ask::new(&resources, GROUP, VALIDATING).named("one");
    configurations.delete().await.unwrap();
    let made = ask.create(job).await.unwrap();
    assert!(made.at(&["metadata", "labels"]).is_some());
}

#[tokio::test]
async fn owners_that_a_webhook_spoils_are_kept_as_they_were() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| {
        patch(
            asked,
            "[{\"op\":\"replace\",\"path\":\"/metadata/managedFields/0/operation\",\
             \"value\":\"?\"}]",
        )
    })
    .await;
    let webhooks = vec![webhook(&hook, "/m", value!({}))];
    configure(&resources, MUTATING, "one", webhooks).await;
    let ask = Ask::new(&resources, "", "configmaps");
    ask.create(config_map("one")).await.unwrap();
    let owners = owners(&resources, "one").await;
    assert!(owners.contains("\"operation\":\"Update\""), "{owners}");
    let warnings = ask.warnings.take();
    assert_eq!(warnings.len(), 1);
    let expected = ".metadata.managedFields was in an invalid state after admission; ";
    assert!(warnings[0].starts_with(expected), "{warnings:?}");
}

#[tokio::test]
async fn a_service_must_be_there_and_have_somebody_behind_it() {
    let resources = server().await;
    let hook = WebhookServer::named("hook.default.svc", |asked| add_label(asked, "hooked")).await;
    let config = value!({"clientConfig": {
        "service": {"namespace": "default", "name": "hook", "path": "/m"},
        "caBundle": (STANDARD.encode(&hook.certificate)),
    }});
    let webhooks = vec![webhook(&hook, "/m", config)];
    configure(&resources, MUTATING, "one", webhooks).await;
    let expected = |text: &str| {
        format!(
            "Internal error occurred: failed calling webhook \"hook.m.example.com\": failed to \
             call webhook: Post \"https://hook.default.svc:443/m?timeout=10s\": {text}"
        )
    };
    let missing = expected("service \"hook\" not found");
    assert_eq!(refusal(create(&resources, "one").await), missing);
    let services = Ask::new(&resources, "", "services");
    let headless = value!({
        "metadata": {"name": "hook"},
        "spec": {"ports": [{"name": "https", "port": 443}], "clusterIP": "None"},
    });
    services.create(headless).await.unwrap();
    let nobody = expected("no endpoints available for service \"hook\"");
    assert_eq!(refusal(create(&resources, "one").await), nobody);
}

#[tokio::test]
async fn a_service_outside_is_called_by_its_own_name() {
    let resources = server().await;
    let hook = WebhookServer::named("hook.default.svc", |asked| add_label(asked, "hooked")).await;
    let port = i64::from(hook.port);
    let config = value!({"clientConfig": {
        "service": {"namespace": "default", "name": "hook", "path": "/m", "port": port},
        "caBundle": (STANDARD.encode(&hook.certificate)),
    }});
    let webhooks = vec![webhook(&hook, "/m", config)];
    configure(&resources, MUTATING, "one", webhooks).await;
    let outside = value!({
        "metadata": {"name": "hook"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    let services = Ask::new(&resources, "", "services");
    services.create(outside).await.unwrap();
    for name in ["one", "two"] {
        let created = create(&resources, name).await.unwrap();
        let label = created.str_at(&["metadata", "labels", "hooked"]);
        assert_eq!(label, Some("yes"));
    }
    assert_eq!(hook.connections(), 1, "connections are kept");
}

#[tokio::test]
async fn a_connection_shows_what_it_is_wanted_for() {
    let resources = server().await;
    let hook = WebhookServer::start(|asked| answer(asked, "\"allowed\":false")).await;
    let rules = value!({"rules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"],
        "resources": ["pods/exec"],
    }]});
    let webhooks = vec![webhook(&hook, "/v", rules)];
    configure(&resources, VALIDATING, "one", webhooks).await;
    let ask = Ask::new(&resources, "", "pods").named("web").under("exec");
    let wanted = value!({"command": ["sh"], "stdin": true});
    let refused = ask.admit_connection("PodExecOptions", wanted).await;
    assert!(matches!(refused, Err(Error::Denied(_))));
    let review = &reviews(&hook)[0];
    let request = review.get("request").unwrap();
    assert_eq!(request.str_at(&["operation"]), Some("CONNECT"));
    assert_eq!(request.str_at(&["kind", "kind"]), Some("PodExecOptions"));
    assert_eq!(request.str_at(&["subResource"]), Some("exec"));
    assert_eq!(request.get("options"), Some(&Value::Null));
    let object = value!({
        "kind": "PodExecOptions", "apiVersion": "v1", "command": ["sh"], "stdin": true,
    });
    assert_eq!(request.get("object"), Some(&object));
}
