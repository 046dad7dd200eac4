//! A server outside, over real TLS: an issuer of tokens and a webhook in one.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What it answers, by path, and what it was sent.
#[derive(Default)]
pub(crate) struct Served {
    pub answers: HashMap<String, String>,
    pub sent: Vec<String>,
    pub connections: usize,
}

/// A running server outside; its thread ends with the process.
pub(crate) struct Outsider {
    pub address: SocketAddr,
    /// Its own certificate, which is to be trusted.
    pub certificate: String,
    pub served: Arc<Mutex<Served>>,
}

impl Outsider {
    pub(crate) fn start() -> Outsider {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let secret = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], secret)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::<Mutex<Served>>::default();
        let own = Arc::clone(&served);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = BufReader::new(StreamOwned::new(connection, socket));
                let own = Arc::clone(&own);
                own.lock().unwrap().connections += 1;
                // A client that goes away is none of our business.
                std::thread::spawn(move || while answer(&mut stream, &own).is_ok() {});
            }
        });
        Outsider {
            address,
            certificate: certificate.pem(),
            served,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub(crate) fn set(&self, path: &str, answer: &str) {
        let mut served = self.served.lock().unwrap();
        served.answers.insert(path.to_owned(), answer.to_owned());
    }

    /// Writes a kubeconfig by which it is reached.
    pub(crate) fn write_kubeconfig(&self, directory: &Path, path: &str) -> String {
        let authority = directory.join("outsider.crt");
        std::fs::write(&authority, &self.certificate).unwrap();
        let file = directory.join(format!("hook{}.kubeconfig", path.replace('/', "-")));
        let text = format!(
            "current-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{server: '{}{path}', certificate-authority: \
             outsider.crt}}}}]\nusers: [{{name: u, user: {{token: our-own-token}}}}]\n",
            self.url()
        );
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }
}

type Stream = BufReader<StreamOwned<ServerConnection, std::net::TcpStream>>;

fn answer(stream: &mut Stream, served: &Mutex<Served>) -> std::io::Result<()> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut length, mut head) = (0, line);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let found = {
        let mut served = served.lock().unwrap();
        served
            .sent
            .push(format!("{head}\n{}", String::from_utf8_lossy(&body)));
        served.answers.get(&path).cloned()
    };
    let (status, text) = match found {
        Some(text) => ("200 OK", text),
        None => ("404 Not Found", String::new()),
    };
    let stream = stream.get_mut();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         \r\n{text}",
        text.len()
    )?;
    stream.flush()
}
