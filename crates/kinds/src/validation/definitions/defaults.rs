//! Whether the defaults of a schema are valid values.
//!
//! Contract: `apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go`. A default is
//! checked against the schema that it stands in. Inside metadata it is put into an object that
//! holds nothing else, and that object is checked.

use object::field::{FieldError, Path};
use object::{Map, Text, Value, value};
use schema::structural::{Checks, Structural, prune_value, validate};

use super::expressions;
use crate::custom::embedded;
use crate::validation::check::{Errors, Report};

/// Checks the defaults of a schema.
pub(super) fn check(schema: &Structural, pruned: bool, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let mut checker = Checker {
        pruned,
        errors: &mut errors,
    };
    let root = Inside {
        root: schema,
        steps: &Steps::Root,
        meta: false,
    };
    checker.node(schema, true, &root, path);
    errors
}

/// Whether a default of the schema holds something that would be dropped.
pub(super) fn has_unpruned(schema: &Map) -> bool {
    fn any(schema: &Structural) -> bool {
        let here = schema.default.as_deref().is_some_and(|default| {
            let mut copy = default.clone();
            prune_value(schema, &mut copy, schema.embedded_resource);
            copy != *default
        });
        here || schema.children().any(any)
    }
    any(&Structural::parse(schema))
}

struct Checker<'e> {
    pruned: bool,
    errors: &'e mut Errors,
}

/// The resource that a default belongs to, and the way to it from there.
struct Inside<'a> {
    root: &'a Structural,
    steps: &'a Steps<'a>,
    /// Whether the default is one of metadata.
    meta: bool,
}

enum Steps<'a> {
    Root,
    Field(&'a Steps<'a>, &'a Text),
    Item(&'a Steps<'a>),
}

impl Steps<'_> {
    /// The object that holds the value at the end of the way.
    fn surround(&self, inner: Value) -> Value {
        match self {
            Steps::Root => inner,
            Steps::Field(above, name) => {
                let map: Map = [((*name).clone(), inner)].into_iter().collect();
                above.surround(Value::Object(map))
            }
            Steps::Item(above) => above.surround(Value::Array(vec![inner])),
        }
    }
}

impl Checker<'_> {
    fn node(&mut self, schema: &Structural, resource: bool, inside: &Inside<'_>, path: &Path<'_>) {
        let own = Inside {
            root: schema,
            steps: &Steps::Root,
            meta: false,
        };
        let inside = if resource { &own } else { inside };
        if let Some(default) = schema.default.as_deref().filter(|it| !it.is_null()) {
            let at = path.field("default");
            if inside.meta {
                self.in_metadata(schema, default, inside, &at);
            } else {
                self.plain(schema, resource, default, &at);
            }
        }
        if let Some(items) = schema.items.as_deref() {
            let below = Inside {
                root: inside.root,
                steps: &Steps::Item(inside.steps),
                meta: inside.meta,
            };
            let at = path.field("items");
            self.node(items, items.embedded_resource, &below, &at);
        }
        let at = path.field("properties");
        for (name, property) in schema.properties.iter() {
            let is_meta = matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
            let below = Inside {
                root: inside.root,
                steps: &Steps::Field(inside.steps, name),
                meta: inside.meta || (resource && is_meta),
            };
            self.node(property, property.embedded_resource, &below, &at.key(name));
        }
    }

    fn in_metadata(
        &mut self,
        schema: &Structural,
        default: &Value,
        inside: &Inside<'_>,
        path: &Path<'_>,
    ) {
        let mut object = inside.steps.surround(default.clone());
        if let Some(map) = object.as_object_mut() {
            for (key, text) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
                map.get_or_insert_with(key, || value!(text));
            }
        }
        let mistakes = match embedded::coerce(inside.root, &mut object, true, &Path::root()) {
            Err(error) => vec![error],
            Ok(()) => embedded::validate(inside.root, &object, true, &Path::root()),
        };
        if mistakes.is_empty() {
            self.values(schema, default, path);
            return;
        }
        let detail = format!(
            "must result in valid metadata: {}",
            object::field::summary(&mistakes)
        );
        self.errors.invalid_value(path, default, detail);
    }

    fn plain(&mut self, schema: &Structural, resource: bool, default: &Value, path: &Path<'_>) {
        let mut copy = default.clone();
        prune_value(schema, &mut copy, resource);
        if self.pruned && copy != *default {
            let detail = "must not have unknown fields";
            self.errors.invalid_value(path, default, detail);
        }
        let mut coerced = default.clone();
        if let Err(error) = embedded::coerce(schema, &mut coerced, resource, path) {
            self.errors.push(error);
            return;
        }
        let mistakes = embedded::validate(schema, &coerced, resource, path);
        if mistakes.is_empty() {
            self.values(schema, default, path);
        } else {
            self.errors.extend(mistakes);
        }
    }

    fn values(&mut self, schema: &Structural, default: &Value, path: &Path<'_>) {
        let mut lenient = schema.clone();
        forget_int_or_string(&mut lenient);
        let prefix = path.to_string();
        let mut mistakes = validate(&lenient, default);
        for error in &mut mistakes {
            error.field = match error.field.as_str() {
                "<nil>" => prefix.clone(),
                below => format!("{prefix}.{below}"),
            };
        }
        if mistakes.is_empty() {
            mistakes = expressions::check_default(schema, default, path);
        }
        self.errors.extend(mistakes);
    }
}

/// Upstream does not hold defaults against the mark of integers and strings, only against what the
/// schema says about them in other words.
fn forget_int_or_string(schema: &mut Structural) {
    schema.int_or_string = false;
    if let Some(items) = schema.items.as_deref_mut() {
        forget_int_or_string(items);
    }
    if let Some(schema::structural::Additional::Schema(below)) = &mut schema.additional {
        forget_int_or_string(below);
    }
    for property in schema.properties.iter_mut() {
        forget_int_or_string(property);
    }
    if let Some(checks) = schema.checks.as_deref_mut() {
        let Checks {
            all_of,
            any_of,
            one_of,
            not,
            ..
        } = checks;
        let branches = all_of.iter_mut().chain(any_of).chain(one_of);
        branches
            .chain(not.as_deref_mut())
            .for_each(forget_int_or_string);
    }
}
