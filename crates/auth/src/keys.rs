//! Keys that sign tokens and keys that verify them: RSA, and ECDSA over P-256 and P-384.
//!
//! A key verifies with the algorithms that are its own and with no others, whatever the header of
//! a token says: `none` and the symmetric ones do not exist here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use object::{Map, Value};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, KeyPair as _, RsaKeyPair, UnparsedPublicKey};
use ring::{digest, rsa};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::der;

const RSA_OID: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC_OID: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256_OID: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384_OID: [u8; 5] = [0x2b, 0x81, 0x04, 0x00, 0x22];

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text has no key.
    #[error("data does not contain any valid RSA or ECDSA {0} keys")]
    None(&'static str),
    /// The key is damaged, too small, or of a kind that is not known.
    #[error(
        "the key is damaged or of an unknown kind: RSA of 2048 to 8192 bits, P-256 and P-384 are \
         known"
    )]
    Unknown,
}

/// A key that verifies signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// The digest of the key, or the name that its owner gave it.
    pub id: String,
    material: Material,
    /// The only algorithm, if its owner names one.
    only: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    Ec {
        curve: Curve,
        point: Vec<u8>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
}

/// A key that signs.
pub struct SigningKey {
    key: Secret,
    random: SystemRandom,
    public: PublicKey,
}

enum Secret {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
}

impl SigningKey {
    /// The first private key of a PEM text: PKCS#8, PKCS#1 or SEC 1.
    ///
    /// # Errors
    /// There is none, or it is not of a known kind.
    pub fn from_pem(text: &[u8]) -> Result<SigningKey, KeyError> {
        for pem in Pem::iter_from_buffer(text) {
            let Ok(pem) = pem else { break };
            if let Some(secret) = secret(&pem) {
                return SigningKey::new(secret?);
            }
        }
        Err(KeyError::None("private"))
    }

    /// Makes a key of the curve P-256; gives it and the PEM text that keeps it.
    pub fn generate() -> (SigningKey, String) {
        let random = SystemRandom::new();
        let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random)
            .expect("the system gives random bytes");
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random)
            .expect("a key that was just made can be read");
        let key = SigningKey::new(Secret::Ec(key)).expect("P-256 is known");
        (key, to_pem("PRIVATE KEY", document.as_ref()))
    }

    fn new(key: Secret) -> Result<SigningKey, KeyError> {
        let material = match &key {
            Secret::Rsa(pair) => {
                Material::from_rsa(pair.public().as_ref()).ok_or(KeyError::Unknown)?
            }
            Secret::Ec(pair) => {
                let point = pair.public_key().as_ref().to_vec();
                let curve = Curve::of_point(&point).ok_or(KeyError::Unknown)?;
                Material::Ec { curve, point }
            }
        };
        Ok(SigningKey {
            key,
            random: SystemRandom::new(),
            public: PublicKey::new(material),
        })
    }

    /// The other half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The algorithm, as headers name it.
    pub fn algorithm(&self) -> &'static str {
        self.public.algorithm()
    }

    /// Signs; `None` if the system gives no random bytes.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        match &self.key {
            Secret::Ec(pair) => {
                let signature = pair.sign(&self.random, message).ok()?;
                Some(signature.as_ref().to_vec())
            }
            Secret::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let padding = &signature::RSA_PKCS1_SHA256;
                pair.sign(padding, &self.random, message, &mut signature)
                    .ok()?;
                Some(signature)
            }
        }
    }
}

impl PublicKey {
    /// Every key of a PEM text: public keys, certificates, and the public half of private keys.
    ///
    /// # Errors
    /// There is none, or one is not of a known kind.
    pub fn all_from_pem(text: &[u8]) -> Result<Vec<PublicKey>, KeyError> {
        let mut keys = Vec::new();
        for pem in Pem::iter_from_buffer(text) {
            let Ok(pem) = pem else { break };
            if let Some(secret) = secret(&pem) {
                keys.push(SigningKey::new(secret?)?.public);
                continue;
            }
            let material = match pem.label.as_str() {
                "PUBLIC KEY" => Material::from_spki(&pem.contents),
                "RSA PUBLIC KEY" => Material::from_rsa(&pem.contents),
                "CERTIFICATE" => X509Certificate::from_der(&pem.contents)
                    .ok()
                    .and_then(|(_, certificate)| Material::from_spki(certificate.public_key().raw)),
                _ => continue,
            };
            keys.push(PublicKey::new(material.ok_or(KeyError::Unknown)?));
        }
        if keys.is_empty() {
            return Err(KeyError::None("public"));
        }
        Ok(keys)
    }

