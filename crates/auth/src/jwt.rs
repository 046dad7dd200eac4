//! Signed tokens in their compact form: three parts of base64 with dots between them.
//!
//! Reading takes a token apart and believes nothing; only [`Jwt::is_signed_by`] does.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use object::{Map, Text, Value, json};

use crate::keys::{PublicKey, SigningKey};

/// Reads as Go does: bits left over in the last letter say nothing.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    NO_PAD.with_decode_allow_trailing_bits(true),
);
/// Longer ones are not looked at; headers of requests are limited anyway, bodies less so.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// A token that has been taken apart; nothing in it is verified yet.
#[derive(Debug)]
pub(crate) struct Jwt<'a> {
    /// The algorithm that the token names.
    pub(crate) algorithm: Text,
    /// The key that the token names, or empty.
    pub(crate) key_id: Text,
    /// What it says.
    pub(crate) claims: Map,
    signed: &'a str,
    signature: Vec<u8>,
    /// The header asks for something that would have to be understood.
    is_critical: bool,
}

impl<'a> Jwt<'a> {
    /// Takes a token apart; `None` if it is not one.
    pub(crate) fn read(token: &'a str) -> Option<Jwt<'a>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let header = map(header)?;
        let text = |field: &str| header.get(field).and_then(Value::as_str);
        Some(Jwt {
            algorithm: text("alg").unwrap_or_default().into(),
            key_id: text("kid").unwrap_or_default().into(),
            claims: map(claims)?,
            signed,
            signature: LENIENT.decode(signature).ok()?,
            is_critical: header.contains_key("crit") || header.contains_key("b64"),
        })
    }

    /// Whether this key signed it.
    pub(crate) fn is_signed_by(&self, key: &PublicKey) -> bool {
        !self.is_critical && key.verify(&self.algorithm, self.signed.as_bytes(), &self.signature)
    }

    /// A claim that is a string.
    pub(crate) fn text(&self, claim: &str) -> &str {
        let claim = self.claims.get(claim).and_then(Value::as_str);
        claim.unwrap_or_default()
    }

    /// A claim that is a time, in seconds since the start of 1970.
    pub(crate) fn time(&self, claim: &str) -> Option<i64> {
        seconds(self.claims.get(claim)?)
    }

    /// For whom it is: one string or several.
    pub(crate) fn audiences(&self) -> Vec<Text> {
        texts(self.claims.get("aud"))
    }
}

/// A time of a token, whose fraction is dropped.
pub(crate) fn seconds(value: &Value) -> Option<i64> {
    match value {
        Value::Int(seconds) => Some(*seconds),
        Value::Float(seconds) if seconds.is_finite() => Some(*seconds as i64),
        _ => None,
    }
}

/// A string, or all strings of a list.
pub(crate) fn texts(value: Option<&Value>) -> Vec<Text> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => many
            .iter()
            .filter_map(Value::as_str)
            .map(Text::from)
            .collect(),
        _ => Vec::new(),
    }
}

/// Signs claims; `None` if the system gives no random bytes.
pub(crate) fn sign(key: &SigningKey, claims: &Value) -> Option<String> {
    let (algorithm, id) = (key.algorithm(), &key.public().id);
    let header = format!(r#"{{"alg":"{algorithm}","kid":"{id}"}}"#);
    let mut token = URL_SAFE_NO_PAD.encode(header);
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(json::to_vec(claims), &mut token);
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Some(token)
}

fn map(part: &str) -> Option<Map> {
    let bytes = LENIENT.decode(part).ok()?;
    match json::parse(&bytes).ok()? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}
