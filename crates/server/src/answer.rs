//! Answers: Status objects for failures, and the one place that chooses HTTP status codes.

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode, Uri};
use object::field::FieldError;
use object::{Value, json, yaml};
use resources::Error;
use resources::body::Media;
use resources::error::{Cause, Denial, Subject};

use crate::body::Body;
use crate::negotiate::{NotAcceptable, Representation, accept_failure};
use crate::protobuf;

/// A failure as clients see it.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
    pub continue_token: String,
    pub retry_after_seconds: u32,
    /// Advice beyond the Status, one `Warning` header each.
    pub advice: Vec<String>,
    /// Whether it came before any verb: what repeats a request must not be taken for a page.
    before_verbs: bool,
    /// A refusal that somebody outside worded; its code, reason and details are theirs.
    denial: Option<Box<Denial>>,
}

/// `status.details`.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub subject: Subject,
    pub uid: String,
    pub causes: Vec<Cause>,
}

impl Failure {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Failure {
        Failure {
            code,
            reason,
            message: message.into(),
            ..Failure::default()
        }
    }

    pub(crate) fn about(mut self, subject: Subject) -> Failure {
        self.details.get_or_insert_default().subject = subject;
        self
    }

    /// The same failure, met before the request came to its verb.
    pub(crate) fn before_verbs(mut self) -> Failure {
        self.before_verbs = true;
        self
    }

    fn with_causes(mut self, causes: Vec<Cause>) -> Failure {
        self.details.get_or_insert_default().causes = causes;
        self
    }

    fn retry_after(mut self, seconds: u32) -> Failure {
        self.details.get_or_insert_default();
        self.retry_after_seconds = seconds;
        self
    }

    /// The refusal of a webhook or a policy, under the code that it chose.
    fn denied(mut denial: Denial) -> Failure {
        if denial.code == 0 {
            denial.code = match denial.reason.as_str() {
                "Unauthorized" => 401,
                "Forbidden" => 403,
                "RequestEntityTooLarge" => 413,
                _ => 422,
            };
        }
        let code = u16::try_from(denial.code).ok();
        let code = code.filter(|code| (400..=999).contains(code));
        Failure {
            denial: Some(Box::new(denial)),
            ..Failure::new(code.unwrap_or(500), "", "")
        }
    }

    /// A path that no part of the server knows.
    pub(crate) fn no_such_resource() -> Failure {
        let text = "the server could not find the requested resource";
        Failure::new(404, "NotFound", text).about(Subject::default())
    }

    pub(crate) fn method_not_allowed() -> Failure {
        let text = "the server does not allow this method on the requested resource";
        Failure::new(405, "MethodNotAllowed", text).about(Subject::default())
    }

    /// The Status object.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Some(denial) = &self.denial {
            return write_denial(denial, out);
        }
        out.extend_from_slice(b"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{");
        if !self.continue_token.is_empty() {
            out.extend_from_slice(b"\"continue\":");
            json::write_string(&self.continue_token, out);
        }
        out.extend_from_slice(b"},\"status\":\"Failure\",\"message\":");
        json::write_string(&self.message, out);
        if !self.reason.is_empty() {
            out.extend_from_slice(b",\"reason\":");
            json::write_string(self.reason, out);
        }
        if let Some(details) = &self.details {
            details.write(self.retry_after_seconds, out);
        }
        out.extend_from_slice(format!(",\"code\":{}}}", self.code).as_bytes());
    }

    /// The HTTP answer, in the representation that the client can read.
    pub(crate) fn answer(&self, accept: Option<&str>, pretty: bool) -> Response<Body> {
        let mut text = Vec::with_capacity(256);
        self.write(&mut text);
        let representation = accept_failure(accept).unwrap_or(Representation {
            pretty: true,
            ..Representation::default()
        });
        let pretty = pretty || representation.pretty;
        let mut answer = encode(
            text,
            Representation {
                pretty,
                ..representation
            },
        );
        *answer.status_mut() = StatusCode::from_u16(self.code).expect("only known codes are used");
        let headers = answer.headers_mut();
        if self.retry_after_seconds > 0 {
            headers.insert(
                header::RETRY_AFTER,
                HeaderValue::from(self.retry_after_seconds),
            );
        }
        if self.before_verbs {
            headers.insert(
                header::X_CONTENT_TYPE_OPTIONS,
                HeaderValue::from_static("nosniff"),
            );
        }
        for line in &self.advice {
            if let Ok(value) = HeaderValue::from_str(line) {
                headers.append(header::WARNING, value);
            }
        }
        answer
    }
}

