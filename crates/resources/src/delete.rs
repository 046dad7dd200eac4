//! Delete and deletecollection.
//!
//! Deletion has two phases where something holds the object: finalizers, a grace period, or the
//! kind itself. The first phase marks the object, the second removes it; a later write that
//! removes the last finalizer is the second phase (see `write.rs`). Contract:
//! `apiserver/pkg/registry/rest/delete.go` and `generic/registry/store.go`.

use std::sync::Arc;

use auth::User;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use kinds::Kind;
use object::time::Time;
use object::{Map, Value};
use store::{Change, Expect, Record, Revision};

use crate::actions::{check_deletable, delete_warning};
use crate::error::Error;
use crate::meta::{self, meta, meta_mut, meta_text};
use crate::options::{DeleteOptions, ListOptions, Propagation, VersionMatch, WriteOptions};
use crate::read::Listed;
use crate::write::{Draft, Live, Work, WrittenObject};
use crate::{Request, Resources, Warnings, kind_subject, subject};

/// Objects of a collection that are deleted side by side, so that they share syncs.
const DELETIONS_AT_A_TIME: usize = 64;
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What a deletion answers.
#[derive(Debug)]
pub enum Deleted {
    /// The object: still there, or of a kind whose deletion shows it.
    Object {
        /// The object.
        object: WrittenObject,
        /// Whether it is still there.
        remains: bool,
    },
    /// That it is gone.
    Gone {
        /// The object's uid.
        uid: String,
    },
}

/// What the first phase makes of an object.
enum Phase {
    /// Nothing holds it.
    Remove,
    /// It was marked before, and nothing changes.
    Unchanged,
    /// It is marked and stays.
    Mark(Map),
    /// It is marked and goes at once.
    MarkAndRemove(Map),
}

impl Resources {
    /// `DELETE` of one object.
    pub async fn delete(
        &self,
        request: &Request<'_>,
        options: &DeleteOptions,
    ) -> Result<Deleted, Error> {
        self.delete_seen(request, options, Some(request.name)).await
    }

