//! Why a call failed.

/// Why a webhook gave no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The configuration does not say how to call it.
    #[error("could not get REST client: {0}")]
    Setup(String),
    /// No answer arrived.
    #[error("Post {}: {cause}", object::field::quote(.url))]
    Transport {
        /// What was called.
        url: String,
        /// Why.
        cause: String,
    },
    /// The answer is not one of success.
    #[error("{message}")]
    Status {
        /// The HTTP status.
        code: u16,
        /// What it means.
        message: String,
    },
    /// The answer is larger than allowed.
    #[error("Post {}: the answer is larger than {limit} bytes", object::field::quote(.url))]
    TooLarge {
        /// What was called.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// The answer is not what it should be.
    #[error("{0}")]
    Unreadable(String),
}

impl CallError {
    /// The status code that metrics count the failure under.
    pub fn code(&self) -> u16 {
        match self {
            CallError::Setup(_) => 500,
            CallError::Status { code, .. } => *code,
            CallError::Transport { .. } | CallError::TooLarge { .. } | CallError::Unreadable(_) => {
                503
            }
        }
    }
}

/// What a status that is not one of success means, given the text that came with it.
///
/// Contract: `NewGenericServerResponse` in `apimachinery/pkg/api/errors/errors.go`.
pub(super) fn status_text(code: u16, said: &str) -> String {
    let text = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => said,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if said.is_empty() || said == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => said,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        500.. => {
            return format!(
                "an error on the server ({}) has prevented the request from succeeding",
                object::field::quote(said)
            );
        }
        _ => {
            return format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            );
        }
    };
    text.to_owned()
}
