//! The schema of a custom resource, as a definition declares it: `openAPIV3Schema`, parsed once.
//!
//! One node type serves the whole schema and what stands inside `allOf`, `anyOf`, `oneOf` and
//! `not`. Rules: texts for people (descriptions, titles, examples) are not kept, rarely used parts
//! are boxed, and patterns are compiled on first use, so that a schema of 30 KB takes far less than
//! a megabyte. A node never changes after parsing and may be shared between threads.
//!
//! Contract: `apiextensions-apiserver/pkg/apiserver/schema/structural.go`.

mod compile;
mod fill;
mod formats;
mod parse;
mod prune;
mod rules;
mod unique;
mod validate;

use object::{Text, Value};

pub use cel::pattern::{Pattern, PatternError};
pub use compile::compile;
pub use fill::{fill_defaults, fill_value};
pub use formats::is_unrecognized as has_unrecognized_format;
pub use prune::{prune, prune_nulls, prune_untyped_nulls, prune_value};
pub use rules::{Rules, Verdict, check_definition};
pub use unique::{check_unique, check_unique_value};
pub use validate::{Correlated, go_float, validate, validate_object, validate_update};

/// Schemas nested deeper than this are refused; what walks a schema then never runs out of stack.
pub const SCHEMA_DEPTH_MAX: usize = 256;

/// One node of a schema.
#[derive(Clone, Debug, Default)]
pub struct Structural {
    /// The type of the value; `None` where the schema does not say.
    pub value_type: Option<ValueType>,
    /// Whether `null` is a value.
    pub nullable: bool,
    /// What an absent value becomes.
    pub default: Option<Box<Value>>,
    /// The schema of every item of a list.
    pub items: Option<Box<Structural>>,
    /// The schemas of the declared fields.
    pub properties: Properties,
    /// What other keys may hold.
    pub additional: Option<Additional>,
    /// `x-kubernetes-preserve-unknown-fields`: undeclared fields are kept.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`: the value is an object with a kind and metadata.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`: the value is an integer or a string.
    pub int_or_string: bool,
    /// `x-kubernetes-list-type`; `None` means atomic.
    pub list_type: Option<ListMarker>,
    /// `x-kubernetes-list-map-keys`, in the order of the schema.
    pub list_map_keys: Vec<Text>,
    /// `x-kubernetes-map-type`; `None` means granular.
    pub map_type: Option<MapMarker>,
    /// `x-kubernetes-validations`, in the order of the schema.
    pub validations: Vec<Validation>,
    /// What is asked of the value beyond its type.
    pub checks: Option<Box<Checks>>,
}

/// The types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// A map.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A number without a fraction.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// What keys that are not declared may hold.
#[derive(Clone, Debug)]
pub enum Additional {
    /// Anything, or nothing.
    Allowed(bool),
    /// Values of this schema.
    Schema(Box<Structural>),
}

/// The declared fields of an object, sorted by name.
#[derive(Clone, Debug, Default)]
pub struct Properties(Vec<(Text, Structural)>);

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMarker {
    /// One manager owns the list as a whole.
    Atomic,
    /// Every item stands once and has its own owner.
    Set,
    /// Items are told apart by keys.
    Map,
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMarker {
    /// Every key has its own owner.
    Granular,
    /// One manager owns the map as a whole.
    Atomic,
}

/// A rule of `x-kubernetes-validations`, as data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validation {
    /// The expression.
    pub rule: Text,
    /// What to say when it fails; may be empty.
    pub message: Text,
    /// An expression that makes the message; may be empty.
    pub message_expression: Text,
    /// The reason to give, such as `FieldValueInvalid`.
    pub reason: Option<Text>,
    /// The field to blame, as a path from here; may be empty.
    pub field_path: Text,
    /// Whether the rule also runs where there is no old value.
    pub optional_old_self: Option<bool>,
}

