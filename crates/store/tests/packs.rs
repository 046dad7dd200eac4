//! Records in the checkpoint stand many to a value: what becomes of such packs as history goes by,
//! and of checkpoints from before there were any.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use redb::{Database, ReadableTable, TableDefinition};
use windlass_store::{Options, Revision, Store};

use crate::directory::Scratch;
use crate::support::{Random, clock, list, options, run, set};

const LOG: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("log");
const GONE: TableDefinition<'_, (&str, u64), u64> = TableDefinition::new("gone");
const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");

type State = Vec<(String, String, u64)>;

/// Nothing old is in memory, so that what is read comes from packs.
fn from_disk(mut options: Options) -> Options {
    options.history_memory_bytes = 0;
    options
}

/// Changes keys of several sizes, and tells how the collection looked after each change.
async fn change(store: &Store, random: &mut Random, states: &mut BTreeMap<u64, State>) {
    for _ in 0..300 {
        let name = format!("n{}", random.below(40));
        let size = [10, 700, 3_000, 70_000][random.below(4) as usize];
        let is_there = store.get("pods", &name).await.unwrap().is_some();
        let value = "v".repeat(size);
        let value = (!is_there || random.below(9) > 0).then_some(value.as_str());
        let revision = set(store, "pods", &name, value).await.unwrap();
        states.insert(revision.0, list(store, "pods", None).await.unwrap());
        if random.below(7) == 0 {
            set(store, "nodes", "other", Some("x")).await.unwrap();
        }
    }
}

#[test]
fn what_history_needs_stays_while_packs_shrink_around_it() {
    run(shrink());
}

async fn shrink() {
    let scratch = Scratch::new();
    let directory = scratch.path("data");
    let clock = clock();
    let mut random = Random::new(7);
    let mut states = BTreeMap::new();
    for round in 0..6 {
        let store = Store::open(&directory, from_disk(options(&clock))).unwrap();
        change(&store, &mut random, &mut states).await;
        store.maintain().await.unwrap();
        clock.advance(Duration::from_secs(120));
        store.maintain().await.unwrap();
        let oldest = store.compacted();
        assert!(round < 3 || oldest > Revision(0));
        for (revision, state) in states.range(oldest.0..).step_by(11) {
            let found = list(&store, "pods", Some(*revision)).await.unwrap();
            assert!(found == *state, "round {round}, revision {revision}");
        }
        store.close().await;
        assert_eq!(Store::check(&directory).unwrap().problems, []);
    }
    let store = Store::open(&directory, from_disk(options(&clock))).unwrap();
    clock.advance(Duration::from_secs(1_200));
    store.maintain().await.unwrap();
    let live = store.count("pods", "").await + store.count("nodes", "").await;
    store.close().await;
    let report = Store::check(&directory).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.versions, live as u64);
    let mut packed = 0;
    with_log(&directory, |_, pack| packed += records(pack).len());
    assert!(packed <= 2 * live + 2, "{packed} records for {live} keys");
}

#[test]
fn a_checkpoint_of_the_format_before_is_read_and_goes_on() {
    run(go_on());
}

async fn go_on() {
    let scratch = Scratch::new();
    let directory = scratch.path("data");
    let clock = clock();
    let mut random = Random::new(3);
    let mut states = BTreeMap::new();
    let store = Store::open(&directory, from_disk(options(&clock))).unwrap();
    change(&store, &mut random, &mut states).await;
    store.close().await;
    make_format_1(&directory);

    assert_eq!(Store::check(&directory).unwrap().problems, []);
    let store = Store::open(&directory, from_disk(options(&clock))).unwrap();
    for (revision, state) in states.iter().step_by(7) {
        let found = list(&store, "pods", Some(*revision)).await.unwrap();
        assert!(found == *state, "revision {revision}");
    }
    change(&store, &mut random, &mut states).await;
    clock.advance(Duration::from_secs(1_200));
    store.maintain().await.unwrap();
    store.close().await;
    assert_eq!(Store::check(&directory).unwrap().problems, []);
    let store = Store::open(&directory, options(&clock)).unwrap();
    let (_, newest) = states.last_key_value().unwrap();
    assert!(list(&store, "pods", None).await.unwrap() == *newest);
}

/// The records of a pack, by the length that each begins with.
fn records(mut pack: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    while !pack.is_empty() {
        let length = u32::from_le_bytes(pack[4..8].try_into().unwrap());
        let (record, rest) = pack.split_at(length as usize);
        records.push(record);
        pack = rest;
    }
    records
}

fn with_log(directory: &Path, mut each: impl FnMut((String, u64), &[u8])) {
    let database = Database::open(directory.join("checkpoint.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    for entry in transaction.open_table(LOG).unwrap().iter().unwrap() {
        let (place, pack) = entry.unwrap();
        let (collection, first) = place.value();
        each((collection.to_owned(), first), pack.value());
    }
}

/// Turns a checkpoint into one that the version before would have written: a value for each record,
/// no table of what is gone, a state without the number of packs.
fn make_format_1(directory: &Path) {
    let mut packs = Vec::new();
    with_log(directory, |place, pack| packs.push((place, pack.to_vec())));
    let database = Database::open(directory.join("checkpoint.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    assert!(transaction.delete_table(GONE).unwrap());
    let mut log = transaction.open_table(LOG).unwrap();
    let mut is_packed = false;
    for ((collection, first), pack) in &packs {
        log.remove((collection.as_str(), *first)).unwrap();
        is_packed |= records(pack).len() > 1;
        for record in records(pack) {
            let revision = u64::from_le_bytes(record[8..16].try_into().unwrap());
            log.insert((collection.as_str(), revision), record).unwrap();
        }
    }
    assert!(is_packed, "there is nothing to undo");
    let mut table = transaction.open_table(STATE).unwrap();
    let mut state = table.get("state").unwrap().unwrap().value().to_vec();
    state[4..8].copy_from_slice(&1_u32.to_le_bytes());
    state[64..72].fill(0);
    let checksum = crc32fast::hash(&state[4..]);
    state[..4].copy_from_slice(&checksum.to_le_bytes());
    table.insert("state", &state[..]).unwrap();
    drop((log, table));
    transaction.commit().unwrap();
}
