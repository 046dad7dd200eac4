//! Tokens of other issuers, by OpenID Connect.
//!
//! An issuer's keys are fetched when its first token comes and again when a token names a key that
//! is not known, but not more often than `FETCH_SECONDS_MIN` allows: tokens with invented keys
//! must not make us ask without end. Contract: `apiserver/plugin/pkg/authenticator/token/oidc`.

mod config;
mod expressions;

use std::sync::Arc;

use object::field::quote;
use object::{Text, Value, json};
use tokio::sync::Mutex;

pub use config::{AnonymousConfig, AuthenticationConfig, IssuerConfig, OidcFlags};
use config::{Mapping, Prefixed};

use crate::jwt::{Jwt, texts};
use crate::keys::{PublicKey, from_jwks};
use crate::outside::Outside;
use crate::rule::quote_all;
use crate::tokens::{Answer, Cache, Known, Presented, TokenAuthenticator, implied_audiences};
use crate::user::User;

/// An issuer is asked for its keys once in this time at most.
const FETCH_SECONDS_MIN: i64 = 2;
/// A verified token counts this long without another look.
const REMEMBERED_SECONDS: i64 = 10;
const REMEMBERED_MAX: usize = 8192;
/// A token may be used this long before its time, as upstream has it.
const EARLY_SECONDS: i64 = 300;

/// The tokens of one issuer.
pub struct OidcTokens {
    config: IssuerConfig,
    outside: Box<dyn Outside>,
    audiences: Vec<Text>,
    keys: Mutex<Keys>,
    seen: Cache<Arc<(Vec<Text>, Known)>>,
}

#[derive(Default)]
struct Keys {
    known: Arc<Vec<PublicKey>>,
    /// Where they are; known once the issuer has told.
    address: Option<String>,
    /// When they were last asked for.
    fetched: Option<i64>,
    /// Why there are none.
    problem: Option<String>,
}

impl OidcTokens {
    /// Reads tokens of an issuer, for the server's own audiences.
    pub fn new(
        config: IssuerConfig,
        outside: Box<dyn Outside>,
        audiences: Vec<Text>,
    ) -> OidcTokens {
        OidcTokens {
            config,
            outside,
            audiences,
            keys: Mutex::default(),
            seen: Cache::new(REMEMBERED_MAX),
        }
    }

    async fn verify(&self, presented: Presented<'_>) -> Result<Option<Known>, String> {
        let audiences = implied_audiences(&self.audiences, presented.audiences);
        if audiences.is_empty() {
            return Ok(None);
        }
        if let Some(seen) = self.seen.get(&presented.digest, presented.now)
            && seen.0 == presented.audiences
        {
            return Ok(Some(seen.1.clone()));
        }
        let Some(jwt) = Jwt::read(presented.token) else {
            return Ok(None);
        };
        if jwt.text("iss") != self.config.url {
            return Ok(None);
        }
        let wanted = &self.config.algorithms;
        if !wanted.is_empty() && !wanted.contains(&jwt.algorithm) {
            return Err(format!(
                "oidc: verify token: oidc: malformed jwt: unexpected signature algorithm {}; \
                 expected {}",
                quote(&jwt.algorithm),
                quote_all(wanted)
            ));
        }
        self.check_signature(&jwt, presented.now).await?;
        self.check_claims(&jwt, presented.now)
            .map_err(|error| format!("oidc: verify token: {error}"))?;
        let user = Arc::new(self.user(&jwt)?);
        let known = Known { user, audiences };
        let end = jwt.time("exp").unwrap_or(presented.now);
        let until = end.min(presented.now.saturating_add(REMEMBERED_SECONDS));
        let entry = Arc::new((presented.audiences.to_vec(), known.clone()));
        self.seen.put(presented.digest, entry, until, presented.now);
        Ok(Some(known))
    }

