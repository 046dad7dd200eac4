//! What a watch guarantees, checked on what watchers saw.
//!
//! Each watcher keeps a log: lists, and sessions that go on where something ended. Together the
//! logs tell what happened; each of them must have seen all of it between where it began and where
//! it ended: in order, once, whole, and the same as everyone else.

use std::collections::{BTreeMap, HashMap};

/// Objects by name, each with its version and content.
pub(crate) type State = BTreeMap<String, (u64, String)>;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One thing that a watcher saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The state at a version: names with their versions and contents.
    List(u64, State),
    /// A watch from a version on.
    Resumed(u64),
    /// A change.
    Event(u64, Change, String, String),
    /// That everything up to a version has been seen.
    Bookmark(u64),
}

/// A broken guarantee.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Violation {
    /// Versions did not ascend: this one came after the other.
    OutOfOrder(u64, u64),
    /// A version was about two objects, or looked different to two watchers.
    NotAtomic(u64),
    /// A watcher was not told of this version, though it saw what came before and after.
    Missing(u64),
    /// This event is not what can happen to an object in its state.
    Impossible(u64),
    /// A list does not show the state at its version.
    WrongList(u64),
}

/// Everything that is wrong with what watchers saw.
pub(crate) fn check(logs: &[Vec<Seen>]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut truth: BTreeMap<u64, (Change, String, String)> = BTreeMap::new();
    for log in logs {
        check_order(log, &mut violations);
        for seen in log {
            let Seen::Event(version, change, name, content) = seen else {
                continue;
            };
            let told = (*change, name.clone(), content.clone());
            if *truth.entry(*version).or_insert_with(|| told.clone()) != told {
                violations.push(Violation::NotAtomic(*version));
            }
        }
    }
    for log in logs {
        check_complete(log, &truth, &mut violations);
    }
    check_states(logs, &truth, &mut violations);
    violations.sort();
    violations.dedup();
    violations
}

/// Within a session versions ascend, and nothing comes after a bookmark that was before it.
fn check_order(log: &[Seen], violations: &mut Vec<Violation>) {
    let mut last = 0;
    for seen in log {
        match seen {
            Seen::List(version, _) | Seen::Resumed(version) => last = *version,
            Seen::Event(version, ..) => {
                if *version <= last {
                    violations.push(Violation::OutOfOrder(*version, last));
                }
                last = *version;
            }
            Seen::Bookmark(version) => {
                if *version < last {
                    violations.push(Violation::OutOfOrder(*version, last));
                }
                last = *version;
            }
        }
    }
}

/// Between where a session began and the last thing it saw, it saw everything.
fn check_complete(
    log: &[Seen],
    truth: &BTreeMap<u64, (Change, String, String)>,
    violations: &mut Vec<Violation>,
) {
    let mut upto = None;
    for seen in log {
        let (version, own) = match seen {
            Seen::List(version, _) | Seen::Resumed(version) => {
                upto = Some(*version);
                continue;
            }
            Seen::Event(version, ..) => (*version, 1),
            Seen::Bookmark(version) => (*version, 0),
        };
        if let Some(from) = upto.filter(|from| *from < version) {
            let between = truth.range(from + 1..=version);
            let missed = between.map(|(version, _)| *version);
            let missed = missed.filter(|missed| own == 0 || *missed != version);
            violations.extend(missed.map(Violation::Missing));
        }
        upto = upto.max(Some(version));
    }
}

/// From where to where somebody watched. When all were away at once, and history ended before
/// they came back, nobody can tell what happened in between.
fn watched(logs: &[Vec<Seen>]) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for log in logs {
        let mut open: Option<(u64, u64)> = None;
        for seen in log {
            match seen {
                Seen::List(version, _) | Seen::Resumed(version) => {
                    spans.extend(open.replace((*version, *version)));
                }
                Seen::Event(version, ..) | Seen::Bookmark(version) => {
                    if let Some((_, end)) = &mut open {
                        *end = (*end).max(*version);
                    }
                }
            }
        }
        spans.extend(open);
    }
    spans.sort_unstable();
    let mut whole: Vec<(u64, u64)> = Vec::new();
    for (from, to) in spans {
        match whole.last_mut() {
            Some((_, end)) if from <= *end => *end = (*end).max(to),
            _ => whole.push((from, to)),
        }
    }
    whole
}

/// Events fit the states that they change, and lists show the state at their version.
fn check_states(
    logs: &[Vec<Seen>],
    truth: &BTreeMap<u64, (Change, String, String)>,
    violations: &mut Vec<Violation>,
) {
    let mut lists: Vec<(u64, &State)> = Vec::new();
    for seen in logs.iter().flatten() {
        if let Seen::List(version, objects) = seen {
            lists.push((*version, objects));
        }
    }
    lists.sort_by_key(|(version, _)| *version);
    for (from, to) in watched(logs) {
        let begin = lists.partition_point(|(version, _)| *version < from);
        let end = lists.partition_point(|(version, _)| *version <= to);
        check_span(&lists[begin..end], to, truth, violations);
    }
}

