//! What an expression may name: variables, types and functions.

use crate::check::check;
use crate::function;
use crate::parse::{Bindings, parse};
use crate::plan::plan;
use crate::program::Program;
use crate::shape::Shape;
use crate::source::{Issues, Location};
use crate::types::{CIDR, IP, OPTIONAL, Type};
use crate::validate::validate;
use std::collections::HashMap;
use std::sync::Arc;

/// The root of the objects that mutating policies make.
const OBJECT: &str = "Object";
/// The type of the steps of a patch.
const JSON_PATCH: &str = "JSONPatch";

/// What an expression may name, and so what it can be compiled against.
///
/// ```
/// use windlass_cel::{Bindings, Budget, Environment, Shape, Value};
/// use std::sync::Arc;
///
/// let shape = Arc::new(Shape::int());
/// let environment = Environment::new().with_data("self", &shape);
/// let program = environment.compile("self % 2 == 0").expect("a rule");
/// let data = object::Value::Int(3);
/// let bindings = Bindings::new().bind("self", Value::from_data(&data, &shape).expect("an int"));
/// let value = program.evaluate(&bindings, &mut Budget::unlimited()).expect("a boolean");
/// assert_eq!(value.as_bool(), Some(false));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: Vec<Variable>,
    objects: Arc<HashMap<Arc<str>, Arc<Shape>>>,
    /// Object types whose fields have types but no shape.
    typed: Vec<(String, Vec<(String, Type)>)>,
    is_mutation: bool,
    bindings: Bindings,
}

#[derive(Clone, Debug)]
struct Variable {
    name: String,
    of: Type,
    shape: Option<Arc<Shape>>,
}

/// The fields of an object type.
pub(crate) enum Fields<'a> {
    Shape(&'a Shape),
    Typed(&'a [(String, Type)]),
    /// An object that a mutating policy makes: any field, of any type.
    Made,
    JsonPatch,
}

impl Fields<'_> {
    pub(crate) fn field(&self, name: &str) -> Option<Type> {
        match self {
            Fields::Shape(shape) => shape.field(name).map(|it| it.of_type()),
            Fields::Typed(fields) => {
                let found = fields.iter().find(|(it, _)| it == name);
                found.map(|(_, of)| of.clone())
            }
            Fields::Made => Some(Type::Dyn),
            Fields::JsonPatch => match name {
                "op" | "path" | "from" => Some(Type::String),
                "value" => Some(Type::Dyn),
                // Of any other there is one too, but nothing is of its type.
                _ => Some(Type::Object("".into())),
            },
        }
    }
}

impl Environment {
    /// The libraries, and no variable.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// Adds a variable for data of a shape, whose object types need names.
    #[must_use]
    pub fn with_data(self, name: &str, shape: &Arc<Shape>) -> Environment {
        let of = shape.of_type();
        self.with_typed_data(name, of, shape)
    }

    /// Adds a variable for data that may be absent.
    #[must_use]
    pub fn with_optional_data(self, name: &str, shape: &Arc<Shape>) -> Environment {
        let of = Type::optional(shape.of_type());
        self.with_typed_data(name, of, shape)
    }

    fn with_typed_data(mut self, name: &str, of: Type, shape: &Arc<Shape>) -> Environment {
        let mut objects = HashMap::new();
        shape.collect_objects(&mut objects);
        let known = objects.keys().all(|name| self.objects.contains_key(name));
        if !known {
            Arc::make_mut(&mut self.objects).extend(objects);
        }
        self.variables.push(Variable {
            name: name.to_owned(),
            of,
            shape: Some(shape.clone()),
        });
        self
    }

    /// Adds a variable of a type.
    #[must_use]
    pub fn with_variable(mut self, name: &str, of: Type) -> Environment {
        self.variables.push(Variable {
            name: name.to_owned(),
            of,
            shape: None,
        });
        self
    }

