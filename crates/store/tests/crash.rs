//! The power goes away at each sync in turn. What was acknowledged is there afterwards, nothing is
//! half there, and no revision comes twice.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use windlass_store::{Error, Expect, FalseClock, Options, Revision, Store};

use crate::simulated::{Disk, Fault};
use crate::support::{clock, list, open, options, put, run, set, try_open};

/// What the writer knows when the power goes away.
#[derive(Default)]
struct Known {
    /// The value of each key that was acknowledged last; `None` for deleted.
    acknowledged: BTreeMap<String, (u64, Option<String>)>,
    /// What was asked for and not answered, by key.
    doubtful: Vec<(String, Option<String>)>,
    newest: u64,
}

fn small_history(clock: &std::sync::Arc<FalseClock>) -> Options {
    Options {
        history: Duration::from_secs(60),
        ..options(clock)
    }
}

/// Writes, checkpoints, compacts, closes and opens again, until the disk fails.
async fn work(disk: &Disk, known: &mut Known) -> Result<(), Error> {
    let clock = clock();
    let mut step = 0;
    for _ in 0..2 {
        let Ok(store) = try_open(disk, small_history(&clock)) else {
            return Err(Error::Closed);
        };
        for _ in 0..4 {
            for _ in 0..3 {
                step += 1;
                write_together(&store, step, known).await?;
            }
            // What was asked for and failed for another reason than the disk would be a bug.
            store.maintain().await?;
            clock.advance(Duration::from_secs(25));
        }
        store.close().await;
    }
    Ok(())
}

/// Three commits at once, which may share a group.
async fn write_together(store: &Store, step: u64, known: &mut Known) -> Result<(), Error> {
    let mut tasks = tokio::task::JoinSet::new();
    for part in 0..3 {
        let name = format!("k{}", (step * 5 + part) % 11);
        let is_there = store.get("pods", &name).await?.is_some();
        let value =
            (!is_there || !step.is_multiple_of(4)).then(|| format!("{step}.{part} ").repeat(200));
        known.doubtful.push((name.clone(), value.clone()));
        let store = store.clone();
        tasks.spawn(async move {
            let revision = set(&store, "pods", &name, value.as_deref()).await?;
            Ok::<_, Error>((name, value, revision))
        });
    }
    let mut failed = Ok(());
    while let Some(done) = tasks.join_next().await {
        match done.unwrap() {
            Ok((name, value, revision)) => {
                known.doubtful.retain(|(other, _)| *other != name);
                known.newest = known.newest.max(revision.0);
                known.acknowledged.insert(name, (revision.0, value));
            }
            Err(error) => failed = Err(error),
        }
    }
    failed
}

/// Compares a store with what its writer knows.
async fn compare(store: &Store, known: &Known, what: &str) {
    assert!(
        store.revision().0 >= known.newest,
        "{what}: the revision went back"
    );
    let found: BTreeMap<String, (String, u64)> = list(store, "pods", None)
        .await
        .unwrap()
        .into_iter()
        .map(|(name, value, revision)| (name, (value, revision)))
        .collect();
    let names = known
        .acknowledged
        .keys()
        .chain(known.doubtful.iter().map(|(name, _)| name));
    for name in names.chain(found.keys()) {
        let value = found.get(name).map(|(value, _)| value);
        let expected = known
            .acknowledged
            .get(name)
            .and_then(|(_, value)| value.as_ref());
        let doubtful = known.doubtful.iter().find(|(other, _)| other == name);
        let is_doubtful_one = doubtful.is_some_and(|(_, doubtful)| doubtful.as_ref() == value);
        assert!(
            value == expected || is_doubtful_one,
            "{what}: {name} is {value:?}"
        );
        if value == expected
            && let (Some((_, revision)), Some((acknowledged, _))) =
                (found.get(name), known.acknowledged.get(name))
        {
            assert_eq!(revision, acknowledged, "{what}: {name}");
        }
    }
}

/// Nobody finds a new checkpoint before it has its name; the syncs that the database asks for while
/// it is made were once done all the same.
#[test]
fn a_new_store_syncs_its_checkpoint_once() {
    let disk = Disk::new();
    let store = open(&disk, options(&clock()));
    assert_eq!(disk.syncs(Path::new("/data/checkpoint.redb")), 1);
    run(store.close());
}

#[test]
fn a_power_cut_at_any_sync_loses_nothing_that_was_acknowledged() {
    let quiet = Disk::new();
    let mut known = Known::default();
    run(work(&quiet, &mut known)).unwrap();
    let calls = quiet.calls();
    let mut cuts = 0;
    let mut at = 1;
    while at <= calls {
        let disk = Disk::new();
        disk.fail(Fault::PowerCut(at), ErrorKind::Other);
        let mut known = Known::default();
        let result = run(work(&disk, &mut known));
        let reached = disk.calls();
        for seed in 0..3 {
            let what = format!("cut at call {at}, seed {seed}");
            check_recovery(&disk.after_power_cut(at * 10 + seed), &known, &what);
        }
        if result.is_ok() && reached < at {
            break;
        }
        cuts += 1;
        at = reached.max(at) + 1;
    }
    assert!(cuts > 40, "only {cuts} syncs were cut");
}

