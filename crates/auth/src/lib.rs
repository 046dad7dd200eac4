//! Who is asking, and whether they may.

mod authenticate;
mod authorize;
mod impersonate;
mod rule;
mod rules;
mod user;

pub use authenticate::{Authenticator, Credentials, Unauthorized};
pub use authorize::{Attributes, Decision, Refusal, Verdict};
pub use impersonate::{Impersonation, NoName, Wanted};
pub use rule::Rule;
pub use rules::{Aggregation, Binding, Change, Held, Role, RoleRef, Rules, Subject};
pub use user::{User, service_account};
