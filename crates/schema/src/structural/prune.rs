//! Dropping what a schema does not declare, and nulls that mean nothing.
//!
//! Contract: `apiextensions-apiserver/pkg/apiserver/schema/pruning` and `defaulting/prunenulls.go`.
//! Where a value lies deeper than the schema reaches, nothing is walked but what is dropped.

use object::field::Path;
use object::{Map, Value};

use super::{Additional, Structural};
use crate::decode::Unknown;

/// What every object has, whether its schema declares it or not.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops what the schema of a kind does not declare and tells the paths, sorted, if asked to.
///
/// Kind, version and metadata stay: they are read elsewhere.
pub fn prune(schema: &Structural, object: &mut Map, unknown: Unknown) -> Vec<String> {
    let mut pruner = Pruner {
        unknown,
        dropped: Vec::new(),
    };
    let keep = Keep {
        meta: true,
        undeclared: schema.preserve_unknown,
    };
    pruner.map(schema, object, &Path::root(), keep);
    pruner.dropped.sort_unstable();
    pruner.dropped
}

/// Drops a default's undeclared parts, as if it had been sent. Tells whether there were any.
pub fn prune_value(schema: &Structural, value: &mut Value, embedded: bool) -> bool {
    let mut pruner = Pruner {
        unknown: Unknown::Report,
        dropped: Vec::new(),
    };
    match value {
        Value::Object(map) => {
            let keep = Keep {
                meta: embedded || schema.embedded_resource,
                undeclared: schema.preserve_unknown,
            };
            pruner.map(schema, map, &Path::root(), keep);
        }
        value => pruner.value(Some(schema), value, &Path::root()),
    }
    !pruner.dropped.is_empty()
}

/// Drops nulls where the schema takes none and has no default to put there.
pub fn prune_nulls(schema: &Structural, object: &mut Map) {
    retain_nulls(schema, object, may_be_null);
}

/// Drops such nulls only where the schema has no type that they could be measured by.
pub fn prune_untyped_nulls(schema: &Structural, object: &mut Map) {
    retain_nulls(schema, object, |schema| {
        may_be_null(schema) || schema.value_type.is_some() || schema.int_or_string
    });
}

fn may_be_null(schema: &Structural) -> bool {
    schema.nullable || schema.default.is_some()
}

fn retain_nulls(schema: &Structural, object: &mut Map, keeps: fn(&Structural) -> bool) {
    object.retain(|key, value| match schema.key(key) {
        Some(below) => keep_after_nulls(below, value, keeps),
        None => true,
    });
}

fn keep_after_nulls(
    schema: &Structural,
    value: &mut Value,
    keeps: fn(&Structural) -> bool,
) -> bool {
    match value {
        Value::Null => keeps(schema),
        Value::Object(map) => {
            retain_nulls(schema, map, keeps);
            true
        }
        Value::Array(items) => {
            if let Some(below) = &schema.items {
                for item in items {
                    // A null among the items stays: dropping it would move the others.
                    keep_after_nulls(below, item, keeps);
                }
            }
            true
        }
        _ => true,
    }
}

struct Pruner {
    unknown: Unknown,
    dropped: Vec<String>,
}

/// What stays in a map although it is not declared.
#[derive(Clone, Copy)]
struct Keep {
    /// Kind, version and metadata.
    meta: bool,
    /// Everything.
    undeclared: bool,
}

impl Pruner {
    fn value(&mut self, schema: Option<&Structural>, value: &mut Value, path: &Path<'_>) {
        match (value, schema) {
            (Value::Object(map), Some(schema)) => {
                let keep = Keep {
                    meta: schema.embedded_resource,
                    undeclared: schema.preserve_unknown,
                };
                self.map(schema, map, path, keep);
            }
            (Value::Object(map), None) => {
                for (key, _) in map.iter() {
                    self.note(path, key);
                }
                *map = Map::new();
            }
            (Value::Array(items), schema) => self.items(schema, items, path),
            _ => {}
        }
    }

    fn items(&mut self, schema: Option<&Structural>, items: &mut [Value], path: &Path<'_>) {
        let below = schema.and_then(|schema| schema.items.as_deref());
        if schema.is_some_and(|schema| schema.preserve_unknown) {
            // Preserving reaches through lists up to the next declared field.
            for (index, item) in items.iter_mut().enumerate() {
                if let (Some(below), Value::Object(map)) = (below, &mut *item) {
                    let keep = Keep {
                        meta: below.embedded_resource,
                        undeclared: true,
                    };
                    self.map(below, map, &path.index(index), keep);
                } else if let (Some(below), Value::Array(nested)) = (below, item) {
                    self.preserved_items(below, nested, &path.index(index));
                }
            }
            return;
        }
        for (index, item) in items.iter_mut().enumerate() {
            self.value(below, item, &path.index(index));
        }
    }

    fn preserved_items(&mut self, schema: &Structural, items: &mut [Value], path: &Path<'_>) {
        let Some(below) = schema.items.as_deref() else {
            return;
        };
        for (index, item) in items.iter_mut().enumerate() {
            let at = path.index(index);
            match item {
                Value::Object(map) => {
                    let keep = Keep {
                        meta: below.embedded_resource,
                        undeclared: true,
                    };
                    self.map(below, map, &at, keep);
                }
                Value::Array(nested) => self.preserved_items(below, nested, &at),
                _ => {}
            }
        }
    }

    fn map(&mut self, schema: &Structural, map: &mut Map, path: &Path<'_>, keep: Keep) {
        map.retain(|key, value| {
            if keep.meta && META_FIELDS.contains(&key) {
                return true;
            }
            match (schema.properties.get(key), &schema.additional) {
                (Some(property), _) => {
                    self.value(Some(property), value, &path.field(key));
                    true
                }
                (None, Some(Additional::Schema(below))) => {
                    self.value(Some(below), value, &path.field(key));
                    true
                }
                (None, Some(Additional::Allowed(_))) => {
                    self.value(None, value, &path.field(key));
                    true
                }
                (None, None) if keep.undeclared => true,
                (None, None) => {
                    self.note(path, key);
                    false
                }
            }
        });
    }

    fn note(&mut self, path: &Path<'_>, key: &str) {
        if self.unknown == Unknown::Report {
            self.dropped.push(path.field(key).to_string());
        }
    }
}
