//! The mistakes of a custom object.
//!
//! Contract: upstream's `registry/customresource` strategies and validator. The order of the parts
//! is that of upstream: schema, scale, embedded resources, sets and list maps, rules.

use object::field::{FieldError, Mistake, Path};
use object::{Map, Value};
use schema::structural::{check_unique, validate, validate_object, validate_update};

use super::{Custom, ScalePaths, embedded};
use crate::kind::Kind;
use crate::validation::read::Read;

const REPLICAS_MAX: i64 = i32::MAX as i64;
const RULES_SKIPPED: &str = "some validation rules were not checked because the object was \
                             invalid; correct the existing errors to complete validation";

impl Custom {
    /// Reports every mistake of an object beyond its own metadata.
    pub(crate) fn validate(
        &self,
        kind: &Kind,
        mut errors: Vec<FieldError>,
        new: &Map,
        old: Option<&Map>,
        subresource: &str,
    ) -> (Vec<FieldError>, Vec<String>) {
        let mut forgiven = Vec::new();
        let status_only = subresource == "status" && old.is_some();
        let strange = self.check_kind(kind, new);
        if !strange.is_empty() {
            return (strange, forgiven);
        }
        self.check_schema(new, old, status_only, &mut errors);
        if self.has_embedded && !status_only {
            embedded::validate_map(&self.schema, new, &Path::root(), &mut errors);
        }
        if self.has_unique {
            let repeats = check_unique(&self.schema, new);
            // An object that held something twice before may go on to do so.
            let was_unique = |old| check_unique(&self.schema, old).is_empty();
            if !repeats.is_empty() && old.is_none_or(was_unique) {
                errors.extend(repeats);
            }
        }
        if let Some(rules) = self.rules() {
            if errors.iter().any(blocks_rules) {
                errors.push(FieldError::invalid(
                    &Path::root(),
                    &Value::Null,
                    RULES_SKIPPED,
                ));
            } else {
                let verdict = rules.check(&self.schema, new, old);
                errors.extend(verdict.errors);
                forgiven = verdict.warnings;
            }
        }
        (errors, forgiven)
    }

    fn check_schema(
        &self,
        new: &Map,
        old: Option<&Map>,
        status_only: bool,
        errors: &mut Vec<FieldError>,
    ) {
        if status_only {
            errors.extend(self.check_status(new, old));
        } else {
            errors.extend(validate_object(&self.schema, new, old));
        }
        if let Some(scale) = &self.scale {
            if !status_only {
                check_replicas(new, &scale.spec_replicas, errors);
            }
            check_scale_status(new, scale, errors);
        }
    }

    fn check_kind(&self, kind: &Kind, object: &Map) -> Vec<FieldError> {
        let root = Path::root();
        let mut errors = Vec::new();
        for (key, wanted) in [("kind", &kind.kind), ("apiVersion", &kind.api_version())] {
            let found = object.text(key);
            if found != wanted {
                let detail = format!("must be {wanted}");
                let error = FieldError::invalid(&root.field(key), &found.into(), detail);
                errors.push(error);
            }
        }
        errors
    }

    /// A write through `/status` checks the status alone, as if it were the whole.
    fn check_status(&self, new: &Map, old: Option<&Map>) -> Vec<FieldError> {
        let (Some(schema), Some(status)) = (self.schema.property("status"), new.get("status"))
        else {
            return Vec::new();
        };
        let old = old.and_then(|old| old.get("status"));
        let mut errors = match old {
            Some(old) => validate_update(schema, status, old),
            None => validate(schema, status),
        };
        for error in &mut errors {
            error.field = match error.field.as_str() {
                "<nil>" => "status".to_owned(),
                below => format!("status.{below}"),
            };
        }
        errors
    }
}

/// Mistakes after which rules would fail for no reason of their own.
fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.mistake,
        Mistake::NotSupported
            | Mistake::Required
            | Mistake::TooLong
            | Mistake::TooMany
            | Mistake::TypeInvalid
    )
}

fn check_replicas(object: &Map, steps: &[object::Text], errors: &mut Vec<FieldError>) {
    let path = path_text(steps);
    let root = Path::root();
    let at = root.field(&path);
    let invalid = |value: i64, detail: String| FieldError::invalid(&at, &Value::Int(value), detail);
    match nested(object, steps) {
        Nested::Absent => {}
        Nested::Found(Value::Int(count)) if *count < 0 => {
            errors.push(invalid(
                *count,
                "should be a non-negative integer".to_owned(),
            ));
        }
        Nested::Found(Value::Int(count)) if *count > REPLICAS_MAX => {
            let detail = format!("should be less than or equal to {REPLICAS_MAX}");
            errors.push(invalid(*count, detail));
        }
        Nested::Found(Value::Int(_)) => {}
        Nested::Found(other) => {
            errors.push(invalid(0, accessor(steps, other, "int64")));
        }
        Nested::Blocked(other) => {
            let detail = accessor(steps, other, "map[string]interface{}");
            errors.push(invalid(0, detail));
        }
    }
}

fn check_scale_status(object: &Map, scale: &ScalePaths, errors: &mut Vec<FieldError>) {
    check_replicas(object, &scale.status_replicas, errors);
    let Some(steps) = &scale.label_selector else {
        return;
    };
    let path = path_text(steps);
    let detail = match nested(object, steps) {
        Nested::Absent | Nested::Found(Value::String(_)) => return,
        Nested::Found(other) => accessor(steps, other, "string"),
        Nested::Blocked(other) => accessor(steps, other, "map[string]interface{}"),
    };
    let root = Path::root();
    let error = FieldError::invalid(&root.field(&path), &Value::from(""), detail);
    errors.push(error);
}

/// What stands at the end of a path.
enum Nested<'a> {
    Absent,
    Found(&'a Value),
    /// Something that is no map stands on the way.
    Blocked(&'a Value),
}

fn nested<'a>(object: &'a Map, steps: &[object::Text]) -> Nested<'a> {
    let mut map = object;
    for (place, step) in steps.iter().enumerate() {
        match map.get(step) {
            None => return Nested::Absent,
            Some(value) if place + 1 == steps.len() => return Nested::Found(value),
            Some(Value::Object(below)) => map = below,
            Some(Value::Null) => return Nested::Absent,
            Some(other) => return Nested::Blocked(other),
        }
    }
    Nested::Absent
}

/// The complaint of Go's accessor of nested fields.
fn accessor(steps: &[object::Text], value: &Value, wanted: &str) -> String {
    let (shown, found) = match value {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(flag) => (flag.to_string(), "bool"),
        Value::Int(number) => (number.to_string(), "int64"),
        Value::Float(number) => (schema::structural::go_float(*number), "float64"),
        Value::String(text) => (text.to_string(), "string"),
        Value::Array(_) => (go_value(value), "[]interface {}"),
        Value::Object(_) => (go_value(value), "map[string]interface {}"),
    };
    let path = path_text(steps);
    format!("{path} accessor error: {shown} is of the type {found}, expected {wanted}")
}

/// A tree as Go's `%v` prints it.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_value(value)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
        Value::String(text) => text.to_string(),
        Value::Float(number) => schema::structural::go_float(*number),
        Value::Int(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
    }
}

fn path_text(steps: &[object::Text]) -> String {
    steps.iter().map(|step| format!(".{step}")).collect()
}
