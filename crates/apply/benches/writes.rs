//! The writes that are measured: JSON text in, object text and managed fields text out.

use std::{hint::black_box, path::PathBuf};

use apply::{Document, ManagedFields, OnConflict, OneVersion, Reader, Style, Typing, Writer};
use kinds::{Catalogue, Kind};
use object::{Value, json};
use windlass_apply as apply;

const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web",
    "labels":{"app":"web","tier":"front"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},
    "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[
    {"name":"web","image":"registry.example/web:1","ports":[{"containerPort":80,"name":"http"}],
     "env":[{"name":"LEVEL","value":"info"},{"name":"PORT","value":"80"}],
     "resources":{"limits":{"cpu":"1","memory":"1Gi"}},
     "readinessProbe":{"httpGet":{"path":"/ready","port":"http"}}},
    {"name":"log","image":"registry.example/log:1","volumeMounts":[{"mountPath":"/log","name":"log"}]}],
    "volumes":[{"name":"log","emptyDir":{}}]}}}}"#;

/// Measures one write, which it is told the name of.
pub(crate) type Measure = fn(&str, &mut dyn FnMut());

/// Measures each write of the objects that the command line names.
pub(crate) fn run(measure: Measure) {
    let directory = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    match directory {
        Some(directory) => {
            for path in objects(&directory) {
                let text = std::fs::read(&path).expect("the file was just listed");
                bench(&path.display().to_string(), &text, measure);
            }
        }
        None => bench("Deployment", DEPLOYMENT.as_bytes(), measure),
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

/// What is kept from one write to the next, as a program that does many of them would.
#[derive(Default)]
struct Desk {
    reader: Reader,
    out: Vec<u8>,
}

impl Desk {
    /// Reads an object; managed fields travel apart from it.
    fn read<'t>(&mut self, text: &[u8], typing: Typing<'t>) -> Document<'t> {
        let document = self.reader.read(text, typing);
        let mut document = document.expect("the text was read before");
        document.take_managers().expect("managed fields are valid");
        document
    }

    fn print(&mut self, document: Document<'_>, managers: &ManagedFields) {
        self.out.clear();
        document.write(&mut self.out);
        managers.write_json(Style::Typed, &mut self.out);
        black_box(&self.out);
        self.reader.recycle(document);
    }
}

fn bench(name: &str, text: &[u8], measure: Measure) {
    let object = json::parse(text).expect("the file holds JSON");
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
    let apply = |live: Option<&Document<'static>>, wanted: Document<'static>, managers| {
        let refuse = OnConflict::Refuse;
        let applied = wanted.apply(live, managers, by, 1, refuse, &versions);
        applied.expect("the object is valid and nobody else owns it")
    };
    let desk = &mut Desk::default();
    measure("read and print", &mut || {
        let object = desk.read(text, typing);
        desk.print(object, &nobody());
    });
    measure("first apply", &mut || {
        let (object, managers) = apply(None, desk.read(text, typing), nobody());
        desk.print(object.expect("it is new"), &managers);
    });
    let (live, managers) = apply(None, desk.read(text, typing), nobody());
    let live = live.expect("it is new");
    measure("the same apply again", &mut || {
        let wanted = desk.read(text, typing);
        black_box(apply(Some(&live), wanted, managers.clone()));
    });
    measure("first update", &mut || {
        let new = desk.read(text, typing);
        let managers = new.update(None, nobody(), by, 1, &versions);
        desk.print(new, &managers);
    });
    let live = desk.read(text, typing);
    let managers = live.update(None, nobody(), by, 1, &versions);
    let mut managers_text = Vec::new();
    managers.write_json(Style::Typed, &mut managers_text);
    let mut other = object.clone();
    change(&mut other);
    let other = json::to_vec(&other);
    let second = Writer {
        name: "second",
        ..by
    };
    measure("second update, other values", &mut || {
        let managers = ManagedFields::parse(&managers_text).expect("printed above");
        let new = desk.read(&other, typing);
        let managers = new.update(Some(&live), managers, second, 2, &versions);
        desk.print(new, &managers);
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
