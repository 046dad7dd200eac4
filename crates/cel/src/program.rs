//! A compiled expression.

use crate::authorize::{Authorizer, ResourceCheck};
use crate::check::Checked;
use crate::cost::{self, Estimate};
use crate::environment::Environment;
use crate::evaluate::{Context, Fault, Meter};
use crate::plan::Plan;
use crate::shape::Shape;
use crate::types::Type;
use crate::value::{Library, Map, Value};
use std::sync::Arc;

/// An expression that has been compiled; it can be evaluated by several threads at once.
#[derive(Debug)]
pub struct Program {
    text: Arc<str>,
    plan: Result<Plan, String>,
    output: Type,
    variables: Vec<String>,
    cost: Estimate,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Something that the expression does failed; in the words of upstream.
    #[error("{0}")]
    Evaluation(String),
    /// The expression costs more than one evaluation may.
    #[error("operation cancelled: actual cost limit exceeded")]
    CallLimit,
    /// The expression costs more than what is left for all of them.
    #[error("operation cancelled: actual cost limit exceeded")]
    Budget,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::OverLimit => Error::CallLimit,
            other => Error::Evaluation(other.to_string()),
        }
    }
}

/// What one evaluation may cost, and what is left for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    call_limit: u64,
    remaining: u64,
}

impl Budget {
    /// Each evaluation may cost `call_limit`, all together `total`.
    pub fn new(call_limit: u64, total: u64) -> Budget {
        Budget {
            call_limit,
            remaining: total,
        }
    }

    /// Whatever it costs; for expressions of our own.
    pub fn unlimited() -> Budget {
        Budget::new(u64::MAX, u64::MAX)
    }

    /// What is left.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Takes away what something else cost, such as a variable that an expression read.
    pub fn spend(&mut self, cost: u64) {
        self.remaining = self.remaining.saturating_sub(cost);
    }
}

/// The values of variables.
#[derive(Clone, Debug, Default)]
pub struct Bindings<'v> {
    values: Vec<(&'static str, Value<'v>)>,
}

/// Fields that are computed when they are read, such as the variables of a policy.
pub trait Lazy: std::fmt::Debug + Send + Sync {
    /// The value of a field, or none if there is no such field. Called each time it is read.
    fn field(&self, name: &str) -> Option<Result<Value<'_>, Error>>;
}

impl<'v> Bindings<'v> {
    /// No variable has a value.
    pub fn new() -> Bindings<'v> {
        Bindings::default()
    }

    /// Gives a variable its value.
    #[must_use]
    pub fn bind(mut self, name: &'static str, value: Value<'v>) -> Bindings<'v> {
        self.values.push((name, value));
        self
    }

    /// Gives a variable fields that are computed when they are read.
    #[must_use]
    pub fn bind_lazy(self, name: &'static str, lazy: &'v dyn Lazy) -> Bindings<'v> {
        self.bind(name, Value::Map(Map::Lazy(lazy)))
    }

    /// Gives a variable somebody who can be asked what is allowed.
    #[must_use]
    pub fn bind_authorizer(self, name: &'static str, authorizer: Authorizer<'v>) -> Bindings<'v> {
        self.bind(name, Value::Library(Library::Authorizer(authorizer)))
    }

    /// Gives a variable a question about a resource that only lacks a verb.
    #[must_use]
    pub fn bind_resource_check(self, name: &'static str, check: ResourceCheck<'v>) -> Bindings<'v> {
        self.bind(
            name,
            Value::Library(Library::ResourceCheck(Arc::new(check))),
        )
    }

    fn get(&self, name: &str) -> Option<&Value<'v>> {
        let found = self.values.iter().rev().find(|(it, _)| *it == name);
        found.map(|(_, value)| value)
    }
}

impl Program {
    pub(crate) fn new(
        text: &str,
        checked: Checked,
        plan: Result<Plan, String>,
        environment: &Environment,
    ) -> Program {
        let cost = cost::estimate(&checked, environment);
        let output = checked.type_of(&checked.ast.root).clone();
        Program {
            text: text.into(),
            plan,
            output,
            variables: checked.variables,
            cost,
        }
    }

    /// The expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The type of the value.
    pub fn output_type(&self) -> &Type {
        &self.output
    }

    /// Whether the expression reads the variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.variables.iter().any(|it| it == variable)
    }

    /// What an evaluation can cost, by the sizes that the shapes of variables allow.
    pub fn estimate(&self) -> Estimate {
        self.cost
    }

    /// Whether the expression can run.
    ///
    /// # Errors
    /// A constant cannot be converted or a pattern is none; every evaluation fails so.
    pub fn check_runnable(&self) -> Result<(), &str> {
        self.plan.as_ref().map(|_| ()).map_err(String::as_str)
    }

    /// Evaluates the expression and takes what it costs from the budget.
    ///
    /// # Errors
    /// The expression fails or costs too much.
    pub fn evaluate<'v>(
        &self,
        bindings: &Bindings<'v>,
        budget: &mut Budget,
    ) -> Result<Value<'v>, Error> {
        let plan = self
            .plan
            .as_ref()
            .map_err(|why| Error::Evaluation(why.clone()))?;
        let variables: Vec<(&str, Option<&Value<'v>>)> = self
            .variables
            .iter()
            .map(|name| (name.as_str(), bindings.get(name)))
            .collect();
        let limit = budget.call_limit.min(budget.remaining);
        let mut context = Context::new(&variables, plan.slots, Meter::new(limit));
        let outcome = context.evaluate(&plan.root);
        let cost = context.meter().cost();
        let is_exhausted = cost > budget.remaining
            || outcome == Err(Fault::OverLimit) && budget.remaining < budget.call_limit;
        budget.remaining = budget.remaining.saturating_sub(cost);
        if is_exhausted {
            return Err(Error::Budget);
        }
        outcome.map_err(Error::from)
    }

    /// Evaluates as [`Program::evaluate`] does, and says what it cost.
    pub fn evaluate_metered<'v>(
        &self,
        bindings: &Bindings<'v>,
        call_limit: u64,
    ) -> (Result<Value<'v>, Error>, u64) {
        let mut budget = Budget::new(call_limit, u64::MAX);
        let outcome = self.evaluate(bindings, &mut budget);
        (outcome, u64::MAX - budget.remaining())
    }
}

impl Shape {
    /// A shape with names for its object types, ready to be shared.
    pub fn shared(self, name: &str) -> Arc<Shape> {
        Arc::new(self.named(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Program>();
    }
}
