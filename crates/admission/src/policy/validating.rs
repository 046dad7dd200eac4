//! Policies that refuse.
//!
//! Contract: `apiserver/pkg/admission/plugin/policy/validating/validator.go`.

use kinds::expressions::{Gives, Names};
use object::{Map, Text, Value};

use super::Policy;
use crate::expression::{Expression, Held, Inputs, Sees, evaluate, policy_budget};
use crate::webhook::OnFailure;

/// A message that an expression made is at most this long.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// What an audit annotation says is cut to this.
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;

/// A policy that refuses what does not meet its validations.
#[derive(Debug)]
pub struct ValidatingPolicy {
    /// What it shares with others.
    pub policy: Policy,
    validations: Vec<Validation>,
    annotations: Vec<(Text, Expression)>,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: Text,
}

/// What a policy finds about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Why it would be refused.
    pub denied: Vec<Denied>,
    /// Notes for the audit log.
    pub annotations: Vec<(Text, String)>,
    /// Notes that cannot be made, for which the request is refused whatever the binding says.
    pub failed_annotations: Vec<String>,
}

/// One reason to refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Which validation.
    pub index: usize,
    /// What is told.
    pub message: String,
    /// The machine-readable reason; empty for the usual one.
    pub reason: Text,
}

/// What an expression came to.
enum Came {
    To(String),
    ToNothing,
    ToBool(bool),
    ToOther(String),
}

impl ValidatingPolicy {
    /// Reads a policy.
    pub fn read(policy: &Map) -> ValidatingPolicy {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let list = |field| {
            spec.get(field)
                .and_then(Value::as_array)
                .unwrap_or_default()
        };
        let (shared, compiler, names) = Policy::read(policy);
        let silent = Names {
            authorizer: false,
            ..names
        };
        let compile = |text: &str, gives, names| Expression::compile(&compiler, text, gives, names);
        let validation = |validation: &Value| {
            let text = |field| validation.str_at(&[field]).unwrap_or_default();
            let message = text("messageExpression");
            Validation {
                expression: compile(text("expression"), Gives::Bool, names),
                message: text("message").trim().to_owned(),
                message_expression: (!message.is_empty())
                    .then(|| compile(message, Gives::Text, silent)),
                reason: text("reason").into(),
            }
        };
        let annotation = |annotation: &Value| {
            let text = |field| annotation.str_at(&[field]).unwrap_or_default();
            let value = compile(text("valueExpression"), Gives::TextOrNull, names);
            (Text::from(text("key")), value)
        };
        ValidatingPolicy {
            validations: list("validations").iter().map(validation).collect(),
            annotations: list("auditAnnotations").iter().map(annotation).collect(),
            policy: shared,
        }
    }

    /// Looks at a request.
    pub fn check(&self, inputs: &Inputs<'_>) -> Findings {
        match self.policy.conditions_hold(inputs) {
            Held::Yes => {}
            Held::No => return Findings::default(),
            Held::Unknown(error) => return self.failed(error),
        }
        let variables = &self.policy.variables;
        let mut budget = policy_budget();
        let expressions = self.validations.iter().map(|it| &it.expression);
        let sees = Sees::Everything;
        let results = evaluate(expressions, variables, inputs, sees, &mut budget, take);
        let results = match results {
            Ok(results) => results,
            Err(error) => return self.failed(error.to_string()),
        };
        let mut findings = Findings::default();
        for (index, (validation, result)) in self.validations.iter().zip(results).enumerate() {
            let denied = match result {
                Ok(Came::ToBool(true)) => continue,
                Ok(_) => {
                    let message = validation.message_expression.as_ref().map(|message| {
                        let sees = Sees::NoAuthorizer;
                        evaluate([message], variables, inputs, sees, &mut budget, take)
                    });
                    let computed = match message {
                        None => None,
                        Some(Ok(mut results)) => results.pop(),
                        Some(Err(error)) => {
                            let text = format!("failed messageExpression: {error}");
                            findings.denied.extend(self.failure(index, text));
                            continue;
                        }
                    };
                    Some(validation.denied(index, computed))
                }
                Err(error) => self.failure(index, error),
            };
            findings.denied.extend(denied);
        }
        self.annotate(inputs, &mut findings);
        findings
    }

    /// The notes for the audit log.
    fn annotate(&self, inputs: &Inputs<'_>, findings: &mut Findings) {
        if self.annotations.is_empty() {
            return;
        }
        let mut budget = policy_budget();
        let expressions = self.annotations.iter().map(|(_, expression)| expression);
        let (variables, sees) = (&self.policy.variables, Sees::Everything);
        let results = evaluate(expressions, variables, inputs, sees, &mut budget, take);
        let results = match results {
            Ok(results) => results,
            Err(error) => {
                *findings = self.failed(error.to_string());
                return;
            }
        };
        for ((key, expression), result) in self.annotations.iter().zip(results) {
            let refuses = self.policy.on_failure == OnFailure::Refuse;
            match result {
                Ok(Came::To(text)) => {
                    let text = text.trim();
                    let cut = text.floor_char_boundary(ANNOTATION_BYTES_MAX);
                    if !text.is_empty() {
                        let note = (key.clone(), text[..cut].to_owned());
                        findings.annotations.push(note);
                    }
                }
                Ok(Came::ToNothing) => {}
                Ok(Came::ToBool(_)) => {}
                Ok(Came::ToOther(of)) => findings.failed_annotations.push(format!(
                    "valueExpression '{}' resulted in unsupported return type: {of}. Return type \
                     must be either string or null.",
                    expression.text
                )),
                Err(error) if refuses => findings.failed_annotations.push(error),
                Err(_) => {}
            }
        }
    }

    /// What becomes of a policy that cannot decide at all.
    fn failed(&self, message: String) -> Findings {
        Findings {
            denied: self.failure(0, message).into_iter().collect(),
            ..Findings::default()
        }
    }

    fn failure(&self, index: usize, message: String) -> Option<Denied> {
        let reason = Text::default();
        (self.policy.on_failure == OnFailure::Refuse).then_some(Denied {
            index,
            message,
            reason,
        })
    }
}

impl Validation {
    fn denied(&self, index: usize, computed: Option<Result<Came, String>>) -> Denied {
        let computed = match &computed {
            Some(Ok(Came::To(text))) => text.trim(),
            _ => "",
        };
        let usable = computed.len() <= MESSAGE_BYTES_MAX && !computed.contains('\n');
        let message = match (computed, self.message.as_str()) {
            (computed, _) if usable && !computed.is_empty() => computed.to_owned(),
            (_, "") => format!("failed expression: {}", self.expression.text.trim()),
            (_, message) => message.to_owned(),
        };
        Denied {
            index,
            message,
            reason: self.reason.clone(),
        }
    }
}

fn take(value: cel::Value<'_>) -> Result<Came, String> {
    Ok(match value {
        cel::Value::Null => Came::ToNothing,
        cel::Value::Bool(flag) => Came::ToBool(flag),
        cel::Value::String(text) => Came::To(text.to_string()),
        other => Came::ToOther(other.type_of().to_string()),
    })
}
