//! From credentials to a user.
//!
//! Ways are tried in this order until one knows the user: a front proxy's headers, the client
//! certificate, the bearer token. A request without credentials is anonymous; one whose
//! credentials are wrong is refused, even where anonymous would be let in. Other schemes than
//! `Bearer` count as no credentials.

use std::sync::Arc;

use object::Text;
use object::field::summary;
use ring::digest;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::User;
use crate::tokens::{Known, Presented, TokenAuthenticator};
use crate::trust::Trust;

/// The kind of a subject's part that holds the id of the user.
const UID_OID: &str = "1.3.6.1.4.1.57683.2";
const INVALID_TOKEN: &str = "invalid bearer token";

/// What a request brings along. It has no debug form, so that no log can hold it.
#[derive(Clone, Copy, Default)]
pub struct Credentials<'a> {
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
    /// What the connection's client certificate proves.
    pub peer: Option<&'a Peer>,
    /// Whom the headers of a front proxy name; it counts only if the certificate is the proxy's.
    pub proxied: Option<&'a Arc<User>>,
    /// The path, since some may be open to anonymous and others not.
    pub path: &'a str,
    /// Seconds since the start of 1970.
    pub now: i64,
}

/// What a client certificate proves.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The user, if the authority of clients signed it and it names one.
    pub user: Option<Arc<User>>,
    /// Whether the authority of front proxies signed it, and it may speak for others.
    pub is_proxy: bool,
    /// Whether nobody we trust signed it.
    pub is_refused: bool,
    /// It ends then, in seconds since the start of 1970.
    pub expires: i64,
}

/// The credentials are wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", summary(.0))]
pub struct Unauthorized(pub Vec<String>);

/// Who may come in without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// Everyone.
    Allowed,
    /// Nobody.
    Refused,
    /// Everyone, to these paths alone.
    To(Vec<String>),
}

/// Knows the users.
pub struct Authenticator {
    trust: Trust,
    nobody: Arc<User>,
    tokens: Vec<Box<dyn TokenAuthenticator>>,
    audiences: Vec<Text>,
}

impl Authenticator {
    /// Knows nobody yet; tokens have to be meant for `audiences`.
    pub fn new(audiences: Vec<Text>, anonymous: Anonymous) -> Authenticator {
        Authenticator {
            trust: Trust::new(anonymous),
            nobody: Arc::new(User::anonymous()),
            tokens: Vec::new(),
            audiences,
        }
    }

    /// A handle by which its trust in issuers and strangers can be changed while it works.
    ///
    /// Issuers are asked where the handle is added as one more kind of tokens.
    pub fn trust(&self) -> Trust {
        self.trust.clone()
    }

    /// Knows tokens of one more kind, asked after those before.
    pub fn with_tokens(mut self, tokens: impl TokenAuthenticator + 'static) -> Authenticator {
        self.tokens.push(Box::new(tokens));
        self
    }

