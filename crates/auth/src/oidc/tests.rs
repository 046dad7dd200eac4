//! Tokens of an issuer in memory, which changes its keys and fails as asked.

use std::sync::Mutex as PlainMutex;

use object::{Value, value};

use super::*;
use crate::jwt::sign;
use crate::keys::SigningKey;
use crate::outside::Asking;

const ISSUER: &str = "https://login.example/realm";
const NOW: i64 = 1_700_000_000;

const CONFIG: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://login.example/realm
    audiences: [kube, other]
    audienceMatchPolicy: MatchAny
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  claimMappings:
    username: {claim: sub, prefix: 'oidc:'}
    groups: {claim: roles, prefix: 'oidc:'}
    uid: {claim: oid}
";

/// What the issuer serves, and how often it was asked.
#[derive(Default)]
struct Served {
    keys: String,
    is_down: bool,
    asked: usize,
}

struct Login(Arc<PlainMutex<Served>>);

impl Outside for Login {
    fn ask<'a>(&'a self, url: &'a str, body: Option<Vec<u8>>) -> Asking<'a> {
        assert!(body.is_none());
        let mut served = self.0.lock().unwrap();
        served.asked += 1;
        let answer = match url {
            _ if served.is_down => Err("connection refused".to_owned()),
            "https://login.example/realm/.well-known/openid-configuration" => Ok(format!(
                r#"{{"issuer":"{ISSUER}","jwks_uri":"https://login.example/keys"}}"#
            )),
            "https://login.example/keys" => Ok(served.keys.clone()),
            other => Err(format!("{other} is not served")),
        };
        Box::pin(std::future::ready(answer.map(String::into_bytes)))
    }
}

struct Place {
    tokens: OidcTokens,
    served: Arc<PlainMutex<Served>>,
}

impl Place {
    fn new() -> Place {
        let served = Arc::<PlainMutex<Served>>::default();
        let config = AuthenticationConfig::read(CONFIG.as_bytes(), &[]).unwrap();
        let config = config.issuers[0].clone();
        let outside = Box::new(Login(Arc::clone(&served)));
        let tokens = OidcTokens::new(config, outside, vec!["api".into()]);
        Place { tokens, served }
    }

    fn publish(&self, keys: &[&SigningKey]) {
        let mut all = Vec::new();
        for key in keys {
            let mut text = String::new();
            key.public().write_jwk(&mut text);
            all.push(text);
        }
        self.served.lock().unwrap().keys = format!(r#"{{"keys":[{}]}}"#, all.join(","));
    }

    async fn who(&self, token: &str, now: i64) -> Result<User, String> {
        let audiences = ["api".into()];
        let known = self.tokens.who(Presented::new(token, &audiences, now));
        match known.await {
            Ok(Some(known)) => Ok(User::clone(&known.user)),
            Ok(None) => Err("not of this issuer".to_owned()),
            Err(errors) => Err(errors.join(", ")),
        }
    }
}

fn claims(edit: &[(&str, Value)]) -> Value {
    let mut claims = value!({
        "iss": ISSUER, "sub": "jane", "aud": "kube", "exp": (NOW + 3600), "iat": NOW,
        "roles": ["dev", "ops"], "oid": "7", "hd": "example.com", "jti": "id",
    });
    for (key, value) in edit {
        let map = claims.as_object_mut().unwrap();
        match value {
            Value::Null => {
                map.remove(key);
            }
            value => {
                map.insert(*key, value.clone());
            }
        }
    }
    claims
}

#[tokio::test]
async fn claims_become_a_user() {
    let (key, place) = (SigningKey::generate().0, Place::new());
    place.publish(&[&key]);
    let token = sign(&key, &claims(&[])).unwrap();
    let user = place.who(&token, NOW).await.unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("oidc:jane", "7"));
    assert_eq!(
        user.groups,
        ["oidc:dev", "oidc:ops", "system:authenticated"]
    );
    let id = &user.extra["authentication.kubernetes.io/credential-id"];
    assert_eq!(*id, ["JTI=id"]);
    let one_group = claims(&[("roles", Value::from("dev"))]);
    let token = sign(&key, &one_group).unwrap();
    let user = place.who(&token, NOW).await.unwrap();
    assert_eq!(user.groups, ["oidc:dev", "system:authenticated"]);
}

