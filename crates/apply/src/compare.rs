//! What differs between two values of one type.
//!
//! Contract: structured-merge-diff `typed/compare.go`. Unlike [`crate::field_set`], containers that
//! appear or disappear are recorded together with their content: this is why update managers own
//! structs and lists and appliers do not. The order of merged lists makes no difference.

use std::cmp::Ordering;

use object::{Text, Value, text_order};
use schema::{ListTopology, ListType, TypeId, Types};

use crate::{
    order,
    path::{Levels, Step},
    set::{FieldFilter, FieldSet, SetBuilder},
    typed::{Item, Keys, Shape, Typing, shape, sorted_items},
};

/// The difference between two values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Paths only the right value has.
    pub added: FieldSet,
    /// Leaves that both have, with different values.
    pub modified: FieldSet,
    /// Paths only the left value has.
    pub removed: FieldSet,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The part of the difference that passes the filter.
    pub fn filter(&self, filter: &FieldFilter) -> Comparison {
        Comparison {
            added: filter.filter(&self.added),
            modified: filter.filter(&self.modified),
            removed: filter.filter(&self.removed),
        }
    }
}

/// A value does not fit its type, so its fields cannot be tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object does not fit its schema")]
pub struct Mismatch;

/// Compares two values of one type.
pub fn compare(left: &Value, right: &Value, typing: Typing<'_>) -> Result<Comparison, Mismatch> {
    let mut walk = Walk::new(typing.types);
    let mut open: Levels<Open<'_>> = Levels::new();
    let root = Pair {
        left: Some(left),
        right: Some(right),
    };
    walk.enter(root, typing.root, &mut open)?;
    while let Some(level) = open.last_mut() {
        match level.next()? {
            Some(Visit::Descend { step, pair, ty }) => {
                walk.path.push(step);
                walk.enter(pair, ty, &mut open)?;
            }
            Some(Visit::Repeats { step, left, right }) => {
                walk.path.push(step);
                walk.repeats(&left, &right, level.element(), &mut open)?;
            }
            None => {
                let closed = open.pop().expect("the loop's condition");
                if closed.last {
                    walk.record(closed.container);
                    walk.leave();
                }
            }
        }
    }
    Ok(Comparison {
        added: walk.added.finish(),
        modified: walk.modified.finish(),
        removed: walk.removed.finish(),
    })
}

/// The values on both sides of one path; at least one is there.
#[derive(Clone, Copy)]
struct Pair<'a> {
    left: Option<&'a Value>,
    right: Option<&'a Value>,
}

/// What to record about the current path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finding {
    Nothing,
    Added,
    Removed,
    Modified,
}

struct Walk<'a> {
    types: &'a Types,
    path: Levels<Step<'a>>,
    added: SetBuilder,
    modified: SetBuilder,
    removed: SetBuilder,
}

