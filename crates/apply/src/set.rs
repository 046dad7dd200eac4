//! Sets of field paths, stored as a trie.
//!
//! The trie is one flat vector in depth-first order: each entry knows how many entries its subtree
//! takes, so siblings are a hop apart, copying a subtree is copying a slice, and neither dropping
//! nor comparing a set recurses. A set is shared by cloning it.
//!
//! Invariants: siblings are sorted and unique, and an entry is a member or has a child; so two
//! equal sets have one form in memory and one on the wire. An entry that only leads to others is
//! not a member: owning `.spec.replicas` does not own `.spec`.

mod algebra;
mod fields_v1;
mod filter;
mod known;

use std::{
    cell::RefCell,
    fmt,
    sync::{Arc, OnceLock},
};

use schema::{TypeId, Types};

pub(crate) use self::fields_v1::Form;
pub use self::{
    fields_v1::FieldsError,
    filter::{FieldFilter, Pattern},
    known::KnownSets,
};
use crate::{
    path::{Path, PathElement, Step},
    typed::child_type,
};

/// A set of field paths.
#[derive(Clone, Default)]
pub struct FieldSet {
    trie: Arc<Trie>,
}

#[derive(Default)]
struct Trie {
    entries: Vec<Entry>,
    /// The texts of a set that is read and written again and again.
    texts: Option<Box<Texts>>,
}

/// The wire forms of a set, each kept once it has been written.
#[derive(Default)]
struct Texts {
    typed: OnceLock<Box<[u8]>>,
    custom: OnceLock<Box<[u8]>>,
}

impl Clone for Trie {
    /// A copy is made to be changed, so the texts stay behind.
    fn clone(&self) -> Trie {
        Trie {
            entries: self.entries.clone(),
            texts: None,
        }
    }
}

impl PartialEq for FieldSet {
    fn eq(&self, other: &FieldSet) -> bool {
        self.is_shared_with(other) || self.trie.entries == other.trie.entries
    }
}

impl Eq for FieldSet {}

/// One node of the trie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) element: PathElement,
    /// How many entries the subtree takes, this one included.
    pub(crate) size: u32,
    /// Whether the path that ends here is in the set.
    pub(crate) member: bool,
}

impl FieldSet {
    /// The empty set.
    pub fn new() -> FieldSet {
        FieldSet::default()
    }

    /// The set of these paths, in any order. The empty path is never in a set.
    pub fn from_paths(paths: impl IntoIterator<Item = Path>) -> FieldSet {
        let mut paths: Vec<Path> = paths.into_iter().collect();
        paths.sort();
        let mut entries: Vec<Entry> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for path in paths {
            let shared = open
                .iter()
                .zip(&path.0)
                .take_while(|(at, element)| entries[**at].element == **element)
                .count();
            close(&mut entries, &mut open, shared);
            for element in path.0.into_iter().skip(shared) {
                open.push(entries.len());
                entries.push(Entry {
                    element,
                    size: 0,
                    member: false,
                });
            }
            if let Some(last) = open.last() {
                entries[*last].member = true;
            }
        }
        close(&mut entries, &mut open, 0);
        FieldSet::from_entries(entries)
    }

