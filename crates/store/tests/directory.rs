//! Real directories: locks, rights, backup, restore and check.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use windlass_store::{Error, Expect, OpenError, Options, Revision, Store};

use crate::support::{clock, list, options, put, run, set};

/// A directory that goes away with the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = format!("windlass-store-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(directory: &Path) -> Result<Store, OpenError> {
    Store::open(directory, Options::default())
}

#[test]
fn a_second_server_is_told_who_has_the_directory() {
    let scratch = Scratch::new();
    let directory = scratch.path("data");
    let first = open(&directory).unwrap();
    let error = open(&directory).unwrap_err();
    let OpenError::Locked { pid, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*pid, std::process::id());
    assert!(
        error.to_string().contains(&format!("(pid {pid})")),
        "{error}"
    );
    assert!(matches!(
        Store::check(&directory),
        Err(OpenError::Locked { .. })
    ));
    run(first.close());
    open(&directory).unwrap();
}

#[test]
fn a_store_goes_on_after_close_and_after_drop() {
    let scratch = Scratch::new();
    let directory = scratch.path("deep/data");
    run(async {
        for round in 0..6_u64 {
            let store = open(&directory).unwrap();
            assert_eq!(store.revision(), Revision(round * 20));
            assert_eq!(store.count("pods", "").await as u64, round * 20);
            for step in 0..20 {
                let name = format!("{round}-{step}");
                let revision = set(&store, "pods", &name, Some("x")).await.unwrap();
                assert_eq!(revision, Revision(round * 20 + step + 1));
            }
            if round % 2 == 0 {
                store.close().await;
            }
        }
    });
}

/// The sizes of the log's segments, in order.
fn segment_sizes(directory: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let mut segments: Vec<_> = entries
        .filter(|entry| entry.file_name().to_str().unwrap().starts_with("wal-"))
        .map(|entry| (entry.file_name(), entry.metadata().unwrap().len()))
        .collect();
    segments.sort();
    segments.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Segments were begun when the one in use was half full: a burst of writes found the disk busy
/// with filling them, and waited for them in the end.
#[test]
fn the_next_segment_of_the_log_is_filled_while_nothing_is_written() {
    const KIB: u64 = 1024;
    let scratch = Scratch::new();
    let directory = scratch.path("data");
    let store = open(&directory).unwrap();
    // The newest ones: the checkpoint may have replaced others already.
    let wait_for = |sizes: [u64; 2]| {
        let began = std::time::Instant::now();
        loop {
            let seen = segment_sizes(&directory);
            if seen.ends_with(&sizes) {
                return;
            }
            assert!(began.elapsed().as_secs() < 60, "{seen:?}, not {sizes:?}");
            std::thread::yield_now();
        }
    };
    run(set(&store, "pods", "small", Some("x"))).unwrap();
    wait_for([256 * KIB, 2_048 * KIB]);
    let large = "x".repeat(300 * KIB as usize);
    run(set(&store, "pods", "large", Some(&large))).unwrap();
    wait_for([2_048 * KIB, 4_096 * KIB]);
}

#[test]
fn a_path_that_cannot_be_used_is_named() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("file"), "x").unwrap();
    let error = open(&scratch.path("file/data")).unwrap_err();
    assert!(error.to_string().contains("file/data"), "{error}");
    let error = Store::check(&scratch.path("nothing")).unwrap_err();
    assert!(error.to_string().contains("nothing"), "{error}");
    assert!(!scratch.path("nothing").exists());
}

#[test]
fn a_missing_checkpoint_is_not_taken_for_a_new_store() {
    let scratch = Scratch::new();
    let directory = scratch.path("data");
    let store = open(&directory).unwrap();
    run(set(&store, "pods", "a", Some("x"))).unwrap();
    let copy = scratch.path("copy");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if name.to_str().unwrap().starts_with("wal-") {
            std::fs::copy(entry.path(), copy.join(name)).unwrap();
        }
    }
    let error = open(&copy).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("checkpoint.redb"), "{error}");
}

