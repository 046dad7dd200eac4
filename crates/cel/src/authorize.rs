//! Asking whether somebody may do something.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/library/authz.go`. Who answers is handed in: this room knows
//! no rules.

use std::sync::Arc;

/// Answers the questions of expressions.
pub trait Authorize: Send + Sync {
    /// Whether it is allowed.
    fn authorize(&self, question: &Question) -> Decision;
}

impl std::fmt::Debug for dyn Authorize + '_ {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Authorize")
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// On whose behalf; without one, the user of the request.
    pub service_account: Option<ServiceAccount>,
    /// What should be done.
    pub verb: String,
    /// What it should be done to.
    pub subject: Subject,
}

/// What something should be done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A path that is no resource.
    Path(String),
    /// A resource.
    Resource(ResourceSubject),
}

/// A resource as a question names it; what it does not name is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceSubject {
    /// The API group.
    pub group: String,
    /// The plural name.
    pub resource: String,
    /// What below the resource.
    pub subresource: String,
    /// Where.
    pub namespace: String,
    /// Which one.
    pub name: String,
    /// Which of them, by fields.
    pub field_selector: String,
    /// Which of them, by labels.
    pub label_selector: String,
}

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub is_allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong, if something did.
    pub error: Option<String>,
}

/// Who to ask, and on whose behalf.
#[derive(Clone, Debug)]
pub struct Authorizer<'v> {
    asked: &'v (dyn Authorize + 'v),
    service_account: Option<Arc<ServiceAccount>>,
}

impl<'v> Authorizer<'v> {
    /// Questions on behalf of the user of the request.
    pub fn new(asked: &'v (dyn Authorize + 'v)) -> Authorizer<'v> {
        Authorizer {
            asked,
            service_account: None,
        }
    }

    pub(crate) fn as_service_account(&self, namespace: &str, name: &str) -> Authorizer<'v> {
        Authorizer {
            asked: self.asked,
            service_account: Some(Arc::new(ServiceAccount {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })),
        }
    }

    pub(crate) fn ask(&self, verb: &str, subject: Subject) -> Decision {
        self.asked.authorize(&Question {
            service_account: self.service_account.as_deref().cloned(),
            verb: verb.to_owned(),
            subject,
        })
    }
}

/// A question about a path, without the verb.
#[derive(Clone, Debug)]
pub struct PathCheck<'v> {
    pub(crate) authorizer: Authorizer<'v>,
    pub(crate) path: String,
}

/// The group of a question.
#[derive(Clone, Debug)]
pub struct GroupCheck<'v> {
    pub(crate) authorizer: Authorizer<'v>,
    pub(crate) group: String,
}

/// A question about a resource, without the verb.
#[derive(Clone, Debug)]
pub struct ResourceCheck<'v> {
    pub(crate) authorizer: Authorizer<'v>,
    pub(crate) subject: ResourceSubject,
}

impl<'v> ResourceCheck<'v> {
    /// A question about the resource of the request: `authorizer.requestResource`.
    pub fn new(authorizer: Authorizer<'v>, subject: ResourceSubject) -> ResourceCheck<'v> {
        ResourceCheck {
            authorizer,
            subject,
        }
    }
}
