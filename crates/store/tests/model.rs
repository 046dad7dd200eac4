//! Long random histories, compared step by step with the simplest store there can be.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_store::{Change, Error, Expect, Options, Range, Revision, Store, Watch};

use crate::simulated::Disk;
use crate::support::{Random, clock, line, open, options, put, run, soon, text};

/// Name, value, revision of each key.
type State = BTreeMap<String, (String, u64)>;

/// A store whose every state is kept.
#[derive(Default)]
struct Model {
    /// The state of each collection at each revision.
    states: Vec<BTreeMap<&'static str, State>>,
    /// The events of each collection, as lines.
    events: BTreeMap<&'static str, Vec<(u64, String)>>,
}

impl Model {
    fn new() -> Model {
        Model {
            states: vec![BTreeMap::new()],
            ..Model::default()
        }
    }

    fn commit(&mut self, collection: &'static str, name: &str, value: Option<String>) -> u64 {
        let mut state = self.states.last().unwrap().clone();
        let revision = self.states.len() as u64;
        let keys = state.entry(collection).or_default();
        let before = keys.get(name).map(|(value, _)| value.clone());
        let what = match (&value, &before) {
            (None, _) => "delete",
            (_, None) => "create",
            _ => "update",
        };
        let shown = value.clone().or_else(|| before.clone()).unwrap();
        let line = format!(
            "{revision} {what} {name} {shown} {}",
            before.unwrap_or_default()
        );
        match value {
            Some(value) => keys.insert(name.to_owned(), (value, revision)),
            None => keys.remove(name),
        };
        self.events
            .entry(collection)
            .or_default()
            .push((revision, line));
        self.states.push(state);
        revision
    }
}

const COLLECTIONS: [&str; 3] = ["pods", "nodes", "leases"];

#[test]
fn random_histories_match_the_model() {
    for (seed, engine) in (1..=9).zip(["memory", "disk", "disk without window"].iter().cycle()) {
        println!("seed {seed} on {engine}");
        run(random_history(seed, engine));
    }
}

async fn random_history(seed: u64, engine: &str) {
    let mut random = Random::new(seed);
    let clock = clock();
    let mut options = options(&clock);
    options.history = Duration::from_secs(30);
    options.history_memory_bytes = if engine == "disk without window" {
        3_000
    } else {
        1 << 24
    };
    let mut disk = Disk::new();
    let make = |disk: &Disk, options: &Options| match engine {
        "memory" => Store::memory(options.clone()),
        _ => open(disk, options.clone()),
    };
    let mut store = make(&disk, &options);
    let mut model = Model::new();
    let mut watch = store.watch("pods", Revision(0)).await.unwrap();
    for step in 0..400 {
        let what = format!("seed {seed} step {step}");
        match random.below(20) {
            0..=11 => commit(&store, &mut model, &mut random, &what).await,
            12..=14 => read(&store, &model, &mut random, &what).await,
            15 => follow(&store, &model, &mut random, &what).await,
            16 => drain(&store, &mut watch, &model, &what).await,
            17 => store.maintain().await.unwrap(),
            18 => clock.advance(Duration::from_secs(random.below(5))),
            _ if engine == "memory" => {}
            _ => {
                // A restart: after a close, a kill or a power cut.
                drain(&store, &mut watch, &model, &what).await;
                let position = watch.position();
                let next = match random.below(3) {
                    0 => {
                        store.close().await;
                        disk.after_kill()
                    }
                    1 => disk.after_kill(),
                    _ => disk.after_power_cut(seed * 1_000 + step),
                };
                disk = next;
                store = make(&disk, &options);
                watch = store.watch("pods", position).await.unwrap();
            }
        }
        assert_eq!(store.revision().0, model.states.len() as u64 - 1, "{what}");
    }
}

