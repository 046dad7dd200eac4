//! Asking one webhook, and what its answer or its silence means for the request.

use std::sync::Arc;
use std::time::Instant;

use admission::attributes::Attributes;
use admission::client::{CallError, Limits};
use admission::expression::Held;
use admission::matching::{Candidate, Criteria, MatchError, Matched, Namespace};
use admission::metrics::Outcome;
use admission::review::{self, Denial, ReadError, Shown, Verdict};
use admission::webhook::{OnFailure, Role, Webhook};
use bytes::Bytes;
use kinds::Kind;
use object::Map;
use object::field::quote;
use object::group::GroupVersionResource;
use tracing::warn;

use super::matter::{Matter, kind_of};
use crate::error::{Error, Subject};
use crate::record::Stored;
use crate::{Resources, ids, subject};

/// No answer of an admission webhook is larger than this.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The form of the objects that a webhook or a policy asked for.
#[derive(Clone)]
pub(super) struct Form {
    pub(super) kind: Arc<Kind>,
    pub(super) resource: GroupVersionResource,
}

/// What a webhook answered.
pub(super) enum Answer {
    Said(Verdict),
    /// Nothing that can be used, and its configuration says to go on.
    FailedOpen,
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        Arc::ptr_eq(&self.kind, &other.kind) && self.resource == other.resource
    }
}

impl Resources {
    /// The record of the namespace that a request is in.
    pub(super) async fn namespace_of(
        &self,
        matter: &Matter<'_>,
    ) -> Result<Option<store::Record>, Error> {
        let namespace = matter.attributes().namespace.to_owned();
        if namespace.is_empty() {
            return Ok(None);
        }
        let kind = self.built_in(("", "v1", "namespaces"))?;
        let found = self.store.get(&kind.collection, &namespace).await;
        found.map_err(|error| Error::from_store(error, Subject::default))
    }

    /// In which form a request meets criteria, if it does.
    pub(super) fn form_for(
        &self,
        criteria: &Criteria,
        matter: &Matter<'_>,
        attributes: &Attributes<'_>,
        namespace: Option<&store::Record>,
    ) -> Result<Option<Form>, MatchError> {
        let stored = namespace.and_then(|record| Stored::new(&record.value).ok());
        let label = |key: &str| stored.as_ref().and_then(|stored| stored.label(key));
        let namespace = match (&stored, attributes.namespace) {
            (None, named) if !named.is_empty() => Namespace::Missing,
            _ => Namespace::Labelled(&label),
        };
        let candidate = Candidate {
            attributes,
            equivalents: &matter.equivalents,
            object: matter.object.as_ref(),
            old: matter.old.as_ref(),
            namespace,
        };
        let matched = criteria.matches(&candidate)?;
        Ok(matched.map(|matched| match matched {
            Matched::AsSent => Form {
                kind: Arc::clone(&matter.kind),
                resource: attributes.resource.clone(),
            },
            Matched::As(place) => Form {
                kind: Arc::clone(matter.equivalent_kind(place)),
                resource: matter.equivalents[place].clone(),
            },
        }))
    }

    /// Whether a webhook is to be asked, and in which form.
    pub(super) async fn concerns(
        &self,
        webhook: &Webhook,
        matter: &Matter<'_>,
        attributes: &Attributes<'_>,
        namespace: Option<&store::Record>,
    ) -> Result<Option<Form>, Error> {
        let form = self.form_for(&webhook.criteria, matter, attributes, namespace);
        let Some(form) = form.map_err(match_error)? else {
            return Ok(None);
        };
        if webhook.conditions.is_empty() {
            return Ok(Some(form));
        }
        let seen = self.seen(matter, attributes, &form, None).await?;
        let held = self
            .answering(matter.request.user, |authorizer| {
                let inputs = seen.inputs(None, authorizer);
                webhook.conditions.hold(&inputs, webhook.on_failure)
            })
            .await;
        match held {
            Held::Yes => Ok(Some(form)),
            Held::No => Ok(None),
            Held::Unknown(detail) => Err(Error::Forbidden {
                subject: subject(matter.request.kind, attributes.name),
                detail,
                causes: Vec::new(),
            }),
        }
    }

