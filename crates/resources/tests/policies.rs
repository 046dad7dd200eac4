//! Policies as users write them: what they refuse, change and note.

use auth::User;
use object::{Value, value};
use resources::error::Denial;
use resources::{Error, Resources};

use crate::fixture::{Ask, refusal, server, server_without};

const GROUP: &str = "admissionregistration.k8s.io";

/// A rule for everything that is done to a resource of the core or the apps group.
fn rules(resource: &str) -> Value {
    value!({"resourceRules": [{
        "apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": [resource],
    }]})
}

fn with(object: Value, more: Value) -> Value {
    let (Value::Object(mut object), Value::Object(more)) = (object, more) else {
        panic!("both are maps")
    };
    for (key, value) in more {
        object.insert(key, value);
    }
    Value::Object(object)
}

async fn make(resources: &Resources, resource: &str, object: Value) {
    let made = Ask::new(resources, GROUP, resource).create(object).await;
    made.expect("the configuration is good");
}

/// Puts a validating policy in force, under the name `rule`.
async fn enforce(resources: &Resources, resource: &str, spec: Value, binding: Value) {
    let spec = with(value!({"matchConstraints": (rules(resource))}), spec);
    let policy = value!({"metadata": {"name": "rule"}, "spec": spec});
    make(resources, "validatingadmissionpolicies", policy).await;
    let spec = with(
        value!({"policyName": "rule", "validationActions": ["Deny"]}),
        binding,
    );
    let binding = value!({"metadata": {"name": "bound"}, "spec": spec});
    make(resources, "validatingadmissionpolicybindings", binding).await;
}

/// Puts a mutating policy in force.
async fn change(resources: &Resources, name: &str, resource: &str, spec: Value) {
    let defaults = value!({
        "matchConstraints": (rules(resource)), "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
    });
    let policy = value!({"metadata": {"name": name}, "spec": (with(defaults, spec))});
    make(resources, "mutatingadmissionpolicies", policy).await;
    let binding = value!({"metadata": {"name": name}, "spec": {"policyName": name}});
    make(resources, "mutatingadmissionpolicybindings", binding).await;
}

fn apply(expression: &str) -> Value {
    value!({
        "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression},
    })
}

fn patch(expression: &str) -> Value {
    value!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

fn config_map(name: &str, data: Value) -> Value {
    value!({"metadata": {"name": name}, "data": data})
}

fn deployment(name: &str, replicas: i64, image: &str) -> Value {
    value!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    })
}

async fn create_map(resources: &Resources, name: &str, data: Value) -> Result<Value, Error> {
    let ask = Ask::new(resources, "", "configmaps");
    ask.create(config_map(name, data)).await
}

fn denial(result: Result<Value, Error>) -> Denial {
    match result {
        Err(Error::Denied(denial)) => *denial,
        other => panic!("this is denied, not {other:?}"),
    }
}

fn denied(text: &str) -> String {
    format!("ValidatingAdmissionPolicy 'rule' with binding 'bound' denied request: {text}")
}

#[tokio::test]
async fn labels_can_be_required() {
    let resources = server().await;
    let spec = value!({"validations": [{
        "expression": "has(object.metadata.labels) && 'team' in object.metadata.labels",
        "messageExpression": "'say whose ' + object.metadata.name + ' is'",
        "reason": "Forbidden",
    }]});
    enforce(&resources, "deployments", spec, value!({})).await;
    let ask = Ask::new(&resources, "apps", "deployments");
    let refused = denial(
        ask.create(deployment("web", 1, "registry.example/a:1"))
            .await,
    );
    assert_eq!(refused.reason, "Forbidden");
    let expected = denied("say whose web is");
    let message = format!("deployments.apps \"web\" is forbidden: {expected}");
    assert_eq!(refused.message, message);
    let details = value!({
        "name": "web", "group": "apps", "kind": "deployments", "causes": [{"message": expected}],
    });
    assert_eq!(refused.details, Some(details));
    let mut labelled = deployment("web", 1, "registry.example/a:1");
    let metadata = labelled
        .get_mut("metadata")
        .unwrap()
        .as_object_mut()
        .unwrap();
    metadata.insert("labels", value!({"team": "one"}));
    assert!(ask.create(labelled).await.is_ok());
}

