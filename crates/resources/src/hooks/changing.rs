//! Policies that change objects, asked about a request.
//!
//! Contract: `apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go` and
//! `policy/generic/policy_dispatcher.go`.

use admission::attributes::{Attributes, Operation};
use admission::expression::Held;
use admission::policy::{Binding, Change, MutatingPolicy, Policy};
use admission::review::Denial;
use admission::webhook::OnFailure;
use apply::patch::json_patch::JsonPatch;
use kinds::Kind;
use object::field::quote;
use object::{Map, Text, Value};

use super::Set;
use super::ask::Form;
use super::matter::Matter;
use super::merging::merge;
use super::mutating::{Rounds, read_patched};
use super::policies::{details, object_name};
use crate::Resources;
use crate::error::Error;
use crate::meta::meta_text;

/// Refusals of these policies have the code of what is forbidden, whatever their reason.
const FORBIDDEN: i64 = 403;

/// A policy that a request concerns, with one binding and one of its parameters.
struct Invocation<'s> {
    policy: &'s MutatingPolicy,
    binding: &'s Binding,
    form: Form,
    params: Option<Map>,
}

/// Why a policy could not do what it should.
struct Failure {
    policy: Text,
    binding: Option<Text>,
    message: String,
    /// The machine-readable reason; empty for the usual one.
    reason: &'static str,
}

impl Resources {
    /// Lets every policy that a request concerns change its object.
    pub(super) async fn change_by_policies(
        &self,
        set: &Set,
        matter: &mut Matter<'_>,
        rounds: &mut Rounds,
    ) -> Result<(), Error> {
        if set.changing_policies.is_empty() || matter.operation == Operation::Delete {
            return Ok(());
        }
        rounds.policies.begin(rounds.again, matter.object.as_ref());
        let namespace = self.namespace_of(matter).await?;
        let mut failures = Vec::new();
        let invocations = self
            .invocations(set, matter, namespace.as_ref(), &mut failures)
            .await;
        let mut worked = false;
        for invocation in &invocations {
            let namespace = namespace.as_ref();
            worked |= self
                .invoke(invocation, matter, namespace, rounds, &mut failures)
                .await?;
        }
        // A change that could be made counts as one at the end, even if it changed nothing: so
        // policies that want to be asked again are, also about what they did themselves.
        if worked {
            rounds.policies.object_changed();
            rounds.changed = true;
        }
        rounds.policies.end(matter.object.as_ref());
        refuse(&matter.attributes(), matter, failures)
    }

