//! What a client certificate proves.
//!
//! The handshake takes any certificate whose key the client holds; whom it names is decided after
//! it. A client whose certificate nobody trusts is then told so in an answer, 401, instead of being
//! left with a connection that breaks, and may still come in with a token.

use std::sync::{Arc, PoisonError, RwLock};

use auth::{Authenticator, Peer, User};
use hyper::header::HeaderMap;
use object::Text;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use crate::request::percent_decode;

/// The headers of proxies that nobody told to use others.
const STANDARD_HEADERS: [&str; 3] = ["x-remote-user", "x-remote-uid", "x-remote-group"];
const STANDARD_EXTRA: &str = "x-remote-extra-";

/// Whose client certificates count.
pub struct ClientCertificates {
    provider: Arc<CryptoProvider>,
    /// The authority of clients; it may change while the server runs.
    clients: RwLock<Option<Arc<dyn ClientCertVerifier>>>,
    proxy: Option<(FrontProxy, RwLock<Arc<dyn ClientCertVerifier>>)>,
}

/// A proxy that says in headers who is asking.
#[derive(Clone, Debug)]
pub struct FrontProxy {
    /// The common names that its certificate may have; empty for any.
    pub names: Vec<String>,
    /// Where the user's name is; the first of these headers that there is counts.
    pub user_headers: Vec<String>,
    /// Where the user's id is.
    pub uid_headers: Vec<String>,
    /// Where the groups are; all of them count.
    pub group_headers: Vec<String>,
    /// What the headers of extra values begin with.
    pub extra_prefixes: Vec<String>,
}

/// Certificates of an authority that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadAuthority(String);

