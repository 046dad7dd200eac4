//! The question of permission and its answers.

use std::fmt;
use std::pin::Pin;

use object::Text;
use object::field::quote;

use crate::User;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes<'a> {
    /// Something of the API.
    Resource {
        /// The verb, such as `list`.
        verb: &'a str,
        /// The API group.
        group: &'a str,
        /// The resource, with its subresource if any: `pods/status`.
        resource: &'a str,
        /// The namespace, or empty.
        namespace: &'a str,
        /// The object, or empty.
        name: &'a str,
    },
    /// Any other path.
    Path {
        /// The HTTP method in lower case.
        verb: &'a str,
        /// The path.
        path: &'a str,
    },
}

impl<'a> Attributes<'a> {
    /// The verb.
    pub fn verb(&self) -> &'a str {
        match self {
            Attributes::Resource { verb, .. } | Attributes::Path { verb, .. } => verb,
        }
    }

    /// The namespace; empty for paths and for what has none.
    pub fn namespace(&self) -> &'a str {
        match self {
            Attributes::Resource { namespace, .. } => namespace,
            Attributes::Path { .. } => "",
        }
    }

    /// The same question about another verb.
    pub fn with_verb<'b>(self, verb: &'b str) -> Attributes<'b>
    where
        'a: 'b,
    {
        match self {
            Attributes::Resource {
                group,
                resource,
                namespace,
                name,
                ..
            } => Attributes::Resource {
                verb,
                group,
                resource,
                namespace,
                name,
            },
            Attributes::Path { path, .. } => Attributes::Path { verb, path },
        }
    }
}

/// The answer to a question of permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Allow,
    /// Stop, unless somebody else allows it.
    Deny,
    /// Stop, whatever others say.
    Forbid,
}

/// A verdict that is being found.
pub type Deciding<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// Decides what users may do.
pub trait Authorizer: Send + Sync {
    /// Decides, and says why.
    fn decide<'a>(&'a self, user: &'a User, attributes: Attributes<'a>) -> Deciding<'a>;

    /// Why the rules of a user cannot be listed, if they cannot.
    fn incomplete_rules(&self, _user: &User) -> Option<&'static str> {
        None
    }
}

/// A decision and why it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// The rule's origin, or what kept rules from being found; often empty.
    pub reason: String,
}

/// A refusal as its user is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The API group; empty for the core group and for paths.
    pub group: Text,
    /// The resource without its subresource; empty for paths.
    pub resource: Text,
    /// The object; may be empty.
    pub name: Text,
    /// Who cannot do what, and why.
    pub detail: String,
}

impl Refusal {
    /// Tells `user` that they cannot do this; `reason` may be empty.
    pub fn new(user: &User, attributes: Attributes<'_>, reason: &str) -> Refusal {
        let (user, verb) = (quote(&user.name), attributes.verb());
        let (detail, group, resource, name) = match attributes {
            Attributes::Path { path, .. } => {
                let detail = format!("User {user} cannot {verb} path {}", quote(path));
                (detail, "", "", "")
            }
            Attributes::Resource {
                group,
                resource,
                namespace,
                name,
                ..
            } => {
                let scope = match namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {}", quote(namespace)),
                };
                let detail = format!(
                    "User {user} cannot {verb} resource {} in API group {} {scope}",
                    quote(resource),
                    quote(group),
                );
                let resource = resource.split_once('/').map_or(resource, |(main, _)| main);
                (detail, group, resource, name)
            }
        };
        let mut detail = escape_html(&detail);
        if !reason.is_empty() {
            detail.push_str(": ");
            detail.push_str(reason);
        }
        Refusal {
            group: group.into(),
            resource: resource.into(),
            name: name.into(),
            detail,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.resource.is_empty() && self.group.is_empty() {
            return write!(out, "forbidden: {}", self.detail);
        }
        out.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(out, ".{}", self.group)?;
        }
        if !self.name.is_empty() {
            write!(out, " {}", quote(&self.name))?;
        }
        write!(out, " is forbidden: {}", self.detail)
    }
}

/// Refusals repeat what the client sent, so what a browser might run is escaped.
fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
