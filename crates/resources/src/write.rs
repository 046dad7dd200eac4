//! Create, replace, patch and apply.
//!
//! Every write passes the same steps, in this order:
//!
//! 1. the current object is read,
//! 2. the request says what it should become: the body itself, or a patch of the current object,
//! 3. ownership of each field is recorded ([`crate::ownership`]),
//! 4. admission may change or refuse it,
//! 5. what clients cannot set is restored, the kind's own rules shape and validate it,
//! 6. nothing changed? then the current object is the answer and nothing is written,
//! 7. it is committed if the object is still the one read in step 1, else everything starts over,
//!    unless the client named a version.

mod draft;
mod identity;

use std::pin::Pin;
use std::sync::Arc;

use auth::Attributes;
use bytes::Bytes;
use kinds::convert::convert;
use kinds::{Kind, validation};
use object::field::FieldError;
use object::{Map, Value};
use store::{Change, Expect, Record, Revision};

pub(crate) use draft::Draft;
pub(crate) use identity::{
    Given, check_absent, check_name, check_namespace, check_place, check_uid, check_version,
    drop_version,
};

use crate::actions::name_requester;
use crate::body::{self, Body, Parsed, Wanted};
use crate::error::Error;
use crate::meta::{self, meta, meta_mut, meta_text};
use crate::ownership::Owners;
use crate::patch::{Patch, PatchType};
use crate::read::{check_path_name, store_name};
use crate::record::{self, Stored};
use crate::roles::refused;
use crate::{Request, Resources, ids, kind_subject, subject};

/// Names tried for an object with `generateName`.
const GENERATED_NAMES_MAX: usize = 8;

/// What a write answers.
#[derive(Debug)]
pub struct Written {
    /// The object after the write.
    pub object: WrittenObject,
    /// Whether it is new.
    pub created: bool,
}

/// An object after a write.
#[derive(Debug)]
pub enum WrittenObject {
    /// As it is stored; without a revision if it never was (a dry run that creates).
    Stored {
        /// The encoded record.
        value: Bytes,
        /// Its revision.
        revision: Option<Revision>,
    },
    /// Something that is not stored in this form, such as a Scale.
    Virtual(Map),
}

/// A stored object, taken apart for a write.
pub(crate) struct Live {
    /// The object in the version of the request, without managed fields. It is a map.
    pub object: Value,
    /// Who owns its fields.
    pub owners: Owners,
    /// What is stored.
    pub record: Record,
}

impl Live {
    /// The object as the map it is.
    pub(crate) fn map(&self) -> &Map {
        self.object
            .as_object()
            .expect("a live object is made of a map")
    }
}

/// As what policies and webhooks see an object that is changed.
#[derive(Clone, Copy)]
pub(crate) enum Seen<'a> {
    Itself,
    /// As its scale, by this request.
    Scale(&'a Request<'a>),
}

/// Work under way, in a box.
///
/// The body of an asynchronous function is compiled anew wherever it is awaited. What every kind of
/// write ends in is large, and this keeps it to one place.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// What became of an attempt to write.
pub(crate) enum Attempt {
    Done(Written),
    /// Somebody else was faster: read again.
    Stale,
}

impl Resources {
    /// `POST`: makes a new object.
    pub async fn create(&self, request: &Request<'_>, body: &Body) -> Result<Written, Error> {
        if let Some(written) = self.review(request, body).await? {
            return Ok(written);
        }
        if let Some(written) = self.act(request, body).await? {
            return Ok(written);
        }
        let Parsed {
            mut wanted,
            wrong_type,
        } = body::read(&self.catalogue(), request, body)?;
        if let Some(error) = wrong_type {
            return Err(error);
        }
        let object = &mut wanted.object;
        check_namespace(request, object)?;
        let body_name = meta_text(object, "name");
        if !request.name.is_empty() && body_name != request.name {
            check_name(request, object)?;
        }
        meta::wipe_system_fields(object);
        self.create_object(request, wanted).await
    }

    /// Makes a new object out of a body that has been read.
    pub(crate) async fn create_object(
        &self,
        request: &Request<'_>,
        mut wanted: Wanted,
    ) -> Result<Written, Error> {
        request
            .warnings
            .add(meta::dedup_owner_references(&mut wanted.object));
        let owners = Owners::of_created(self, request, &mut wanted);
        self.create_draft(request, Draft::new(wanted, owners)).await
    }

