//! HTTPS to the servers that authentication and authorization ask.
//!
//! One connection per question: what they say is remembered, so questions are rare. Answers have a
//! limit in size and time, redirects are not followed, and a server that fails is asked again a few
//! times before the question is given up.

use std::sync::Arc;
use std::time::Duration;

use auth::{Asking, Outside};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Method, Request, Uri, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

/// From the first byte to the last.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The body of an answer.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Waits between attempts; there is one attempt more.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_millis(750),
    Duration::from_millis(1125),
];
/// Where systems keep the authorities they trust.
const SYSTEM_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// How another server is reached.
#[derive(Default)]
pub struct OutsideOptions {
    /// Who signs its certificate, as PEM; the authorities of the system if empty.
    pub authority: Vec<u8>,
    /// Our own certificate and key as PEM, if it wants one.
    pub certificate: Option<(Vec<u8>, Vec<u8>)>,
    /// The `Authorization` header, if it wants one.
    pub authorization: Option<String>,
    /// The name that its certificate carries, if that is not the host of its address.
    pub name: Option<String>,
    /// How long one attempt may take, if not as long as usual.
    pub timeout: Option<Duration>,
}

/// Reaches another server.
pub struct HttpsClient {
    timeout: Duration,
    tls: TlsConnector,
    authorization: Option<String>,
    name: Option<String>,
}

/// Why another server cannot be reached.
enum Trouble {
    /// It may work the next time.
    Passing(String),
    /// It will not.
    Lasting(String),
}

impl HttpsClient {
    /// Ready to ask.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn new(options: OutsideOptions) -> Result<HttpsClient, String> {
        let mut roots = RootCertStore::empty();
        let text = if options.authority.is_empty() {
            system_authorities()?
        } else {
            options.authority
        };
        for certificate in certificates(&text)? {
            // The system may trust authorities that this library does not read.
            let _ = roots.add(certificate);
        }
        if roots.is_empty() {
            return Err("there is no authority that could be trusted".to_owned());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        let config = match options.certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_slice(&key).map_err(|it| it.to_string())?;
                builder
                    .with_client_auth_cert(certificates(&certificate)?, key)
                    .map_err(|error| error.to_string())?
            }
        };
        Ok(HttpsClient {
            tls: TlsConnector::from(Arc::new(config)),
            authorization: options.authorization,
            name: options.name,
            timeout: options.timeout.unwrap_or(ATTEMPT_TIMEOUT),
        })
    }

    async fn ask_patiently(&self, url: &str, body: Option<Vec<u8>>) -> Result<Vec<u8>, String> {
        let body = body.map(Bytes::from);
        let mut pauses = PAUSES.into_iter();
        loop {
            let attempt = timeout(self.timeout, self.ask_once(url, body.clone())).await;
            let problem = match attempt {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(Trouble::Lasting(problem))) => return Err(problem),
                Ok(Err(Trouble::Passing(problem))) => problem,
                Err(_) => format!("{url} does not answer within {:?}", self.timeout),
            };
            match pauses.next() {
                Some(pause) => sleep(pause).await,
                None => return Err(problem),
            }
        }
    }

    async fn ask_once(&self, url: &str, body: Option<Bytes>) -> Result<Vec<u8>, Trouble> {
        let lasting = |problem: String| Trouble::Lasting(format!("{url}: {problem}"));
        let passing = |problem: String| Trouble::Passing(format!("{url}: {problem}"));
        let uri: Uri = url
            .parse()
            .map_err(|_| lasting("it is no URL".to_owned()))?;
        let (Some("https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(lasting("it is no https URL".to_owned()));
        };
        let host = authority.host().trim_matches(['[', ']']);
        let name = self.name.clone().unwrap_or_else(|| host.to_owned());
        let name = ServerName::try_from(name).map_err(|error| lasting(error.to_string()))?;
        let port = authority.port_u16().unwrap_or(443);
        let stream = TcpStream::connect((host, port)).await;
        let stream = stream.map_err(|error| passing(error.to_string()))?;
        let _ = stream.set_nodelay(true);
        let stream = self.tls.connect(name, stream).await;
        let stream = TokioIo::new(stream.map_err(|error| passing(error.to_string()))?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream)
            .await
            .map_err(|error| passing(error.to_string()))?;
        let request = self.request(&uri, authority.as_str(), body);
        let request = request.map_err(|error| lasting(error.to_string()))?;
        // The connection is driven here, so that giving up leaves nothing behind.
        let exchange = async {
            let answer = sender.send_request(request).await;
            let answer = answer.map_err(|error| passing(error.to_string()))?;
            let status = answer.status();
            if status.is_server_error() || status.as_u16() == 429 {
                return Err(passing(format!("it answers {status}")));
            }
            if !status.is_success() {
                return Err(lasting(format!("it answers {status}")));
            }
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
            let body = body.await.map_err(|error| lasting(error.to_string()))?;
            Ok(body.to_bytes().to_vec())
        };
        tokio::pin!(connection);
        tokio::pin!(exchange);
        tokio::select! {
            answer = &mut exchange => answer,
            ended = &mut connection => match ended {
                Ok(()) => exchange.await,
                Err(error) => Err(passing(error.to_string())),
            },
        }
    }

    fn request(
        &self,
        uri: &Uri,
        authority: &str,
        body: Option<Bytes>,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let method = if body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, authority)
            .header(header::USER_AGENT, "windlass")
            .header(header::ACCEPT, "application/json, */*");
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        request.body(Full::new(body.unwrap_or_default()))
    }
}

impl Outside for HttpsClient {
    fn ask<'a>(&'a self, url: &'a str, body: Option<Vec<u8>>) -> Asking<'a> {
        Box::pin(self.ask_patiently(url, body))
    }
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

fn system_authorities() -> Result<Vec<u8>, String> {
    let found = SYSTEM_FILES
        .iter()
        .find_map(|path| std::fs::read(path).ok());
    found.ok_or_else(|| "this system has no file of trusted authorities; name one".to_owned())
}
