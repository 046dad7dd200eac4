//! Admission policies and their bindings, read and compiled once.

mod mutating;
mod validating;

use kinds::expressions::{Compiler, Names};
use object::labels::LabelSelector;
use object::{Map, Text, Value};

use crate::expression::{Conditions, Held, Inputs, Variable};
use crate::matching::Criteria;
use crate::webhook::OnFailure;
pub use mutating::{Change, MutatingPolicy};
pub use validating::{Denied, Findings, ValidatingPolicy};

/// What both sorts of policies share.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: Text,
    /// Which requests it is about.
    pub criteria: Criteria,
    /// The kind of its parameters: `apiVersion` and `kind`.
    pub param_kind: Option<(Text, Text)>,
    /// What happens when it cannot decide.
    pub on_failure: OnFailure,
    conditions: Conditions,
    variables: Vec<Variable>,
}

impl Policy {
    /// Reads a policy; gives the compiler that knows its variables, and what it may name.
    fn read(policy: &Map) -> (Policy, Compiler, Names) {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let text = |path: &[&str]| Text::from(spec.str_at(path).unwrap_or_default());
        let param_kind = spec.get("paramKind").filter(|kind| !kind.is_null());
        let names = Names {
            params: param_kind.is_some(),
            authorizer: true,
        };
        let mut compiler = Compiler::with_variables();
        let variables = Variable::read(spec.get("variables"), &mut compiler, names);
        let constraints = spec.get("matchConstraints").unwrap_or(&Value::Null);
        let shared = Policy {
            name: name_of(policy),
            criteria: Criteria::of_match_resources(constraints),
            param_kind: param_kind.map(|_| {
                let version = text(&["paramKind", "apiVersion"]);
                (version, text(&["paramKind", "kind"]))
            }),
            on_failure: OnFailure::read(spec.str_at(&["failurePolicy"])),
            conditions: Conditions::read(spec.get("matchConditions"), &compiler, names),
            variables,
        };
        (shared, compiler, names)
    }

    /// Whether the conditions of the policy hold.
    pub fn conditions_hold(&self, inputs: &Inputs<'_>) -> Held {
        let conditions = &self.conditions;
        conditions.hold_with(&self.variables, inputs, self.on_failure)
    }
}

/// Where a policy applies, and with which parameters.
#[derive(Debug)]
pub struct Binding {
    /// Its name.
    pub name: Text,
    /// The policy that it binds.
    pub policy: Text,
    /// Which requests it is about; all that the policy is about if it does not say.
    pub criteria: Option<Criteria>,
    /// Where the parameters are.
    pub params: Option<ParamRef>,
    /// What becomes of a denial, as the binding lists it.
    pub actions: Vec<Text>,
}

/// Where the parameters of a binding are.
#[derive(Debug)]
pub struct ParamRef {
    /// Their namespace; empty for that of the request.
    pub namespace: Text,
    /// Which ones.
    pub which: Which,
    /// Whether none at all is a failure.
    pub required: bool,
}

/// Which parameters are meant.
#[derive(Debug)]
pub enum Which {
    /// The one with this name.
    Named(Text),
    /// All that this selects.
    Selected(Result<LabelSelector, String>),
}

impl Binding {
    /// Reads a binding.
    pub fn read(binding: &Map) -> Binding {
        let spec = binding.get("spec").unwrap_or(&Value::Null);
        let resources = spec.get("matchResources").filter(|it| !it.is_null());
        let params = spec.get("paramRef").filter(|it| !it.is_null());
        let actions = spec.get("validationActions").and_then(Value::as_array);
        let actions = actions.unwrap_or_default().iter().filter_map(Value::as_str);
        Binding {
            name: name_of(binding),
            policy: spec.str_at(&["policyName"]).unwrap_or_default().into(),
            criteria: resources.map(Criteria::of_match_resources),
            params: params.map(ParamRef::read),
            actions: actions.map(Text::from).collect(),
        }
    }

    /// Whether a denial leads to this.
    pub fn has(&self, action: &str) -> bool {
        self.actions.iter().any(|known| known == action)
    }
}

impl ParamRef {
    fn read(reference: &Value) -> ParamRef {
        let text = |field| reference.str_at(&[field]).unwrap_or_default();
        let which = match text("name") {
            "" => {
                let selector = reference.get("selector").unwrap_or(&Value::Null);
                Which::Selected(LabelSelector::from_label_selector_value(selector))
            }
            name => Which::Named(name.into()),
        };
        ParamRef {
            namespace: text("namespace").into(),
            which,
            required: text("parameterNotFoundAction") == "Deny",
        }
    }
}

fn name_of(object: &Map) -> Text {
    let metadata = object.get("metadata");
    let name = metadata.and_then(|metadata| metadata.str_at(&["name"]));
    name.unwrap_or_default().into()
}