    /// Makes a new object whose owners are known.
    pub(crate) fn create_draft<'a>(
        &'a self,
        request: &'a Request<'a>,
        draft: Draft,
    ) -> Work<'a, Written> {
        Box::pin(self.make_new(request, draft))
    }

    async fn make_new(&self, request: &Request<'_>, mut draft: Draft) -> Result<Written, Error> {
        if request.kind.is_terminating() {
            return Err(Error::Forbidden {
                subject: subject(request.kind, meta_text(&draft.object, "name")),
                detail: "create not allowed while custom resource definition is terminating"
                    .to_owned(),
                causes: Vec::new(),
            });
        }
        self.admit(request, &mut draft, None).await?;
        let base = meta_text(&draft.object, "generateName").to_owned();
        if !meta_text(&draft.object, "name").is_empty() || base.is_empty() {
            let object = self.create_named(request, draft).await?;
            return Ok(Written {
                object,
                created: true,
            });
        }
        let mut name = String::new();
        for _ in 0..GENERATED_NAMES_MAX {
            let mut attempt = draft.clone();
            name = ids::generated_name(&base);
            meta_mut(&mut attempt.object).insert("name", Value::from(name.as_str()));
            match self.create_named(request, attempt).await {
                Ok(object) => {
                    return Ok(Written {
                        object,
                        created: true,
                    });
                }
                Err(Error::AlreadyExists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::NoUniqueName(subject(request.kind, &name)))
    }

    async fn create_named(
        &self,
        request: &Request<'_>,
        mut draft: Draft,
    ) -> Result<WrittenObject, Error> {
        let lease = self.allocate_new(request, &mut draft.object).await?;
        let errors = self.admin_access(request, &draft.object, None).await?;
        self.shape_new(request.kind, &mut draft, errors)?;
        name_requester(request, &mut draft.object);
        request
            .warnings
            .add(request.kind.warnings(&draft.object, None));
        self.admission
            .validate(self, request, &draft.object, None)
            .await?;
        draft.drop_blanks(request.kind);
        self.check_by_hooks(request, &draft, None).await?;
        let charge = self
            .admission
            .charge(self, request, &draft.object, None)
            .await?;
        let name = meta_text(&draft.object, "name").to_owned();
        let written = self.commit_new(request, &name, draft).await?;
        charge.keep();
        if !request.options.dry_run {
            lease.keep();
        }
        Ok(written)
    }

    /// Gives a new object its identity, lets its kind shape it, and validates it.
    fn shape_new(
        &self,
        kind: &Arc<Kind>,
        draft: &mut Draft,
        mut errors: Vec<FieldError>,
    ) -> Result<(), Error> {
        let object = &mut draft.object;
        meta::fill_system_fields(object, ids::uuid(), self.now_text());
        kind.prepare_create(object);
        if let Some(generation) = kind.rules.generation.first() {
            meta_mut(object).insert("generation", Value::Int(generation));
        }
        kind.stamp(object, None, "", &self.now_text());
        draft.has_blanks = kind.complete(object);
        draft.show_odd_owners();
        let object = &draft.object;
        errors.extend(validation::meta::validate_create(kind, object));
        let (errors, _) = kind.validate_after(errors, object, None, "");
        refuse_invalid(&self.stored_kind(kind), object, errors)
    }

    async fn commit_new(
        &self,
        request: &Request<'_>,
        name: &str,
        mut draft: Draft,
    ) -> Result<WrittenObject, Error> {
        let kind = request.kind;
        let key = store_name(kind, request.namespace, name);
        // A version that a dry run was given is shown as it came; nobody gives out another.
        let given = meta_text(&draft.object, "resourceVersion").parse().ok();
        // The store says this, so everything else goes before it; zero means no version.
        if given.is_some_and(|version: u64| version != 0) && !request.options.dry_run {
            let text = "resourceVersion should not be set on objects to be created";
            return Err(Error::BadRequest(text.to_owned()));
        }
        meta_mut(&mut draft.object).remove("resourceVersion");
        (kind.rules.settle)(&mut draft.object);
        let value = self.encode(kind, draft).await?;
        if request.options.dry_run {
            let exists = self.store.get(&kind.collection, &key).await;
            return match exists.map_err(|error| Error::from_store(error, || subject(kind, name)))? {
                Some(record) => Err(exists_already(kind, name, &record)),
                None => Ok(WrittenObject::Stored {
                    value: self.shown(kind, value).await?,
                    revision: given.map(Revision),
                }),
            };
        }
        let ttl_seconds = kind.rules.ttl_seconds;
        let change = Change::Put {
            value: value.clone(),
            ttl_seconds,
        };
        match self
            .store
            .commit(&kind.collection, &key, Expect::Absent, change)
            .await
        {
            Ok(committed) => {
                self.settle(kind, committed.revision).await;
                Ok(WrittenObject::Stored {
                    value: self.shown(kind, value).await?,
                    revision: Some(committed.revision),
                })
            }
            Err(store::Error::Conflict {
                current: Some(record),
            }) => Err(exists_already(kind, name, &record)),
            Err(error) => Err(Error::from_store(error, || subject(kind, name))),
        }
    }

    /// `PUT`: replaces an object.
    pub async fn update(&self, request: &Request<'_>, body: &Body) -> Result<Written, Error> {
        let kind = request.kind;
        // Read anew if somebody else was faster: that is rarer than a copy would have to be made.
        loop {
            let Parsed {
                mut wanted,
                wrong_type,
            } = body::read(&self.catalogue(), request, body)?;
            check_place(request, &mut wanted.object)?;
            let Some(live) = self.live(request).await? else {
                return self.create_by_update(request, wanted).await;
            };
            check_uid(request, &wanted.object, &live)?;
            let given = check_version(kind, &wanted.object, &live)?;
            if let Some(error) = wrong_type {
                return Err(error);
            }
            match self.replace(request, live, wanted).await? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Stale if given == Given::Version => {
                    return Err(Error::modified(subject(kind, request.name)));
                }
                Attempt::Stale => {}
            }
        }
    }

    async fn create_by_update(
        &self,
        request: &Request<'_>,
        mut wanted: Wanted,
    ) -> Result<Written, Error> {
        let kind = request.kind;
        // What is said of a body is said even if there is nothing to replace.
        request
            .warnings
            .add(meta::dedup_owner_references(&mut wanted.object));
        if !kind.rules.create_on_update || !request.subresource.is_empty() {
            return Err(Error::NotFound(subject(kind, request.name)));
        }
        check_absent(request, &wanted.object)?;
        self.may_create(request).await?;
        meta::wipe_system_fields(&mut wanted.object);
        drop_version(request, &mut wanted.object)?;
        self.create_object(request, wanted).await
    }

    /// `PATCH` of any type but apply.
    pub async fn patch(
        &self,
        request: &Request<'_>,
        patch_type: PatchType,
        body: &Body,
    ) -> Result<Written, Error> {
        let kind = request.kind;
        let patch = self.read_patch(request, patch_type, body).await?;
        loop {
            let Some(live) = self.live(request).await? else {
                return Err(Error::NotFound(subject(kind, request.name)));
            };
            let Parsed {
                mut wanted,
                wrong_type,
            } = patch.apply(&self.catalogue(), request, &live)?;
            check_place(request, &mut wanted.object)?;
            // A version that the patch sets differs from the current one as soon as somebody else
            // was faster; without one the patch is simply applied again.
            check_version(kind, &wanted.object, &live)?;
            if let Some(error) = wrong_type {
                return Err(error);
            }
            match self.replace(request, live, wanted).await? {
                Attempt::Done(written) => return Ok(written),
                Attempt::Stale => {}
            }
        }
    }

    /// Reads a patch; that there is nothing to patch is told first.
    pub(crate) async fn read_patch(
        &self,
        request: &Request<'_>,
        patch_type: PatchType,
        body: &Body,
    ) -> Result<Patch, Error> {
        self.unless_missing(request, patch_type.read(&body.bytes))
            .await
    }

    /// What was read of a body; that the object is not there goes before any mistake in it.
    pub(crate) async fn unless_missing<T>(
        &self,
        request: &Request<'_>,
        read: Result<T, Error>,
    ) -> Result<T, Error> {
        if read.is_err() && self.stored(request).await?.is_none() {
            return Err(Error::NotFound(subject(request.kind, request.name)));
        }
        read
    }

    /// Replaces a live object by what a PUT or a patch makes of it.
    pub(crate) async fn replace(
        &self,
        request: &Request<'_>,
        live: Live,
        mut wanted: Wanted,
    ) -> Result<Attempt, Error> {
        request
            .warnings
            .add(meta::dedup_owner_references(&mut wanted.object));
        let owners = Owners::after_update(self, request, &live, &mut wanted);
        self.finish_update(request, live, Draft::new(wanted, owners))
            .await
    }

    /// Whether there is nothing to write: neither another value nor another form of it on disk.
    fn is_as_stored(&self, kind: &Kind, live: &Live, value: &Bytes) -> bool {
        // Another schema under which the same object is written is no change of the object.
        let same = *value == live.record.value
            || (kind.is_custom() && record::is_same_object(value, &live.record.value));
        same && !self.store.is_stale(&kind.collection, &live.record.name)
    }

    /// From a draft whose owners are known to the commit: steps 4 to 7.
    pub(crate) async fn finish_update(
        &self,
        request: &Request<'_>,
        live: Live,
        mut draft: Draft,
    ) -> Result<Attempt, Error> {
        self.admit(request, &mut draft, Some(&live)).await?;
        self.finish_admitted(request, live, draft, Seen::Itself)
            .await
    }

    /// From a draft that nobody changes any more to the commit: steps 5 to 7.
    pub(crate) fn finish_admitted<'a>(
        &'a self,
        request: &'a Request<'a>,
        live: Live,
        draft: Draft,
        seen: Seen<'a>,
    ) -> Work<'a, Attempt> {
        Box::pin(self.make_change(request, live, draft, seen))
    }

    async fn make_change(
        &self,
        request: &Request<'_>,
        live: Live,
        mut draft: Draft,
        seen: Seen<'_>,
    ) -> Result<Attempt, Error> {
        let (kind, old) = (request.kind, live.map());
        // Whoever named no version means the current one.
        let current = Value::from(live.record.revision.to_string());
        meta_mut(&mut draft.object).insert("resourceVersion", current);
        let lease = self
            .allocate_changed(request, &mut draft.object, old)
            .await?;
        draft.keep_times(kind, &live);
        let errors = self.admin_access(request, &draft.object, Some(old)).await?;
        let forgiven = self.shape_changed(request, &live, &mut draft, errors)?;
        if request.subresource != "status" {
            let advice = kind.warnings(&draft.object, Some(old));
            request.warnings.add(advice);
        }
        request.warnings.add(forgiven);
        self.check_change(request, &live, &mut draft, seen).await?;
        let charge = self
            .admission
            .charge(self, request, &draft.object, Some(old))
            .await?;
        let finished = is_finished(kind, &draft.object, old);
        // What is gone is not read from storage any more.
        if !finished {
            (kind.rules.settle)(&mut draft.object);
        }
        let value = self.encode(kind, draft).await?;
        let revision = live.record.revision;
        if request.options.dry_run || (!finished && self.is_as_stored(kind, &live, &value)) {
            charge.keep();
            return self.answer_change(kind, value, revision).await;
        }
        // What is not needed any more goes before the wait for the disk, while it is at hand.
        let Live {
            object,
            owners,
            record,
        } = live;
        drop(owners);
        let gone = finished.then_some(object);
        let change = if finished {
            Change::Delete
        } else {
            Change::Put {
                value: value.clone(),
                ttl_seconds: kind.rules.ttl_seconds,
            }
        };
        let committed = self
            .store
            .commit(&kind.collection, &record.name, Expect::At(revision), change)
            .await;
        match committed {
            Ok(committed) => {
                self.settle(kind, committed.revision).await;
                charge.keep();
                let revision = match gone.as_ref().and_then(Value::as_object) {
                    Some(old) => {
                        drop(lease);
                        self.release_allocated(request, old);
                        revision
                    }
                    None => {
                        lease.keep();
                        committed.revision
                    }
                };
                self.answer_change(kind, value, revision).await
            }
            Err(store::Error::Conflict { .. }) => Ok(Attempt::Stale),
            Err(error) => Err(Error::from_store(error, || subject(kind, request.name))),
        }
    }

    /// Lets plugins, policies and webhooks look at a change that is valid.
    async fn check_change(
        &self,
        request: &Request<'_>,
        live: &Live,
        draft: &mut Draft,
        seen: Seen<'_>,
    ) -> Result<(), Error> {
        if let Seen::Scale(scale) = seen {
            draft.drop_blanks(request.kind);
            return self.check_scale(scale, draft, live).await;
        }
        let (plugins, old) = (&self.admission, live.map());
        plugins
            .validate(self, request, &draft.object, Some(old))
            .await?;
        draft.drop_blanks(request.kind);
        self.check_by_hooks(request, draft, Some(live)).await
    }

    /// The answer to a change of an object that existed.
    async fn answer_change(
        &self,
        kind: &Arc<Kind>,
        value: Bytes,
        revision: Revision,
    ) -> Result<Attempt, Error> {
        let object = WrittenObject::Stored {
            value: self.shown(kind, value).await?,
            revision: Some(revision),
        };
        Ok(Attempt::Done(Written {
            object,
            created: false,
        }))
    }

    /// Restores what clients cannot change, lets the kind shape the object, and validates it. Tells
    /// which mistakes are forgiven because they were there before.
    fn shape_changed(
        &self,
        request: &Request<'_>,
        live: &Live,
        draft: &mut Draft,
        mut errors: Vec<FieldError>,
    ) -> Result<Vec<String>, Error> {
        let (kind, old) = (request.kind, live.map());
        let object = &mut draft.object;
        meta::keep_system_fields(object, old);
        kind.prepare_update(object, old, request.subresource);
        kind.stamp(object, Some(old), request.subresource, &self.now_text());
        draft.has_blanks = kind.complete(object);
        draft.count_generation(kind, request.subresource, old);
        draft.keep_times_in_place(kind, live);
        if !request.options.dry_run {
            // Nothing on disk has one; only what is not stored shows what was sent.
            meta_mut(&mut draft.object).remove("selfLink");
        }
        draft.show_odd_owners();
        let object = &draft.object;
        let subresource = request.subresource;
        errors.extend(validation::meta::validate_update(
            kind,
            object,
            old,
            subresource,
        ));
        let (errors, forgiven) =
            kind.validate_after(errors, object, Some(old), request.subresource);
        refuse_invalid(&self.stored_kind(kind), object, errors)?;
        Ok(forgiven)
    }

    /// Changes the object of a request until nobody was faster; for the server's own work.
    ///
    /// `change` tells whether there is anything to change. An object that is gone needs nothing.
    pub(crate) async fn edit(
        &self,
        request: &Request<'_>,
        change: impl Fn(&mut Map) -> bool,
    ) -> Result<(), Error> {
        loop {
            let Some(live) = self.live(request).await? else {
                return Ok(());
            };
            let mut object = live.map().clone();
            if !change(&mut object) {
                return Ok(());
            }
            let wanted = Wanted::by_server(object);
            if let Attempt::Done(_) = self.replace(request, live, wanted).await? {
                return Ok(());
            }
        }
    }

    /// Reads the object that a write is about.
    pub(crate) async fn live(&self, request: &Request<'_>) -> Result<Option<Live>, Error> {
        let Some(record) = self.stored(request).await? else {
            return Ok(None);
        };
        let shown = self.presented(request.kind, record.clone()).await?;
        let live = self.take_apart(request.kind, shown)?;
        Ok(Some(Live { record, ..live }))
    }

    /// The record that a write is about.
    pub(crate) async fn stored(&self, request: &Request<'_>) -> Result<Option<Record>, Error> {
        let kind = request.kind;
        check_path_name(request.name)?;
        let key = store_name(kind, request.namespace, request.name);
        let found = self.store.get(&kind.collection, &key).await;
        found.map_err(|error| Error::from_store(error, || subject(kind, request.name)))
    }

    /// Takes a record apart, converting it to the version of `kind`. One of a custom resource has
    /// been presented before.
    pub(crate) fn take_apart(&self, kind: &Arc<Kind>, record: Record) -> Result<Live, Error> {
        let damaged = || damaged(kind, &record);
        let stored = Stored::new(&record.value).map_err(|_| damaged())?;
        let tree = stored.tree(Some(record.revision)).map_err(|_| damaged())?;
        let owners = Owners::read(stored.managed_fields(), &self.known_sets);
        let owners = owners.map_err(|_| damaged())?;
        let object = Value::Object(self.served_tree(kind, tree));
        Ok(Live {
            object,
            owners,
            record,
        })
    }

    /// A stored tree as an object of `kind`.
    pub fn served_tree(&self, kind: &Arc<Kind>, mut tree: Map) -> Map {
        if kind.is_custom() {
            tree.insert("kind", Value::String(kind.kind.clone()));
            tree.insert("apiVersion", Value::String(kind.api_version()));
            return tree;
        }
        let stored = self.stored_kind(kind);
        tree.insert("kind", Value::String(stored.kind.clone()));
        tree.insert("apiVersion", Value::String(stored.api_version()));
        if Arc::ptr_eq(&stored, kind) {
            tree
        } else {
            convert(&stored, kind, tree)
        }
    }

    /// The record of an object, in the form in which its kind is stored.
    pub(crate) async fn encode(&self, kind: &Arc<Kind>, draft: Draft) -> Result<Bytes, Error> {
        let stored = self.stored_kind(kind);
        let managed_fields = draft.owners.to_text(kind);
        if kind.is_custom() && !Arc::ptr_eq(&stored, kind) {
            let mut converted = self.convert_custom(&stored, vec![draft.object]).await?;
            let mut object = converted.pop().unwrap_or_default();
            stored.read_stored(&mut object);
            return Ok(record::encode(&stored, &object, &managed_fields));
        }
        let object = if Arc::ptr_eq(&stored, kind) {
            draft.object
        } else {
            convert(kind, &stored, draft.object)
        };
        Ok(record::encode(&stored, &object, &managed_fields))
    }

    /// The record of a stored value as `kind` shows it.
    async fn shown(&self, kind: &Arc<Kind>, value: Bytes) -> Result<Bytes, Error> {
        if !kind.is_custom() {
            return Ok(value);
        }
        let record = Record {
            name: "".into(),
            value,
            created: Revision(0),
            revision: Revision(0),
        };
        Ok(self.presented(kind, record).await?.value)
    }

    /// Whether the user of a request may create what it would create.
    pub(crate) async fn may_create(&self, request: &Request<'_>) -> Result<(), Error> {
        let kind = request.kind;
        let attributes = Attributes::Resource {
            verb: "create",
            group: &kind.group,
            resource: &kind.resource,
            namespace: request.namespace,
            name: request.name,
        };
        self.permit(request.user, attributes)
            .await?
            .map_err(refused)
    }
}

/// The error about a record that is no record.
pub(crate) fn damaged(kind: &Kind, record: &Record) -> Error {
    Error::Internal(format!(
        "the record {}{} cannot be read; restore it from a backup",
        kind.collection, record.name
    ))
}

fn exists_already(kind: &Kind, name: &str, record: &Record) -> Error {
    let deleting = Stored::new(&record.value).is_ok_and(|stored| stored.is_deleting());
    let subject = subject(kind, name);
    if deleting {
        Error::BeingDeleted(subject)
    } else {
        Error::AlreadyExists(subject)
    }
}

fn refuse_invalid(kind: &Kind, object: &Map, errors: Vec<FieldError>) -> Result<(), Error> {
    if errors.is_empty() {
        return Ok(());
    }
    let subject = kind_subject(kind, meta_text(object, "name"));
    Err(Error::Invalid { subject, errors })
}

/// Whether a deletion that waited for finalizers is over.
fn is_finished(kind: &Kind, new: &Map, old: &Map) -> bool {
    let old_meta = meta(old);
    let grace = old_meta
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_int)
        .unwrap_or(0);
    old_meta.contains_key("deletionTimestamp")
        && grace == 0
        && meta::finalizers(new).is_empty()
        && !(kind.rules.held)(new)
}
