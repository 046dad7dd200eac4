//! What the printers of all groups share: reading fields, and the small texts of cells.
//!
//! A field that is absent, `null` or of another type reads as the zero of its type, because
//! upstream prints from decoded structs, where it is that zero.

use std::collections::BTreeSet;

use object::labels::LabelSelector;
use object::quantity::Quantity;
use object::time::{Time, human_duration};
use object::{Map, Value};

/// What upstream prints where there is nothing to print.
pub(super) const NONE: &str = "<none>";
/// What upstream prints for an optional field that was left out.
pub(super) const UNSET: &str = "<unset>";
/// What upstream prints for what it cannot know.
pub(super) const UNKNOWN: &str = "<unknown>";

/// The object of a row, and the time it is printed at.
pub(super) struct Row<'a> {
    object: &'a Map,
    now_unix_seconds: i64,
}

/// A row of anything that converts into a value.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(::object::Value::from($cell)),*] };
}
pub(super) use cells;

impl<'a> Row<'a> {
    pub(super) fn new(object: &'a Map, now_unix_seconds: i64) -> Row<'a> {
        Row {
            object,
            now_unix_seconds,
        }
    }

    /// Another object at the same time.
    pub(super) fn with<'b>(&self, object: &'b Map) -> Row<'b> {
        Row::new(object, self.now_unix_seconds)
    }

    pub(super) fn object(&self) -> &'a Map {
        self.object
    }

    /// The value at the end of a path, unless it is absent or `null`.
    pub(super) fn at(&self, path: &[&str]) -> Option<&'a Value> {
        let (first, rest) = path.split_first()?;
        self.object
            .get(first)?
            .at(rest)
            .filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, path: &[&str]) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text at the end of a path, or this one if there is none or it is empty.
    pub(super) fn text_or<'b>(&self, path: &[&str], absent: &'b str) -> &'b str
    where
        'a: 'b,
    {
        non_empty_or(self.text(path), absent)
    }

    pub(super) fn int(&self, path: &[&str]) -> i64 {
        self.at(path).and_then(Value::as_int).unwrap_or_default()
    }

    pub(super) fn flag(&self, path: &[&str]) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn items(&self, path: &[&str]) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).unwrap_or_default()
    }

    pub(super) fn map(&self, path: &[&str]) -> Option<&'a Map> {
        self.at(path).and_then(Value::as_object)
    }

    /// How many items a list or a map has.
    pub(super) fn count(&self, path: &[&str]) -> i64 {
        let count = match self.at(path) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(map)) => map.len(),
            _ => 0,
        };
        count_of(count)
    }

    /// The texts of a list, separated by commas.
    pub(super) fn joined(&self, path: &[&str]) -> String {
        let texts: Vec<&str> = self.items(path).iter().filter_map(Value::as_str).collect();
        texts.join(",")
    }

    pub(super) fn name(&self) -> &'a str {
        self.text(&["metadata", "name"])
    }

    /// Whether an annotation says `true`.
    pub(super) fn annotated(&self, annotation: &str) -> bool {
        self.text(&["metadata", "annotations", annotation]) == "true"
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.at(&["metadata", "deletionTimestamp"]).is_some()
    }

    /// How long ago the object was created.
    pub(super) fn age(&self) -> String {
        self.since(self.at(&["metadata", "creationTimestamp"]))
    }

    /// How long ago a time was, be it one of seconds or of microseconds.
    pub(super) fn since(&self, time: Option<&Value>) -> String {
        unix_seconds(time).map_or_else(|| UNKNOWN.to_owned(), |time| self.elapsed(time))
    }

    /// How long ago this second was.
    pub(super) fn elapsed(&self, unix_seconds: i64) -> String {
        human_duration(self.now_unix_seconds.saturating_sub(unix_seconds))
    }

    /// The first condition of this type in `status.conditions`.
    pub(super) fn condition(&self, wanted: &str) -> Option<&'a Value> {
        self.items(&["status", "conditions"])
            .iter()
            .find(|condition| text(condition, &["type"]) == wanted)
    }

    /// Names and images of the containers at the end of a path.
    pub(super) fn containers(&self, path: &[&str]) -> (String, String) {
        let containers = self.items(path);
        let list = |field: &str| {
            let texts: Vec<&str> = containers.iter().map(|it| text(it, &[field])).collect();
            texts.join(",")
        };
        (list("name"), list("image"))
    }

    /// The labels at the end of a path, as `a=b,c=d`.
    pub(super) fn labels(&self, path: &[&str]) -> String {
        let labels: Vec<String> = self
            .map(path)
            .into_iter()
            .flat_map(Map::iter)
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        non_empty_or(&labels.join(","), NONE).to_owned()
    }

    /// The label selector at the end of a path.
    pub(super) fn selector(&self, path: &[&str]) -> String {
        let selector = self.at(path).unwrap_or(&Value::Null);
        match LabelSelector::from_label_selector_value(selector) {
            Ok(selector) => non_empty_or(&selector.to_string(), NONE).to_owned(),
            Err(_) => "<error>".to_owned(),
        }
    }

    /// The addresses of a load balancer, sorted, each once.
    pub(super) fn load_balancer(&self) -> String {
        let addresses: BTreeSet<&str> = self
            .items(&["status", "loadBalancer", "ingress"])
            .iter()
            .map(|ingress| non_empty_or(text(ingress, &["ip"]), text(ingress, &["hostname"])))
            .filter(|address| !address.is_empty())
            .collect();
        addresses.into_iter().collect::<Vec<_>>().join(",")
    }
}

/// The text at the end of a path from a value.
pub(super) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    value.str_at(path).unwrap_or_default()
}

/// The integer at the end of a path from a value.
pub(super) fn int(value: &Value, path: &[&str]) -> i64 {
    value.at(path).and_then(Value::as_int).unwrap_or_default()
}

/// The list at the end of a path from a value.
pub(super) fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    let list = value.at(path).and_then(Value::as_array);
    list.unwrap_or_default()
}

/// The first text unless it is empty.
pub(super) fn non_empty_or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// A count as cells hold it.
pub(super) fn count_of(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The second of a time, unless there is none or it is Go's zero time.
pub(super) fn unix_seconds(time: Option<&Value>) -> Option<i64> {
    let text = time?.as_str()?;
    let time = Time::parse(text).ok()?;
    (!time.is_zero()).then_some(time.unix_seconds())
}

/// A quantity in its canonical form; none at all is a zero.
pub(super) fn quantity(value: Option<&Value>) -> String {
    match value.map(Quantity::from_value) {
        Some(Ok(quantity)) => quantity.to_string(),
        Some(Err(_)) | None => Quantity::zero().to_string(),
    }
}

/// The first three of a list, and how many more there are.
pub(super) fn first_three(mut list: Vec<String>) -> String {
    const SHOWN_MAX: usize = 3;
    let count = list.len();
    list.truncate(SHOWN_MAX);
    let shown = list.join(",");
    if count > SHOWN_MAX {
        format!("{shown} + {} more...", count - SHOWN_MAX)
    } else {
        shown
    }
}
