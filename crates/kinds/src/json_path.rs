//! Paths into objects, in the dialect in which definitions of custom resources name the fields
//! that tables show.
//!
//! Contract: `client-go/util/jsonpath`, with missing keys allowed. Wildcards and recursive descent
//! visit the keys of a map in order, where upstream has no order.

mod parse;

use object::{Map, Text, Value};

/// A path that needs more values than this at one step finds nothing. Recursive descents multiply,
/// so a short path could otherwise keep a server busy for ever.
const VALUES_MAX: usize = 100_000;

/// A path that was read once, to be followed through many objects.
#[derive(Clone, Debug)]
pub struct JsonPath {
    text: Text,
    steps: Vec<Step>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unrecognized column definition {text:?}")]
pub struct InvalidPath {
    /// The text.
    pub text: Text,
}

/// A part of a path: what becomes of the values found so far.
#[derive(Clone, Debug)]
enum Step {
    Field(Text),
    Slice(Slice),
    Filter(Filter),
    Wildcard,
    Descent,
    /// What several paths find, one after the other.
    Union(Vec<Vec<Step>>),
    /// A value in place of each one found.
    Literal(Value),
    /// One value in place of all found.
    Quoted(Value),
    /// A word that means nothing here, which is found out only when the path is followed.
    Word,
}

/// Items of a list: `[first:end:step]`, where `[index]` stands for `[index:index+1]`.
#[derive(Clone, Copy, Debug)]
struct Slice {
    first: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
    /// Whether it was written as an index, so that an end of 0 means the end of the list.
    index: bool,
}

/// Items of a list that hold: `[?(@.type=="Ready")]`.
#[derive(Clone, Debug)]
struct Filter {
    left: Vec<Step>,
    /// Without it, the left side needs only to be there.
    comparison: Option<(Text, Vec<Step>)>,
}

/// A value on the way: the object itself, or something inside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Found<'a> {
    Root(&'a Map),
    Inside(&'a Value),
}

/// The object is not of the shape that the path needs.
#[derive(Debug)]
struct Mismatch;

type Values<'a> = Result<Vec<Found<'a>>, Mismatch>;

impl JsonPath {
    /// Reads a path such as `.status.conditions[?(@.type=="Ready")].status`.
    ///
    /// # Errors
    /// The text is no path.
    pub fn parse(text: &str) -> Result<JsonPath, InvalidPath> {
        match parse::steps(text) {
            Some(steps) => Ok(JsonPath {
                text: text.into(),
                steps,
            }),
            None => Err(InvalidPath { text: text.into() }),
        }
    }

    /// The path as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the path may lead to, into or through these fields of an object. Only one that
    /// names other fields on its way certainly does not.
    pub(crate) fn may_meet(&self, fields: &[&str]) -> bool {
        let names = self.steps.iter().map_while(|step| match step {
            Step::Field(name) => Some(name),
            _ => None,
        });
        names.zip(fields).all(|(name, field)| name == *field)
    }

    /// The first value that the path leads to.
    pub(crate) fn first<'a>(&'a self, object: &'a Map) -> Option<Found<'a>> {
        let found = follow(&self.steps, vec![Found::Root(object)]).ok()?;
        found.into_iter().next()
    }
}

/// Equal texts are equal paths.
impl PartialEq for JsonPath {
    fn eq(&self, other: &JsonPath) -> bool {
        self.text == other.text
    }
}

impl Eq for JsonPath {}

impl<'a> Found<'a> {
    fn is_null(self) -> bool {
        matches!(self, Found::Inside(Value::Null))
    }

    fn as_map(self) -> Option<&'a Map> {
        match self {
            Found::Root(map) => Some(map),
            Found::Inside(value) => value.as_object(),
        }
    }

    fn as_array(self) -> Option<&'a [Value]> {
        match self {
            Found::Root(_) => None,
            Found::Inside(value) => value.as_array(),
        }
    }

    /// What is directly inside.
    fn children(self) -> Vec<Found<'a>> {
        match (self.as_map(), self.as_array()) {
            (Some(map), _) => map.iter().map(|(_, value)| Found::Inside(value)).collect(),
            (None, Some(items)) => items.iter().map(Found::Inside).collect(),
            (None, None) => Vec::new(),
        }
    }
}

fn follow<'a>(steps: &'a [Step], from: Vec<Found<'a>>) -> Values<'a> {
    steps.iter().try_fold(from, |values, step| {
        let found = take(step, values)?;
        if found.len() > VALUES_MAX {
            return Err(Mismatch);
        }
        Ok(found)
    })
}

