//! HTTP written by hand: requests that no client library would send.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
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
        let token = server.token().unwrap();
        Connection::open_as(server, &token, None).await.unwrap()
    }

    /// Connects with a token, which may be empty, and perhaps a certificate and its key as PEM.
    pub(crate) async fn open_as(
        server: &TestServer,
        token: &str,
        certificate: Option<(&str, &str)>,
    ) -> std::io::Result<Connection> {
        let authority = std::fs::read(server.certificate_authority()).unwrap();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
                let chain = chain.map(Result::unwrap).collect();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let address = server.url().trim_start_matches("https://").to_owned();
        let socket = TcpStream::connect(&address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, socket).await?;
        let token = token.to_owned();
        Ok(Connection { stream, token })
    }

    /// Sends the head of a request; `headers` are whole lines.
    pub(crate) async fn send(&mut self, request: &str, headers: &[&str], body: &str) {
        let mut text = format!("{request} HTTP/1.1\r\nhost: localhost\r\n");
        if !self.token.is_empty() {
            text.push_str(&format!("authorization: Bearer {}\r\n", self.token));
        }
        for line in headers {
            text.push_str(line);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Sends a head that the server may stop reading.
    pub(crate) async fn try_send(&mut self, request: &str, headers: &[&str]) {
        let head = format!(
            "{request} HTTP/1.1\r\nhost: localhost\r\n{}\r\n\r\n",
            headers.join("\r\n")
        );
        let _ = self.stream.write_all(head.as_bytes()).await;
        let _ = self.stream.flush().await;
    }

    /// The code of an answer; `None` if the connection was closed instead.
    pub(crate) async fn try_receive(&mut self) -> Option<u16> {
        let mut bytes = Vec::new();
        while bytes.len() < 12 {
            if self.stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        }
        std::str::from_utf8(&bytes[9..12]).ok()?.parse().ok()
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

    /// Reads on until this text has come.
    pub(crate) async fn receive_until(&mut self, text: &str) {
        self.receive_times(text, 1).await;
    }

    /// Reads on until this text has come so often.
    pub(crate) async fn receive_times(&mut self, text: &str, times: usize) {
        let mut bytes = Vec::new();
        while String::from_utf8_lossy(&bytes).matches(text).count() < times {
            self.read_some(&mut bytes).await;
        }
    }

    async fn read_some(&mut self, bytes: &mut Vec<u8>) {
        let read = self.stream.read_buf(bytes).await.unwrap();
        assert!(
            read > 0,
            "the connection ended: {}",
            String::from_utf8_lossy(bytes)
        );
    }

    /// Makes any request; `None` if the server closes the connection instead of an answer, which
    /// is then opened anew.
    pub(crate) async fn ask_any(
        &mut self,
        server: &TestServer,
        method: &str,
        target: &str,
        body: &str,
    ) -> Option<(u16, String)> {
        let length = format!("content-length: {}", body.len());
        let kind = if method == "PATCH" {
            "content-type: application/merge-patch+json"
        } else {
            "content-type: application/json"
        };
        self.send(&format!("{method} {target}"), &[&length, kind], body)
            .await;
        let mut bytes = Vec::new();
        loop {
            if let Some(answer) = whole_answer(method, &bytes) {
                return Some(answer);
            }
            let read = self.stream.read_buf(&mut bytes).await.unwrap_or(0);
            if read == 0 {
                let token = self.token.clone();
                *self = Connection::open_as(server, &token, None).await.unwrap();
                return None;
            }
        }
    }

    /// Asks with a body of this type.
    pub(crate) async fn ask_typed(&mut self, request: &str, kind: &str, body: &str) -> Answer {
        let length = format!("content-length: {}", body.len());
        let kind = format!("content-type: {kind}");
        self.send(request, &[&length, &kind], body).await;
        self.receive().await
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

/// The code and body of an answer that is there in full.
fn whole_answer(method: &str, bytes: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    };
    let whole = match (
        method,
        header("content-length"),
        header("transfer-encoding"),
    ) {
        ("HEAD", ..) => true,
        (_, Some(length), _) => body.len() >= length.parse().ok()?,
        (_, None, Some(_)) => body.ends_with("0\r\n\r\n"),
        _ => true,
    };
    whole.then(|| (code, body.to_owned()))
}
