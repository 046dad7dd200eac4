//! The expressions of admission: what they may name and what they must give.
//!
//! Policies, conditions of webhooks and their validation all compile here, so that what is
//! accepted is what runs. Contract: `apiserver/pkg/admission/plugin/cel/compile.go`.

use std::sync::{Arc, LazyLock};

use cel::{Environment, ListKind, Program, Property, Shape, Type};

/// What an expression must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// Whatever it likes.
    Anything,
    /// `true` or `false`.
    Bool,
    /// Text.
    Text,
    /// Text, or `null` for none.
    TextOrNull,
    /// An object of a mutating policy.
    Object,
    /// The steps of a patch of a mutating policy.
    Patch,
}

/// What an expression may name beside the object and the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Whether `params` is there.
    pub params: bool,
    /// Whether it may ask what users may do.
    pub authorizer: bool,
}

/// Compiles the expressions of one policy.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The variables that were compiled so far; `None` if there is no such thing.
    variables: Option<Vec<(String, Type)>>,
}

impl Compiler {
    /// A compiler of expressions that know no variables.
    pub fn plain() -> Compiler {
        Compiler { variables: None }
    }

    /// A compiler of expressions that know variables.
    pub fn with_variables() -> Compiler {
        Compiler {
            variables: Some(Vec::new()),
        }
    }

    /// Compiles a variable, which later expressions may name even if it is wrong.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn variable(&mut self, name: &str, text: &str, names: Names) -> Result<Program, String> {
        let compiled = self.compile(text, Gives::Anything, names);
        let of = compiled
            .as_ref()
            .map_or(Type::Dyn, |it| it.output_type().clone());
        if let Some(variables) = &mut self.variables {
            variables.retain(|(known, _)| known != name);
            variables.push((name.to_owned(), of));
        }
        compiled
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(&self, text: &str, gives: Gives, names: Names) -> Result<Program, String> {
        let mut environment = BASE.clone();
        if names.params {
            environment = environment.with_variable("params", Type::Dyn);
        }
        if names.authorizer {
            environment = environment
                .with_variable("authorizer", Type::authorizer())
                .with_variable("authorizer.requestResource", Type::resource_check());
        }
        if matches!(gives, Gives::Object | Gives::Patch) {
            environment = environment.for_mutation();
        }
        if let Some(variables) = &self.variables {
            environment = environment.with_fields("variables", variables.clone());
        }
        let program = environment
            .compile(text)
            .map_err(|issues| format!("compilation failed: {issues}"))?;
        gives.check(program.output_type())?;
        program
            .check_runnable()
            .map_err(|error| format!("program instantiation failed: {error}"))?;
        Ok(program)
    }
}

impl Gives {
    fn check(self, found: &Type) -> Result<(), String> {
        let wanted = match self {
            Gives::Anything => return Ok(()),
            Gives::Bool => vec![Type::Bool],
            Gives::Text => vec![Type::String],
            Gives::TextOrNull => vec![Type::String, Type::Null],
            Gives::Object => vec![Type::object("Object")],
            Gives::Patch => vec![Type::list(Type::object("JSONPatch"))],
        };
        if wanted.contains(found) {
            return Ok(());
        }
        let names: Vec<String> = wanted.iter().map(Type::declared_name).collect();
        let found = found.declared_name();
        Err(match names.as_slice() {
            [one] => format!("must evaluate to {one} but got {found}"),
            several => format!(
                "must evaluate to one of [{}] but got {found}",
                several.join(" ")
            ),
        })
    }
}

/// What every expression of a policy may name, the kinds of objects unknown.
pub(crate) fn base() -> Environment {
    BASE.clone()
}

fn text_shape(format: &str) -> Shape {
    Shape::string(format, None, None)
}

fn property(name: &str, shape: Shape) -> Property {
    Property {
        name: name.to_owned(),
        shape: Arc::new(shape),
        required: true,
    }
}

fn texts(names: &[&str]) -> Vec<Property> {
    let text = |name: &&str| property(name, text_shape(""));
    names.iter().map(text).collect()
}

fn list_of_text() -> Shape {
    Shape::list(Arc::new(text_shape("")), ListKind::Atomic, None)
}

fn map_of(shape: Shape) -> Shape {
    Shape::map(Arc::new(shape), None)
}

/// What `request` is.
pub fn request_shape() -> &'static Arc<Shape> {
    static SHAPE: LazyLock<Arc<Shape>> = LazyLock::new(|| {
        let kind = || Shape::object(texts(&["group", "version", "kind"]));
        let resource = || Shape::object(texts(&["group", "version", "resource"]));
        let mut user = texts(&["username", "uid"]);
        user.push(property("groups", list_of_text()));
        user.push(property("extra", map_of(list_of_text())));
        let mut fields = texts(&[
            "subResource",
            "requestSubResource",
            "name",
            "namespace",
            "operation",
        ]);
        fields.extend([
            property("kind", kind()),
            property("resource", resource()),
            property("requestKind", kind()),
            property("requestResource", resource()),
            property("userInfo", Shape::object(user)),
            property("dryRun", Shape::bool()),
            property("options", Shape::clone(Shape::any())),
        ]);
        Shape::object(fields).shared("kubernetes.AdmissionRequest")
    });
    &SHAPE
}

/// What `namespaceObject` is.
pub fn namespace_shape() -> &'static Arc<Shape> {
    static SHAPE: LazyLock<Arc<Shape>> = LazyLock::new(|| {
        let mut condition = texts(&["status", "type", "message", "reason"]);
        condition.push(property("lastTransitionTime", text_shape("date-time")));
        let conditions = Arc::new(Shape::object(condition));
        let mut metadata = texts(&[
            "name",
            "generateName",
            "namespace",
            "UID",
            "resourceVersion",
        ]);
        metadata.extend([
            property("labels", map_of(text_shape(""))),
            property("annotations", map_of(text_shape(""))),
            property("creationTimestamp", text_shape("date-time")),
            property("deletionTimestamp", text_shape("date-time")),
            property("deletionGracePeriodSeconds", Shape::int()),
            property("generation", Shape::int()),
            property("finalizers", list_of_text()),
        ]);
        let mut status = texts(&["phase"]);
        let conditions = Shape::list(conditions, ListKind::Atomic, None);
        status.push(property("conditions", conditions));
        let spec = vec![property("finalizers", list_of_text())];
        let namespace = Shape::object(vec![
            property("metadata", Shape::object(metadata)),
            property("spec", Shape::object(spec)),
            property("status", Shape::object(status)),
        ]);
        namespace.nullable(true).shared("kubernetes.Namespace")
    });
    &SHAPE
}

static BASE: LazyLock<Environment> = LazyLock::new(|| {
    Environment::new()
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_data("namespaceObject", namespace_shape())
        .with_data("request", request_shape())
});
