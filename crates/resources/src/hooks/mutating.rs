//! Webhooks that may change objects. They are asked one after the other.
//!
//! Whoever changes the object makes the chain run once more: the built-in plugins, and those that
//! were asked before the change and want to see what became of the object. Contract:
//! `apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go` and `admission/reinvocation.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use admission::attributes::Attributes;
use admission::review::{Denial, Verdict};
use admission::webhook::{Role, Webhook};
use apply::patch::json_patch::JsonPatch;
use kinds::Kind;
use object::field::quote;
use object::{Map, Value, json};

use super::Set;
use super::ask::{Answer, Form};
use super::matter::Matter;
use crate::Resources;
use crate::body;
use crate::error::Error;
use crate::options::FieldValidation;

/// What is remembered between the rounds of the chain.
#[derive(Default)]
pub(super) struct Rounds {
    /// The second round, not the first.
    pub(super) again: bool,
    /// Whether anything changed the object, so that a second round is due.
    pub(super) changed: bool,
    pub(super) policies: Reinvocation,
    pub(super) webhooks: Reinvocation,
}

/// Which of those that want to be asked again have been asked, and which must be.
#[derive(Default)]
pub(super) struct Reinvocation {
    asked: BTreeSet<String>,
    due: BTreeSet<String>,
    /// The object as the last of them left it.
    left: Option<Map>,
}

impl Reinvocation {
    /// The object changed: whoever was asked before must see it.
    pub(super) fn object_changed(&mut self) {
        self.due.append(&mut self.asked);
    }

    /// Begins a round; in the second, what others changed meanwhile counts.
    pub(super) fn begin(&mut self, again: bool, object: Option<&Map>) {
        if again && self.left.as_ref() != object {
            self.object_changed();
        }
    }

    pub(super) fn end(&mut self, object: Option<&Map>) {
        self.left = object.cloned();
    }

    pub(super) fn asked(&mut self, id: &str) {
        self.asked.insert(id.to_owned());
    }

    pub(super) fn is_due(&self, id: &str) -> bool {
        self.due.contains(id)
    }
}

impl Resources {
    /// Asks every mutating webhook that a request concerns, and makes the changes they want.
    pub(super) async fn ask_mutating(
        &self,
        set: &Set,
        matter: &mut Matter<'_>,
        rounds: &mut Rounds,
    ) -> Result<(), Error> {
        if set.mutating.is_empty() {
            return Ok(());
        }
        rounds.webhooks.begin(rounds.again, matter.object.as_ref());
        let namespace = self.namespace_of(matter).await?;
        for (place, webhook) in set.mutating.iter().enumerate() {
            let form = {
                let attributes = matter.attributes();
                let namespace = namespace.as_ref();
                self.concerns(webhook, matter, &attributes, namespace)
                    .await?
            };
            let Some(form) = form else {
                continue;
            };
            if rounds.again && !rounds.webhooks.is_due(&webhook.id) {
                continue;
            }
            let index = format!("round_{}_index_{place}", u8::from(rounds.again));
            let changed = self.change_by(&index, webhook, &form, matter).await;
            let mutated = matches!(changed, Ok(true));
            let (configuration, name) = (quote(&webhook.configuration), quote(&webhook.name));
            matter.request.warnings.annotate(
                format!("mutation.webhook.admission.k8s.io/{index}"),
                format!(
                    "{{\"configuration\":{configuration},\"webhook\":{name},\"mutated\":{mutated}}}"
                ),
            );
            if changed? {
                rounds.webhooks.object_changed();
                rounds.changed = true;
            }
            if webhook.reinvoked {
                rounds.webhooks.asked(&webhook.id);
            }
        }
        rounds.webhooks.end(matter.object.as_ref());
        Ok(())
    }

