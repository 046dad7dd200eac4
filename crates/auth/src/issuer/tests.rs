//! What tokens say and which are believed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use object::json;

use super::*;

const NOW: i64 = 1_700_000_000;

fn issuer() -> Issuer {
    Issuer::new(IssuerOptions {
        signing: SigningKey::generate().0,
        keys: Vec::new(),
        issuers: vec!["https://issuer".to_owned(), "https://old".to_owned()],
        audiences: Vec::new(),
        lifetime_seconds_max: 0,
    })
}

fn named(name: &str, uid: &str) -> Named {
    Named {
        name: name.into(),
        uid: uid.into(),
    }
}

fn claims() -> Claims {
    Claims {
        namespace: "ns".into(),
        account: named("robot", "u1"),
        pod: Some(named("pod", "u2")),
        node: Some(named("node", "u3")),
        id: "jti".into(),
        audiences: vec!["https://issuer".into()],
        ..Claims::default()
    }
}

fn hour() -> Lifetime {
    Lifetime {
        seconds: 3600,
        warn_after_seconds: None,
    }
}

fn said(token: &str) -> String {
    let part = token.split('.').nth(1).unwrap();
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// Reads as another server with the same keys does, which has to check the signature.
fn read_elsewhere(
    issuer: &Issuer,
    token: &str,
    audiences: &[Text],
    now: i64,
) -> Result<Option<Claims>, String> {
    let other = Issuer::new(IssuerOptions {
        signing: SigningKey::generate().0,
        keys: issuer.keys.clone(),
        issuers: issuer.issuers.clone(),
        audiences: issuer.audiences.clone(),
        lifetime_seconds_max: 0,
    });
    other.read(Presented::new(token, audiences, now))
}

fn refusal(issuer: &Issuer, token: &str, now: i64) -> String {
    let refused = read_elsewhere(issuer, token, issuer.audiences(), now).unwrap_err();
    let here = issuer.read(Presented::new(token, issuer.audiences(), now));
    assert_eq!(
        here.unwrap_err(),
        refused,
        "the signer is no easier to fool"
    );
    refused
}

#[test]
fn a_token_says_what_upstream_says() {
    let issuer = issuer();
    let lifetime = issuer.lifetime(3607, true, issuer.audiences());
    let token = issuer.sign(&claims(), NOW, lifetime).unwrap();
    assert_eq!(
        said(&token),
        r#"{"aud":["https://issuer"],"exp":1731536000,"iat":1700000000,"iss":"https://issuer","jti":"jti","kubernetes.io":{"namespace":"ns","node":{"name":"node","uid":"u3"},"pod":{"name":"pod","uid":"u2"},"serviceaccount":{"name":"robot","uid":"u1"},"warnafter":1700003607},"nbf":1700000000,"sub":"system:serviceaccount:ns:robot"}"#
    );
    let read = read_elsewhere(&issuer, &token, issuer.audiences(), NOW).unwrap();
    let read = read.unwrap();
    let expected = Claims {
        expires: Some(1_731_536_000),
        ..claims()
    };
    assert_eq!(read, expected);
    let user = read.user();
    assert_eq!(
        user.groups,
        [
            "system:serviceaccounts",
            "system:serviceaccounts:ns",
            "system:authenticated"
        ]
    );
    let extra: Vec<String> = user
        .extra
        .iter()
        .map(|(key, value)| format!("{}={}", key.rsplit('/').next().unwrap(), value[0]))
        .collect();
    assert_eq!(
        extra,
        [
            "credential-id=JTI=jti",
            "node-name=node",
            "node-uid=u3",
            "pod-name=pod",
            "pod-uid=u2"
        ]
    );
}

#[test]
fn which_lifetimes_are_extended() {
    let issuer = issuer();
    let ours = issuer.audiences().to_vec();
    let foreign = [Text::from("other")];
    let cases = [
        (3607, true, ours.as_slice(), true),
        (3607, false, ours.as_slice(), false),
        (3600, true, ours.as_slice(), false),
        (3607, true, foreign.as_slice(), false),
    ];
    for (seconds, pod, audiences, extended) in cases {
        let lifetime = issuer.lifetime(seconds, pod, audiences);
        assert_eq!(lifetime.warn_after_seconds.is_some(), extended);
    }
}

#[test]
fn when_a_token_counts() {
    let issuer = issuer();
    let token = issuer.sign(&claims(), NOW, hour()).unwrap();
    let read = |now| read_elsewhere(&issuer, &token, issuer.audiences(), now);
    for good in [NOW - 60, NOW, NOW + 3600, NOW + 3660] {
        assert!(read(good).unwrap().is_some(), "{good}");
    }
    assert_eq!(
        read(NOW - 61).unwrap_err(),
        "service account token is not valid yet"
    );
    assert_eq!(
        read(NOW + 3661).unwrap_err(),
        "service account token has expired"
    );
}

#[test]
fn a_signer_knows_its_own_tokens_as_others_do() {
    let issuer = issuer();
    let token = issuer.sign(&claims(), NOW, hour()).unwrap();
    for now in [NOW - 61, NOW, NOW + 3660, NOW + 3661] {
        for audience in ["https://issuer", "z"] {
            let audiences = [audience.into()];
            assert_eq!(
                issuer.read(Presented::new(&token, &audiences, now)),
                read_elsewhere(&issuer, &token, &audiences, now),
            );
        }
    }
}

#[test]
fn for_whom_a_token_is() {
    let issuer = issuer();
    let token = issuer.sign(&claims(), NOW, hour()).unwrap();
    let both = ["z".into(), "https://issuer".into()];
    let read = read_elsewhere(&issuer, &token, &both, NOW)
        .unwrap()
        .unwrap();
    assert_eq!(read.audiences, ["https://issuer"]);
    assert_eq!(
        read_elsewhere(&issuer, &token, &["z".into()], NOW).unwrap_err(),
        "token audiences [\"https://issuer\"] is invalid for the target audiences [\"z\"]"
    );
}

#[test]
fn which_forgeries_are_seen() {
    let issuer = issuer();
    let token = issuer.sign(&claims(), NOW, hour()).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let (claims_part, signature) = (parts[1], parts[2]);
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let primitive = "go-jose/go-jose: error in cryptographic primitive";
    let with =
        |header: &str, signature: &str| format!("{}.{claims_part}.{signature}", encode(header));
    let cases = [
        (format!("{token}x"), primitive),
        (with(r#"{"alg":"none"}"#, ""), primitive),
        (with(r#"{"alg":"HS256"}"#, signature), primitive),
        (with(r#"{"alg":"RS256"}"#, signature), primitive),
        (
            with(r#"{"alg":"ES256","crit":["exp"]}"#, signature),
            primitive,
        ),
        (with(r#"{"alg":"ES256"}"#, signature), primitive),
        (
            with(r#"{"alg":"ES256","kid":"x"}"#, signature),
            "invalid signature, no keys found",
        ),
    ];
    for (forged, expected) in cases {
        assert_eq!(refusal(&issuer, &forged, NOW), expected);
    }
    let longer = said(&token).replace("1700003600", "1900003600");
    let forged = format!("{}.{}.{signature}", parts[0], encode(&longer));
    assert_eq!(refusal(&issuer, &forged, NOW), primitive);
}

#[test]
fn what_is_not_ours_is_left_to_others() {
    let mine = issuer();
    let other = Issuer::new(IssuerOptions {
        signing: SigningKey::generate().0,
        keys: Vec::new(),
        issuers: vec!["https://elsewhere".to_owned()],
        audiences: Vec::new(),
        lifetime_seconds_max: 0,
    });
    let token = other.sign(&claims(), NOW, hour()).unwrap();
    for foreign in [
        token.as_str(),
        "",
        "a",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "e30.e30.",
        "e30.W10.",
    ] {
        let read = read_elsewhere(&mine, foreign, mine.audiences(), NOW).unwrap();
        assert_eq!(read, None, "{foreign}");
    }
}

#[test]
fn tokens_that_should_have_been_renewed_are_noted() {
    let issuer = issuer();
    let user = "system:serviceaccount:ns:robot";
    let lifetime = issuer.lifetime(3607, true, issuer.audiences());
    let token = issuer.sign(&claims(), NOW, lifetime).unwrap();
    let header = format!("Bearer {token}");
    let note = |user: &str, now: i64| issuer.note(&header, user, now);
    let stale = "subject: system:serviceaccount:ns:robot, seconds after warning threshold: 3";
    assert_eq!(
        note(user, NOW + 3610),
        Some(("authentication.k8s.io/stale-token", stale.to_owned()))
    );
    assert_eq!(note(user, NOW + 3606), None);
    assert_eq!(note("ann", NOW + 3610), None);
    let token = issuer.sign(&claims(), NOW, hour()).unwrap();
    assert_eq!(
        issuer.note(&format!("Bearer {token}"), user, NOW + 3610),
        None
    );
}

#[test]
fn tokens_of_secrets_have_other_claims() {
    let issuer = issuer();
    let sign = |edit: &dyn Fn(&mut Map)| {
        let mut all = Map::new();
        all.insert("iss", Value::from("kubernetes/serviceaccount"));
        all.insert("sub", Value::from("system:serviceaccount:ns:robot"));
        for (key, value) in [
            ("namespace", "ns"),
            ("secret.name", "s"),
            ("service-account.name", "robot"),
            ("service-account.uid", "u1"),
        ] {
            all.insert(
                format!("kubernetes.io/serviceaccount/{key}"),
                Value::from(value),
            );
        }
        edit(&mut all);
        jwt::sign(&issuer.signing, &Value::Object(all)).unwrap()
    };
    let token = sign(&|_| {});
    let read = read_elsewhere(&issuer, &token, issuer.audiences(), NOW).unwrap();
    let read = read.unwrap();
    assert!(read.is_legacy);
    let user = "system:serviceaccount:ns:robot";
    assert_eq!(
        issuer.note(&format!("Bearer {token}"), user, NOW),
        Some(("authentication.k8s.io/legacy-token", user.to_owned()))
    );
    assert_eq!(read.secret.as_ref().map(|it| it.name.as_str()), Some("s"));
    assert_eq!(read.user().extra.len(), 0);
    let cases: [(&str, &str); 3] = [
        ("sub", "sub claim is missing"),
        (
            "kubernetes.io/serviceaccount/secret.name",
            "secretName claim is missing",
        ),
        (
            "kubernetes.io/serviceaccount/service-account.uid",
            "serviceAccountUID claim is missing",
        ),
    ];
    for (without, expected) in cases {
        let token = sign(&|all| {
            all.remove(without);
        });
        assert_eq!(refusal(&issuer, &token, NOW), expected);
    }
    let token = sign(&|all| {
        all.insert("sub", Value::from("system:serviceaccount:ns:other"));
    });
    assert_eq!(refusal(&issuer, &token, NOW), "sub claim is invalid");
}

#[test]
fn what_others_are_told_of_the_issuer() {
    let issuer = issuer();
    let told = issuer.configuration("https://1.2.3.4:6443/openid/v1/jwks");
    assert_eq!(
        told.unwrap(),
        r#"{"issuer":"https://issuer","jwks_uri":"https://1.2.3.4:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}"#
    );
    let keys = json::parse(issuer.key_set().as_bytes()).unwrap();
    let keys = crate::keys::from_jwks(&keys);
    let token = issuer.sign(&claims(), NOW, hour()).unwrap();
    assert!(Jwt::read(&token).unwrap().is_signed_by(&keys[0]));
}