    /// Adds the object types of a shape, whose values other variables hold.
    #[must_use]
    pub fn with_object_type(mut self, shape: &Arc<Shape>) -> Environment {
        let mut objects = HashMap::new();
        shape.collect_objects(&mut objects);
        Arc::make_mut(&mut self.objects).extend(objects);
        self
    }

    /// Adds a variable with fields of these types, such as the `variables` of a policy. Its value
    /// is bound with [`crate::Bindings::bind_lazy`].
    #[must_use]
    pub fn with_fields(mut self, name: &str, fields: Vec<(String, Type)>) -> Environment {
        let of = format!("kubernetes.{name}");
        let variable = Type::object(&of);
        self.typed.push((of, fields));
        self.with_variable(name, variable)
    }

    /// Adds what mutating policies have: object literals, JSON patches and their functions.
    #[must_use]
    pub fn for_mutation(mut self) -> Environment {
        self.is_mutation = true;
        self
    }

    /// Adds `cel.bind`, which names the value of an expression within another.
    #[must_use]
    pub fn with_bindings(mut self) -> Environment {
        self.bindings = Bindings::Offered;
        self
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn compile(&self, text: &str) -> Result<Program, Issues> {
        let (ast, issues) = parse(text, self.bindings)?;
        let (checked, mut issues) = check(ast, self, issues)?;
        validate(&checked, &mut issues);
        if !issues.is_empty() {
            return Err(issues);
        }
        let planned = plan(&checked);
        Ok(Program::new(text, checked, planned, self))
    }

    /// Compiles an expression that must also be able to run.
    ///
    /// # Errors
    /// All that is wrong with it, a constant that cannot be converted included.
    pub fn compile_to_run(&self, text: &str) -> Result<Program, Issues> {
        let program = self.compile(text)?;
        if let Err(message) = program.check_runnable() {
            let mut issues = Issues::new(crate::source::Source::new(text));
            issues.report(Location::NONE, message);
            return Err(issues);
        }
        Ok(program)
    }

    pub(crate) fn variable_type(&self, name: &str) -> Option<Type> {
        let variable = self.variables.iter().rev().find(|it| it.name == name);
        variable.map(|it| it.of.clone())
    }

    pub(crate) fn variable_shape(&self, name: &str) -> Option<&Arc<Shape>> {
        let variable = self.variables.iter().rev().find(|it| it.name == name);
        variable.and_then(|it| it.shape.as_ref())
    }

    /// The type that a name stands for.
    pub(crate) fn type_named(&self, name: &str) -> Option<Type> {
        let simple = match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "google.protobuf.Duration" => Type::Duration,
            "google.protobuf.Timestamp" => Type::Timestamp,
            "int" => Type::Int,
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "null_type" => Type::Null,
            "string" => Type::String,
            "type" => Type::Type(None),
            "uint" => Type::Uint,
            IP => Type::Opaque(IP, Arc::new([])),
            CIDR => Type::Opaque(CIDR, Arc::new([])),
            OPTIONAL => Type::optional(Type::Dyn),
            _ => {
                return self.object(name).map(|_| Type::object(name));
            }
        };
        Some(simple)
    }

    pub(crate) fn object(&self, name: &str) -> Option<Fields<'_>> {
        if self.is_mutation {
            let made = name
                .strip_prefix(OBJECT)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            if made {
                return Some(Fields::Made);
            }
            if name == JSON_PATCH {
                return Some(Fields::JsonPatch);
            }
        }
        let typed = self.typed.iter().rev().find(|(it, _)| it == name);
        match typed {
            Some((_, fields)) => Some(Fields::Typed(fields)),
            None => self.objects.get(name).map(|it| Fields::Shape(it)),
        }
    }

    pub(crate) fn has_function(&self, name: &str) -> bool {
        function::find(name).is_some() && (self.is_mutation || !name.starts_with("jsonpatch."))
    }
}