#[tokio::test]
async fn a_plugin_that_is_switched_off_lets_everything_through() {
    for (plugin, allowed) in [
        ("ValidatingAdmissionPolicy", true),
        ("ValidatingAdmissionWebhook", false),
    ] {
        let resources = server_without(&["ServiceAccount", plugin]).await;
        let spec = value!({"validations": [{"expression": "false"}]});
        enforce(&resources, "configmaps", spec, value!({})).await;
        let created = create_map(&resources, "one", value!({})).await;
        assert_eq!(created.is_ok(), allowed, "without {plugin}");
    }
}

#[tokio::test]
async fn images_come_from_known_registries() {
    let resources = server().await;
    let spec = value!({
        "variables": [{
            "name": "images",
            "expression": "object.spec.template.spec.containers.map(c, c.image)",
        }],
        "validations": [{
            "expression": "variables.images.all(i, i.startsWith('registry.example/'))",
            "message": "only images of registry.example",
        }],
    });
    enforce(&resources, "deployments", spec, value!({})).await;
    let ask = Ask::new(&resources, "apps", "deployments");
    let text = refusal(
        ask.create(deployment("bad", 1, "elsewhere.example/a:1"))
            .await,
    );
    assert!(
        text.ends_with("denied request: only images of registry.example"),
        "{text}"
    );
    assert!(
        ask.create(deployment("good", 1, "registry.example/a:1"))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn limits_are_parameters_in_the_namespace_or_chosen_by_labels() {
    let resources = server().await;
    let limits = value!({
        "metadata": {"name": "limits", "labels": {"limits": "yes"}}, "data": {"max": "3"},
    });
    Ask::new(&resources, "", "configmaps")
        .create(limits)
        .await
        .unwrap();
    let spec = value!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{
            "expression": "object.spec.replicas <= int(params.data.max)",
            "messageExpression": "'at most ' + params.data.max",
        }],
    });
    let named = value!({"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}});
    enforce(&resources, "deployments", spec, named).await;
    let bindings = Ask::new(&resources, GROUP, "validatingadmissionpolicybindings").named("bound");
    let ask = Ask::new(&resources, "apps", "deployments");
    let create = |name: &'static str, replicas| {
        ask.create(deployment(name, replicas, "registry.example/a:1"))
    };
    let too_many = format!(
        "deployments.apps \"four\" is forbidden: {}",
        denied("at most 3")
    );
    assert_eq!(refusal(create("four", 4).await), too_many);
    assert!(create("three", 3).await.is_ok());

    let selected = value!({"spec": {"paramRef": {
        "name": null, "selector": {"matchLabels": {"limits": "yes"}},
    }}});
    bindings.merge(selected).await.unwrap();
    assert_eq!(refusal(create("four", 4).await), too_many);

    let nothing = value!({"spec": {"paramRef": {"selector": {"matchLabels": {"limits": "no"}}}}});
    bindings.merge(nothing).await.unwrap();
    let missing = "failed to configure binding: no params found for policy binding with `Deny` \
                   parameterNotFoundAction";
    assert_eq!(
        refusal(create("four", 4).await),
        format!(
            "deployments.apps \"four\" is forbidden: {}",
            denied(missing)
        )
    );
    let allow = value!({"spec": {"paramRef": {"parameterNotFoundAction": "Allow"}}});
    bindings.merge(allow).await.unwrap();
    assert!(create("four", 4).await.is_ok());
}

#[tokio::test]
async fn what_was_set_once_stays() {
    let resources = server().await;
    let spec = value!({
        "matchConditions": [{"name": "updates", "expression": "oldObject != null"}],
        "validations": [{"expression": "object.data.owner == oldObject.data.owner"}],
    });
    enforce(&resources, "configmaps", spec, value!({})).await;
    create_map(&resources, "one", value!({"owner": "ann"}))
        .await
        .unwrap();
    let one = Ask::new(&resources, "", "configmaps").named("one");
    assert!(one.merge(value!({"data": {"other": "1"}})).await.is_ok());
    let expected = denied("failed expression: object.data.owner == oldObject.data.owner");
    let text = refusal(one.merge(value!({"data": {"owner": "bob"}})).await);
    assert_eq!(text, format!("configmaps \"one\" is forbidden: {expected}"));
}