fn write_denial(denial: &Denial, out: &mut Vec<u8>) {
    out.extend_from_slice(
        br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"#,
    );
    json::write_string(&denial.message, out);
    if !denial.reason.is_empty() {
        out.extend_from_slice(b",\"reason\":");
        json::write_string(&denial.reason, out);
    }
    if let Some(details) = &denial.details {
        out.extend_from_slice(b",\"details\":");
        json::write(details, out);
    }
    out.extend_from_slice(format!(",\"code\":{}}}", denial.code).as_bytes());
}

impl Details {
    pub(crate) fn write(&self, retry_after_seconds: u32, out: &mut Vec<u8>) {
        let mut comma = false;
        let mut field = |name: &str, value: &str, out: &mut Vec<u8>| {
            if value.is_empty() {
                return;
            }
            out.extend_from_slice(if comma { b",\"" } else { b"\"" });
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            json::write_string(value, out);
            comma = true;
        };
        out.extend_from_slice(b",\"details\":{");
        field("name", &self.subject.name, out);
        field("group", &self.subject.group, out);
        field("kind", &self.subject.resource, out);
        field("uid", &self.uid, out);
        if !self.causes.is_empty() {
            out.extend_from_slice(if comma {
                b",\"causes\":["
            } else {
                b"\"causes\":["
            });
            for (place, cause) in self.causes.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_cause(cause, out);
            }
            out.push(b']');
            comma = true;
        }
        if retry_after_seconds > 0 {
            let text = format!("\"retryAfterSeconds\":{retry_after_seconds}");
            out.extend_from_slice(if comma { b"," } else { b"" });
            out.extend_from_slice(text.as_bytes());
        }
        out.push(b'}');
    }
}

fn write_cause(cause: &Cause, out: &mut Vec<u8>) {
    out.push(b'{');
    let fields = [
        ("reason", cause.reason.as_str()),
        ("message", &cause.message),
        ("field", &cause.field),
    ];
    let mut comma = false;
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        out.extend_from_slice(if comma { b",\"" } else { b"\"" });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        json::write_string(value, out);
        comma = true;
    }
    out.push(b'}');
}

/// A mistake as clients can act on it.
fn cause_of(error: &FieldError) -> Cause {
    Cause {
        reason: error.mistake.reason().into(),
        message: error.message(),
        field: error.field.clone(),
    }
}