#[test]
fn a_backup_of_a_running_store_restores_its_newest_state() {
    let scratch = Scratch::new();
    let (file, restored) = (scratch.path("backup"), scratch.path("restored"));
    run(async {
        let clock = clock();
        let store = Store::open(&scratch.path("data"), options(&clock)).unwrap();
        for step in 0..300 {
            let name = format!("n{}", step % 90);
            let collection = ["pods", "nodes"][step % 2];
            set(&store, collection, &name, Some(&step.to_string()))
                .await
                .unwrap();
        }
        set(&store, "pods", "n0", None).await.unwrap();
        let mortal = windlass_store::Change::Put {
            value: "x".into(),
            ttl_seconds: Some(10),
        };
        store
            .commit("events", "e", Expect::Absent, mortal)
            .await
            .unwrap();
        let report = store.backup(&file).await.unwrap();
        assert_eq!((report.revision, report.records), (Revision(302), 90));
        let error = store.backup(&file).await.unwrap_err();
        assert!(matches!(error, OpenError::Exists { .. }), "{error}");
        set(&store, "pods", "later", Some("x")).await.unwrap();

        assert_eq!(Store::restore(&file, &restored).unwrap().records, 90);
        let error = Store::restore(&file, &restored).unwrap_err();
        assert!(matches!(error, OpenError::Exists { .. }), "{error}");
        let again = Store::open(&restored, options(&clock)).unwrap();
        for collection in ["pods", "nodes", "events"] {
            let then = list(&store, collection, Some(302)).await.unwrap();
            assert_eq!(list(&again, collection, None).await.unwrap(), then);
        }
        assert_eq!(
            (again.revision(), again.compacted()),
            (Revision(302), Revision(302))
        );
        let error = list(&again, "pods", Some(301)).await.unwrap_err();
        assert!(matches!(error, Error::Compacted { .. }), "{error}");
        clock.advance(std::time::Duration::from_secs(60));
        again.maintain().await.unwrap();
        assert_eq!(again.count("events", "").await, 0);
        let next = again
            .commit("pods", "n0", Expect::Absent, put("new"))
            .await
            .unwrap();
        assert_eq!(next.revision, Revision(304));
        let mut watch = again.watch("pods", Revision(302)).await.unwrap();
        let line = crate::support::lines(&mut watch, 1).await;
        assert_eq!(line, ["304 create n0 new "]);
    });
}

#[test]
fn a_damaged_backup_is_refused_and_leaves_no_store() {
    let scratch = Scratch::new();
    let file = scratch.path("backup");
    run(async {
        let store = Store::memory(Options::default());
        for step in 0..20 {
            set(&store, "pods", &step.to_string(), Some("some value"))
                .await
                .unwrap();
        }
        store.backup(&file).await.unwrap();
    });
    let good = std::fs::read(&file).unwrap();
    for (number, at) in (0..good.len()).step_by(37).enumerate() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (number % 8);
        let (file, directory) = (scratch.path("bad"), scratch.path(&format!("data{number}")));
        std::fs::write(
            &file,
            if number % 5 == 0 {
                &good[..at]
            } else {
                &bad[..]
            },
        )
        .unwrap();
        let error = Store::restore(&file, &directory).unwrap_err();
        assert!(error.to_string().contains("bad"), "byte {at}: {error}");
        assert!(!directory.join("checkpoint.redb").exists());
    }
}

#[test]
fn a_check_counts_what_is_there_and_finds_damage() {
    let scratch = Scratch::new();
    let directory = scratch.path("data");
    run(async {
        let clock = clock();
        let store = Store::open(&directory, options(&clock)).unwrap();
        for step in 0..100 {
            let name = (step % 30).to_string();
            set(&store, "pods", &name, Some("a value to be found"))
                .await
                .unwrap();
        }
        store.close().await;
    });
    let report = Store::check(&directory).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(
        (report.revision, report.records, report.versions),
        (Revision(100), 30, 100)
    );
    let path = directory.join("checkpoint.redb");
    let mut bytes = std::fs::read(&path).unwrap();
    let value = b"a value to be found";
    let places: Vec<usize> = (0..bytes.len() - value.len())
        .filter(|at| bytes[*at..].starts_with(value))
        .collect();
    for at in places {
        bytes[at] ^= 4;
    }
    std::fs::write(&path, bytes).unwrap();
    let report = Store::check(&directory).unwrap();
    assert!(!report.problems.is_empty());
    assert!(
        report
            .problems
            .iter()
            .all(|problem| problem.file.contains("checkpoint.redb"))
    );
    let error = open(&directory).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

#[test]
fn a_check_counts_what_only_the_log_has() {
    let scratch = Scratch::new();
    let (directory, killed) = (scratch.path("data"), scratch.path("killed"));
    run(async {
        let clock = clock();
        let store = Store::open(&directory, options(&clock)).unwrap();
        for name in ["a", "b", "c", "a"] {
            set(&store, "pods", name, Some("value")).await.unwrap();
        }
        set(&store, "pods", "b", None).await.unwrap();
        // What a killed process would leave behind.
        std::fs::create_dir(&killed).unwrap();
        for entry in std::fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), killed.join(entry.file_name())).unwrap();
        }
        store.close().await;
    });
    let report = Store::check(&killed).unwrap();
    assert_eq!(report.problems, []);
    assert!(report.log_groups > 0, "the log has been written to");
    assert_eq!(
        (report.revision, report.records, report.versions),
        (Revision(5), 2, 5)
    );
}