#[tokio::test]
async fn what_users_may_do_can_be_asked() {
    let resources = server().await;
    let spec = value!({"validations": [{
        "expression": "authorizer.group('').resource('secrets').check('list').allowed() || \
                       authorizer.requestResource.check('approve').allowed()",
        "message": "not by you",
    }]});
    enforce(&resources, "configmaps", spec, value!({})).await;
    assert!(create_map(&resources, "master", value!({})).await.is_ok());
    let mut ask = Ask::new(&resources, "", "configmaps");
    ask.user = User::authenticated("bob", "", &[]);
    let text = refusal(ask.create(config_map("two", value!({}))).await);
    assert!(text.ends_with("not by you"), "{text}");
}

#[tokio::test]
async fn an_expression_that_fails_counts_as_its_policy_says() {
    let cases = [
        ("object.data.missing == 'x'", "no such key: missing"),
        (
            "variables.broken",
            "composited variable \"broken\" fails to evaluate: ",
        ),
        (
            "[1, 2, 3, 4, 5, 6, 7, 8].all(a, [1, 2, 3, 4, 5, 6, 7, 8].all(b, [1, 2, 3, 4, 5, 6, 7, \
             8].all(c, [1, 2, 3, 4, 5, 6, 7, 8].all(d, [1, 2, 3, 4, 5, 6, 7, 8].all(e, [1, 2, 3, \
             4, 5, 6, 7, 8].all(f, [1, 2, 3, 4, 5, 6, 7, 8].all(g, a + b + c + d + e + f + g > \
             0)))))))",
            "operation cancelled: actual cost limit exceeded",
        ),
    ];
    for (expression, expected) in cases {
        for policy in ["Fail", "Ignore"] {
            let resources = server().await;
            let spec = value!({
                "failurePolicy": policy,
                "variables": [{"name": "broken", "expression": "int(object.data.n) > 1"}],
                "validations": [{"expression": expression}],
            });
            enforce(&resources, "configmaps", spec, value!({})).await;
            let created = create_map(&resources, "one", value!({"n": "many"})).await;
            if policy == "Ignore" {
                assert!(created.is_ok(), "{expression}: {created:?}");
                continue;
            }
            let text = refusal(created);
            let start = denied(&format!("expression '{expression}' resulted in error: "));
            assert!(text.contains(&start) && text.contains(expected), "{text}");
        }
    }
}

#[tokio::test]
async fn conditions_that_fail_alike_are_told_once() {
    let resources = server().await;
    let condition = |name: &str| value!({"name": name, "expression": "object.data.no == ''"});
    let spec = value!({
        "matchConditions": [(condition("a")), (condition("b"))],
        "validations": [{"expression": "true"}],
    });
    enforce(&resources, "configmaps", spec, value!({})).await;
    let text = refusal(create_map(&resources, "one", value!({"n": "1"})).await);
    assert_eq!(text.matches("no such key: no").count(), 1, "{text}");
}

#[tokio::test]
async fn a_denial_may_be_a_warning_and_a_note() {
    let resources = server().await;
    let spec = value!({
        "validations": [{"expression": "false", "message": "better not"}],
        "auditAnnotations": [{
            "key": "who", "valueExpression": "'by ' + request.userInfo.username",
        }],
    });
    let binding = value!({"validationActions": ["Warn", "Audit"]});
    enforce(&resources, "configmaps", spec, binding).await;
    let ask = Ask::new(&resources, "", "configmaps");
    ask.create(config_map("one", value!({}))).await.unwrap();
    let warning = "Validation failed for ValidatingAdmissionPolicy 'rule' with binding 'bound': \
                   better not";
    assert_eq!(ask.warnings.take(), [warning]);
    let notes = ask.warnings.annotations();
    assert_eq!(notes[1], ("rule/who".to_owned(), "by admin".to_owned()));
    assert_eq!(
        notes[0].0,
        "validation.policy.admission.k8s.io/validation_failure"
    );
    assert!(
        notes[0].1.contains("\"message\":\"better not\""),
        "{}",
        notes[0].1
    );
}

