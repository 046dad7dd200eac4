//! What fits into which quota, and the words when it does not.

use kinds::Catalogue;
use object::{Value, value};

use super::*;

const NOW: i64 = 1_700_000_000;

fn map(value: &Value) -> &Map {
    value.as_object().expect("a map")
}

fn consumer(group: &str, resource: &str, object: &Value, old: Option<&Value>) -> Consumer {
    let kind = Catalogue::builtin().resource(group, "v1", resource);
    let meter = Meter::of(kind.expect("a built-in kind")).expect("it is counted");
    Consumer::new(meter, "", map(object), old.map(map), NOW)
}

fn quota(hard: Value, used: Value) -> Quota {
    scoped(value!({}), hard, used)
}

fn scoped(spec: Value, hard: Value, used: Value) -> Quota {
    let object = value!({
        "metadata": {"name": "q"},
        "spec": spec,
        "status": {"hard": hard, "used": used},
    });
    Quota::new(map(&object))
}

/// What is used afterwards, or the refusal.
fn charged(mut quota: Quota, consumer: &Consumer) -> Result<Value, String> {
    charge(std::slice::from_mut(&mut quota), consumer)?;
    Ok(amounts::write(&quota.used))
}

fn pod(resources: Value) -> Value {
    value!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "resources": resources}]},
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    })
}

#[test]
fn pods_are_charged_for_what_they_ask() {
    let one = pod(value!({
        "requests": {"cpu": "600m", "memory": "1Gi", "example.com/gpu": "2", "hugepages-2Mi": "4Mi"},
        "limits": {"cpu": "1"},
    }));
    let one = consumer("", "pods", &one, None);
    let hard = value!({
        "pods": "5", "count/pods": "5", "cpu": "1", "requests.cpu": "1", "limits.cpu": "2",
        "requests.memory": "2Gi", "requests.example.com/gpu": "2", "requests.hugepages-2Mi": "8Mi",
        "services": "1",
    });
    let used = value!({
        "pods": "1", "count/pods": "1", "cpu": "0", "requests.cpu": "0", "limits.cpu": "0",
        "requests.memory": "0", "requests.example.com/gpu": "0", "requests.hugepages-2Mi": "0",
    });
    let expected = value!({
        "pods": "2", "count/pods": "2", "cpu": "600m", "requests.cpu": "600m", "limits.cpu": "1",
        "requests.memory": "1Gi", "requests.example.com/gpu": "2",
        "requests.hugepages-2Mi": "4Mi",
    });
    assert_eq!(charged(quota(hard, used), &one), Ok(expected));
    let full = quota(
        value!({"requests.cpu": "1", "pods": "2"}),
        value!({"requests.cpu": "500m", "pods": "2"}),
    );
    assert_eq!(
        charged(full, &one),
        Err(
            "exceeded quota: q, requested: pods=1,requests.cpu=600m, used: \
             pods=2,requests.cpu=500m, limited: pods=2,requests.cpu=1"
                .to_owned()
        )
    );
}

#[test]
fn containers_state_what_a_quota_limits() {
    let plain = consumer("", "pods", &pod(value!({})), None);
    let hard = value!({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "5"});
    let used = value!({"requests.cpu": "0", "limits.memory": "0", "pods": "0"});
    assert_eq!(
        charged(quota(hard.clone(), used.clone()), &plain),
        Err(
            "failed quota: q: must specify limits.memory for: main; requests.cpu for: main"
                .to_owned()
        )
    );
    let mut whole = pod(value!({}));
    let limits = value!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}});
    whole
        .get_mut("spec")
        .and_then(Value::as_object_mut)
        .unwrap()
        .insert("resources", limits);
    let whole = consumer("", "pods", &whole, None);
    let expected = value!({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "1"});
    assert_eq!(charged(quota(hard, used), &whole), Ok(expected));
}

#[test]
fn a_limit_without_a_count_is_not_known() {
    let service = value!({"spec": {"ports": [{"port": 80}]}});
    let service = consumer("", "services", &service, None);
    assert_eq!(
        charged(quota(value!({"services": "2"}), value!({})), &service),
        Err("status unknown for quota: q, resources: services".to_owned())
    );
    assert_eq!(
        charged(quota(value!({}), value!({})), &service),
        Ok(value!({}))
    );
}

