//! Policies that refuse, asked about a request.
//!
//! Contract: `apiserver/pkg/admission/plugin/policy/validating/dispatcher.go`.

use std::sync::Arc;

use admission::attributes::Attributes;
use admission::expression::Inputs;
use admission::policy::{Binding, Denied, Findings, Policy};
use admission::review::{Denial, request_value};
use admission::webhook::OnFailure;
use cel::{Authorize, ResourceSubject};
use object::{Map, Text, Value, json, value};

use super::ask::Form;
use super::matter::{Matter, kind_of};
use super::{Bound, Set};
use crate::Resources;
use crate::error::Error;
use crate::meta::{meta_mut, meta_text};
use crate::record::Stored;

/// A request in the form that a policy asked for.
pub(super) struct Seen<'m> {
    matter: &'m Matter<'m>,
    /// The objects, if they are not in the form that was sent.
    converted: Option<(Option<Map>, Option<Map>)>,
    request: Value,
    resource: ResourceSubject,
    namespace: Option<Value>,
}

/// A binding that a request concerns, and the parameters it brings.
pub(super) struct Concerned<'s> {
    pub(super) binding: &'s Binding,
    pub(super) form: Form,
    pub(super) params: Vec<Option<Map>>,
}

/// Why a policy or a binding cannot be used.
pub(super) struct Unusable<'s> {
    pub(super) binding: Option<&'s Binding>,
    pub(super) reason: String,
}

/// A reason to refuse, and who has it.
struct Refusal {
    policy: Text,
    binding: Option<Text>,
    message: String,
    reason: Text,
}

impl Seen<'_> {
    /// What expressions may name.
    pub(super) fn inputs<'a>(
        &'a self,
        params: Option<&'a Map>,
        authorizer: &'a dyn Authorize,
    ) -> Inputs<'a> {
        let (object, old) = match &self.converted {
            Some((object, old)) => (object.as_ref(), old.as_ref()),
            None => (self.matter.object.as_ref(), self.matter.old.as_ref()),
        };
        Inputs {
            object,
            old,
            request: &self.request,
            namespace: self.namespace.as_ref(),
            params,
            authorizer,
            resource: self.resource.clone(),
        }
    }
}

impl Resources {
    /// Lets every policy that a request concerns refuse it.
    pub(super) async fn check_by_policies(
        &self,
        set: &Set,
        matter: &Matter<'_>,
    ) -> Result<(), Error> {
        if set.policies.is_empty() {
            return Ok(());
        }
        let namespace = self.namespace_of(matter).await?;
        let attributes = matter.attributes();
        let mut refusals = Vec::new();
        // Most policies ask for the same form.
        let mut last: Option<(Form, Seen<'_>)> = None;
        for bound in &set.policies {
            let policy = &bound.policy.policy;
            let concerned = self.concerned(bound, policy, matter, &attributes, namespace.as_ref());
            for concerned in concerned.await {
                match concerned {
                    Err(unusable) => refusals.extend(unusable_policy(policy, unusable)),
                    Ok(concerned) if concerned.params.is_empty() => {}
                    Ok(concerned) => {
                        let form = concerned.form;
                        let seen = match last.take() {
                            Some((known, seen)) if known == form => seen,
                            _ => {
                                self.seen(matter, &attributes, &form, namespace.as_ref())
                                    .await?
                            }
                        };
                        for params in &concerned.params {
                            let findings = self.answering(matter.request.user, |authorizer| {
                                let inputs = seen.inputs(params.as_ref(), authorizer);
                                bound.policy.check(&inputs)
                            });
                            let (binding, findings) = (concerned.binding, findings.await);
                            report(policy, binding, findings, matter, &mut refusals);
                        }
                        last = Some((form, seen));
                    }
                }
            }
        }
        match refusals.into_iter().next() {
            Some(first) => Err(refused(&attributes, matter, first)),
            None => Ok(()),
        }
    }

    /// The bindings of a policy that a request concerns, or why one cannot be used.
    pub(super) async fn concerned<'s, P>(
        &self,
        bound: &'s Bound<P>,
        policy: &'s Policy,
        matter: &Matter<'_>,
        attributes: &Attributes<'_>,
        namespace: Option<&store::Record>,
    ) -> Vec<Result<Concerned<'s>, Unusable<'s>>> {
        let unusable = |binding, reason| Err(Unusable { binding, reason });
        let form = match self.form_for(&policy.criteria, matter, attributes, namespace) {
            Ok(None) => return Vec::new(),
            Ok(Some(form)) => form,
            Err(error) => return vec![unusable(None, error.to_string())],
        };
        let kind = match self.param_kind(policy) {
            Ok(kind) => kind,
            Err(reason) => return vec![unusable(None, reason)],
        };
        let mut concerned = Vec::new();
        for binding in &bound.bindings {
            let matched = match &binding.criteria {
                None => Ok(true),
                Some(criteria) => {
                    let form = self.form_for(criteria, matter, attributes, namespace);
                    form.map(|form| form.is_some())
                }
            };
            match matched {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    concerned.push(unusable(Some(binding.as_ref()), error.to_string()));
                    continue;
                }
            }
            let params = self.parameters(kind.as_ref(), binding, attributes.namespace);
            concerned.push(match params.await {
                Ok(params) => Ok(Concerned {
                    binding,
                    form: form.clone(),
                    params,
                }),
                Err(reason) => unusable(Some(binding.as_ref()), reason),
            });
        }
        concerned
    }

    /// A request as expressions see it in a form.
    pub(super) async fn seen<'m>(
        &self,
        matter: &'m Matter<'m>,
        attributes: &Attributes<'_>,
        form: &Form,
        namespace: Option<&store::Record>,
    ) -> Result<Seen<'m>, Error> {
        let converted = if Arc::ptr_eq(&form.kind, &matter.kind) {
            None
        } else {
            let in_form = |object| self.in_form(&matter.kind, &form.kind, object);
            let object = in_form(matter.object.as_ref()).await?;
            Some((object, in_form(matter.old.as_ref()).await?))
        };
        let namespace = namespace.filter(|_| !attributes.is_namespace());
        let namespace = namespace.and_then(|record| {
            let stored = Stored::new(&record.value).ok()?;
            let mut tree = stored.tree(Some(record.revision)).ok()?;
            meta_mut(&mut tree).remove("ownerReferences");
            Some(Value::Object(tree))
        });
        let owned = |text: &str| text.to_owned();
        Ok(Seen {
            matter,
            converted,
            request: request_value(attributes, &kind_of(&form.kind), &form.resource),
            resource: ResourceSubject {
                group: owned(&attributes.resource.group),
                resource: owned(&attributes.resource.resource),
                subresource: owned(attributes.subresource),
                namespace: owned(attributes.namespace),
                name: owned(attributes.name),
                ..ResourceSubject::default()
            },
            namespace,
        })
    }
}

