//! Policies that change objects.
//!
//! Contract: `apiserver/pkg/admission/plugin/policy/mutating`. What an expression gives is handed
//! out as plain data; merging it into the object is the caller's business.

use kinds::expressions::Gives;
use object::field::quote;
use object::{Map, Value};

use super::Policy;
use crate::expression::{Expression, Inputs, Sees, evaluate, policy_budget};

/// A policy that changes objects.
#[derive(Debug)]
pub struct MutatingPolicy {
    /// What it shares with others.
    pub policy: Policy,
    /// Whether it is asked again about what others changed after it.
    pub reinvoked: bool,
    mutations: Vec<(Sort, Expression)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Apply,
    Patch,
}

/// A change that a policy wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A partial object that is to be merged.
    Apply(Map),
    /// The steps of a JSON patch.
    Patch(Value),
}

impl MutatingPolicy {
    /// Reads a policy.
    pub fn read(policy: &Map) -> MutatingPolicy {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let (shared, compiler, names) = Policy::read(policy);
        let mutations = spec.get("mutations").and_then(Value::as_array);
        let mutation = |mutation: &Value| {
            let (sort, field, gives) = match mutation.str_at(&["patchType"]) {
                Some("JSONPatch") => (Sort::Patch, "jsonPatch", Gives::Patch),
                _ => (Sort::Apply, "applyConfiguration", Gives::Object),
            };
            let text = mutation.str_at(&[field, "expression"]).unwrap_or_default();
            (sort, Expression::compile(&compiler, text, gives, names))
        };
        MutatingPolicy {
            policy: shared,
            reinvoked: spec.str_at(&["reinvocationPolicy"]) == Some("IfNeeded"),
            mutations: mutations.unwrap_or_default().iter().map(mutation).collect(),
        }
    }

    /// How many changes it wants.
    pub fn len(&self) -> usize {
        self.mutations.len()
    }

    /// Whether it wants none.
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }

    /// The change at a place; or why there is none.
    pub fn change(&self, place: usize, inputs: &Inputs<'_>) -> Result<Change, String> {
        let (sort, expression) = &self.mutations[place];
        if let Some(error) = expression.compile_error() {
            return Err(error.to_owned());
        }
        let (variables, sees) = (&self.policy.variables, Sees::Everything);
        let mut budget = policy_budget();
        let take = |value: cel::Value<'_>| match sort {
            Sort::Apply => configuration(&value),
            Sort::Patch => steps(&value),
        };
        let results = evaluate([expression], variables, inputs, sees, &mut budget, take);
        let mut results = results.map_err(|error| error.to_string())?;
        results.pop().unwrap_or_else(|| Err("no value".to_owned()))
    }
}

/// The partial object that an expression made.
fn configuration(value: &cel::Value<'_>) -> Result<Change, String> {
    check_names(value).map_err(|error| format!("type mismatch: {error}"))?;
    match value.to_json() {
        Ok(Value::Object(object)) => Ok(Change::Apply(object)),
        Ok(_) => Err(format!("invalid return type: {}", value.type_of())),
        Err(error) => Err(error.to_string()),
    }
}

/// The steps of a patch that an expression made.
fn steps(value: &cel::Value<'_>) -> Result<Change, String> {
    let cel::Value::List(list) = value else {
        let text = "type mismatch: JSONPatchType.expression should evaluate to array";
        return Err(text.to_owned());
    };
    let mut steps = Vec::new();
    for step in list.items() {
        let step = step.map_err(|error| error.to_string())?;
        let cel::Value::Map(cel::Map::Made(made)) = &step else {
            return Err(format!(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, \
                 got element of {}",
                step.type_of()
            ));
        };
        let mut operation = Map::new();
        for (field, value) in &made.fields {
            if field == "value" {
                check_names(value).map_err(|error| format!("type mismatch: {error}"))?;
            }
            let json = value.to_json().map_err(|error| {
                format!(
                    "JSONPath valueExpression evaluated to a type that could not marshal to JSON: \
                     {error}"
                )
            })?;
            let unset = field == "from" && json.as_str() == Some("");
            if !unset {
                operation.insert(field.as_str(), json);
            }
        }
        for field in ["op", "path"] {
            operation.get_or_insert_with(field, || Value::from(""));
        }
        steps.push(Value::Object(operation));
    }
    Ok(Change::Patch(Value::Array(steps)))
}

/// Checks that objects are named as the fields that they stand in.
fn check_names(value: &cel::Value<'_>) -> Result<(), String> {
    match value {
        cel::Value::Map(cel::Map::Made(made)) => check_name(value, &made.name),
        _ => Ok(()),
    }
}

fn check_name(value: &cel::Value<'_>, expected: &str) -> Result<(), String> {
    match value {
        cel::Value::Map(cel::Map::Made(made)) => {
            if &*made.name != expected {
                return Err(format!(
                    "unexpected type name {}, expected {}, which matches field name path from \
                     root Object type",
                    quote(&made.name),
                    quote(expected)
                ));
            }
            made.fields
                .iter()
                .try_for_each(|(field, value)| check_name(value, &format!("{expected}.{field}")))
        }
        cel::Value::Map(cel::Map::Owned(entries)) => entries
            .values()
            .try_for_each(|value| check_name(value, expected)),
        cel::Value::List(list) => list
            .items()
            .filter_map(Result::ok)
            .try_for_each(|item| check_name(&item, expected)),
        _ => Ok(()),
    }
}