    pub(crate) fn from_entries(entries: Vec<Entry>) -> FieldSet {
        let texts = None;
        FieldSet {
            trie: Arc::new(Trie { entries, texts }),
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.trie.entries
    }

    /// The entries to change, which others who share them do not see.
    fn entries_mut(&mut self) -> &mut Vec<Entry> {
        let trie = Arc::make_mut(&mut self.trie);
        trie.texts = None;
        &mut trie.entries
    }

    /// Whether both are one set in memory.
    fn is_shared_with(&self, other: &FieldSet) -> bool {
        Arc::ptr_eq(&self.trie, &other.trie)
    }

    /// This set, which from now on keeps its texts.
    fn keeping_texts(mut self) -> FieldSet {
        Arc::make_mut(&mut self.trie).texts = Some(Box::default());
        self
    }

    /// Where a text of the set is kept, if it is one that keeps them.
    fn kept_text(&self, form: Form) -> Option<&OnceLock<Box<[u8]>>> {
        let texts = self.trie.texts.as_ref()?;
        match form {
            Form::Typed => Some(&texts.typed),
            Form::Custom => Some(&texts.custom),
            Form::Stored => None,
        }
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// How many paths are in the set.
    pub fn len(&self) -> usize {
        self.entries().iter().filter(|entry| entry.member).count()
    }

    /// Whether this very path is in the set.
    pub fn contains(&self, path: &Path) -> bool {
        let mut level = self.entries();
        let mut member = false;
        for element in &path.0 {
            let Some(at) = find(level, element) else {
                return false;
            };
            member = level[at].member;
            level = &level[at + 1..at + level[at].size as usize];
        }
        member
    }

    /// Every path, the members of a node before what lies beneath them.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.for_each(|path| paths.push(Path(path.to_vec())));
        paths
    }

    /// Calls `visit` with every path, the members of a node before what lies beneath them.
    pub fn for_each(&self, mut visit: impl FnMut(&[PathElement])) {
        let mut path: Vec<PathElement> = Vec::new();
        self.for_each_level(|event| match event {
            Visit::Open(element) => path.extend(element.cloned()),
            Visit::Member(element) => {
                path.push(element.clone());
                visit(&path);
                path.pop();
            }
            Visit::Close => {
                path.pop();
            }
        });
    }

    /// Visits every node: its members, then each child node.
    pub(crate) fn for_each_level<'a>(&'a self, mut visit: impl FnMut(Visit<'a>)) {
        let entries = self.entries();
        let level = |at, end| Level {
            at,
            start: at,
            end,
            below: false,
        };
        visit(Visit::Open(None));
        let mut levels = vec![level(0, entries.len())];
        while let Some(open) = levels.last_mut() {
            if open.at == open.end && open.below {
                levels.pop();
                visit(Visit::Close);
                continue;
            }
            if open.at == open.end {
                open.at = open.start;
                open.below = true;
                continue;
            }
            let at = open.at;
            let entry = &entries[at];
            open.at += entry.size as usize;
            if !open.below {
                if entry.member {
                    visit(Visit::Member(&entry.element));
                }
            } else if entry.size > 1 {
                visit(Visit::Open(Some(&entry.element)));
                levels.push(level(at + 1, at + entry.size as usize));
            }
        }
    }

    /// Takes `paths` out, in place if nobody shares the set. Cheap for few paths near the root.
    pub(crate) fn remove(&mut self, paths: &FieldSet) {
        let mut removed: Vec<usize> = Vec::new();
        let mut open: Vec<(usize, usize)> = Vec::new();
        let (mut at, mut end) = (0, self.entries().len());
        let mut path = 0;
        while let Some(wanted) = paths.entries().get(path) {
            while open.last().is_some_and(|(last, _)| path >= *last) {
                let (_, outer) = open.pop().expect("the loop's condition");
                (at, end) = (end, outer);
            }
            while at < end && self.entries()[at].element < wanted.element {
                at += self.entries()[at].size as usize;
            }
            if at == end || self.entries()[at].element > wanted.element {
                path += wanted.size as usize;
                continue;
            }
            if wanted.member && self.entries()[at].member {
                removed.push(at);
            }
            open.push((path + wanted.size as usize, end));
            end = at + self.entries()[at].size as usize;
            at += 1;
            path += 1;
        }
        if !removed.is_empty() {
            let entries = self.entries_mut();
            for at in removed.into_iter().rev() {
                entries[at].member = false;
                drop_empty(entries, at);
            }
        }
    }

    /// Makes members of all declared fields that lead to a member.
    ///
    /// Pruning needs it: appliers do not own the structs between their fields.
    pub fn ensure_named_fields_are_members(mut self, types: &Types, root: TypeId) -> FieldSet {
        let end = self.entries().len();
        // Ends of the open subtrees, with the type of what is inside.
        let mut open: Vec<(usize, Option<TypeId>)> = vec![(end, Some(root))];
        let mut named: Vec<usize> = Vec::new();
        for (at, entry) in self.entries().iter().enumerate() {
            while open.last().is_some_and(|(end, _)| *end <= at) {
                open.pop();
            }
            if entry.size == 1 {
                continue;
            }
            let parent = open.last().and_then(|(_, ty)| *ty);
            if !entry.member && is_declared(types, parent, &entry.element) {
                named.push(at);
            }
            let ty = parent.and_then(|parent| child_type(types.get(parent), &entry.element));
            open.push((at + entry.size as usize, ty));
        }
        if !named.is_empty() {
            let entries = self.entries_mut();
            for at in named {
                entries[at].member = true;
            }
        }
        self
    }
}

fn is_declared(types: &Types, parent: Option<TypeId>, element: &PathElement) -> bool {
    let (Some(parent), PathElement::Field(name)) = (parent, element) else {
        return false;
    };
    types
        .get(parent)
        .map
        .as_ref()
        .is_some_and(|map| map.field(name).is_some())
}

/// Takes an entry away that is no member and leads nowhere, and then parents that lead nowhere.
fn drop_empty(entries: &mut Vec<Entry>, at: usize) {
    let mut at = at;
    while entries[at].size == 1 && !entries[at].member {
        entries.remove(at);
        let mut parent = None;
        for before in (0..at).rev() {
            let end = before + entries[before].size as usize;
            if end > at {
                entries[before].size -= 1;
                parent = parent.or(Some(before));
            }
        }
        match parent {
            Some(parent) => at = parent,
            None => return,
        }
    }
}

/// What is met while all nodes of a set are visited.
pub(crate) enum Visit<'a> {
    /// A node begins; `None` is the root.
    Open(Option<&'a PathElement>),
    /// A member of the innermost node.
    Member(&'a PathElement),
    /// The innermost node ends.
    Close,
}

struct Level {
    at: usize,
    start: usize,
    end: usize,
    below: bool,
}

/// Where `element` is among the siblings that start at the beginning of `level`.
pub(crate) fn find(level: &[Entry], element: &PathElement) -> Option<usize> {
    let mut at = 0;
    while at < level.len() {
        match level[at].element.cmp(element) {
            std::cmp::Ordering::Equal => return Some(at),
            std::cmp::Ordering::Greater => return None,
            std::cmp::Ordering::Less => at += level[at].size as usize,
        }
    }
    None
}

fn close(entries: &mut [Entry], open: &mut Vec<usize>, depth: usize) {
    while open.len() > depth {
        let at = open.pop().expect("longer than depth");
        entries[at].size = size_of(entries.len() - at);
    }
}

fn size_of(entries: usize) -> u32 {
    u32::try_from(entries).expect("an object has fewer than 2^32 fields")
}

impl fmt::Debug for FieldSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut paths = out.debug_set();
        self.for_each(|path| {
            paths.entry(&format_args!("{}", Path(path.to_vec())));
        });
        paths.finish()
    }
}

