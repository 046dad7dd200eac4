//! The tokens of service accounts: what they say, who signs them, and how they are read.
//!
//! A token counts if a key of ours signed it, the issuer is ours, it is meant for whom it is shown
//! to, and its time has come and not gone. Whether its account and what it is bound to still exist
//! is for the caller to find out: [`Claims`] names them. Contract: `pkg/serviceaccount`.

use object::{Map, Text, Value};

use crate::authenticate::bearer;
use crate::jwt::{self, Jwt, seconds};
use crate::keys::{PublicKey, SigningKey};
use crate::rule::quote_all;
use crate::tokens::{Cache, Presented, digest_of};
use crate::user::{User, service_account};

/// The issuer of tokens that lie in Secrets and never expire.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// Clocks may differ this much.
pub const LEEWAY_SECONDS: i64 = 60;
/// A pod's token for this long says that a kubelet will renew it; see [`Issuer::lifetime`].
const RENEWED_SECONDS: i64 = 60 * 60 + 7;
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;
/// So many tokens that were signed here are known again without their signature being checked.
const SIGNED_MAX: usize = 10_000;

/// Signs and reads the tokens of service accounts.
pub struct Issuer {
    signing: SigningKey,
    /// Every key that verifies, in the order given.
    keys: Vec<PublicKey>,
    /// The first is the issuer of new tokens.
    issuers: Vec<String>,
    audiences: Vec<Text>,
    /// No token lives longer; zero for no limit.
    lifetime_seconds_max: i64,
    /// Tokens that were signed here: a signature need not be checked by whoever made it.
    signed: Cache<()>,
}

/// What an issuer is made of.
pub struct IssuerOptions {
    /// Signs new tokens.
    pub signing: SigningKey,
    /// Verify tokens, besides the signing key.
    pub keys: Vec<PublicKey>,
    /// Who signs; the first is the issuer of new tokens. There is at least one.
    pub issuers: Vec<String>,
    /// Whom a token has to be meant for; the issuer if empty.
    pub audiences: Vec<Text>,
    /// No token lives longer; zero for no limit.
    pub lifetime_seconds_max: i64,
}

/// An object as tokens name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: Text,
    /// Its id.
    pub uid: Text,
}

/// What a token says of its account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The account's namespace.
    pub namespace: Text,
    /// The account.
    pub account: Named,
    /// The pod that the token dies with.
    pub pod: Option<Named>,
    /// The Secret that the token dies with.
    pub secret: Option<Named>,
    /// The node that the token dies with, or only the one that the pod runs on.
    pub node: Option<Named>,
    /// The token's own id.
    pub id: Text,
    /// For whom it is, of those it was shown to.
    pub audiences: Vec<Text>,
    /// When it ends; `None` for tokens that lie in Secrets.
    pub expires: Option<i64>,
    /// It lies in the Secret that it names and is good as long as it does.
    pub is_legacy: bool,
}

/// When a new token ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// How long it is good.
    pub seconds: i64,
    /// After how long its use is noted, if that is earlier.
    pub warn_after_seconds: Option<i64>,
}

impl Issuer {
    /// Ready to sign and read.
    pub fn new(options: IssuerOptions) -> Issuer {
        let signing = options.signing;
        let mut keys = options.keys;
        if !keys.contains(signing.public()) {
            keys.push(signing.public().clone());
        }
        let mut audiences = options.audiences;
        if audiences.is_empty() {
            audiences.extend(options.issuers.first().map(Text::from));
        }
        Issuer {
            signing,
            keys,
            issuers: options.issuers,
            audiences,
            lifetime_seconds_max: options.lifetime_seconds_max,
            signed: Cache::new(SIGNED_MAX),
        }
    }

    /// Whom tokens are meant for unless they say otherwise: the API.
    pub fn audiences(&self) -> &[Text] {
        &self.audiences
    }

    /// The longest life of a token; `None` for no limit.
    pub fn lifetime_seconds_max(&self) -> Option<i64> {
        (self.lifetime_seconds_max > 0).then_some(self.lifetime_seconds_max)
    }

    /// How long a token lives that is asked for `seconds`.
    ///
    /// Tokens that admission asks for on behalf of pods live a year, so that programs which read
    /// their token only once go on; that they are used late is noted.
    pub fn lifetime(&self, seconds: i64, bound_to_pod: bool, audiences: &[Text]) -> Lifetime {
        let ours = audiences
            .iter()
            .all(|audience| self.audiences.contains(audience));
        if bound_to_pod && ours && seconds == RENEWED_SECONDS {
            return Lifetime {
                seconds: EXTENDED_SECONDS,
                warn_after_seconds: Some(seconds),
            };
        }
        Lifetime {
            seconds,
            warn_after_seconds: None,
        }
    }