/// What becomes of what a policy found, as its binding says.
fn report(
    policy: &Policy,
    binding: &Binding,
    findings: Findings,
    matter: &Matter<'_>,
    refusals: &mut Vec<Refusal>,
) {
    let notes = matter.request.warnings;
    let refusal = |message: String, reason: Text| Refusal {
        policy: policy.name.clone(),
        binding: Some(binding.name.clone()),
        message,
        reason,
    };
    for denied in findings.denied {
        if binding.has("Audit") {
            let key = "validation.policy.admission.k8s.io/validation_failure";
            notes.annotate(key.to_owned(), failure(policy, binding, &denied));
        }
        if binding.has("Warn") {
            notes.add([format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                policy.name, binding.name, denied.message
            )]);
        }
        if binding.has("Deny") {
            refusals.push(refusal(denied.message, denied.reason));
        }
    }
    for (key, value) in findings.annotations {
        notes.annotate_more(format!("{}/{key}", policy.name), value);
    }
    let failed = findings.failed_annotations.into_iter();
    refusals.extend(failed.map(|message| refusal(message, Text::default())));
}

/// A validation that failed, as the audit log tells it.
fn failure(policy: &Policy, binding: &Binding, denied: &Denied) -> String {
    let text = |value: Value| String::from_utf8_lossy(&json::to_vec(&value)).into_owned();
    let actions = binding.actions.iter().cloned().map(Value::String);
    format!(
        "[{{\"message\":{},\"policy\":{},\"binding\":{},\"expressionIndex\":{},\
         \"validationActions\":{}}}]",
        text(denied.message.as_str().into()),
        text(policy.name.clone().into()),
        text(binding.name.clone().into()),
        denied.index,
        text(Value::Array(actions.collect())),
    )
}

fn unusable_policy(policy: &Policy, unusable: Unusable<'_>) -> Option<Refusal> {
    let what = if unusable.binding.is_some() {
        "binding"
    } else {
        "policy"
    };
    (policy.on_failure == OnFailure::Refuse).then(|| Refusal {
        policy: policy.name.clone(),
        binding: unusable.binding.map(|binding| binding.name.clone()),
        message: format!("failed to configure {what}: {}", unusable.reason),
        reason: Text::default(),
    })
}

fn refused(attributes: &Attributes<'_>, matter: &Matter<'_>, refusal: Refusal) -> Error {
    let Refusal {
        policy, message, ..
    } = &refusal;
    let message = match &refusal.binding {
        Some(binding) => format!(
            "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: \
             {message}"
        ),
        None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {message}"),
    };
    let reason = match refusal.reason.as_str() {
        "" => "Invalid".into(),
        _ => refusal.reason,
    };
    let name = object_name(attributes, matter.object.as_ref());
    Error::Denied(Box::new(Denial {
        code: 0,
        reason,
        message: format!("{} is forbidden: {message}", named(attributes, &name)),
        details: Some(details(attributes, &name, vec![message])),
    }))
}

/// The resource and name of a request, as messages have them.
fn named(attributes: &Attributes<'_>, name: &str) -> String {
    let resource = &attributes.resource;
    let dot = if resource.group.is_empty() { "" } else { "." };
    format!("{}{dot}{} \"{name}\"", resource.resource, resource.group)
}

/// The name of the object of a request, as far as there is one.
pub(super) fn object_name(attributes: &Attributes<'_>, object: Option<&Map>) -> Text {
    if !attributes.name.is_empty() {
        return attributes.name.into();
    }
    let text = |field| object.map_or("", |object| meta_text(object, field));
    match (text("name"), text("generateName")) {
        ("", "") => "Unknown".into(),
        ("", base) => base.into(),
        (name, _) => name.into(),
    }
}

/// The details of a refusal, with one cause for each message.
pub(super) fn details(attributes: &Attributes<'_>, name: &str, messages: Vec<String>) -> Value {
    let mut details = Map::new();
    details.insert("name", Value::from(name));
    if !attributes.resource.group.is_empty() {
        details.insert("group", Value::String(attributes.resource.group.clone()));
    }
    details.insert("kind", Value::String(attributes.resource.resource.clone()));
    let causes = messages
        .into_iter()
        .map(|message| value!({"message": message}));
    details.insert("causes", Value::Array(causes.collect()));
    Value::Object(details)
}
