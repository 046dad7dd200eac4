//! What expressions learn about what users may do.
//!
//! Evaluation does not wait, but whoever decides may have to. So what is not known yet is noted and
//! answered with an error, found out after the evaluation, and then the evaluation begins anew.

use std::sync::{Mutex, PoisonError};

use auth::{Attributes, Decision as Decided, User};
use cel::{Authorize, Decision, Question, ServiceAccount, Subject};

use crate::Resources;

/// Evaluations of one expression until everything it asks is known; more asks too much.
const ROUNDS_MAX: usize = 64;

#[derive(Default)]
struct Answers {
    inner: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    answers: Vec<(Question, Decision)>,
    missing: Vec<Question>,
}

impl Authorize for Answers {
    fn authorize(&self, question: &Question) -> Decision {
        let mut known = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, decision)) = known.answers.iter().find(|(it, _)| it == question) {
            return decision.clone();
        }
        known.missing.push(question.clone());
        Decision {
            error: Some("not known yet".to_owned()),
            ..Decision::default()
        }
    }
}

impl Answers {
    fn take_missing(&self) -> Vec<Question> {
        let mut known = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut known.missing)
    }

    fn learn(&self, question: Question, decision: Decision) {
        let mut known = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        known.answers.push((question, decision));
    }
}

impl Resources {
    /// Evaluates something that may ask what `user` may do.
    pub(super) async fn answering<T>(
        &self,
        user: &User,
        evaluate: impl Fn(&dyn Authorize) -> T,
    ) -> T {
        let answers = Answers::default();
        for _ in 0..ROUNDS_MAX {
            let value = evaluate(&answers);
            let missing = answers.take_missing();
            if missing.is_empty() {
                return value;
            }
            for question in missing {
                let decision = self.answer(user, &question).await;
                answers.learn(question, decision);
            }
        }
        evaluate(&answers)
    }

    async fn answer(&self, user: &User, question: &Question) -> Decision {
        let account = question.service_account.as_ref().map(account_user);
        let user = account.as_ref().unwrap_or(user);
        let verb = question.verb.as_str();
        let resource;
        let attributes = match &question.subject {
            Subject::Path(path) => Attributes::Path { verb, path },
            Subject::Resource(subject) => {
                resource = match subject.subresource.as_str() {
                    "" => subject.resource.clone(),
                    nested => format!("{}/{nested}", subject.resource),
                };
                Attributes::Resource {
                    verb,
                    group: &subject.group,
                    resource: &resource,
                    namespace: &subject.namespace,
                    name: &subject.name,
                }
            }
        };
        match self.explain(user, attributes).await {
            Ok(verdict) => Decision {
                is_allowed: verdict.decision == Decided::Allow,
                reason: verdict.reason,
                error: None,
            },
            Err(error) => Decision {
                error: Some(error.to_string()),
                ..Decision::default()
            },
        }
    }
}

fn account_user(account: &ServiceAccount) -> User {
    let ServiceAccount { namespace, name } = account;
    User {
        name: format!("system:serviceaccount:{namespace}:{name}").into(),
        groups: vec![
            "system:serviceaccounts".into(),
            format!("system:serviceaccounts:{namespace}").into(),
        ],
        ..User::default()
    }
}
