//! Who comes in: every kind of credential, and every way in which one is wrong.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use auth::{Claims, Issuer, IssuerOptions, Lifetime, Named, SigningKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use serde_json::{Value, json};
use testkit::{Launch, TestServer};

use crate::issuer::Outsider;
use crate::raw::{Answer, Connection};

const REVIEW: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
const ISSUER: &str = "https://kubernetes.default.svc";

/// A directory for what a test writes, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(flags: &[&str]) -> TestServer {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    let launch = flags.iter().fold(launch, |launch, flag| launch.flag(*flag));
    launch.start().unwrap()
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

async fn ask(
    server: &TestServer,
    token: &str,
    certificate: Option<(&str, &str)>,
    headers: &[&str],
) -> Answer {
    let connection = Connection::open_as(server, token, certificate).await;
    connection.unwrap().ask(REVIEW, headers, "{}").await
}

/// Who the server thinks is asking, or the code of its refusal.
async fn who(server: &TestServer, token: &str, certificate: Option<(&str, &str)>) -> String {
    told(ask(server, token, certificate, &[]).await)
}

fn told(answer: Answer) -> String {
    if answer.code != 201 {
        return answer.code.to_string();
    }
    let review: Value = serde_json::from_str(&answer.body).unwrap();
    let info = &review["status"]["userInfo"];
    let groups: Vec<&str> = info["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group.as_str().unwrap())
        .filter(|group| *group != "system:authenticated")
        .collect();
    format!("{} {groups:?}", info["username"].as_str().unwrap())
}

#[tokio::test]
async fn wrong_tokens_are_refused_and_never_break_anything() {
    let scratch = Scratch::new("tokens");
    let (signing, pem) = SigningKey::generate();
    let key = scratch.file("sa.key", &pem);
    let server = start(&["--service-account-signing-key-file", &key]);
    let mut admin = Connection::open(&server).await;
    let made = admin
        .ask(
            "POST /api/v1/namespaces/default/serviceaccounts",
            &[],
            r#"{"metadata":{"name":"robot"}}"#,
        )
        .await;
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let issuer = Issuer::new(IssuerOptions {
        signing,
        keys: Vec::new(),
        issuers: vec![ISSUER.to_owned()],
        audiences: Vec::new(),
        lifetime_seconds_max: 0,
    });
    let sign = |uid: &str, audience: &str, start: i64, seconds: i64| {
        let claims = Claims {
            namespace: "default".into(),
            account: Named {
                name: "robot".into(),
                uid: uid.into(),
            },
            audiences: vec![audience.into()],
            id: "id".into(),
            ..Claims::default()
        };
        let lifetime = Lifetime {
            seconds,
            warn_after_seconds: None,
        };
        issuer.sign(&claims, start, lifetime).unwrap()
    };
    let uid = made["metadata"]["uid"].as_str().unwrap();
    let good = sign(uid, ISSUER, now(), 3600);
    let robot = "system:serviceaccount:default:robot [\"system:serviceaccounts\", \
                 \"system:serviceaccounts:default\"]";
    assert_eq!(who(&server, &good, None).await, robot);

    let parts: Vec<&str> = good.split('.').collect();
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let symmetric = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#);
    let wrong = [
        ("expired", sign(uid, ISSUER, now() - 7200, 3600)),
        ("future", sign(uid, ISSUER, now() + 3600, 3600)),
        ("for others", sign(uid, "https://other", now(), 3600)),
        ("another account", sign("x", ISSUER, now(), 3600)),
        ("alg none", format!("{none}.{}.", parts[1])),
        (
            "alg none, signed",
            format!("{none}.{}.{}", parts[1], parts[2]),
        ),
        (
            "symmetric",
            format!("{symmetric}.{}.{}", parts[1], parts[2]),
        ),
        ("cut", good[..good.len() - 2].to_owned()),
        ("two parts", format!("{}.{}", parts[0], parts[1])),
        ("four parts", format!("{good}.x")),
        ("dots", "..".to_owned()),
        (
            "deep claims",
            format!(
                "{}.{}.x",
                parts[0],
                URL_SAFE_NO_PAD.encode("[".repeat(20_000))
            ),
        ),
        ("long", "x".repeat(100_000)),
        ("bootstrap", "abcdef.0123456789abcdef".to_owned()),
    ];
    for (name, token) in wrong {
        assert_eq!(who(&server, &token, None).await, "401", "{name}");
    }
    // Two headers: the first counts, as upstream has it; a second can neither help nor hide.
    let two = ["authorization: Bearer wrong"];
    assert_eq!(told(ask(&server, &good, None, &two).await), robot);

    admin
        .ask(
            "DELETE /api/v1/namespaces/default/serviceaccounts/robot",
            &[],
            "",
        )
        .await;
    assert_eq!(who(&server, &good, None).await, "401", "deleted");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = start(&[]);
    let mut connection = Connection::open_as(&server, "", None).await.unwrap();
    let huge = format!("x-huge: {}", "x".repeat(2 * 1024 * 1024));
    connection.try_send("GET /livez", &[&huge]).await;
    let code = connection.try_receive().await;
    assert!(matches!(code, None | Some(400 | 431)), "{code:?}");
    assert_eq!(
        who(&server, &server.token().unwrap(), None).await,
        "admin [\"system:masters\"]"
    );
}

/// An authority, and certificates that it signs.
struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { params, key, pem }
    }

    fn sign(&self, name: &str, usage: ExtendedKeyUsagePurpose, days: i64) -> (String, String) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params
            .distinguished_name
            .push(DnType::OrganizationName, "crew");
        params.extended_key_usages = vec![usage];
        let now = time::OffsetDateTime::now_utc();
        params.not_before = now - time::Duration::days(10);
        params.not_after = now + time::Duration::days(days);
        let key = KeyPair::generate().unwrap();
        let issuer = rcgen::Issuer::from_params(&self.params, &self.key);
        let certificate = params.signed_by(&key, &issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

#[tokio::test]
async fn whom_certificates_prove() {
    let scratch = Scratch::new("certificates");
    let (given, proxies) = (Authority::new("given"), Authority::new("proxies"));
    let client_ca = scratch.file("clients.crt", &given.pem);
    let proxy_ca = scratch.file("proxies.crt", &proxies.pem);
    let server = start(&[
        "--client-ca-file",
        &client_ca,
        "--requestheader-client-ca-file",
        &proxy_ca,
        "--requestheader-allowed-names",
        "front",
    ]);
    let client = || ExtendedKeyUsagePurpose::ClientAuth;
    let jane = given.sign("jane", client(), 1);
    let cases = [
        ("good", given.sign("jane", client(), 1), "jane [\"crew\"]"),
        ("expired", given.sign("jane", client(), -1), "401"),
        (
            "of a server",
            given.sign("jane", ExtendedKeyUsagePurpose::ServerAuth, 1),
            "401",
        ),
        (
            "of a stranger",
            Authority::new("x").sign("jane", client(), 1),
            "401",
        ),
        // It is whole and names nobody: no credentials.
        ("without a name", given.sign("", client(), 1), "403"),
        ("of a proxy", proxies.sign("front", client(), 1), "401"),
    ];
    for (name, (certificate, key), expected) in cases {
        let certificate = Some((certificate.as_str(), key.as_str()));
        let found = who(&server, "", certificate).await;
        assert_eq!(found, expected, "{name}");
    }
    // A bad certificate does not take the token's right away.
    let bad = Authority::new("x").sign("jane", client(), 1);
    let bad = Some((bad.0.as_str(), bad.1.as_str()));
    let token = server.token().unwrap();
    assert_eq!(
        who(&server, &token, bad).await,
        "admin [\"system:masters\"]"
    );

    let headers = ["x-remote-user: joe", "x-remote-group: a"];
    let front = proxies.sign("front", client(), 1);
    let other = proxies.sign("other", client(), 1);
    let cases = [
        ("a proxy", Some(&front), "joe [\"a\"]"),
        ("another name", Some(&other), "401"),
        ("no proxy", Some(&jane), "jane [\"crew\"]"),
        ("nobody", None, "403"),
    ];
    for (name, certificate, expected) in cases {
        let certificate = certificate.map(|(own, key)| (own.as_str(), key.as_str()));
        let found = told(ask(&server, "", certificate, &headers).await);
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn servers_of_other_apis_are_told_which_authorities_prove_clients() {
    let scratch = Scratch::new("published");
    let given = Authority::new("given");
    let client_ca = scratch.file("clients.crt", &given.pem);
    let server = start(&["--client-ca-file", &client_ca]);
    let token = server.token().unwrap();
    let admin = Connection::open_as(&server, &token, None).await;
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let answer = admin.unwrap().ask(&format!("GET {path}"), &[], "").await;
    let map: Value = serde_json::from_str(&answer.body).unwrap();
    let own = std::fs::read_to_string(server.data().join("ca.crt")).unwrap();
    assert_eq!(map["data"]["client-ca-file"], own + &given.pem);
}

#[tokio::test]
async fn a_kubeconfig_is_made_for_a_new_user() {
    let server = start(&[]);
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args([
            "kubeconfig",
            "--user",
            "jane",
            "--group",
            "a",
            "--group",
            "b",
        ])
        .arg("--data")
        .arg(server.data())
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(server.url()));
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
        let bytes = base64::engine::general_purpose::STANDARD.decode(line.unwrap().trim());
        String::from_utf8(bytes.unwrap()).unwrap()
    };
    let certificate = field("client-certificate-data:");
    let key = field("client-key-data:");
    let jane = who(&server, "", Some((&certificate, &key))).await;
    assert_eq!(jane, "jane [\"a\", \"b\"]");
}

#[tokio::test]
async fn tokens_of_a_file_and_of_an_issuer() {
    let scratch = Scratch::new("oidc");
    let login = Outsider::start();
    let (old, new) = (SigningKey::generate().0, SigningKey::generate().0);
    let publish = |key: &SigningKey| {
        let mut jwk = String::new();
        key.public().write_jwk(&mut jwk);
        login.set("/keys", &format!(r#"{{"keys":[{jwk}]}}"#));
    };
    publish(&old);
    let url = login.url();
    login.set(
        "/.well-known/openid-configuration",
        &format!(r#"{{"issuer":"{url}","jwks_uri":"{url}/keys"}}"#),
    );
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {
                "url": url, "audiences": ["kube"], "certificateAuthority": login.certificate,
            },
            "claimMappings": {
                "username": {"claim": "sub", "prefix": "login:"},
                "groups": {"claim": "groups", "prefix": ""},
            },
        }],
        "anonymous": {"enabled": true, "conditions": [{"path": "/livez"}]},
    });
    let config = scratch.file("config.yaml", &config.to_string());
    let tokens = scratch.file("tokens.csv", "file-token,joe,7,\"a,b\"\n");
    let server = start(&[
        "--authentication-config",
        &config,
        "--token-auth-file",
        &tokens,
    ]);
    let sign = |key: &SigningKey, id: &str| {
        let header = format!(r#"{{"alg":"ES256","kid":"{}"}}"#, key.public().id);
        let claims = json!({
            "iss": url, "sub": "jane", "aud": "kube", "exp": now() + 600, "groups": ["dev"],
            "jti": id,
        });
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let signature = key.sign(signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    };
    assert_eq!(who(&server, "file-token", None).await, "joe [\"a\", \"b\"]");
    assert_eq!(
        who(&server, &sign(&old, "1"), None).await,
        "login:jane [\"dev\"]"
    );
    assert_eq!(who(&server, &sign(&new, "1"), None).await, "401");
    assert_eq!(
        who(&server, "", None).await,
        "401",
        "anonymous is for /livez"
    );
    let mut nobody = Connection::open_as(&server, "", None).await.unwrap();
    assert_eq!(nobody.ask("GET /livez", &[], "").await.code, 200);

    // The issuer changes its key; the server asks again once it may.
    publish(&new);
    let token = sign(&new, "2");
    let mut found = String::new();
    for _ in 0..100 {
        found = who(&server, &token, None).await;
        if found != "401" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(found, "login:jane [\"dev\"]");
}

#[tokio::test]
async fn webhooks_know_tokens_and_decide() {
    let scratch = Scratch::new("hooks");
    let outside = Outsider::start();
    let authentication = outside.write_kubeconfig(&scratch.0, "/tokens");
    let authorization = outside.write_kubeconfig(&scratch.0, "/access");
    outside.set(
        "/tokens",
        r#"{"status":{"authenticated":true,"user":{"username":"jane","groups":["hooked"]}}}"#,
    );
    outside.set(
        "/access",
        r#"{"status":{"allowed":false,"denied":true,"reason":"not today"}}"#,
    );
    let server = start(&[
        "--authentication-token-webhook-config-file",
        &authentication,
        "--authorization-webhook-config-file",
        &authorization,
        "--authorization-mode",
        "Webhook,RBAC",
        "--authorization-webhook-cache-unauthorized-ttl=1s",
    ]);
    let mut jane = Connection::open_as(&server, "known-outside", None)
        .await
        .unwrap();
    let refused = jane.ask(REVIEW, &[], "{}").await;
    assert_eq!(refused.code, 403);
    assert!(refused.body.contains("not today"), "{}", refused.body);
    // Without an opinion of the webhook, roles decide.
    outside.set("/access", r#"{"status":{"allowed":false}}"#);
    let mut found = String::new();
    for _ in 0..100 {
        found = who(&server, "known-outside", None).await;
        if found != "403" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(found, "jane [\"hooked\"]");
    let served = outside.served.lock().unwrap();
    let asked = served
        .sent
        .iter()
        .filter(|sent| sent.contains("TokenReview"));
    assert_eq!(asked.count(), 1, "what a webhook says is remembered");
    assert!(
        served
            .sent
            .iter()
            .all(|sent| sent.contains("Bearer our-own-token"))
    );
}

#[tokio::test]
async fn the_modes_that_allow_and_deny_everything() {
    let server = start(&["--authorization-mode", "AlwaysAllow"]);
    let mut nobody = Connection::open_as(&server, "", None).await.unwrap();
    assert_eq!(nobody.ask("GET /api/v1/secrets", &[], "").await.code, 200);
    let server = start(&[
        "--authorization-mode",
        "AlwaysDeny",
        "--anonymous-auth=false",
    ]);
    assert_eq!(who(&server, "", None).await, "401");
    // Who belongs to system:masters may do everything, whatever the mode.
    let admin = who(&server, &server.token().unwrap(), None).await;
    assert_eq!(admin, "admin [\"system:masters\"]");
    let mut admin = Connection::open(&server).await;
    let acts = ["impersonate-user: jane"];
    let refused = admin.ask("GET /api", &acts, "").await;
    assert_eq!(refused.code, 403);
    assert!(refused.body.contains("Everything is forbidden."));
}

#[tokio::test]
async fn a_fresh_start_shows_nothing_to_others() {
    let server = start(&[]);
    for entry in std::fs::read_dir(server.data()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.path());
    }
    assert_eq!(who(&server, "", None).await, "403", "anonymous is limited");
}

#[tokio::test]
async fn secrets_are_told_to_nobody() {
    let scratch = Scratch::new("canary");
    let tokens = scratch.file("tokens.csv", "canary-file,joe,7\n");
    let server = start(&["--token-auth-file", &tokens, "--log", "trace"]);
    let mut admin = Connection::open(&server).await;
    let secret = r#"{"metadata":{"name":"s"},"stringData":{"k":"canary-data"}}"#;
    let secrets = "POST /api/v1/namespaces/default/secrets";
    assert_eq!(admin.ask(secrets, &[], secret).await.code, 201);
    let mut shown = String::new();
    let attempts: [(&str, &[&str], &str); 6] = [
        ("canary-wrong", &[], "{}"),
        ("canary-file", &[], "{}"),
        ("", &["authorization: Basic canary-basic"], "{}"),
        (
            "canary-file",
            &["cookie: canary-cookie"],
            "{\"canary-body\":",
        ),
        ("eyJhbGciOiJub25lIn0.e30.canary-jwt", &[], ""),
        ("", &["x-remote-user: canary-proxy"], "{}"),
    ];
    for (token, headers, body) in attempts {
        for request in [REVIEW, secrets, "GET /api/v1/namespaces/default/secrets/s"] {
            let mut connection = Connection::open_as(&server, token, None).await.unwrap();
            shown.push_str(&connection.ask(request, headers, body).await.body);
        }
    }
    // What is not JSON is quoted to its sender, who knows it.
    let shown = shown.replace("canary-body", "");
    assert!(!shown.contains("canary"), "{shown}");
    let metrics = admin.ask("GET /metrics", &[], "").await.body;
    assert!(!metrics.contains("canary"));
    assert!(!server.log().contains("canary"), "{}", server.log());
    assert!(!server.log().contains(&server.token().unwrap()));
}
