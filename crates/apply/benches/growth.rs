//! How the time of an apply grows with an object, a list and the number of managers.
//!
//! `cargo bench -p windlass-apply --bench growth`. Each line is an apply that changes one value,
//! with trees, as the server has them; the last column should stay about the same from line to
//! line of a table. Best of ten.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

use std::{hint::black_box, time::Instant};

use apply::{ManagedFields, OnConflict, OneVersion, Typing, Writer};
use kinds::Catalogue;
use object::{Map, Text, Value, value};
use windlass_apply as apply;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 10;

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
const MANAGERS: [usize; 3] = [1, 10, 100];
/// What each of many managers owns.
const KEYS_EACH: usize = 10;

fn main() {
    println!("keys of a map");
    for size in SIZES {
        let object = |changed| config_map(0..size, changed);
        print(
            size,
            "keys",
            time_change("ConfigMap", &[object("a")], object("b")),
        );
    }
    println!("items of a list that is merged");
    for size in SIZES {
        print(
            size,
            "items",
            time_change("Pod", &[pod(size, "a")], pod(size, "b")),
        );
    }
    println!("addresses in an atomic list");
    for size in SIZES {
        let object = |changed| endpoints(size, changed);
        print(
            size,
            "addresses",
            time_change("Endpoints", &[object("a")], object("b")),
        );
    }
    println!("managers who own {KEYS_EACH} keys each");
    for count in MANAGERS {
        let keys = |number| number * KEYS_EACH..(number + 1) * KEYS_EACH;
        let objects: Vec<Value> = (0..count).map(|it| config_map(keys(it), "a")).collect();
        print(
            count,
            "managers",
            time_change("ConfigMap", &objects, config_map(keys(0), "b")),
        );
    }
}

fn print(size: usize, what: &str, best: f64) {
    let each = best / size as f64;
    println!("  {size:6} {what:10} {best:9.1} us {each:9.3} us each");
}

/// A map with these keys, the first of which has the given value.
fn config_map(keys: std::ops::Range<usize>, first: &str) -> Value {
    let start = keys.start;
    let entry = |at: usize| {
        let value = if at == start { first } else { "value" };
        (Text::from(format!("key-{at:06}")), Value::from(value))
    };
    let data: Map = keys.map(entry).collect();
    value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data})
}

fn pod(size: usize, first: &str) -> Value {
    let variable = |at: usize| {
        let value = if at == 0 { first } else { "value" };
        value!({"name": (format!("NAME_{at:06}")), "value": value})
    };
    let env: Vec<Value> = (0..size).map(variable).collect();
    value!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
        "spec": {"containers": [{"name": "main", "image": "app", "env": env}]}})
}

fn endpoints(size: usize, first: &str) -> Value {
    let address = |at: usize| {
        let name = if at == 0 { first } else { "host" };
        let ip = format!("10.{}.{}.{}", at >> 16, at >> 8 & 255, at & 255);
        value!({"ip": ip, "hostname": name})
    };
    let addresses: Vec<Value> = (0..size).map(address).collect();
    value!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "x"},
        "subsets": [{"addresses": addresses}]})
}

/// Microseconds in which the first of several appliers, each with an object of its own, applies
/// another one.
fn time_change(kind: &str, objects: &[Value], changed: Value) -> f64 {
    let kind = Catalogue::builtin().by_kind("", "v1", kind);
    let kind = kind.expect("it is a built-in kind");
    let typing = Typing {
        types: &kind.types,
        root: kind.root,
    };
    let versions = OneVersion::new("v1", typing);
    let apply = |name: usize, live: Option<&Value>, wanted: &Value, managers: &ManagedFields| {
        let by = Writer {
            name: &format!("manager-{name:03}"),
            api_version: "v1",
            subresource: "",
        };
        let (wanted, managers) = (wanted.clone(), managers.clone());
        apply::apply(live, wanted, managers, by, 1, OnConflict::Refuse, &versions)
            .expect("each owns its own fields")
    };
    let (mut live, mut managers) = (None, ManagedFields::new());
    for (name, object) in objects.iter().enumerate() {
        let applied = apply(name, live.as_ref(), object, &managers);
        live = applied.object.or(live);
        managers = applied.managers;
    }
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        black_box(apply(0, live.as_ref(), &changed, &managers));
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
    }
    best
}