    /// Asks a webhook about objects in the form that it wants.
    pub(super) async fn ask(
        &self,
        webhook: &Webhook,
        role: Role,
        attributes: &Attributes<'_>,
        form: &Form,
        (object, old): (Option<&Map>, Option<&Map>),
    ) -> Result<Answer, Error> {
        if attributes.dry_run && !webhook.dry_run_safe {
            let name = quote(&webhook.name);
            return Err(Error::BadRequest(format!(
                "admission webhook {name} does not support dry run"
            )));
        }
        let began = Instant::now();
        let kind = kind_of(&form.kind);
        let shown = Shown {
            kind: &kind,
            resource: &form.resource,
            object,
            old,
        };
        let answered = self.call(webhook, role, attributes, shown).await;
        let outcome = match (&answered, webhook.on_failure) {
            (Ok(verdict), _) if verdict.allowed => Outcome::Allowed,
            (Ok(verdict), _) => {
                Outcome::Denied(Denial::by_webhook("", verdict.status.clone()).code)
            }
            (Err((_, code)), OnFailure::Refuse) => Outcome::Failed(*code),
            (Err((_, code)), OnFailure::Ignore) => Outcome::FailedOpen(*code),
        };
        let operation = attributes.operation;
        let took = began.elapsed();
        self.hooks
            .metrics
            .count(webhook, role, operation, took, outcome);
        match answered {
            Ok(verdict) => Ok(Answer::Said(verdict)),
            Err((reason, _)) => self.failed(webhook, &reason),
        }
    }

    /// What a failure to decide means.
    pub(super) fn failed(&self, webhook: &Webhook, reason: &str) -> Result<Answer, Error> {
        let text = webhook.failed_calling(reason);
        match webhook.on_failure {
            OnFailure::Refuse => Err(Error::Internal(text)),
            OnFailure::Ignore => {
                warn!(webhook = %webhook.name, reason, "a webhook failed and is left out");
                Ok(Answer::FailedOpen)
            }
        }
    }

    async fn call(
        &self,
        webhook: &Webhook,
        role: Role,
        attributes: &Attributes<'_>,
        shown: Shown<'_>,
    ) -> Result<Verdict, (String, u16)> {
        let version = webhook.version.ok_or_else(|| {
            let text = "could not create admission objects: webhook does not accept known \
                        AdmissionReview versions (v1, v1beta1)";
            (text.to_owned(), 400)
        })?;
        let endpoint = webhook.endpoint.as_ref();
        let endpoint = endpoint.map_err(|error| (error.to_string(), error.code()))?;
        let uid = ids::uuid();
        let question = Bytes::from(review::write(version, &uid, attributes, shown));
        let limits = Limits {
            timeout: webhook.timeout,
            answer_bytes_max: ANSWER_BYTES_MAX,
        };
        let answer = endpoint.post(question, limits, self).await;
        let answer = answer.map_err(|error| (call_text(&error), error.code()))?;
        review::read(version, &uid, role, &answer).map_err(|error| match &error {
            ReadError::Call(call) => (error.to_string(), call.code()),
            ReadError::Invalid(_) | ReadError::PatchType(_) => (error.to_string(), 503),
        })
    }
}

/// A configuration that cannot be used has not been called at all.
fn call_text(error: &CallError) -> String {
    match error {
        CallError::Setup(_) => error.to_string(),
        _ => format!("failed to call webhook: {error}"),
    }
}

fn match_error(error: MatchError) -> Error {
    match error {
        MatchError::NamespaceMissing(name) => Error::NotFound(Subject {
            resource: "namespaces".into(),
            name: name.as_str().into(),
            ..Subject::default()
        }),
        MatchError::Selector(text) => Error::Internal(text),
    }
}