/// What is asked of a value beyond its type.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// The format as the schema writes it; one that is not known asks nothing.
    pub format: Text,
    /// The greatest number.
    pub maximum: Option<f64>,
    /// Whether `maximum` itself is too much.
    pub exclusive_maximum: bool,
    /// The least number.
    pub minimum: Option<f64>,
    /// Whether `minimum` itself is too little.
    pub exclusive_minimum: bool,
    /// What a number must be a multiple of.
    pub multiple_of: Option<f64>,
    /// The most characters of a string.
    pub max_length: Option<i64>,
    /// The fewest characters of a string.
    pub min_length: Option<i64>,
    /// What a string must match.
    pub pattern: Option<Pattern>,
    /// The most items of a list.
    pub max_items: Option<i64>,
    /// The fewest items of a list.
    pub min_items: Option<i64>,
    /// Whether no two items may be equal.
    pub unique_items: bool,
    /// The most entries of a map.
    pub max_properties: Option<i64>,
    /// The fewest entries of a map.
    pub min_properties: Option<i64>,
    /// The only values there are; empty if there are others.
    pub one_of_values: Vec<Value>,
    /// Fields that must be there.
    pub required: Vec<Text>,
    /// Every one of these must hold.
    pub all_of: Vec<Structural>,
    /// At least one of these must hold.
    pub any_of: Vec<Structural>,
    /// Exactly one of these must hold.
    pub one_of: Vec<Structural>,
    /// This must not hold.
    pub not: Option<Box<Structural>>,
}

impl Structural {
    /// The schema of a declared field.
    pub fn property(&self, name: &str) -> Option<&Structural> {
        self.properties.get(name)
    }

    /// The schema of a key of a map: that of the declared field, or that of all other keys.
    pub fn key(&self, name: &str) -> Option<&Structural> {
        self.properties
            .get(name)
            .or_else(|| self.additional_schema())
    }

    /// The schema of keys that are not declared.
    pub fn additional_schema(&self) -> Option<&Structural> {
        match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// Whether the value is a list whose items are told apart by keys.
    pub fn is_list_map(&self) -> bool {
        self.list_type == Some(ListMarker::Map)
    }

    /// Whether the schema or one below it has rules, be it inside `allOf`.
    pub fn has_validations(&self) -> bool {
        let branches = self
            .checks
            .as_deref()
            .map(|checks| checks.all_of.as_slice());
        !self.validations.is_empty()
            || self.children().any(Structural::has_validations)
            || branches
                .unwrap_or_default()
                .iter()
                .any(Structural::has_validations)
    }

    /// The schemas directly below: items, other keys, declared fields.
    pub fn children(&self) -> impl Iterator<Item = &Structural> {
        let declared = self.properties.iter().map(|(_, schema)| schema);
        let items = self.items.as_deref();
        items
            .into_iter()
            .chain(self.additional_schema())
            .chain(declared)
    }
}

impl Properties {
    /// Takes the fields in any order.
    pub fn new(mut fields: Vec<(Text, Structural)>) -> Properties {
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        fields.shrink_to_fit();
        Properties(fields)
    }

    /// The schema of the field of this name.
    pub fn get(&self, name: &str) -> Option<&Structural> {
        self.0
            .binary_search_by(|(known, _)| known.as_str().cmp(name))
            .ok()
            .map(|at| &self.0[at].1)
    }

    /// The fields, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Text, &Structural)> {
        self.0.iter().map(|(name, schema)| (name, schema))
    }

    /// The schemas of the fields, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Structural> {
        self.0.iter_mut().map(|(_, schema)| schema)
    }

    /// Whether no field is declared.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl ValueType {
    /// The type of this name in a schema.
    pub fn from_name(name: &str) -> Option<ValueType> {
        match name {
            "object" => Some(ValueType::Object),
            "array" => Some(ValueType::Array),
            "string" => Some(ValueType::String),
            "integer" => Some(ValueType::Integer),
            "number" => Some(ValueType::Number),
            "boolean" => Some(ValueType::Boolean),
            _ => None,
        }
    }

    /// The name in a schema.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::Object => "object",
            ValueType::Array => "array",
            ValueType::String => "string",
            ValueType::Integer => "integer",
            ValueType::Number => "number",
            ValueType::Boolean => "boolean",
        }
    }
}

#[cfg(test)]
mod tests;
