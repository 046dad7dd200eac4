//! Objects converted between their versions and back.

use object::{Map, Value, json};

use super::convert;
use crate::{Catalogue, Kind};

fn kind(group: &str, version: &str, kind: &str) -> &'static Kind {
    Catalogue::builtin()
        .by_kind(group, version, kind)
        .expect("a built-in kind")
}

fn parse(text: &str) -> Map {
    match json::parse(text.as_bytes()) {
        Ok(Value::Object(object)) => object,
        other => panic!("{other:?}: {text}"),
    }
}

fn check(from: &Kind, to: &Kind, given: &str, expected: &str) {
    let converted = convert(from, to, parse(given));
    let expected = parse(expected);
    let print = |object: &Map| String::from_utf8(json::to_vec(&object.clone().into()));
    assert_eq!(print(&converted), print(&expected));
}

const AUTOSCALER: &str = "HorizontalPodAutoscaler";

#[test]
fn a_cpu_target_is_a_metric() {
    let (v1, v2) = (
        kind("autoscaling", "v1", AUTOSCALER),
        kind("autoscaling", "v2", AUTOSCALER),
    );
    let older = r#"{"apiVersion":"autoscaling/v1","metadata":{},
        "spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50},
        "status":{"currentReplicas":0,"desiredReplicas":0}}"#;
    let newer = r#"{"apiVersion":"autoscaling/v2","metadata":{},
        "spec":{"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu",
            "target":{"type":"Utilization","averageUtilization":50}}}]},
        "status":{"currentMetrics":null,"desiredReplicas":0}}"#;
    check(v1, v2, older, newer);
    check(v2, v1, newer, older);
}

#[test]
fn what_v1_has_no_field_for_travels_in_annotations() {
    let (v1, v2) = (
        kind("autoscaling", "v1", AUTOSCALER),
        kind("autoscaling", "v2", AUTOSCALER),
    );
    let newer = r#"{"apiVersion":"autoscaling/v2","metadata":{"annotations":{"mine":"kept"}},
        "spec":{"maxReplicas":3,
            "behavior":{"scaleDown":{"selectPolicy":"Max","policies":[
                {"type":"Percent","value":100,"periodSeconds":15}]}},
            "metrics":[
                {"type":"Object","object":{"describedObject":{"kind":"Service","name":"s"},
                    "metric":{"name":"m","selector":{"matchLabels":{"a":"b"}}},
                    "target":{"type":"AverageValue","averageValue":"2"}}},
                {"type":"Pods","pods":{"metric":{"name":"p"},
                    "target":{"type":"AverageValue","averageValue":"1k"}}},
                {"type":"ContainerResource","containerResource":{"name":"cpu","container":"c",
                    "target":{"type":"Utilization","averageUtilization":7}}},
                {"type":"External","external":{"metric":{"name":"e"},
                    "target":{"type":"Value","value":"30"}}},
                {"type":"Resource","resource":{"name":"cpu",
                    "target":{"type":"Utilization","averageUtilization":50}}}]},
        "status":{"desiredReplicas":2,"conditions":[{"type":"AbleToScale","status":"True",
            "lastTransitionTime":"2026-01-01T00:00:00Z","reason":"r"}],
            "currentMetrics":[{"type":"Resource","resource":{"name":"cpu",
                "current":{"averageUtilization":40,"averageValue":"10m"}}}]}}"#;
    let older = convert(v2, v1, parse(newer));
    let annotations = older.get("metadata").and_then(|it| it.get("annotations"));
    let carried = |name: &str| {
        let key = format!("autoscaling.alpha.kubernetes.io/{name}");
        annotations
            .and_then(|it| it.get(&key))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    assert_eq!(
        carried("metrics"),
        concat!(
            r#"[{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"#,
            r#""metricName":"m","targetValue":"0","selector":{"matchLabels":{"a":"b"}},"#,
            r#""averageValue":"2"}},"#,
            r#"{"type":"Pods","pods":{"metricName":"p","targetAverageValue":"1k"}},"#,
            r#"{"type":"ContainerResource","containerResource":{"name":"cpu","#,
            r#""targetAverageUtilization":7,"container":"c"}},"#,
            r#"{"type":"External","external":{"metricName":"e","targetValue":"30"}}]"#
        )
    );
    assert_eq!(
        carried("behavior"),
        concat!(
            r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"#,
            r#""SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":100,"#,
            r#""PeriodSeconds":15}],"Tolerance":null}}"#
        )
    );
    assert_eq!(
        carried("current-metrics"),
        concat!(
            r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":40,"#,
            r#""currentAverageValue":"10m"}}]"#
        )
    );
    assert_eq!(
        carried("conditions"),
        concat!(
            r#"[{"type":"AbleToScale","status":"True","#,
            r#""lastTransitionTime":"2026-01-01T00:00:00Z","reason":"r"}]"#
        )
    );
    assert_eq!(convert(v1, v2, older), parse(newer));
}

#[test]
fn an_annotation_that_cannot_be_read_is_dropped() {
    let (v1, v2) = (
        kind("autoscaling", "v1", AUTOSCALER),
        kind("autoscaling", "v2", AUTOSCALER),
    );
    check(
        v1,
        v2,
        r#"{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"{"}},
            "spec":{},"status":{}}"#,
        r#"{"apiVersion":"autoscaling/v2","metadata":{},
            "spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu",
                "target":{"type":"Utilization","averageUtilization":80}}}]},
            "status":{"currentMetrics":null}}"#,
    );
}

#[test]
fn an_event_has_other_names_in_the_other_group() {
    let (core, other) = (
        kind("", "v1", "Event"),
        kind("events.k8s.io", "v1", "Event"),
    );
    let in_core = r#"{"apiVersion":"v1","metadata":{"name":"e"},
        "involvedObject":{"kind":"Pod"},"message":"hello","source":{"component":"c"},
        "firstTimestamp":null,"lastTimestamp":null,"count":2,"eventTime":null,
        "reason":"Started","reportingComponent":"","reportingInstance":"","type":"Normal"}"#;
    let in_other = r#"{"apiVersion":"events.k8s.io/v1","metadata":{"name":"e"},
        "regarding":{"kind":"Pod"},"note":"hello","deprecatedSource":{"component":"c"},
        "deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null,"deprecatedCount":2,
        "eventTime":null,"reason":"Started","type":"Normal"}"#;
    check(core, other, in_core, in_other);
    check(other, core, in_other, in_core);
}
