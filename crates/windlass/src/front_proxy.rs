//! Who this server is to the servers of other APIs: an authority of its own and a certificate.
//!
//! The authority is not the one that clients are known by: whoever has a certificate of this one
//! may speak in the name of others, and nobody but the server has one. It lies in the data
//! directory with mode 0600; the certificate is made anew at every start.

use std::path::Path;

use rcgen::{ExtendedKeyUsagePurpose, Issuer, KeyPair};
use server::ProxyIdentity;

use crate::credentials::{damaged, leaf, make_authority, read, write_secret};
use crate::failure::Failure;

/// The name that other servers are told to expect.
const NAME: &str = "front-proxy-client";

/// The identity, and the certificate of the authority behind it.
pub(crate) fn open(directory: &Path) -> Result<(ProxyIdentity, String), Failure> {
    let certificate_file = directory.join("front-proxy-ca.crt");
    let key_file = directory.join("front-proxy-ca.key");
    let (authority, authority_key) = match (read(&certificate_file)?, read(&key_file)?) {
        (Some(certificate), Some(key)) => (certificate, key),
        _ => {
            let (certificate, key) = make_authority("windlass-front-proxy-ca")?;
            write_secret(&key_file, &key)?;
            write_secret(&certificate_file, &certificate)?;
            (certificate, key)
        }
    };
    let authority_key = KeyPair::from_pem(&authority_key).map_err(|error| damaged(&error))?;
    let issuer = Issuer::from_ca_cert_pem(&authority, authority_key);
    let issuer = issuer.map_err(|error| damaged(&error))?;
    let params = leaf(Vec::new(), NAME, ExtendedKeyUsagePurpose::ClientAuth)?;
    let key = KeyPair::generate().map_err(|error| damaged(&error))?;
    let certificate = params.signed_by(&key, &issuer);
    let certificate = certificate.map_err(|error| damaged(&error))?;
    let identity = ProxyIdentity {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    };
    Ok((identity, authority))
}