#[tokio::test]
async fn which_tokens_are_refused() {
    let (key, place) = (SigningKey::generate().0, Place::new());
    place.publish(&[&key]);
    let cases = [
        (("iss", Value::from("https://evil")), "not of this issuer"),
        (
            ("aud", value!(["x"])),
            "oidc: verify token: oidc: expected audience in [\"kube\" \"other\"] got [\"x\"]",
        ),
        (
            ("exp", Value::Int(NOW - 1)),
            "oidc: verify token: oidc: token is expired (Token Expiry: 2023-11-14T22:13:19Z)",
        ),
        (
            ("exp", Value::Null),
            "oidc: verify token: oidc: token is expired",
        ),
        (
            ("nbf", Value::Int(NOW + 301)),
            "before the nbf (not before) time",
        ),
        (
            ("sub", Value::Null),
            "oidc: parse username claims \"sub\": claim not present",
        ),
        (
            ("sub", Value::from("")),
            "oidc: empty username is not allowed",
        ),
        (("roles", value!([1])), "oidc: parse groups claim \"roles\""),
        (
            ("hd", Value::Null),
            "oidc: required claim hd not present in ID token",
        ),
        (
            ("hd", Value::from("evil.com")),
            "oidc: required claim hd value does not match. Got = evil.com, want = example.com",
        ),
    ];
    for (edit, expected) in cases {
        let token = sign(&key, &claims(&[edit])).unwrap();
        let refused = place.who(&token, NOW).await.unwrap_err();
        assert!(
            refused.contains(expected),
            "{refused} instead of {expected}"
        );
    }
    let foreign = SigningKey::generate().0;
    let token = sign(&foreign, &claims(&[])).unwrap();
    let refused = place.who(&token, NOW).await.unwrap_err();
    assert!(refused.contains("failed to verify signature"), "{refused}");
}

#[tokio::test]
async fn a_new_key_is_fetched_when_it_is_first_used_but_not_without_end() {
    let (old, new) = (SigningKey::generate().0, SigningKey::generate().0);
    let place = Place::new();
    place.publish(&[&old]);
    let token = sign(&old, &claims(&[])).unwrap();
    assert!(place.who(&token, NOW).await.is_ok());
    place.publish(&[&new]);
    let token = sign(&new, &claims(&[])).unwrap();
    assert!(place.who(&token, NOW + 1).await.is_err(), "too soon");
    assert!(place.who(&token, NOW + 2).await.is_ok());
    // The old key is gone, and what it signed with it.
    let stale = sign(&old, &claims(&[("jti", Value::from("2"))])).unwrap();
    assert!(place.who(&stale, NOW + 4).await.is_err());
    let before = place.served.lock().unwrap().asked;
    for _ in 0..100 {
        let forged = sign(&SigningKey::generate().0, &claims(&[])).unwrap();
        assert!(place.who(&forged, NOW + 4).await.is_err());
    }
    assert_eq!(place.served.lock().unwrap().asked, before);
}

#[tokio::test]
async fn an_issuer_that_is_down_is_asked_again() {
    let (key, place) = (SigningKey::generate().0, Place::new());
    place.publish(&[&key]);
    place.served.lock().unwrap().is_down = true;
    let token = sign(&key, &claims(&[])).unwrap();
    assert_eq!(
        place.who(&token, NOW).await.unwrap_err(),
        "oidc: authenticator not initialized: connection refused"
    );
    place.served.lock().unwrap().is_down = false;
    assert!(place.who(&token, NOW + 2).await.is_ok());
    // Known keys go on while it is down.
    place.served.lock().unwrap().is_down = true;
    let other = sign(&key, &claims(&[("jti", Value::from("2"))])).unwrap();
    assert!(place.who(&other, NOW + 4).await.is_ok());
}

