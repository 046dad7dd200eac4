//! What bodies say about identity, version and managed fields.

use std::time::Duration;

use object::{Value, value};
use resources::options::{DeleteOptions, Propagation};

use crate::fixture::{Ask, refusal, server, server_and_clock};

const UID: &str = "11111111-1111-1111-1111-111111111111";

fn named(metadata: Value) -> Value {
    let mut object = value!({"metadata": {"name": "one"}});
    for (key, value) in metadata.as_object().unwrap().iter() {
        let metadata = object.as_object_mut().unwrap().object_at("metadata");
        metadata.insert(key.clone(), value.clone());
    }
    object
}

#[tokio::test]
async fn which_object_does_a_put_for_nothing_make() {
    let server = server().await;
    let leases = || Ask::new(&server, "coordination.k8s.io", "leases").named("one");
    let with_uid = named(value!({"uid": UID, "labels": {"a": "b c"}}));
    let said = refusal(leases().update(with_uid.clone()).await);
    let told = format!("UID in precondition: {UID}, UID in object meta: ");
    assert!(
        said.contains("Key: /registry/leases/default/one,"),
        "{said}"
    );
    assert!(said.ends_with(&told), "{said}");
    let said = refusal(leases().dry().update(with_uid).await);
    assert!(said.contains("Key: /leases/default/one,"), "{said}");
    let said = refusal(
        leases()
            .update(named(value!({"resourceVersion": "x"})))
            .await,
    );
    assert_eq!(said, "strconv.ParseUint: parsing \"x\": invalid syntax");
    let made = leases()
        .update(named(value!({"resourceVersion": "5"})))
        .await;
    assert_ne!(
        made.unwrap().str_at(&["metadata", "resourceVersion"]),
        Some("5")
    );
}

#[tokio::test]
async fn some_names_stand_in_no_path() {
    let server = server().await;
    for (name, why) in [
        (".", "may not be '.'"),
        ("..", "may not be '..'"),
        ("a%b", "may not contain '%'"),
    ] {
        let ask = Ask::new(&server, "", "configmaps").named(name);
        let said = refusal(ask.merge(value!({})).await);
        let told = format!("Name parameter invalid: \"{name}\": {why}");
        assert_eq!(said, told);
    }
}

#[tokio::test]
async fn a_link_to_itself_is_shown_and_never_stored() {
    let server = server().await;
    let maps = || Ask::new(&server, "", "configmaps").named("one");
    let linked = named(value!({"selfLink": "/x"}));
    let link = |object: &Value| object.str_at(&["metadata", "selfLink"]).map(str::to_owned);
    let made = Ask::new(&server, "", "configmaps")
        .create(linked.clone())
        .await;
    assert_eq!(link(&made.unwrap()), None);
    let shown = maps().dry().update(linked.clone()).await.unwrap();
    assert_eq!(link(&shown).as_deref(), Some("/x"));
    assert_eq!(link(&maps().update(linked).await.unwrap()), None);
}

#[tokio::test]
async fn when_is_a_version_of_a_new_object_refused() {
    let server = server().await;
    let leases = || Ask::new(&server, "coordination.k8s.io", "leases");
    let wrong = value!({"resourceVersion": "5", "labels": {"a": "b c"}});
    let said = refusal(leases().create(named(wrong)).await);
    assert!(said.contains("metadata.labels: Invalid value"), "{said}");
    let said = refusal(
        leases()
            .create(named(value!({"resourceVersion": "5"})))
            .await,
    );
    assert_eq!(
        said,
        "resourceVersion should not be set on objects to be created"
    );
    let zero = named(value!({"resourceVersion": "0"}));
    leases().create(zero).await.unwrap();
}