#[test]
fn which_scopes_a_pod_is_in() {
    let none = value!({"pods": "0"});
    let zero = value!({"pods": "0"});
    let ended =
        |spec: Value, quality: &str| value!({"spec": spec, "status": {"qosClass": quality}});
    let plain = ended(value!({"containers": []}), "BestEffort");
    let ends = ended(value!({"activeDeadlineSeconds": 5}), "Burstable");
    let high = ended(value!({"priorityClassName": "high"}), "Guaranteed");
    let across = ended(
        value!({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["other"]}],
        }}}),
        "BestEffort",
    );
    let selector = |operator: &str, values: Value| {
        value!({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": operator, "values": values},
        ]}})
    };
    let scopes = |scope: &str| value!({"scopes": [scope]});
    for (spec, inside) in [
        (scopes("Terminating"), [false, true, false, false]),
        (scopes("NotTerminating"), [true, false, true, true]),
        (scopes("BestEffort"), [true, false, false, true]),
        (scopes("NotBestEffort"), [false, true, true, false]),
        (
            scopes("CrossNamespacePodAffinity"),
            [false, false, false, true],
        ),
        (scopes("PriorityClass"), [false, false, true, false]),
        (
            selector("In", value!(["high", "low"])),
            [false, false, true, false],
        ),
        (
            selector("NotIn", value!(["high"])),
            [true, true, false, true],
        ),
        (
            selector("DoesNotExist", value!([])),
            [true, true, false, true],
        ),
        (scopes("VolumeAttributesClass"), [false; 4]),
    ] {
        for (pod, inside) in [&plain, &ends, &high, &across].into_iter().zip(inside) {
            let quota = scoped(spec.clone(), none.clone(), zero.clone());
            let refused = charged(quota, &consumer("", "pods", pod, None)).is_err();
            assert_eq!(refused, inside, "{spec:?} {pod:?}");
        }
    }
}

#[test]
fn an_update_is_charged_for_what_it_adds() {
    let service = |kind: &str, ports: &[i64]| {
        let ports: Vec<Value> = ports.iter().map(|port| value!({"port": (*port)})).collect();
        value!({"spec": {"type": kind, "ports": ports}})
    };
    let hard = value!({"services": "1", "services.nodeports": "2", "services.loadbalancers": "1"});
    let used = value!({"services": "1", "services.nodeports": "0", "services.loadbalancers": "0"});
    let plain = service("ClusterIP", &[80]);
    let balanced = service("LoadBalancer", &[80, 443]);
    let update = consumer("", "services", &balanced, Some(&plain));
    let expected =
        value!({"services": "1", "services.nodeports": "2", "services.loadbalancers": "1"});
    assert_eq!(
        charged(quota(hard.clone(), used), &update),
        Ok(expected.clone())
    );
    let back = consumer("", "services", &plain, Some(&balanced));
    assert_eq!(charged(quota(hard, expected.clone()), &back), Ok(expected));
}

#[test]
fn claims_are_charged_to_their_class() {
    let claim = value!({"spec": {
        "storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}},
    }});
    let hard = value!({
        "persistentvolumeclaims": "5", "requests.storage": "10Gi", "count/persistentvolumeclaims": "5",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "slow.storageclass.storage.k8s.io/persistentvolumeclaims": "0",
    });
    let mut used = hard.clone();
    for (_, amount) in used.as_object_mut().unwrap().iter_mut() {
        *amount = "0".into();
    }
    let expected = value!({
        "persistentvolumeclaims": "1", "requests.storage": "2", "count/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "2",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "slow.storageclass.storage.k8s.io/persistentvolumeclaims": "0",
    });
    let claim = consumer("", "persistentvolumeclaims", &claim, None);
    assert_eq!(charged(quota(hard, used), &claim), Ok(expected));
}

#[test]
fn what_is_counted_by_number() {
    let any = value!({"metadata": {"name": "a"}});
    for (group, resource, name) in [
        ("", "configmaps", "configmaps"),
        ("", "secrets", "count/secrets"),
        ("apps", "deployments", "count/deployments.apps"),
        ("batch", "jobs", "count/jobs.batch"),
        ("", "resourcequotas", "resourcequotas"),
    ] {
        let limits = |number: &str| {
            let mut limits = Map::new();
            limits.insert(name, number.into());
            Value::Object(limits)
        };
        let one = consumer(group, resource, &any, None);
        assert_eq!(
            charged(quota(limits("2"), limits("1")), &one),
            Ok(limits("2"))
        );
        assert_eq!(
            charged(quota(limits("2"), limits("2")), &one),
            Err(format!(
                "exceeded quota: q, requested: {name}=1, used: {name}=2, limited: {name}=2"
            ))
        );
    }
}

#[test]
fn a_pod_that_ended_takes_only_its_place_in_the_store() {
    let mut ended = pod(value!({"requests": {"cpu": "1"}}));
    ended
        .get_mut("status")
        .and_then(Value::as_object_mut)
        .unwrap()
        .insert("phase", "Succeeded".into());
    let usage = consumer("", "pods", &ended, None).usage;
    assert_eq!(amounts::write(&usage), value!({"count/pods": "1"}));
}

#[test]
fn one_refusal_leaves_all_quotas_as_they_were() {
    let mut quotas = [
        quota(value!({"configmaps": "5"}), value!({"configmaps": "1"})),
        quota(value!({"configmaps": "1"}), value!({"configmaps": "1"})),
    ];
    let one = consumer("", "configmaps", &value!({}), None);
    assert!(charge(&mut quotas, &one).is_err());
    assert_eq!(amounts::write(&quotas[0].used), value!({"configmaps": "1"}));
    assert!(!quotas[0].changed);
}