    /// Which policies are to be asked, with what. Nothing has been changed yet.
    async fn invocations<'s>(
        &self,
        set: &'s Set,
        matter: &Matter<'_>,
        namespace: Option<&store::Record>,
        failures: &mut Vec<Failure>,
    ) -> Vec<Invocation<'s>> {
        let attributes = matter.attributes();
        let mut invocations = Vec::new();
        for bound in &set.changing_policies {
            let policy = &bound.policy.policy;
            let concerned = self.concerned(bound, policy, matter, &attributes, namespace);
            for concerned in concerned.await {
                match concerned {
                    Ok(concerned) => {
                        let one = |params| Invocation {
                            policy: &bound.policy,
                            binding: concerned.binding,
                            form: concerned.form.clone(),
                            params,
                        };
                        invocations.extend(concerned.params.into_iter().map(one));
                    }
                    Err(unusable) => {
                        let what = unusable.binding.map_or("policy", |_| "binding");
                        let message = format!("failed to configure {what}: {}", unusable.reason);
                        failures.extend(failure(policy, unusable.binding, message, ""));
                    }
                }
            }
        }
        invocations
    }

    /// Makes the changes of a policy; tells whether one of them could be made.
    async fn invoke(
        &self,
        invocation: &Invocation<'_>,
        matter: &mut Matter<'_>,
        namespace: Option<&store::Record>,
        rounds: &mut Rounds,
        failures: &mut Vec<Failure>,
    ) -> Result<bool, Error> {
        let Invocation {
            policy, binding, ..
        } = invocation;
        let shared = &policy.policy;
        let fail = |message| failure(shared, Some(binding), message, "Invalid");
        let held = {
            let attributes = matter.attributes();
            let seen = self
                .seen(matter, &attributes, &invocation.form, namespace)
                .await?;
            self.answering(matter.request.user, |authorizer| {
                let params = invocation.params.as_ref();
                shared.conditions_hold(&seen.inputs(params, authorizer))
            })
            .await
        };
        match held {
            Held::Yes => {}
            Held::No => return Ok(false),
            Held::Unknown(error) => {
                failures.extend(fail(error));
                return Ok(false);
            }
        }
        let id = invocation.id();
        if rounds.again && !rounds.policies.is_due(&id) {
            return Ok(false);
        }
        let before = matter.object.clone();
        let mut worked = false;
        for place in 0..policy.len() {
            if matter.object.is_none() {
                continue;
            }
            let made = self.change_once(invocation, place, matter, namespace);
            match made.await? {
                Ok(()) => worked = true,
                Err(error) => failures.extend(fail(error)),
            }
        }
        if matter.object != before {
            rounds.policies.object_changed();
            rounds.changed = true;
        }
        if policy.reinvoked {
            rounds.policies.asked(&id);
        }
        Ok(worked)
    }

    /// Makes one of the changes of a policy; the inner error is the policy's own.
    async fn change_once(
        &self,
        invocation: &Invocation<'_>,
        place: usize,
        matter: &mut Matter<'_>,
        namespace: Option<&store::Record>,
    ) -> Result<Result<(), String>, Error> {
        let form = &invocation.form;
        let change = {
            let attributes = matter.attributes();
            let seen = self.seen(matter, &attributes, form, namespace).await?;
            let change = self.answering(matter.request.user, |authorizer| {
                let params = invocation.params.as_ref();
                invocation
                    .policy
                    .change(place, &seen.inputs(params, authorizer))
            });
            match change.await {
                Ok(change) => change,
                Err(error) => return Ok(Err(error)),
            }
        };
        let object = self
            .in_form(&matter.kind, &form.kind, matter.object.as_ref())
            .await?;
        let changed = match changed(&form.kind, object.unwrap_or_default(), change) {
            Ok(Some(changed)) => read_patched(&form.kind, changed)?,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        };
        matter.object = self
            .in_form(&form.kind, &matter.kind, Some(&changed))
            .await?;
        Ok(Ok(()))
    }
}

impl Invocation<'_> {
    fn id(&self) -> String {
        let text = |field| {
            self.params
                .as_ref()
                .map_or("", |params| meta_text(params, field))
        };
        let (policy, binding) = (&self.policy.policy.name, &self.binding.name);
        format!("{policy}/{binding}/{}/{}", text("namespace"), text("name"))
    }
}

/// What a change makes of an object; `None` if it does not apply to this one.
fn changed(kind: &Kind, object: Map, change: Change) -> Result<Option<Value>, String> {
    match change {
        Change::Apply(partial) => merge(kind, object, partial).map(Some),
        Change::Patch(steps) => {
            let failed = |error: apply::patch::PatchError| format!("JSON Patch: {error}");
            let patch = JsonPatch::read(steps).map_err(failed)?;
            match patch.apply(Value::Object(object)) {
                Ok(patched) => Ok(Some(patched)),
                // A test that fails says that the patch is not for this object.
                Err(error) if error.to_string().ends_with("test failed") => Ok(None),
                Err(error) => Err(failed(error)),
            }
        }
    }
}

fn failure(
    policy: &Policy,
    binding: Option<&Binding>,
    message: String,
    reason: &'static str,
) -> Option<Failure> {
    (policy.on_failure == OnFailure::Refuse).then(|| Failure {
        policy: policy.name.clone(),
        binding: binding.map(|binding| binding.name.clone()),
        message,
        reason,
    })
}

fn refuse(
    attributes: &Attributes<'_>,
    matter: &Matter<'_>,
    failures: Vec<Failure>,
) -> Result<(), Error> {
    let Some(first) = failures.first() else {
        return Ok(());
    };
    let reason = match first.reason {
        "" => "Forbidden",
        reason => reason,
    };
    let messages: Vec<String> = failures.iter().map(Failure::text).collect();
    let name = object_name(attributes, matter.object.as_ref());
    Err(Error::Denied(Box::new(Denial {
        code: FORBIDDEN,
        reason: reason.into(),
        message: messages[0].clone(),
        details: Some(details(attributes, &name, messages)),
    })))
}

impl Failure {
    fn text(&self) -> String {
        let Failure {
            policy, message, ..
        } = self;
        match &self.binding {
            Some(binding) => {
                format!("policy '{policy}' with binding '{binding}' denied request: {message}")
            }
            None => format!("policy {} denied request: {message}", quote(policy)),
        }
    }
}
