//! What becomes of written objects, as texts: one line per object, a `#` line for the question.
//!
//! `created.txt` has pairs (sent, created), `updated.txt` has triples (stored, sent, updated) whose
//! `#` line begins with the subresource. `UPDATE_GOLDEN=1 cargo test` writes the last line of each
//! case anew.

use std::path::PathBuf;

use object::{Map, Text, Value, json};
use schema::decode::{Unknown, decode};

use super::{Status, custom_rules, rules};
use crate::{Catalogue, Generation, Kind, NameRule};

const NOW: &str = "2026-01-02T03:04:05Z";

fn parse(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}: {text}"))
}

fn print(value: &Value) -> String {
    String::from_utf8(json::to_vec(value)).expect("JSON is text")
}

fn kind_of(object: &Value) -> &'static Kind {
    let version = object.str_at(&["apiVersion"]).expect("an apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = object.str_at(&["kind"]).expect("a kind");
    Catalogue::builtin()
        .by_kind(group, version, kind)
        .unwrap_or_else(|| panic!("no {kind}"))
}

/// What the decoder makes of a text, before anything is filled in.
fn decoded(text: &str) -> (&'static Kind, Map) {
    let sent = parse(text);
    let kind = kind_of(&sent);
    let (read, _) = decode(&kind.types, kind.root, sent, Unknown::Drop).expect("a readable body");
    let Value::Object(object) = read else {
        panic!("{text} is no object")
    };
    (kind, object)
}

fn read(text: &str) -> (&'static Kind, Map) {
    let (kind, mut object) = decoded(text);
    (kind.rules.defaults)(&mut object);
    (kind, object)
}

fn create(sent: &str) -> String {
    let (kind, mut object) = read(sent);
    (kind.rules.prepare_create)(&mut object);
    (kind.rules.stamp)(&mut object, None, "", NOW);
    let mut object = kind.print(object);
    (kind.rules.settle)(&mut object);
    print(&object.into())
}

fn update(stored: &str, sent: &str, subresource: &str) -> String {
    let (_, old) = read(stored);
    let (kind, mut new) = read(sent);
    (kind.rules.prepare_update)(&mut new, &old, subresource);
    (kind.rules.stamp)(&mut new, Some(&old), subresource, NOW);
    let mut new = kind.print(new);
    (kind.rules.settle)(&mut new);
    print(&new.into())
}

