//! Union, intersection and differences: one pass over both tries, without recursion.

use std::cmp::Ordering;

use super::{Entry, FieldSet, size_of};

/// What to keep of two tries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
    RecursiveDifference,
}

impl FieldSet {
    /// Everything in either set.
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        if other.is_subset(self) {
            return self.clone();
        }
        if self.is_subset(other) {
            return other.clone();
        }
        combine(self, other, Operation::Union)
    }

    /// Everything in both sets.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        combine(self, other, Operation::Intersection)
    }

    /// What is in this set and not in the other. Neither parents nor children of the other's
    /// paths are touched.
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        if self.is_disjoint(other) {
            return self.clone();
        }
        combine(self, other, Operation::Difference)
    }

    /// What is in this set and neither in the other nor beneath one of its paths.
    pub fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        if other.is_empty() {
            return self.clone();
        }
        combine(self, other, Operation::RecursiveDifference)
    }

    /// Whether no path of this set is in the other.
    pub fn is_disjoint(&self, other: &FieldSet) -> bool {
        let (mine, theirs) = (self.entries(), other.entries());
        let mut open: Vec<(usize, usize)> = Vec::new();
        let (mut left, mut right) = (0, 0);
        let (mut left_end, mut right_end) = (mine.len(), theirs.len());
        loop {
            if left == left_end || right == right_end {
                let Some((left_outer, right_outer)) = open.pop() else {
                    return true;
                };
                (left, right) = (left_end, right_end);
                (left_end, right_end) = (left_outer, right_outer);
                continue;
            }
            match mine[left].element.cmp(&theirs[right].element) {
                Ordering::Less => left += mine[left].size as usize,
                Ordering::Greater => right += theirs[right].size as usize,
                Ordering::Equal => {
                    if mine[left].member && theirs[right].member {
                        return false;
                    }
                    open.push((left_end, right_end));
                    left_end = left + mine[left].size as usize;
                    right_end = right + theirs[right].size as usize;
                    (left, right) = (left + 1, right + 1);
                }
            }
        }
    }

    /// Whether every path of this set is in the other.
    pub fn is_subset(&self, other: &FieldSet) -> bool {
        if self.is_shared_with(other) {
            return true;
        }
        let (mine, theirs) = (self.entries(), other.entries());
        let mut open: Vec<(usize, usize)> = Vec::new();
        let (mut left, mut right) = (0, 0);
        let (mut left_end, mut right_end) = (mine.len(), theirs.len());
        loop {
            if left == left_end {
                let Some((left_outer, right_outer)) = open.pop() else {
                    return true;
                };
                right = right_end;
                (left_end, right_end) = (left_outer, right_outer);
                continue;
            }
            if right == right_end {
                return false;
            }
            match mine[left].element.cmp(&theirs[right].element) {
                Ordering::Less => return false,
                Ordering::Greater => right += theirs[right].size as usize,
                Ordering::Equal => {
                    if mine[left].member && !theirs[right].member {
                        return false;
                    }
                    open.push((left_end, right_end));
                    left_end = left + mine[left].size as usize;
                    right_end = right + theirs[right].size as usize;
                    (left, right) = (left + 1, right + 1);
                }
            }
        }
    }

    /// The paths with nothing beneath them.
    pub fn leaves(&self) -> FieldSet {
        let entries = self.entries().iter().map(|entry| Entry {
            member: entry.member && entry.size == 1,
            ..entry.clone()
        });
        FieldSet::from_entries(entries.collect())
    }
}

/// The ends of two subtrees that are being combined, and where their result begins.
struct Open {
    left_end: usize,
    right_end: usize,
    out: usize,
}

fn combine(left_set: &FieldSet, right_set: &FieldSet, operation: Operation) -> FieldSet {
    let (mine, theirs) = (left_set.entries(), right_set.entries());
    let mut out: Vec<Entry> = Vec::with_capacity(match operation {
        Operation::Union => mine.len() + theirs.len(),
        Operation::Intersection => mine.len().min(theirs.len()),
        Operation::Difference | Operation::RecursiveDifference => mine.len(),
    });
    let mut open: Vec<Open> = Vec::new();
    let (mut left, mut right) = (0, 0);
    let (mut left_end, mut right_end) = (mine.len(), theirs.len());
    loop {
        let order = match (left == left_end, right == right_end) {
            (true, true) => {
                let Some(outer) = open.pop() else { break };
                close(&mut out, outer.out);
                (left_end, right_end) = (outer.left_end, outer.right_end);
                continue;
            }
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => mine[left].element.cmp(&theirs[right].element),
        };
        match order {
            Ordering::Less => {
                let next = left + mine[left].size as usize;
                if operation != Operation::Intersection {
                    out.extend_from_slice(&mine[left..next]);
                }
                left = next;
            }
            Ordering::Greater => {
                let next = right + theirs[right].size as usize;
                if operation == Operation::Union {
                    out.extend_from_slice(&theirs[right..next]);
                }
                right = next;
            }
            Ordering::Equal => {
                let (my, their) = (&mine[left], &theirs[right]);
                if operation == Operation::RecursiveDifference && their.member {
                    left += my.size as usize;
                    right += their.size as usize;
                    continue;
                }
                let member = match operation {
                    Operation::Union => my.member || their.member,
                    Operation::Intersection => my.member && their.member,
                    Operation::Difference | Operation::RecursiveDifference => {
                        my.member && !their.member
                    }
                };
                open.push(Open {
                    left_end,
                    right_end,
                    out: out.len(),
                });
                out.push(Entry {
                    element: my.element.clone(),
                    size: 0,
                    member,
                });
                left_end = left + my.size as usize;
                right_end = right + their.size as usize;
                (left, right) = (left + 1, right + 1);
            }
        }
    }
    FieldSet::from_entries(out)
}

/// Ends the subtree at `at`, or takes it away if nothing is left of it.
fn close(out: &mut Vec<Entry>, at: usize) {
    let size = out.len() - at;
    if size == 1 && !out[at].member {
        out.pop();
    } else {
        out[at].size = size_of(size);
    }
}
