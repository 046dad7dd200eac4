//! What policies and webhooks are asked about: a request with the objects that it carries.

use std::sync::Arc;

use admission::attributes::{Attributes, Operation};
use auth::User;
use kinds::Kind;
use kinds::convert::convert;
use object::group::{GroupVersionKind, GroupVersionResource};
use object::{Map, Text, Value, value};

use crate::error::Error;
use crate::meta::meta_text;
use crate::options::{DeleteOptions, Propagation, WriteOptions};
use crate::write::{Draft, Live};
use crate::{Request, Resources};

/// A request with its objects, which have their managed fields.
pub(crate) struct Matter<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) operation: Operation,
    /// The kind of the objects; that of the path, or that of its subresource.
    pub(crate) kind: Arc<Kind>,
    /// The name as far as it is known.
    pub(crate) name: Text,
    pub(crate) object: Option<Map>,
    pub(crate) old: Option<Map>,
    pub(crate) options: Value,
    /// Other versions of the resource, and their kinds.
    pub(crate) equivalents: Vec<GroupVersionResource>,
    equivalent_kinds: Vec<Arc<Kind>>,
}

impl<'a> Matter<'a> {
    /// An object that is written.
    pub(crate) fn of_draft(
        resources: &Resources,
        request: &'a Request<'a>,
        draft: &Draft,
        live: Option<&Live>,
    ) -> Matter<'a> {
        let mut object = draft.object.clone();
        draft.owners.show_in(&mut object);
        let old = live.map(shown_live);
        Matter::new(resources, request, request.kind, Some(object), old)
    }

    /// An object that is deleted.
    pub(crate) fn of_deletion(
        resources: &Resources,
        request: &'a Request<'a>,
        options: &DeleteOptions,
        live: &Live,
    ) -> Matter<'a> {
        let old = Some(shown_live(live));
        let matter = Matter::new(resources, request, request.kind, None, old);
        Matter {
            operation: Operation::Delete,
            options: delete_options(options),
            name: request.name.into(),
            ..matter
        }
    }

    /// Objects of the kind of a subresource, or of one that is never stored.
    pub(crate) fn new(
        resources: &Resources,
        request: &'a Request<'a>,
        kind: &Arc<Kind>,
        object: Option<Map>,
        old: Option<Map>,
    ) -> Matter<'a> {
        let operation = if old.is_some() {
            Operation::Update
        } else {
            Operation::Create
        };
        let name = match (request.name, &object) {
            ("", Some(object)) => meta_text(object, "name").into(),
            (name, _) => name.into(),
        };
        let nested = !Arc::ptr_eq(kind, request.kind);
        let catalogue = resources.catalogue.load();
        let others = catalogue.kinds().iter().filter(|other| {
            other.collection == request.kind.collection
                && (&other.group, &other.version) != (&request.kind.group, &request.kind.version)
        });
        let (equivalents, equivalent_kinds) = others
            .map(|other| {
                // The kind of a subresource is the same in every version of its parent.
                let kind = if nested { kind } else { other };
                (resource_of(other), Arc::clone(kind))
            })
            .unzip();
        Matter {
            request,
            operation,
            kind: Arc::clone(kind),
            name,
            object,
            old,
            options: write_options(request.options, operation),
            equivalents,
            equivalent_kinds,
        }
    }

    /// The request as policies and webhooks see it.
    pub(crate) fn attributes(&self) -> Attributes<'_> {
        let request = self.request;
        Attributes {
            operation: self.operation,
            kind: kind_of(&self.kind),
            resource: resource_of(request.kind),
            subresource: request.subresource,
            name: &self.name,
            namespace: if is_namespace(request.kind) {
                &self.name
            } else {
                request.namespace
            },
            dry_run: request.options.dry_run,
            user: user_info(request.user),
            options: self.options.clone(),
        }
    }

    /// The kind of the equivalent at a place.
    pub(crate) fn equivalent_kind(&self, place: usize) -> &Arc<Kind> {
        &self.equivalent_kinds[place]
    }

    /// Whether the objects are about admission itself.
    pub(crate) fn is_exempt(&self) -> bool {
        self.kind.group == super::GROUP && self.attributes().is_exempt()
    }
}