impl From<NotAcceptable> for Failure {
    fn from(refused: NotAcceptable) -> Failure {
        let failure = Failure::new(406, "NotAcceptable", refused.message());
        match refused {
            NotAcceptable::Unknown(_) => failure.about(Subject::default()),
            NotAcceptable::Parameters | NotAcceptable::Stream => failure,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.to_string();
        match error {
            Error::NotFound(subject) => Failure::new(404, "NotFound", message).about(subject),
            Error::AlreadyExists(subject) | Error::BeingDeleted(subject) => {
                Failure::new(409, "AlreadyExists", message).about(subject)
            }
            Error::NoUniqueName(subject) => Failure::new(409, "AlreadyExists", message)
                .about(subject)
                .retry_after(1),
            Error::Conflict { subject, .. } => {
                Failure::new(409, "Conflict", message).about(subject)
            }
            Error::ApplyConflict(refusal) => Failure {
                advice: refusal.advice.clone(),
                ..Failure::new(409, "Conflict", message).with_causes(refusal.causes.clone())
            },
            Error::Invalid { subject, errors } => Failure::new(422, "Invalid", message)
                .about(subject)
                .with_causes(errors.iter().map(cause_of).collect()),
            Error::Unprocessable => Failure::new(422, "Invalid", message).about(Subject::default()),
            Error::BadRequest(_) => Failure::new(400, "BadRequest", message),
            Error::Forbidden {
                subject, causes, ..
            } => Failure::new(403, "Forbidden", message)
                .about(subject)
                .with_causes(causes),
            Error::TooManyRequests {
                causes,
                retry_after_seconds,
                ..
            } => {
                let failure = Failure::new(429, "TooManyRequests", message);
                failure.with_causes(causes).retry_after(retry_after_seconds)
            }
            Error::Unreachable(_) => Failure::new(503, "ServiceUnavailable", message),
            Error::Unsupported(_) => Failure::new(500, "", message),
            Error::TooLarge(_) => Failure::new(413, "RequestEntityTooLarge", message),
            Error::Expired { continue_token, .. } => Failure {
                continue_token,
                ..Failure::new(410, "Expired", message)
            },
            Error::TooLargeVersion {
                retry_after_seconds,
                ..
            } => {
                let cause = Cause {
                    reason: "ResourceVersionTooLarge".into(),
                    message: "Too large resource version".to_owned(),
                    field: String::new(),
                };
                Failure::new(504, "Timeout", message)
                    .with_causes(vec![cause])
                    .retry_after(retry_after_seconds)
            }
            Error::MethodNotAllowed => Failure::method_not_allowed(),
            Error::UnsupportedMediaType(_) => Failure::new(415, "UnsupportedMediaType", message),
            Error::Unavailable(_) => {
                Failure::new(503, "ServiceUnavailable", message).retry_after(1)
            }
            Error::NoSpace(_) => Failure::new(507, "InsufficientStorage", message).retry_after(5),
            Error::Denied(denial) => Failure::denied(*denial),
            Error::Internal(text) => {
                let cause = Cause {
                    reason: Default::default(),
                    message: text,
                    field: String::new(),
                };
                Failure::new(500, "InternalError", message).with_causes(vec![cause])
            }
        }
    }
}

/// Answers 200 with compact JSON text in the representation that was agreed on.
pub(crate) fn encode(text: Vec<u8>, representation: Representation) -> Response<Body> {
    if representation.media == Media::Protobuf
        && let Some(bytes) = protobuf::of_json(&text)
    {
        return encoded(bytes);
    }
    let (text, content_type) = match representation.media {
        Media::Yaml => {
            let tree = json::parse(&text).unwrap_or(Value::Null);
            (yaml::to_string(&tree).into_bytes(), "application/yaml")
        }
        Media::Json | Media::Protobuf if representation.pretty => {
            let mut out = Vec::with_capacity(text.len() * 2);
            json::pretty(&text, &mut out);
            (out, "application/json")
        }
        Media::Json | Media::Protobuf => {
            let mut text = text;
            text.push(b'\n');
            (text, "application/json")
        }
    };
    let mut answer = Response::new(Body::full(Bytes::from(text)));
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Answers 200 with protobuf.
pub(crate) fn encoded(bytes: Bytes) -> Response<Body> {
    let mut answer = Response::new(Body::full(bytes));
    let content_type = HeaderValue::from_static(protobuf::CONTENT_TYPE);
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    answer
}

/// A plain text answer.
pub(crate) fn text(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut answer = Response::new(Body::full(text.into()));
    *answer.status_mut() = code;
    let headers = answer.headers_mut();
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}

/// The text for paths that no part of the server knows.
pub(crate) fn page_not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// The answer to a path that ends where a resource should be named: upstream's words, which blame
/// the server, with a status that does not.
pub(crate) fn no_request_info(uri: &Uri, path: &str) -> Response<Body> {
    let asked = uri.path_and_query().map_or("", |asked| asked.as_str());
    let words = format!(
        "Internal Server Error: {asked:?}: failed to create RequestInfo: unable to determine kind \
         and namespace from url, {path}\n"
    );
    text(StatusCode::BAD_REQUEST, words)
}
