//! Why a verb did not do what it was asked. Which HTTP status that is, the server decides.

use std::sync::Arc;

pub use admission::review::Denial;
use object::Text;
use object::field::FieldError;

/// The object an error is about, as messages name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The API group.
    pub group: Text,
    /// The resource in plural (or, where upstream does so, the kind).
    pub resource: Text,
    /// The object's name; may be empty.
    pub name: Text,
}

impl Subject {
    /// The object, or the resource alone if the object has no name yet.
    fn named(&self) -> String {
        let text = self.to_string();
        if self.name.is_empty() {
            text.trim_end_matches(" \"\"").to_owned()
        } else {
            text
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(out, ".{}", self.group)?;
        }
        write!(out, " \"{}\"", self.name)
    }
}

/// A cause that clients can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The machine-readable reason.
    pub reason: Text,
    /// The message.
    pub message: String,
    /// The field, or empty.
    pub field: String,
}

/// Why an apply is refused that wants fields that others own.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// All conflicts as one text.
    pub message: String,
    /// One cause per manager and field.
    pub causes: Vec<Cause>,
    /// Advice for people, one line per conflict.
    pub advice: Vec<String>,
}

impl Refusal {
    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let causes = self.causes.iter();
        let causes =
            causes.map(|cause| size_of::<Cause>() + cause.message.len() + cause.field.len());
        let advice = self.advice.iter();
        let advice = advice.map(|line| size_of::<String>() + line.len());
        self.message.len() + causes.sum::<usize>() + advice.sum::<usize>()
    }
}

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such object.
    #[error("{0} not found")]
    NotFound(Subject),
    /// There is such an object already.
    #[error("{0} already exists")]
    AlreadyExists(Subject),
    /// The object exists and is on its way out.
    #[error("object is being deleted: {0} already exists")]
    BeingDeleted(Subject),
    /// Eight generated names were all taken.
    #[error("{0} already exists, the server was not able to generate a unique name for the object")]
    NoUniqueName(Subject),
    /// The object is not as the client thinks.
    #[error("Operation cannot be fulfilled on {subject}: {detail}")]
    Conflict {
        /// The object.
        subject: Subject,
        /// In what way.
        detail: String,
    },
    /// An apply wants fields that others own.
    #[error("{}", .0.message)]
    ApplyConflict(Arc<Refusal>),
    /// Fields are invalid.
    #[error("{subject} is invalid: {}", object::field::summary(.errors))]
    Invalid {
        /// The kind (not the resource) and its name.
        subject: Subject,
        /// Every mistake.
        errors: Vec<FieldError>,
    },
    /// A patch does not fit the object.
    #[error("the server rejected our request due to an error in our request")]
    Unprocessable,
    /// The request makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// A policy refuses.
    #[error("{} is forbidden: {detail}", subject.named())]
    Forbidden {
        /// The object.
        subject: Subject,
        /// Why.
        detail: String,
        /// What clients can act on.
        causes: Vec<Cause>,
    },
    /// Somebody outside refuses, in words of their own.
    #[error("{}", .0.message)]
    Denied(Box<Denial>),
    /// Not now.
    #[error("{message}")]
    TooManyRequests {
        /// Why.
        message: String,
        /// What clients can act on.
        causes: Vec<Cause>,
        /// When to try again; zero if that is not known.
        retry_after_seconds: u32,
    },
    /// The objects are such that the action cannot be done.
    #[error("{0}")]
    Unsupported(String),
    /// What a request should be passed on to does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// Something is larger than allowed.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// A version that history no longer holds.
    #[error("{message}")]
    Expired {
        /// What to do.
        message: String,
        /// A token that goes on without consistency.
        continue_token: String,
    },
    /// A version that does not exist yet.
    #[error("Timeout: Too large resource version: {asked}, current: {current}")]
    TooLargeVersion {
        /// The version asked for.
        asked: u64,
        /// The newest one.
        current: u64,
        /// When to ask again, if it may come; zero for whoever asked for nothing else.
        retry_after_seconds: u32,
    },
    /// The verb does not exist for this resource.
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    /// The body's media type is not one of those that the verb takes.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// Something the server needs is not there right now.
    #[error("{0}")]
    Unavailable(String),
    /// The disk is full.
    #[error("{0}")]
    NoSpace(String),
    /// The server's own fault.
    #[error("Internal error occurred: {0}")]
    Internal(String),
}

impl Error {
    /// The key was not as expected after all retries, or the store failed.
    pub(crate) fn from_store(error: store::Error, subject: impl FnOnce() -> Subject) -> Error {
        match error {
            store::Error::Conflict { .. } => Error::modified(subject()),
            store::Error::Compacted { .. } => Error::Expired {
                message: "The resourceVersion for the provided list is too old.".to_owned(),
                continue_token: String::new(),
            },
            store::Error::Future { asked, current } => Error::TooLargeVersion {
                asked: asked.0,
                current: current.0,
                retry_after_seconds: 0,
            },
            store::Error::TooLarge { limit, .. } => Error::TooLarge(format!("limit is {limit}")),
            error @ store::Error::NoSpace { .. } => Error::NoSpace(format!(
                "{error}; reading goes on, writing resumes when there is space"
            )),
            error @ (store::Error::Unavailable { .. } | store::Error::Closed) => {
                Error::Unavailable(error.to_string())
            }
            error @ (store::Error::Corrupt { .. } | store::Error::Sealed { .. }) => {
                Error::Internal(error.to_string())
            }
        }
    }

    /// The stale version answer.
    pub(crate) fn modified(subject: Subject) -> Error {
        Error::Conflict {
            subject,
            detail: "the object has been modified; please apply your changes to the latest \
                     version and try again"
                .to_owned(),
        }
    }
}
