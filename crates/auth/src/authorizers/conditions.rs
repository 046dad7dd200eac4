//! Conditions under which a webhook is asked: expressions over the question itself.
//!
//! Contract: `apiserver/pkg/authorization/cel`.

use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::{Bindings, Budget, CALL_COST_MAX, Environment, ListKind, Program, Property, Shape, Type};
use object::{Map, Text, Value};

use crate::authorize::Attributes;
use crate::document::{ConfigError, Node};
use crate::user::User;

const CONDITIONS_MAX: usize = 64;

/// The question as expressions see it.
static REQUEST_SHAPE: LazyLock<Arc<Shape>> = LazyLock::new(|| {
    let text = || Arc::new(Shape::string("", None, None));
    let list = |shape| Arc::new(Shape::list(shape, ListKind::Atomic, None));
    let object = |name: &str, fields: &[(&str, Arc<Shape>)]| {
        let fields = fields.iter().map(|(name, shape)| Property {
            name: (*name).to_owned(),
            shape: Arc::clone(shape),
            required: false,
        });
        Arc::new(Shape::object(fields.collect()).named(name))
    };
    let texts = |names: &[&'static str]| -> Vec<(&'static str, Arc<Shape>)> {
        names.iter().map(|name| (*name, text())).collect()
    };
    let requirement = object(
        "kubernetes.SelectorRequirement",
        &[
            ("key", text()),
            ("operator", text()),
            ("values", list(text())),
        ],
    );
    let selector = |name: &str| {
        let requirements = list(Arc::clone(&requirement));
        object(
            name,
            &[("rawSelector", text()), ("requirements", requirements)],
        )
    };
    let mut resource = texts(&[
        "namespace",
        "verb",
        "group",
        "version",
        "resource",
        "subresource",
        "name",
    ]);
    resource.push((
        "fieldSelector",
        selector("kubernetes.FieldSelectorAttributes"),
    ));
    resource.push((
        "labelSelector",
        selector("kubernetes.LabelSelectorAttributes"),
    ));
    let resource = object("kubernetes.ResourceAttributes", &resource);
    let path = object(
        "kubernetes.NonResourceAttributes",
        &texts(&["path", "verb"]),
    );
    let extra = Arc::new(Shape::map(list(text()), None));
    object(
        "kubernetes.SubjectAccessReviewSpec",
        &[
            ("resourceAttributes", resource),
            ("nonResourceAttributes", path),
            ("user", text()),
            ("groups", list(text())),
            ("extra", extra),
            ("uid", text()),
        ],
    )
});
static REQUEST: LazyLock<Environment> =
    LazyLock::new(|| Environment::new().with_data("request", &REQUEST_SHAPE));

/// Conditions that must all hold.
#[derive(Clone, Default)]
pub struct Conditions(Vec<Arc<Program>>);

impl fmt::Debug for Conditions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list()
            .entries(self.0.iter().map(|program| program.text()))
            .finish()
    }
}

impl Conditions {
    pub(super) fn read(node: &Node<'_>) -> Result<Conditions, ConfigError> {
        let items = node.items()?;
        if items.len() > CONDITIONS_MAX {
            return Err(node.wrong(format!(
                "Too many: {}: must have at most {CONDITIONS_MAX} items",
                items.len()
            )));
        }
        let mut programs: Vec<Arc<Program>> = Vec::new();
        for item in items {
            item.only(&["expression"])?;
            let place = item.at("expression");
            let text = place.required()?;
            if text.trim().is_empty() {
                return Err(place.wrong("Required value"));
            }
            if programs.iter().any(|other| other.text() == text) {
                return Err(place.wrong(format!("Duplicate value: \"{text}\"")));
            }
            let program = REQUEST
                .compile_to_run(&text)
                .map_err(|issues| place.wrong(format!("compilation failed: {issues}")))?;
            if !matches!(program.output_type(), Type::Bool) {
                return Err(place.wrong("must evaluate to bool"));
            }
            programs.push(Arc::new(program));
        }
        Ok(Conditions(programs))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all hold; one that does not counts more than one that fails.
    ///
    /// # Errors
    /// Why some failed, and none said no.
    pub(crate) fn hold(&self, user: &User, attributes: Attributes<'_>) -> Result<bool, String> {
        if self.0.is_empty() {
            return Ok(true);
        }
        let question = seen(user, attributes);
        let request = cel::Value::from_data(&question, &REQUEST_SHAPE);
        let request = request.map_err(|error| error.to_string())?;
        let bindings = Bindings::new().bind("request", request);
        let mut problems = Vec::new();
        for program in &self.0 {
            let mut budget = Budget::new(CALL_COST_MAX, CALL_COST_MAX);
            match program.evaluate(&bindings, &mut budget) {
                Ok(value) if value.as_bool() == Some(true) => {}
                Ok(_) => return Ok(false),
                Err(error) => problems.push(format!(
                    "cel evaluation error: expression '{}' resulted in error: {error}",
                    program.text()
                )),
            }
        }
        if problems.is_empty() {
            Ok(true)
        } else {
            Err(problems.join(", "))
        }
    }
}

/// The question with every field, also those that are empty.
fn seen(user: &User, attributes: Attributes<'_>) -> Value {
    let list = |texts: &[Text]| Value::Array(texts.iter().cloned().map(Value::String).collect());
    let object = |fields: &[(&str, &str)]| {
        let fields = fields.iter();
        let fields = fields.map(|(key, text)| (Text::from(*key), Value::from(*text)));
        Value::Object(fields.collect())
    };
    let extra = user.extra.iter();
    let extra = extra.map(|(key, values)| (key.clone(), list(values)));
    let mut out = Map::new();
    out.insert("user", Value::String(user.name.clone()));
    out.insert("uid", Value::String(user.uid.clone()));
    out.insert("groups", list(&user.groups));
    out.insert("extra", Value::Object(extra.collect()));
    match attributes {
        Attributes::Path { verb, path } => {
            let asked = object(&[("path", path), ("verb", verb)]);
            out.insert("nonResourceAttributes", asked);
        }
        Attributes::Resource {
            verb,
            group,
            resource,
            namespace,
            name,
        } => {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let asked = object(&[
                ("group", group),
                ("name", name),
                ("namespace", namespace),
                ("resource", resource),
                ("subresource", subresource),
                ("verb", verb),
                // Nobody decides by it: an object is the same in all its versions.
                ("version", "*"),
            ]);
            out.insert("resourceAttributes", asked);
        }
    }
    Value::Object(out)
}
