//! Values are sealed on their way to disk and open in memory.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use windlass_store::{Opened, Options, Seal, Store};

use crate::simulated::Disk;
use crate::support::{clock, list, open, options, run, set, try_open};

/// Turns bytes over and puts its number and their place in front. Values that begin with `plain`
/// stay as they are.
pub(crate) struct Mirror(pub(crate) u8);

impl Seal for Mirror {
    fn seal(&self, collection: &str, name: &str, value: &[u8]) -> Option<Vec<u8>> {
        if value.starts_with(b"plain") {
            return None;
        }
        let turned: Vec<u8> = value.iter().map(|byte| !byte).collect();
        let place = format!("{collection}/{name}");
        Some(
            [
                &[0xff, self.0, place.len() as u8],
                place.as_bytes(),
                &turned,
            ]
            .concat(),
        )
    }

    fn open<'a>(
        &self,
        collection: &str,
        name: &str,
        written: &'a [u8],
    ) -> Result<Opened<'a>, String> {
        let [0xff, by, length, rest @ ..] = written else {
            return Ok(Opened {
                value: Cow::Borrowed(written),
                stale: false,
            });
        };
        let (place, turned) = rest.split_at(usize::from(*length));
        if place != format!("{collection}/{name}").as_bytes() {
            return Err("it belongs elsewhere".to_owned());
        }
        if *by > self.0 {
            return Err(format!("sealed by {by}"));
        }
        let value: Vec<u8> = turned.iter().map(|byte| !byte).collect();
        Ok(Opened {
            value: Cow::Owned(value),
            stale: *by < self.0,
        })
    }
}

fn sealing(by: u8) -> Options {
    Options {
        seal: Some(Arc::new(Mirror(by))),
        ..options(&clock())
    }
}

fn holds(disk: &Disk, text: &str) -> bool {
    disk.list_all().iter().any(|(path, _)| {
        let content = disk.content(Path::new(path));
        content
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

async fn write_all(store: &Store) {
    set(store, "a", "one", Some("secret one")).await.unwrap();
    set(store, "a", "two", Some("plain two")).await.unwrap();
    set(store, "a", "one", Some("secret three")).await.unwrap();
    store.maintain().await.unwrap();
}

#[test]
fn files_hold_what_was_sealed_and_memory_what_it_stands_for() {
    run(async {
        let disk = Disk::new();
        let store = open(&disk, sealing(1));
        write_all(&store).await;
        let expected = list(&store, "a", None).await.unwrap();
        assert_eq!(expected[0].1, "secret three");
        assert!(holds(&disk, "plain two"));
        assert!(!holds(&disk, "secret"));
        drop(store);
        let store = open(&disk, sealing(1));
        assert_eq!(list(&store, "a", None).await.unwrap(), expected);
        let past = list(&store, "a", Some(2)).await.unwrap();
        assert_eq!(past[0].1, "secret one");
        assert!(!store.is_stale("a", "one"));
    });
}

#[test]
fn a_key_in_an_old_form_is_stale_until_it_is_written() {
    run(async {
        let disk = Disk::new();
        write_all(&open(&disk, sealing(1))).await;
        let disk = disk.after_kill();
        let store = open(&disk, sealing(2));
        assert!(store.is_stale("a", "one"));
        assert!(!store.is_stale("a", "two"));
        set(&store, "a", "one", Some("secret three")).await.unwrap();
        assert!(!store.is_stale("a", "one"));
        drop(store);
        assert!(!open(&disk, sealing(2)).is_stale("a", "one"));
    });
}

#[test]
fn a_value_that_cannot_be_opened_is_named_at_the_start() {
    run(async {
        let disk = Disk::new();
        write_all(&open(&disk, sealing(2))).await;
        let error = try_open(&disk, sealing(1)).unwrap_err().to_string();
        assert_eq!(error, "the record aone cannot be read: sealed by 2");
    });
}

#[test]
fn an_unreadable_version_that_was_replaced_does_no_harm() {
    run(async {
        let disk = Disk::new();
        let store = open(&disk, sealing(2));
        set(&store, "a", "one", Some("secret one")).await.unwrap();
        set(&store, "a", "one", Some("plain two")).await.unwrap();
        let disk = disk.after_kill();
        drop(store);
        let store = open(&disk, sealing(1));
        assert_eq!(list(&store, "a", None).await.unwrap()[0].1, "plain two");
    });
}
