//! Server-side apply: which object a configuration asks for, and who owns what afterwards.
//!
//! Contract: apimachinery `util/managedfields` and structured-merge-diff `merge/update.go`. An
//! applier owns exactly what its last configuration contains; what it no longer contains goes,
//! unless someone else owns it; what someone else owns with another value is a conflict.

use object::{Map, Value};

use crate::{
    conflict::Conflicts,
    contest::{Contest, ContestError, OnError},
    fields::field_set,
    kubectl,
    managed::{ManagedFields, Manager, Operation},
    merge::merge,
    order,
    outline::Parts,
    prune::prune,
    typed::Typing,
    update::{Writer, never_owned, reconcile_all, track},
    validate::{Repeats, TypeErrors, validate_with},
    versions::{ConvertError, Versioned, Versions},
};

/// What to do about fields that others own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// Refuse the whole configuration.
    Refuse,
    /// Take the fields over.
    Force,
}

/// The outcome of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object asked for, before defaults; `None` if it equals the live one.
    pub object: Option<Value>,
    /// Who owns what now.
    pub managers: ManagedFields,
}

impl Applied {
    /// Whether the object has another value than before, managed fields aside.
    pub fn changed(&self) -> bool {
        self.object.is_some()
    }
}

/// Why a configuration was not applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that it changes.
    #[error(transparent)]
    Conflicts(#[from] Conflicts),
    /// The configuration does not fit the schema.
    #[error("failed to create typed patch object ({object}): {errors}")]
    Invalid {
        /// Namespace, name and kind of the configuration.
        object: String,
        /// What is wrong with it.
        errors: TypeErrors,
    },
    /// The stored object does not fit the schema, and nobody owns anything of it yet.
    #[error(
        "failed to create manager for existing fields: failed to convert new object ({object}) to \
         smd typed: {errors}"
    )]
    Unowned {
        /// Namespace, name and kind of the stored object.
        object: String,
        /// What is wrong with it.
        errors: TypeErrors,
    },
    /// The stored object does not fit the schema, so it cannot be merged.
    #[error("the live object does not fit the schema of {api_version}")]
    LiveObject {
        /// The version of the request.
        api_version: String,
    },
    /// The kind has no such version.
    #[error("there is no version {api_version}")]
    NoVersion {
        /// The version of the request.
        api_version: String,
    },
    /// A version that someone's fields are in cannot be reached.
    #[error(transparent)]
    Convert(#[from] ConvertError),
}

/// Applies `wanted` to `live`, or creates it if `live` is `None`.
///
/// Neither object carries `metadata.managedFields`. An object that nobody manages yet is first
/// attributed to `before-first-apply`. A writer named `kubectl` may take over what its client-side
/// predecessor applied, and its annotation is kept current, as upstream does.
pub fn apply(
    live: Option<&Value>,
    wanted: Value,
    managers: ManagedFields,
    by: Writer<'_>,
    now: i64,
    on_conflict: OnConflict,
    versions: &dyn Versions,
) -> Result<Applied, ApplyError> {
    let parts = Parts::Trees;
    apply_with(
        parts,
        live,
        wanted,
        managers,
        by,
        now,
        on_conflict,
        versions,
    )
}

/// [`apply`] for objects or their outlines.
#[allow(
    clippy::too_many_arguments,
    reason = "what an apply takes, and in which form"
)]
pub(crate) fn apply_with(
    parts: Parts,
    live: Option<&Value>,
    wanted: Value,
    managers: ManagedFields,
    by: Writer<'_>,
    now: i64,
    on_conflict: OnConflict,
    versions: &dyn Versions,
) -> Result<Applied, ApplyError> {
    let api_version = by.api_version;
    let typing = versions
        .typing(api_version)
        .ok_or_else(|| ApplyError::NoVersion {
            api_version: api_version.to_owned(),
        })?;
    validate_with(parts, &wanted, typing, Repeats::Refused).map_err(|errors| {
        ApplyError::Invalid {
            object: describe(&wanted),
            errors,
        }
    })?;
    let empty;
    let (stored, live) = match live {
        Some(live) => (true, live),
        None => {
            empty = versions.empty(api_version);
            (false, &*empty)
        }
    };
    let mut managers = managers;
    if managers.is_empty() && stored {
        validate_with(parts, live, typing, Repeats::Allowed).map_err(|errors| {
            ApplyError::Unowned {
                object: describe(live),
                errors,
            }
        })?;
        let everyone = Writer {
            name: "before-first-apply",
            ..by
        };
        managers = track(
            &versions.empty(api_version),
            live,
            managers,
            everyone,
            now,
            versions,
        );
    }
    let request = Request {
        live,
        by,
        now,
        typing,
        versions,
    };
    let annotated = kubectl::is_annotated(live) || kubectl::is_annotated(&wanted);
    if by.name == kubectl::MANAGER && annotated {
        request.apply_as_kubectl(wanted, managers, on_conflict)
    } else {
        request.apply(wanted, managers, on_conflict)
    }
}

