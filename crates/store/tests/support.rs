//! What all suites use: a runtime, a source of chance, engines, short forms of the calls.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windlass_store::{
    Change, Error, Event, Expect, FalseClock, Options, Range, Record, Revision, Store, Watch,
};

use crate::seal::Mirror;
use crate::simulated::Disk;

pub(crate) const START_MILLIS: u64 = 1_700_000_000_000;

/// A reproducible source of chance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(future)
}

/// Fails instead of waiting for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("it never came")
}

pub(crate) fn clock() -> Arc<FalseClock> {
    Arc::new(FalseClock::new(START_MILLIS))
}

pub(crate) fn options(clock: &Arc<FalseClock>) -> Options {
    Options {
        clock: clock.clone(),
        ..Options::default()
    }
}

pub(crate) fn open(disk: &Disk, options: Options) -> Store {
    try_open(disk, options).unwrap()
}

pub(crate) fn try_open(disk: &Disk, options: Options) -> Result<Store, windlass_store::OpenError> {
    Store::open_with(disk.files(), Path::new("/data"), options)
}

/// Runs a check on each engine: in memory, on disk, on disk with nothing old in memory, and the
/// same with values that are sealed.
pub(crate) fn on_each_engine<F: Future<Output = ()>>(check: impl Fn(Store, Arc<FalseClock>) -> F) {
    for engine in [
        "memory",
        "disk",
        "disk without old versions in memory",
        "disk with sealed values",
    ] {
        println!("engine: {engine}");
        let clock = clock();
        let mut options = options(&clock);
        let store = match engine {
            "memory" => Store::memory(options),
            "disk" => open(&Disk::new(), options),
            _ => {
                if engine.contains("sealed") {
                    options.seal = Some(Arc::new(Mirror(1)));
                }
                options.history_memory_bytes = 0;
                open(&Disk::new(), options)
            }
        };
        run(check(store, clock));
    }
}

pub(crate) fn put(value: &str) -> Change {
    Change::Put {
        value: value.to_owned().into(),
        ttl_seconds: None,
    }
}

/// Creates, replaces or (with `None`) deletes a key, whatever it is now.
pub(crate) async fn set(
    store: &Store,
    collection: &str,
    name: &str,
    value: Option<&str>,
) -> Result<Revision, Error> {
    let current = store.get(collection, name).await?;
    let expect = current.map_or(Expect::Absent, |record| Expect::At(record.revision));
    let change = value.map_or(Change::Delete, put);
    Ok(store
        .commit(collection, name, expect, change)
        .await?
        .revision)
}

pub(crate) fn text(record: &Record) -> (String, String, u64) {
    let value = String::from_utf8(record.value.to_vec()).unwrap();
    (record.name.to_string(), value, record.revision.0)
}

/// The records of a collection as name, value, revision.
pub(crate) async fn list(
    store: &Store,
    collection: &str,
    at: Option<u64>,
) -> Result<Vec<(String, String, u64)>, Error> {
    let range = Range {
        at: at.map(Revision),
        ..Range::default()
    };
    Ok(store
        .range(collection, range)
        .await?
        .records
        .iter()
        .map(text)
        .collect())
}

/// An event in one line: revision, what, name, value, value before.
pub(crate) fn line(event: &Event) -> String {
    let kind = match (event.deleted, &event.previous) {
        (true, _) => "delete",
        (false, None) => "create",
        (false, Some(_)) => "update",
    };
    let (name, value, revision) = text(&event.record);
    let before = event
        .previous
        .as_ref()
        .map(|previous| text(previous).1)
        .unwrap_or_default();
    format!("{revision} {kind} {name} {value} {before}")
}

/// The next events, as lines.
pub(crate) async fn lines(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    while lines.len() < count {
        lines.push(line(&soon(watch.next()).await.unwrap()));
    }
    lines
}
