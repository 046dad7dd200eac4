//! One step of a path into an object, and whole paths.
//!
//! Contract: structured-merge-diff `fieldpath`. Steps are ordered: fields, then list items by key,
//! then list items by value, then indexes; sets, their wire form and conflict lists all follow
//! that order. [`PathElement`] owns what it names; the walkers use the borrowed [`Step`].

use std::{cmp::Ordering, fmt, sync::Arc};

use object::{Text, Value, field::quote, text_order};
use smallvec::SmallVec;

use crate::order;

/// One step of a path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a struct or an entry of a map.
    Field(Text),
    /// The list item whose keys have these values; pairs are sorted by name.
    Key(Arc<[(Text, Value)]>),
    /// The item of a set.
    Value(Value),
    /// The item at this position; never produced for real objects.
    Index(i64),
}

impl PathElement {
    /// The list item with these key values, given in any order.
    pub fn key<N: Into<Text>, V: Into<Value>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> PathElement {
        let mut pairs: Vec<(Text, Value)> = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        pairs.sort_by(|left, right| left.0.as_str().cmp(right.0.as_str()));
        PathElement::Key(pairs.into())
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &PathElement) -> Ordering {
        match (self, other) {
            (PathElement::Field(left), PathElement::Field(right)) => text_order(left, right),
            (PathElement::Key(left), PathElement::Key(right)) => compare_pairs(
                left.iter().map(|(name, value)| (name.as_str(), value)),
                right.iter().map(|(name, value)| (name.as_str(), value)),
            ),
            (PathElement::Value(left), PathElement::Value(right)) => order::compare(left, right),
            (PathElement::Index(left), PathElement::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &PathElement) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &PathElement) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(out, ".{name}"),
            PathElement::Key(pairs) => write_pairs(
                out,
                pairs.iter().map(|(name, value)| (name.as_str(), value)),
            ),
            PathElement::Value(value) => write!(out, "[={}]", Shown(value)),
            PathElement::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// A path from the root of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path of fields only.
    pub fn fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Path {
        Path(
            names
                .into_iter()
                .map(|name| PathElement::Field(name.into()))
                .collect(),
        )
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(out))
    }
}

/// What a walker keeps for each level that it is in; most objects have no more levels than this.
pub(crate) type Levels<T> = SmallVec<[T; 8]>;

/// One step of a path, borrowed from the object and the schema being walked.
#[derive(Clone, Debug)]
pub(crate) enum Step<'a> {
    /// A field or map entry.
    Field(&'a Text),
    /// A list item by its keys, sorted by name.
    Key(SmallVec<[(&'a Text, &'a Value); 2]>),
    /// An item of a set.
    Value(&'a Value),
    /// An item of an atomic list; only validation goes there.
    Index(usize),
}

impl Step<'_> {
    /// The same step, owning what it names.
    pub(crate) fn to_element(&self) -> PathElement {
        match self {
            Step::Field(name) => PathElement::Field((*name).clone()),
            Step::Key(pairs) => PathElement::Key(
                pairs
                    .iter()
                    .map(|(name, value)| ((*name).clone(), (*value).clone()))
                    .collect(),
            ),
            Step::Value(value) => PathElement::Value((*value).clone()),
            Step::Index(index) => {
                PathElement::Index(i64::try_from(*index).expect("a list has fewer than 2^63 items"))
            }
        }
    }

    /// The order of [`PathElement`].
    pub(crate) fn compare(&self, other: &Step<'_>) -> Ordering {
        match (self, other) {
            (Step::Field(left), Step::Field(right)) => text_order(left, right),
            (Step::Key(left), Step::Key(right)) => compare_pairs(
                left.iter().map(|(name, value)| (name.as_str(), *value)),
                right.iter().map(|(name, value)| (name.as_str(), *value)),
            ),
            (Step::Value(left), Step::Value(right)) => order::compare(left, right),
            (Step::Index(left), Step::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// How this step and an owned one are ordered.
    pub(crate) fn compare_element(&self, element: &PathElement) -> Ordering {
        match (self, element) {
            (Step::Field(left), PathElement::Field(right)) => text_order(left, right),
            (Step::Key(left), PathElement::Key(right)) => compare_pairs(
                left.iter().map(|(name, value)| (name.as_str(), *value)),
                right.iter().map(|(name, value)| (name.as_str(), value)),
            ),
            (Step::Value(left), PathElement::Value(right)) => order::compare(left, right),
            _ => self.rank().cmp(&element.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Step::Field(_) => 0,
            Step::Key(_) => 1,
            Step::Value(_) => 2,
            Step::Index(_) => 3,
        }
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Field(name) => write!(out, ".{name}"),
            Step::Key(pairs) => write_pairs(
                out,
                pairs.iter().map(|(name, value)| (name.as_str(), *value)),
            ),
            Step::Value(value) => write!(out, "[={}]", Shown(value)),
            Step::Index(index) => write!(out, "[{index}]"),
        }
    }
}

fn compare_pairs<'a>(
    mut left: impl ExactSizeIterator<Item = (&'a str, &'a Value)>,
    mut right: impl ExactSizeIterator<Item = (&'a str, &'a Value)>,
) -> Ordering {
    loop {
        match (left.next(), right.next()) {
            (Some(left), Some(right)) => {
                let order = left
                    .0
                    .cmp(right.0)
                    .then_with(|| order::compare(left.1, right.1));
                if order.is_ne() {
                    return order;
                }
            }
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
        }
    }
}

fn write_pairs<'a>(
    out: &mut fmt::Formatter<'_>,
    pairs: impl Iterator<Item = (&'a str, &'a Value)>,
) -> fmt::Result {
    out.write_str("[")?;
    for (at, (name, value)) in pairs.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(out, "{comma}{name}={}", Shown(value))?;
    }
    out.write_str("]")
}

