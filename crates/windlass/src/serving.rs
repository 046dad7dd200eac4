//! The certificate that the server shows, and how it is replaced while the server runs.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use auth::Authenticator;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use server::ClientCertificates;
use tracing::{info, warn};

use crate::credentials::{Credentials, LEAF_DAYS};
use crate::failure::Failure;

/// How often files are looked at and the end of certificates is thought of.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The certificate in use.
pub(crate) struct Serving {
    source: Source,
    provider: Arc<CryptoProvider>,
    current: RwLock<Current>,
}

struct Current {
    key: Arc<CertifiedKey>,
    /// The text it was made of.
    text: (String, String),
    /// It ends then.
    expires: i64,
}

enum Source {
    /// Signed by the authority of the data directory.
    Made {
        credentials: Arc<Credentials>,
        address: SocketAddr,
    },
    /// Somebody else keeps them up to date.
    Files { certificate: PathBuf, key: PathBuf },
}

impl Serving {
    /// Makes a certificate for a server at `address`.
    pub(crate) fn made(
        credentials: Arc<Credentials>,
        address: SocketAddr,
    ) -> Result<Serving, Failure> {
        Serving::new(Source::Made {
            credentials,
            address,
        })
    }

    /// Uses the certificate of a file.
    pub(crate) fn files(certificate: &Path, key: &Path) -> Result<Serving, Failure> {
        Serving::new(Source::Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        })
    }

    fn new(source: Source) -> Result<Serving, Failure> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let current = source.load(&provider, source.read()?)?;
        Ok(Serving {
            source,
            provider,
            current: RwLock::new(current),
        })
    }

    /// The certificates by which clients can know the server.
    pub(crate) fn authority(&self) -> String {
        match &self.source {
            Source::Made { credentials, .. } => credentials.authority().to_owned(),
            Source::Files { .. } => self.read().text.0.clone(),
        }
    }

    /// TLS with the certificate in use, whichever that is when a client comes.
    pub(crate) fn tls(
        self: &Arc<Self>,
        clients: &ClientCertificates,
    ) -> Result<Arc<ServerConfig>, Failure> {
        let failed = |error: rustls::Error| Failure::Certificates(error.to_string());
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Serving>::clone(self);
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_client_cert_verifier(clients.handshake())
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Replaces the certificate if its files changed or its end is near.
    fn refresh(&self, now: i64) -> Result<bool, Failure> {
        let text = match &self.source {
            Source::Made { .. } => {
                let third = i64::from(LEAF_DAYS) * 86_400 / 3;
                if now < self.read().expires - third {
                    return Ok(false);
                }
                self.source.read()?
            }
            Source::Files { .. } => {
                let text = self.source.read()?;
                if text == self.read().text {
                    return Ok(false);
                }
                text
            }
        };
        let new = self.source.load(&self.provider, text)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(true)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.read().key))
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Serving")
    }
}

impl Source {
    /// The certificate and its key as PEM.
    fn read(&self) -> Result<(String, String), Failure> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|source| Failure::Given {
                path: path.to_owned(),
                detail: source.to_string(),
            })
        };
        match self {
            Source::Made {
                credentials,
                address,
            } => credentials.server_certificate(*address),
            Source::Files { certificate, key } => Ok((read(certificate)?, read(key)?)),
        }
    }

    fn load(&self, provider: &CryptoProvider, text: (String, String)) -> Result<Current, Failure> {
        let failed = |detail: String| match self {
            Source::Made { .. } => Failure::Certificates(detail),
            Source::Files { certificate, .. } => Failure::Given {
                path: certificate.clone(),
                detail,
            },
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(text.0.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| failed(error.to_string()))?;
        let facts = chain
            .first()
            .and_then(|own| Authenticator::certificate_facts(own));
        let (_, expires) = facts.ok_or_else(|| failed("it holds no certificate".to_owned()))?;
        let key = PrivateKeyDer::from_pem_slice(text.1.as_bytes())
            .map_err(|error| failed(format!("the key cannot be read: {error}")))?;
        let key = CertifiedKey::from_der(chain, key, provider)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Current {
            key: Arc::new(key),
            text,
            expires,
        })
    }
}

/// Files of authorities whose clients and proxies are trusted.
pub(crate) struct Authorities {
    /// The authority of the data directory, which always counts.
    pub own: String,
    pub clients: Option<PathBuf>,
    pub proxies: Option<PathBuf>,
}