/// The same, for a time in which somebody watched from its first list to the version `to`.
fn check_span(
    lists: &[(u64, &State)],
    to: u64,
    truth: &BTreeMap<u64, (Change, String, String)>,
    violations: &mut Vec<Violation>,
) {
    let Some((first, start)) = lists.first() else {
        return;
    };
    let mut state: HashMap<&str, (u64, &str)> = start
        .iter()
        .map(|(name, (version, content))| (name.as_str(), (*version, content.as_str())))
        .collect();
    let mut lists = lists.iter().peekable();
    let mut compare = |upto: u64, state: &HashMap<&str, (u64, &str)>| {
        let mut wrong = Vec::new();
        while let Some((version, objects)) = lists.next_if(|(version, _)| *version < upto) {
            let same = objects.len() == state.len()
                && objects.iter().all(|(name, (version, content))| {
                    state.get(name.as_str()) == Some(&(*version, content.as_str()))
                });
            if !same {
                wrong.push(Violation::WrongList(*version));
            }
        }
        wrong
    };
    for (version, (change, name, content)) in truth.range(first + 1..to.max(*first) + 1) {
        violations.extend(compare(*version, &state));
        let exists = state.contains_key(name.as_str());
        let possible = match change {
            Change::Added => !exists,
            Change::Modified | Change::Deleted => exists,
        };
        if !possible {
            violations.push(Violation::Impossible(*version));
        }
        match change {
            Change::Deleted => state.remove(name.as_str()),
            _ => state.insert(name, (*version, content)),
        };
    }
    violations.extend(compare(u64::MAX, &state));
}

/// A log without mistakes, and every way to spoil it.
#[test]
fn the_checker_notices_every_broken_guarantee() {
    let event = |version, change, name: &str, content: &str| {
        Seen::Event(version, change, name.to_owned(), content.to_owned())
    };
    let listed = |names: &[(&str, u64, &str)]| {
        let entry = |(name, version, content): &(&str, u64, &str)| {
            ((*name).to_owned(), (*version, (*content).to_owned()))
        };
        names.iter().map(entry).collect()
    };
    let good = vec![
        Seen::List(1, listed(&[("a", 1, "0")])),
        event(2, Change::Modified, "a", "1"),
        event(4, Change::Added, "b", "2"),
        Seen::Bookmark(5),
        Seen::Resumed(5),
        event(6, Change::Deleted, "a", "1"),
        event(8, Change::Modified, "b", "3"),
    ];
    let end = vec![
        Seen::List(4, listed(&[("a", 2, "1"), ("b", 4, "2")])),
        event(6, Change::Deleted, "a", "1"),
        event(8, Change::Modified, "b", "3"),
    ];
    assert_eq!(check(&[good.clone(), end.clone()]), []);
    // What happened while everybody was away is not held against anybody.
    let later = vec![
        Seen::List(20, listed(&[("b", 12, "5"), ("c", 15, "6")])),
        event(21, Change::Modified, "c", "7"),
    ];
    assert_eq!(check(&[good.clone(), end.clone(), later]), []);
    let wrong = vec![
        Seen::List(20, listed(&[("b", 12, "5")])),
        event(21, Change::Modified, "c", "7"),
    ];
    let found = check(&[good.clone(), wrong]);
    assert_eq!(found, [Violation::Impossible(21)]);
    type Spoil = fn(&mut Vec<Seen>);
    let cases: [(Spoil, Violation); 8] = [
        (|log| log.swap(1, 2), Violation::OutOfOrder(2, 4)),
        (
            |log| log.insert(2, log[1].clone()),
            Violation::OutOfOrder(2, 2),
        ),
        (
            |log| log.insert(5, log[2].clone()),
            Violation::OutOfOrder(4, 5),
        ),
        (|log| drop(log.remove(5)), Violation::Missing(6)),
        (|log| log[3] = Seen::Bookmark(7), Violation::Missing(6)),
        (
            |log| log[6] = Seen::Event(8, Change::Modified, "b".into(), "9".into()),
            Violation::NotAtomic(8),
        ),
        (
            |log| log[2] = Seen::Event(4, Change::Modified, "b".into(), "2".into()),
            Violation::Impossible(4),
        ),
        (
            |log| log[1] = Seen::Event(2, Change::Modified, "a".into(), "7".into()),
            Violation::WrongList(4),
        ),
    ];
    for (number, (spoil, expected)) in cases.into_iter().enumerate() {
        let mut spoiled = good.clone();
        spoil(&mut spoiled);
        let found = check(&[spoiled, end.clone()]);
        assert!(found.contains(&expected), "case {number}: {found:?}");
    }
}