impl<'a> Walk<'a> {
    fn new(types: &'a Types) -> Walk<'a> {
        Walk {
            types,
            path: Levels::new(),
            added: SetBuilder::default(),
            modified: SetBuilder::default(),
            removed: SetBuilder::default(),
        }
    }

    fn record(&mut self, finding: Finding) {
        match finding {
            Finding::Nothing => {}
            Finding::Added => self.added.insert(&self.path),
            Finding::Removed => self.removed.insert(&self.path),
            Finding::Modified => self.modified.insert(&self.path),
        }
    }

    fn leave(&mut self) {
        self.path.pop();
        let depth = self.path.len();
        self.added.leave(depth);
        self.modified.leave(depth);
        self.removed.leave(depth);
    }

    /// Records a leaf and leaves it, or opens what lies beneath.
    fn enter(
        &mut self,
        pair: Pair<'a>,
        ty: TypeId,
        open: &mut Levels<Open<'a>>,
    ) -> Result<(), Mismatch> {
        let before = open.len();
        let ty = self.types.get(ty);
        let left = pair.left.and_then(|left| shape(ty, left));
        let right = pair.right.and_then(|right| shape(ty, right));
        match (left, right) {
            (Some(left), Some(right)) if !left.is_like(&right) => {
                // The last one pushed is visited first.
                self.open_as(right, pair, open)?;
                self.open_as(left, pair, open)?;
            }
            (_, Some(shape)) | (Some(shape), None) => self.open_as(shape, pair, open)?,
            (None, None) => return Err(Mismatch),
        }
        if open.len() == before {
            self.leave();
        } else {
            open[before].last = true;
            open[before].container = match (pair.left, pair.right) {
                (None, _) => Finding::Added,
                (_, None) => Finding::Removed,
                _ => Finding::Nothing,
            };
        }
        Ok(())
    }

    fn open_as(
        &mut self,
        shape: Shape<'a>,
        pair: Pair<'a>,
        open: &mut Levels<Open<'a>>,
    ) -> Result<(), Mismatch> {
        match shape {
            Shape::Scalar(_) => self.leaf(pair),
            Shape::Map(map) => {
                let left = entries(pair.left);
                let right = entries(pair.right);
                if map.atomic || (left.is_empty() && right.is_empty()) {
                    self.leaf(pair);
                } else {
                    let keys = Keys::new(map);
                    open.push(Open::new(Rest::Map { left, right, keys }));
                }
            }
            Shape::List(list) => {
                let left = items(pair.left);
                let right = items(pair.right);
                if list.topology == ListTopology::Atomic || (left.is_empty() && right.is_empty()) {
                    self.leaf(pair);
                } else if !same_items(left, right) {
                    open.push(Open::list(self.types, list, left, right)?);
                }
            }
        }
        Ok(())
    }

    fn leaf(&mut self, pair: Pair<'a>) {
        let finding = match (pair.left, pair.right) {
            (None, _) => Finding::Added,
            (_, None) => Finding::Removed,
            (Some(left), Some(right)) if order::same(left, right) => Finding::Nothing,
            _ => Finding::Modified,
        };
        self.record(finding);
    }

    /// Items that share one identity on at least one side; the path is that of the item.
    fn repeats(
        &mut self,
        left: &[Item<'a>],
        right: &[Item<'a>],
        element: TypeId,
        open: &mut Levels<Open<'a>>,
    ) -> Result<(), Mismatch> {
        let single = match (left.len() > 1, right.len() > 1) {
            (true, true) => {
                let same = left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| order::same(left.1, right.1));
                self.record(if same {
                    Finding::Nothing
                } else {
                    Finding::Modified
                });
                None
            }
            (true, false) => {
                self.record(Finding::Removed);
                right.first().map(|(_, right)| Pair {
                    left: None,
                    right: Some(right),
                })
            }
            (false, _) => {
                self.record(Finding::Added);
                left.first().map(|(_, left)| Pair {
                    left: Some(left),
                    right: None,
                })
            }
        };
        match single {
            Some(pair) => self.enter(pair, element, open),
            None => {
                self.leave();
                Ok(())
            }
        }
    }
}

/// Two lists that are equal item by item differ nowhere; telling so is much cheaper than finding
/// out what identifies each item.
fn same_items(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(left, right)| order::same(left, right))
}

fn entries(value: Option<&Value>) -> &[(Text, Value)] {
    match value {
        Some(Value::Object(map)) => map.entries(),
        _ => &[],
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

/// A map or list that is being visited.
struct Open<'a> {
    rest: Rest<'a>,
    /// Whether the path ends with this visit; a type with alternatives visits one path twice.
    last: bool,
    /// What to record about the container once it has been visited.
    container: Finding,
}

enum Rest<'a> {
    Map {
        left: &'a [(Text, Value)],
        right: &'a [(Text, Value)],
        keys: Keys<'a>,
    },
    List {
        left: Run<'a>,
        right: Run<'a>,
        element: TypeId,
    },
}

type Run<'a> = std::iter::Peekable<std::vec::IntoIter<Item<'a>>>;

enum Visit<'a> {
    Descend {
        step: Step<'a>,
        pair: Pair<'a>,
        ty: TypeId,
    },
    Repeats {
        step: Step<'a>,
        left: Vec<Item<'a>>,
        right: Vec<Item<'a>>,
    },
}

