//! Certificates, the admin token and the admin kubeconfig, made at the first start.
//!
//! Everything lies in the data directory with mode 0600. The authority and the admin's key are
//! kept; the server's own certificate is made anew at every start, for the names of this host.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use auth::User;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::failure::Failure;

/// The names by which programs inside a cluster call the API.
const CLUSTER_NAMES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];
const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const AUTHORITY_YEARS: i32 = 10;
const LEAF_YEARS: i32 = 1;

/// The credentials of a data directory.
pub(crate) struct Credentials {
    directory: PathBuf,
    authority_pem: String,
    authority_key: String,
    /// The admin's bearer token.
    pub token: String,
}

impl Credentials {
    /// Reads the credentials of a directory, and makes what is missing.
    pub(crate) fn open(directory: &Path) -> Result<Credentials, Failure> {
        let (certificate, key) = (directory.join("ca.crt"), directory.join("ca.key"));
        let (authority_pem, authority_key) = match (read(&certificate)?, read(&key)?) {
            (Some(certificate), Some(key)) => (certificate, key),
            _ => {
                let (pem, private) = make_authority()?;
                write_secret(&key, &private)?;
                write_secret(&certificate, &pem)?;
                (pem, private)
            }
        };
        let token_file = directory.join("admin.token");
        let token = match read(&token_file)? {
            Some(token) if !token.trim().is_empty() => token.trim().to_owned(),
            _ => {
                let token = make_token();
                write_secret(&token_file, &token)?;
                token
            }
        };
        let directory = directory.to_owned();
        Ok(Credentials {
            directory,
            authority_pem,
            authority_key,
            token,
        })
    }

    /// The certificate that clients trust.
    pub(crate) fn authority(&self) -> &str {
        &self.authority_pem
    }

    /// The admin, as the token proves it.
    pub(crate) fn admin() -> User {
        User::authenticated("admin", "admin", &["system:masters"])
    }

    /// TLS for a server at `address`.
    pub(crate) fn tls(&self, address: SocketAddr) -> Result<Arc<ServerConfig>, Failure> {
        let (certificate, key) = self.server_certificate(address)?;
        let authority = certificates(&self.authority_pem)?;
        let mut roots = RootCertStore::empty();
        for certificate in authority.clone() {
            roots.add(certificate).map_err(|error| damaged(&error))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .map_err(|error| damaged(&error))?;
        let mut chain = certificates(&certificate)?;
        chain.extend(authority);
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| damaged(&error))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| damaged(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| damaged(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn server_certificate(&self, address: SocketAddr) -> Result<(String, String), Failure> {
        let mut names: Vec<String> = vec!["localhost".to_owned()];
        names.extend(CLUSTER_NAMES.map(str::to_owned));
        names.extend(host_name());
        let mut addresses: Vec<IpAddr> = vec![
            Ipv4Addr::LOCALHOST.into(),
            Ipv6Addr::LOCALHOST.into(),
            SERVICE_ADDRESS.into(),
        ];
        if !address.ip().is_unspecified() && !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
        names.extend(addresses.iter().map(IpAddr::to_string));
        let mut params = leaf(names, "windlass", ExtendedKeyUsagePurpose::ServerAuth)?;
        params.is_ca = IsCa::NoCa;
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Result<(String, String), Failure> {
        let authority_key =
            KeyPair::from_pem(&self.authority_key).map_err(|error| damaged(&error))?;
        let issuer = Issuer::from_ca_cert_pem(&self.authority_pem, authority_key)
            .map_err(|error| damaged(&error))?;
        let key = KeyPair::generate().map_err(|error| damaged(&error))?;
        let certificate = params
            .signed_by(&key, &issuer)
            .map_err(|error| damaged(&error))?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// Writes the admin's kubeconfig for a server at `address`; the key in it is kept.
    pub(crate) fn write_kubeconfig(&self, address: SocketAddr) -> Result<PathBuf, Failure> {
        let (certificate_file, key_file) = (
            self.directory.join("admin.crt"),
            self.directory.join("admin.key"),
        );
        let (certificate, key) = match (read(&certificate_file)?, read(&key_file)?) {
            (Some(certificate), Some(key)) => (certificate, key),
            _ => {
                let usage = ExtendedKeyUsagePurpose::ClientAuth;
                let mut params = leaf(Vec::new(), "admin", usage)?;
                params
                    .distinguished_name
                    .push(DnType::OrganizationName, "system:masters");
                let (certificate, key) = self.sign(params)?;
                write_secret(&key_file, &key)?;
                write_secret(&certificate_file, &certificate)?;
                (certificate, key)
            }
        };
        let ip = match address.ip() {
            ip if ip.is_unspecified() && ip.is_ipv6() => Ipv6Addr::LOCALHOST.into(),
            ip if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            ip => ip,
        };
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: windlass\nclusters:\n\
             - name: windlass\n  cluster:\n    server: https://{}\n    \
             certificate-authority-data: {}\ncontexts:\n- name: windlass\n  context:\n    \
             cluster: windlass\n    user: admin\nusers:\n- name: admin\n  user:\n    \
             client-certificate-data: {}\n    client-key-data: {}\n",
            SocketAddr::new(ip, address.port()),
            STANDARD.encode(&self.authority_pem),
            STANDARD.encode(certificate),
            STANDARD.encode(key),
        );
        let path = self.directory.join("admin.kubeconfig");
        if read(&path)?.as_deref() != Some(&text) {
            write_secret(&path, &text)?;
        }
        Ok(path)
    }
}

fn damaged(error: &dyn std::error::Error) -> Failure {
    Failure::Certificates(error.to_string())
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| damaged(&error))
}

fn make_authority() -> Result<(String, String), Failure> {
    let mut params = CertificateParams::new(Vec::new()).map_err(|error| damaged(&error))?;
    params
        .distinguished_name
        .push(DnType::CommonName, "windlass-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    set_lifetime(&mut params, AUTHORITY_YEARS);
    let key = KeyPair::generate().map_err(|error| damaged(&error))?;
    let certificate = params.self_signed(&key).map_err(|error| damaged(&error))?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn leaf(
    names: Vec<String>,
    common_name: &str,
    usage: ExtendedKeyUsagePurpose,
) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new(names).map_err(|error| damaged(&error))?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.extended_key_usages = vec![usage];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    set_lifetime(&mut params, LEAF_YEARS);
    Ok(params)
}

/// Valid from yesterday, so that a client whose clock is behind takes it too.
fn set_lifetime(params: &mut CertificateParams, years: i32) {
    let now = time::OffsetDateTime::now_utc();
    params.not_before = now - time::Duration::days(1);
    params.not_after = now + time::Duration::days(i64::from(years) * 365);
}

fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim().to_ascii_lowercase();
    (!name.is_empty() && name != "localhost").then_some(name)
}

fn make_token() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Failure::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Writes a file that only its owner reads, whole or not at all.
fn write_secret(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |source| Failure::Write {
        path: path.to_owned(),
        source,
    };
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .map_err(failed)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_data())
        .map_err(failed)?;
    fs::rename(&draft, path).map_err(failed)
}
