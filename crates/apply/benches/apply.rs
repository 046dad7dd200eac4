//! How long applies and updates take: JSON text in, object text and managed fields text out.
//!
//! `cargo bench -p windlass-apply` measures a small Deployment; with a directory as argument
//! (`-- DIRECTORY`) every `*.json` in it that is an object of a built-in kind. Each line gives the
//! best of thirty runs, because anything else measures the machine's other work.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

use std::{hint::black_box, path::PathBuf, time::Instant};

use apply::{ManagedFields, OnConflict, OneVersion, Style, Typing, Writer};
use kinds::{Catalogue, Kind};
use object::{Value, json};
use windlass_apply as apply;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 30;
const REPEATS: u32 = 50;

const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web",
    "labels":{"app":"web","tier":"front"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},
    "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[
    {"name":"web","image":"registry.example/web:1","ports":[{"containerPort":80,"name":"http"}],
     "env":[{"name":"LEVEL","value":"info"},{"name":"PORT","value":"80"}],
     "resources":{"limits":{"cpu":"1","memory":"1Gi"}},
     "readinessProbe":{"httpGet":{"path":"/ready","port":"http"}}},
    {"name":"log","image":"registry.example/log:1","volumeMounts":[{"mountPath":"/log","name":"log"}]}],
    "volumes":[{"name":"log","emptyDir":{}}]}}}}"#;

fn main() {
    let directory = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    match directory {
        Some(directory) => {
            for path in objects(&directory) {
                let text = std::fs::read(&path).expect("the file was just listed");
                bench(&path.display().to_string(), &text);
            }
        }
        None => bench("Deployment", DEPLOYMENT.as_bytes()),
    }
}

fn objects(directory: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the argument is a directory");
    let mut paths: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    paths
}

fn kind_of(object: &Value) -> Option<&'static Kind> {
    let api_version = object.str_at(&["apiVersion"])?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = Catalogue::builtin().by_kind(group, version, object.str_at(&["kind"])?)?;
    Some(kind.as_ref())
}

/// Reads an object; managed fields travel apart from it.
fn read(text: &[u8]) -> Value {
    let mut object = json::parse(text).expect("the text was read before");
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

fn print(object: &Value, managers: &ManagedFields) {
    let mut out = Vec::with_capacity(4096);
    json::write(object, &mut out);
    managers.write_json(Style::Typed, &mut out);
    black_box(out);
}

fn bench(name: &str, text: &[u8]) {
    let object = read(text);
    let Some(kind) = kind_of(&object) else {
        println!("{name}: not an object of a built-in kind");
        return;
    };
    println!("{name}, {} bytes", text.len());
    let typing = Typing {
        types: &kind.types,
        root: kind.root,
    };
    let api_version = kind.api_version();
    let versions = OneVersion::new(api_version.clone(), typing);
    let by = Writer {
        name: "first",
        api_version: &api_version,
        subresource: "",
    };
    let nobody = ManagedFields::new;
    let apply = |live: Option<&Value>, wanted, managers| {
        apply::apply(live, wanted, managers, by, 1, OnConflict::Refuse, &versions)
            .expect("the object is valid and nobody else owns it")
    };
    time("read and print", || print(&read(text), &nobody()));
    time("first apply", || {
        let applied = apply(None, read(text), nobody());
        print(
            applied.object.as_ref().expect("it is new"),
            &applied.managers,
        );
    });
    let applied = apply(None, read(text), nobody());
    let live = applied.object.expect("it is new");
    time("the same apply again", || {
        black_box(apply(Some(&live), read(text), applied.managers.clone()));
    });
    time("first update", || {
        let new = read(text);
        let managers = apply::update(None, &new, nobody(), by, 1, &versions);
        print(&new, &managers);
    });
    let managers = apply::update(None, &object, nobody(), by, 1, &versions);
    let mut managers_text = Vec::new();
    managers.write_json(Style::Typed, &mut managers_text);
    let mut other = object.clone();
    change(&mut other);
    let other = json::to_vec(&other);
    let second = Writer {
        name: "second",
        ..by
    };
    time("second update, other values", || {
        let managers = ManagedFields::parse(&managers_text).expect("printed above");
        let new = read(&other);
        let managers = apply::update(Some(&object), &new, managers, second, 2, &versions);
        print(&new, &managers);
    });
}

/// Gives every scalar another value, except where values are names or keys.
fn change(value: &mut Value) {
    const KEPT: &[&str] = &[
        "apiVersion",
        "containerPort",
        "ip",
        "key",
        "kind",
        "mountPath",
        "name",
        "namespace",
        "port",
        "protocol",
        "topologyKey",
        "type",
        "uid",
    ];
    match value {
        Value::String(text) => text.push('x'),
        Value::Int(number) => *number += 1,
        Value::Bool(flag) => *flag = !*flag,
        Value::Array(items) => items.iter_mut().for_each(change),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if !KEPT.contains(&key.as_str()) {
                    change(value);
                }
            }
        }
        Value::Null | Value::Float(_) => {}
    }
}

fn time(name: &str, mut work: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..REPEATS {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(REPEATS));
    }
    println!("  {name:30} {best:9.1} us");
}