/// Runs `result` over the cases of a file and compares it with the last line of each.
fn check(file: &str, result: impl Fn(&str, &[&str]) -> String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src/groups/tests")
        .join(file);
    let text = std::fs::read_to_string(&path).expect("the cases");
    let mut rewritten = String::new();
    let mut wrong = Vec::new();
    for case in text.split("\n\n") {
        let lines: Vec<&str> = case.trim().lines().collect();
        let (expected, given) = lines.split_last().expect("a case has lines");
        let question = given[0].trim_start_matches("# ");
        let actual = result(question, &given[1..]);
        if actual != *expected {
            wrong.push(format!("{question}\n   is {actual}\n  not {expected}"));
        }
        rewritten.push_str(&format!("{}\n{actual}\n\n", given.join("\n")));
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, rewritten.trim_end().to_owned() + "\n").expect("the cases");
    } else {
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn what_becomes_of_a_new_object() {
    check("created.txt", |_, lines| create(lines[0]));
}

#[test]
fn what_becomes_of_a_changed_object() {
    check("updated.txt", |question, lines| {
        let subresource = question.split(':').next().unwrap_or_default();
        update(
            lines[0],
            lines[1],
            if subresource == "object" {
                ""
            } else {
                subresource
            },
        )
    });
}

#[test]
fn defaults_of_a_created_object_change_nothing_more() {
    let text = include_str!("tests/created.txt");
    for created in text
        .lines()
        .filter(|line| line.starts_with('{'))
        .skip(1)
        .step_by(2)
    {
        assert_eq!(read(created).1, decoded(created).1);
    }
}

#[test]
fn every_stored_kind_has_a_case() {
    let text = include_str!("tests/created.txt");
    let cases: Vec<Value> = text
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(parse)
        .collect();
    for kind in Catalogue::builtin().kinds() {
        let stored = kind.verbs.iter().any(|verb| verb == "list") && kind.kind != "ComponentStatus";
        let version = kind.api_version();
        let has_case = cases.iter().any(|case| {
            case.str_at(&["kind"]) == Some(&kind.kind)
                && case.str_at(&["apiVersion"]) == Some(&version)
        });
        assert!(has_case || !stored, "no case for {version} {}", kind.kind);
    }
}

#[test]
fn which_kinds_differ_in_how_they_are_written_and_deleted() {
    type Pick = fn(&Kind) -> bool;
    let named = |pick: Pick| {
        let kinds = Catalogue::builtin().kinds();
        let stored = |kind: &&std::sync::Arc<Kind>| kind.verbs.iter().any(|verb| verb == "update");
        let names: Vec<Text> = kinds
            .iter()
            .filter(stored)
            .filter(|kind| pick(kind))
            .map(|kind| kind.group_resource())
            .collect();
        names.join(" ")
    };
    let cases: [(&str, Pick); 6] = [
        (
            "endpoints events limitranges services events.events.k8s.io \
             clusterrolebindings.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io \
             rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io \
             leases.coordination.k8s.io runtimeclasses.node.k8s.io",
            |kind| kind.rules.create_on_update,
        ),
        (
            "apiservices.apiregistration.k8s.io poddisruptionbudgets.policy \
             csidrivers.storage.k8s.io csinodes.storage.k8s.io csistoragecapacities.storage.k8s.io \
             volumeattachments.storage.k8s.io \
             mutatingadmissionpolicies.admissionregistration.k8s.io \
             mutatingadmissionpolicybindings.admissionregistration.k8s.io \
             mutatingwebhookconfigurations.admissionregistration.k8s.io \
             validatingadmissionpolicies.admissionregistration.k8s.io \
             validatingadmissionpolicybindings.admissionregistration.k8s.io \
             validatingwebhookconfigurations.admissionregistration.k8s.io \
             customresourcedefinitions.apiextensions.k8s.io leases.coordination.k8s.io \
             runtimeclasses.node.k8s.io",
            |kind| !kind.rules.unconditional_update,
        ),
        (
            "namespaces persistentvolumeclaims persistentvolumes pods podtemplates resourcequotas \
             serviceaccounts services csidrivers.storage.k8s.io csinodes.storage.k8s.io \
             storageclasses.storage.k8s.io volumeattachments.storage.k8s.io \
             volumeattributesclasses.storage.k8s.io deviceclasses.resource.k8s.io \
             resourceclaims.resource.k8s.io resourceclaimtemplates.resource.k8s.io \
             resourceslices.resource.k8s.io",
            |kind| kind.rules.returns_deleted,
        ),
        ("replicationcontrollers jobs.batch", |kind| {
            kind.rules.orphan_by_default
        }),
        ("events events.events.k8s.io", |kind| {
            !kind.rules.garbage_collected
        }),
        ("events events.events.k8s.io", |kind| {
            kind.rules.ttl_seconds == Some(3600)
        }),
    ];
    for (expected, pick) in cases {
        assert_eq!(named(pick), expected);
    }
}

#[test]
fn when_generations_count() {
    let cases = [
        ("", "v1", "ConfigMap", Generation::None),
        ("", "v1", "Service", Generation::None),
        ("", "v1", "Pod", Generation::Spec),
        ("", "v1", "PodTemplate", Generation::AllButStatus),
        ("apps", "v1", "Deployment", Generation::SpecAndAnnotations),
        ("apps", "v1", "DaemonSet", Generation::Spec),
        (
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            Generation::None,
        ),
        (
            "discovery.k8s.io",
            "v1",
            "EndpointSlice",
            Generation::AllAndLabels,
        ),
        (
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            Generation::Fixed,
        ),
        (
            "storage.k8s.io",
            "v1",
            "CSIDriver",
            Generation::SpecOnceChanged,
        ),
        (
            "apiregistration.k8s.io",
            "v1",
            "APIService",
            Generation::None,
        ),
    ];
    for (group, version, kind, generation) in cases {
        assert_eq!(rules(group, version, kind).generation, generation, "{kind}");
    }
}

/// Every object that differs from `object` in one place, where it holds `other`.
fn with_each_place_replaced(object: &Value, other: &Value) -> Vec<Value> {
    let mut out = vec![other.clone()];
    match object {
        Value::Object(map) => {
            for (key, value) in map.iter() {
                out.extend(
                    with_each_place_replaced(value, other)
                        .into_iter()
                        .map(|value| {
                            let mut map = map.clone();
                            map.insert(key.clone(), value);
                            map.into()
                        }),
                );
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                out.extend(
                    with_each_place_replaced(value, other)
                        .into_iter()
                        .map(|value| {
                            let mut items = items.clone();
                            items[at] = value;
                            items.into()
                        }),
                );
            }
        }
        _ => {}
    }
    out
}

#[test]
fn no_shape_of_an_object_brings_the_rules_down() {
    let text = include_str!("tests/created.txt");
    let others = [
        Value::Null,
        Value::Int(-1),
        "x".into(),
        Value::Array(vec![Value::Int(1)]),
    ];
    let catalogue = Catalogue::builtin();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let object = parse(line);
        let kind = kind_of(&object);
        let Value::Object(old) = &object else {
            continue;
        };
        let siblings = || {
            catalogue
                .kinds()
                .iter()
                .filter(|it| it.collection == kind.collection)
        };
        for other in &others {
            for mangled in with_each_place_replaced(&object, other) {
                let Value::Object(mut new) = mangled else {
                    continue;
                };
                (kind.rules.defaults)(&mut new);
                (kind.rules.prepare_create)(&mut new.clone());
                for subresource in ["", "status", "approval", "ephemeralcontainers", "resize"] {
                    let mut new = new.clone();
                    (kind.rules.prepare_update)(&mut new, old, subresource);
                    (kind.rules.stamp)(&mut new, Some(old), subresource, NOW);
                    (kind.rules.prepare_update)(&mut old.clone(), &new, subresource);
                }
                for field in kind.rules.selectable {
                    (kind.rules.select)(&new, field);
                }
                for sibling in siblings() {
                    crate::convert::convert(kind, sibling, new.clone());
                }
            }
        }
    }
}

