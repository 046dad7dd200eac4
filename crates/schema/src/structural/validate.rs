//! Checking a value against its schema.
//!
//! Contract: kube-openapi `pkg/validation/validate`, with the wrapping of
//! `apiextensions-apiserver/pkg/apiserver/validation`, to the letter of every message and with the
//! same count of passed checks, because that count chooses whose mistakes of several branches are
//! shown. Upstream visits the fields of a map in any order, we in that of their names.
//!
//! On an update, mistakes in a part that did not change are forgiven: see [`Correlated`].

mod branches;
mod number;
mod ratchet;

use std::collections::HashSet;

use object::field::{FieldError, Mistake, Path, quote};
use object::{Map, Value};

pub use self::number::go_float;
pub use self::ratchet::Correlated;
use super::formats;
use super::{Additional, Checks, Structural, ValueType};

/// Reports every mistake of a new value.
pub fn validate(schema: &Structural, value: &Value) -> Vec<FieldError> {
    finish(check(schema, value, None, &Path::root()))
}

/// Reports every mistake of a value that replaces `old`, but those in parts that did not change.
pub fn validate_update(schema: &Structural, value: &Value, old: &Value) -> Vec<FieldError> {
    let root = Correlated::new(schema, value, old);
    finish(check_forgiving(schema, value, &root, &Path::root()))
}

/// Reports every mistake of a whole object; if `old` is given, but those in parts that did not
/// change.
pub fn validate_object(schema: &Structural, object: &Map, old: Option<&Map>) -> Vec<FieldError> {
    let correlated = old.map(|old| Correlated::objects(schema, object, old));
    let mut outcome = Outcome::default();
    let root = Path::root();
    if let Some(checks) = schema
        .checks
        .as_deref()
        .filter(|checks| checks.sees_whole())
    {
        let value = Value::Object(object.clone());
        branches::check(checks, &value, &root, &mut outcome);
        check_enum(Some(checks), &value, &root, &mut outcome);
    }
    check_map(schema, object, correlated.as_ref(), &root, &mut outcome);
    if !outcome.is_valid() && correlated.is_some_and(|correlated| correlated.is_unchanged()) {
        return Vec::new();
    }
    finish(outcome)
}

impl Checks {
    /// Whether something is asked of a whole object beyond its fields.
    fn sees_whole(&self) -> bool {
        self.not.is_some()
            || !self.one_of_values.is_empty()
            || [&self.all_of, &self.any_of, &self.one_of]
                .iter()
                .any(|branches| !branches.is_empty())
    }
}

/// What came of checking a value.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    /// How many checks passed, as upstream counts them.
    passed: usize,
}

impl Outcome {
    fn merge(&mut self, other: Outcome) {
        self.errors.extend(other.errors);
        self.passed += other.passed;
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Upstream reports equal mistakes once.
fn finish(outcome: Outcome) -> Vec<FieldError> {
    let mut errors = outcome.errors;
    if errors.len() > 1 {
        let mut seen = HashSet::with_capacity(errors.len());
        errors.retain(|error| seen.insert(error.to_string()));
    }
    errors
}

fn check_forgiving(
    schema: &Structural,
    value: &Value,
    correlated: &Correlated<'_>,
    path: &Path<'_>,
) -> Outcome {
    let mut outcome = check(schema, value, Some(correlated), path);
    if !outcome.is_valid() && correlated.is_unchanged() {
        outcome.errors.clear();
    }
    outcome
}

/// Checks a value without forgiving mistakes of its own; those below may be.
fn check(
    schema: &Structural,
    value: &Value,
    correlated: Option<&Correlated<'_>>,
    path: &Path<'_>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let checks = schema.checks.as_deref();
    if value.is_null() {
        check_type(schema, value, path, &mut outcome);
        check_enum(checks, value, path, &mut outcome);
        return outcome;
    }
    if types(schema) != Types::Any || !formats::of(schema).is_empty() {
        check_type(schema, value, path, &mut outcome);
        outcome.passed += 1;
    }
    if let Some(checks) = checks {
        branches::check(checks, value, path, &mut outcome);
    }
    outcome.passed += 2;
    match value {
        Value::String(text) => check_string(schema, text, path, &mut outcome),
        Value::Int(_) | Value::Float(_) => {
            number::check(schema, value, path, &mut outcome.errors);
            outcome.passed += 2;
        }
        Value::Array(items) => check_list(schema, items, correlated, path, &mut outcome),
        _ => {}
    }
    check_enum(checks, value, path, &mut outcome);
    outcome.passed += 1;
    if let Value::Object(map) = value {
        check_map(schema, map, correlated, path, &mut outcome);
        outcome.passed += 1;
    }
    outcome.passed += 1;
    outcome
}

/// Which types a schema takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Types {
    Any,
    One(ValueType),
    IntOrString,
}

impl Types {
    fn takes(self, wanted: ValueType) -> bool {
        match self {
            Types::Any => false,
            Types::One(ty) => ty == wanted,
            Types::IntOrString => matches!(wanted, ValueType::Integer | ValueType::String),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Types::Any => "",
            Types::One(ty) => ty.name(),
            Types::IntOrString => "integer,string",
        }
    }
}

fn types(schema: &Structural) -> Types {
    match (schema.int_or_string, schema.value_type) {
        (true, _) => Types::IntOrString,
        (false, Some(ty)) => Types::One(ty),
        (false, None) => Types::Any,
    }
}

/// The type of a value, and the format that upstream's inference gives it.
fn type_of(value: &Value) -> Option<(ValueType, &'static str)> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some((ValueType::Boolean, "")),
        Value::Int(_) => Some((ValueType::Integer, "int64")),
        Value::Float(_) => Some((ValueType::Number, "float64")),
        Value::String(_) => Some((ValueType::String, "")),
        Value::Array(_) => Some((ValueType::Array, "")),
        Value::Object(_) => Some((ValueType::Object, "")),
    }
}

