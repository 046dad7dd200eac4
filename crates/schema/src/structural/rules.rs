//! The rules of `x-kubernetes-validations`: compiled with a schema, run over objects.
//!
//! Contract: `apiextensions-apiserver/pkg/apiserver/schema/cel`. A rule sees the value beside it as
//! `self`, and the old value in its place as `oldSelf` where the two can be told to be the same
//! thing. On an update a broken rule over a part that did not change is a warning.

mod compile;
mod definition;
mod evaluate;
mod paths;
mod shapes;

use std::sync::Arc;

use cel::{Program, Shape};
use object::field::{FieldError, Path};
use object::{Map, Text, Value};

pub use definition::check_definition;

use super::Structural;

/// What all rules together may cost over one object.
const OBJECT_COST_MAX: u64 = 10_000_000;

/// A message that is longer than this is not used.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The rules of a schema, compiled.
#[derive(Debug)]
pub struct Rules {
    root: Node,
}

/// What the rules say of an object.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What is wrong.
    pub errors: Vec<FieldError>,
    /// What is wrong but was so before.
    pub warnings: Vec<String>,
}

/// The rules of one node of a schema and of those below it.
#[derive(Debug)]
struct Node {
    /// The type as the schema writes it.
    value_type: &'static str,
    shape: Arc<Shape>,
    rules: Vec<Rule>,
    items: Option<Box<Node>>,
    properties: Vec<(Text, Node)>,
    additional: Option<Box<Node>>,
    all_of: Vec<Node>,
}

/// One rule.
#[derive(Debug)]
struct Rule {
    /// The expression, or why it is none. A rule without text is absent.
    program: Option<Result<Program, String>>,
    message_program: Option<Program>,
    /// What the rule is called in messages: its message, or else its text.
    name: String,
    has_message: bool,
    reason: Option<Text>,
    /// The way to the field to blame, as paths print it; may be empty.
    field_path: String,
    uses_old_self: bool,
    optional_old_self: bool,
}

impl Rules {
    /// Compiles the rules of a schema, if it has any.
    pub fn compile(schema: &Structural) -> Option<Rules> {
        if !schema.has_validations() {
            return None;
        }
        compile::root(schema).map(|root| Rules { root })
    }

    /// Compiles the rules of a schema that is no object's root, such as that of a default.
    pub fn compile_part(schema: &Structural) -> Option<Rules> {
        if !schema.has_validations() {
            return None;
        }
        compile::part(schema).map(|root| Rules { root })
    }

    /// Runs the rules over an object; `old` is what it replaces. The schema is the one that was
    /// compiled.
    pub fn check(&self, schema: &Structural, new: &Map, old: Option<&Map>) -> Verdict {
        evaluate::objects(&self.root, schema, new, old)
    }

    /// Runs the rules over a value at a path; `old` is what it replaces, or the value itself where
    /// nothing changes. Nothing is forgiven.
    pub fn check_value(
        &self,
        schema: &Structural,
        new: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
    ) -> Vec<FieldError> {
        evaluate::value(&self.root, schema, new, old, path)
    }
}

#[cfg(test)]
mod tests;