impl Authorities {
    /// Whose client certificates count.
    pub(crate) fn clients(&self) -> Result<Vec<CertificateDer<'static>>, Failure> {
        let mut all = certificates(&self.own, Path::new("ca.crt"))?;
        if let Some(path) = &self.clients {
            all.extend(certificates_of(path)?);
        }
        Ok(all)
    }

    /// The certificates of those whose client certificates count, as text.
    pub(crate) fn clients_text(&self) -> Result<String, Failure> {
        let given = self.clients.as_deref().map(text_of).transpose()?;
        Ok(self.own.clone() + given.as_deref().unwrap_or_default())
    }

    /// Whose front proxies count.
    pub(crate) fn proxies(&self) -> Result<Option<Vec<CertificateDer<'static>>>, Failure> {
        self.proxies.as_deref().map(certificates_of).transpose()
    }
}

fn certificates_of(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    certificates(&text_of(path)?, path)
}

fn text_of(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|source| Failure::Given {
        path: path.to_owned(),
        detail: source.to_string(),
    })
}

fn certificates(text: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let failed = |detail: String| Failure::Given {
        path: path.to_owned(),
        detail,
    };
    let found: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| failed(error.to_string()))?;
    if found.is_empty() {
        return Err(failed("it holds no certificate".to_owned()));
    }
    Ok(found)
}

/// Keeps certificates and authorities up to date, for as long as the server runs.
///
/// What cannot be read is told once; what was there before goes on.
pub(crate) async fn keep_current(
    serving: Arc<Serving>,
    authorities: Authorities,
    clients: Arc<ClientCertificates>,
) {
    let mut told = String::new();
    let mut trusted = (authorities.clients().ok(), authorities.proxies().ok());
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        let (serving, outcome) = look_again(Arc::clone(&serving), now).await;
        match outcome {
            Ok(true) => info!(expires = serving.read().expires, "certificate replaced"),
            Ok(false) => {}
            Err(failure) => tell(&mut told, &failure.to_string()),
        }
        match (authorities.clients(), authorities.proxies()) {
            (Ok(new), Ok(proxies)) => {
                let found = (Some(new), Some(proxies));
                if found != trusted {
                    replace(&clients, &found, &mut told);
                    trusted = found;
                }
            }
            (Err(failure), _) | (_, Err(failure)) => tell(&mut told, &failure.to_string()),
        }
    }
}

async fn look_again(serving: Arc<Serving>, now: i64) -> (Arc<Serving>, Result<bool, Failure>) {
    let own = Arc::clone(&serving);
    // Reading files and making keys may take a while.
    let outcome = tokio::task::spawn_blocking(move || own.refresh(now)).await;
    (serving, outcome.unwrap_or(Ok(false)))
}

type Trusted = (
    Option<Vec<CertificateDer<'static>>>,
    Option<Option<Vec<CertificateDer<'static>>>>,
);

fn replace(clients: &ClientCertificates, (own, proxies): &Trusted, told: &mut String) {
    let mut outcomes = vec![clients.replace_clients(own.as_deref().unwrap_or_default())];
    if let Some(Some(proxies)) = proxies {
        outcomes.push(clients.replace_proxies(proxies));
    }
    for outcome in outcomes {
        match outcome {
            Ok(()) => info!("authorities of clients replaced"),
            Err(error) => tell(told, &error.to_string()),
        }
    }
}

fn tell(told: &mut String, problem: &str) {
    if told != problem {
        warn!(%problem, "the certificates before stay in use");
        problem.clone_into(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 6443))
    }

    #[test]
    fn a_made_certificate_is_renewed_before_it_ends() {
        let path = directory("renew");
        let credentials = Arc::new(Credentials::open(&path).unwrap());
        let serving = Serving::made(credentials, address()).unwrap();
        let expires = serving.read().expires;
        let day = 86_400;
        let lifetime = i64::from(LEAF_DAYS) * day;
        assert!(!serving.refresh(expires - lifetime / 2).unwrap());
        let before = Arc::clone(&serving.read().key);
        assert!(serving.refresh(expires - lifetime / 4).unwrap());
        assert!(!Arc::ptr_eq(&before, &serving.read().key));
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn given_files_are_read_again_and_half_a_change_changes_nothing() {
        let path = directory("reload");
        let credentials = Credentials::open(&path).unwrap();
        let (certificate, key) = (path.join("a.crt"), path.join("a.key"));
        let write = |(first, second): &(String, String)| {
            std::fs::write(&certificate, first).unwrap();
            std::fs::write(&key, second).unwrap();
        };
        let first = credentials.server_certificate(address()).unwrap();
        write(&first);
        let serving = Serving::files(&certificate, &key).unwrap();
        assert!(!serving.refresh(0).unwrap());
        let second = credentials.server_certificate(address()).unwrap();
        write(&(second.0.clone(), first.1.clone()));
        assert!(serving.refresh(0).is_err(), "the key is another's");
        assert_eq!(serving.read().text, first);
        write(&second);
        assert!(serving.refresh(0).unwrap());
        assert_eq!(serving.read().text, second);
        std::fs::remove_dir_all(path).unwrap();
    }
}