#[tokio::test]
async fn parameters_of_an_unknown_kind_refuse() {
    let resources = server().await;
    let spec = value!({
        "paramKind": {"apiVersion": "rules.example/v1", "kind": "Limit"},
        "validations": [{"expression": "true"}],
    });
    let named = value!({"paramRef": {"name": "x", "parameterNotFoundAction": "Allow"}});
    enforce(&resources, "configmaps", spec, named).await;
    assert_eq!(
        refusal(create_map(&resources, "one", value!({})).await),
        "configmaps \"one\" is forbidden: ValidatingAdmissionPolicy 'rule' denied request: failed \
         to configure policy: failed to find resource referenced by paramKind: \
         'rules.example/v1, Kind=Limit'"
    );
}

#[tokio::test]
async fn a_policy_merges_what_it_wants_into_lists_by_their_keys() {
    let resources = server().await;
    let mutation = apply(
        "Object{spec: Object.spec{template: Object.spec.template{spec: \
         Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: \
         'main', imagePullPolicy: 'Always'}]}}}}",
    );
    let labels = patch(
        "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a.b/c'), value: \
         'yes'}]",
    );
    change(
        &resources,
        "pull",
        "deployments",
        value!({"mutations": [mutation, labels]}),
    )
    .await;
    let ask = Ask::new(&resources, "apps", "deployments");
    let created = ask
        .create(deployment("web", 1, "registry.example/a:1"))
        .await
        .unwrap();
    let containers = created.at(&["spec", "template", "spec", "containers"]);
    let container = &containers.unwrap().as_array().unwrap()[0];
    assert_eq!(container.str_at(&["imagePullPolicy"]), Some("Always"));
    assert_eq!(container.str_at(&["image"]), Some("registry.example/a:1"));
    assert_eq!(
        created.str_at(&["metadata", "labels", "a.b/c"]),
        Some("yes")
    );
}

#[tokio::test]
async fn what_a_policy_may_not_change_is_told() {
    let cases = [
        (
            apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {}}}}"),
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps \
             or structs: .spec.selector",
        ),
        (
            apply("Object{spec: Object.other{replicas: 1}}"),
            "type mismatch: unexpected type name \"Object.other\", expected \"Object.spec\", which \
             matches field name path from root Object type",
        ),
        (
            patch("[JSONPatch{op: 'remove', path: '/spec/nothing'}]"),
            "JSON Patch: ",
        ),
    ];
    for (mutation, expected) in cases {
        let resources = server().await;
        change(
            &resources,
            "bad",
            "deployments",
            value!({"mutations": [mutation]}),
        )
        .await;
        let ask = Ask::new(&resources, "apps", "deployments");
        let refused = denial(
            ask.create(deployment("web", 1, "registry.example/a:1"))
                .await,
        );
        let start = format!("policy 'bad' with binding 'bad' denied request: {expected}");
        assert!(refused.message.starts_with(&start), "{}", refused.message);
        assert_eq!((refused.code, refused.reason.as_str()), (403, "Invalid"));
    }
}

#[tokio::test]
async fn a_test_that_fails_leaves_the_object_alone() {
    let resources = server().await;
    let mutation = patch(
        "[JSONPatch{op: 'test', path: '/data/a', value: 'x'}, JSONPatch{op: 'add', path: \
         '/data/b', value: 'y'}]",
    );
    change(
        &resources,
        "maybe",
        "configmaps",
        value!({"mutations": [mutation]}),
    )
    .await;
    let created = create_map(&resources, "one", value!({"a": "x"}))
        .await
        .unwrap();
    assert_eq!(created.get("data"), Some(&value!({"a": "x", "b": "y"})));
    let created = create_map(&resources, "two", value!({"a": "z"}))
        .await
        .unwrap();
    assert_eq!(created.get("data"), Some(&value!({"a": "z"})));
}