    /// Signs a token; `None` if the system gives no random bytes.
    pub fn sign(&self, claims: &Claims, now: i64, lifetime: Lifetime) -> Option<String> {
        let mut about = Map::new();
        about.insert("namespace", Value::String(claims.namespace.clone()));
        about.insert("serviceaccount", claims.account.to_value());
        let bound = [
            ("pod", &claims.pod),
            ("secret", &claims.secret),
            ("node", &claims.node),
        ];
        for (kind, named) in bound {
            if let Some(named) = named {
                about.insert(kind, named.to_value());
            }
        }
        if let Some(seconds) = lifetime.warn_after_seconds {
            about.insert("warnafter", Value::Int(now.saturating_add(seconds)));
        }
        let audiences = claims.audiences.iter().cloned().map(Value::String);
        let mut all = Map::new();
        // One audience alone is a list too, as upstream writes it.
        all.insert("aud", Value::Array(audiences.collect()));
        let expires = now.saturating_add(lifetime.seconds);
        all.insert("exp", Value::Int(expires));
        all.insert("iat", Value::Int(now));
        all.insert("iss", Value::from(self.issuers[0].as_str()));
        all.insert("jti", Value::String(claims.id.clone()));
        all.insert("kubernetes.io", Value::Object(about));
        all.insert("nbf", Value::Int(now));
        all.insert("sub", Value::from(claims.user_name()));
        let token = jwt::sign(&self.signing, &Value::Object(all))?;
        let until = expires.saturating_add(LEEWAY_SECONDS + 1);
        self.signed.put(digest_of(&token), (), until, now);
        Some(token)
    }

    /// Reads a token; `None` if it is not one of ours.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn read(&self, presented: Presented<'_>) -> Result<Option<Claims>, String> {
        let Some(jwt) = Jwt::read(presented.token) else {
            return Ok(None);
        };
        let issuer = jwt.text("iss");
        let is_legacy = issuer == LEGACY_ISSUER;
        if !is_legacy && !self.issuers.iter().any(|known| known == issuer) {
            return Ok(None);
        }
        let mut keys = self
            .keys
            .iter()
            .filter(|key| jwt.key_id.is_empty() || key.id == jwt.key_id.as_str())
            .peekable();
        if keys.peek().is_none() {
            return Err("invalid signature, no keys found".to_owned());
        }
        let signed_here = self.signed.get(&presented.digest, presented.now);
        if signed_here.is_none() && !keys.any(|key| jwt.is_signed_by(key)) {
            return Err("go-jose/go-jose: error in cryptographic primitive".to_owned());
        }
        let meant_for = self.meant_for(&jwt, presented.audiences)?;
        let mut claims = if is_legacy {
            legacy_claims(&jwt)?
        } else {
            check_time(&jwt, presented.now)?;
            bound_claims(&jwt)
        };
        claims.audiences = meant_for;
        Ok(Some(claims))
    }

    /// What the audit log is told of the token in a header that let `user` in, if it is one of
    /// ours: that it lies in a Secret, or that it is used for longer than it was meant to be.
    pub fn note(&self, header: &str, user: &str, now: i64) -> Option<(&'static str, String)> {
        let jwt = Jwt::read(bearer(header)?)?;
        let (issuer, subject) = (jwt.text("iss"), jwt.text("sub"));
        let is_ours = issuer == LEGACY_ISSUER || self.issuers.iter().any(|known| known == issuer);
        if !is_ours || subject != user {
            return None;
        }
        if jwt.audiences().is_empty() {
            let key = "authentication.k8s.io/legacy-token";
            return Some((key, subject.to_owned()));
        }
        let meant_until = seconds(jwt.claims.get("kubernetes.io")?.get("warnafter")?)?;
        let late = now.saturating_sub(meant_until);
        let text = format!("subject: {subject}, seconds after warning threshold: {late}");
        (late >= 0).then_some(("authentication.k8s.io/stale-token", text))
    }

    /// Those of `audiences` that the token is meant for.
    fn meant_for(&self, jwt: &Jwt<'_>, audiences: &[Text]) -> Result<Vec<Text>, String> {
        let mut own = jwt.audiences();
        if own.is_empty() {
            own.clone_from(&self.audiences);
        }
        let both: Vec<Text> = own
            .iter()
            .filter(|it| audiences.contains(it))
            .cloned()
            .collect();
        if both.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quote_all(&own),
                quote_all(audiences)
            ));
        }
        Ok(both)
    }

    /// The document that tells others how to verify our tokens; `None` if the issuer is no
    /// address that they could ask.
    pub fn configuration(&self, keys_address: &str) -> Option<String> {
        let issuer = self.issuers[0].as_str();
        if !issuer.starts_with("https://") || issuer.contains(['?', '#']) {
            return None;
        }
        let mut algorithms: Vec<&str> = self.keys.iter().map(PublicKey::algorithm).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let algorithms: Vec<String> = algorithms.iter().map(|it| format!("\"{it}\"")).collect();
        let text = |text: &str| {
            let bytes = object::json::to_vec(&Value::from(text));
            String::from_utf8(bytes).unwrap_or_default()
        };
        Some(format!(
            "{{\"issuer\":{},\"jwks_uri\":{},\"response_types_supported\":[\"id_token\"],\
             \"subject_types_supported\":[\"public\"],\
             \"id_token_signing_alg_values_supported\":[{}]}}",
            text(issuer),
            text(keys_address),
            algorithms.join(","),
        ))
    }

    /// The keys that verify our tokens.
    pub fn key_set(&self) -> String {
        let mut out = String::from(r#"{"keys":["#);
        for (place, key) in self.keys.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            key.write_jwk(&mut out);
        }
        out.push_str("]}");
        out
    }
}

