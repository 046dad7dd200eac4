//! Who is asking, and whether they may.

mod authenticate;
mod authorize;
pub mod authorizers;
pub mod der;
mod document;
mod impersonate;
mod issuer;
mod jwt;
mod keys;
pub mod oidc;
mod outside;
mod rule;
mod rules;
mod signing_request;
mod tokens;
mod trust;
mod user;
pub mod webhook;

pub use authenticate::{
    Anonymous, Authenticator, Credentials, Peer, Unauthorized, is_ignored_bearer,
};
pub use authorize::{Attributes, Authorizer, Deciding, Decision, Refusal, Verdict};
pub use document::ConfigError;
pub use impersonate::{Actor, Impersonation, NoName, Wanted};
pub use issuer::{Claims, Issuer, IssuerOptions, LEEWAY_SECONDS, Lifetime, Named};
pub use keys::{KeyError, PublicKey, SigningKey, to_pem};
pub use outside::{Asking, Outside};
pub use rule::Rule;
pub use rules::{Aggregation, Binding, Change, Held, Role, RoleRef, Rules, Subject};
pub use signing_request::SigningRequest;
pub use tokens::{
    Answer, Cache, Digest, Known, Presented, StaticTokens, TokenAuthenticator, digest_of,
    implied_audiences, read_token_file,
};
pub use trust::Trust;
pub use user::{User, service_account};
