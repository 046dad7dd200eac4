//! Records of chosen resources are encrypted before they are written to disk.
//!
//! An EncryptionConfiguration says which resources, and with which keys: the first provider of a
//! resource writes, all of them read, by the prefix of what was written. Memory holds plaintext;
//! files, backups included, hold what is made here. `docs/decisions/encryption.md` says why.
//! Contract: `server/options/encryptionconfig` of the API server.

mod cipher;
mod config;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use kinds::Catalogue;
use store::{Opened, Seal};

use cipher::Cipher;
pub use cipher::Kind;

/// Everything that is encrypted begins with this; plain records never do.
const PREFIX: &[u8] = b"k8s:enc:";

/// Why a configuration cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the encryption configuration cannot be used: {0}")]
pub struct ConfigError(String);

/// Which resources are encrypted, and how.
pub struct Encryption {
    rules: Vec<Rule>,
    /// The rule of each collection, as soon as it is needed; `None` for plain ones.
    places: RwLock<HashMap<String, Option<usize>>>,
}

/// Resources and their providers.
struct Rule {
    resources: Vec<String>,
    providers: Vec<Provider>,
}

/// One way to write records.
enum Provider {
    /// As they are.
    Identity,
    /// Encrypted; the prefix names the cipher and the key.
    Key { prefix: Vec<u8>, cipher: Cipher },
}

impl Encryption {
    /// Encrypts nothing, and refuses to read what is encrypted.
    pub fn none() -> Arc<Encryption> {
        Arc::new(Encryption {
            rules: Vec::new(),
            places: RwLock::default(),
        })
    }

    /// Reads an EncryptionConfiguration of `apiserver.config.k8s.io/v1`.
    ///
    /// # Errors
    /// It is not one, or it names what there is not.
    pub fn parse(text: &[u8]) -> Result<Arc<Encryption>, ConfigError> {
        Ok(Arc::new(Encryption {
            rules: config::read(text).map_err(ConfigError)?,
            places: RwLock::default(),
        }))
    }

    /// The text of a configuration with a new random key for these resources.
    pub fn generate(kind: Kind, key_name: &str, resources: &[String]) -> String {
        config::generate(kind, key_name, resources)
    }

    fn providers(&self, collection: &str) -> Option<&[Provider]> {
        if self.rules.is_empty() {
            return None;
        }
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let known = places.get(collection).copied();
        drop(places);
        let place = known.unwrap_or_else(|| {
            let place = self.find(collection);
            let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
            places.insert(collection.to_owned(), place);
            place
        });
        place.map(|place| self.rules[place].providers.as_slice())
    }

    fn find(&self, collection: &str) -> Option<usize> {
        let (group, resource) = names(collection)?;
        self.rules.iter().position(|rule| {
            let mut resources = rule.resources.iter();
            resources.any(|wanted| is_meant(wanted, &group, &resource))
        })
    }
}

/// The group and resource of a collection, built in or custom.
fn names(collection: &str) -> Option<(String, String)> {
    let kinds = Catalogue::builtin().kinds().iter();
    let mut kinds = kinds.filter(|kind| kind.collection == collection);
    if let Some(kind) = kinds.next() {
        return Some((kind.group.to_string(), kind.resource.to_string()));
    }
    let inner = collection.strip_prefix("/registry/")?.strip_suffix('/')?;
    let (group, resource) = inner.split_once('/')?;
    Some((group.to_owned(), resource.to_owned()))
}

/// Whether `wanted` (`secrets`, `deployments.apps`, `*.apps`, `*.` or `*.*`) means a resource.
fn is_meant(wanted: &str, group: &str, resource: &str) -> bool {
    match wanted.split_once('.') {
        Some(("*", "*")) => true,
        Some(("*", wanted)) => wanted == group,
        Some((name, wanted)) => name == resource && wanted == group,
        None => group.is_empty() && wanted == resource,
    }
}

impl Seal for Encryption {
    fn seal(&self, collection: &str, name: &str, value: &[u8]) -> Option<Vec<u8>> {
        let Provider::Key { prefix, cipher } = self.providers(collection)?.first()? else {
            return None;
        };
        let mut out = Vec::with_capacity(prefix.len() + value.len() + 48);
        out.extend_from_slice(prefix);
        cipher.seal(value, &place(collection, name), &mut out);
        Some(out)
    }

    fn open<'a>(
        &self,
        collection: &str,
        name: &str,
        written: &'a [u8],
    ) -> Result<Opened<'a>, String> {
        let providers = self.providers(collection).unwrap_or_default();
        if !written.starts_with(PREFIX) {
            // Before it was encrypted, or of a resource that is not.
            let plain = providers
                .iter()
                .position(|provider| matches!(provider, Provider::Identity));
            if !providers.is_empty() && plain.is_none() {
                return Err(
                    "it is not encrypted, and identity is not among the providers of its \
                            resource"
                        .to_owned(),
                );
            }
            return Ok(Opened {
                value: Cow::Borrowed(written),
                stale: plain.is_some_and(|place| place > 0),
            });
        }
        for (at, provider) in providers.iter().enumerate() {
            let Provider::Key { prefix, cipher } = provider else {
                continue;
            };
            let Some(sealed) = written.strip_prefix(prefix.as_slice()) else {
                continue;
            };
            let plain = cipher.open(sealed, &place(collection, name));
            // Without a tag a wrong key may go unnoticed, but what it makes is no record.
            let plain = plain.filter(|plain| crate::record::Stored::new(plain).is_ok());
            if let Some(plain) = plain {
                return Ok(Opened {
                    value: Cow::Owned(plain),
                    stale: at > 0,
                });
            }
        }
        Err(format!(
            "it is encrypted with {}, and no provider of its resource has that key",
            written_with(written)
        ))
    }
}

/// What is authenticated with a record: where it belongs.
fn place(collection: &str, name: &str) -> Vec<u8> {
    [collection.as_bytes(), name.as_bytes()].concat()
}

/// The cipher and the name of the key in a prefix.
fn written_with(written: &[u8]) -> String {
    let head = String::from_utf8_lossy(&written[..written.len().min(128)]);
    let mut parts = head.split(':').skip(2);
    let (cipher, _, key) = (parts.next(), parts.next(), parts.next());
    format!(
        "the key \"{}\" of {}",
        key.unwrap_or_default(),
        cipher.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests;