/// Opens the disk again, twice, with a commit and another power cut between.
fn check_recovery(disk: &Disk, known: &Known, what: &str) {
    let clock = clock();
    run(async {
        let store =
            try_open(disk, small_history(&clock)).unwrap_or_else(|error| panic!("{what}: {error}"));
        compare(&store, known, what).await;
        let seen = store.revision();
        let change = put("after");
        let next = store
            .commit("other", "after", Expect::Absent, change)
            .await
            .unwrap();
        assert_eq!(next.revision, Revision(seen.0 + 1), "{what}");
        let again = disk.after_power_cut(seen.0);
        drop(store);
        let store = try_open(&again, small_history(&clock))
            .unwrap_or_else(|error| panic!("{what}, second: {error}"));
        compare(&store, known, what).await;
        assert_eq!(
            store.revision(),
            next.revision,
            "{what}: what was seen is gone"
        );
        let expected = [("after".to_owned(), "after".to_owned(), next.revision.0)];
        assert_eq!(
            list(&store, "other", None).await.unwrap(),
            expected,
            "{what}"
        );
    });
}

/// A killed process may leave a group in the system's memory that no sync has seen. The next one
/// shows it, so it must not be lost when the power goes away after that.
#[test]
fn what_a_start_after_a_kill_shows_survives_a_power_cut() {
    let mut unanswered = 0;
    for at in 1..400 {
        let disk = Disk::new();
        disk.fail(Fault::Kill(at), ErrorKind::Other);
        let mut known = Known::default();
        if run(work(&disk, &mut known)).is_ok() {
            break;
        }
        let killed = disk.after_kill();
        let what = format!("killed at call {at}");
        let Ok(store) = try_open(&killed, small_history(&clock())) else {
            panic!("{what}: it does not open");
        };
        let seen = run(async {
            compare(&store, &known, &what).await;
            list(&store, "pods", None).await.unwrap()
        });
        unanswered += u64::from(store.revision().0 > known.newest);
        let cut = killed.after_power_cut(at);
        let again = try_open(&cut, small_history(&clock()))
            .unwrap_or_else(|error| panic!("{what}, then cut: {error}"));
        assert_eq!(again.revision(), store.revision(), "{what}, then cut");
        assert_eq!(
            run(list(&again, "pods", None)).unwrap(),
            seen,
            "{what}, then cut"
        );
    }
    assert!(
        unanswered > 5,
        "only {unanswered} unanswered commits were found"
    );
}

/// A segment that was prepared before a large record needed one of its own was once used after
/// it; recovery took the order of the numbers for the order of the commits and lost the newest.
#[test]
fn records_of_all_sizes_follow_each_other_in_the_log() {
    let clock = clock();
    let disk = Disk::new();
    run(async {
        let store = open(&disk, options(&clock));
        let sizes = [
            10, 400_000, 10, 200_000, 200_000, 3_000_000, 10, 700_000, 120_000, 120_000,
        ];
        for (step, size) in sizes.iter().cycle().take(25).enumerate() {
            let name = format!("k{step}");
            set(&store, "pods", &name, Some(&"x".repeat(*size)))
                .await
                .unwrap();
            let killed = open(&disk.after_kill(), options(&clock));
            assert_eq!(killed.revision(), Revision(step as u64 + 1));
            let record = killed.get("pods", &name).await.unwrap().unwrap();
            assert_eq!(record.value.len(), *size);
            if step == 15 {
                store.maintain().await.unwrap();
            }
        }
    });
}

#[test]
fn a_kill_loses_nothing_and_history_goes_on() {
    let clock = clock();
    let disk = Disk::new();
    run(async {
        let store = open(&disk, options(&clock));
        let mut states = vec![Vec::new()];
        for step in 0..50_u64 {
            let name = (step % 7).to_string();
            let is_there = store.get("pods", &name).await.unwrap().is_some();
            let value = (!is_there || step % 5 > 0).then(|| step.to_string());
            set(&store, "pods", &name, value.as_deref()).await.unwrap();
            states.push(list(&store, "pods", None).await.unwrap());
            if step == 30 {
                store.maintain().await.unwrap();
            }
        }
        let killed = disk.after_kill();
        let store = open(&killed, options(&clock));
        for (at, state) in states.iter().enumerate() {
            assert_eq!(
                &list(&store, "pods", Some(at as u64)).await.unwrap(),
                state,
                "at {at}"
            );
        }
        let mut watch = store.watch("pods", Revision(0)).await.unwrap();
        let lines = crate::support::lines(&mut watch, 50).await;
        for (step, line) in lines.iter().enumerate() {
            assert!(line.starts_with(&format!("{} ", step + 1)), "{line}");
        }
        store.close().await;
        let wal = |(path, _): &(std::path::PathBuf, usize)| path.to_str().unwrap().contains("wal-");
        assert!(
            !killed.list_all().iter().any(wal),
            "closing leaves no log behind"
        );
    });
}

#[test]
fn keys_expire_after_a_restart_too() {
    let clock = clock();
    let disk = Disk::new();
    let mortal = |seconds| windlass_store::Change::Put {
        value: "x".into(),
        ttl_seconds: Some(seconds),
    };
    run(async {
        let store = open(&disk, options(&clock));
        store
            .commit("events", "early", Expect::Absent, mortal(10))
            .await
            .unwrap();
        store.maintain().await.unwrap();
        store
            .commit("events", "log", Expect::Absent, mortal(10))
            .await
            .unwrap();
        store
            .commit("events", "late", Expect::Absent, mortal(100))
            .await
            .unwrap();
        let killed = disk.after_kill();
        clock.advance(Duration::from_secs(50));
        let store = open(&killed, options(&clock));
        store.maintain().await.unwrap();
        let names = list(&store, "events", None).await.unwrap();
        assert_eq!(names, [("late".to_owned(), "x".to_owned(), 3)]);
        assert_eq!(store.revision(), Revision(5));
    });
}
