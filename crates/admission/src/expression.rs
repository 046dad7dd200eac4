//! Expressions of policies and conditions, evaluated over a request.
//!
//! Contract: `apiserver/pkg/admission/plugin/cel`, whose texts clients see.

mod variables;

use cel::{Authorize, Authorizer, Bindings, Budget, CALL_COST_MAX, Error, Program, Shape};
use cel::{ResourceCheck, ResourceSubject};
use kinds::expressions::{Compiler, Gives, Names, namespace_shape, request_shape};
use object::field::summary;
use object::{Map, Value};

use crate::webhook::OnFailure;
pub(crate) use variables::Variable;
use variables::Variables;

/// What all expressions of a policy may cost for one request.
pub(crate) const POLICY_COST_MAX: u64 = 10_000_000;
/// What all conditions of a policy or a webhook may cost for one request.
const CONDITIONS_COST_MAX: u64 = POLICY_COST_MAX / 4;
const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be run";

/// The values of what expressions name.
#[derive(Clone)]
pub struct Inputs<'a> {
    /// The object of the request.
    pub object: Option<&'a Map>,
    /// The object that is stored.
    pub old: Option<&'a Map>,
    /// The request itself, as [`crate::review::request_value`] has it.
    pub request: &'a Value,
    /// The namespace; `None` for what is in none, and for namespaces.
    pub namespace: Option<&'a Value>,
    /// The parameters of the policy.
    pub params: Option<&'a Map>,
    /// Who tells what users may do.
    pub authorizer: &'a (dyn Authorize + 'a),
    /// What the request is about, for questions about it.
    pub resource: ResourceSubject,
}

/// What an expression may see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sees {
    Everything,
    /// Not the namespace: conditions are checked before it is read.
    NoNamespace,
    /// Not the authorizer: messages need none.
    NoAuthorizer,
}

/// That expressions cost more than they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

impl std::fmt::Display for OutOfBudget {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(OUT_OF_BUDGET)
    }
}

/// An expression, compiled if that is possible.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    program: Result<Program, String>,
}

impl Expression {
    pub(crate) fn compile(
        compiler: &Compiler,
        text: &str,
        gives: Gives,
        names: Names,
    ) -> Expression {
        Expression {
            text: text.to_owned(),
            program: compiler.compile(text, gives, names),
        }
    }

    pub(crate) fn new(text: &str, program: Result<Program, String>) -> Expression {
        Expression {
            text: text.to_owned(),
            program,
        }
    }

    /// What is wrong with it, if it cannot be evaluated at all.
    pub(crate) fn compile_error(&self) -> Option<&str> {
        self.program.as_ref().err().map(String::as_str)
    }
}

/// Evaluates expressions one after the other within one budget.
///
/// `take` makes of each value what outlives the evaluation.
pub(crate) fn evaluate<'e, T>(
    expressions: impl IntoIterator<Item = &'e Expression>,
    variables: &[Variable],
    inputs: &Inputs<'_>,
    sees: Sees,
    budget: &mut Budget,
    take: impl Fn(cel::Value<'_>) -> Result<T, String>,
) -> Result<Vec<Result<T, String>>, OutOfBudget> {
    let bindings = bind(inputs, sees);
    let scope = Variables::new(variables, bindings.clone());
    scope.close();
    let bindings = bindings.bind_lazy("variables", &scope);
    let mut results = Vec::new();
    for expression in expressions {
        let program = match &expression.program {
            Ok(program) => program,
            Err(error) => {
                results.push(Err(format!("compilation error: {error}")));
                continue;
            }
        };
        let value = program.evaluate(&bindings, budget);
        let spent = scope.take_cost();
        if spent > budget.remaining() || value.as_ref().err() == Some(&Error::Budget) {
            return Err(OutOfBudget);
        }
        *budget = Budget::new(CALL_COST_MAX, budget.remaining() - spent);
        results.push(match value {
            Ok(value) => take(value),
            Err(error) => {
                let text = &expression.text;
                Err(format!("expression '{text}' resulted in error: {error}"))
            }
        });
    }
    Ok(results)
}

