//! `windlass kubeconfig`: credentials for one more user.

use std::fmt;

use auth::der;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, SigningKey as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::arguments::Kubeconfig as Options;
use crate::credentials::{Credentials, read, write_secret};
use crate::failure::Failure;

const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// Makes a kubeconfig.
pub(crate) fn kubeconfig(options: &Options) -> Result<(), Failure> {
    if options.user.is_empty() || options.group.iter().any(String::is_empty) {
        let text = "the name of a user or group cannot be empty";
        return Err(Failure::Refused(text.to_owned()));
    }
    if !options.data.join("ca.key").is_file() {
        return Err(Failure::Refused(format!(
            "{} has no certificate authority: start the server once, or name its directory with \
             --data",
            options.data.display()
        )));
    }
    let credentials = Credentials::open(&options.data)?;
    let admin = read(&options.data.join("admin.kubeconfig"))?.unwrap_or_default();
    let line = |key: &str| {
        let mut lines = admin
            .lines()
            .filter_map(|line| line.trim().strip_prefix(key));
        lines.next().map(|value| value.trim().to_owned())
    };
    let server = options.server.clone().or_else(|| line("server:"));
    let server = server.unwrap_or_else(|| "https://127.0.0.1:6443".to_owned());
    // What clients of the admin trust, which need not be our own authority.
    let authority = line("certificate-authority-data:")
        .and_then(|text| STANDARD.decode(text).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_else(|| credentials.authority().to_owned());
    let (certificate, key) =
        credentials.user_certificate(&options.user, &options.group, options.expires)?;
    let text = Kubeconfig {
        server: &server,
        authority: &authority,
        user: &options.user,
        certificate: &certificate,
        key: &key,
    }
    .to_string();
    match &options.out {
        Some(path) => write_secret(path, &text),
        None => {
            say(&text);
            Ok(())
        }
    }
}

#[expect(clippy::print_stdout, reason = "the answer of the command")]
fn say(text: &str) {
    print!("{text}");
}

/// A file that tells clients where a server is and who they are.
pub(crate) struct Kubeconfig<'a> {
    pub server: &'a str,
    pub authority: &'a str,
    pub user: &'a str,
    pub certificate: &'a str,
    pub key: &'a str,
}

impl fmt::Display for Kubeconfig<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A string of JSON is one of YAML, whatever is in it.
        let text = |text: &str| {
            let bytes = object::json::to_vec(&object::Value::from(text));
            String::from_utf8(bytes).unwrap_or_default()
        };
        let (user, server) = (text(self.user), text(self.server));
        let plain = |quoted: &str, bare: &str| {
            let simple = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
            let is_simple = !bare.is_empty()
                && bare.bytes().all(simple)
                && bare.starts_with(|first: char| first.is_ascii_alphabetic());
            if is_simple { bare } else { quoted }.to_owned()
        };
        let (user, server) = (plain(&user, self.user), plain(&server, self.server));
        write!(
            out,
            "apiVersion: v1\nkind: Config\ncurrent-context: windlass\nclusters:\n\
             - name: windlass\n  cluster:\n    server: {server}\n    \
             certificate-authority-data: {}\ncontexts:\n- name: windlass\n  context:\n    \
             cluster: windlass\n    user: {user}\nusers:\n- name: {user}\n  user:\n    \
             client-certificate-data: {}\n    client-key-data: {}\n",
            STANDARD.encode(self.authority),
            STANDARD.encode(self.certificate),
            STANDARD.encode(self.key),
        )
    }
}

/// Signs a certificate anew, for a subject with any number of groups, of which the library that
/// made it knows but one.
pub(crate) fn with_groups(
    pem: &str,
    name: &str,
    groups: &[String],
    authority: &KeyPair,
) -> Option<String> {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    let mut rest: &[u8] = &certificate;
    let mut certificate = der::take(&mut rest, der::SEQUENCE)?;
    let mut about = der::take(&mut certificate, der::SEQUENCE)?;
    let algorithm = der::take(&mut certificate, der::SEQUENCE)?;
    let mut parts = Vec::new();
    while let Some((tag, value)) = der::take_any(&mut about) {
        parts.push(der::value(tag, &[value]));
    }
    // Version, serial number, algorithm, issuer, validity; then the subject.
    *parts.get_mut(5)? = subject(name, groups);
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let about = der::value(der::SEQUENCE, &parts);
    let signature = authority.sign(&about).ok()?;
    let algorithm = der::value(der::SEQUENCE, &[algorithm]);
    let signature = der::value(der::BIT_STRING, &[&[0], &signature]);
    let signed = der::value(der::SEQUENCE, &[&about, &algorithm, &signature]);
    Some(auth::to_pem("CERTIFICATE", &signed))
}

fn subject(name: &str, groups: &[String]) -> Vec<u8> {
    let groups = groups.iter().map(|group| (ORGANIZATION, group.as_str()));
    let parts: Vec<Vec<u8>> = groups
        .chain([(COMMON_NAME, name)])
        .map(|(kind, text)| {
            let kind = der::value(der::OID, &[&kind]);
            let text = der::value(der::UTF8_STRING, &[text.as_bytes()]);
            let part = der::value(der::SEQUENCE, &[&kind, &text]);
            der::value(der::SET, &[&part])
        })
        .collect();
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    der::value(der::SEQUENCE, &parts)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use auth::Authenticator;

    use super::*;

    #[test]
    fn a_certificate_names_its_user_and_every_group() {
        let directory = std::env::temp_dir().join(format!("windlass-user-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let credentials = Credentials::open(&directory).unwrap();
        let groups = ["one", "two", "drei ü"].map(str::to_owned);
        let lifetime = Duration::from_secs(3600);
        let (pem, key) = credentials
            .user_certificate("jane", &groups, lifetime)
            .unwrap();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let user = Authenticator::certificate_user(&der).unwrap();
        assert_eq!(user.name, "jane");
        assert_eq!(
            user.groups,
            ["one", "two", "drei ü", "system:authenticated"]
        );
        assert!(key.contains("PRIVATE KEY"));

        // The server takes it: the authority's signature is whole.
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let authority = CertificateDer::from_pem_slice(credentials.authority().as_bytes());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority.unwrap()).unwrap();
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                .build()
                .unwrap();
        let now = rustls::pki_types::UnixTime::now();
        assert!(verifier.verify_client_cert(&der, &[], now).is_ok());
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn odd_names_stay_what_they_are() {
        let text = Kubeconfig {
            server: "https://127.0.0.1:6443",
            authority: "a",
            user: "jane: \"x\"\n",
            certificate: "c",
            key: "k",
        }
        .to_string();
        let read = object::yaml::parse(text.as_bytes()).unwrap();
        let users = read.get("users").and_then(object::Value::as_array);
        assert_eq!(users.unwrap()[0].str_at(&["name"]), Some("jane: \"x\"\n"));
    }
}
