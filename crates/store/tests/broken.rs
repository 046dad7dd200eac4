//! Disks that fail, fill up and rot.

use std::io::ErrorKind;
use std::path::Path;

use windlass_store::{Error, OpenError, Revision, Store};

use crate::simulated::{Disk, Fault};
use crate::support::{Random, clock, list, open, options, put, run, set, try_open};

const VALUE: &str = "some value that is long enough to matter ";

/// Commits a few keys with maintenance between. Returns what was acknowledged last per key.
async fn write(store: &Store, from: u64, until: u64) -> Vec<Result<Revision, Error>> {
    let mut results = Vec::new();
    for step in from..until {
        let name = format!("k{}", step % 5);
        let value = format!("{VALUE}{step}");
        results.push(set(store, "pods", &name, Some(&value)).await);
        if step % 4 == 3 {
            // Its failure is not the writer's.
            let _ = store.maintain().await;
        }
    }
    results
}

/// Every call that changes something fails once, or from there on until the disk is healed.
#[test]
fn after_any_failure_nothing_acknowledged_is_lost_and_service_resumes() {
    let clock = clock();
    let quiet = Disk::new();
    run(async {
        let store = open(&quiet, options(&clock));
        write(&store, 0, 12).await;
        store.close().await;
    });
    let calls = quiet.calls();
    assert!(calls > 50, "{calls}");
    let mut refused = 0;
    for number in 1..=calls {
        for fault in [Fault::Once(number), Fault::From(number)] {
            refused += fail_and_recover(fault);
        }
    }
    assert!(refused > 20, "only {refused} commits met the failure");
}

/// Returns how many commits were refused.
fn fail_and_recover(fault: Fault) -> usize {
    let clock = clock();
    let disk = Disk::new();
    disk.fail(fault, ErrorKind::Other);
    run(async {
        let store = match try_open(&disk, options(&clock)) {
            Ok(store) => store,
            Err(error) => {
                assert!(matches!(error, OpenError::Io { .. }), "{fault:?}: {error}");
                disk.heal();
                open(&disk, options(&clock))
            }
        };
        let mut expected: std::collections::BTreeMap<String, String> = Default::default();
        let mut refused = 0;
        let mut newest = Revision(0);
        for (step, result) in write(&store, 0, 12).await.into_iter().enumerate() {
            match result {
                Ok(revision) => {
                    assert!(revision > newest, "{fault:?}: {revision} after {newest}");
                    newest = revision;
                    expected.insert(format!("k{}", step % 5), format!("{VALUE}{step}"));
                }
                Err(Error::Unavailable { path, .. }) => {
                    assert!(path.starts_with("/data/"), "{path}");
                    refused += 1;
                }
                Err(error) => panic!("{fault:?}: {error}"),
            }
        }
        let found = |records: Vec<(String, String, u64)>| {
            records
                .into_iter()
                .map(|(name, value, _)| (name, value))
                .collect()
        };
        // Readers see what was acknowledged and nothing else.
        let seen: std::collections::BTreeMap<_, _> =
            found(list(&store, "pods", None).await.unwrap());
        assert_eq!(seen, expected, "{fault:?}");
        disk.heal();
        let next = set(&store, "pods", "healed", Some("yes")).await.unwrap();
        assert!(next > newest);
        expected.insert("healed".into(), "yes".into());
        store
            .maintain()
            .await
            .unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        // Everything is really on the disk now.
        for (way, disk) in [
            ("cut", disk.after_power_cut(next.0)),
            ("kill", disk.after_kill()),
        ] {
            let again = try_open(&disk, options(&clock))
                .unwrap_or_else(|error| panic!("{fault:?} {way}: {error}"));
            let seen: std::collections::BTreeMap<_, _> =
                found(list(&again, "pods", None).await.unwrap());
            assert_eq!(seen, expected, "{fault:?} {way}");
            assert_eq!(again.revision(), next, "{fault:?} {way}");
        }
        store.close().await;
        refused
    })
}