    /// Finds the user, anonymous if there are no credentials.
    ///
    /// # Errors
    /// What is wrong with the credentials.
    pub async fn authenticate(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Arc<User>, Unauthorized> {
        let mut errors = Vec::new();
        if let Some(peer) = credentials.peer {
            let is_over = credentials.now > peer.expires;
            if let Some(user) = credentials.proxied.filter(|_| peer.is_proxy && !is_over) {
                return Ok(Arc::clone(user));
            }
            if let Some(user) = peer.user.as_ref().filter(|_| !is_over) {
                return Ok(Arc::clone(user));
            }
            if peer.is_refused || is_over {
                errors.push("verifying certificate failed".to_owned());
            }
        }
        if let Some(token) = credentials.authorization.and_then(bearer) {
            let presented = Presented::new(token, &self.audiences, credentials.now);
            match self.who(presented).await {
                Ok(known) => return Ok(known.user),
                Err(wrong) => errors.extend(wrong),
            }
        }
        if !errors.is_empty() || !self.trust.opens(credentials.path) {
            return Err(Unauthorized(errors));
        }
        Ok(Arc::clone(&self.nobody))
    }

    /// Whom a token stands for that is shown to `audiences`, the server's own if there are none.
    ///
    /// # Errors
    /// What is wrong with the token.
    pub async fn review(
        &self,
        token: &str,
        audiences: &[Text],
        now: i64,
    ) -> Result<Known, Unauthorized> {
        let audiences = if audiences.is_empty() {
            &self.audiences
        } else {
            audiences
        };
        // The token is what would come after the scheme in a header; what is none there is none
        // here, and nobody's credentials are those of anonymous.
        let header = format!("Bearer {token}");
        let Some(token) = bearer(&header) else {
            if self.trust.refuses_strangers() {
                return Err(Unauthorized(Vec::new()));
            }
            return Ok(Known {
                user: Arc::clone(&self.nobody),
                audiences: audiences.to_vec(),
            });
        };
        let presented = Presented::new(token, audiences, now);
        self.who(presented).await.map_err(|errors| {
            let mut all = vec![INVALID_TOKEN.to_owned()];
            all.extend(errors);
            Unauthorized(all)
        })
    }

    async fn who(&self, presented: Presented<'_>) -> Result<Known, Vec<String>> {
        let mut errors = Vec::new();
        for tokens in &self.tokens {
            match tokens.who(presented).await {
                Ok(Some(known)) => return Ok(known),
                Ok(None) => {}
                Err(wrong) => errors.extend(wrong),
            }
        }
        if errors.is_empty() {
            errors.push(INVALID_TOKEN.to_owned());
        }
        Err(errors)
    }

    /// The user of a verified client certificate: common name, organisations, and perhaps an id.
    pub fn certificate_user(der: &[u8]) -> Option<User> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        let name = common_name(&certificate)?;
        let groups: Vec<&str> = subject
            .iter_organization()
            .filter_map(|group| group.as_str().ok())
            .collect();
        let ids: Vec<&str> = subject
            .iter_attributes()
            .filter(|part| part.attr_type().to_id_string() == UID_OID)
            .map(|part| part.as_str().unwrap_or_default())
            .collect();
        let uid = match ids.as_slice() {
            [] => "",
            [one] if !one.is_empty() => one,
            _ => return None,
        };
        let mut user = User::authenticated(name, uid, &groups);
        // Names the credential in reviews and audit without telling it.
        let mut id = String::from("X509SHA256=");
        for byte in digest::digest(&digest::SHA256, der).as_ref() {
            id.push_str(&format!("{byte:02x}"));
        }
        let key = Text::from("authentication.kubernetes.io/credential-id");
        user.extra.insert(key, vec![id.into()]);
        Some(user)
    }

    /// The common name of a certificate and the second after which it is worthless.
    pub fn certificate_facts(der: &[u8]) -> Option<(String, i64)> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let name = common_name(&certificate).unwrap_or_default().to_owned();
        Some((name, certificate.validity().not_after.timestamp()))
    }
}

/// The last of a subject's common names, as upstream reads them; `None` if it is empty.
fn common_name<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a str> {
    let name = certificate.subject().iter_common_name().last()?;
    name.as_str().ok().filter(|name| !name.is_empty())
}

impl Anonymous {
    pub(crate) fn may_come_to(&self, path: &str) -> bool {
        match self {
            Anonymous::Allowed => true,
            Anonymous::Refused => false,
            Anonymous::To(paths) => paths.iter().any(|open| open == path),
        }
    }
}

/// Whether a header would hold a token if there were not too many spaces before it.
pub fn is_ignored_bearer(header: &str) -> bool {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("bearer") && parts.next() == Some("") && parts.next().is_some()
}