    /// Asks one webhook and makes its changes; tells whether there were any.
    async fn change_by(
        &self,
        index: &str,
        webhook: &Arc<Webhook>,
        form: &Form,
        matter: &mut Matter<'_>,
    ) -> Result<bool, Error> {
        let in_form = |object| self.in_form(&matter.kind, &form.kind, object);
        let object = in_form(matter.object.as_ref()).await?;
        let old = in_form(matter.old.as_ref()).await?;
        let attributes: Attributes<'_> = matter.attributes();
        let objects = (object.as_ref(), old.as_ref());
        let answer = self
            .ask(webhook, Role::Mutating, &attributes, form, objects)
            .await?;
        let notes = matter.request.warnings;
        let verdict = match answer {
            Answer::Said(verdict) => verdict,
            Answer::FailedOpen => {
                let key = format!("failed-open.mutation.webhook.admission.k8s.io/{index}");
                notes.annotate(key, webhook.name.to_string());
                return Ok(false);
            }
        };
        for (key, value) in &verdict.annotations {
            notes.annotate(format!("{}/{key}", webhook.name), value.to_string());
        }
        notes.add(verdict.warnings.iter().cloned());
        if !verdict.allowed {
            let denial = Denial::by_webhook(&webhook.name, verdict.status);
            return Err(Error::Denied(Box::new(denial)));
        }
        let Some((patch, new)) = self.patched(webhook, &form.kind, object, &verdict)? else {
            return Ok(false);
        };
        let (configuration, name) = (quote(&webhook.configuration), quote(&webhook.name));
        notes.annotate(
            format!("patch.webhook.admission.k8s.io/{index}"),
            format!(
                "{{\"configuration\":{configuration},\"webhook\":{name},\"patch\":{patch},\
                 \"patchType\":\"JSONPatch\"}}"
            ),
        );
        let new = self.in_form(&form.kind, &matter.kind, Some(&new)).await?;
        let changed = matter.object != new;
        matter.object = new;
        Ok(changed)
    }

    /// The patch of a verdict and what it makes of an object; `None` if it asks for nothing.
    fn patched(
        &self,
        webhook: &Webhook,
        kind: &Arc<Kind>,
        object: Option<Map>,
        verdict: &Verdict,
    ) -> Result<Option<(String, Map)>, Error> {
        if verdict.patch.is_empty() {
            return Ok(None);
        }
        let undecodable = |error: String| {
            let reason = format!("received undecodable patch in webhook response: {error}");
            self.failed(webhook, &reason).map(|_| None)
        };
        let patch = match json::parse(&verdict.patch) {
            Ok(Value::Array(operations)) if operations.is_empty() => return Ok(None),
            Ok(patch) => patch,
            Err(error) => return undecodable(error.to_string()),
        };
        let text = String::from_utf8_lossy(&json::to_vec(&patch)).into_owned();
        let patch = match JsonPatch::read(patch) {
            Ok(patch) => patch,
            Err(error) => return undecodable(error.to_string()),
        };
        let Some(object) = object else {
            let name = quote(&webhook.name);
            return Err(Error::Internal(format!(
                "admission webhook {name} attempted to modify the object, which is not supported \
                 for this operation"
            )));
        };
        let patched = patch.apply(Value::Object(object));
        let patched = patched.map_err(|error| Error::Internal(error.to_string()))?;
        let patched = read_patched(kind, patched)?;
        Ok(Some((text, patched)))
    }
}

/// Reads a document that somebody outside made as an object of its kind, defaults included.
pub(super) fn read_patched(kind: &Kind, patched: Value) -> Result<Map, Error> {
    let Value::Object(object) = patched else {
        let found = body::json_type(&patched);
        return Err(Error::Internal(format!(
            "json: cannot unmarshal {found} into Go value of type v1.{}",
            kind.kind
        )));
    };
    let read = body::into_shape(kind, object, FieldValidation::Ignore);
    let (wanted, _) = read.map_err(|error| Error::Internal(error.to_string()))?;
    let body::Wanted {
        mut object,
        managed_fields,
        ..
    } = wanted;
    if let Some(fields) = managed_fields {
        crate::meta::meta_mut(&mut object).insert("managedFields", fields);
    }
    Ok(object)
}
