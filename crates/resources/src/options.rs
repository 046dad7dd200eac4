//! The options of each verb, checked.
//!
//! The server reads the query into these; what is wrong with a value is told as upstream tells it,
//! as an invalid field of `ListOptions.meta.k8s.io` and its siblings.

use object::Text;
use object::field::{self, FieldError, Path};
use object::{Value, fields::FieldSelector, labels::LabelSelector};
use store::Revision;

use crate::error::{Error, Subject};

/// How unknown and duplicate fields of a body are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Dropped silently.
    Ignore,
    /// Dropped with a warning each.
    #[default]
    Warn,
    /// Refused.
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Whether to do everything but write.
    pub dry_run: bool,
    /// Who owns the fields that the write sets.
    pub manager: Text,
    /// The manager that the client named; empty if it named none.
    pub given_manager: Text,
    /// How unknown fields are treated.
    pub validation: FieldValidation,
    /// The treatment that the client named; empty if it named none.
    pub given_validation: Text,
    /// Whether an apply takes fields from their owners.
    pub force: bool,
}

/// How a resourceVersion bounds a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// Exactly that version.
    Exact,
    /// That version or a newer one.
    NotOlderThan,
}

/// Which objects a list, watch or deletecollection is about.
#[derive(Clone, Debug)]
pub struct Selection {
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
}

/// Options of a list.
#[derive(Clone, Debug)]
pub struct ListOptions {
    /// Which objects.
    pub selection: Selection,
    /// At most this many; `0` for all.
    pub limit: usize,
    /// Where to go on.
    pub continue_token: Option<String>,
    /// The version asked for; `Some(0)` is "any".
    pub version: Option<Revision>,
    /// How the version is meant.
    pub version_match: Option<VersionMatch>,
}

/// Options of a watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Which objects.
    pub selection: Selection,
    /// Where to start; `None` and zero begin with the state of now.
    pub version: Option<Revision>,
    /// Whether to send the state first; `None` leaves it to `version`.
    pub initial_events: Option<bool>,
    /// Whether to send bookmarks.
    pub bookmarks: bool,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Whether to do everything but delete.
    pub dry_run: bool,
    /// How long a graceful deletion may take.
    pub grace_period_seconds: Option<i64>,
    /// What happens to dependents.
    pub propagation: Option<Propagation>,
    /// The deprecated way to say so.
    pub orphan_dependents: Option<bool>,
    /// The uid that the object must have.
    pub uid: Option<Text>,
    /// The version that the object must have.
    pub resource_version: Option<Text>,
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay.
    Orphan,
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
}

const MANAGER_BYTES_MAX: usize = 128;

/// Whether the write is an apply, which needs a manager and may be forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `POST`.
    Create,
    /// `PUT`.
    Update,
    /// `PATCH` of any type but apply.
    Patch,
    /// `PATCH` with an apply configuration.
    Apply,
}

/// The options of a write as the query has them.
#[derive(Clone, Debug, Default)]
pub struct RawWriteOptions {
    /// Every `dryRun`.
    pub dry_run: Vec<String>,
    /// `fieldManager`, if present.
    pub field_manager: Option<String>,
    /// `fieldValidation`, if present.
    pub field_validation: Option<String>,
    /// `force`, if present.
    pub force: Option<bool>,
}

impl RawWriteOptions {
    /// Checks the options; without a manager, `default_manager` is taken.
    pub fn check(self, verb: Verb, default_manager: &str) -> Result<WriteOptions, Error> {
        let root = Path::root();
        let mut errors = Vec::new();
        let manager = self.field_manager.unwrap_or_default();
        let field = root.field("fieldManager");
        if verb == Verb::Apply && manager.is_empty() {
            errors.push(FieldError::required(&field, "is required for apply patch"));
        }
        let force = root.field("force");
        if self.force.is_some() && verb == Verb::Patch {
            errors.push(FieldError::forbidden(
                &force,
                "may not be specified for non-apply patch",
            ));
        }
        errors.extend(check_manager(&field, &manager));
        errors.extend(check_dry_run(&self.dry_run));
        let validation = match self.field_validation.as_deref() {
            None | Some("" | "Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let known = &["", "Ignore", "Strict", "Warn"];
                let field = root.field("fieldValidation");
                errors.push(FieldError::not_supported(
                    &field,
                    &Value::from(other),
                    known,
                ));
                FieldValidation::Warn
            }
        };
        let kind = match verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            Verb::Patch | Verb::Apply => "PatchOptions",
        };
        refuse(kind, errors)?;
        let given_manager = Text::from(manager.as_str());
        let manager = if manager.is_empty() {
            default_manager.into()
        } else {
            manager.into()
        };
        Ok(WriteOptions {
            dry_run: !self.dry_run.is_empty(),
            manager,
            given_manager,
            validation,
            given_validation: self.field_validation.unwrap_or_default().into(),
            force: self.force.unwrap_or(false),
        })
    }
}

/// The error for every mistake in the options of kind `kind`, if there is any.
pub fn refuse(kind: &str, errors: Vec<FieldError>) -> Result<(), Error> {
    if errors.is_empty() {
        return Ok(());
    }
    let subject = Subject {
        group: "meta.k8s.io".into(),
        resource: kind.into(),
        name: Text::default(),
    };
    Err(Error::Invalid { subject, errors })
}

/// What is wrong with the values of `dryRun`.
pub fn check_dry_run(values: &[String]) -> Option<FieldError> {
    if values.iter().all(|value| value == "All") {
        return None;
    }
    let root = Path::root();
    let list = values
        .iter()
        .map(|value| Value::from(value.as_str()))
        .collect();
    Some(FieldError::not_supported(
        &root.field("dryRun"),
        &Value::Array(list),
        &["All"],
    ))
}

fn check_manager(path: &Path<'_>, manager: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long(path, MANAGER_BYTES_MAX));
    }
    for (place, character) in manager.char_indices() {
        if !field::is_printable(character) {
            let detail = format!(
                "invalid character U+{:04X} (at position {place})",
                character as u32
            );
            errors.push(FieldError::invalid(path, &Value::from(manager), detail));
        }
    }
    errors
}

/// The manager of a client that names none: its User-Agent up to the first slash.
pub fn manager_of_user_agent(user_agent: &str) -> Text {
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut manager = Text::default();
    for character in name
        .chars()
        .filter(|character| field::is_printable(*character))
    {
        if manager.len() + character.len_utf8() > MANAGER_BYTES_MAX {
            break;
        }
        manager.push(character);
    }
    if manager.is_empty() {
        "unknown".into()
    } else {
        manager
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_manager_a_user_agent_stands_for() {
        assert_eq!(manager_of_user_agent("kubectl/v1.2 (linux)"), "kubectl");
        assert_eq!(manager_of_user_agent("a b (c)/2"), "a b (c)");
        assert_eq!(manager_of_user_agent("/1"), "unknown");
        assert_eq!(manager_of_user_agent(&"ä".repeat(100)).len(), 128);
    }

    #[test]
    fn an_apply_needs_a_manager_and_a_patch_no_force() {
        let refused = RawWriteOptions::default()
            .check(Verb::Apply, "x")
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required \
             for apply patch"
        );
        let forced = RawWriteOptions {
            force: Some(true),
            ..RawWriteOptions::default()
        };
        assert!(forced.check(Verb::Patch, "x").is_err());
    }
}
