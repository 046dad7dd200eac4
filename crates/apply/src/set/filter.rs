//! Filters over sets: which paths a write may own at all.
//!
//! A strategy that resets fields (a main resource resets `.status`) filters them out of every
//! comparison and out of what the writer owns, so that they are neither owned nor in conflict.

use super::{Entry, FieldSet, size_of};
use crate::path::PathElement;

/// Which paths pass.
#[derive(Clone, Debug)]
pub enum FieldFilter {
    /// All but these and what lies beneath them.
    Exclude(FieldSet),
    /// Only what one of these patterns matches, and the steps that lead there.
    Include(Vec<Pattern>),
}

/// A path in which `None` stands for any element. It matches everything beneath its end too.
pub type Pattern = Vec<Option<PathElement>>;

impl FieldFilter {
    /// The paths of `set` that pass.
    pub fn filter(&self, set: &FieldSet) -> FieldSet {
        match self {
            FieldFilter::Exclude(excluded) => set.recursive_difference(excluded),
            FieldFilter::Include(patterns) => include(set, patterns),
        }
    }
}

/// An open subtree of the result, with the patterns that lead into it.
struct Open<'a> {
    end: usize,
    out: usize,
    patterns: Vec<&'a [Option<PathElement>]>,
}

fn include(set: &FieldSet, patterns: &[Pattern]) -> FieldSet {
    let entries = set.entries();
    let mut out: Vec<Entry> = Vec::new();
    let all: Vec<&[Option<PathElement>]> = patterns.iter().map(Vec::as_slice).collect();
    if all.iter().any(|pattern| pattern.is_empty()) {
        return set.clone();
    }
    let mut open = vec![Open {
        end: entries.len(),
        out: 0,
        patterns: all,
    }];
    let mut at = 0;
    while let Some(level) = open.last() {
        if at == level.end {
            let closed = open.pop().expect("the loop's condition");
            if !open.is_empty() {
                close(&mut out, closed.out);
            }
            continue;
        }
        let entry = &entries[at];
        let matched: Vec<&[Option<PathElement>]> = level
            .patterns
            .iter()
            .filter(|pattern| {
                pattern[0]
                    .as_ref()
                    .is_none_or(|element| *element == entry.element)
            })
            .map(|pattern| &pattern[1..])
            .collect();
        let end = at + entry.size as usize;
        if matched.iter().any(|rest| rest.is_empty()) {
            out.extend_from_slice(&entries[at..end]);
            at = end;
        } else if matched.is_empty() {
            at = end;
        } else {
            open.push(Open {
                end,
                out: out.len(),
                patterns: matched,
            });
            out.push(Entry {
                size: 0,
                ..entry.clone()
            });
            at += 1;
        }
    }
    FieldSet::from_entries(out)
}

fn close(out: &mut Vec<Entry>, at: usize) {
    let size = out.len() - at;
    if size == 1 && !out[at].member {
        out.pop();
    } else {
        out[at].size = size_of(size);
    }
}
