//! Two texts side by side as a unified diff with three lines around each change.
//!
//! Contract: `difflib` as upstream's server uses it, whose choice of what has stayed is visible:
//! the longest run of equal lines first, then those before and after it, and lines that stand in
//! many places of a long text never begin a run.

use std::collections::HashMap;
use std::ops::Range;

const CONTEXT_LINES: usize = 3;
/// Texts from this length on have lines that are too common to begin a run.
const LONG_LINES: usize = 200;
/// Longer texts are not compared: a message need not grow with what it is about.
const LINES_MAX: usize = 20_000;

/// Equal lines: where they begin in the old and in the new text, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    old: usize,
    new: usize,
    length: usize,
}

/// One part of a change: the lines of the old text and those that stand there now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edit {
    same: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// The diff of two texts; empty if they are equal, or too long to be compared.
pub(super) fn unified(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split('\n').collect();
    let new: Vec<&str> = new.split('\n').collect();
    let mut out = String::new();
    if old.len().max(new.len()) > LINES_MAX {
        return out;
    }
    for group in groups(edits(&old, &new)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        out.push_str(&format!(
            "@@ -{} +{} @@\n",
            shown(first.old.start..last.old.end),
            shown(first.new.start..last.new.end)
        ));
        for edit in &group {
            let mut lines = |sign: char, lines: &[&str]| {
                for line in lines {
                    out.push(sign);
                    out.push_str(line);
                    out.push('\n');
                }
            };
            if edit.same {
                lines(' ', &old[edit.old.clone()]);
            } else {
                lines('-', &old[edit.old.clone()]);
                lines('+', &new[edit.new.clone()]);
            }
        }
    }
    out
}

fn shown(range: Range<usize>) -> String {
    match range.len() {
        1 => format!("{}", range.start + 1),
        0 => format!("{},0", range.start),
        length => format!("{},{length}", range.start + 1),
    }
}

/// What changed and what stayed, from the first line to the last.
fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (mut at_old, mut at_new) = (0, 0);
    let end = Run {
        old: old.len(),
        new: new.len(),
        length: 0,
    };
    for run in runs(old, new).into_iter().chain([end]) {
        if at_old < run.old || at_new < run.new {
            edits.push(Edit {
                same: false,
                old: at_old..run.old,
                new: at_new..run.new,
            });
        }
        (at_old, at_new) = (run.old + run.length, run.new + run.length);
        if run.length > 0 {
            edits.push(Edit {
                same: true,
                old: run.old..at_old,
                new: run.new..at_new,
            });
        }
    }
    edits
}

/// The runs of equal lines in order, neighbours joined.
fn runs(old: &[&str], new: &[&str]) -> Vec<Run> {
    let places = places(new);
    let mut found = Vec::new();
    let mut open = vec![(0..old.len(), 0..new.len())];
    while let Some((in_old, in_new)) = open.pop() {
        let run = longest(old, new, &places, in_old.clone(), in_new.clone());
        if run.length > 0 {
            open.push((in_old.start..run.old, in_new.start..run.new));
            open.push((
                run.old + run.length..in_old.end,
                run.new + run.length..in_new.end,
            ));
            found.push(run);
        }
    }
    found.sort_by_key(|run| (run.old, run.new));
    let mut joined: Vec<Run> = Vec::new();
    for run in found {
        match joined.last_mut() {
            Some(last)
                if last.old + last.length == run.old && last.new + last.length == run.new =>
            {
                last.length += run.length;
            }
            _ => joined.push(run),
        }
    }
    joined
}

/// Where each line stands in the new text, without those that are too common.
fn places<'a>(new: &[&'a str]) -> HashMap<&'a str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    if new.len() >= LONG_LINES {
        let common = new.len() / 100 + 1;
        places.retain(|_, at| at.len() <= common);
    }
    places
}

fn longest(
    old: &[&str],
    new: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    in_old: Range<usize>,
    in_new: Range<usize>,
) -> Run {
    let mut best = Run {
        old: in_old.start,
        new: in_new.start,
        length: 0,
    };
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for at in in_old.clone() {
        let mut next: HashMap<usize, usize> = HashMap::new();
        let candidates = places.get(old[at]).map_or(&[][..], Vec::as_slice);
        for &place in candidates.iter().filter(|place| in_new.contains(place)) {
            let before = place.checked_sub(1).and_then(|place| lengths.get(&place));
            let length = before.copied().unwrap_or_default() + 1;
            next.insert(place, length);
            if length > best.length {
                best = Run {
                    old: at + 1 - length,
                    new: place + 1 - length,
                    length,
                };
            }
        }
        lengths = next;
    }
    while best.old > in_old.start
        && best.new > in_new.start
        && old[best.old - 1] == new[best.new - 1]
    {
        best.old -= 1;
        best.new -= 1;
        best.length += 1;
    }
    while best.old + best.length < in_old.end
        && best.new + best.length < in_new.end
        && old[best.old + best.length] == new[best.new + best.length]
    {
        best.length += 1;
    }
    best
}

/// The edits with the lines around them, divided where much has stayed.
fn groups(mut edits: Vec<Edit>) -> Vec<Vec<Edit>> {
    if edits.iter().all(|edit| edit.same) {
        return Vec::new();
    }
    let tail = |edit: &mut Edit| {
        edit.old.start = edit
            .old
            .start
            .max(edit.old.end.saturating_sub(CONTEXT_LINES));
        edit.new.start = edit
            .new
            .start
            .max(edit.new.end.saturating_sub(CONTEXT_LINES));
    };
    let head = |edit: &mut Edit| {
        edit.old.end = edit.old.end.min(edit.old.start + CONTEXT_LINES);
        edit.new.end = edit.new.end.min(edit.new.start + CONTEXT_LINES);
    };
    if let Some(first) = edits.first_mut().filter(|edit| edit.same) {
        tail(first);
    }
    if let Some(last) = edits.last_mut().filter(|edit| edit.same) {
        head(last);
    }
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for mut edit in edits {
        if edit.same && edit.old.len() > 2 * CONTEXT_LINES {
            let mut before = edit.clone();
            head(&mut before);
            group.push(before);
            groups.push(std::mem::take(&mut group));
            tail(&mut edit);
        }
        group.push(edit);
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|edit| !edit.same));
    groups
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn changes_stand_between_the_lines_around_them() {
        let cases = [
            ("a\nb", "a\nb", ""),
            ("a", "b", "@@ -1 +1 @@\n-a\n+b\n"),
            (
                "a\nb\nc\nd\ne",
                "a\nb\nc\nX\ne",
                "@@ -1,5 +1,5 @@\n a\n b\n c\n-d\n+X\n e\n",
            ),
            (
                "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11",
                "0\n2\n3\n4\n5\n6\n7\n8\n9\n10\n12",
                "@@ -1,4 +1,4 @@\n-1\n+0\n 2\n 3\n 4\n@@ -8,4 +8,4 @@\n 8\n 9\n 10\n-11\n+12\n",
            ),
            ("a\nb", "a\nb\nc", "@@ -1,2 +1,3 @@\n a\n b\n+c\n"),
        ];
        for (old, new, expected) in cases {
            assert_eq!(unified(old, new), expected, "{old:?} to {new:?}");
        }
    }

    #[test]
    fn texts_that_are_too_long_are_not_compared() {
        let long = "x\n".repeat(30_000);
        assert_eq!(unified(&long, "y"), "");
    }
}
