//! What every engine promises.

use std::time::Duration;

use windlass_store::{Change, Error, Expect, RECORD_BYTES_MAX, Range, Revision};

use crate::support::{line, lines, list, on_each_engine, put, run, set, soon, text};

#[test]
fn a_key_is_created_replaced_and_deleted() {
    on_each_engine(|store, _| async move {
        assert_eq!(store.revision(), Revision(0));
        assert_eq!(store.get("pods", "a").await.unwrap(), None);
        let created = store
            .commit("pods", "a", Expect::Absent, put("one"))
            .await
            .unwrap();
        assert_eq!((created.revision, created.previous), (Revision(1), None));
        let updated = store
            .commit("pods", "a", Expect::At(Revision(1)), put("two"))
            .await
            .unwrap();
        assert_eq!(
            text(&updated.previous.unwrap()),
            ("a".into(), "one".into(), 1)
        );
        let record = store.get("pods", "a").await.unwrap().unwrap();
        assert_eq!(text(&record), ("a".into(), "two".into(), 2));
        assert_eq!(record.created, Revision(1));
        let expect = Expect::At(Revision(2));
        let deleted = store
            .commit("pods", "a", expect, Change::Delete)
            .await
            .unwrap();
        assert_eq!(deleted.revision, Revision(3));
        assert_eq!(
            text(&deleted.previous.unwrap()),
            ("a".into(), "two".into(), 2)
        );
        assert_eq!(store.get("pods", "a").await.unwrap(), None);
        let again = store
            .commit("pods", "a", Expect::Absent, put("three"))
            .await
            .unwrap();
        assert_eq!(again.previous, None);
        let record = store.get("pods", "a").await.unwrap().unwrap();
        assert_eq!(
            (record.created, record.revision),
            (Revision(4), Revision(4))
        );
        assert_eq!(store.revision(), Revision(4));
    });
}

#[test]
fn a_commit_happens_only_if_the_key_is_as_expected() {
    on_each_engine(|store, _| async move {
        set(&store, "pods", "a", Some("one")).await.unwrap();
        let cases = [
            ("a", Expect::Absent, put("x"), Some(1)),
            ("a", Expect::At(Revision(9)), put("x"), Some(1)),
            ("a", Expect::At(Revision(0)), Change::Delete, Some(1)),
            ("b", Expect::At(Revision(1)), put("x"), None),
            ("b", Expect::At(Revision(1)), Change::Delete, None),
            ("b", Expect::Absent, Change::Delete, None),
        ];
        for (name, expect, change, current) in cases {
            let error = store
                .commit("pods", name, expect, change.clone())
                .await
                .unwrap_err();
            let Error::Conflict { current: found } = error else {
                panic!("{error}")
            };
            let found = found.map(|record| record.revision.0);
            assert_eq!(found, current, "{name} {expect:?} {change:?}");
        }
        assert_eq!(store.revision(), Revision(1));
    });
}

#[test]
fn revisions_are_shared_by_all_collections() {
    on_each_engine(|store, _| async move {
        for (step, collection) in ["pods", "nodes", "pods", "leases"].iter().enumerate() {
            let revision = set(&store, collection, &step.to_string(), Some("x"))
                .await
                .unwrap();
            assert_eq!(revision, Revision(step as u64 + 1));
        }
        assert_eq!(store.collections(), ["leases", "nodes", "pods"]);
        set(&store, "nodes", "1", None).await.unwrap();
        assert_eq!(store.collections(), ["leases", "pods"]);
        assert_eq!(store.count("pods", "").await, 2);
        assert_eq!(store.count("nothing", "").await, 0);
    });
}

/// Prefix, start, limit; the names in the page and how many more there are.
type RangeCase = (
    &'static str,
    Option<&'static str>,
    usize,
    &'static [&'static str],
    usize,
);