/// The token of a header; extra spaces before it make it none, as upstream has it.
pub(crate) fn bearer(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let (scheme, token) = (parts.next()?, parts.next()?);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::StaticTokens;

    fn authenticator(anonymous: Anonymous) -> Authenticator {
        let admin = User::authenticated("admin", "admin", &["system:masters"]);
        let audiences = vec![Text::from("api")];
        let tokens = StaticTokens::new([("secret".to_owned(), admin)], &audiences);
        Authenticator::new(audiences, anonymous).with_tokens(tokens)
    }

    fn now<F: Future>(future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => output,
            std::task::Poll::Pending => panic!("static tokens need not wait"),
        }
    }

    fn who(anonymous: Anonymous, credentials: Credentials<'_>) -> Result<String, String> {
        now(authenticator(anonymous).authenticate(credentials))
            .map(|user| user.name.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn who_is_behind_a_header() {
        let ask = |authorization| {
            let credentials = Credentials {
                authorization,
                ..Credentials::default()
            };
            who(Anonymous::Allowed, credentials)
        };
        for admin in ["Bearer secret", "bearer secret", " BEARER secret more "] {
            assert_eq!(ask(Some(admin)).as_deref(), Ok("admin"), "{admin}");
        }
        let wrong = ask(Some("Bearer wrong"));
        assert_eq!(wrong, Err("invalid bearer token".to_owned()));
        for nobody in [
            None,
            Some(""),
            Some("Bearer "),
            Some("Bearer  secret"),
            Some("Basic c2VjcmV0"),
            Some("secret"),
        ] {
            assert_eq!(ask(nobody).as_deref(), Ok("system:anonymous"), "{nobody:?}");
        }
    }

    #[test]
    fn which_headers_are_ignored_with_a_warning() {
        assert!(is_ignored_bearer("Bearer  secret"));
        for fine in ["Bearer secret", "Bearer ", "Bearer", "Basic  x", ""] {
            assert!(!is_ignored_bearer(fine), "{fine}");
        }
    }

    #[test]
    fn who_comes_in_without_credentials() {
        let to = |path| Credentials {
            path,
            ..Credentials::default()
        };
        let open = Anonymous::To(vec!["/livez".to_owned()]);
        assert!(who(open.clone(), to("/livez")).is_ok());
        assert!(who(open, to("/api")).is_err());
        assert!(who(Anonymous::Refused, to("/livez")).is_err());
    }

    #[test]
    fn what_a_certificate_proves() {
        let jane = Arc::new(User::authenticated("jane", "", &[]));
        let joe = Arc::new(User::authenticated("joe", "", &[]));
        let proxy = Peer {
            is_proxy: true,
            expires: 10,
            ..Peer::default()
        };
        let client = Peer {
            user: Some(Arc::clone(&jane)),
            expires: 10,
            ..Peer::default()
        };
        let unknown = Peer {
            is_refused: true,
            expires: 10,
            ..Peer::default()
        };
        let token = Some("Bearer secret");
        let cases = [
            (&proxy, Some(&joe), None, 0, Ok("joe")),
            (&proxy, None, token, 0, Ok("admin")),
            (&proxy, Some(&joe), None, 11, Err(())),
            // A certificate that is not the proxy's speaks for itself alone.
            (&client, Some(&joe), None, 0, Ok("jane")),
            (&client, None, token, 0, Ok("jane")),
            (&client, None, None, 11, Err(())),
            (&unknown, Some(&joe), None, 0, Err(())),
            (&unknown, Some(&joe), token, 0, Ok("admin")),
        ];
        for (place, (peer, proxied, authorization, now, expected)) in cases.into_iter().enumerate()
        {
            let credentials = Credentials {
                authorization,
                peer: Some(peer),
                proxied,
                path: "/",
                now,
            };
            let found = who(Anonymous::Allowed, credentials);
            assert_eq!(found.as_deref().map_err(|_| ()), expected, "case {place}");
        }
    }

    #[test]
    fn a_review_tells_what_is_wrong() {
        let review = |token: &str, audiences: &[Text]| {
            now(authenticator(Anonymous::Allowed).review(token, audiences, 0))
        };
        let known = review("secret", &[]).unwrap();
        assert_eq!(known.audiences, ["api"]);
        let other = review("secret", &["other".into()]).unwrap_err();
        assert_eq!(other.to_string(), "invalid bearer token");
        assert_eq!(review(" x", &[]).unwrap().user.name, "system:anonymous");
    }
}
