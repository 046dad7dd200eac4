//! What a request asks for, as policies and webhooks see it.

use object::group::{GroupVersionKind, GroupVersionResource};
use object::{Map, Value};

/// The API group of configurations of admission.
const GROUP: &str = "admissionregistration.k8s.io";
/// What no webhook and no policy is asked about, so that nobody can lock the administrator out.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed, by whatever verb.
    Update,
    /// It is deleted, alone or with its collection.
    Delete,
    /// Something behind it is reached.
    Connect,
}

impl Operation {
    /// The name in rules and reviews.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// What a request asks for.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    /// What is done.
    pub operation: Operation,
    /// The kind of the object that the request carries.
    pub kind: GroupVersionKind,
    /// The resource of the path.
    pub resource: GroupVersionResource,
    /// The subresource of the path; empty for the object itself.
    pub subresource: &'a str,
    /// The object's name; empty if it is still to be made up.
    pub name: &'a str,
    /// The namespace; the name itself for a Namespace.
    pub namespace: &'a str,
    /// Whether nothing is written in the end.
    pub dry_run: bool,
    /// Who asks, as `userInfo`.
    pub user: Value,
    /// The options of the verb; `null` if it has none.
    pub options: Value,
}

impl Attributes<'_> {
    /// Whether the request is about admission itself.
    pub fn is_exempt(&self) -> bool {
        self.kind.group == GROUP && EXEMPT.iter().any(|kind| self.kind.kind == *kind)
    }

    /// Whether the request is about a Namespace.
    pub fn is_namespace(&self) -> bool {
        self.resource.group.is_empty() && self.resource.resource == "namespaces"
    }
}

/// The label of an object.
pub(crate) fn label<'a>(object: &'a Map, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}