#[test]
fn ranges_have_prefix_start_limit_and_remaining() {
    on_each_engine(|store, _| async move {
        for name in ["b/2", "a/1", "b/1", "b/3", "c/1", "b", "b0"] {
            set(&store, "pods", name, Some("x")).await.unwrap();
        }
        let cases: [RangeCase; 9] = [
            (
                "",
                None,
                0,
                &["a/1", "b", "b/1", "b/2", "b/3", "b0", "c/1"],
                0,
            ),
            ("", None, 3, &["a/1", "b", "b/1"], 4),
            ("b/", None, 0, &["b/1", "b/2", "b/3"], 0),
            ("b/", None, 1, &["b/1"], 2),
            ("b/", Some("b/2"), 1, &["b/2"], 1),
            ("b/", Some("b/2"), 0, &["b/2", "b/3"], 0),
            ("b/", Some("a"), 2, &["b/1", "b/2"], 1),
            ("b/", Some("c"), 2, &[], 0),
            ("", Some("b/3"), 7, &["b/3", "b0", "c/1"], 0),
        ];
        store.maintain().await.unwrap();
        set(&store, "pods", "b/2", None).await.unwrap();
        set(&store, "pods", "b/4", Some("x")).await.unwrap();
        store.maintain().await.unwrap();
        for (prefix, start, limit, names, remaining) in cases {
            let range = Range {
                prefix,
                start,
                limit,
                at: Some(Revision(7)),
            };
            let page = store.range("pods", range).await.unwrap();
            let found: Vec<&str> = page.records.iter().map(|record| &*record.name).collect();
            assert_eq!(
                (&found[..], page.remaining),
                (names, remaining),
                "{range:?}"
            );
            assert_eq!(page.revision, Revision(7));
        }
        let range = Range {
            prefix: "b/",
            limit: 2,
            ..Range::default()
        };
        let page = store.range("pods", range).await.unwrap();
        assert_eq!(page.revision, Revision(9));
        let found: Vec<&str> = page.records.iter().map(|record| &*record.name).collect();
        assert_eq!((&found[..], page.remaining), (&["b/1", "b/3"][..], 1));
        let page = store.range("nothing", Range::default()).await.unwrap();
        assert_eq!((page.records.len(), page.revision), (0, Revision(9)));
    });
}

#[test]
fn every_revision_in_history_reads_as_it_was() {
    on_each_engine(|store, _| async move {
        let mut states = vec![Vec::new()];
        for step in 0..60_u64 {
            let name = format!("{}", step * 7 % 10);
            let is_there = store.get("pods", &name).await.unwrap().is_some();
            let value = (!is_there || step % 3 > 0).then(|| format!("v{step}"));
            set(&store, "pods", &name, value.as_deref()).await.unwrap();
            states.push(list(&store, "pods", None).await.unwrap());
            if step % 25 == 24 {
                store.maintain().await.unwrap();
            }
        }
        for (at, state) in states.iter().enumerate() {
            let found = list(&store, "pods", Some(at as u64)).await.unwrap();
            assert_eq!(&found, state, "at {at}");
            for name in 0..10 {
                let name = name.to_string();
                let found = store
                    .get_at("pods", &name, Revision(at as u64))
                    .await
                    .unwrap();
                let expected = state.iter().find(|(other, ..)| *other == name);
                assert_eq!(
                    found.as_ref().map(text).as_ref(),
                    expected,
                    "{name} at {at}"
                );
            }
        }
        let error = list(&store, "pods", Some(61)).await.unwrap_err();
        assert!(matches!(
            error,
            Error::Future {
                asked: Revision(61),
                current: Revision(60)
            }
        ));
        let error = store.get_at("pods", "1", Revision(99)).await.unwrap_err();
        assert!(matches!(error, Error::Future { .. }));
    });
}

