//! From credentials to a user.
//!
//! A request without credentials is anonymous; a bearer token that nobody knows is refused, even
//! where anonymous would be let in. Other schemes than `Bearer` count as no credentials.

use std::sync::Arc;

use object::Text;
use ring::digest;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::User;

/// What a request brings along.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
    /// The user of the connection's verified client certificate.
    pub certificate: Option<&'a Arc<User>>,
}

/// The credentials are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unauthorized")]
pub struct Unauthorized;

/// Knows the users.
pub struct Authenticator {
    anonymous: Arc<User>,
    tokens: Vec<(Digest, Arc<User>)>,
}

/// Tokens are kept and compared as digests, so that neither a memory dump nor the time a
/// comparison takes tells anything about them.
type Digest = [u8; digest::SHA256_OUTPUT_LEN];

impl Authenticator {
    /// Accepts these bearer tokens.
    pub fn new(tokens: impl IntoIterator<Item = (String, User)>) -> Authenticator {
        Authenticator {
            anonymous: Arc::new(User::anonymous()),
            tokens: tokens
                .into_iter()
                .map(|(token, user)| (digest_of(&token), Arc::new(user)))
                .collect(),
        }
    }

    /// Finds the user, anonymous if there are no credentials.
    pub fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<User>, Unauthorized> {
        if let Some(user) = credentials.certificate {
            return Ok(Arc::clone(user));
        }
        let Some(token) = credentials.authorization.and_then(bearer) else {
            return Ok(Arc::clone(&self.anonymous));
        };
        let wanted = digest_of(token);
        self.tokens
            .iter()
            .find(|(known, _)| *known == wanted)
            .map(|(_, user)| Arc::clone(user))
            .ok_or(Unauthorized)
    }

    /// The user of a verified client certificate: common name and organisations.
    pub fn certificate_user(der: &[u8]) -> Option<User> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().next()?.as_str().ok()?;
        if name.is_empty() {
            return None;
        }
        let groups: Vec<&str> = subject
            .iter_organization()
            .filter_map(|group| group.as_str().ok())
            .collect();
        let mut user = User::authenticated(name, "", &groups);
        user.uid = Text::default();
        // Names the credential in reviews and audit without telling it.
        let mut id = String::from("X509SHA256=");
        for byte in digest::digest(&digest::SHA256, der).as_ref() {
            id.push_str(&format!("{byte:02x}"));
        }
        let key = Text::from("authentication.kubernetes.io/credential-id");
        user.extra.insert(key, vec![id.into()]);
        Some(user)
    }
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn digest_of(token: &str) -> Digest {
    let mut out = Digest::default();
    out.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(authorization: Option<&str>) -> Result<String, Unauthorized> {
        let admin = User::authenticated("admin", "admin", &["system:masters"]);
        let authenticator = Authenticator::new([("secret".to_owned(), admin)]);
        let credentials = Credentials {
            authorization,
            certificate: None,
        };
        authenticator
            .authenticate(credentials)
            .map(|user| user.name.to_string())
    }

    #[test]
    fn who_is_behind_a_header() {
        assert_eq!(who(Some("Bearer secret")).as_deref(), Ok("admin"));
        assert_eq!(who(Some("bearer secret")).as_deref(), Ok("admin"));
        assert_eq!(who(Some("Bearer wrong")), Err(Unauthorized));
        for nobody in [
            None,
            Some("Bearer "),
            Some("Basic c2VjcmV0"),
            Some("secret"),
        ] {
            assert_eq!(who(nobody).as_deref(), Ok("system:anonymous"), "{nobody:?}");
        }
    }
}