#[test]
fn a_full_disk_refuses_writes_and_serves_reads_until_there_is_room() {
    let clock = clock();
    let big = "x".repeat(100_000);
    for room in [0, 1_000, 300_000, 1_000_000, 3_000_000] {
        let disk = Disk::new();
        run(async {
            let store = open(&disk, options(&clock));
            set(&store, "pods", "first", Some("1")).await.unwrap();
            store.maintain().await.unwrap();
            disk.leave_room_for(room);
            let mut acknowledged = 1;
            let error = loop {
                let name = format!("k{acknowledged}");
                match set(&store, "pods", &name, Some(&big)).await {
                    Ok(_) => acknowledged += 1,
                    Err(error) => break error,
                }
                let _ = store.maintain().await;
                assert!(acknowledged < 2_000, "the disk is never full");
            };
            assert!(
                matches!(error, Error::NoSpace { .. }),
                "room {room}: {error}"
            );
            assert_eq!(store.count("pods", "").await, acknowledged);
            assert_eq!(
                list(&store, "pods", None).await.unwrap().len(),
                acknowledged
            );
            let full = disk.after_kill();
            disk.heal();
            set(&store, "pods", "room", Some("again")).await.unwrap();
            store.maintain().await.unwrap();
            store.close().await;
            // A start on the full disk's files, with room again, has everything.
            let store = open(&full, options(&clock));
            assert_eq!(store.count("pods", "").await, acknowledged, "room {room}");
        });
    }
}

/// Flips one bit anywhere: what opens is exact, what does not names the file.
#[test]
fn a_flipped_bit_is_harmless_or_refused_by_name() {
    let clock = clock();
    let disk = Disk::new();
    let (expected, closed) = run(async {
        let store = open(&disk, options(&clock));
        for step in 0..40 {
            let value = format!("{VALUE}{step}").repeat(5);
            let value = (step % 9 > 0 || step < 9).then_some(value);
            let is_there = store
                .get("pods", &format!("k{}", step % 9))
                .await
                .unwrap()
                .is_some();
            if is_there || value.is_some() {
                set(&store, "pods", &format!("k{}", step % 9), value.as_deref())
                    .await
                    .unwrap();
            }
            if step == 20 {
                store.maintain().await.unwrap();
            }
        }
        let killed = disk.after_kill();
        let expected = list(&store, "pods", None).await.unwrap();
        store.close().await;
        (
            expected,
            [("killed", killed), ("closed", disk.after_kill())],
        )
    });
    let mut refused = 0;
    for (state, disk) in &closed {
        for (path, length) in disk.list_all() {
            if length == 0 {
                continue; // A segment of the log that was just begun has no bits.
            }
            let mut random = Random::new(7);
            let content = disk.content(&path);
            // Mostly where something is; sometimes anywhere.
            let used: Vec<usize> = (0..length).filter(|at| content[*at] != 0).collect();
            let count = if path.ends_with("checkpoint.redb") {
                400
            } else {
                250
            };
            for try_number in 0..count {
                let byte = if try_number % 8 == 0 || used.is_empty() {
                    random.below(length as u64) as usize
                } else {
                    used[random.below(used.len() as u64) as usize]
                };
                let bit = byte * 8 + random.below(8) as usize;
                let what = format!("{state}: bit {bit} of {}", path.display());
                refused += flip_and_open(disk, &path, bit, &expected, &what);
            }
        }
    }
    assert!(refused > 100, "only {refused} flips were noticed");
}

/// Returns one if the store refused to open.
fn flip_and_open(
    disk: &Disk,
    path: &Path,
    bit: usize,
    expected: &[(String, String, u64)],
    what: &str,
) -> usize {
    let disk = disk.after_kill();
    disk.flip_bit(path, bit);
    run(async {
        match try_open(&disk, options(&clock())) {
            Ok(store) => {
                assert_eq!(
                    list(&store, "pods", None).await.unwrap(),
                    expected,
                    "{what}"
                );
                // The past is exact or refused too, and so is going on.
                let past = list(&store, "pods", Some(30)).await;
                if let Err(error) = past {
                    assert!(matches!(error, Error::Corrupt { .. }), "{what}: {error}");
                }
                let next = store.commit("pods", "next", windlass_store::Expect::Absent, put("x"));
                next.await.unwrap();
                0
            }
            Err(OpenError::Corrupt { file, .. } | OpenError::Version { file, .. }) => {
                assert!(file.starts_with("/data"), "{what}: {file}");
                1
            }
            Err(error) => panic!("{what}: {error}"),
        }
    })
}