    async fn check_signature(&self, jwt: &Jwt<'_>, now: i64) -> Result<(), String> {
        let is_signed = |keys: &[PublicKey]| {
            let mut fitting = keys
                .iter()
                .filter(|key| jwt.key_id.is_empty() || key.id.is_empty() || key.id == *jwt.key_id);
            fitting.any(|key| jwt.is_signed_by(key))
        };
        // Whoever comes while keys are fetched waits for them.
        let mut keys = self.keys.lock().await;
        if is_signed(&keys.known) {
            return Ok(());
        }
        let may_ask = keys
            .fetched
            .is_none_or(|last| now.saturating_sub(last) >= FETCH_SECONDS_MIN);
        if may_ask {
            keys.fetched = Some(now);
            match self.fetch(keys.address.clone()).await {
                Ok((address, known)) => {
                    keys.address = Some(address);
                    keys.known = Arc::new(known);
                    keys.problem = None;
                }
                Err(problem) => {
                    // The issuer may have moved.
                    keys.address = None;
                    keys.problem = Some(problem);
                }
            }
            if is_signed(&keys.known) {
                return Ok(());
            }
        }
        match &keys.problem {
            Some(problem) if keys.known.is_empty() => {
                Err(format!("oidc: authenticator not initialized: {problem}"))
            }
            _ => Err(
                "oidc: verify token: failed to verify signature: failed to verify id token \
                      signature"
                    .to_owned(),
            ),
        }
    }

    /// The issuer's keys, and where they are.
    async fn fetch(&self, address: Option<String>) -> Result<(String, Vec<PublicKey>), String> {
        let address = match address {
            Some(address) => address,
            None => self.discover().await?,
        };
        let answer = self.outside.ask(&address, None).await?;
        let document = json::parse(&answer).map_err(|error| error.to_string())?;
        Ok((address, from_jwks(&document)))
    }

    async fn discover(&self) -> Result<String, String> {
        let url = &self.config.discovery_url;
        let answer = self.outside.ask(url, None).await?;
        let document = json::parse(&answer).map_err(|error| error.to_string())?;
        let told = document.str_at(&["issuer"]).unwrap_or_default();
        if told != self.config.url {
            return Err(format!(
                "oidc: issuer did not match the issuer returned by provider, expected \"{}\" got \
                 \"{told}\"",
                self.config.url
            ));
        }
        let keys = document.str_at(&["jwks_uri"]).unwrap_or_default();
        if !keys.starts_with("https://") {
            return Err(format!("the issuer names no place of its keys: \"{keys}\""));
        }
        Ok(keys.to_owned())
    }

    fn check_claims(&self, jwt: &Jwt<'_>, now: i64) -> Result<(), String> {
        let audiences = jwt.audiences();
        let wanted = &self.config.audiences;
        if !audiences.iter().any(|own| wanted.contains(own)) {
            return Err(format!(
                "oidc: expected audience in {} got {}",
                quote_all(wanted),
                quote_all(&audiences)
            ));
        }
        let end = jwt.time("exp").unwrap_or_default();
        if end < now {
            let end = object::time::Time::from_unix_seconds(end);
            return Err(format!("oidc: token is expired (Token Expiry: {end})"));
        }
        if let Some(start) = jwt.time("nbf")
            && now.saturating_add(EARLY_SECONDS) < start
        {
            let (now, start) = (
                object::time::Time::from_unix_seconds(now),
                object::time::Time::from_unix_seconds(start),
            );
            return Err(format!(
                "oidc: current time {now} before the nbf (not before) time: {start}"
            ));
        }
        Ok(())
    }

    fn user(&self, jwt: &Jwt<'_>) -> Result<User, String> {
        let config = &self.config;
        let claims = expressions::seen(&Value::Object(jwt.claims.clone()));
        let mut user = User {
            name: username(&config.username, jwt, &claims)?,
            groups: groups(config.groups.as_ref(), jwt, &claims)?,
            ..User::default()
        };
        match &config.uid {
            None => {}
            Some(Mapping::Claim(claim)) => {
                user.uid = text_claim(jwt, claim)
                    .map_err(|error| format!("oidc: parse uid claim \"{claim}\": {error}"))?;
            }
            Some(Mapping::Expression(expression)) => {
                user.uid = expression.text(&claims).map_err(|error| {
                    format!("oidc: error evaluating uid claim expression: {error}")
                })?;
            }
        }
        if let Some(id) = jwt.claims.get("jti").and_then(Value::as_str)
            && !id.is_empty()
        {
            let key = Text::from("authentication.kubernetes.io/credential-id");
            user.extra.insert(key, vec![format!("JTI={id}").into()]);
        }
        for (key, expression) in &config.extra {
            let values = expression.texts(&claims).map_err(|error| {
                format!("oidc: error evaluating extra claim expression: {error}")
            })?;
            if !values.is_empty() {
                user.extra.insert(key.as_str().into(), values);
            }
        }
        self.check_rules(jwt, &claims, &user)?;
        user.join_authenticated();
        Ok(user)
    }

