//! Server-side apply, as a verb: a partial object is merged into the live one, or creates it.

use std::sync::Arc;

use apply::{ApplyError, Conflict, OnConflict};
use object::time::Time;
use object::{Map, Value, json, yaml};
use schema::decode::TypeError;
use store::Revision;

use crate::body::{self, Body};
use crate::error::{Cause, Error, Refusal};
use crate::meta::{drop_empty, meta_text};
use crate::options::FieldValidation;
use crate::ownership::{KindVersions, Owners, writer};
use crate::repeated::{Apply, Outcome};
use crate::write::{
    Attempt, Draft, Live, Written, WrittenObject, check_place, check_version, drop_version,
};
use crate::{Request, Resources, subject};

/// Conflicts are explained in at most this many headers of this many bytes.
const ADVICE_LINES_MAX: usize = 20;
const ADVICE_BYTES_MAX: usize = 512;

/// An apply configuration that has been read.
pub(crate) struct Configuration {
    pub wanted: Value,
    /// Keys that stand twice.
    pub twice: Vec<String>,
}

impl Resources {
    /// `PATCH` with an apply configuration.
    pub async fn apply(&self, request: &Request<'_>, body: &Body) -> Result<Written, Error> {
        // Whoever is configured to look at writes looks at this one, too.
        let watched = self.hooks_in_force().await?.is_some();
        let repeatable = if watched {
            None
        } else {
            Apply::new(self, request, body)
        };
        if let Some(apply) = &repeatable
            && let Some(written) = self.answered_before(apply).await?
        {
            return Ok(written);
        }
        let configuration = Configuration::read(&body.bytes)
            .and_then(|configuration| configuration.check(request).map(|()| configuration));
        let mut configuration = self.before_mistakes(request, configuration).await?;
        loop {
            let live = self.live(request).await?;
            if live.is_none() && !request.subresource.is_empty() {
                return Err(Error::NotFound(subject(request.kind, request.name)));
            }
            let versions = KindVersions::new(self, request);
            let on_conflict = if request.options.force {
                OnConflict::Force
            } else {
                OnConflict::Refuse
            };
            let name = configuration.name();
            let applied = apply::apply(
                live.as_ref().map(|live| &live.object),
                configuration.wanted,
                live.as_ref()
                    .map(|live| live.owners.0.clone())
                    .unwrap_or_default(),
                writer(request, &versions),
                self.now(),
                on_conflict,
                &versions,
            );
            let applied = applied.map_err(|error| {
                let error = apply_error(request, live.as_ref(), error);
                if let (Some(apply), Some(live)) = (&repeatable, &live) {
                    self.note_refused(apply, live.record.revision, &error);
                }
                error
            })?;
            check_twice(request, &configuration.twice)?;
            let owners = Owners(applied.managers);
            let Some(live) = live else {
                let object = applied
                    .object
                    .unwrap_or_else(|| request.kind.empty_object().into());
                let draft = merged_draft(request, &name, object, owners)?;
                return self.create_applied(request, draft).await;
            };
            let draft = match applied.object {
                Some(object) => merged_draft(request, &name, object, owners)?,
                None => Draft::by_server(live.map().clone(), owners),
            };
            let revision = live.record.revision;
            match self.replace_applied(request, live, draft).await? {
                Attempt::Done(written) => {
                    if let Some(apply) = &repeatable {
                        self.note_unchanged(apply, revision, &written);
                    }
                    return Ok(written);
                }
                Attempt::Stale => configuration = Configuration::read(&body.bytes)?,
            }
        }
    }

    /// What comes of an apply again, if that is known.
    async fn answered_before(&self, apply: &Apply<'_>) -> Result<Option<Written>, Error> {
        let Some(record) = self.stored(apply.request).await? else {
            return Ok(None);
        };
        match self.repeated.outcome(apply, record.revision) {
            None => Ok(None),
            Some(Outcome::Unchanged) => Ok(Some(Written {
                object: WrittenObject::Stored {
                    value: record.value,
                    revision: Some(record.revision),
                },
                created: false,
            })),
            Some(Outcome::Refused(refusal)) => Err(Error::ApplyConflict(refusal)),
        }
    }

    /// What was read of a configuration; that a part is applied of nothing is told first.
    pub(crate) async fn before_mistakes<T>(
        &self,
        request: &Request<'_>,
        read: Result<T, Error>,
    ) -> Result<T, Error> {
        match request.subresource {
            "" => read,
            _ => self.unless_missing(request, read).await,
        }
    }

