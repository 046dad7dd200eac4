//! How long built-in kinds take to default, validate and carry as protobuf.
//!
//! `cargo bench -p windlass-kinds` measures a Deployment and a Pod; with files as arguments
//! (`-- FILE...`) the objects in them. Each line gives the best of thirty runs, because anything
//! else measures the machine's other work.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

use std::{hint::black_box, time::Instant};

use kinds::{Catalogue, Kind};
use object::{Value, json};
use schema::decode::Unknown;
use schema::protobuf;
use windlass_kinds as kinds;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 30;
const REPEATS: usize = 200;

const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web",
    "namespace":"default","labels":{"app":"web","tier":"front"}},"spec":{"replicas":3,
    "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
    "spec":{"containers":[{"name":"web","image":"registry.example/web:1",
     "ports":[{"containerPort":80,"name":"http"}],
     "env":[{"name":"LEVEL","value":"info"},{"name":"PORT","value":"80"}],
     "resources":{"limits":{"cpu":"1","memory":"1Gi"}},
     "readinessProbe":{"httpGet":{"path":"/ready","port":"http"}}},
    {"name":"log","image":"registry.example/log:1",
     "volumeMounts":[{"mountPath":"/log","name":"log"}]}],
    "volumes":[{"name":"log","emptyDir":{}}]}}}}"#;

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-5d8f-x2k4q",
    "namespace":"default","generateName":"web-5d8f-","uid":"9d8f6b5e-3c0a-4f0e-8a3d-5b6a7c8d9e0f",
    "creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"web","tier":"front"},
    "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d8f",
     "uid":"0d1e2f3a-4b5c-4d7e-8f90-a1b2c3d4e5f6","controller":true,"blockOwnerDeletion":true}]},
    "spec":{"serviceAccountName":"web","nodeName":"node-7",
    "containers":[{"name":"web","image":"registry.example/web:1",
     "ports":[{"containerPort":80,"name":"http"}],
     "env":[{"name":"LEVEL","value":"info"},{"name":"PORT","value":"80"}],
     "resources":{"limits":{"cpu":"1","memory":"1Gi"}},
     "readinessProbe":{"httpGet":{"path":"/ready","port":"http"}}},
    {"name":"log","image":"registry.example/log:1",
     "volumeMounts":[{"mountPath":"/log","name":"log"}]}],
    "volumes":[{"name":"log","emptyDir":{}}]},
    "status":{"phase":"Running","podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}],
    "startTime":"2026-01-02T03:04:06Z","qosClass":"Burstable",
    "conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:09Z"},
     {"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}"#;

fn main() {
    let files: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if files.is_empty() {
        bench("Deployment", DEPLOYMENT.as_bytes());
        bench("Pod", POD.as_bytes());
    }
    for file in files {
        let text = std::fs::read(&file).expect("the argument is a file");
        bench(&file, &text);
    }
}

fn bench(name: &str, text: &[u8]) {
    let tree = json::parse(text).expect("the object is JSON");
    let kind = kind_of(&tree).expect("the object is of a built-in kind");
    let Value::Object(given) = tree else {
        return;
    };
    let read = kind.read(given, Unknown::Drop);
    let given = read.expect("the object has the types of its kind").object;
    let mut whole = given.clone();
    kind.apply_defaults(&mut whole);
    let whole = kind.print(whole);
    let object = Value::Object(whole.clone());
    let mut message = Vec::new();
    protobuf::encode(&kind.types, kind.root, &object, &mut message);
    println!(
        "{name}: {} bytes of JSON, {} of protobuf",
        json::to_vec(&object).len(),
        message.len()
    );
    measure("defaults and validation", given.clone(), |mut object| {
        kind.apply_defaults(&mut object);
        assert!(kind.validate(&object, None, "").is_empty(), "it is valid");
    });
    measure("to protobuf", (), |()| {
        let mut out = Vec::with_capacity(message.len());
        protobuf::encode(&kind.types, kind.root, &object, &mut out);
        black_box(out);
    });
    measure("from protobuf", (), |()| {
        black_box(protobuf::decode(&kind.types, kind.root, &message).is_ok());
    });
}

fn kind_of(object: &Value) -> Option<&'static Kind> {
    let api_version = object.str_at(&["apiVersion"])?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = Catalogue::builtin().by_kind(group, version, object.str_at(&["kind"])?)?;
    Some(kind.as_ref())
}

/// Measures work on copies of something; making the copies does not count.
fn measure<T: Clone>(what: &str, given: T, mut work: impl FnMut(T)) {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let copies = vec![given.clone(); REPEATS];
        let start = Instant::now();
        for copy in copies {
            work(copy);
        }
        let each = start.elapsed().as_secs_f64() * 1e6 / REPEATS as f64;
        best = best.min(each);
    }
    println!("{best:9.2} us  {what}");
}
