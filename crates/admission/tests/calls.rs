//! What callers learn when a webhook answers, and when it does not.

use std::time::Duration;

use admission::client::{CallError, Endpoint, Limits, Resolving, Service, Services};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use object::{Value, value};

use crate::webhook_server::{Reply, WebhookServer};

const LIMITS: Limits = Limits {
    timeout: Duration::from_secs(10),
    answer_bytes_max: 1024,
};

/// Every service is at this port of this machine.
struct At(u16);

impl Services for At {
    fn resolve<'a>(&'a self, service: &'a Service) -> Resolving<'a> {
        Box::pin(async move {
            match service.name.as_str() {
                "gone" => Err("service \"gone\" not found".to_owned()),
                _ => Ok(format!("127.0.0.1:{}", self.0)),
            }
        })
    }
}

fn endpoint(server: &WebhookServer, path: &str) -> Endpoint {
    Endpoint::url(&server.url(path), server.certificate.clone().into_bytes()).unwrap()
}

async fn ask(endpoint: &Endpoint, limits: Limits) -> Result<String, String> {
    let answer = endpoint.post(Bytes::from("{}"), limits, &At(0)).await;
    let text = answer.map(|body| String::from_utf8_lossy(&body).into_owned());
    text.map_err(|error| error.to_string())
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = WebhookServer::start(|_| Reply::Json("{\"a\":1}".to_owned())).await;
    let endpoint = endpoint(&server, "/v");
    for _ in 0..5 {
        assert_eq!(ask(&endpoint, LIMITS).await.unwrap(), "{\"a\":1}");
    }
    assert_eq!(server.connections(), 1);
    let asked = server.take();
    assert_eq!(asked.len(), 5);
    assert_eq!(asked[0].target, "/v?timeout=10s");
    assert_eq!(asked[0].body, "{}");
}