    /// Remembers an apply that changed nothing and had nothing to say.
    fn note_unchanged(&self, apply: &Apply<'_>, live: Revision, written: &Written) {
        let unchanged = matches!(
            &written.object,
            WrittenObject::Stored { revision: Some(revision), .. } if *revision == live
        );
        let request = apply.request;
        if unchanged && !request.options.dry_run && request.warnings.is_empty() {
            self.repeated.note(apply, live, Outcome::Unchanged);
        }
    }

    /// Remembers an apply that was refused for its conflicts alone.
    fn note_refused(&self, apply: &Apply<'_>, live: Revision, error: &Error) {
        if let Error::ApplyConflict(refusal) = error
            && apply.request.warnings.is_empty()
        {
            let refused = Outcome::Refused(Arc::clone(refusal));
            self.repeated.note(apply, live, refused);
        }
    }

    async fn replace_applied(
        &self,
        request: &Request<'_>,
        live: Live,
        mut draft: Draft,
    ) -> Result<Attempt, Error> {
        check_place(request, &mut draft.object)?;
        // Somebody else may have been faster; a version that the configuration names then differs.
        check_version(request.kind, &draft.object, &live)?;
        self.finish_update(request, live, draft).await
    }

    async fn create_applied(
        &self,
        request: &Request<'_>,
        mut draft: Draft,
    ) -> Result<Written, Error> {
        let object = &mut draft.object;
        let uid = meta_text(object, "uid");
        if !uid.is_empty() {
            return Err(Error::Conflict {
                subject: subject(request.kind, request.name),
                detail: format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object \
                     was found"
                ),
            });
        }
        check_place(request, object)?;
        self.may_create(request).await?;
        let object = &mut draft.object;
        crate::meta::wipe_system_fields(object);
        drop_version(request, object)?;
        self.create_draft(request, draft).await
    }
}

impl Configuration {
    pub(crate) fn read(bytes: &[u8]) -> Result<Configuration, Error> {
        let undecodable = |text: String| Error::BadRequest(format!("error decoding YAML: {text}"));
        let (wanted, twice) = yaml::parse_strict(bytes)
            .map_err(|error| undecodable(format!("error converting YAML to JSON: {error}")))?;
        match wanted {
            Value::Object(_) => Ok(Configuration { wanted, twice }),
            Value::Null => Ok(Configuration {
                wanted: Map::new().into(),
                twice,
            }),
            other => {
                let found = body::json_type(&other);
                Err(undecodable(format!(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} \
                     into Go value of type map[string]interface {{}}"
                )))
            }
        }
    }

    /// Checks that the configuration is of the endpoint's kind and says nothing about owners.
    fn check(&self, request: &Request<'_>) -> Result<(), Error> {
        let kind = request.kind;
        check_gvk(&self.wanted, &kind.api_version(), &kind.kind)?;
        self.check_owners()
    }

    /// Checks that the configuration says nothing about owners.
    pub(crate) fn check_owners(&self) -> Result<(), Error> {
        let managed = self.wanted.at(&["metadata", "managedFields"]);
        if managed.is_some_and(|managed| !managed.is_null()) {
            return Err(Error::BadRequest(
                "metadata.managedFields must be nil".to_owned(),
            ));
        }
        Ok(())
    }

    /// The object's namespace and name, as messages give them.
    fn name(&self) -> String {
        let text = |field| self.wanted.str_at(&["metadata", field]).unwrap_or_default();
        format!("{}/{}", text("namespace"), text("name"))
    }
}