    /// A key of a JSON web key set; `None` if it is not for signatures or of an unknown kind.
    pub fn from_jwk(jwk: &Value) -> Option<PublicKey> {
        let text = |field: &str| jwk.str_at(&[field]);
        let bytes = |field: &str| URL_SAFE_NO_PAD.decode(text(field)?).ok();
        if text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        let material = match text("kty")? {
            "RSA" => Material::Rsa {
                modulus: der::unsigned(&bytes("n")?).to_vec(),
                exponent: der::unsigned(&bytes("e")?).to_vec(),
            },
            "EC" => {
                let curve = match text("crv")? {
                    "P-256" => Curve::P256,
                    "P-384" => Curve::P384,
                    _ => return None,
                };
                let (x, y) = (bytes("x")?, bytes("y")?);
                if x.len() != curve.bytes() || y.len() != curve.bytes() {
                    return None;
                }
                let point = [&[4][..], &x, &y].concat();
                Material::Ec { curve, point }
            }
            _ => return None,
        };
        Some(PublicKey {
            id: text("kid").unwrap_or_default().to_owned(),
            only: text("alg").map(str::to_owned),
            material,
        })
    }

    fn new(material: Material) -> PublicKey {
        let digest = digest::digest(&digest::SHA256, &material.to_spki());
        PublicKey {
            id: URL_SAFE_NO_PAD.encode(digest),
            material,
            only: None,
        }
    }

    /// The algorithm that our own tokens use with such a key.
    pub fn algorithm(&self) -> &'static str {
        match &self.material {
            Material::Rsa { .. } => "RS256",
            Material::Ec { curve, .. } => curve.algorithm(),
        }
    }

    /// Whether the signature of a message is from this key.
    pub fn verify(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        if self.only.as_ref().is_some_and(|only| only != algorithm) {
            return false;
        }
        match &self.material {
            Material::Ec { curve, point } => {
                let scheme = match (curve, algorithm) {
                    (Curve::P256, "ES256") => &signature::ECDSA_P256_SHA256_FIXED,
                    (Curve::P384, "ES384") => &signature::ECDSA_P384_SHA384_FIXED,
                    _ => return false,
                };
                let key = UnparsedPublicKey::new(scheme, point);
                key.verify(message, signature).is_ok()
            }
            Material::Rsa { modulus, exponent } => {
                let scheme = match algorithm {
                    "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                    "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                    "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
                    "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
                    "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return false,
                };
                let key = rsa::PublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(scheme, message, signature).is_ok()
            }
        }
    }

    /// The key as a member of a JSON web key set, in the order of fields that upstream writes.
    pub fn write_jwk(&self, out: &mut String) {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (id, algorithm) = (&self.id, self.algorithm());
        let text = match &self.material {
            Material::Rsa { modulus, exponent } => format!(
                r#"{{"use":"sig","kty":"RSA","kid":"{id}","alg":"{algorithm}","n":"{}","e":"{}"}}"#,
                encode(modulus),
                encode(exponent),
            ),
            Material::Ec { curve, point } => {
                let (x, y) = point[1..].split_at(curve.bytes());
                format!(
                    "{{\"use\":\"sig\",\"kty\":\"EC\",\"kid\":\"{id}\",\"crv\":\"{}\",\
                     \"alg\":\"{algorithm}\",\"x\":\"{}\",\"y\":\"{}\"}}",
                    curve.name(),
                    encode(x),
                    encode(y),
                )
            }
        };
        out.push_str(&text);
    }
}

impl Material {
    fn from_spki(mut bytes: &[u8]) -> Option<Material> {
        let mut spki = der::take(&mut bytes, der::SEQUENCE)?;
        let mut algorithm = der::take(&mut spki, der::SEQUENCE)?;
        let key = der::take(&mut spki, der::BIT_STRING)?.strip_prefix(&[0])?;
        let kind = der::take(&mut algorithm, der::OID)?;
        if kind == RSA_OID {
            return Material::from_rsa(key);
        }
        let curve = Curve::of_oid(der::take(&mut algorithm, der::OID)?)?;
        let whole = kind == EC_OID && Curve::of_point(key) == Some(curve);
        whole.then(|| Material::Ec {
            curve,
            point: key.to_vec(),
        })
    }