#[test]
fn a_watch_tells_every_change_of_its_collection_in_order() {
    on_each_engine(|store, _| async move {
        let mut early = store.watch("pods", Revision(0)).await.unwrap();
        assert!(early.try_next().unwrap().is_none());
        set(&store, "pods", "a", Some("1")).await.unwrap();
        set(&store, "nodes", "n", Some("1")).await.unwrap();
        set(&store, "pods", "a", Some("2")).await.unwrap();
        set(&store, "pods", "b", Some("3")).await.unwrap();
        set(&store, "pods", "a", None).await.unwrap();
        set(&store, "nodes", "n", Some("2")).await.unwrap();
        set(&store, "pods", "a", Some("4")).await.unwrap();
        let all = [
            "1 create a 1 ",
            "3 update a 2 1",
            "4 create b 3 ",
            "5 delete a 2 2",
            "7 create a 4 ",
        ];
        for round in ["from memory", "after maintenance"] {
            for (after, skipped) in [
                (0, 0),
                (1, 1),
                (2, 1),
                (3, 2),
                (4, 3),
                (5, 4),
                (6, 4),
                (7, 5),
            ] {
                let mut watch = store.watch("pods", Revision(after)).await.unwrap();
                let found = lines(&mut watch, all.len() - skipped).await;
                assert_eq!(found, &all[skipped..], "{round} after {after}");
                assert!(watch.try_next().unwrap().is_none());
                assert_eq!(watch.position(), Revision(7));
            }
            store.maintain().await.unwrap();
        }
        assert_eq!(lines(&mut early, 5).await, all);
    });
}

#[test]
fn a_quiet_watch_moves_on_with_the_store() {
    on_each_engine(|store, _| async move {
        let mut watch = store.watch("pods", Revision(0)).await.unwrap();
        for step in 0..5 {
            set(&store, "nodes", "n", Some(&step.to_string()))
                .await
                .unwrap();
        }
        assert!(watch.try_next().unwrap().is_none());
        assert_eq!(watch.position(), Revision(5));
        assert_eq!(
            set(&store, "pods", "a", Some("1")).await.unwrap(),
            Revision(6)
        );
        assert_eq!(lines(&mut watch, 1).await, ["6 create a 1 "]);
    });
}

#[test]
fn a_pulse_tells_when_its_collection_changed_last() {
    on_each_engine(|store, _| async move {
        let pulse = store.pulse("pods");
        assert_eq!(pulse.newest(), Revision(0));
        set(&store, "pods", "a", Some("1")).await.unwrap();
        set(&store, "nodes", "n", Some("1")).await.unwrap();
        assert_eq!(pulse.newest(), Revision(1));
        set(&store, "pods", "a", None).await.unwrap();
        assert_eq!(pulse.newest(), Revision(3));
    });
}

#[test]
fn a_watch_from_the_future_waits_for_it() {
    on_each_engine(|store, _| async move {
        let mut watch = store.watch("pods", Revision(3)).await.unwrap();
        for step in 1..=5 {
            set(&store, "pods", "a", Some(&step.to_string()))
                .await
                .unwrap();
        }
        assert_eq!(
            lines(&mut watch, 2).await,
            ["4 update a 4 3", "5 update a 5 4"]
        );
        assert!(watch.try_next().unwrap().is_none());
    });
}

#[test]
fn a_waiting_watch_is_woken() {
    on_each_engine(|store, _| async move {
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let mut watch = store.watch("pods", Revision(0)).await.unwrap();
            waiting.spawn(async move { line(&soon(watch.next()).await.unwrap()) });
        }
        tokio::task::yield_now().await;
        set(&store, "pods", "a", Some("1")).await.unwrap();
        let found = waiting.join_all().await;
        assert!(found.iter().all(|line| line == "1 create a 1 "));
    });
}

