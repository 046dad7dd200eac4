//! Custom resources: from a definition to the kinds that it declares.
//!
//! A definition becomes one `Kind` per version, served or not, because stored objects and owners
//! may name any of them. What built-in kinds have as functions in [`crate::Rules`], custom ones
//! have as data in `Custom`; the methods of `Kind` dispatch, so callers see no difference.
//!
//! Contract: `apiextensions-apiserver/pkg/registry/customresource` and
//! `pkg/apiserver/customresource_handler.go`.

mod definition;
pub(crate) mod embedded;
mod read;
mod rules;
mod status;
mod validate;

use std::sync::{Arc, OnceLock};

use object::{Map, Text, Value};
use schema::structural::{Rules, Structural};

pub use definition::{is_established, is_served, is_terminating, kinds};
pub(crate) use status::mark_deleting;
pub use status::{
    CLEANUP_FINALIZER, begin_deletion, finish_deletion, names_accepted, remove_finalizer, status,
};

/// What a definition says about one version of a kind, beyond what every kind has.
#[derive(Clone, Debug)]
pub struct Custom {
    /// The name of the definition, such as `widgets.example.com`.
    pub definition: Text,
    /// The version and a digest of what decides the form of its objects: their records carry it,
    /// and a record that carries another has to be given this form when it is read.
    pub tag: Text,
    /// The schema of the version.
    pub schema: Arc<Structural>,
    /// The revision at which the history of its objects begins.
    pub since: u64,
    /// Whether clients can reach the version.
    pub served: bool,
    /// Whether the definition is being deleted, so that nothing new can be made.
    pub terminating: bool,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// What the server says to whoever uses the version, if it is deprecated.
    pub deprecation: Option<Text>,
    /// Whether the status is a subresource.
    pub status: bool,
    /// Where the scale subresource reads and writes, if there is one.
    pub scale: Option<ScalePaths>,
    /// How objects get from one version to another.
    pub conversion: Conversion,
    /// Fields that field selectors may name, in the order of the definition.
    selectable: Vec<Selectable>,
    /// Whether there are objects inside the object.
    has_embedded: bool,
    /// The rules of the schema, compiled when they are first needed.
    rules: Arc<OnceLock<Option<Rules>>>,
    /// Whether there are lists in which nothing stands twice.
    has_unique: bool,
}

/// Where the numbers of a scale are, each as the names of fields from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// How many replicas are wanted.
    pub spec_replicas: Vec<Text>,
    /// How many there are.
    pub status_replicas: Vec<Text>,
    /// The selector of the replicas, as text.
    pub label_selector: Option<Vec<Text>>,
}

/// How objects get from one version to another.
#[derive(Clone, Debug, Default)]
pub enum Conversion {
    /// Only the version that the object names changes.
    #[default]
    None,
    /// A webhook converts.
    Webhook(Arc<ConversionWebhook>),
}

/// The webhook that converts.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversionWebhook {
    /// How it is reached: `url` or `service`, and `caBundle`, as the definition says it.
    pub client_config: Map,
    /// The versions of the review that it understands, preferred first.
    pub review_versions: Vec<Text>,
}

/// A field that field selectors may name.
#[derive(Clone, Debug)]
struct Selectable {
    /// The path without the dot that it begins with.
    name: Text,
    steps: Vec<Text>,
}

impl Custom {
    /// The names of the fields that field selectors may name, besides those of every kind.
    pub fn selectable(&self) -> impl Iterator<Item = &str> {
        self.selectable.iter().map(|field| field.name.as_str())
    }

    /// The rules of the schema, if it has any.
    fn rules(&self) -> Option<&Rules> {
        let rules = self.rules.get_or_init(|| Rules::compile(&self.schema));
        rules.as_ref()
    }

    pub(crate) fn select(&self, object: &Map, field: &str) -> Text {
        let field = self.selectable.iter().find(|known| known.name == field);
        let Some((first, rest)) = field.and_then(|field| field.steps.split_first()) else {
            return Text::default();
        };
        let found = rest
            .iter()
            .try_fold(object.get(first), |value, step| {
                Some(value.and_then(|value| value.get(step)))
            })
            .flatten();
        match found {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Int(number)) => number.to_string().into(),
            Some(Value::Bool(flag)) => flag.to_string().into(),
            Some(Value::Float(number)) => number.to_string().into(),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => Text::default(),
        }
    }

    pub(crate) fn check_selectable(&self, namespaced: bool, field: &str) -> Result<(), String> {
        let known = field == "metadata.name"
            || (field == "metadata.namespace" && namespaced)
            || self.selectable().any(|known| known == field);
        if known {
            return Ok(());
        }
        Err(format!("field label not supported: {field}"))
    }
}