#[tokio::test]
async fn are_managed_fields_read_as_what_they_are() {
    let server = server().await;
    let maps = || Ask::new(&server, "", "configmaps").named("one");
    maps().create(named(value!({}))).await.unwrap();
    let put = async |entry: Value| {
        let body = named(value!({"managedFields": [entry]}));
        let said = maps().update(body).await;
        said.map_err(|error| error.to_string())
    };
    for (entry, said) in [
        (
            value!({"manager": 5}),
            "json: cannot unmarshal number into Go struct field \
             ManagedFieldsEntry.metadata.managedFields.manager of type string",
        ),
        (
            value!({"time": "x"}),
            "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
        ),
    ] {
        let error = put(entry).await.unwrap_err();
        assert!(error.ends_with(said), "{error}");
    }
    // A field set that is none is no mistake: the stored ones stay.
    put(value!({"fieldsType": "FieldsV1", "fieldsV1": 1}))
        .await
        .unwrap();
    let asked = maps();
    let entry = value!({"bogus": 1});
    asked
        .update(named(value!({"managedFields": [entry]})))
        .await
        .unwrap();
    let warned = asked.warnings.take();
    assert_eq!(
        warned,
        ["unknown field \"metadata.managedFields[0].bogus\""]
    );
}

#[tokio::test]
async fn may_a_patch_make_something_else_of_a_kind() {
    let server = server().await;
    let maps = Ask::new(&server, "", "configmaps").named("one");
    maps.create(named(value!({}))).await.unwrap();
    for patch in [value!({"kind": {}}), value!({"apiVersion": 5})] {
        let said = refusal(maps.merge(patch).await);
        assert!(said.contains("couldn't get version/kind; "), "{said}");
    }
}

#[tokio::test]
async fn what_is_read_of_an_object_that_a_patch_takes_the_version_from() {
    let server = server().await;
    let maps = Ask::new(&server, "", "configmaps").named("one");
    maps.create(named(value!({}))).await.unwrap();
    let said = refusal(maps.merge(value!({"apiVersion": null, "data": {}})).await);
    let told =
        "the name of the object (one based on URL) was undeterminable: name must be provided";
    assert_eq!(said, told);
    assert_eq!(
        maps.warnings.take(),
        ["unknown field \"data\"", "unknown field \"metadata\""]
    );
}

#[tokio::test]
async fn how_does_a_strategic_patch_tell_of_wrong_types() {
    let server = server().await;
    let maps = Ask::new(&server, "", "configmaps").named("one");
    maps.create(named(value!({"labels": {"a": "b"}})))
        .await
        .unwrap();
    for (patch, told) in [
        (value!({"data": []}), "cannot restore map from slice"),
        (value!({"metadata": 5}), "cannot restore struct from: int64"),
        (
            value!({"metadata": {"finalizers": "a"}}),
            "cannot restore slice from string",
        ),
        (value!({"data": {"a": 5}}), "cannot convert int64 to string"),
        (value!({"data": {"a": true}}), "unrecognized type: string"),
        (value!({"immutable": "true"}), "unrecognized type: bool"),
    ] {
        let said = refusal(maps.strategic(patch).await);
        assert!(said.ends_with(told), "{said}");
    }
}

#[tokio::test]
async fn does_an_object_that_cannot_be_tracked_keep_its_owners() {
    let server = server().await;
    let accounts = Ask::new(&server, "", "serviceaccounts").named("one");
    let mut whole = named(value!({}));
    let map = whole.as_object_mut().unwrap();
    map.insert("secrets", value!([{"name": "a"}]));
    accounts.create(whole).await.unwrap();
    assert!(accounts.is_owned().await);
    // An item without its key cannot be told from the others.
    accounts.merge(value!({"secrets": [{}]})).await.unwrap();
    assert!(accounts.is_owned().await);
}

#[tokio::test]
async fn what_may_a_daemon_set_count_its_templates_with() {
    let server = server().await;
    let sets = Ask::new(&server, "apps", "daemonsets");
    for (count, cause) in [
        ("", "invalid syntax"),
        ("9999999999999999999", "value out of range"),
    ] {
        let key = "deprecated.daemonset.template.generation";
        let set = value!({"metadata": {"name": "one", "annotations": {(key): count}}});
        let said = refusal(sets.create(set).await);
        let told = format!("strconv.ParseInt: parsing \"{count}\": {cause}");
        assert!(said.ends_with(&told), "{said}");
    }
}