fn check_type(schema: &Structural, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    let types = types(schema);
    let Some((found, found_format)) = type_of(value) else {
        if types == Types::Any || schema.nullable {
            outcome.passed += 1;
        } else {
            outcome.errors.push(wrong_type(path, types.text(), "null"));
        }
        return;
    };
    let float_is_int = matches!(value, Value::Float(number) if number::is_integer(*number))
        && types.takes(ValueType::Integer);
    let int_is_float = found == ValueType::Integer && types.takes(ValueType::Number);
    let fits = types.takes(found) || float_is_int || int_is_float;
    let format = formats::of(schema);
    let text_like = matches!(found, ValueType::String | ValueType::Array);
    if !text_like && !format.is_empty() && !fits && found_format != format {
        outcome.errors.push(wrong_type(path, format, found_format));
        return;
    }
    let numeric = types.takes(ValueType::Number) || types.takes(ValueType::Integer);
    if !numeric && !format.is_empty() && text_like {
        outcome.passed += 1;
        return;
    }
    if fits {
        outcome.passed += 1;
    } else {
        let error = wrong_type(path, types.text(), found.name());
        outcome.errors.push(error);
    }
}

fn wrong_type(path: &Path<'_>, wanted: &str, found: &str) -> FieldError {
    let detail = format!("{path} in body must be of type {wanted}: {}", quote(found));
    FieldError::type_invalid(path, &Value::from(found), detail)
}

fn check_string(schema: &Structural, text: &str, path: &Path<'_>, outcome: &mut Outcome) {
    outcome.passed += 1;
    if let Some(checks) = &schema.checks {
        outcome.errors.extend(string_mistake(checks, text, path));
    }
    let format = formats::of(schema);
    if formats::is_for_text(format) {
        outcome.passed += 1;
        if !formats::matches(format, text) {
            outcome.errors.push(wrong_type(path, format, text));
        }
    }
}

/// Only the first mistake of a string is reported.
fn string_mistake(checks: &Checks, text: &str, path: &Path<'_>) -> Option<FieldError> {
    let about = |detail: String| FieldError::invalid(path, &Value::from(text), detail);
    let limited = checks.max_length.is_some() || checks.min_length.is_some();
    let characters = if limited { text.chars().count() } else { 0 };
    let characters = i64::try_from(characters).unwrap_or(i64::MAX);
    if let Some(limit) = checks.max_length.filter(|limit| characters > *limit) {
        return Some(FieldError::too_long(
            path,
            usize::try_from(limit).unwrap_or_default(),
        ));
    }
    if let Some(limit) = checks.min_length.filter(|limit| characters < *limit) {
        return Some(about(format!(
            "{path} in body should be at least {limit} chars long"
        )));
    }
    let pattern = checks.pattern.as_ref()?;
    (!pattern.matches(text))
        .then(|| about(format!("{path} in body should match '{}'", pattern.text())))
}

fn check_list(
    schema: &Structural,
    items: &[Value],
    correlated: Option<&Correlated<'_>>,
    path: &Path<'_>,
    outcome: &mut Outcome,
) {
    if let Some(below) = schema.items.as_deref() {
        let old = correlated.and_then(Correlated::old_items);
        for (index, item) in items.iter().enumerate() {
            let at = path.index(index);
            let old = old.as_ref().and_then(|old| old.get(item));
            outcome.merge(match old {
                Some(old) => check_forgiving(below, item, &Correlated::new(below, item, old), &at),
                None => check(below, item, None, &at),
            });
        }
    }
    outcome.passed += 2;
    let Some(checks) = schema.checks.as_deref() else {
        return;
    };
    let size = items.len();
    let count = i64::try_from(size).unwrap_or(i64::MAX);
    if let Some(limit) = checks.min_items.filter(|limit| count < *limit) {
        let detail = format!("{path} in body should have at least {limit} items");
        let error = FieldError::invalid(path, &Value::Int(count), detail);
        outcome.errors.push(error);
    }
    if let Some(limit) = checks.max_items.filter(|limit| count > *limit) {
        let limit = usize::try_from(limit).unwrap_or_default();
        outcome.errors.push(FieldError::too_many(path, size, limit));
    }
    if checks.unique_items && has_repeats(items) {
        let detail = format!("{path} in body shouldn't contain duplicates");
        let error = FieldError::invalid(path, &Value::from(""), detail);
        outcome.errors.push(error);
    }
}

