//! A real HTTPS server that answers as a test tells it to, and remembers what it was asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What a request gets.
pub(crate) enum Reply {
    /// 200 with this JSON.
    Json(String),
    /// These bytes, and nothing else.
    Raw(Vec<u8>),
    /// Nothing, for as long as the caller waits.
    Silence,
    /// The connection is closed.
    Close,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Path and query.
    pub(crate) target: String,
    /// The body.
    pub(crate) body: String,
}

/// The server.
pub(crate) struct WebhookServer {
    pub(crate) port: u16,
    /// The certificate, which is its own authority, in PEM.
    pub(crate) certificate: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
}

type Behaviour = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

impl WebhookServer {
    /// Starts a server with a certificate for 127.0.0.1.
    pub(crate) async fn start(
        reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> WebhookServer {
        WebhookServer::named("127.0.0.1", reply).await
    }

    /// Starts a server with a certificate for `name`.
    pub(crate) async fn named(
        name: &str,
        reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> WebhookServer {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = WebhookServer {
            port: listener.local_addr().unwrap().port(),
            certificate: certificate.pem(),
            asked: Arc::default(),
            connections: Arc::default(),
        };
        let (asked, connections) = (server.asked.clone(), server.connections.clone());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let reply: Behaviour = Arc::new(reply);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (acceptor, asked, reply) = (acceptor.clone(), asked.clone(), reply.clone());
                tokio::spawn(async move { serve(acceptor, stream, &asked, &reply).await });
            }
        });
        server
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// What was asked since the last time.
    pub(crate) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// How many connections were opened.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    asked: &Mutex<Vec<Asked>>,
    reply: &Behaviour,
) -> Option<()> {
    let mut stream = acceptor.accept(stream).await.ok()?;
    let mut buffer = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|part| part == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        };
        let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse().ok()).flatten()
        });
        let end = head + length.unwrap_or(0usize);
        while buffer.len() < end {
            stream.read_buf(&mut buffer).await.ok()?;
        }
        let request = Asked {
            target: text.split(' ').nth(1)?.to_owned(),
            body: String::from_utf8_lossy(&buffer[head..end]).into_owned(),
        };
        buffer.drain(..end);
        asked.lock().unwrap().push(request.clone());
        let answer = match reply(&request) {
            Reply::Json(body) => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: \
                 {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes(),
            Reply::Raw(bytes) => bytes,
            Reply::Silence => std::future::pending().await,
            Reply::Close => return None,
        };
        stream.write_all(&answer).await.ok()?;
        stream.flush().await.ok()?;
    }
}