#[test]
fn history_ends_after_its_time() {
    on_each_engine(|store, clock| async move {
        for step in 1..=10_u64 {
            let value = (step != 8).then(|| step.to_string());
            set(&store, "pods", "a", value.as_deref()).await.unwrap();
            store.maintain().await.unwrap();
            clock.advance(Duration::from_secs(60));
        }
        let mut behind = store.watch("pods", Revision(6)).await.unwrap();
        store.maintain().await.unwrap();
        // Ten minutes passed; commits 1 to 5 happened more than five minutes ago.
        assert_eq!(store.compacted(), Revision(5));
        let error = list(&store, "pods", Some(4)).await.unwrap_err();
        assert!(matches!(
            error,
            Error::Compacted {
                asked: Revision(4),
                oldest: Revision(5)
            }
        ));
        let error = store.get_at("pods", "a", Revision(1)).await.unwrap_err();
        assert!(matches!(error, Error::Compacted { .. }));
        let error = store.watch("pods", Revision(4)).await.unwrap_err();
        assert!(matches!(
            error,
            Error::Compacted {
                asked: Revision(4),
                oldest: Revision(5)
            }
        ));
        for at in 5..=10_u64 {
            let expected = if at == 8 {
                vec![]
            } else {
                vec![("a".to_owned(), at.to_string(), at)]
            };
            assert_eq!(list(&store, "pods", Some(at)).await.unwrap(), expected);
        }
        let mut watch = store.watch("pods", Revision(5)).await.unwrap();
        assert_eq!(lines(&mut watch, 1).await, ["6 update a 6 5"]);
        clock.advance(Duration::from_secs(600));
        store.maintain().await.unwrap();
        assert_eq!(store.compacted(), Revision(10));
        let error = soon(behind.next()).await.unwrap_err();
        assert!(matches!(
            error,
            Error::Compacted {
                asked: Revision(6),
                oldest: Revision(10)
            }
        ));
        assert_eq!(
            list(&store, "pods", None).await.unwrap(),
            [("a".into(), "10".into(), 10)]
        );
        assert_eq!(list(&store, "pods", Some(10)).await.unwrap().len(), 1);
    });
}

#[test]
fn a_watch_of_a_quiet_collection_outlives_compaction() {
    on_each_engine(|store, clock| async move {
        set(&store, "quiet", "q", Some("1")).await.unwrap();
        let mut watch = store.watch("quiet", Revision(1)).await.unwrap();
        for step in 0..5 {
            set(&store, "busy", "b", Some(&step.to_string()))
                .await
                .unwrap();
            store.maintain().await.unwrap();
            clock.advance(Duration::from_secs(400));
        }
        store.maintain().await.unwrap();
        assert!(store.compacted() > Revision(1));
        set(&store, "quiet", "q", Some("2")).await.unwrap();
        store.maintain().await.unwrap();
        assert_eq!(lines(&mut watch, 1).await, ["7 update q 2 1"]);
    });
}

#[test]
fn keys_expire_as_ordinary_deletions() {
    on_each_engine(|store, clock| async move {
        let mortal = |value: &str, seconds| Change::Put {
            value: value.to_owned().into(),
            ttl_seconds: Some(seconds),
        };
        let mut watch = store.watch("events", Revision(0)).await.unwrap();
        store
            .commit("events", "short", Expect::Absent, mortal("1", 10))
            .await
            .unwrap();
        store
            .commit("events", "long", Expect::Absent, mortal("2", 60))
            .await
            .unwrap();
        store
            .commit("events", "renewed", Expect::Absent, mortal("3", 10))
            .await
            .unwrap();
        store
            .commit("events", "kept", Expect::Absent, mortal("4", 10))
            .await
            .unwrap();
        clock.advance(Duration::from_secs(5));
        let at = Expect::At(Revision(3));
        store
            .commit("events", "renewed", at, mortal("5", 10))
            .await
            .unwrap();
        store
            .commit("events", "kept", Expect::At(Revision(4)), put("6"))
            .await
            .unwrap();
        clock.advance(Duration::from_secs(5));
        store.maintain().await.unwrap();
        assert_eq!(store.revision(), Revision(7));
        clock.advance(Duration::from_secs(5));
        store.maintain().await.unwrap();
        let names: Vec<_> = list(&store, "events", None).await.unwrap();
        let names: Vec<_> = names.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["kept", "long"]);
        clock.advance(Duration::from_secs(100));
        store.maintain().await.unwrap();
        assert_eq!(store.count("events", "").await, 1);
        let told = lines(&mut watch, 9).await;
        assert_eq!(
            &told[6..],
            [
                "7 delete short 1 1",
                "8 delete renewed 5 5",
                "9 delete long 2 2"
            ]
        );
    });
}