#[tokio::test]
async fn does_a_number_or_text_hold_anything_else() {
    let server = server().await;
    let budgets = Ask::new(&server, "policy", "poddisruptionbudgets");
    for (given, found) in [(value!({"a": "b"}), "object"), (value!(["a"]), "array")] {
        let budget = value!({"metadata": {"name": "one"}, "spec": {"minAvailable": given}});
        let said = refusal(budgets.create(budget).await);
        let told = format!(
            "cannot unmarshal {found} into Go struct field \
             PodDisruptionBudgetSpec.spec.minAvailable of type int32"
        );
        assert!(said.ends_with(&told), "{said}");
    }
}

#[tokio::test]
async fn what_is_told_first_of_a_service() {
    let server = server().await;
    let services = Ask::new(&server, "", "services");
    let spec = value!({"clusterIP": "one", "ports": []});
    let said = services
        .create(value!({"metadata": {}, "spec": spec}))
        .await;
    let said = refusal(said);
    assert!(said.contains("spec.clusterIPs[0]: Invalid value"), "{said}");
    assert!(!said.contains("Required"), "{said}");
    let good = value!({"metadata": {"name": "one"}, "spec": {"ports": [{"port": 80}]}});
    services.create(good).await.unwrap();
    let patch = value!({"spec": {"ipFamilies": ["IPv9"], "ports": []}});
    let said = refusal(services.named("one").merge(patch).await);
    assert!(
        said.ends_with("supported values: \"IPv4\", \"IPv6\""),
        "{said}"
    );
    assert!(said.contains("is invalid: spec.ipFamilies[0]: "), "{said}");
}

#[tokio::test]
async fn does_a_dry_run_know_the_ranges_of_services() {
    let server = server().await;
    let services = || Ask::new(&server, "", "services");
    let service = |spec: Value| value!({"metadata": {"name": "one"}, "spec": spec});
    let far = service(value!({"clusterIP": "10.9.9.9", "ports": [{"port": 80}]}));
    let said = refusal(services().dry().create(far).await);
    assert!(
        said.ends_with("The range of valid IPs is 10.0.0.0/24"),
        "{said}"
    );
    let ports = value!([{"port": 80, "nodePort": 5}]);
    let low = service(value!({"type": "NodePort", "ports": ports}));
    services().dry().create(low.clone()).await.unwrap();
    let said = refusal(services().create(low).await);
    assert!(
        said.contains("provided port is not in the valid range"),
        "{said}"
    );
}

#[tokio::test]
async fn what_is_empty_is_judged_as_such_and_then_forgotten() {
    let resources = server().await;
    let policies = Ask::new(&resources, "networking.k8s.io", "networkpolicies");
    let policy = |ingress: Value| value!({"metadata": {"name": "np"}, "spec": {"podSelector": {}, "ingress": ingress}});
    let created = policies.create(policy(value!([]))).await.unwrap();
    assert_eq!(created.at(&["spec", "ingress"]), None);

    let jobs = Ask::new(&resources, "batch", "jobs");
    let job = value!({"metadata": {"name": "j"}, "spec": {
        "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "args": []}],
            "ephemeralContainers": [{"name": "e", "image": "i", "ports": []}],
        }},
    }});
    let refused = refusal(jobs.create(job).await);
    let expected = "ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral";
    assert!(refused.contains(expected), "{refused}");

    // Whoever looks at what was stored cannot know that it was said to be empty.
    let nodes = Ask::new(&resources, "", "nodes").within("");
    let node = value!({"metadata": {"name": "n"},
        "status": {"capacity": {"cpu": "1"}, "allocatable": {}}});
    let created = nodes.create(node).await.unwrap();
    assert_eq!(
        created.at(&["status", "allocatable"]),
        Some(&value!({"cpu": "1"}))
    );
}