impl Resources {
    /// An object of one kind in the form of another that shares its storage.
    pub(super) async fn in_form(
        &self,
        from: &Arc<Kind>,
        to: &Arc<Kind>,
        object: Option<&Map>,
    ) -> Result<Option<Map>, Error> {
        let Some(object) = object.cloned() else {
            return Ok(None);
        };
        if Arc::ptr_eq(from, to) {
            return Ok(Some(object));
        }
        if !from.is_custom() {
            return Ok(Some(convert(from, to, object)));
        }
        let mut converted = self.convert_custom(to, vec![object]).await?;
        let mut object = converted.pop().unwrap_or_default();
        to.read_stored(&mut object);
        Ok(Some(object))
    }
}

fn shown_live(live: &Live) -> Map {
    let mut object = live.map().clone();
    live.owners.show_in(&mut object);
    object
}

fn is_namespace(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.resource == "namespaces"
}

pub(crate) fn kind_of(kind: &Kind) -> GroupVersionKind {
    GroupVersionKind::new(kind.group.clone(), kind.version.clone(), kind.kind.clone())
}

pub(crate) fn resource_of(kind: &Kind) -> GroupVersionResource {
    let (group, version) = (kind.group.clone(), kind.version.clone());
    GroupVersionResource::new(group, version, kind.resource.clone())
}

fn user_info(user: &User) -> Value {
    let list = |texts: &[Text]| Value::Array(texts.iter().cloned().map(Value::String).collect());
    let mut info = Map::new();
    info.insert("username", Value::String(user.name.clone()));
    if !user.uid.is_empty() {
        info.insert("uid", Value::String(user.uid.clone()));
    }
    if !user.groups.is_empty() {
        info.insert("groups", list(&user.groups));
    }
    if !user.extra.is_empty() {
        let extra = user
            .extra
            .iter()
            .map(|(key, values)| (key.clone(), list(values)));
        info.insert("extra", Value::Object(extra.collect()));
    }
    Value::Object(info)
}

/// The options of a write as its client gave them.
fn write_options(options: &WriteOptions, operation: Operation) -> Value {
    let kind = if operation == Operation::Create {
        "CreateOptions"
    } else {
        "UpdateOptions"
    };
    let mut shown = options_object(kind, options.dry_run);
    let given = [
        ("fieldManager", &options.given_manager),
        ("fieldValidation", &options.given_validation),
    ];
    for (name, text) in given.into_iter().filter(|(_, text)| !text.is_empty()) {
        shown.insert(name, Value::String(text.clone()));
    }
    Value::Object(shown)
}

/// The options of a deletion with what their kind fills in, as upstream does before anybody looks.
pub(crate) fn completed(kind: &Kind, options: &DeleteOptions, object: &Map) -> DeleteOptions {
    let mut options = options.clone();
    let period = (kind.rules.grace_period)(object, options.grace_period_seconds);
    if let Some(period) = period {
        options.grace_period_seconds = Some(if period < 0 { 1 } else { period });
    }
    if (is_namespace(kind) || kind.rules.defines_kinds) && options.uid.is_none() {
        options.uid = Some(meta_text(object, "uid").into());
    }
    options
}

fn delete_options(options: &DeleteOptions) -> Value {
    let mut shown = options_object("DeleteOptions", options.dry_run);
    if let Some(seconds) = options.grace_period_seconds {
        shown.insert("gracePeriodSeconds", Value::Int(seconds));
    }
    let mut conditions = Map::new();
    for (name, text) in [
        ("uid", &options.uid),
        ("resourceVersion", &options.resource_version),
    ] {
        if let Some(text) = text {
            conditions.insert(name, Value::String(text.clone()));
        }
    }
    if !conditions.is_empty() {
        shown.insert("preconditions", Value::Object(conditions));
    }
    if let Some(orphan) = options.orphan_dependents {
        shown.insert("orphanDependents", Value::Bool(orphan));
    }
    if let Some(propagation) = options.propagation {
        let text = match propagation {
            Propagation::Orphan => "Orphan",
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
        };
        shown.insert("propagationPolicy", Value::from(text));
    }
    Value::Object(shown)
}

fn options_object(kind: &str, dry_run: bool) -> Map {
    let mut shown = Map::new();
    shown.insert("kind", Value::from(kind));
    shown.insert("apiVersion", Value::from("meta.k8s.io/v1"));
    if dry_run {
        shown.insert("dryRun", value!(["All"]));
    }
    shown
}