#[test]
fn a_record_that_is_too_large_is_refused() {
    on_each_engine(|store, _| async move {
        let value = |bytes| Change::Put {
            value: vec![b'x'; bytes].into(),
            ttl_seconds: None,
        };
        let error = store
            .commit("pods", "a", Expect::Absent, value(RECORD_BYTES_MAX))
            .await
            .unwrap_err();
        let Error::TooLarge { size, limit } = error else {
            panic!("{error}")
        };
        assert_eq!((size, limit), (RECORD_BYTES_MAX + 1, RECORD_BYTES_MAX));
        let largest = value(RECORD_BYTES_MAX - 1);
        store
            .commit("pods", "a", Expect::Absent, largest)
            .await
            .unwrap();
        let name = "n".repeat(70_000);
        let error = store
            .commit("pods", &name, Expect::Absent, put("x"))
            .await
            .unwrap_err();
        assert!(
            matches!(error, Error::TooLarge { size: 70_001, .. }),
            "{error}"
        );
        store.maintain().await.unwrap();
        let record = store.get("pods", "a").await.unwrap().unwrap();
        assert_eq!(record.value.len(), RECORD_BYTES_MAX - 1);
    });
}

#[test]
fn many_writers_never_lose_an_update() {
    const WRITERS: usize = 8;
    const STEPS: usize = 40;
    on_each_engine(|store, _| async move {
        set(&store, "counters", "c", Some("0")).await.unwrap();
        let mut watch = store.watch("counters", Revision(1)).await.unwrap();
        let threads: Vec<_> = (0..WRITERS)
            .map(|_| {
                let store = store.clone();
                std::thread::spawn(move || run(count_up(store, STEPS)))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let total = WRITERS * STEPS;
        let found = list(&store, "counters", None).await.unwrap();
        assert_eq!(found[0].1, total.to_string());
        assert_eq!(store.revision(), Revision(total as u64 + 1));
        for (step, line) in lines(&mut watch, total).await.iter().enumerate() {
            assert_eq!(*line, format!("{} update c {} {step}", step + 2, step + 1));
        }
    });
}

/// Adds one to the counter so many times, again and again where another was quicker.
async fn count_up(store: windlass_store::Store, steps: usize) {
    let mut done = 0;
    while done < steps {
        let record = store.get("counters", "c").await.unwrap().unwrap();
        let value: usize = std::str::from_utf8(&record.value).unwrap().parse().unwrap();
        let change = put(&(value + 1).to_string());
        match store
            .commit("counters", "c", Expect::At(record.revision), change)
            .await
        {
            Ok(committed) => {
                // Whoever is told of a commit sees it.
                assert!(store.revision() >= committed.revision);
                done += 1;
            }
            Err(Error::Conflict { current }) => {
                assert!(current.unwrap().revision > record.revision);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_commit_whose_caller_left_is_whole_or_absent() {
    on_each_engine(|store, _| async move {
        for step in 0..50 {
            let name = format!("k{step}");
            let commit = store.commit("pods", &name, Expect::Absent, put("x"));
            // Polled once, then dropped.
            let _ = tokio::time::timeout(Duration::ZERO, commit).await;
        }
        let last = set(&store, "pods", "last", Some("x")).await.unwrap();
        let records = list(&store, "pods", None).await.unwrap();
        assert_eq!(
            records.len() as u64,
            last.0,
            "one revision for each commit that happened"
        );
        assert!(records.iter().all(|(_, value, _)| value == "x"));
    });
}

#[test]
fn a_closed_store_says_so() {
    on_each_engine(|store, _| async move {
        set(&store, "pods", "a", Some("1")).await.unwrap();
        let mut watch = store.watch("pods", Revision(0)).await.unwrap();
        store.close().await;
        let error = store
            .commit("pods", "b", Expect::Absent, put("x"))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Closed), "{error}");
        assert_eq!(lines(&mut watch, 1).await, ["1 create a 1 "]);
        assert!(matches!(
            soon(watch.next()).await.unwrap_err(),
            Error::Closed
        ));
        assert!(matches!(
            store.watch("pods", Revision(1)).await,
            Err(Error::Closed)
        ));
        store.close().await;
    });
}