#[test]
fn which_names_are_taken() {
    let cases = [
        ("", "ConfigMap", NameRule::Subdomain),
        ("", "Namespace", NameRule::Label),
        ("", "Service", NameRule::Label),
        ("", "Event", NameRule::PathSegment),
        ("events.k8s.io", "Event", NameRule::Subdomain),
        ("apps", "StatefulSet", NameRule::Label),
        ("apps", "Deployment", NameRule::Subdomain),
        ("rbac.authorization.k8s.io", "Role", NameRule::PathSegment),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            NameRule::PathSegment,
        ),
        (
            "apiregistration.k8s.io",
            "APIService",
            NameRule::PathSegment,
        ),
        ("networking.k8s.io", "IPAddress", NameRule::PathSegment),
    ];
    for (group, kind, name) in cases {
        assert_eq!(rules(group, "v1", kind).name, name, "{kind}");
    }
}

#[test]
fn how_long_a_pod_may_take_to_stop() {
    let running = r#"{"spec":{"nodeName":"n","terminationGracePeriodSeconds":30},"status":{}}"#;
    let over = r#"{"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}}"#;
    let waiting = r#"{"spec":{"terminationGracePeriodSeconds":30}}"#;
    let cases = [
        (running, None, 30),
        (running, Some(5), 5),
        (running, Some(0), 0),
        (running, Some(-1), 1),
        (over, Some(5), 0),
        (waiting, Some(5), 0),
    ];
    let rules = rules("", "v1", "Pod");
    for (text, given, expected) in cases {
        let Value::Object(pod) = parse(text) else {
            panic!("{text} is no object")
        };
        assert_eq!(
            (rules.grace_period)(&pod, given),
            Some(expected),
            "{text} {given:?}"
        );
    }
}

