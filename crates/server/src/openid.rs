//! What tells others how to verify the tokens of service accounts.
//!
//! Contract: `pkg/routes/openidmetadata.go`.

use hyper::header::{self, HeaderValue};
use hyper::{Method, Response};

use crate::answer::Failure;
use crate::body::Body;
use crate::handle::Call;

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

/// The documents; they do not change while the server runs.
pub(crate) struct OpenId {
    configuration: String,
    keys: String,
}

impl OpenId {
    /// The documents of an issuer; `None` if it is no address that others could ask.
    pub(crate) fn new(issuer: &auth::Issuer, address: std::net::SocketAddr) -> Option<OpenId> {
        let configuration = issuer.configuration(&format!("https://{address}{KEYS}"))?;
        let keys = issuer.key_set();
        Some(OpenId {
            configuration,
            keys,
        })
    }

    /// The paths of the documents.
    pub(crate) const PATHS: [&str; 2] = [CONFIGURATION, KEYS];

    /// Answers a request for one of them; `None` if it is about something else.
    pub(crate) fn answer(&self, call: &Call, path: &str) -> Option<Response<Body>> {
        let (content_type, text) = match path.strip_suffix('/').unwrap_or(path) {
            CONFIGURATION => ("application/json", &self.configuration),
            KEYS => ("application/jwk-set+json", &self.keys),
            _ => return None,
        };
        if call.method != Method::GET {
            return Some(call.fail(Failure::method_not_allowed()));
        }
        let accept = call.header(header::ACCEPT).unwrap_or_default();
        let takes = |part: &str| {
            let media = part.split(';').next().unwrap_or_default().trim();
            matches!(media, "" | "*/*") || media == content_type
        };
        if !accept.split(',').any(takes) {
            let text = format!("406: Not Acceptable\n\nAvailable representations: {content_type}");
            let failure = Failure::new(406, "NotAcceptable", text).about(Default::default());
            return Some(call.fail(failure));
        }
        let mut answer = Response::new(Body::full(text.clone().into()));
        let headers = answer.headers_mut();
        let content_type = HeaderValue::from_static(content_type);
        headers.insert(header::CONTENT_TYPE, content_type);
        let age = HeaderValue::from_static("public, max-age=3600");
        headers.insert(header::CACHE_CONTROL, age);
        Some(answer)
    }
}