fn take<'a>(step: &'a Step, values: Vec<Found<'a>>) -> Values<'a> {
    let present = values.iter().copied().filter(|value| !value.is_null());
    match step {
        Step::Field(name) => Ok(present
            .filter_map(|value| value.as_map()?.get(name))
            .map(Found::Inside)
            .collect()),
        Step::Wildcard => Ok(present.flat_map(Found::children).collect()),
        Step::Descent => descend(present.collect()),
        Step::Slice(slice) => {
            let mut found = Vec::new();
            for value in present {
                let items = value.as_array().ok_or(Mismatch)?;
                match slice.of(items)? {
                    Some(items) => found.extend(items),
                    None => break,
                }
            }
            Ok(found)
        }
        Step::Filter(filter) => {
            let mut found = Vec::new();
            for value in values {
                for item in value.as_array().ok_or(Mismatch)? {
                    if filter.holds(Found::Inside(item))? {
                        found.push(Found::Inside(item));
                    }
                }
            }
            Ok(found)
        }
        Step::Union(paths) => {
            let mut found = Vec::new();
            for path in paths {
                found.extend(follow(path, values.clone())?);
                if found.len() > VALUES_MAX {
                    return Err(Mismatch);
                }
            }
            Ok(found)
        }
        Step::Literal(literal) => Ok(vec![Found::Inside(literal); values.len()]),
        Step::Quoted(text) => Ok(vec![Found::Inside(text)]),
        Step::Word => Err(Mismatch),
    }
}

/// Every value that has something inside, each before what is inside it.
fn descend(values: Vec<Found<'_>>) -> Values<'_> {
    let mut found = Vec::new();
    let mut open = values;
    open.reverse();
    while let Some(value) = open.pop() {
        let children = value.children();
        let text = matches!(value, Found::Inside(Value::String(text)) if !text.is_empty());
        if !children.is_empty() || text {
            found.push(value);
        }
        open.extend(children.into_iter().rev());
        if found.len() > VALUES_MAX {
            return Err(Mismatch);
        }
    }
    Ok(found)
}

impl Slice {
    /// The items; nothing at all if none are asked for, which ends the step.
    fn of<'a>(
        &self,
        items: &'a [Value],
    ) -> Result<Option<impl Iterator<Item = Found<'a>> + use<'a>>, Mismatch> {
        let length = i64::try_from(items.len()).map_err(|_| Mismatch)?;
        let from_end = |at: i64| {
            if at < 0 {
                at.saturating_add(length)
            } else {
                at
            }
        };
        let first = from_end(self.first.unwrap_or(0));
        let end = match self.end.unwrap_or(length) {
            0 if self.index => length,
            end => from_end(end),
        };
        if first == end {
            return Ok(None);
        }
        let step = self.step.unwrap_or(1);
        if first < 0 || first >= length || end < 0 || end > length || first > end || step <= 0 {
            return Err(Mismatch);
        }
        let (Ok(first), Ok(end), Ok(step)) = (first.try_into(), end.try_into(), step.try_into())
        else {
            return Err(Mismatch);
        };
        let range: std::ops::Range<usize> = first..end;
        Ok(Some(items[range].iter().step_by(step).map(Found::Inside)))
    }
}

impl Filter {
    fn holds(&self, item: Found<'_>) -> Result<bool, Mismatch> {
        let left = follow(&self.left, vec![item]);
        let Some((operator, right)) = &self.comparison else {
            // Upstream takes a value that it cannot look into for one that is there.
            return Ok(left.map_or(true, |left| !left.is_empty()));
        };
        let left = left?;
        if left.is_empty() {
            return Ok(false);
        }
        let right = match left.len() {
            1 => follow(right, vec![item])?,
            _ => return Err(Mismatch),
        };
        match (left.as_slice(), right.as_slice()) {
            (_, []) => Ok(false),
            ([Found::Inside(left)], [Found::Inside(right)]) => compare(left, operator, right),
            _ => Err(Mismatch),
        }
    }
}

/// Compares scalars of one type; an integer and a float are two.
fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, Mismatch> {
    let order = match (left, right) {
        (Value::Bool(left), Value::Bool(right)) if matches!(operator, "==" | "!=") => {
            Some(left.cmp(right))
        }
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    };
    let order = order.ok_or(Mismatch)?;
    match operator {
        "==" => Ok(order.is_eq()),
        "!=" => Ok(order.is_ne()),
        "<" => Ok(order.is_lt()),
        "<=" => Ok(order.is_le()),
        ">" => Ok(order.is_gt()),
        ">=" => Ok(order.is_ge()),
        _ => Err(Mismatch),
    }
}

#[cfg(test)]
mod tests;