/// Where sets are built is kept for later ones, if it has room for no more entries than this.
const SPARE_ENTRIES_MAX: usize = 1_024;
/// A comparison builds three sets at a time.
const SPARES_MAX: usize = 3;

thread_local! {
    /// Where sets were built before. A set takes only what it needs with it: how much that is shows
    /// when it is done, and growing step by step asks for more than twice as much.
    static SPARES: RefCell<Vec<Vec<Entry>>> = const { RefCell::new(Vec::new()) };
}

/// Builds a set while a walker visits an object in path order.
///
/// Elements are copied only for paths that are in the set: the walker keeps a stack of borrowed
/// steps and the builder remembers how many of them it has already written down.
#[derive(Default)]
pub(crate) struct SetBuilder {
    entries: Vec<Entry>,
    open: Vec<usize>,
}

impl SetBuilder {
    /// Puts the walker's current path into the set.
    pub(crate) fn insert(&mut self, path: &[Step<'_>]) {
        if self.entries.capacity() == 0 {
            let spare = SPARES.with_borrow_mut(Vec::pop);
            self.entries = spare.unwrap_or_default();
        }
        for step in &path[self.open.len().min(path.len())..] {
            self.open.push(self.entries.len());
            self.entries.push(Entry {
                element: step.to_element(),
                size: 0,
                member: false,
            });
        }
        if let Some(last) = path.len().checked_sub(1) {
            self.entries[self.open[last]].member = true;
        }
    }

    /// Tells that the walker's path is now `depth` steps long.
    pub(crate) fn leave(&mut self, depth: usize) {
        if self.open.len() > depth {
            close(&mut self.entries, &mut self.open, depth);
        }
    }

    pub(crate) fn finish(mut self) -> FieldSet {
        self.leave(0);
        let mut built = self.entries;
        if built.is_empty() {
            return FieldSet::new();
        }
        let mut entries = Vec::with_capacity(built.len());
        entries.append(&mut built);
        if built.capacity() <= SPARE_ENTRIES_MAX {
            SPARES.with_borrow_mut(|spares| {
                if spares.len() < SPARES_MAX {
                    spares.push(built);
                }
            });
        }
        FieldSet::from_entries(entries)
    }
}

/// Builds a set while its wire form is read in order.
#[derive(Default)]
pub(crate) struct SetReader {
    entries: Vec<Entry>,
    open: Vec<usize>,
    /// Where the last sibling of each open level is.
    last: Vec<Option<usize>>,
}

impl SetReader {
    /// Begins a child of the innermost open element; `None` if it is not the greatest so far.
    pub(crate) fn open(&mut self, element: PathElement) -> Option<()> {
        let level = self.open.len();
        self.last.truncate(level + 1);
        match self.last.get(level) {
            Some(Some(last)) if self.entries[*last].element >= element => return None,
            Some(_) => self.last[level] = Some(self.entries.len()),
            None => self.last.push(Some(self.entries.len())),
        }
        self.open.push(self.entries.len());
        self.entries.push(Entry {
            element,
            size: 0,
            member: false,
        });
        Some(())
    }

    /// Makes a member of the innermost open element.
    pub(crate) fn mark(&mut self) {
        if let Some(at) = self.open.last() {
            self.entries[*at].member = true;
        }
    }

    /// Ends the innermost open element; false if none is open.
    pub(crate) fn close(&mut self) -> bool {
        let Some(at) = self.open.pop() else {
            return false;
        };
        self.last.truncate(self.open.len() + 1);
        let size = self.entries.len() - at;
        self.entries[at].size = size_of(size);
        // An element with nothing beneath it is a member.
        self.entries[at].member |= size == 1;
        true
    }

    pub(crate) fn finish(self) -> FieldSet {
        FieldSet::from_entries(self.entries)
    }
}

#[cfg(test)]
mod tests;