    /// Checks what is required of claims, and of the user that they became.
    fn check_rules(&self, jwt: &Jwt<'_>, claims: &Value, user: &User) -> Result<(), String> {
        let config = &self.config;
        for (claim, wanted) in &config.required_claims {
            if !jwt.claims.contains_key(claim) {
                return Err(format!(
                    "oidc: required claim {claim} not present in ID token"
                ));
            }
            let found = text_claim(jwt, claim)
                .map_err(|error| format!("oidc: parse claim {claim}: {error}"))?;
            if found != wanted.as_str() {
                return Err(format!(
                    "oidc: required claim {claim} value does not match. Got = {found}, want = \
                     {wanted}"
                ));
            }
        }
        for rule in &config.claim_rules {
            rule.check_claims(claims).map_err(|error| {
                format!("oidc: error evaluating claim validation expression: {error}")
            })?;
        }
        let user = expressions::user_value(user);
        for rule in &config.user_rules {
            rule.check_user(&user).map_err(|error| {
                format!("oidc: error evaluating user info validation rule: {error}")
            })?;
        }
        Ok(())
    }
}

impl TokenAuthenticator for OidcTokens {
    fn who<'a>(&'a self, presented: Presented<'a>) -> Answer<'a> {
        Box::pin(async move { self.verify(presented).await.map_err(|error| vec![error]) })
    }
}

fn username(mapping: &Prefixed, jwt: &Jwt<'_>, claims: &Value) -> Result<Text, String> {
    let claim = match &mapping.from {
        Mapping::Claim(claim) => claim,
        Mapping::Expression(expression) => {
            let name = expression.text(claims).map_err(|error| {
                format!("oidc: error evaluating username claim expression: {error}")
            })?;
            if name.is_empty() {
                let text = "oidc: empty username via CEL expression is not allowed";
                return Err(text.to_owned());
            }
            return Ok(name);
        }
    };
    let name = text_claim(jwt, claim)
        .map_err(|error| format!("oidc: parse username claims \"{claim}\": {error}"))?;
    if claim == "email"
        && let Some(verified) = jwt.claims.get("email_verified")
    {
        match verified.as_bool() {
            Some(true) => {}
            Some(false) => return Err("oidc: email not verified".to_owned()),
            None => {
                let text = "oidc: parse 'email_verified' claim: it is neither true nor false";
                return Err(text.to_owned());
            }
        }
    }
    if name.is_empty() {
        return Err("oidc: empty username is not allowed".to_owned());
    }
    Ok(format!("{}{name}", mapping.prefix).into())
}

fn groups(mapping: Option<&Prefixed>, jwt: &Jwt<'_>, claims: &Value) -> Result<Vec<Text>, String> {
    let Some(mapping) = mapping else {
        return Ok(Vec::new());
    };
    let claim = match &mapping.from {
        Mapping::Claim(claim) => claim,
        Mapping::Expression(expression) => {
            return expression.texts(claims).map_err(|error| {
                format!("oidc: error evaluating group claim expression: {error}")
            });
        }
    };
    let Some(value) = jwt.claims.get(claim) else {
        return Ok(Vec::new());
    };
    let whole = match value {
        Value::Array(items) => items.iter().all(|item| item.as_str().is_some()),
        Value::String(_) | Value::Null => true,
        _ => false,
    };
    if !whole {
        return Err(format!(
            "oidc: parse groups claim \"{claim}\": it is neither a string nor a list of strings"
        ));
    }
    let groups = texts(Some(value));
    Ok(groups
        .iter()
        .map(|group| format!("{}{group}", mapping.prefix).into())
        .collect())
}

fn text_claim(jwt: &Jwt<'_>, claim: &str) -> Result<Text, &'static str> {
    match jwt.claims.get(claim) {
        None => Err("claim not present"),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Null) => Ok(Text::default()),
        Some(_) => Err("it is no string"),
    }
}

#[cfg(test)]
mod tests;
