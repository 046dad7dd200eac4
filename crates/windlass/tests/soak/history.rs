//! Whether what concurrent clients did to an object can have happened one after the other.
//!
//! Versions give the order; it must fit the time in which each request was under way. A request
//! whose answer was lost may have been done or not. What is checked is necessary for a history to
//! be linearizable, and with versions as witnesses it is sufficient for reads that found something.

use std::collections::{BTreeSet, HashMap};

/// What a request did to one object, as its client knows it. Times are steps of one counter.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub object: String,
    pub began: u64,
    pub ended: u64,
    pub what: What,
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Wrote this content, at a version, over another version if it named one.
    Wrote(String, u64, Option<u64>),
    /// Deleted the object, at a version that nobody tells.
    Deleted,
    /// Was to write this content, and nobody knows whether it did.
    PerhapsWrote(String),
    /// Was to delete, and nobody knows whether it did.
    PerhapsDeleted,
    /// Read this content at a version.
    Read(String, u64),
    /// Found nothing.
    ReadNothing,
}

/// Why a history cannot have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A later request saw or made an older version.
    WentBack(u64, u64),
    /// A version was made twice.
    MadeTwice(u64),
    /// What was read was never written, or not before it was read.
    OutOfNowhere(u64),
    /// A write over a version happened though another came in between.
    Overwrote(u64),
    /// Nothing was found though the object was there all the time.
    Vanished(String),
}

/// Every flaw of a history.
pub(crate) fn check(history: &[Done]) -> Vec<Flaw> {
    let mut by_object: HashMap<&str, Vec<&Done>> = HashMap::new();
    for done in history {
        by_object.entry(&done.object).or_default().push(done);
    }
    let mut flaws = Vec::new();
    for done in by_object.values() {
        check_time(done, &mut flaws);
        check_contents(done, &mut flaws);
        check_absence(done, &mut flaws);
    }
    flaws
}

fn version(done: &Done) -> Option<u64> {
    match &done.what {
        What::Wrote(_, version, _) | What::Read(_, version) => Some(*version),
        _ => None,
    }
}

/// Whoever begins after another ended sees at least its version.
fn check_time(all: &[&Done], flaws: &mut Vec<Flaw>) {
    let mut ended: Vec<(u64, u64)> = all
        .iter()
        .filter_map(|done| Some((done.ended, version(done)?)))
        .collect();
    ended.sort_unstable();
    let mut began: Vec<(u64, u64, bool)> = all
        .iter()
        .filter_map(|done| {
            let wrote = matches!(done.what, What::Wrote(..));
            Some((done.began, version(done)?, wrote))
        })
        .collect();
    began.sort_unstable();
    let (mut newest, mut ended) = (0, ended.into_iter().peekable());
    for (time, version, wrote) in began {
        while let Some((_, seen)) = ended.next_if(|(end, _)| *end < time) {
            newest = newest.max(seen);
        }
        if version < newest || (wrote && version == newest) {
            flaws.push(Flaw::WentBack(version, newest));
        }
    }
}

/// Each version was made once, and what was read is what made it.
fn check_contents(all: &[&Done], flaws: &mut Vec<Flaw>) {
    let mut made: HashMap<u64, &str> = HashMap::new();
    for done in all {
        if let What::Wrote(content, version, _) = &done.what
            && made.insert(*version, content).is_some()
        {
            flaws.push(Flaw::MadeTwice(*version));
        }
    }
    let versions: BTreeSet<u64> = made.keys().copied().collect();
    for done in all {
        match &done.what {
            What::Wrote(_, version, Some(over)) => {
                let next = versions.range(over + 1..).next();
                if next.is_some_and(|next| next < version) {
                    flaws.push(Flaw::Overwrote(*version));
                }
            }
            What::Read(content, version) => {
                let perhaps = |other: &&Done| {
                    let wrote = matches!(&other.what, What::PerhapsWrote(it) if it == content);
                    wrote && other.began < done.ended
                };
                let is_known = match made.get(version) {
                    Some(known) => known == content,
                    None => all.iter().any(perhaps),
                };
                if !is_known {
                    flaws.push(Flaw::OutOfNowhere(*version));
                }
            }
            _ => {}
        }
    }
}

/// Nothing is found only if a deletion may have come between the last write and the read.
fn check_absence(all: &[&Done], flaws: &mut Vec<Flaw>) {
    // By the time at which each request ended: the newest version that was known then, and when
    // the request that knew it began.
    let mut known: Vec<(u64, (u64, u64))> = all
        .iter()
        .filter_map(|done| Some((done.ended, (version(done)?, done.began))))
        .collect();
    keep_greatest(&mut known);
    // By the time at which each deletion began: the latest end of those so far.
    let mut deletions: Vec<(u64, u64)> = all
        .iter()
        .filter(|done| matches!(done.what, What::Deleted | What::PerhapsDeleted))
        .map(|done| (done.began, done.ended))
        .collect();
    keep_greatest(&mut deletions);
    for read in all.iter().filter(|done| done.what == What::ReadNothing) {
        let Some((_, last_began)) = greatest_before(&known, read.began) else {
            continue;
        };
        let deleted = greatest_before(&deletions, read.ended);
        if deleted.is_none_or(|ended| ended <= last_began) {
            flaws.push(Flaw::Vanished(read.object.clone()));
        }
    }
}

/// Sorts by time, and gives each time the greatest of what came with it or before it.
fn keep_greatest<T: Copy + Ord>(timed: &mut [(u64, T)]) {
    timed.sort_unstable();
    for at in 1..timed.len() {
        timed[at].1 = timed[at].1.max(timed[at - 1].1);
    }
}

/// The greatest of what came before a time.
fn greatest_before<T: Copy>(timed: &[(u64, T)], time: u64) -> Option<T> {
    let before = timed.partition_point(|(other, _)| *other < time);
    Some(timed[before.checked_sub(1)?].1)
}

/// A history without flaws, and every way to spoil it.
#[test]
fn the_checker_notices_every_flaw() {
    let done = |began, ended, what| Done {
        object: "a".to_owned(),
        began,
        ended,
        what,
    };
    let wrote = |text: &str, version, over| What::Wrote(text.to_owned(), version, over);
    let read = |text: &str, version| What::Read(text.to_owned(), version);
    let good = vec![
        done(1, 4, wrote("x", 10, None)),
        done(2, 6, read("x", 10)),
        done(7, 12, wrote("y", 11, Some(10))),
        done(8, 9, read("x", 10)),
        done(10, 20, What::PerhapsWrote("z".to_owned())),
        done(13, 14, read("z", 13)),
        done(21, 24, What::Deleted),
        done(22, 23, What::ReadNothing),
    ];
    assert_eq!(check(&good), []);
    let cases = [
        (3, done(13, 14, read("x", 10)), Flaw::WentBack(10, 11)),
        (3, done(8, 9, read("y", 10)), Flaw::OutOfNowhere(10)),
        (3, done(8, 9, read("q", 12)), Flaw::OutOfNowhere(12)),
        (3, done(8, 9, wrote("w", 11, None)), Flaw::MadeTwice(11)),
        (2, done(7, 12, wrote("y", 14, Some(9))), Flaw::Overwrote(14)),
        (
            6,
            done(21, 24, read("z", 13)),
            Flaw::Vanished("a".to_owned()),
        ),
    ];
    for (place, instead, expected) in cases {
        let mut spoiled = good.clone();
        spoiled[place] = instead;
        let found = check(&spoiled);
        assert!(found.contains(&expected), "{expected:?}: {found:?}");
    }
}