#[tokio::test]
async fn a_change_that_the_server_drops_is_no_write() {
    let (server, clock) = server_and_clock().await;
    let ask = || Ask::new(&server, "apps", "deployments").named("one");
    let template = value!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}
    });
    let spec = value!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    let object = |metadata: Value| {
        let mut object = named(metadata);
        let object_map = object.as_object_mut().unwrap();
        object_map.insert("spec", spec.clone());
        object
    };
    let made = ask().create(object(value!({}))).await.unwrap();
    clock.advance(Duration::from_secs(60));
    for dropped in [
        value!({"generation": 99}),
        value!({"creationTimestamp": "2001-01-01T00:00:00Z"}),
    ] {
        let updated = ask().update(object(dropped.clone())).await.unwrap();
        assert_eq!(updated, made, "{dropped:?}");
    }
    let labels = value!({"labels": {"a": "b"}});
    let updated = ask().update(object(labels)).await.unwrap();
    assert_ne!(updated, made, "a label is a change");
}

#[tokio::test]
async fn a_write_through_the_status_of_a_flow_schema_takes_no_metadata() {
    let server = server().await;
    let levels = Ask::new(
        &server,
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
    );
    let levels = levels.named("one");
    let made = levels
        .create(value!({
            "metadata": {"name": "one", "labels": {"a": "b"}},
            "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
        }))
        .await
        .unwrap();
    let status = levels.under("status");
    let metadata = value!({"metadata": {"uid": UID, "labels": {"c": "d"}}});
    assert_eq!(status.merge(metadata).await.unwrap(), made);
}

#[tokio::test]
async fn a_job_shows_the_labels_of_its_pods_unless_its_name_was_made() {
    let server = server().await;
    let create = async |metadata: Value| {
        let spec = value!({
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {
                    "containers": [{"name": "c", "image": "i"}],
                    "restartPolicy": "Never"
                }
            }
        });
        let jobs = Ask::new(&server, "batch", "jobs");
        let job = value!({"metadata": metadata, "spec": spec});
        let made = jobs.create(job).await.unwrap();
        let label = made.str_at(&["metadata", "labels", "job-name"]);
        label.map(str::to_owned)
    };
    for metadata in [
        value!({"name": "one"}),
        value!({"name": "two", "generateName": "abc-"}),
    ] {
        let name = metadata.str_at(&["name"]).map(str::to_owned);
        assert_eq!(create(metadata).await, name);
    }
    assert_eq!(create(value!({"generateName": "abc-"})).await, None);
}

#[tokio::test]
async fn the_group_of_a_stored_data_source_may_become_any_other() {
    let server = server().await;
    let claims = Ask::new(&server, "", "persistentvolumeclaims").named("one");
    let claim = |group: &str| {
        value!({
            "metadata": {"name": "one"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "dataSourceRef": {"apiGroup": group, "kind": "Snapshot", "name": "x"}
            }
        })
    };
    let format = "a lowercase RFC 1123 subdomain";
    let said = refusal(claims.create(claim("A.B")).await);
    assert!(said.contains(format), "{said}");
    claims.create(claim("a.b")).await.unwrap();
    let said = refusal(claims.update(claim("A.B")).await);
    assert!(said.contains("spec is immutable"), "{said}");
    assert!(!said.contains(format), "{said}");
}

#[tokio::test]
async fn a_definition_that_is_deleted_waits_for_its_own_objects_alone() {
    let server = server().await;
    let definitions = Ask::new(&server, "apiextensions.k8s.io", "customresourcedefinitions");
    let definitions = definitions.named("things.example.com");
    let schema = value!({"openAPIV3Schema": {"type": "object"}});
    let version = value!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let definition = value!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Namespaced",
            "versions": [version]
        }
    });
    definitions.create(definition).await.unwrap();
    let orphan = DeleteOptions {
        propagation: Some(Propagation::Orphan),
        ..DeleteOptions::default()
    };
    definitions.delete_with(orphan).await.unwrap();
    let left = definitions.merge(value!({})).await.unwrap();
    let finalizers = left
        .get("metadata")
        .and_then(|metadata| metadata.get("finalizers"));
    let own = value!(["customresourcecleanup.apiextensions.k8s.io"]);
    assert_eq!(finalizers, Some(&own));
}