struct Request<'a> {
    live: &'a Value,
    by: Writer<'a>,
    now: i64,
    typing: Typing<'a>,
    versions: &'a dyn Versions,
}

impl Request<'_> {
    fn apply(
        &self,
        wanted: Value,
        mut managers: ManagedFields,
        on_conflict: OnConflict,
    ) -> Result<Applied, ApplyError> {
        let version = self.by.api_version;
        reconcile_all(&mut managers, self.versions);
        let mut mine = field_set(&wanted, self.typing);
        if let Some(filter) = self.versions.reset_fields(version) {
            mine = filter.filter(&mine);
        }
        let mut new = merge(self.live, wanted, self.typing);
        let mut me = self.by.manager(Operation::Apply);
        let last = managers
            .position(&me)
            .map(|at| managers.managers()[at].clone());
        me.time = last.as_ref().and_then(|last| last.time);
        me.set = mine;
        managers.put(me.clone());
        if let Some(last) = &last {
            // Whatever was applied before is applied again: there is nothing to give up.
            let gave_up = last.api_version != version || !last.set.is_subset(&me.set);
            if gave_up && !last.set.is_empty() {
                new = prune(new, version, &managers, last, self.versions)?;
            }
        }
        if new.is_null() {
            // Everything was given up.
            new = Value::Object(Map::new());
        }
        let alone = managers.managers().iter().all(|other| other.is_same(&me));
        if !alone {
            self.contest(&new, &mut managers, &me, on_conflict)?;
        }
        // My entry comes back without what nobody can own.
        managers.managers_mut().retain(|other| !other.is_same(&me));
        me.set.remove(never_owned());
        // Mostly it owns what it did, and that may be a set that knows its own text.
        if let Some(last) = last.filter(|last| last.set == me.set) {
            me.set = last.set;
        }
        let changed = !order::same(self.live, &new);
        if changed {
            me.time = Some(self.now);
        }
        if !me.set.is_empty() {
            managers.put(me);
        }
        managers.sort();
        Ok(Applied {
            object: changed.then_some(new),
            managers,
        })
    }

    /// Takes what changes from the other managers, or refuses to.
    fn contest(
        &self,
        new: &Value,
        managers: &mut ManagedFields,
        me: &Manager,
        on_conflict: OnConflict,
    ) -> Result<(), ApplyError> {
        let version = self.by.api_version;
        let live = Versioned {
            object: self.live,
            version,
        };
        let new = Versioned {
            object: new,
            version,
        };
        let unfit = |error| self.unfit(error);
        let mut contest = Contest::new(live, new, self.versions).map_err(unfit)?;
        if on_conflict == OnConflict::Refuse
            && let Some(conflicts) = contest.conflicts(managers, me).map_err(unfit)?
        {
            return Err(conflicts.into());
        }
        contest
            .settle(managers, Some(me), OnError::Fail)
            .map_err(unfit)
    }

    fn apply_as_kubectl(
        &self,
        wanted: Value,
        managers: ManagedFields,
        on_conflict: OnConflict,
    ) -> Result<Applied, ApplyError> {
        let attempt = self.apply(wanted.clone(), managers.clone(), on_conflict);
        let mut applied = match attempt {
            Err(ApplyError::Conflicts(conflicts)) => {
                let allowed = kubectl::allowed(self.live, self.by.api_version, self.typing);
                match kubectl::remaining(conflicts, allowed.as_ref()) {
                    Some(conflicts) => return Err(conflicts.into()),
                    None => self.apply(wanted.clone(), managers, OnConflict::Force)?,
                }
            }
            other => other?,
        };
        let object = applied.object.as_ref().unwrap_or(self.live);
        if let Some(annotations) = kubectl::synchronized(object, &wanted) {
            let mut object = applied.object.take().unwrap_or_else(|| self.live.clone());
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("annotations", annotations);
            }
            applied.object = Some(object);
        }
        Ok(applied)
    }

    fn unfit(&self, error: ContestError) -> ApplyError {
        match error {
            ContestError::Convert(error) => ApplyError::Convert(error),
            ContestError::Mismatch => ApplyError::LiveObject {
                api_version: self.by.api_version.to_owned(),
            },
        }
    }
}

/// Names an object as error messages do: `namespace/name; group/version, Kind=Kind`.
fn describe(object: &Value) -> String {
    let text = |path: &[&str]| object.str_at(path).unwrap_or_default().to_owned();
    let api_version = text(&["apiVersion"]);
    let group_version = match api_version.contains('/') {
        true => api_version,
        false => format!("/{api_version}"),
    };
    let (namespace, name) = (
        text(&["metadata", "namespace"]),
        text(&["metadata", "name"]),
    );
    format!(
        "{namespace}/{name}; {group_version}, Kind={}",
        text(&["kind"])
    )
}
