//! Scenarios as data: each file of `scenarios/` is a schema and several stories.
//!
//! A step is `{"apply": who, "object": .., "force": true, "version": "v2"}` or the same with
//! `update`. It may state `conflicts` (paths, in which quotes are single), `error` (the whole
//! text), `live` (the object afterwards), `changed` and `owners`: for each manager, `name` or
//! `name/update`, the paths it owns. Managers that are not listed must not exist.

use std::{collections::BTreeMap, path::PathBuf};

use apply::{ApplyError, FieldFilter, FieldSet, OnConflict, Operation, Path, Writer};
use object::{Text, Value, json};

use crate::support::{types::Schema, world::World};

fn check(file: &str) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "scenarios", file]
        .iter()
        .collect();
    let text = std::fs::read(&path).expect("the scenario file is there");
    let data = json::parse(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let stories = data
        .get("stories")
        .and_then(Value::as_object)
        .expect("stories");
    assert!(!stories.is_empty());
    for (name, story) in stories.iter() {
        let mut world = world(&data, story);
        let steps = story.get("steps").and_then(Value::as_array).expect("steps");
        for (at, step) in steps.iter().enumerate() {
            run(
                &mut world,
                step,
                &format!("{file}: {name}, step {}", at + 1),
            );
        }
    }
}

fn world(data: &Value, story: &Value) -> World {
    let get = |field: &str| story.get(field).or_else(|| data.get(field));
    let mut world = World {
        version: "v1".into(),
        ..World::default()
    };
    for version in ["v1", "v2", "v3"] {
        let schema = get(&format!("schema {version}")).or_else(|| get("schema"));
        let schema = Schema::build(schema.expect("schema"));
        world.kind.versions.insert(version.into(), schema);
    }
    if let Some(ignored) = get("ignored").and_then(Value::as_object) {
        for (version, fields) in ignored.iter() {
            let set = FieldSet::from_value(fields).expect("ignored fields");
            world
                .kind
                .filters
                .insert(version.clone(), FieldFilter::Exclude(set));
        }
    }
    if let Some(names) = get("names").and_then(Value::as_object) {
        for (version, names) in names.iter() {
            let names = names.as_object().expect("names");
            let pair = |(from, to): (&Text, &Value)| {
                (from.clone(), Text::from(to.as_str().expect("a name")))
            };
            world
                .kind
                .names
                .insert(version.clone(), names.iter().map(pair).collect());
        }
    }
    world
}

fn run(world: &mut World, step: &Value, place: &str) {
    if let Some(gone) = step.get("gone").and_then(Value::as_str) {
        world.kind.versions.remove(gone);
    }
    for version in ["v1", "v2", "v3"] {
        if let Some(schema) = step.get(&format!("schema {version}")) {
            world
                .kind
                .versions
                .insert(version.into(), Schema::build(schema));
        }
    }
    let text = |field: &str| step.get(field).and_then(Value::as_str);
    let by = |name| Writer {
        name,
        api_version: text("version").unwrap_or("v1"),
        subresource: text("subresource").unwrap_or(""),
    };
    let object = step.get("object");
    if let Some(name) = text("apply") {
        let force = step.get("force") == Some(&Value::Bool(true));
        let on_conflict = if force {
            OnConflict::Force
        } else {
            OnConflict::Refuse
        };
        let outcome = world.apply(by(name), object.expect("object"), on_conflict);
        expect_outcome(outcome, step, place);
    } else if let Some(name) = text("update") {
        world.update(by(name), object.expect("object"));
    }
    if let Some(live) = step.get("live") {
        assert_eq!(world.live.as_ref(), Some(live), "{place}: live object");
    }
    if let Some(owners) = step.get("owners") {
        expect_owners(world, owners, place);
    }
}

fn expect_outcome(outcome: Result<apply::Applied, ApplyError>, step: &Value, place: &str) {
    match (outcome, step.get("conflicts"), step.get("error")) {
        (Ok(applied), None, None) => {
            if let Some(changed) = step.get("changed") {
                assert_eq!(changed, &Value::Bool(applied.changed()), "{place}: changed");
            }
        }
        (Err(ApplyError::Conflicts(conflicts)), Some(expected), None) => {
            let found: Vec<Value> = conflicts
                .0
                .iter()
                .map(|conflict| {
                    let suffix = match conflict.manager.operation {
                        Operation::Apply => "",
                        Operation::Update => "/update",
                    };
                    let field = conflict.field().replace('"', "'");
                    format!("{}{suffix} {field}", conflict.manager.name).into()
                })
                .collect();
            assert_eq!(&Value::Array(found), expected, "{place}: conflicts");
        }
        (Err(error), None, Some(expected)) => {
            assert_eq!(
                error.to_string(),
                expected.as_str().unwrap_or_default(),
                "{place}"
            );
        }
        (outcome, _, _) => panic!("{place}: {outcome:?}"),
    }
}

fn expect_owners(world: &World, owners: &Value, place: &str) {
    let found: BTreeMap<String, Vec<String>> = world
        .managers
        .managers()
        .iter()
        .map(|manager| {
            let suffix = match manager.operation {
                Operation::Apply => "",
                Operation::Update => "/update",
            };
            let paths = manager.set.paths();
            let mut paths: Vec<String> = paths
                .iter()
                .map(Path::to_string)
                .map(|path| path.replace('"', "'"))
                .collect();
            paths.sort();
            let at = if manager.api_version == "v1" {
                String::new()
            } else {
                format!("@{}", manager.api_version)
            };
            (format!("{}{suffix}{at}", manager.name), paths)
        })
        .collect();
    let expected: BTreeMap<String, Vec<String>> = owners
        .as_object()
        .expect("owners")
        .iter()
        .map(|(name, paths)| {
            let paths = paths.as_array().expect("paths").iter();
            let mut paths: Vec<String> = paths
                .map(|path| path.as_str().expect("a path").to_owned())
                .collect();
            paths.sort();
            (name.to_string(), paths)
        })
        .collect();
    assert_eq!(found, expected, "{place}: owners");
}

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            check(concat!(stringify!($name), ".json"));
        }
    )*};
}

scenarios! {
    deduced_types,
    default_keys,
    giving_up_fields,
    ignored_fields,
    items_have_keys,
    leaves_change_hands,
    nested_values,
    relationships,
    repeated_items,
    schema_changes,
    sets_are_merged,
    versions_differ,
}
