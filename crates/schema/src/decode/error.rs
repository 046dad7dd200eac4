//! Why a body cannot be read as a type, in the words of Go's decoder.

use std::fmt;

use crate::{TypeId, Types};

/// Why a body cannot be read as a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeError {
    /// A value has another JSON type than the field takes.
    Mismatch {
        /// What stood there, such as `string` or `number 1.5`.
        found: String,
        /// The name of the Go struct that declares the field; empty if it is not known.
        owner: String,
        /// The declared fields that lead there, from the root; empty inside values that read
        /// themselves.
        fields: Vec<String>,
        /// The Go type that was wanted.
        wanted: String,
    },
    /// A string does not parse as what the field holds.
    Malformed {
        /// The declared fields that lead there, from the root.
        fields: Vec<String>,
        /// What the parser says.
        message: String,
    },
    /// A string that holds bytes is not base64.
    NotBase64 {
        /// The place of the first wrong character.
        at: usize,
    },
    /// The body nests typed values too deeply.
    TooDeep {
        /// How many levels are allowed.
        limit: usize,
    },
}

impl TypeError {
    /// Names the struct that declares the field, if it has a name; the innermost one counts.
    pub(super) fn declared_by(mut self, types: &Types, id: TypeId) -> TypeError {
        if let TypeError::Mismatch { owner, .. } = &mut self
            && owner.is_empty()
            && let Some(name) = types.name_of(id)
        {
            *owner = name.rsplit('.').next().unwrap_or_default().to_owned();
        }
        self
    }

    /// Names the struct that declares the field, as far as the kind gives it away.
    pub(super) fn within(mut self, kind: &str) -> TypeError {
        if let TypeError::Mismatch { owner, fields, .. } = &mut self
            && owner.is_empty()
        {
            let above = fields.len().checked_sub(1).map(|last| &fields[..last]);
            *owner = match above.unwrap_or_default() {
                [] => kind.to_owned(),
                [field] if field == "spec" && !kind.is_empty() => format!("{kind}Spec"),
                [field] if field == "status" && !kind.is_empty() => format!("{kind}Status"),
                [.., field] if field == "metadata" => "ObjectMeta".to_owned(),
                _ => String::new(),
            };
        }
        self
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeError::Mismatch {
                found,
                fields,
                wanted,
                ..
            } if fields.is_empty() => {
                write!(
                    out,
                    "json: cannot unmarshal {found} into Go value of type {wanted}"
                )
            }
            TypeError::Mismatch {
                found,
                owner,
                fields,
                wanted,
            } => {
                let dot = if owner.is_empty() { "" } else { "." };
                let path = fields.join(".");
                write!(out, "json: cannot unmarshal {found} into Go struct field ")?;
                write!(out, "{owner}{dot}{path} of type {wanted}")
            }
            TypeError::Malformed { message, .. } => out.write_str(message),
            TypeError::NotBase64 { at } => write!(out, "illegal base64 data at input byte {at}"),
            TypeError::TooDeep { limit } => {
                write!(
                    out,
                    "the object nests typed values deeper than {limit} levels"
                )
            }
        }
    }
}

impl std::error::Error for TypeError {}