async fn commit(store: &Store, model: &mut Model, random: &mut Random, what: &str) {
    let collection = COLLECTIONS[random.below(3) as usize];
    let name = format!("{}/{}", random.below(3), random.below(6));
    let state = model.states.last().unwrap();
    let current = state
        .get(collection)
        .and_then(|keys| keys.get(&name))
        .map(|(_, at)| *at);
    // Mostly right, sometimes not.
    let expected = if random.below(6) == 0 {
        Some(random.below(50) + 1)
    } else {
        current
    };
    let expect = expected.map_or(Expect::Absent, |at| Expect::At(Revision(at)));
    let value = (random.below(4) > 0).then(|| "v".repeat(random.below(200) as usize));
    let change = value.as_deref().map_or(Change::Delete, put);
    let is_nothing = current.is_none() && value.is_none();
    match store.commit(collection, &name, expect, change).await {
        Ok(committed) => {
            assert!(expected == current && !is_nothing, "{what}");
            assert_eq!(
                committed.revision.0,
                model.commit(collection, &name, value),
                "{what}"
            );
        }
        Err(Error::Conflict { current: found }) => {
            assert!(expected != current || is_nothing, "{what}");
            assert_eq!(found.map(|record| record.revision.0), current, "{what}");
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

async fn read(store: &Store, model: &Model, random: &mut Random, what: &str) {
    let collection = COLLECTIONS[random.below(3) as usize];
    let newest = model.states.len() as u64 - 1;
    let at = (random.below(3) > 0).then(|| random.below(newest + 1));
    let prefix = ["", "0/", "1", "2/5", "9"][random.below(5) as usize];
    let start = ["", "0/3", "1/0", "2"][random.below(4) as usize];
    let limit = random.below(4) as usize * 2;
    let start = (!start.is_empty()).then_some(start);
    let range = Range {
        prefix,
        start,
        at: at.map(Revision),
        limit,
    };
    let page = match store.range(collection, range).await {
        Ok(page) => page,
        Err(Error::Compacted { oldest, .. }) => {
            assert!(
                at.unwrap() < oldest.0 && oldest <= store.compacted(),
                "{what}"
            );
            return;
        }
        Err(error) => panic!("{what}: {error}"),
    };
    assert_eq!(page.revision.0, at.unwrap_or(newest), "{what}");
    let empty = State::new();
    let state = model.states[page.revision.0 as usize]
        .get(collection)
        .unwrap_or(&empty);
    let all: Vec<_> = state
        .iter()
        .filter(|(name, _)| name.starts_with(prefix) && start.is_none_or(|at| name.as_str() >= at))
        .map(|(name, (value, revision))| (name.clone(), value.clone(), *revision))
        .collect();
    let taken = if limit == 0 {
        all.len()
    } else {
        limit.min(all.len())
    };
    let found: Vec<_> = page.records.iter().map(text).collect();
    assert_eq!(found, &all[..taken], "{what} {range:?}");
    assert_eq!(page.remaining, all.len() - taken, "{what} {range:?}");
    if at.is_none() {
        assert_eq!(store.count(collection, prefix).await, {
            state.keys().filter(|name| name.starts_with(prefix)).count()
        });
    }
}

/// Watches from a random revision to the end.
async fn follow(store: &Store, model: &Model, random: &mut Random, what: &str) {
    let collection = COLLECTIONS[random.below(3) as usize];
    let after = random.below(model.states.len() as u64);
    let mut watch = match store.watch(collection, Revision(after)).await {
        Ok(watch) => watch,
        Err(Error::Compacted { oldest, .. }) => {
            assert!(after < oldest.0, "{what}");
            return;
        }
        Err(error) => panic!("{what}: {error}"),
    };
    let none = Vec::new();
    let events = model.events.get(collection).unwrap_or(&none);
    for (_, expected) in events.iter().filter(|(revision, _)| *revision > after) {
        assert_eq!(
            &line(&soon(watch.next()).await.unwrap()),
            expected,
            "{what}"
        );
    }
    assert!(watch.try_next().unwrap().is_none(), "{what}");
    assert_eq!(watch.position(), store.revision(), "{what}");
}

/// Reads a long-lived watch to its end.
async fn drain(store: &Store, watch: &mut Watch, model: &Model, what: &str) {
    let position = watch.position().0;
    let none = Vec::new();
    let events = model.events.get("pods").unwrap_or(&none);
    for (revision, expected) in events.iter().filter(|(revision, _)| *revision > position) {
        match soon(watch.next()).await {
            Ok(event) => assert_eq!(&line(&event), expected, "{what}"),
            Err(Error::Compacted { oldest, .. }) => {
                assert!(
                    *revision <= oldest.0,
                    "{what}: {revision} is gone, {oldest} is kept"
                );
                *watch = store.watch("pods", store.revision()).await.unwrap();
                return;
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    assert!(watch.try_next().unwrap().is_none(), "{what}");
}