/// The result of merging a configuration of `name` as an object of the kind, defaults included.
fn merged_draft(
    request: &Request<'_>,
    name: &str,
    merged: Value,
    owners: Owners,
) -> Result<Draft, Error> {
    let Value::Object(object) = merged else {
        return Err(Error::BadRequest(
            "the configuration is not an object".to_owned(),
        ));
    };
    let kind = request.kind;
    if kind.is_custom() {
        // The merge has checked every type; what it made is completed but not coerced. Only
        // metadata prints as its type does, which leaves out what is empty.
        let mut object = object;
        drop_empty(&mut object);
        kind.drop_untyped_nulls(&mut object);
        kind.apply_defaults(&mut object);
        return Ok(Draft::by_server(object, owners));
    }
    let read = body::into_kind(kind, object, FieldValidation::Ignore);
    let reading = read.map_err(|error| {
        let shown = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
        let detail = match error {
            TypeError::Mismatch { found, wanted, .. } if found.starts_with("number ") => {
                format!("cannot convert float64 to {wanted}")
            }
            // Only bytes are read by the decoder of JSON itself.
            TypeError::NotBase64 { .. } => format!("error decoding from json: {error}"),
            TypeError::Malformed { message, .. } => message,
            other => other.to_string(),
        };
        Error::BadRequest(format!(
            "failed to convert new object ({name}; {shown}) to proper version: unable to convert \
             unstructured object to {shown}: {detail}"
        ))
    })?;
    Ok(Draft {
        object: reading.object,
        owners,
        has_blanks: reading.has_blanks,
    })
}

/// What is said about keys that stand twice, once everything else is fine.
pub(crate) fn check_twice(request: &Request<'_>, twice: &[String]) -> Result<(), Error> {
    match request.options.validation {
        FieldValidation::Strict if !twice.is_empty() => {
            let lines: String = twice.iter().map(|line| format!("\n  {line}")).collect();
            Err(Error::BadRequest(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal \
                 errors:{lines}"
            )))
        }
        FieldValidation::Warn => {
            request.warnings.add(twice.iter().cloned());
            Ok(())
        }
        FieldValidation::Ignore | FieldValidation::Strict => Ok(()),
    }
}

/// Refuses a configuration of another kind or version.
pub(crate) fn check_gvk(wanted: &Value, api_version: &str, kind: &str) -> Result<(), Error> {
    let text = |field: &str| wanted.str_at(&[field]).unwrap_or_default();
    if text("apiVersion") == api_version && text("kind") == kind {
        return Ok(());
    }
    let (group, version) = text("apiVersion")
        .split_once('/')
        .unwrap_or(("", text("apiVersion")));
    let found = text("kind");
    Err(Error::BadRequest(format!(
        "invalid object type: {group}/{version}, Kind={found}"
    )))
}

pub(crate) fn apply_error(request: &Request<'_>, live: Option<&Live>, error: ApplyError) -> Error {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let message = conflicts.to_string();
            let causes = conflicts
                .0
                .iter()
                .map(|conflict| Cause {
                    reason: "FieldManagerConflict".into(),
                    message: conflict.message(),
                    field: conflict.field(),
                })
                .collect();
            let lines = conflicts.0.iter().take(ADVICE_LINES_MAX);
            let advice = lines
                .map(|conflict| advice(request, live, conflict))
                .collect();
            Error::ApplyConflict(Arc::new(Refusal {
                message,
                causes,
                advice,
            }))
        }
        other => Error::BadRequest(other.to_string()),
    }
}

/// What a person needs to decide about a conflict, as a `Warning` header of our own.
fn advice(request: &Request<'_>, live: Option<&Live>, conflict: &Conflict) -> String {
    let value = |value: &Option<Value>| match value {
        None => "absent".to_owned(),
        // What a Secret holds is nobody's business but its readers'.
        Some(_) if request.kind.rules.confidential => "(redacted)".to_owned(),
        Some(value) => String::from_utf8_lossy(&json::to_vec(value)).into_owned(),
    };
    let manager = &conflict.manager;
    let when = live
        .and_then(|live| {
            live.owners
                .0
                .managers()
                .iter()
                .find(|it| it.identity() == *manager)
        })
        .and_then(|owner| owner.time)
        .map(|time| format!(" at {}", Time::from_unix_seconds(time)))
        .unwrap_or_default();
    let text = format!(
        "{} {}: {} is {}, set by {manager}{when}; this apply wants {}; force would take the field \
         from {}",
        request.kind.resource,
        request.name,
        conflict.field(),
        value(&conflict.live),
        value(&conflict.wanted),
        manager.name,
    );
    header_text(&text)
}

/// A `Warning` header with our agent: printable ASCII, quotes escaped, cut to its limit.
fn header_text(text: &str) -> String {
    let mut line = String::from("299 windlass \"");
    for character in text.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            ' '..='~' => line.push(character),
            _ => line.push('?'),
        }
        if line.len() + 5 >= ADVICE_BYTES_MAX {
            line.push_str("...");
            break;
        }
    }
    line.push('"');
    line
}
