//! The variables of a policy: each is computed when it is first read, and then kept.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cel::{Bindings, CALL_COST_MAX, Error, Lazy};
use kinds::expressions::{Compiler, Names};
use object::Value;
use object::field::quote;

use super::Expression;

/// A variable of a policy.
#[derive(Debug)]
pub(crate) struct Variable {
    name: String,
    expression: Expression,
}

impl Variable {
    /// Reads `variables`; each may name those before it.
    pub(crate) fn read(
        list: Option<&Value>,
        compiler: &mut Compiler,
        names: Names,
    ) -> Vec<Variable> {
        let list = list.and_then(Value::as_array).unwrap_or_default();
        let mut variables = Vec::with_capacity(list.len());
        for variable in list {
            let text = |field| variable.str_at(&[field]).unwrap_or_default();
            let (name, expression) = (text("name"), text("expression"));
            let program = compiler.variable(name, expression, names);
            variables.push(Variable {
                name: name.to_owned(),
                expression: Expression::new(expression, program),
            });
        }
        variables
    }
}

/// Variables and what they came to so far.
pub(super) struct Variables<'c> {
    list: &'c [Variable],
    bindings: Bindings<'c>,
    values: Vec<OnceLock<Result<cel::Value<'c>, Error>>>,
    /// Whether a variable is being computed: one that reads itself has no value.
    computing: Vec<AtomicBool>,
    /// The variables themselves, which variables may read.
    own: OnceLock<&'c Variables<'c>>,
    cost: AtomicU64,
}

impl std::fmt::Debug for Variables<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.list.iter().map(|variable| &variable.name);
        out.debug_list().entries(names).finish()
    }
}

impl<'c> Variables<'c> {
    pub(super) fn new(list: &'c [Variable], bindings: Bindings<'c>) -> Variables<'c> {
        Variables {
            list,
            bindings,
            values: list.iter().map(|_| OnceLock::new()).collect(),
            computing: list.iter().map(|_| AtomicBool::new(false)).collect(),
            own: OnceLock::new(),
            cost: AtomicU64::new(0),
        }
    }

    /// Lets variables read each other.
    pub(super) fn close(&'c self) {
        let _ = self.own.set(self);
    }

    /// What was spent on variables since the last time.
    pub(super) fn take_cost(&self) -> u64 {
        self.cost.swap(0, Ordering::Relaxed)
    }

    fn compute(&self, at: usize) -> Result<cel::Value<'c>, Error> {
        let Variable { name, expression } = &self.list[at];
        let fails = |how: &str, why: &dyn std::fmt::Display| {
            let name = quote(name);
            Error::Evaluation(format!("composited variable {name} fails to {how}: {why}"))
        };
        let program = match &expression.program {
            Ok(program) => program,
            Err(error) => return Err(fails("compile", error)),
        };
        let bindings = self.bindings.clone();
        let bindings = match self.own.get() {
            Some(own) => bindings.bind_lazy("variables", *own),
            None => bindings,
        };
        let (value, cost) = program.evaluate_metered(&bindings, CALL_COST_MAX);
        self.cost.fetch_add(cost, Ordering::Relaxed);
        value.map_err(|error| fails("evaluate", &error))
    }
}

impl Lazy for Variables<'_> {
    fn field(&self, name: &str) -> Option<Result<cel::Value<'_>, Error>> {
        let at = self
            .list
            .iter()
            .rposition(|variable| variable.name == name)?;
        if let Some(value) = self.values[at].get() {
            return Some(value.clone());
        }
        if self.computing[at].swap(true, Ordering::Relaxed) {
            let text = format!("composited variable {} reads itself", quote(name));
            return Some(Err(Error::Evaluation(text)));
        }
        let value = self.compute(at);
        Some(self.values[at].get_or_init(|| value).clone())
    }
}
