//! The checks that most kinds share, and short ways to report a mistake.

use object::addresses::{self, Reading};
use object::field::{FieldError, Path};
use object::{Map, Value, names};

use super::print::{self, LABEL_SELECTOR};
use super::read::{Read, maps, texts};

/// The mistakes found so far.
pub(crate) type Errors = Vec<FieldError>;

/// What a value says that may not change.
pub(crate) const IMMUTABLE: &str = "field is immutable";
/// Texts that upstream keeps behind pointers: one that is gone is `null` rather than empty.
const MAY_BE_ABSENT: [&str; 6] = [
    "completionMode",
    "managedBy",
    "nodeName",
    "reclaimPolicy",
    "volumeBindingMode",
    "volumeMode",
];
const NEGATIVE: &str = "must be greater than or equal to 0";
const NOT_POSITIVE: &str = "must be greater than zero";

/// Short ways to add a mistake to a list.
pub(crate) trait Report {
    /// A value is missing.
    fn required(&mut self, path: &Path<'_>, detail: &str);
    /// A value is not acceptable.
    fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>);
    /// A value of the tree is not acceptable.
    fn invalid_value(&mut self, path: &Path<'_>, value: &Value, detail: impl Into<String>);
    /// A value may not be set here.
    fn forbidden(&mut self, path: &Path<'_>, detail: impl Into<String>);
    /// A text is none of those that are supported.
    fn unsupported(&mut self, path: &Path<'_>, text: &str, supported: &[&str]);
    /// A text stands twice.
    fn duplicate(&mut self, path: &Path<'_>, text: &str);
    /// A text names something that does not exist.
    fn not_found(&mut self, path: &Path<'_>, text: &str);
    /// One mistake for every complaint about a text.
    fn each(&mut self, path: &Path<'_>, text: &str, complaints: Vec<String>);
}

impl Report for Errors {
    fn required(&mut self, path: &Path<'_>, detail: &str) {
        self.push(FieldError::required(path, detail));
    }

    fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(FieldError::invalid(path, &value.into(), detail));
    }

    fn invalid_value(&mut self, path: &Path<'_>, value: &Value, detail: impl Into<String>) {
        self.push(FieldError::invalid(path, value, detail));
    }

    fn forbidden(&mut self, path: &Path<'_>, detail: impl Into<String>) {
        self.push(FieldError::forbidden(path, detail));
    }

    fn unsupported(&mut self, path: &Path<'_>, text: &str, supported: &[&str]) {
        self.push(FieldError::not_supported(path, &text.into(), supported));
    }

    fn duplicate(&mut self, path: &Path<'_>, text: &str) {
        self.push(FieldError::duplicate(path, &text.into()));
    }

    fn not_found(&mut self, path: &Path<'_>, text: &str) {
        self.push(FieldError::not_found(path, &text.into()));
    }

    fn each(&mut self, path: &Path<'_>, text: &str, complaints: Vec<String>) {
        for complaint in complaints {
            self.invalid(path, text, complaint);
        }
    }
}

/// Checks that the texts under these keys are not empty.
pub(crate) fn require(map: &Map, keys: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for key in keys {
        let empty = match map.value(key) {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if empty {
            errors.required(&path.field(key), "");
        }
    }
}

/// Checks the numbers under these keys, where they are given.
pub(crate) fn not_negative(map: &Map, keys: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for key in keys {
        if let Some(number) = map.int(key).filter(|number| *number < 0) {
            errors.invalid(&path.field(key), number, NEGATIVE);
        }
    }
}

/// Checks one number that may not be below zero.
pub(crate) fn at_least_zero(number: i64, path: &Path<'_>, errors: &mut Errors) {
    if number < 0 {
        errors.invalid(path, number, NEGATIVE);
    }
}

/// Checks one number that must be above zero.
pub(crate) fn above_zero(number: i64, path: &Path<'_>, errors: &mut Errors) {
    if number <= 0 {
        errors.invalid(path, number, NOT_POSITIVE);
    }
}

/// Checks that a text is one of those supported; an empty one is missing.
pub(crate) fn choice(text: &str, supported: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if text.is_empty() {
        errors.required(path, "");
    } else {
        choice_or_empty(text, supported, path, errors);
    }
}

/// Checks that the text under a key is given and one of those supported; an empty one is not.
pub(crate) fn choice_of(
    map: &Map,
    key: &str,
    supported: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if map.has(key) {
        choice_or_empty(map.text(key), supported, &path.field(key), errors);
    } else {
        errors.required(&path.field(key), "");
    }
}

/// Checks that a text is one of those supported.
pub(crate) fn choice_or_empty(
    text: &str,
    supported: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if !supported.contains(&text) {
        errors.unsupported(path, text, supported);
    }
}

/// Checks a DNS label that must be given.
pub(crate) fn label(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if text.is_empty() {
        errors.required(path, "");
    } else {
        errors.each(path, text, names::dns1123_label(text));
    }
}

/// Checks a DNS subdomain that must be given.
pub(crate) fn subdomain(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if text.is_empty() {
        errors.required(path, "");
    } else {
        errors.each(path, text, names::dns1123_subdomain(text));
    }
}

/// Checks a DNS subdomain if one is given.
pub(crate) fn optional_subdomain(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if !text.is_empty() {
        errors.each(path, text, names::dns1123_subdomain(text));
    }
}

/// Checks that a value has not changed.
pub(crate) fn unchanged(new: &Map, old: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    let (now, before) = (new.value(key), old.value(key));
    if same_field(new, old, key) {
        return;
    }
    if MAY_BE_ABSENT.contains(&key) {
        errors.invalid_value(&path.field(key), now, IMMUTABLE);
    } else {
        immutable(&path.field(key), now, before, errors);
    }
}

/// Reports a value that may not change; a text or a number that is gone prints as nothing does.
pub(crate) fn immutable(path: &Path<'_>, new: &Value, old: &Value, errors: &mut Errors) {
    match (new, old) {
        (Value::Null, Value::String(_)) => errors.invalid(path, "", IMMUTABLE),
        _ => errors.invalid_value(path, new, IMMUTABLE),
    }
}

/// Whether two values are one for upstream, for which a list or dictionary without entries is as
/// good as an absent one. A struct that is there is not, whatever it holds.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    same_under("", one, other)
}

/// Whether two maps have the same value under a key, in the sense of [`same`].
pub(crate) fn same_field(one: &Map, other: &Map, key: &str) -> bool {
    same_under(key, one.value(key), other.value(key))
}

fn same_under(key: &str, one: &Value, other: &Value) -> bool {
    one == other || (is_nothing(key, one) && is_nothing(key, other)) || same_inside(one, other)
}

/// Whether two maps are one, in the sense of [`same`].
pub(crate) fn same_maps(one: &Map, other: &Map) -> bool {
    let covers = |left: &Map, right: &Map| left.iter().all(|(key, _)| same_field(left, right, key));
    covers(one, other) && covers(other, one)
}

fn same_inside(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => same_maps(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => false,
    }
}

fn is_nothing(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && DICTIONARIES.contains(&key),
        _ => false,
    }
}

/// The fields that are dictionaries, not structs. Of those that are either, depending on where they
/// stand, these are dictionaries wherever a change is judged.
const DICTIONARIES: [&str; 38] = [
    "allocatable",
    "allocatedResourceStatuses",
    "allocatedResources",
    "annotations",
    "attachmentMetadata",
    "attributes",
    "binaryData",
    "capacity",
    "consumedCapacity",
    "counters",
    "data",
    "default",
    "defaultRequest",
    "definitions",
    "dependencies",
    "deprecatedTopology",
    "disruptedPods",
    "extra",
    "hard",
    "labels",
    "limits",
    "matchLabels",
    "max",
    "maxLimitRequestRatio",
    "min",
    "nodeAllocatableResourceMappings",
    "nodeSelector",
    "options",
    "overhead",
    "parameters",
    "patternProperties",
    "podFixed",
    "properties",
    "requests",
    "stringData",
    "used",
    "userAnnotations",
    "volumeAttributes",
];

/// Checks an address in a field that once took sloppy ones; `known` are those already stored.
pub(crate) fn legacy_ip(text: &str, known: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if !known.contains(&text) {
        errors.each(path, text, addresses::legacy_ip(text, Reading::Strict));
    }
}

/// Checks a network in a field that once took sloppy ones; `known` are those already stored.
pub(crate) fn legacy_cidr(text: &str, known: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if !known.contains(&text) {
        errors.each(path, text, addresses::legacy_cidr(text, Reading::Strict));
    }
}

/// Checks a label selector, if there is one.
pub(crate) fn label_selector(selector: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let Some(selector) = selector else {
        return;
    };
    super::meta::labels(
        selector.object("matchLabels"),
        &path.field("matchLabels"),
        errors,
    );
    let expressions = path.field("matchExpressions");
    for (index, requirement) in maps(selector.list("matchExpressions")) {
        label_requirement(requirement, &expressions.index(index), errors);
    }
}

fn label_requirement(requirement: &Map, path: &Path<'_>, errors: &mut Errors) {
    let values = requirement.list("values");
    let operator = requirement.text("operator");
    match operator {
        "In" | "NotIn" if values.is_empty() => errors.required(
            &path.field("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        "In" | "NotIn" => {}
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.forbidden(
            &path.field("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        "Exists" | "DoesNotExist" => {}
        _ => errors.invalid(
            &path.field("operator"),
            operator,
            "not a valid selector operator",
        ),
    }
    let key = requirement.text("key");
    errors.each(&path.field("key"), key, names::qualified_name(key));
    let values_path = path.field("values");
    for (index, value) in texts(values) {
        errors.each(&values_path.index(index), value, names::label_value(value));
    }
}

/// Whether a selector asks for nothing at all.
pub(crate) fn selects_all(selector: &Map) -> bool {
    selector.object_or_empty("matchLabels").is_empty()
        && selector.list("matchExpressions").is_empty()
}

/// Reports a label selector.
pub(crate) fn invalid_selector(
    path: &Path<'_>,
    selector: &Value,
    detail: &str,
    errors: &mut Errors,
) {
    errors.push(print::invalid(path, selector, &LABEL_SELECTOR, detail));
}

/// Whether the labels satisfy the selector; `None` if it cannot be read.
pub(crate) fn selector_matches(selector: Option<&Map>, labels: &Map) -> Option<bool> {
    let Some(selector) = selector else {
        return Some(false);
    };
    let matches = satisfied(selector, labels)?;
    (matches || is_readable(selector)).then_some(matches)
}

/// Whether each requirement of a selector is one that labels can be held against.
fn is_readable(selector: &Map) -> bool {
    let mut errors = Errors::new();
    label_selector(Some(selector), &Path::root(), &mut errors);
    errors.is_empty()
}

fn satisfied(selector: &Map, labels: &Map) -> Option<bool> {
    for (key, value) in selector.object_or_empty("matchLabels").iter() {
        if labels.get(key) != Some(value) {
            return Some(false);
        }
    }
    for (_, requirement) in maps(selector.list("matchExpressions")) {
        let actual = labels.get(requirement.text("key"));
        let values = requirement.list("values");
        let listed = actual.is_some_and(|actual| values.contains(actual));
        let matches = match requirement.text("operator") {
            "In" if !values.is_empty() => listed,
            "NotIn" if !values.is_empty() => !listed,
            "Exists" if values.is_empty() => actual.is_some(),
            "DoesNotExist" if values.is_empty() => actual.is_none(),
            _ => return None,
        };
        if !matches {
            return Some(false);
        }
    }
    Some(true)
}

/// Checks an integer that is not negative, or a percentage.
pub(crate) fn int_or_percent(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::Int(number) => at_least_zero(*number, path, errors),
        Value::String(text) => errors.each(path, text, names::percent(text)),
        _ => {}
    }
}

/// Checks that a percentage is not above a hundred.
pub(crate) fn at_most_whole(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    if percentage(value).is_some_and(|percent| percent > 100) {
        errors.invalid_value(path, value, "must not be greater than 100%");
    }
}

/// The number of an integer or of a percentage.
pub(crate) fn int_or_percent_amount(value: &Value) -> i64 {
    let number = |value: &Value| value.as_int().or_else(|| value.as_str()?.parse().ok());
    percentage(value)
        .or_else(|| number(value))
        .unwrap_or_default()
}

fn percentage(value: &Value) -> Option<i64> {
    let text = value.as_str()?;
    if !names::percent(text).is_empty() {
        return None;
    }
    text.strip_suffix('%')?.parse().ok()
}

/// Checks a port that is a number or a name.
pub(crate) fn port_number_or_name(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::String(text) => errors.each(path, text, names::port_name(text)),
        other => {
            let number = other.as_int().unwrap_or_default();
            port_number(number, path, errors);
        }
    }
}

/// Checks the number of a port.
pub(crate) fn port_number(number: i64, path: &Path<'_>, errors: &mut Errors) {
    for complaint in names::port_number(number) {
        errors.invalid(path, number, complaint);
    }
}

/// Checks a path below some folder.
pub(crate) fn descending_path(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if text.starts_with('/') {
        errors.invalid(path, text, "must be a relative path");
    }
    no_backsteps(text, path, errors);
}

/// Checks that a path never goes up.
pub(crate) fn no_backsteps(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if has_backsteps(text) {
        errors.invalid(path, text, "must not contain '..'");
    }
}

/// Whether a path goes up somewhere.
pub(crate) fn has_backsteps(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
}

/// Checks a file's path below a volume, where names with two dots in front are the kubelet's.
pub(crate) fn unreserved_path(text: &str, path: &Path<'_>, errors: &mut Errors) {
    descending_path(text, path, errors);
    if text.starts_with("..") && !text.starts_with("../") {
        errors.invalid(path, text, "must not start with '..'");
    }
}

/// Whether a counter went back.
pub(crate) fn is_decremented(new: Option<i64>, old: Option<i64>) -> bool {
    match (new, old) {
        (Some(new), Some(old)) => new < old,
        (None, Some(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use object::value;
    use schema::Form;

    use super::*;
    use crate::Catalogue;

    #[test]
    fn what_is_the_same_to_upstream() {
        let cases = [
            (value!({"a": []}), value!({}), true),
            (value!({"labels": {}}), value!({"labels": null}), true),
            (
                value!({"labels": {}}),
                value!({"labels": {"a": "b"}}),
                false,
            ),
            (value!({"emptyDir": {}}), value!({}), false),
            (value!([{"values": []}]), value!([{}]), true),
            (value!([{}]), value!([]), false),
            (value!({"a": ""}), value!({}), false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(same(&one, &other), expected, "{one:?} {other:?}");
            assert_eq!(same(&other, &one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn every_dictionary_is_known_as_one() {
        // These are structs wherever a change is judged.
        let elsewhere = ["resources", "selector", "status"];
        let types = Catalogue::builtin().types();
        let mut found: Vec<&str> = Vec::new();
        for id in 0..types.len() {
            let id = schema::TypeId(u32::try_from(id).expect("few types"));
            let fields = types.get(id).map.iter().flat_map(|map| map.fields.iter());
            for field in fields {
                let ty = types.get(field.ty);
                let is_dictionary = ty.map.as_ref().is_some_and(|map| map.element.is_some());
                if is_dictionary && ty.form == Form::Plain {
                    found.push(&field.name);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found.retain(|name| !elsewhere.contains(name));
        assert_eq!(found, DICTIONARIES);
    }
}