/// A value as conflict messages print it.
struct Shown<'a>(&'a Value);

/// Deeper values are cut short in messages; real keys are scalars.
const SHOWN_LEVELS_MAX: u32 = 32;

impl Shown<'_> {
    fn write(value: &Value, levels: u32, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match value {
            Value::Null => out.write_str("null"),
            Value::Bool(flag) => write!(out, "{flag}"),
            Value::Int(number) => write!(out, "{number}"),
            Value::Float(number) => out.write_str(&crate::go::float(*number)),
            Value::String(text) => out.write_str(&quote(text)),
            Value::Array(_) | Value::Object(_) if levels == 0 => out.write_str("..."),
            Value::Array(items) => {
                out.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    out.write_str(if at == 0 { "" } else { "," })?;
                    Shown::write(item, levels - 1, out)?;
                }
                out.write_str("]")
            }
            Value::Object(map) => map.iter().try_for_each(|(key, value)| {
                write!(out, "{key}=")?;
                Shown::write(value, levels - 1, out)
            }),
        }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown::write(self.0, SHOWN_LEVELS_MAX, out)
    }
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    #[test]
    fn paths_print_as_conflict_messages_show_them() {
        let cases = [
            (PathElement::Field("a b".into()), ".a b"),
            (
                PathElement::key([("b", value!("x")), ("a", value!(1))]),
                r#"[a=1,b="x"]"#,
            ),
            (
                PathElement::Value(value!("é\u{2028}\"")),
                r#"[="é\u2028\""]"#,
            ),
            (PathElement::Value(value!(5)), "[=5]"),
            (PathElement::Value(value!(true)), "[=true]"),
            (PathElement::Value(value!(null)), "[=null]"),
            (PathElement::Value(value!(1.5)), "[=1.5]"),
            (PathElement::Value(value!(1e21)), "[=1e+21]"),
            (PathElement::Index(3), "[3]"),
        ];
        for (element, shown) in cases {
            assert_eq!(element.to_string(), shown);
        }
    }

    #[test]
    fn elements_are_ordered_by_kind_and_then_by_content() {
        let sorted = [
            PathElement::Field("".into()),
            PathElement::Field("a".into()),
            PathElement::Field("b".into()),
            PathElement::key([("name", value!("a"))]),
            PathElement::key([("name", value!("a")), ("port", value!(1))]),
            PathElement::key([("name", value!("b"))]),
            PathElement::key([("port", value!(80))]),
            PathElement::key([("port", value!(443))]),
            PathElement::Value(value!(9)),
            PathElement::Value(value!(10)),
            PathElement::Value(value!("a")),
            PathElement::Value(value!(false)),
            PathElement::Value(value!(null)),
            PathElement::Index(1),
            PathElement::Index(2),
        ];
        for (at, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(left.cmp(right), at.cmp(&other), "{left} {right}");
            }
        }
    }

    #[test]
    fn numbers_in_keys_are_equal_whatever_their_kind() {
        assert_eq!(
            PathElement::key([("p", value!(2))]),
            PathElement::key([("p", value!(2.0))])
        );
    }
}
