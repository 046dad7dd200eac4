//! What clients of bad will send: floods of reset streams, and requests inside of requests.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use testkit::{Launch, TestServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::raw::Connection;

const FRAME_HEAD_BYTES: usize = 9;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;
/// The head is whole, and no body follows.
const END_OF_BOTH: u8 = 0x05;

fn start() -> TestServer {
    let launch = Launch::new().binary(env!("CARGO_BIN_EXE_windlass"));
    launch.start().unwrap()
}

async fn connect(server: &TestServer) -> TlsStream<TcpStream> {
    let authority = std::fs::read(server.certificate_authority()).unwrap();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&authority) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let address = server.url().trim_start_matches("https://").to_owned();
    let socket = TcpStream::connect(&address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, socket).await.unwrap()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = length[1..].to_vec();
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// A text of a head, uncompressed.
fn text(out: &mut Vec<u8>, text: &str) {
    match text.len() {
        short @ 0..127 => out.push(short as u8),
        long => {
            out.push(127);
            let mut rest = long - 127;
            while rest >= 128 {
                out.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            out.push(rest as u8);
        }
    }
    out.extend_from_slice(text.as_bytes());
}

fn head(path: &str, token: &str) -> Vec<u8> {
    // GET and https have numbers, and so have the names of path and authority.
    let mut out = vec![0x82, 0x87, 0x04];
    text(&mut out, path);
    out.push(0x01);
    text(&mut out, "localhost");
    out.push(0x00);
    text(&mut out, "authorization");
    text(&mut out, &format!("Bearer {token}"));
    out
}

/// What the process holds in memory.
fn resident_kilobytes(server: &TestServer) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_flood_of_reset_streams_costs_its_sender_the_connection() {
    const STREAMS_MAX: u32 = 200_000;
    let server = start();
    let mut admin = Connection::open(&server).await;
    let before = resident_kilobytes(&server);
    let stream = connect(&server).await;
    let (mut incoming, mut outgoing) = tokio::io::split(stream);
    let token = server.token().unwrap();
    let flood = tokio::spawn(async move {
        let mut preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        preface.extend(frame(SETTINGS, 0, 0, &[]));
        if outgoing.write_all(&preface).await.is_err() {
            return 0;
        }
        let head = head("/api/v1/pods", &token);
        for number in 0..STREAMS_MAX {
            let stream = 2 * number + 1;
            let mut both = frame(HEADERS, END_OF_BOTH, stream, &head);
            both.extend(frame(RESET, 0, stream, &[0, 0, 0, 8]));
            if outgoing.write_all(&both).await.is_err() {
                return number;
            }
        }
        STREAMS_MAX
    });
    let mut received = Vec::new();
    // It ends with the connection, by whichever side.
    let _ = incoming.read_to_end(&mut received).await;
    let sent = flood.await.unwrap();
    assert!(sent < STREAMS_MAX, "the server put up with all of them");
    let mut rest = &received[..];
    let mut kinds = Vec::new();
    while rest.len() >= FRAME_HEAD_BYTES {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        kinds.push(rest[3]);
        rest = rest.get(FRAME_HEAD_BYTES + length..).unwrap_or_default();
    }
    let answered = kinds.iter().filter(|kind| **kind == HEADERS).count();
    let said_goodbye = kinds.contains(&GO_AWAY);
    assert!(
        answered < 10_000,
        "{answered} answers, goodbye: {said_goodbye}"
    );
    let answer = admin.ask("GET /api/v1/namespaces/default", &[], "").await;
    assert_eq!(answer.code, 200);
    let grown = resident_kilobytes(&server).saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} kilobytes more in memory");
}

#[tokio::test]
async fn what_is_hidden_in_a_request_is_not_another() {
    let server = start();
    let token = server.token().unwrap();
    let own = format!("authorization: Bearer {token}");
    let path = "/api/v1/namespaces/default/configmaps";
    let hidden = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{own}\r\n\r\n");
    let cases: [(&[&str], String); 8] = [
        (&["content-length: 5", "content-length: 0"], hidden.clone()),
        (&["content-length: 5, 0"], hidden.clone()),
        (&["content-length: +0"], hidden.clone()),
        (&["content-length: 0x0"], hidden.clone()),
        (&["transfer-encoding: chunked, identity"], hidden.clone()),
        (&["transfer-encoding: identity"], hidden.clone()),
        (&["content-length : 0"], hidden.clone()),
        (&["x-long: a", " impersonate-user: jane"], hidden.clone()),
    ];
    for (headers, body) in cases {
        let mut connection = Connection::open_as(&server, "", None).await.unwrap();
        let mut all = vec![own.as_str()];
        all.extend_from_slice(headers);
        connection.send(&format!("POST {path}"), &all, &body).await;
        let code = connection.try_receive().await;
        assert!(matches!(code, None | Some(400)), "{headers:?}: {code:?}");
    }
    // With both, the chunks count, as they do upstream: what follows them is the next request.
    let mut connection = Connection::open_as(&server, "", None).await.unwrap();
    let all = [
        own.as_str(),
        "content-type: application/json",
        "transfer-encoding: chunked",
        "content-length: 4",
    ];
    let chunked = "2\r\n{}\r\n0\r\n\r\n";
    connection
        .send(&format!("POST {path}"), &all, chunked)
        .await;
    assert_eq!(connection.receive().await.code, 422);
}

#[tokio::test]
async fn headers_of_a_front_proxy_count_for_nothing_from_others() {
    let server = start();
    let mut nobody = Connection::open_as(&server, "", None).await.unwrap();
    let claims = [
        "x-remote-user: admin",
        "x-remote-group: system:masters",
        "x-remote-extra-scopes: all",
    ];
    let answer = nobody.ask("GET /api/v1/secrets", &claims, "").await;
    assert_eq!(answer.code, 403);
    assert!(answer.body.contains("system:anonymous"), "{}", answer.body);
    let mut admin = Connection::open(&server).await;
    let claims = ["x-remote-user: jane"];
    assert_eq!(
        admin.ask("GET /api/v1/secrets", &claims, "").await.code,
        200
    );
}