impl ClientCertificates {
    /// Trusts the clients of one authority and the proxies of another.
    ///
    /// # Errors
    /// An authority has no certificate that can be used.
    pub fn new(
        provider: Arc<CryptoProvider>,
        clients: &[CertificateDer<'static>],
        proxy: Option<(FrontProxy, &[CertificateDer<'static>])>,
    ) -> Result<ClientCertificates, BadAuthority> {
        let clients = match clients {
            [] => None,
            some => Some(verifier(&provider, some)?),
        };
        let proxy = match proxy {
            Some((proxy, authority)) => Some((proxy, RwLock::new(verifier(&provider, authority)?))),
            None => None,
        };
        Ok(ClientCertificates {
            provider,
            clients: RwLock::new(clients),
            proxy,
        })
    }

    /// Trusts the clients of another authority from the next connection on.
    ///
    /// # Errors
    /// The authority has no certificate that can be used; the one before goes on.
    pub fn replace_clients(
        &self,
        authority: &[CertificateDer<'static>],
    ) -> Result<(), BadAuthority> {
        let new = verifier(&self.provider, authority)?;
        *self.clients.write().unwrap_or_else(PoisonError::into_inner) = Some(new);
        Ok(())
    }

    /// Trusts the proxies of another authority from the next connection on.
    ///
    /// # Errors
    /// The authority has no certificate that can be used; the one before goes on.
    pub fn replace_proxies(
        &self,
        authority: &[CertificateDer<'static>],
    ) -> Result<(), BadAuthority> {
        let new = verifier(&self.provider, authority)?;
        if let Some((_, proxies)) = &self.proxy {
            *proxies.write().unwrap_or_else(PoisonError::into_inner) = new;
        }
        Ok(())
    }

    /// Takes any certificate during the handshake.
    pub fn handshake(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyCertificate(Arc::clone(&self.provider)))
    }

    /// What the certificates of a connection prove; `None` if there are none.
    pub(crate) fn peer(&self, chain: &[CertificateDer<'_>]) -> Option<Peer> {
        let (own, above) = chain.split_first()?;
        let Some((name, expires)) = Authenticator::certificate_facts(own) else {
            return Some(Peer {
                is_refused: true,
                ..Peer::default()
            });
        };
        let now = UnixTime::now();
        let is_signed = |verifier: &dyn ClientCertVerifier| {
            verifier.verify_client_cert(own, above, now).is_ok()
        };
        let clients = self.clients.read().unwrap_or_else(PoisonError::into_inner);
        let is_client = clients.as_deref().is_some_and(is_signed);
        let is_proxy = self.proxy.as_ref().is_some_and(|(proxy, authority)| {
            let authority = authority.read().unwrap_or_else(PoisonError::into_inner);
            let may_speak = proxy.names.is_empty() || proxy.names.contains(&name);
            may_speak && is_signed(authority.as_ref())
        });
        let user = is_client.then(|| Authenticator::certificate_user(own));
        Some(Peer {
            user: user.flatten().map(Arc::new),
            is_proxy,
            is_refused: !is_client,
            expires,
        })
    }

    /// Whom the headers of a front proxy name.
    pub(crate) fn proxied(&self, headers: &HeaderMap) -> Option<Arc<User>> {
        let (proxy, _) = self.proxy.as_ref()?;
        proxy.user(headers).map(Arc::new)
    }

    /// Removes what only authentication may see.
    pub(crate) fn clear(&self, headers: &mut HeaderMap) {
        headers.remove(hyper::header::AUTHORIZATION);
        let own = self.proxy.as_ref().map(|(proxy, _)| proxy);
        let is_secret = |name: &str| {
            STANDARD_HEADERS.contains(&name)
                || name.starts_with(STANDARD_EXTRA)
                || own.is_some_and(|own| own.reads(name))
        };
        let found = headers.keys().filter(|name| is_secret(name.as_str()));
        let found: Vec<_> = found.cloned().collect();
        for name in found {
            headers.remove(name);
        }
    }
}

impl FrontProxy {
    /// Whether a header says something about the user.
    fn reads(&self, name: &str) -> bool {
        let named = [&self.user_headers, &self.uid_headers, &self.group_headers];
        let mut named = named.into_iter().flatten();
        let mut prefixes = self.extra_prefixes.iter();
        named.any(|header| header.eq_ignore_ascii_case(name))
            || prefixes.any(|prefix| strip_prefix(name, prefix).is_some())
    }

    fn user(&self, headers: &HeaderMap) -> Option<User> {
        let first = |names: &[String]| {
            let mut values = names.iter().filter_map(|name| headers.get(name));
            values.find(|value| !value.is_empty()).map(text)
        };
        let mut user = User {
            name: first(&self.user_headers)?,
            uid: first(&self.uid_headers).unwrap_or_default(),
            ..User::default()
        };
        for name in &self.group_headers {
            let groups = headers.get_all(name).iter();
            user.groups
                .extend(groups.filter(|group| !group.is_empty()).map(text));
        }
        for prefix in &self.extra_prefixes {
            for (name, value) in headers {
                if let Some(key) = strip_prefix(name.as_str(), prefix) {
                    // A key that is not properly encoded is taken as it is.
                    let key = percent_decode(key).unwrap_or_else(|| key.to_owned());
                    let values = user.extra.entry(Text::from(key)).or_default();
                    values.push(text(value));
                }
            }
        }
        user.join_authenticated();
        Some(user)
    }
}

fn text(value: &hyper::header::HeaderValue) -> Text {
    Text::from(String::from_utf8_lossy(value.as_bytes()))
}

fn strip_prefix<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, tail) = name.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

fn verifier(
    provider: &Arc<CryptoProvider>,
    authority: &[CertificateDer<'static>],
) -> Result<Arc<dyn ClientCertVerifier>, BadAuthority> {
    let wrong = |error: &dyn std::error::Error| BadAuthority(error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in authority {
        roots.add(certificate.clone()).map_err(|it| wrong(&it))?;
    }
    let built =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    let verifier: Arc<dyn ClientCertVerifier> = built.map_err(|error| wrong(&error))?;
    Ok(verifier)
}

/// Checks that a client holds the key of its certificate, and nothing else.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// No hints: clients send what they have.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    #[test]
    fn whom_a_proxy_names() {
        let all = |names: &[&str]| names.iter().copied().map(str::to_owned).collect();
        let proxy = FrontProxy {
            names: Vec::new(),
            user_headers: all(&["X-First", "X-Remote-User"]),
            uid_headers: all(&["X-Remote-Uid"]),
            group_headers: all(&["X-Remote-Group"]),
            extra_prefixes: all(&["X-Remote-Extra-"]),
        };
        let headers = headers(&[
            ("X-First", ""),
            ("X-Remote-User", "jane"),
            ("X-Remote-Uid", "7"),
            ("X-Remote-Group", "a"),
            ("X-Remote-Group", ""),
            ("X-Remote-Group", "b"),
            ("X-Remote-Extra-Acme%2fDept", "x"),
        ]);
        let user = proxy.user(&headers).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "7"));
        assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
        assert_eq!(user.extra["acme/dept"], ["x"]);
        assert!(proxy.user(&HeaderMap::new()).is_none());
    }

    #[test]
    fn nobody_sees_credentials_afterwards() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificates = ClientCertificates::new(provider, &[], None).unwrap();
        let mut headers = headers(&[
            ("Authorization", "Bearer secret"),
            ("X-Remote-User", "jane"),
            ("X-Remote-Extra-Scopes", "x"),
            ("Accept", "*/*"),
        ]);
        certificates.clear(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["accept"]);
    }
}