impl Claims {
    /// The name of the account's user.
    pub fn user_name(&self) -> String {
        format!(
            "system:serviceaccount:{}:{}",
            self.namespace, self.account.name
        )
    }

    /// The account as a user.
    pub fn user(&self) -> User {
        let groups = format!("system:serviceaccounts:{}", self.namespace);
        let groups = ["system:serviceaccounts", groups.as_str()];
        let mut user = User::authenticated(&self.user_name(), &self.account.uid, &groups);
        let mut note = |key: &str, value: &str| {
            if !value.is_empty() {
                let key = format!("authentication.kubernetes.io/{key}").into();
                user.extra.insert(key, vec![value.into()]);
            }
        };
        if let Some(pod) = &self.pod
            && !pod.uid.is_empty()
        {
            note("pod-name", &pod.name);
            note("pod-uid", &pod.uid);
        }
        if !self.id.is_empty() {
            note("credential-id", &format!("JTI={}", self.id));
        }
        if let Some(node) = &self.node
            && !node.name.is_empty()
        {
            note("node-name", &node.name);
            note("node-uid", &node.uid);
        }
        user
    }
}

impl Named {
    fn read(value: Option<&Value>) -> Option<Named> {
        let value = value.filter(|value| !value.is_null())?;
        let text = |field: &str| Text::from(value.str_at(&[field]).unwrap_or_default());
        Some(Named {
            name: text("name"),
            uid: text("uid"),
        })
    }

    fn to_value(&self) -> Value {
        let mut out = Map::new();
        for (key, text) in [("name", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                out.insert(key, Value::String(text.clone()));
            }
        }
        Value::Object(out)
    }
}

fn check_time(jwt: &Jwt<'_>, now: i64) -> Result<(), String> {
    let is_after = |claim| {
        jwt.time(claim)
            .is_some_and(|time| now.saturating_add(LEEWAY_SECONDS) < time)
    };
    let text = if is_after("nbf") {
        "service account token is not valid yet"
    } else if jwt
        .time("exp")
        .is_some_and(|time| now.saturating_sub(LEEWAY_SECONDS) > time)
    {
        "service account token has expired"
    } else if is_after("iat") {
        "service account token is issued in the future"
    } else {
        return Ok(());
    };
    Err(text.to_owned())
}

fn bound_claims(jwt: &Jwt<'_>) -> Claims {
    let about = jwt.claims.get("kubernetes.io");
    let named = |field: &str| Named::read(about.and_then(|about| about.get(field)));
    let namespace = about.and_then(|about| about.str_at(&["namespace"]));
    Claims {
        namespace: namespace.unwrap_or_default().into(),
        account: named("serviceaccount").unwrap_or_default(),
        pod: named("pod"),
        secret: named("secret"),
        node: named("node"),
        id: jwt.text("jti").into(),
        audiences: Vec::new(),
        expires: jwt.claims.get("exp").and_then(seconds),
        is_legacy: false,
    }
}

fn legacy_claims(jwt: &Jwt<'_>) -> Result<Claims, String> {
    let claim = |field: &str, missing: &str| {
        let text = jwt.text(&format!("kubernetes.io/serviceaccount/{field}"));
        match text {
            "" => Err(format!("{missing} claim is missing")),
            text => Ok(Text::from(text)),
        }
    };
    if jwt.text("sub").is_empty() {
        return Err("sub claim is missing".to_owned());
    }
    let namespace = claim("namespace", "namespace")?;
    let secret = claim("secret.name", "secretName")?;
    let name = claim("service-account.name", "serviceAccountName")?;
    let uid = claim("service-account.uid", "serviceAccountUID")?;
    if service_account(jwt.text("sub")) != Some((namespace.as_str(), name.as_str())) {
        return Err("sub claim is invalid".to_owned());
    }
    Ok(Claims {
        namespace,
        account: Named { name, uid },
        secret: Some(Named {
            name: secret,
            uid: Text::default(),
        }),
        is_legacy: true,
        ..Claims::default()
    })
}

#[cfg(test)]
mod tests;