#[tokio::test]
async fn a_policy_that_asks_for_it_sees_what_later_ones_changed() {
    let resources = server().await;
    let count = value!({
        "reinvocationPolicy": "IfNeeded",
        "mutations": [(patch(
            "[JSONPatch{op: 'add', path: '/data/size', value: string(size(object.data))}]"
        ))],
    });
    change(&resources, "a-count", "configmaps", count).await;
    let add = value!({"mutations": [(apply(
        "Object{data: Object.data{added: 'yes'}}"
    ))]});
    change(&resources, "b-add", "configmaps", add).await;
    let created = create_map(&resources, "one", value!({"a": "1"}))
        .await
        .unwrap();
    let data = value!({"a": "1", "added": "yes", "size": "3"});
    assert_eq!(created.get("data"), Some(&data));
}

#[tokio::test]
async fn a_policy_that_asks_for_it_sees_its_own_changes_too() {
    let resources = server().await;
    for (policy, expected) in [("Never", "!"), ("IfNeeded", "!!")] {
        let mark = value!({
            "reinvocationPolicy": policy,
            "matchConditions": [{
                "name": "own",
                "expression": (format!("object.data.by == '{policy}'")),
            }],
            "mutations": [(patch(
                "[JSONPatch{op: 'replace', path: '/data/mark', value: object.data.mark + '!'}]"
            ))],
        });
        change(&resources, &policy.to_lowercase(), "configmaps", mark).await;
        let data = value!({"by": policy, "mark": ""});
        let created = create_map(&resources, &policy.to_lowercase(), data).await;
        let created = created.unwrap();
        assert_eq!(
            created.at(&["data", "mark"]),
            Some(&expected.into()),
            "{policy}"
        );
    }
}

#[tokio::test]
async fn expressions_that_cannot_be_compiled_are_refused_with_their_place() {
    let resources = server().await;
    let policy = value!({"metadata": {"name": "rule"}, "spec": {
        "matchConstraints": (rules("configmaps")),
        "validations": [{"expression": "object.x +"}],
    }});
    let ask = Ask::new(&resources, GROUP, "validatingadmissionpolicies");
    let text = refusal(ask.create(policy).await);
    assert!(
        text.contains("spec.validations[0].expression: Invalid value: \"object.x +\""),
        "{text}"
    );
    assert!(
        text.contains("compilation failed: ERROR: <input>:1:11: Syntax error"),
        "{text}"
    );
}

/// Ten policies on a deployment, for whoever wants to know what they cost.
#[tokio::test]
async fn ten_policies_on_a_deployment_all_have_their_say() {
    let resources = server().await;
    for number in 0..10 {
        let name = format!("rule-{number}");
        let spec = value!({
            "matchConstraints": (rules("deployments")),
            "variables": [{"name": "pod", "expression": "object.spec.template.spec"}],
            "validations": [
                {"expression": "variables.pod.containers.all(c, c.image.startsWith('registry.'))"},
                {"expression": "object.spec.replicas <= 5"},
                {"expression": "has(object.metadata.labels) && 'app' in object.metadata.labels"},
            ],
        });
        let policy = value!({"metadata": {"name": (name.as_str())}, "spec": spec});
        make(&resources, "validatingadmissionpolicies", policy).await;
        let spec = value!({"policyName": (name.as_str()), "validationActions": ["Warn"]});
        let binding = value!({"metadata": {"name": name}, "spec": spec});
        make(&resources, "validatingadmissionpolicybindings", binding).await;
    }
    let ask = Ask::new(&resources, "apps", "deployments").dry();
    ask.create(deployment("web", 6, "registry.example/a:1"))
        .await
        .unwrap();
    assert_eq!(ask.warnings.take().len(), 10);
    if std::env::var_os("PRINT_TIMES").is_some() {
        let began = std::time::Instant::now();
        for _ in 0..1000 {
            ask.create(deployment("web", 5, "registry.example/a:1"))
                .await
                .unwrap();
        }
        println!("{:?} for each create", began.elapsed() / 1000);
    }
}