/// A test framework joined host and path with a slash, and the webhook's router answered 301.
#[test]
fn the_path_is_asked_for_without_empty_and_dotted_parts() {
    let service = || Service {
        namespace: "n".to_owned(),
        name: "s".to_owned(),
        port: 443,
    };
    for (path, expected) in [
        ("", "/"),
        ("/", "/"),
        ("v", "/v"),
        ("//v", "/v"),
        ("/a//b/", "/a/b"),
        ("/a/./b/../../../c", "/c"),
    ] {
        let by_url = Endpoint::url(&format!("https://s.n.svc:443/{path}"), Vec::new()).unwrap();
        let by_service = Endpoint::service(service(), path, Vec::new());
        for endpoint in [by_url, by_service] {
            let expected = format!("https://s.n.svc:443{expected}?timeout=10s");
            assert_eq!(endpoint.call_url(LIMITS.timeout), expected);
        }
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    let server = WebhookServer::start(move |_| Reply::Raw(answer.into())).await;
    let endpoint = endpoint(&server, "/v");
    for _ in 0..2 {
        assert_eq!(ask(&endpoint, LIMITS).await.unwrap(), "{}");
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn how_answers_that_are_not_success_are_worded() {
    let raw = |status: &str, kind: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nlocation: /elsewhere\r\ncontent-length: \
             {length}\r\n\r\n{body}"
        )
    };
    let status = r#"{"kind":"Status","status":"Failure","message":"closed on sundays"}"#;
    let cases = [
        (
            raw("500 Oops", "application/json", "broken"),
            "an error on the server (\"unknown\") has prevented the request from succeeding",
        ),
        (
            raw("500 Oops", "text/plain", " broken\n"),
            "an error on the server (\"broken\") has prevented the request from succeeding",
        ),
        (
            raw("404 Not Found", "text/plain", "no"),
            "the server could not find the requested resource",
        ),
        (
            raw("302 Found", "text/plain", ""),
            "the server responded with the status code 302 but did not return more information",
        ),
        (
            raw("403 No", "application/json", status),
            "closed on sundays",
        ),
        (
            raw("200 OK", "application/json", ""),
            "0-length response with status code: 200 and content type: application/json",
        ),
    ];
    for (answer, expected) in cases {
        let server = WebhookServer::start(move |_| Reply::Raw(answer.clone().into())).await;
        let said = ask(&endpoint(&server, "/v"), LIMITS).await;
        assert_eq!(said, Err(expected.to_owned()));
        assert_eq!(server.take().len(), 1, "nobody follows redirects");
    }
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    let server = WebhookServer::start(|_| Reply::Silence).await;
    let limits = Limits {
        timeout: Duration::from_millis(100),
        ..LIMITS
    };
    let said = ask(&endpoint(&server, "/v"), limits).await.unwrap_err();
    let expected = format!(
        "Post \"{}?timeout=1s\": context deadline exceeded",
        server.url("/v")
    );
    assert_eq!(said, expected);
}

#[tokio::test]
async fn a_crash_is_the_end_of_the_file() {
    let server = WebhookServer::start(|_| Reply::Close).await;
    let said = ask(&endpoint(&server, ""), LIMITS).await.unwrap_err();
    assert_eq!(
        said,
        format!("Post \"{}?timeout=10s\": EOF", server.url("/"))
    );
}

#[tokio::test]
async fn what_is_no_http_is_told() {
    let server = WebhookServer::start(|_| Reply::Raw(b"hello, world\r\n\r\n".to_vec())).await;
    let said = ask(&endpoint(&server, "/v"), LIMITS).await.unwrap_err();
    assert!(said.ends_with("malformed HTTP response"), "{said}");
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_not_read() {
    let server = WebhookServer::start(|_| Reply::Json("x".repeat(2048))).await;
    let endpoint = endpoint(&server, "/v");
    let error = endpoint
        .post(Bytes::new(), LIMITS, &At(0))
        .await
        .unwrap_err();
    let (url, limit) = (endpoint.call_url(LIMITS.timeout), 1024);
    assert_eq!(error, CallError::TooLarge { url, limit });
}

#[tokio::test]
async fn nobody_listens() {
    let server = WebhookServer::start(|_| Reply::Close).await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("https://127.0.0.1:{port}/v");
    let endpoint = Endpoint::url(&url, server.certificate.into_bytes()).unwrap();
    let expected = format!(
        "Post \"{url}?timeout=10s\": dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    assert_eq!(ask(&endpoint, LIMITS).await, Err(expected));
}

#[tokio::test]
async fn who_is_believed_to_be_the_webhook() {
    let server = WebhookServer::start(|_| Reply::Json("{}".to_owned())).await;
    let other = WebhookServer::start(|_| Reply::Json("{}".to_owned())).await;
    let wrong_name = WebhookServer::named("a.example", |_| Reply::Json("{}".to_owned())).await;
    let cases = [
        (
            &server,
            &other.certificate,
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        ),
        (
            &wrong_name,
            &wrong_name.certificate,
            "tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 \
             because it doesn't contain any IP SANs",
        ),
    ];
    for (server, bundle, expected) in cases {
        let url = server.url("/v");
        let endpoint = Endpoint::url(&url, bundle.clone().into_bytes()).unwrap();
        let expected = format!("Post \"{url}?timeout=10s\": {expected}");
        assert_eq!(ask(&endpoint, LIMITS).await, Err(expected));
    }
}

#[tokio::test]
async fn a_bundle_without_certificates_is_told() {
    let endpoint = Endpoint::url("https://127.0.0.1:1/v", b"AAA".to_vec()).unwrap();
    let expected = "could not get REST client: unable to load root certificates: unable to parse \
                    bytes as PEM block";
    assert_eq!(ask(&endpoint, LIMITS).await, Err(expected.to_owned()));
}

#[tokio::test]
async fn a_service_answers_under_its_own_name() {
    let server = WebhookServer::named("hook.shop.svc", |_| Reply::Json("{}".to_owned())).await;
    let bundle = STANDARD.encode(&server.certificate);
    let config = |name: &str| {
        Endpoint::of_client_config(&value!({
            "caBundle": (bundle.as_str()),
            "service": {"namespace": "shop", "name": name, "path": "/v", "port": 8443},
        }))
        .unwrap()
    };
    let limits = LIMITS;
    let services = At(server.port);
    let answer = config("hook").post(Bytes::new(), limits, &services).await;
    assert_eq!(answer.unwrap(), "{}");
    let missing = config("gone").post(Bytes::new(), limits, &services).await;
    assert_eq!(
        missing.unwrap_err().to_string(),
        "Post \"https://gone.shop.svc:8443/v?timeout=10s\": service \"gone\" not found"
    );
}

#[test]
fn a_configuration_must_say_where() {
    let refusal = |config: Value| Endpoint::of_client_config(&config).unwrap_err().to_string();
    assert_eq!(
        refusal(value!({})),
        "could not get REST client: webhook configuration must have either service or URL"
    );
    let plain = refusal(value!({"url": "http://127.0.0.1/"}));
    assert!(plain.contains("no https URL"), "{plain}");
}
