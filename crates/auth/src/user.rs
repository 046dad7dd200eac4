//! A user as authentication leaves it.

use std::collections::BTreeMap;

use object::{Text, names};

/// Who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name that rules and messages use.
    pub name: Text,
    /// The unique id; may be empty.
    pub uid: Text,
    /// The groups, in the order the authenticator gave them.
    pub groups: Vec<Text>,
    /// What else is known of them, by key.
    pub extra: BTreeMap<Text, Vec<Text>>,
}

/// The group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of everyone who proved who they are.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of everyone else.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of users without credentials.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

impl User {
    /// A user who proved who they are.
    pub fn authenticated(name: &str, uid: &str, groups: &[&str]) -> User {
        let mut user = User {
            name: name.into(),
            uid: uid.into(),
            groups: groups.iter().map(|group| Text::from(*group)).collect(),
            extra: BTreeMap::new(),
        };
        user.join_authenticated();
        user
    }

    /// The user of a request without credentials.
    pub fn anonymous() -> User {
        User {
            name: ANONYMOUS.into(),
            groups: vec![UNAUTHENTICATED.into()],
            ..User::default()
        }
    }

    /// The server's own identity, for what it writes by itself.
    pub fn server() -> User {
        User::authenticated("system:apiserver", "", &[MASTERS])
    }

    /// Adds the group of everyone who proved who they are, unless it is already said whether
    /// they did.
    pub fn join_authenticated(&mut self) {
        if !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.into());
        }
    }

    /// Whether nothing is known of the user.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// Whether the user belongs to `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether no rule is needed for what the user does.
    pub fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }
}

/// The namespace and name behind the user name of a service account.
pub fn service_account(user_name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user_name
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    let valid = names::name_is_dns_label(namespace, false).is_empty()
        && names::name_is_dns_subdomain(name, false).is_empty();
    valid.then_some((namespace, name))
}

/// The name behind the user name of a node.
pub(crate) fn node(user_name: &str) -> Option<&str> {
    let name = user_name.strip_prefix("system:node:")?;
    names::name_is_dns_subdomain(name, false)
        .is_empty()
        .then_some(name)
}