#[test]
fn a_namespace_is_held_by_the_finalizers_of_its_spec() {
    let rules = rules("", "v1", "Namespace");
    let cases = [
        (r#"{"spec":{"finalizers":["kubernetes"]}}"#, true),
        (r#"{"spec":{"finalizers":[]}}"#, false),
        (r#"{"spec":{}}"#, false),
    ];
    for (text, held) in cases {
        let Value::Object(mut namespace) = parse(text) else {
            panic!("{text} is no object")
        };
        assert_eq!((rules.held)(&namespace), held, "{text}");
        (rules.mark_deleting)(&mut namespace);
        assert_eq!(
            Value::Object(namespace).str_at(&["status", "phase"]),
            Some("Terminating")
        );
    }
}

#[test]
fn what_a_custom_resource_keeps() {
    let stored = r#"{"metadata":{"labels":{"a":"b"},"managedFields":[]},"spec":1,"status":2}"#;
    let sent = r#"{"metadata":{"managedFields":[{}]},"spec":3,"status":4,"more":5}"#;
    let cases = [
        (
            Status::Field,
            "",
            r#"{"metadata":{"managedFields":[{}]},"more":5,"spec":3,"status":4}"#,
        ),
        (
            Status::Subresource,
            "",
            r#"{"metadata":{"managedFields":[{}]},"more":5,"spec":3,"status":2}"#,
        ),
        (
            Status::Subresource,
            "status",
            r#"{"metadata":{"labels":{"a":"b"},"managedFields":[{}]},"spec":1,"status":4}"#,
        ),
    ];
    for (status, subresource, expected) in cases {
        let (Value::Object(old), Value::Object(mut new)) = (parse(stored), parse(sent)) else {
            panic!("both are objects")
        };
        (custom_rules(status).prepare_update)(&mut new, &old, subresource);
        assert_eq!(print(&new.into()), expected);
    }
}

#[test]
fn how_selectable_fields_read() {
    let event = r#"{"involvedObject":{"name":"a"},"reportingComponent":"r","source":{}}"#;
    let other = r#"{"regarding":{"name":"a"},"reportingController":"r","deprecatedSource":{}}"#;
    let pod = r#"{"spec":{"nodeName":"n","hostNetwork":true},"status":{"podIP":"1.2.3.4"}}"#;
    let cases = [
        ("", "Pod", pod, "spec.host", "n"),
        ("", "Pod", pod, "spec.hostNetwork", "true"),
        ("", "Pod", "{}", "spec.hostNetwork", "false"),
        ("", "Pod", pod, "status.podIP", "1.2.3.4"),
        ("", "Pod", pod, "status.phase", ""),
        ("", "Node", "{}", "spec.unschedulable", "false"),
        ("", "ReplicationController", "{}", "status.replicas", "0"),
        (
            "batch",
            "Job",
            r#"{"status":{"succeeded":2}}"#,
            "status.successful",
            "2",
        ),
        ("", "Event", event, "involvedObject.name", "a"),
        ("", "Event", event, "source", "r"),
        ("events.k8s.io", "Event", event, "regarding.name", "a"),
        ("events.k8s.io", "Event", other, "regarding.name", "a"),
        ("", "Event", other, "source", "r"),
    ];
    for (group, kind, text, field, expected) in cases {
        let rules = rules(group, "v1", kind);
        let Value::Object(object) = parse(text) else {
            panic!("{text} is no object")
        };
        assert_eq!((rules.select)(&object, field), expected, "{kind} {field}");
    }
}

#[test]
fn what_a_subresource_cannot_change() {
    let cases = [
        ("apps", "Deployment", "", "status"),
        ("apps", "Deployment", "status", "spec metadata.labels"),
        ("apps", "Deployment", "scale", ""),
        ("apps", "ReplicaSet", "status", "spec"),
        (
            "",
            "Pod",
            "status",
            "spec metadata.deletionTimestamp metadata.ownerReferences",
        ),
        ("", "Pod", "resize", ""),
        ("", "Namespace", "finalize", "status"),
        ("", "ConfigMap", "", ""),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            "",
            "spec status",
        ),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            "status",
            "spec status.conditions",
        ),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            "approval",
            "spec status.certificate",
        ),
        (
            "resource.k8s.io",
            "ResourceClaim",
            "status",
            "spec metadata",
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "status",
            "spec",
        ),
    ];
    for (group, kind, subresource, expected) in cases {
        let paths = (rules(group, "v1", kind).reset_fields)(subresource);
        let paths: Vec<String> = paths.iter().map(|path| path.join(".")).collect();
        assert_eq!(paths.join(" "), expected, "{kind}/{subresource}");
    }
}