    fn from_rsa(mut bytes: &[u8]) -> Option<Material> {
        let mut numbers = der::take(&mut bytes, der::SEQUENCE)?;
        let modulus = der::unsigned(der::take(&mut numbers, der::INTEGER)?).to_vec();
        let exponent = der::unsigned(der::take(&mut numbers, der::INTEGER)?).to_vec();
        Some(Material::Rsa { modulus, exponent })
    }

    fn to_spki(&self) -> Vec<u8> {
        let (algorithm, key) = match self {
            Material::Rsa { modulus, exponent } => {
                let kind = der::value(der::OID, &[&RSA_OID]);
                let null = der::value(der::NULL, &[]);
                let numbers = [der::integer(modulus), der::integer(exponent)].concat();
                (
                    [kind, null].concat(),
                    der::value(der::SEQUENCE, &[&numbers]),
                )
            }
            Material::Ec { curve, point } => {
                let kind = der::value(der::OID, &[&EC_OID]);
                let curve = der::value(der::OID, &[curve.oid()]);
                ([kind, curve].concat(), point.clone())
            }
        };
        let algorithm = der::value(der::SEQUENCE, &[&algorithm]);
        let key = der::value(der::BIT_STRING, &[&[0], &key]);
        der::value(der::SEQUENCE, &[&algorithm, &key])
    }
}

impl Curve {
    fn of_oid(oid: &[u8]) -> Option<Curve> {
        [Curve::P256, Curve::P384]
            .into_iter()
            .find(|curve| curve.oid() == oid)
    }

    fn of_point(point: &[u8]) -> Option<Curve> {
        let curves = [Curve::P256, Curve::P384];
        let mut curves = curves.into_iter();
        let length = point.strip_prefix(&[4])?.len();
        curves.find(|curve| length == 2 * curve.bytes())
    }

    fn oid(self) -> &'static [u8] {
        match self {
            Curve::P256 => &P256_OID,
            Curve::P384 => &P384_OID,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Curve::P256 => "P-256",
            Curve::P384 => "P-384",
        }
    }

    fn algorithm(self) -> &'static str {
        match self {
            Curve::P256 => "ES256",
            Curve::P384 => "ES384",
        }
    }

    fn signing(self) -> &'static signature::EcdsaSigningAlgorithm {
        match self {
            Curve::P256 => &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
            Curve::P384 => &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
        }
    }
}

/// The private key of a PEM section; `None` if it holds something else.
fn secret(pem: &Pem) -> Option<Result<Secret, KeyError>> {
    let der = pem.contents.as_slice();
    let read = match pem.label.as_str() {
        "RSA PRIVATE KEY" => RsaKeyPair::from_der(der).ok().map(Secret::Rsa),
        "EC PRIVATE KEY" => sec1(der).map(Secret::Ec),
        "PRIVATE KEY" => RsaKeyPair::from_pkcs8(der)
            .ok()
            .map(Secret::Rsa)
            .or_else(|| pkcs8_ec(der).map(Secret::Ec)),
        _ => return None,
    };
    Some(read.ok_or(KeyError::Unknown))
}

fn pkcs8_ec(der: &[u8]) -> Option<EcdsaKeyPair> {
    let random = SystemRandom::new();
    [Curve::P256, Curve::P384]
        .into_iter()
        .find_map(|curve| EcdsaKeyPair::from_pkcs8(curve.signing(), der, &random).ok())
}

/// The form of elliptic keys that OpenSSL writes.
fn sec1(mut bytes: &[u8]) -> Option<EcdsaKeyPair> {
    let mut key = der::take(&mut bytes, der::SEQUENCE)?;
    der::take(&mut key, der::INTEGER)?;
    let secret = der::take(&mut key, der::OCTET_STRING)?;
    let mut point = None;
    while let Some((tag, mut value)) = der::take_any(&mut key) {
        if tag == 0xa1 {
            point = der::take(&mut value, der::BIT_STRING)?.strip_prefix(&[0]);
        }
    }
    let point = point?;
    let curve = Curve::of_point(point)?;
    let random = SystemRandom::new();
    EcdsaKeyPair::from_private_key_and_public_key(curve.signing(), secret, point, &random).ok()
}

/// The text form of keys and certificates.
pub fn to_pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = more;
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

/// The keys of a JSON web key set, without those of unknown kinds.
pub(crate) fn from_jwks(document: &Value) -> Vec<PublicKey> {
    let keys = document.as_object().and_then(|set: &Map| set.get("keys"));
    let keys = keys.and_then(Value::as_array).unwrap_or_default();
    keys.iter().filter_map(PublicKey::from_jwk).collect()
}

#[cfg(test)]
mod tests;
