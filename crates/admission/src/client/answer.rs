//! Reading answers: whether they mean success, and what object they hold.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use object::{Map, Value, json, yaml};

use super::CallError;
use super::failure::status_text;

/// How much of an unexpected answer a message shows.
const SHOWN_BYTES_MAX: usize = 2048;

/// An answer whose body has been read.
pub(super) struct Answer {
    code: u16,
    content_type: String,
    body: Bytes,
}

/// Reads the body, up to its limit.
pub(super) async fn read(
    response: Response<Incoming>,
    limit: usize,
    url: impl Fn() -> String,
) -> Result<Answer, CallError> {
    let code = response.status().as_u16();
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    match Limited::new(response.into_body(), limit).collect().await {
        Ok(collected) => Ok(Answer {
            code,
            content_type,
            body: collected.to_bytes(),
        }),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(CallError::TooLarge { url: url(), limit })
        }
        Err(_) => Err(CallError::Transport {
            url: url(),
            cause: "unexpected EOF".to_owned(),
        }),
    }
}

impl Answer {
    /// The body, if the answer is one of success and has one.
    pub(super) fn check(self) -> Result<Bytes, CallError> {
        if !(200..=206).contains(&self.code) {
            return Err(CallError::Status {
                code: self.code,
                message: self.failure(),
            });
        }
        if self.body.is_empty() {
            return Err(CallError::Unreadable(format!(
                "0-length response with status code: {} and content type: {}",
                self.code, self.content_type
            )));
        }
        Ok(self.body)
    }

    fn failure(&self) -> String {
        if let Ok(status) = json::parse(&self.body)
            && status.str_at(&["kind"]) == Some("Status")
            && status.str_at(&["status"]) == Some("Failure")
        {
            return status.str_at(&["message"]).unwrap_or_default().to_owned();
        }
        let is_text = self.content_type.is_empty() || self.content_type.starts_with("text/");
        if !is_text {
            return status_text(self.code, "unknown");
        }
        let shown = &self.body[..self.body.len().min(SHOWN_BYTES_MAX)];
        status_text(self.code, String::from_utf8_lossy(shown).trim())
    }
}

/// The places of a review's kind: its name and the versions that are known.
#[derive(Clone, Copy, Debug)]
pub struct Review {
    /// The kind.
    pub kind: &'static str,
    /// `group/version` of each.
    pub versions: [&'static str; 2],
}

/// Reads a body as a review of the kind that was asked for; a Status of success is nothing.
pub fn read_object(body: &[u8], wanted: Review) -> Result<Map, CallError> {
    let unreadable = |text: String| CallError::Unreadable(text);
    // Upstream takes YAML too, and most garbage is a text in it.
    let value = json::parse(body).or_else(|error| {
        yaml::parse(body).map_err(|_| {
            unreadable(format!(
                "couldn't get version/kind; json parse error: {error}"
            ))
        })
    })?;
    let Value::Object(object) = value else {
        return Err(unreadable(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value \
             of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
             string \"json:\\\"kind,omitempty\\\"\" }}",
            json_type(&value)
        )));
    };
    let text = |field: &str| {
        object
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (kind, version) = (text("kind"), text("apiVersion"));
    let is_known =
        kind == wanted.kind && (version.is_empty() || wanted.versions.contains(&version));
    match kind {
        "Status" if text("status") != "Success" => Err(unreadable(text("message").to_owned())),
        "Status" => Ok(Map::new()),
        "" => Ok(object),
        _ if is_known => Ok(object),
        found => Err(unreadable(format!(
            "no kind \"{found}\" is registered for version \"{version}\" in scheme \
             \"k8s.io/apiserver/pkg/util/webhook/client.go:71\""
        ))),
    }
}

/// What Go calls a value of JSON.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
