//! Certificates, the admin token and the admin kubeconfig, made at the first start.
//!
//! Everything lies in the data directory with mode 0600. The authority, the admin's key and the key
//! that signs tokens are kept; the server's own certificate is made anew at every start, for the
//! names of this host, and again before it ends.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use auth::{Authenticator, SigningKey, User};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::failure::Failure;
use crate::users;

/// The names by which programs inside a cluster call the API.
const CLUSTER_NAMES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];
const DAY_SECONDS: u64 = 86_400;
const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const AUTHORITY_DAYS: u32 = 10 * 365;
/// How long the certificate of the server lives; it is renewed when a third is left.
pub(crate) const LEAF_DAYS: u32 = 90;
/// How long the admin's certificate lives; a start renews it when a third is left.
const ADMIN_DAYS: u32 = 365;

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
                let (pem, private) = make_authority("windlass-ca")?;
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

    /// Makes a certificate for a server at `address`, with the authority's behind it, and its key.
    pub(crate) fn server_certificate(
        &self,
        address: SocketAddr,
    ) -> Result<(String, String), Failure> {
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
        let (certificate, key) = self.sign(params)?;
        Ok((format!("{certificate}{}", self.authority_pem), key))
    }

    /// Makes a client certificate for a user, and its key.
    pub(crate) fn user_certificate(
        &self,
        name: &str,
        groups: &[String],
        lifetime: Duration,
    ) -> Result<(String, String), Failure> {
        let usage = ExtendedKeyUsagePurpose::ClientAuth;
        let mut params = leaf(Vec::new(), name, usage)?;
        params.not_after = time::OffsetDateTime::now_utc() + lifetime;
        let (certificate, key) = self.sign(params)?;
        let authority = self.authority_pair()?;
        let certificate = users::with_groups(&certificate, name, groups, &authority)
            .ok_or_else(|| Failure::Certificates("the certificate cannot be signed".to_owned()))?;
        Ok((certificate, key))
    }

    fn authority_pair(&self) -> Result<KeyPair, Failure> {
        KeyPair::from_pem(&self.authority_key).map_err(|error| damaged(&error))
    }

    fn sign(&self, params: CertificateParams) -> Result<(String, String), Failure> {
        let issuer = Issuer::from_ca_cert_pem(&self.authority_pem, self.authority_pair()?)
            .map_err(|error| damaged(&error))?;
        let key = KeyPair::generate().map_err(|error| damaged(&error))?;
        let certificate = params
            .signed_by(&key, &issuer)
            .map_err(|error| damaged(&error))?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// Writes the admin's kubeconfig for a server at `address` that shows certificates of
    /// `authority`; the key in it is kept until it ends.
    pub(crate) fn write_kubeconfig(
        &self,
        address: SocketAddr,
        authority: &str,
    ) -> Result<PathBuf, Failure> {
        let (certificate_file, key_file) = (
            self.directory.join("admin.crt"),
            self.directory.join("admin.key"),
        );
        let (certificate, key) = match (read(&certificate_file)?, read(&key_file)?) {
            (Some(certificate), Some(key)) if !ends_soon(&certificate)? => (certificate, key),
            _ => {
                let lifetime = Duration::from_secs(u64::from(ADMIN_DAYS) * DAY_SECONDS);
                let masters = ["system:masters".to_owned()];
                let (certificate, key) = self.user_certificate("admin", &masters, lifetime)?;
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
        let text = users::Kubeconfig {
            server: &format!("https://{}", SocketAddr::new(ip, address.port())),
            authority,
            user: "admin",
            certificate: &certificate,
            key: &key,
        }
        .to_string();
        let path = self.directory.join("admin.kubeconfig");
        if read(&path)?.as_deref() != Some(&text) {
            write_secret(&path, &text)?;
        }
        Ok(path)
    }

    /// The key that signs the tokens of service accounts; made at the first start.
    pub(crate) fn signing_key(&self) -> Result<SigningKey, Failure> {
        let path = self.directory.join("service-account.key");
        let Some(text) = read(&path)? else {
            let (key, text) = SigningKey::generate();
            write_secret(&path, &text)?;
            return Ok(key);
        };
        SigningKey::from_pem(text.as_bytes()).map_err(|error| Failure::SigningKey {
            path,
            detail: error.to_string(),
        })
    }
}

/// Whether a certificate of the admin has to be replaced.
fn ends_soon(pem: &str) -> Result<bool, Failure> {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes());
    let certificate = certificate.map_err(|error| damaged(&error))?;
    let Some((_, expires)) = Authenticator::certificate_facts(&certificate) else {
        return Ok(true);
    };
    let third = i64::from(ADMIN_DAYS) * DAY_SECONDS as i64 / 3;
    Ok(time::OffsetDateTime::now_utc().unix_timestamp() > expires - third)
}

pub(crate) fn damaged(error: &dyn std::error::Error) -> Failure {
    Failure::Certificates(error.to_string())
}

pub(crate) fn make_authority(name: &str) -> Result<(String, String), Failure> {
    let mut params = CertificateParams::new(Vec::new()).map_err(|error| damaged(&error))?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    set_lifetime(&mut params, AUTHORITY_DAYS);
    let key = KeyPair::generate().map_err(|error| damaged(&error))?;
    let certificate = params.self_signed(&key).map_err(|error| damaged(&error))?;
    Ok((certificate.pem(), key.serialize_pem()))
}

pub(crate) fn leaf(
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
    set_lifetime(&mut params, LEAF_DAYS);
    Ok(params)
}

/// Valid from yesterday, so that a client whose clock is behind takes it too.
fn set_lifetime(params: &mut CertificateParams, days: u32) {
    let now = time::OffsetDateTime::now_utc();
    params.not_before = now - time::Duration::days(1);
    params.not_after = now + time::Duration::days(i64::from(days));
}

fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim().to_ascii_lowercase();
    (!name.is_empty() && name != "localhost").then_some(name)
}

fn make_token() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    // Begins with a letter: on command lines a dash at the front is taken for a flag.
    bytes[0] &= 0x7f;
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn read(path: &Path) -> Result<Option<String>, Failure> {
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
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<(), Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_looks_like_a_flag() {
        let tokens: Vec<String> = (0..1000).map(|_| make_token()).collect();
        assert!(tokens.iter().all(|token| token.len() == 43));
        let begins = |token: &String| token.starts_with(|first: char| first.is_ascii_alphabetic());
        assert!(tokens.iter().all(begins), "{tokens:?}");
    }
}
