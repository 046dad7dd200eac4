//! HTTP written by hand: requests that no client library would send.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use testkit::TestServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A connection on which one request after the other is made.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    token: String,
}

/// An answer, its head as text.
pub(crate) struct Answer {
    pub code: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// The value of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Connection {
    /// Connects as the administrator.
    pub(crate) async fn open(server: &TestServer) -> Connection {
        let authority = std::fs::read(server.certificate_authority()).unwrap();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let address = server.url().trim_start_matches("https://").to_owned();
        let socket = TcpStream::connect(&address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, socket).await.unwrap();
        let token = server.token().unwrap();
        Connection { stream, token }
    }

    /// Sends the head of a request; `headers` are whole lines.
    pub(crate) async fn send(&mut self, request: &str, headers: &[&str], body: &str) {
        let token = &self.token;
        let mut text =
            format!("{request} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n");
        for line in headers {
            text.push_str(line);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Reads one answer.
    pub(crate) async fn receive(&mut self) -> Answer {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            self.read_some(&mut bytes).await;
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer {
            code,
            head,
            body: String::new(),
        };
        let length = answer.header("content-length").unwrap_or("0");
        let length: usize = length.parse().unwrap();
        while bytes.len() < end + 4 + length {
            self.read_some(&mut bytes).await;
        }
        answer.body = String::from_utf8(bytes[end + 4..].to_vec()).unwrap();
        answer
    }

    async fn read_some(&mut self, bytes: &mut Vec<u8>) {
        let read = self.stream.read_buf(bytes).await.unwrap();
        assert!(
            read > 0,
            "the connection ended: {}",
            String::from_utf8_lossy(bytes)
        );
    }

    /// Makes a request with a JSON body, which may be empty.
    pub(crate) async fn ask(&mut self, request: &str, headers: &[&str], body: &str) -> Answer {
        let length = format!("content-length: {}", body.len());
        let mut all = vec![length.as_str(), "content-type: application/json"];
        all.extend_from_slice(headers);
        self.send(request, &all, body).await;
        self.receive().await
    }
}
