//! Advice about definitions: formats that ask nothing.

use object::Map;
use schema::structural::{Checks, Structural, ValueType, has_unrecognized_format};

use super::structural::below;
use crate::validation::read::{Read, maps};

/// Formats that are not known, but for those that the stored definition has too.
pub(crate) fn definition(new: &Map, old: Option<&Map>) -> Vec<String> {
    let known = old.map(unrecognized).unwrap_or_default();
    unrecognized(new)
        .into_iter()
        .filter(|format| !known.contains(format))
        .map(|format| format!("unrecognized format {}", object::field::quote(&format)))
        .collect()
}

fn unrecognized(definition: &Map) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen: Vec<&Map> = Vec::new();
    for (_, version) in maps(definition.object_or_empty("spec").list("versions")) {
        let parent = version.object_or_empty("schema");
        let schema = parent.object_or_empty("openAPIV3Schema");
        // What all versions share is looked at once.
        if !seen.contains(&schema) {
            collect(schema, &mut found);
            seen.push(schema);
        }
    }
    found
}

fn collect(schema: &Map, found: &mut Vec<String>) {
    let format = schema.text("format");
    let node = Structural {
        value_type: ValueType::from_name(schema.text("type")),
        checks: Some(Box::new(Checks {
            format: format.into(),
            ..Checks::default()
        })),
        ..Structural::default()
    };
    if has_unrecognized_format(&node) {
        found.push(format.to_owned());
    }
    for schema in below(schema) {
        collect(schema, found);
    }
}
