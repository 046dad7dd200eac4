//! Whom to believe that they are the webhook.
//!
//! The certificates of a bundle are authorities, and each of them may also be the server's own:
//! people put the self-signed certificate of a webhook into its configuration, and clients of the
//! Go server accept that.

use std::io::Error;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::client::{WantsClientCert, WebPkiServerVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, InvalidMessage,
    RootCertStore, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

/// Where systems keep the authorities that they trust.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Whom an endpoint's configuration tells us to trust.
#[derive(Debug)]
pub(super) enum Trust {
    Bundle(Vec<u8>),
    System,
}

/// What handshakes are made with.
#[derive(Clone)]
pub(super) struct Config(TlsConnector);

impl std::fmt::Debug for Config {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Config")
    }
}

impl Config {
    pub(super) async fn connect(
        &self,
        name: ServerName<'static>,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Error> {
        self.0.connect(name, stream).await
    }
}

impl Trust {
    /// An empty bundle leaves it to the system.
    pub(super) fn of_bundle(bundle: Vec<u8>) -> Trust {
        if bundle.trim_ascii().is_empty() {
            Trust::System
        } else {
            Trust::Bundle(bundle)
        }
    }

    /// Reads the certificates, or tells what is wrong with them.
    pub(super) fn config(&self) -> Result<Config, String> {
        let mut config = self.builder()?.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Config(TlsConnector::from(Arc::new(config))))
    }

    fn builder(&self) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
        let (roots, own) = match self {
            Trust::System => (system_roots()?, Vec::new()),
            Trust::Bundle(bundle) => {
                let certificates = read_bundle(bundle)?;
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates.iter().cloned());
                (Arc::new(roots), certificates)
            }
        };
        let provider = Arc::new(default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| error.to_string())?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier { verifier, own }));
        Ok(builder)
    }
}

/// How to speak to the server of another API, as somebody whom it knows by a certificate.
///
/// Without a bundle the system says whom to trust; `insecure` trusts whoever answers.
pub fn proxy_config(
    bundle: Vec<u8>,
    insecure: bool,
    identity: (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
) -> Result<ClientConfig, String> {
    let builder = if insecure {
        let provider = Arc::new(default_provider());
        ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
    } else {
        Trust::of_bundle(bundle).builder()?
    };
    let config = builder.with_client_auth_cert(identity.0, identity.1);
    let mut config = config.map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Believes any certificate, because its owner said so.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn read_bundle(bundle: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut certificates = Vec::new();
    let mut unreadable = None;
    for found in CertificateDer::pem_slice_iter(bundle) {
        let Ok(certificate) = found else {
            break;
        };
        match X509Certificate::from_der(&certificate) {
            Ok(_) => certificates.push(certificate),
            Err(error) => unreadable = Some(format!("failed to parse certificate: {error}")),
        }
    }
    if !certificates.is_empty() {
        return Ok(certificates);
    }
    let has_block = bundle.windows(11).any(|part| part == b"-----BEGIN ");
    Err(match unreadable {
        Some(error) => error,
        None if has_block => "no valid certificate authority data seen".to_owned(),
        None => "unable to parse bytes as PEM block".to_owned(),
    })
}

/// The authorities of the system, read when the first endpoint needs them.
fn system_roots() -> Result<Arc<RootCertStore>, String> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let named = std::env::var("SSL_CERT_FILE").ok();
        let places = named.iter().map(String::as_str).chain(SYSTEM_BUNDLES);
        let mut roots = RootCertStore::empty();
        if let Some(bundle) = places
            .filter_map(|path| std::fs::read(Path::new(path)).ok())
            .next()
        {
            let certificates = CertificateDer::pem_slice_iter(&bundle).filter_map(Result::ok);
            roots.add_parsable_certificates(certificates);
        }
        Arc::new(roots)
    });
    if roots.is_empty() {
        return Err("this system has none; give a caBundle".to_owned());
    }
    Ok(Arc::clone(roots))
}

/// The name that a certificate must carry.
pub fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    match host.parse::<IpAddr>() {
        Ok(address) => Ok(ServerName::IpAddress(address.into())),
        Err(_) => ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host:?} is no name that a certificate can carry")),
    }
}

#[derive(Debug)]
struct Verifier {
    verifier: Arc<WebPkiServerVerifier>,
    /// Certificates that are trusted as they are.
    own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !self.own.iter().any(|own| own == end_entity) {
            return self.verifier.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        check_dates(end_entity, now)?;
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

fn check_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), rustls::Error> {
    let bad = || rustls::Error::InvalidCertificate(CertificateError::BadEncoding);
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(|_| bad())?;
    let now = i64::try_from(now.as_secs()).map_err(|_| bad())?;
    let now = ASN1Time::from_timestamp(now).map_err(|_| bad())?;
    let validity = certificate.validity();
    if now < validity.not_before {
        return Err(rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet,
        ));
    }
    if now > validity.not_after {
        return Err(rustls::Error::InvalidCertificate(CertificateError::Expired));
    }
    Ok(())
}

/// Why a handshake failed, as Go words it.
pub fn describe(error: &Error, ends: &str) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let Some(inner) = inner else {
        return match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
            std::io::ErrorKind::ConnectionReset => {
                format!("read tcp {ends}: read: connection reset by peer")
            }
            _ => error.to_string(),
        };
    };
    match inner {
        rustls::Error::InvalidCertificate(reason) => {
            format!(
                "tls: failed to verify certificate: x509: {}",
                certificate_text(reason)
            )
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        rustls::Error::AlertReceived(alert) => format!("remote error: tls: {alert:?}"),
        other => format!("tls: {other}"),
    }
}

fn certificate_text(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let expected = expected.to_str();
            let is_address = expected.parse::<std::net::IpAddr>().is_ok();
            let names = presented.iter().filter_map(|name| match is_address {
                true => name.strip_prefix("IpAddress(")?.strip_suffix(')'),
                false => name.starts_with("DnsName").then(|| plain_name(name)),
            });
            let names: Vec<&str> = names.collect();
            if names.is_empty() && is_address {
                return format!(
                    "cannot validate certificate for {expected} because it doesn't contain any IP \
                     SANs"
                );
            }
            if names.is_empty() {
                return format!(
                    "certificate is not valid for any names, but wanted to match {expected}"
                );
            }
            format!(
                "certificate is valid for {}, not {expected}",
                names.join(", ")
            )
        }
        // An authority that serves itself is one that nobody named.
        CertificateError::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => {
            "certificate signed by unknown authority".to_owned()
        }
        other => other.to_string(),
    }
}

/// The name in `DnsName("a.b")` and its like.
fn plain_name(shown: &str) -> &str {
    shown.split('"').nth(1).unwrap_or(shown)
}
