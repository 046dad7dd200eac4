//! What stands in the way of an apply.
//!
//! Contract: structured-merge-diff `merge/conflict.go` and apimachinery's conflict error. There is
//! one conflict per manager and path, sorted by manager, then in the order of the set.

use std::fmt;

use object::Value;

use crate::{managed::Identity, path::Path};

/// A field that another manager owns and that the apply would change.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// Who owns it.
    pub manager: Identity,
    /// The field, in the version of its owner.
    pub path: Path,
    /// What it holds now, in the version of its owner.
    pub live: Option<Value>,
    /// What the apply asks for, in the version of the field's owner.
    pub wanted: Option<Value>,
}

impl Conflict {
    /// The message of the cause: `conflict with "name" using v1`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }

    /// The field of the cause: `.spec.replicas`.
    pub fn field(&self) -> String {
        self.path.to_string()
    }
}

/// All conflicts of one apply; at least one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            let message = conflict.message();
            return write!(
                out,
                "Apply failed with 1 conflict: {message}: {}",
                conflict.path
            );
        }
        write!(out, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut previous: Option<&Identity> = None;
        for conflict in &self.0 {
            if previous != Some(&conflict.manager) {
                let newline = if previous.is_some() { "\n" } else { "" };
                write!(out, "{newline}conflicts with {}:", conflict.manager)?;
                previous = Some(&conflict.manager);
            }
            write!(out, "\n- {}", conflict.path)?;
        }
        Ok(())
    }
}