impl<'a> Open<'a> {
    fn new(rest: Rest<'a>) -> Open<'a> {
        Open {
            rest,
            last: false,
            container: Finding::Nothing,
        }
    }

    fn list(
        types: &'a Types,
        list: &'a ListType,
        left: &'a [Value],
        right: &'a [Value],
    ) -> Result<Open<'a>, Mismatch> {
        let left = sorted_items(types, list, left).map_err(|_| Mismatch)?;
        let right = sorted_items(types, list, right).map_err(|_| Mismatch)?;
        Ok(Open::new(Rest::List {
            left: left.into_iter().peekable(),
            right: right.into_iter().peekable(),
            element: list.element,
        }))
    }

    fn element(&self) -> TypeId {
        match &self.rest {
            Rest::List { element, .. } => *element,
            Rest::Map { .. } => unreachable!("only lists have items that repeat"),
        }
    }

    fn next(&mut self) -> Result<Option<Visit<'a>>, Mismatch> {
        match &mut self.rest {
            Rest::Map { left, right, keys } => {
                let Some((key, pair)) = next_entry(left, right) else {
                    return Ok(None);
                };
                let ty = keys.ty(key).ok_or(Mismatch)?;
                Ok(Some(Visit::Descend {
                    step: Step::Field(key),
                    pair,
                    ty,
                }))
            }
            Rest::List {
                left,
                right,
                element,
            } => Ok(next_item(left, right, *element)),
        }
    }
}

type Entries<'a> = &'a [(Text, Value)];

/// The next key in order, with its value on either side.
fn next_entry<'a>(left: &mut Entries<'a>, right: &mut Entries<'a>) -> Option<(&'a Text, Pair<'a>)> {
    let order = match (left.first(), right.first()) {
        (None, None) => return None,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(left), Some(right)) => text_order(&left.0, &right.0),
    };
    let mine = if order.is_le() {
        left.split_off_first()
    } else {
        None
    };
    let theirs = if order.is_ge() {
        right.split_off_first()
    } else {
        None
    };
    let (key, _) = mine.or(theirs)?;
    let pair = Pair {
        left: mine.map(|(_, value)| value),
        right: theirs.map(|(_, value)| value),
    };
    Some((key, pair))
}

fn next_item<'a>(left: &mut Run<'a>, right: &mut Run<'a>, ty: TypeId) -> Option<Visit<'a>> {
    let order = match (left.peek(), right.peek()) {
        (None, None) => return None,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(left), Some(right)) => left.0.compare(&right.0),
    };
    let mine = if order.is_le() { left.next() } else { None };
    let theirs = if order.is_ge() { right.next() } else { None };
    let step = match (&mine, &theirs) {
        (Some((step, _)), _) | (None, Some((step, _))) => step.clone(),
        (None, None) => return None,
    };
    let repeats = |run: &mut Run<'a>| {
        run.peek()
            .is_some_and(|(next, _)| next.compare(&step).is_eq())
    };
    if !repeats(left) && !repeats(right) {
        let pair = Pair {
            left: mine.map(|(_, item)| item),
            right: theirs.map(|(_, item)| item),
        };
        return Some(Visit::Descend { step, pair, ty });
    }
    let gather = |first: Option<Item<'a>>, run: &mut Run<'a>| {
        let mut items: Vec<Item<'a>> = first.into_iter().collect();
        while let Some(item) = run.next_if(|(next, _)| next.compare(&step).is_eq()) {
            items.push(item);
        }
        items
    };
    let (left, right) = (gather(mine, left), gather(theirs, right));
    Some(Visit::Repeats { step, left, right })
}
