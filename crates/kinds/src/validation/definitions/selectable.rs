//! Fields that selectors may name, and the paths that name fields of a schema.

use object::Map;
use object::field::Path;
use schema::structural::{Structural, ValueType};

use super::schema::Demands;
use crate::validation::check::{Errors, Report};
use crate::validation::read::{Read, maps};

const FIELDS_MAX: usize = 8;

/// Whether a path may have steps such as `['name']`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrayNotation {
    Allowed,
    Refused,
}

/// Checks the selectable fields of a version.
pub(super) fn fields(version: &Map, demands: &Demands<'_>, path: &Path<'_>, errors: &mut Errors) {
    let parent = version.object_or_empty("schema");
    let schema = Structural::parse(parent.object_or_empty("openAPIV3Schema"));
    let mut seen: Vec<Vec<String>> = Vec::new();
    for (index, field) in maps(version.list("selectableFields")) {
        let at = path.index(index);
        let at = at.field("jsonPath");
        let text = field.text("jsonPath");
        if text.is_empty() {
            errors.required(&at, "");
            continue;
        }
        let (steps, found) = match follow(text, &schema, ArrayNotation::Refused) {
            Ok(found) => found,
            Err(detail) => {
                errors.invalid(&at, text, format!("is an invalid path: {detail}"));
                continue;
            }
        };
        if steps.first().is_some_and(|step| step == "metadata") {
            errors.invalid(&at, text, "must not point to fields in metadata");
        }
        let good = matches!(
            found.value_type,
            Some(ValueType::String | ValueType::Boolean | ValueType::Integer)
        );
        if !good {
            let detail = "must point to a field of type string, boolean or integer. Enum string \
                          fields and strings with formats are allowed.";
            errors.invalid(&at, text, detail);
        }
        if seen.contains(&steps) {
            errors.duplicate(&at, text);
        } else {
            seen.push(steps);
        }
    }
    let before = demands.old_version(version.text("name"));
    let was_too_many = before.is_some_and(|before| {
        before.list("selectableFields").len() > FIELDS_MAX
            && before.list("selectableFields") == version.list("selectableFields")
    });
    if seen.len() > FIELDS_MAX && !was_too_many {
        let error = object::field::FieldError::too_many(path, seen.len(), FIELDS_MAX);
        errors.push(error);
    }
}

/// Follows a path through a schema: the names on the way, and the schema at its end; or the text
/// that says why it leads nowhere.
pub(super) fn follow<'a>(
    path: &str,
    schema: &'a Structural,
    notation: ArrayNotation,
) -> Result<(Vec<String>, &'a Structural), String> {
    let mut tokens = tokens(path).into_iter();
    let mut steps = Vec::new();
    let mut current = schema;
    let end = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or_else(end)?.to_owned(),
            "[" if notation == ArrayNotation::Refused => {
                return Err("array notation is not allowed".to_owned());
            }
            "[" => {
                let quoted = tokens.next().ok_or_else(end)?;
                let inner = quoted
                    .strip_prefix('\'')
                    .and_then(|it| it.strip_suffix('\''));
                let Some(inner) = inner.filter(|_| quoted.len() >= 2) else {
                    return Err(format!("expected single quoted string but got {quoted}"));
                };
                inner.replace("\\'", "'").replace("\\\\", "\\")
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let nowhere = || "does not refer to a valid field".to_owned();
        current = match (current.properties.is_empty(), &current.additional) {
            (false, _) => current.property(&name).ok_or_else(nowhere)?,
            (true, Some(_)) => current.additional_schema().ok_or_else(nowhere)?,
            (true, None) => return Err(nowhere()),
        };
        steps.push(name);
        if token == "[" {
            match tokens.next() {
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
                None => return Err(end()),
            }
        }
    }
    Ok((steps, current))
}

/// Delimiters alone, quoted strings whole, and what is between.
fn tokens(path: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '.' | '[' | ']' => 1,
            '\'' => quoted_length(rest),
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        found.push(token);
        rest = after;
    }
    found
}

fn quoted_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let end = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
    end.map_or(text.len(), |end| end + 1)
}