    /// Deletes an object; `seen` is the name under which policies and webhooks see the request,
    /// if they do.
    pub(crate) fn delete_seen<'a>(
        &'a self,
        request: &'a Request<'a>,
        options: &'a DeleteOptions,
        seen: Option<&'a str>,
    ) -> Work<'a, Deleted> {
        Box::pin(self.make_gone(request, options, seen))
    }

    async fn make_gone(
        &self,
        request: &Request<'_>,
        options: &DeleteOptions,
        seen: Option<&str>,
    ) -> Result<Deleted, Error> {
        check_deletable(request)?;
        request.warnings.add(delete_warning(request, options));
        loop {
            let Some(live) = self.live(request).await? else {
                return Err(Error::NotFound(subject(request.kind, request.name)));
            };
            check_preconditions(request.kind, options, &live)?;
            self.admission.delete(self, request, live.map()).await?;
            if let Some(name) = seen
                && !is_under_way(request.kind, options, live.map())
            {
                self.admit_deletion(request, name, options, &live).await?;
            }
            if let Some(deleted) = self.delete_live(request, options, live).await? {
                return Ok(deleted);
            }
        }
    }

    /// Deletes what was read; `None` if somebody else was faster.
    async fn delete_live(
        &self,
        request: &Request<'_>,
        options: &DeleteOptions,
        live: Live,
    ) -> Result<Option<Deleted>, Error> {
        let kind = request.kind;
        let phase = first_phase(kind, options, &live, self.now());
        let uid = meta_text(live.map(), "uid").to_owned();
        let record = self.presented(kind, live.record.clone()).await?;
        let (mut value, mut at) = (record.value, record.revision);
        let (marked, remains) = match phase {
            Phase::Unchanged => return Ok(Some(shown(value, Some(at), true))),
            Phase::Remove => (None, false),
            Phase::Mark(object) => (Some(object), true),
            Phase::MarkAndRemove(object) => (Some(object), false),
        };
        if let Some(object) = marked {
            let owners = live.owners;
            value = self.encode(kind, Draft::by_server(object, owners)).await?;
            if options.dry_run {
                return Ok(Some(shown(value, Some(at), true)));
            }
            let change = Change::Put {
                value: value.clone(),
                ttl_seconds: kind.rules.ttl_seconds,
            };
            match self.commit_delete(kind, &live.record, at, change).await? {
                Some(revision) => at = revision,
                None => return Ok(None),
            }
        }
        if !remains && !options.dry_run {
            match self
                .commit_delete(kind, &live.record, at, Change::Delete)
                .await?
            {
                Some(revision) => at = revision,
                None => return Ok(None),
            }
            if let Some(removed) = live.object.as_object() {
                self.release_allocated(request, removed);
            }
        }
        if remains || kind.rules.returns_deleted {
            return Ok(Some(shown(value, Some(at), remains)));
        }
        Ok(Some(Deleted::Gone { uid }))
    }

    /// Deletes these objects, given by namespace and name, a few at a time so that they share
    /// syncs.
    pub(crate) async fn delete_all(
        &self,
        kind: &Arc<Kind>,
        names: Vec<(String, String)>,
        (user, write): (&User, &WriteOptions),
    ) -> Result<(), Error> {
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        let (options, warnings) = (&options, &Warnings::default());
        for some in names.chunks(DELETIONS_AT_A_TIME) {
            let deletions = some.iter().map(|(namespace, name)| async move {
                let request = Request {
                    kind,
                    namespace,
                    name,
                    subresource: "",
                    user,
                    options: write,
                    warnings,
                };
                match self.delete(&request, options).await {
                    Ok(_) | Err(Error::NotFound(_)) => Ok(()),
                    Err(error) => Err(error),
                }
            });
            futures_util::future::try_join_all(deletions).await?;
        }
        Ok(())
    }

    async fn commit_delete(
        &self,
        kind: &Arc<Kind>,
        record: &Record,
        at: Revision,
        change: Change,
    ) -> Result<Option<Revision>, Error> {
        let committed = self
            .store
            .commit(&kind.collection, &record.name, Expect::At(at), change)
            .await;
        match committed {
            Ok(committed) => {
                self.settle(kind, committed.revision).await;
                Ok(Some(committed.revision))
            }
            Err(store::Error::Conflict { .. }) => Ok(None),
            Err(error) => Err(Error::from_store(error, || subject(kind, &record.name))),
        }
    }

    /// `DELETE` of a collection: everything that `list` selects. Answers with what was read.
    pub async fn delete_collection(
        &self,
        request: &Request<'_>,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Listed, Error> {
        // Upstream lists by pages, and a page of a version is of exactly that one.
        let version_match = list.version_match.or(Some(VersionMatch::Exact));
        let list = ListOptions {
            version_match,
            ..list.clone()
        };
        request.warnings.add(delete_warning(request, options));
        let listed = self.list(request.kind, request.namespace, &list).await?;
        let mut records = listed.records.iter();
        let mut under_way = FuturesOrdered::new();
        loop {
            while under_way.len() < DELETIONS_AT_A_TIME
                && let Some(record) = records.next()
            {
                under_way.push_back(self.delete_listed(request, options, record));
            }
            match under_way.next().await {
                Some(deleted) => deleted?,
                None => break,
            }
        }
        drop(under_way);
        Ok(listed)
    }

    async fn delete_listed(
        &self,
        request: &Request<'_>,
        options: &DeleteOptions,
        record: &Record,
    ) -> Result<(), Error> {
        let (namespace, name) = record.name.rsplit_once('/').unwrap_or(("", &record.name));
        let one = Request {
            namespace,
            name,
            ..*request
        };
        // A request for a collection names none of its objects.
        match self.delete_seen(&one, options, Some("")).await {
            Ok(_) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn shown(value: bytes::Bytes, revision: Option<Revision>, remains: bool) -> Deleted {
    Deleted::Object {
        object: WrittenObject::Stored { value, revision },
        remains,
    }
}

fn first_phase(kind: &Kind, options: &DeleteOptions, live: &Live, now: i64) -> Phase {
    let old = live.map();
    let marked = meta(old).contains_key("deletionTimestamp");
    let mut object = old.clone();
    meta_mut(&mut object).remove("resourceVersion");
    // A definition that is not marked yet waits for its own objects alone.
    if marked || !kind.rules.defines_kinds {
        set_finalizers(kind, options, &mut object);
    }
    if (kind.rules.held)(old) {
        if marked {
            return Phase::Unchanged;
        }
        set_time(&mut object, now);
        (kind.rules.mark_deleting)(&mut object);
        return Phase::Mark(object);
    }
    let pending = !meta::finalizers(&object).is_empty();
    let left = meta(old).get("deletionGracePeriodSeconds");
    let is_over = marked && left.and_then(Value::as_int).unwrap_or(0) == 0;
    match (kind.rules.grace_period)(old, options.grace_period_seconds).filter(|_| !is_over) {
        Some(period) if marked => shorten(object, options, period, now, pending),
        Some(period) => {
            let period = if period < 0 { 1 } else { period };
            count_generation(&mut object);
            set_time(&mut object, now.saturating_add(period));
            meta_mut(&mut object).insert("deletionGracePeriodSeconds", Value::Int(period));
            if pending || period > 0 {
                Phase::Mark(object)
            } else {
                Phase::MarkAndRemove(object)
            }
        }
        None if pending => {
            mark(&mut object, now);
            if object_equals(&object, old) {
                Phase::Unchanged
            } else {
                Phase::Mark(object)
            }
        }
        None => Phase::Remove,
    }
}

/// Whether a deletion has begun that this one would not hasten: nobody is asked about it again.
fn is_under_way(kind: &Kind, options: &DeleteOptions, object: &Map) -> bool {
    let metadata = meta(object);
    if !metadata.contains_key("deletionTimestamp") {
        return false;
    }
    if (kind.rules.held)(object) {
        return true;
    }
    let given = options.grace_period_seconds;
    let Some(period) = (kind.rules.grace_period)(object, given) else {
        return false;
    };
    let period = if period < 0 { 1 } else { period };
    let left = metadata.get("deletionGracePeriodSeconds");
    let left = left.and_then(Value::as_int).unwrap_or(0);
    left > 0 && (given.is_none() || period >= left)
}

/// A repeated graceful deletion may only shorten the period.
fn shorten(
    mut object: Map,
    options: &DeleteOptions,
    period: i64,
    now: i64,
    pending: bool,
) -> Phase {
    let number = |field: &str| meta(&object).get(field).and_then(Value::as_int);
    let old_period = number("deletionGracePeriodSeconds").unwrap_or(0);
    if options.grace_period_seconds.is_none() || period >= old_period {
        return Phase::Unchanged;
    }
    let end = meta_text(&object, "deletionTimestamp");
    let end = Time::parse(end).map_or(now, |time| time.unix_seconds());
    let end = end - old_period + period;
    // A shorter time that is over already leaves the shortest one.
    let period = if end < now { period.min(1) } else { period };
    set_time(&mut object, end.max(now));
    meta_mut(&mut object).insert("deletionGracePeriodSeconds", Value::Int(period));
    if pending || period > 0 {
        Phase::Mark(object)
    } else {
        Phase::MarkAndRemove(object)
    }
}

/// Marks an object of a kind without grace.
fn mark(object: &mut Map, now: i64) {
    if !meta(object).contains_key("deletionTimestamp") {
        count_generation(object);
    }
    let marked = Time::parse(meta_text(object, "deletionTimestamp"));
    if marked.is_ok_and(|time| time.unix_seconds() <= now) {
        meta_mut(object).insert("deletionGracePeriodSeconds", Value::Int(0));
        return;
    }
    set_time(object, now);
    meta_mut(object).insert("deletionGracePeriodSeconds", Value::Int(0));
}

fn count_generation(object: &mut Map) {
    let generation = meta(object)
        .get("generation")
        .and_then(Value::as_int)
        .unwrap_or(0);
    if generation > 0 {
        meta_mut(object).insert("generation", Value::Int(generation + 1));
    }
}

fn set_time(object: &mut Map, unix: i64) {
    let time = Value::from(Time::from_unix_seconds(unix).to_string());
    meta_mut(object).insert("deletionTimestamp", time);
}

fn object_equals(object: &Map, old: &Map) -> bool {
    let mut old = old.clone();
    meta_mut(&mut old).remove("resourceVersion");
    *object == old
}

/// Puts on the finalizers that the garbage collector waits for, and takes off those it need not.
fn set_finalizers(kind: &Kind, options: &DeleteOptions, object: &mut Map) {
    let old = meta::finalizers(object);
    let has = |name: &str| old.iter().any(|finalizer| finalizer.as_str() == Some(name));
    // What nothing depends on does not wait for dependents.
    let alone = !kind.rules.garbage_collected;
    let orphan = match (options.orphan_dependents, options.propagation) {
        _ if alone => false,
        (Some(orphan), _) => orphan,
        (None, Some(policy)) => policy == Propagation::Orphan,
        (None, None) if has(ORPHAN) => true,
        (None, None) if has(FOREGROUND) => false,
        (None, None) => kind.rules.orphan_by_default,
    };
    let foreground = match (options.orphan_dependents, options.propagation) {
        _ if alone => false,
        (Some(_), _) => false,
        (None, Some(policy)) => policy == Propagation::Foreground,
        (None, None) => has(FOREGROUND) && !orphan,
    };
    let mut new: Vec<Value> = old
        .iter()
        .filter(|finalizer| !matches!(finalizer.as_str(), Some(ORPHAN | FOREGROUND)))
        .cloned()
        .collect();
    if orphan {
        new.push(ORPHAN.into());
    }
    if foreground {
        new.push(FOREGROUND.into());
    }
    let unchanged = old.len() == new.len() && old.iter().all(|finalizer| new.contains(finalizer));
    if unchanged {
        return;
    }
    if new.is_empty() {
        meta_mut(object).remove("finalizers");
    } else {
        meta_mut(object).insert("finalizers", Value::Array(new));
    }
}

fn check_preconditions(kind: &Kind, options: &DeleteOptions, live: &Live) -> Result<(), Error> {
    let name = meta_text(live.map(), "name");
    let uid = meta_text(live.map(), "uid");
    let conflict = |detail| {
        let mut subject = kind_subject(kind, name);
        // Of a kind that is served in two groups, the older one is told.
        if kind.resource == "events" {
            subject.group = Default::default();
        }
        Error::Conflict { subject, detail }
    };
    let road_of_its_own = matches!(
        (kind.group.as_str(), kind.resource.as_str()),
        ("", "namespaces") | ("apiextensions.k8s.io", "customresourcedefinitions")
    );
    if road_of_its_own {
        return check_special_preconditions(kind, options, live);
    }
    if let Some(wanted) = options.uid.as_deref()
        && wanted != uid
    {
        return Err(conflict(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The \
             object might have been deleted and then recreated"
        )));
    }
    let version = live.record.revision.to_string();
    if let Some(wanted) = options.resource_version.as_deref()
        && wanted != version
    {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the \
             ResourceVersion in record ({version}). The object might have been modified"
        )));
    }
    Ok(())
}

/// Namespaces and definitions are deleted by roads of their own, which word this differently.
fn check_special_preconditions(
    kind: &Kind,
    options: &DeleteOptions,
    live: &Live,
) -> Result<(), Error> {
    let version = live.record.revision.to_string();
    for (field, wanted, found) in [
        ("UID", &options.uid, meta_text(live.map(), "uid")),
        ("ResourceVersion", &options.resource_version, &version),
    ] {
        if let Some(wanted) = wanted.as_deref()
            && wanted != found
        {
            return Err(Error::Conflict {
                subject: subject(kind, meta_text(live.map(), "name")),
                detail: format!(
                    "Precondition failed: {field} in precondition: {wanted}, {field} in object \
                     meta: {found}"
                ),
            });
        }
    }
    Ok(())
}