#[tokio::test]
async fn expressions_map_and_judge() {
    let text = "
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://login.example/realm, audiences: [kube]}
  claimValidationRules:
  - {expression: 'claims.exp - claims.iat <= 3600', message: lives too long}
  claimMappings:
    username: {expression: '\"x:\" + claims.sub'}
    groups: {expression: 'claims.roles.map(r, \"g:\" + r)'}
    uid: {expression: claims.oid}
    extra:
    - {key: example.com/hd, valueExpression: claims.hd}
    - {key: example.com/none, valueExpression: '\"\"'}
  userValidationRules:
  - {expression: \"!user.groups.exists(g, g == 'g:root')\", message: no root}
";
    let config = AuthenticationConfig::read(text.as_bytes(), &[]).unwrap();
    let mut place = Place::new();
    let outside = Box::new(Login(Arc::clone(&place.served)));
    place.tokens = OidcTokens::new(config.issuers[0].clone(), outside, vec!["api".into()]);
    let key = SigningKey::generate().0;
    place.publish(&[&key]);
    let token = sign(&key, &claims(&[])).unwrap();
    let user = place.who(&token, NOW).await.unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("x:jane", "7"));
    assert_eq!(user.groups, ["g:dev", "g:ops", "system:authenticated"]);
    assert_eq!(user.extra["example.com/hd"], ["example.com"]);
    assert!(!user.extra.contains_key("example.com/none"));
    let cases = [
        (
            ("iat", Value::Int(NOW - 1)),
            "oidc: error evaluating claim validation expression: validation expression 'claims.exp \
             - claims.iat <= 3600' failed: lives too long",
        ),
        (
            ("roles", value!(["root"])),
            "oidc: error evaluating user info validation rule: validation expression",
        ),
        (
            ("sub", Value::Int(7)),
            "oidc: error evaluating username claim expression",
        ),
        (
            ("roles", Value::Null),
            "oidc: error evaluating group claim expression: no such key: roles",
        ),
    ];
    for (edit, expected) in cases {
        let token = sign(&key, &claims(&[edit])).unwrap();
        let refused = place.who(&token, NOW).await.unwrap_err();
        assert!(
            refused.contains(expected),
            "{refused} instead of {expected}"
        );
    }
}

#[test]
fn which_configurations_are_refused() {
    let own = ["https://kubernetes.default.svc".to_owned()];
    let cases = [
        (
            "kind: AuthenticationConfiguration",
            "kind: Other",
            "kind: must be",
        ),
        ("realm\n", "realm?x\n", "URL must not contain a query"),
        (
            "https://login.example",
            "http://login",
            "URL scheme must be https",
        ),
        (
            "https://login.example/realm",
            "https://kubernetes.default.svc",
            "jwt[0].issuer.url: URL must not overlap with disallowed issuers",
        ),
        (
            "    audiences: [kube, other]\n",
            "",
            "at least one audience is required",
        ),
        (
            "MatchAny",
            "''",
            "audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
        (
            ", prefix: 'oidc:'}\n    groups",
            "}\n    groups",
            "prefix is required when claim is set",
        ),
        (
            "claim: hd",
            "clam: hd",
            "jwt[0].claimValidationRules[0].clam: unknown field",
        ),
        (
            "{claim: oid}",
            "{expression: claims.oid + }",
            "jwt[0].claimMappings.uid.expression: compilation failed",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{expression: claims.email}",
            "claims.email_verified must be used",
        ),
        (
            "{claim: oid}",
            "{claim: oid}\n    extra: [{key: k8s.io/x, valueExpression: claims.a}]",
            "are reserved for Kubernetes use",
        ),
        (
            "- {claim: hd, requiredValue: example.com}",
            "- {expression: claims.hd, message: x}",
            "must evaluate to bool",
        ),
        ("jwt:", "jwt: 7\nx:", "unknown field"),
    ];
    for (find, replace, expected) in cases {
        assert!(CONFIG.contains(find), "{find}");
        let text = CONFIG.replacen(find, replace, 1);
        let error = AuthenticationConfig::read(text.as_bytes(), &own).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(expected), "{error} instead of {expected}");
    }
    let anonymous = "
apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /livez}]}
";
    let read = AuthenticationConfig::read(anonymous.as_bytes(), &own).unwrap();
    assert_eq!(read.anonymous.unwrap().paths, ["/livez"]);
}
