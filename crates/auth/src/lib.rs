//! Who is asking, and whether they may.

mod authenticate;
mod authorize;
mod user;

pub use authenticate::{Authenticator, Credentials, Unauthorized};
pub use authorize::{Attributes, Decision, authorize};
pub use user::User;