fn bind<'a>(inputs: &Inputs<'a>, sees: Sees) -> Bindings<'a> {
    let data = |map: Option<&'a Map>| match map {
        Some(map) => cel::Value::Map(cel::Map::Data(map, Shape::any())),
        None => cel::Value::Null,
    };
    let typed = |value: Option<&'a Value>, shape: &'static Shape| match value {
        Some(value) => cel::Value::from_data(value, shape).unwrap_or(cel::Value::Null),
        None => cel::Value::Null,
    };
    let namespace = inputs.namespace.filter(|_| sees != Sees::NoNamespace);
    let bindings = Bindings::new()
        .bind("object", data(inputs.object))
        .bind("oldObject", data(inputs.old))
        .bind("params", data(inputs.params))
        .bind("request", typed(Some(inputs.request), request_shape()))
        .bind("namespaceObject", typed(namespace, namespace_shape()));
    if sees == Sees::NoAuthorizer {
        return bindings;
    }
    let authorizer = Authorizer::new(inputs.authorizer);
    let check = ResourceCheck::new(authorizer.clone(), inputs.resource.clone());
    bindings
        .bind_authorizer("authorizer", authorizer)
        .bind_resource_check("authorizer.requestResource", check)
}

/// A budget for all expressions of a policy.
pub(crate) fn policy_budget() -> Budget {
    Budget::new(CALL_COST_MAX, POLICY_COST_MAX)
}

/// Conditions that all must hold for somebody to be asked at all.
#[derive(Debug, Default)]
pub struct Conditions(Vec<Expression>);

/// Whether conditions hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// All of them.
    Yes,
    /// One does not, or it cannot be told and nobody minds.
    No,
    /// It cannot be told, and the request is to be refused for it.
    Unknown(String),
}

impl Conditions {
    /// Reads `matchConditions`.
    pub(crate) fn read(list: Option<&Value>, compiler: &Compiler, names: Names) -> Conditions {
        let list = list.and_then(Value::as_array).unwrap_or_default();
        let text = |condition: &Value| {
            let text = condition.str_at(&["expression"]).unwrap_or_default();
            Expression::compile(compiler, text, Gives::Bool, names)
        };
        Conditions(list.iter().map(text).collect())
    }

    /// The conditions of a webhook.
    pub(crate) fn of_webhook(list: Option<&Value>) -> Conditions {
        let names = Names {
            params: false,
            authorizer: true,
        };
        Conditions::read(list, &Compiler::plain(), names)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all hold for a request.
    pub fn hold(&self, inputs: &Inputs<'_>, on_failure: OnFailure) -> Held {
        self.hold_with(&[], inputs, on_failure)
    }

    pub(crate) fn hold_with(
        &self,
        variables: &[Variable],
        inputs: &Inputs<'_>,
        on_failure: OnFailure,
    ) -> Held {
        if self.0.is_empty() {
            return Held::Yes;
        }
        let failed = |text: String| match on_failure {
            OnFailure::Refuse => Held::Unknown(text),
            OnFailure::Ignore => Held::No,
        };
        let mut budget = Budget::new(CALL_COST_MAX, CONDITIONS_COST_MAX);
        let sees = Sees::NoNamespace;
        let take = |value: cel::Value<'_>| Ok(value.as_bool());
        let results = evaluate(&self.0, variables, inputs, sees, &mut budget, take);
        let results = match results {
            Ok(results) => results,
            Err(error) => return failed(error.to_string()),
        };
        let mut errors = Vec::new();
        for result in results {
            match result {
                Ok(Some(false)) => return Held::No,
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        match errors.as_slice() {
            [] => Held::Yes,
            errors => failed(summary(errors)),
        }
    }
}