fn has_repeats(items: &[Value]) -> bool {
    let mut seen = HashSet::with_capacity(items.len());
    !items.iter().all(|item| {
        let float = matches!(item, Value::Float(_));
        seen.insert((object::json::to_vec(item), float))
    })
}

fn check_map(
    schema: &Structural,
    map: &Map,
    correlated: Option<&Correlated<'_>>,
    path: &Path<'_>,
    outcome: &mut Outcome,
) {
    let checks = schema.checks.as_deref();
    if let Some(checks) = checks {
        check_size(checks, map.len(), path, &mut outcome.errors);
    }
    let undeclared = || map.iter().filter(|(key, _)| schema.property(key).is_none());
    match &schema.additional {
        Some(Additional::Allowed(false)) => {
            for (key, _) in undeclared() {
                let detail = format!("{path}.{key} in body is a forbidden property");
                let error = FieldError::invalid(path, &Value::from(key.as_str()), detail);
                outcome.errors.push(error);
            }
        }
        Some(Additional::Schema(below)) => {
            for (key, value) in undeclared() {
                outcome.merge(check_field(below, key, value, correlated, path));
            }
        }
        Some(Additional::Allowed(true)) | None => {}
    }
    for (key, value) in map.iter() {
        if let Some(property) = schema.property(key) {
            outcome.merge(check_field(property, key, value, correlated, path));
        }
    }
    for name in checks
        .map(|checks| checks.required.as_slice())
        .unwrap_or_default()
    {
        if !map.contains_key(name) {
            let error = FieldError::required(&path.field(name), "");
            outcome.errors.push(error);
        }
    }
}

fn check_size(checks: &Checks, size: usize, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let count = i64::try_from(size).unwrap_or(i64::MAX);
    if let Some(limit) = checks.min_properties.filter(|limit| count < *limit) {
        let detail = format!("{path} in body should have at least {limit} properties");
        errors.push(FieldError::invalid(path, &Value::Int(count), detail));
    }
    if let Some(limit) = checks.max_properties.filter(|limit| count > *limit) {
        let limit = usize::try_from(limit).unwrap_or_default();
        errors.push(FieldError::too_many(path, size, limit));
    }
}

fn check_field(
    schema: &Structural,
    key: &str,
    value: &Value,
    correlated: Option<&Correlated<'_>>,
    path: &Path<'_>,
) -> Outcome {
    let at = path.field(key);
    let old = correlated.and_then(|correlated| correlated.old_field(key));
    // The version of the object is converted away before, so a change of it cannot be seen.
    let hidden = matches!(key, "kind" | "apiVersion") && path.to_string().is_empty();
    match old.filter(|_| !hidden) {
        Some(old) => {
            let correlated = Correlated::new(schema, value, old);
            check_forgiving(schema, value, &correlated, &at)
        }
        None => check(schema, value, None, &at),
    }
}

fn check_enum(checks: Option<&Checks>, value: &Value, path: &Path<'_>, outcome: &mut Outcome) {
    let Some(checks) = checks.filter(|checks| !checks.one_of_values.is_empty()) else {
        return;
    };
    if checks
        .one_of_values
        .iter()
        .any(|known| equals(value, known))
    {
        return;
    }
    let texts: Vec<String> = checks
        .one_of_values
        .iter()
        .map(|known| match known {
            Value::String(text) => text.to_string(),
            other => String::from_utf8_lossy(&object::json::to_vec(other)).into_owned(),
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut error = FieldError::not_supported(path, value, &texts);
    error.value = Some(printed(value));
    outcome.errors.push(error);
}

/// Whether a value is the one of an enumeration; numbers are compared as the type of the latter.
fn equals(value: &Value, known: &Value) -> bool {
    match (value, known) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Int(left), Value::Float(right)) => *left as f64 == *right,
        (Value::Float(left), Value::Int(right)) => *left as i64 == *right,
        _ => value == known,
    }
}

/// A mistake that upstream does not tie to a field.
fn unplaced(detail: String) -> FieldError {
    FieldError {
        mistake: Mistake::Invalid,
        field: "<nil>".to_owned(),
        value: Some("\"\"".to_owned()),
        detail,
    }
}

/// A value as upstream's errors print it: floats as Go prints them.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Float(number) => go_float(*number),
        other => String::from_utf8_lossy(&object::json::to_vec(other)).into_owned(),
    }
}
