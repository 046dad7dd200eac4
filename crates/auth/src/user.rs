//! A user as authentication leaves it.

use object::Text;

/// Who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name that rules and messages use.
    pub name: Text,
    /// The unique id; may be empty.
    pub uid: Text,
    /// The groups, in the order the authenticator gave them.
    pub groups: Vec<Text>,
}

/// The group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";

impl User {
    /// A user who proved who they are.
    pub fn authenticated(name: &str, uid: &str, groups: &[&str]) -> User {
        let mut groups: Vec<Text> = groups.iter().map(|group| Text::from(*group)).collect();
        groups.push("system:authenticated".into());
        User {
            name: name.into(),
            uid: uid.into(),
            groups,
        }
    }

    /// The user of a request without credentials.
    pub fn anonymous() -> User {
        User {
            name: "system:anonymous".into(),
            uid: Text::default(),
            groups: vec!["system:unauthenticated".into()],
        }
    }

    /// The server's own identity, for what it writes by itself.
    pub fn server() -> User {
        User::authenticated("system:apiserver", "", &[MASTERS])
    }

    /// Whether the user belongs to `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}
