//! The one description type, for built-in and custom kinds alike.
//!
//! Everything the server knows about a kind is a field here: data where data can say it, a
//! function where upstream has code. Nothing outside this crate matches on a kind's name.

use std::sync::{Arc, OnceLock};

use object::field::FieldError;
use object::{Map, Text, Value};
use schema::decode::{Blank, TypeError, Unknown};
use schema::{TypeId, Types};

use crate::custom::Custom;
use crate::generation::Generation;
use crate::json_path::JsonPath;
use crate::validation;

/// A kind in one version, as one collection serves it.
#[derive(Clone)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version.
    pub version: Text,
    /// The kind, such as `Deployment`.
    pub kind: Text,
    /// The kind of its lists, such as `DeploymentList`.
    pub list_kind: Text,
    /// The collection's name in paths, such as `deployments`.
    pub resource: Text,
    /// The name of one, such as `deployment`.
    pub singular: Text,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Short names for people, such as `deploy`.
    pub short_names: Vec<Text>,
    /// Categories, such as `all`.
    pub categories: Vec<Text>,
    /// What can be done with the collection, sorted, as discovery says it.
    pub verbs: Vec<Text>,
    /// What hangs under an object.
    pub subresources: Vec<Subresource>,
    /// The types of the schema.
    pub types: Arc<Types>,
    /// The type of the whole object.
    pub root: TypeId,
    /// Where its objects are stored: the part of the key before namespace and name, such as
    /// `/registry/services/specs/`. Kinds that share it are versions of one stored object.
    pub collection: Text,
    /// The version that is stored; `version` unless several are served.
    pub storage_version: Text,
    /// What a definition says about the kind, if it is a custom resource. Callers need not look:
    /// the methods of [`Kind`] answer for both sorts.
    pub custom: Option<Arc<Custom>>,
    /// The columns of its tables.
    pub columns: Vec<Column>,
    /// What the kind does beyond its schema.
    pub rules: Rules,
    /// What [`Kind::unwritten`] has found out.
    pub unwritten: Unwritten,
}

/// An object in which nothing is set, once somebody has asked for it. A copy of a kind is made to
/// be changed, so it has to find out anew.
#[derive(Default)]
pub struct Unwritten(OnceLock<Value>);

impl Clone for Unwritten {
    fn clone(&self) -> Unwritten {
        Unwritten::default()
    }
}

/// A subresource of a kind.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// Its name in paths, such as `status`.
    pub name: Text,
    /// The group of its kind, if that is not the parent's.
    pub group: Text,
    /// The version of its kind, if that is not the parent's.
    pub version: Text,
    /// Its kind.
    pub kind: Text,
    /// What can be done with it, sorted.
    pub verbs: Vec<Text>,
}

/// A column of the tables that clients print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: Text,
    /// The OpenAPI type of its cells.
    pub kind: Text,
    /// The OpenAPI format of its cells; `name` marks the object's name.
    pub format: Text,
    /// What it means, if the definition of a custom resource says it.
    pub description: Text,
    /// 0 is always shown; more only when asked for.
    pub priority: i32,
    /// Where its cells come from, if the kind is a custom resource.
    pub path: Option<JsonPath>,
}

/// What upstream writes as code, per kind. The default is a kind with no rules of its own.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Why an object that fits its type cannot be read nevertheless.
    pub unreadable: fn(&Map) -> Option<String>,
    /// Fills what a client left out.
    pub defaults: fn(&mut Map),
    /// Shapes a new object before validation: drops what clients may not set, sets generation.
    pub prepare_create: fn(&mut Map),
    /// Shapes a changed object before validation, given the stored one and the subresource
    /// (empty for the object itself).
    pub prepare_update: fn(new: &mut Map, old: &Map, subresource: &str),
    /// Writes the times that the kind itself keeps, after preparing; `old` is the stored object
    /// when it is an update, and `now` is the time as API objects write it.
    pub stamp: fn(new: &mut Map, old: Option<&Map>, subresource: &str, now: &str),
    /// Does what upstream does when it reads an object from storage: too late for everyone who
    /// looks at it before it is stored.
    pub settle: fn(&mut Map),
    /// Reports every mistake of an object; `old` is the stored one when it is an update.
    pub validate: fn(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError>,
    /// Where the object asks for access that only namespaces of administrators give, and `old`
    /// did not.
    pub asks_for_admin: fn(new: &Map, old: Option<&Map>, subresource: &str) -> Option<String>,
    /// Advice about an object that is valid.
    pub warnings: fn(new: &Map, old: Option<&Map>) -> Vec<String>,
    /// What every answer about the kind warns of, if upstream has deprecated it.
    pub deprecation: Option<&'static str>,
    /// Whether a change of the object outside metadata and status counts as a new generation.
    pub generation: Generation,
    /// Which names its objects may have.
    pub name: NameRule,
    /// Whether a PUT may create the object.
    pub create_on_update: bool,
    /// Whether a PUT may leave out the resourceVersion.
    pub unconditional_update: bool,
    /// Annotations that stand for fields of the kind; metadata alone does not show them.
    pub carriers: &'static [&'static str],
    /// Whether a DELETE answers with the object rather than with a Status.
    pub returns_deleted: bool,
    /// Whether dependents are orphaned unless the client says otherwise.
    pub orphan_by_default: bool,
    /// Whether finalizers of garbage collection are put on its objects.
    pub garbage_collected: bool,
    /// The grace period in seconds of an object's deletion unless the client gives one; `None`
    /// for kinds that go at once. The second argument is what the client gives.
    pub grace_period: fn(&Map, Option<i64>) -> Option<i64>,
    /// Whether something of the object's own, beyond its finalizers, keeps it from being removed.
    pub held: fn(&Map) -> bool,
    /// What else the first phase of a deletion sets on an object that is held.
    pub mark_deleting: fn(&mut Map),
    /// Whether its objects declare other kinds.
    pub defines_kinds: bool,
    /// Whether the values of its fields are shown to its readers only.
    pub confidential: bool,
    /// The life of an object in seconds after its last write.
    pub ttl_seconds: Option<u32>,
    /// Fields beyond `metadata.name` and `metadata.namespace` that field selectors may name.
    pub selectable: &'static [&'static str],
    /// The value of a selectable field as text.
    pub select: fn(&Map, &str) -> Text,
    /// The refusal of a field selector that the kind does not offer.
    pub unselectable: fn(field: &str) -> String,
    /// Paths that a write through this subresource (empty: the object itself) cannot change.
    pub reset_fields: fn(subresource: &str) -> &'static [&'static [&'static str]],
}

/// A body that was read as an object of a kind.
#[derive(Debug)]
pub struct Reading {
    /// The object.
    pub object: Map,
    /// The fields that the kind does not know, each as `unknown field "spec.x"`.
    pub unknown: Vec<String>,
    /// Whether it has lists or dictionaries without entries, which upstream's structs tell from
    /// absent ones until they are stored.
    pub has_blanks: bool,
}

/// Which names are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// DNS-1123 subdomain.
    Subdomain,
    /// DNS-1123 label.
    Label,
    /// DNS-1035 label.
    Label1035,
    /// Anything that can stand in a path.
    PathSegment,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            unreadable: |_| None,
            defaults: |_| {},
            prepare_create: |_| {},
            prepare_update: |_, _, _| {},
            stamp: |_, _, _, _| {},
            settle: |_| {},
            validate: |_, _, _| Vec::new(),
            asks_for_admin: |_, _, _| None,
            warnings: |_, _| Vec::new(),
            deprecation: None,
            generation: Generation::None,
            name: NameRule::Subdomain,
            create_on_update: false,
            unconditional_update: true,
            carriers: &[],
            returns_deleted: false,
            orphan_by_default: false,
            garbage_collected: true,
            grace_period: |_, _| None,
            held: |_| false,
            mark_deleting: |_| {},
            defines_kinds: false,
            confidential: false,
            ttl_seconds: None,
            selectable: &[],
            select: |_, _| Text::default(),
            unselectable: |field| {
                format!(
                    "\"{field}\" is not a known field selector: only \"metadata.name\", \
                     \"metadata.namespace\""
                )
            },
            reset_fields: |_| &[],
        }
    }
}

impl Kind {
    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> Text {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            compact(&[&self.group, "/", &self.version])
        }
    }

    /// `resource.group`, or the resource alone for the core group.
    pub fn group_resource(&self) -> Text {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            compact(&[&self.resource, ".", &self.group])
        }
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// The columns of its tables.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Whether its tables may show who manages the fields of an object.
    pub fn shows_managers(&self) -> bool {
        let mut paths = self.columns.iter().filter_map(|it| it.path.as_ref());
        paths.any(|path| path.may_meet(&["metadata", "managedFields"]))
    }

    /// Whether a path with this namespace (empty for none) can mean its objects: the one of a
    /// cluster-scoped kind has no namespace, and across all of them objects are only read.
    pub fn reaches(&self, namespace: &str, verb: &str) -> bool {
        match self.namespaced {
            true => !namespace.is_empty() || matches!(verb, "list" | "watch"),
            false => namespace.is_empty(),
        }
    }

    /// Whether its definition is being deleted, so that nothing new can be made.
    pub fn is_terminating(&self) -> bool {
        let custom = self.custom.as_ref();
        custom.is_some_and(|custom| custom.terminating)
    }

    /// Whether this is a custom resource, which is stored and printed as it came.
    pub fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// Fields beyond `metadata.name` and `metadata.namespace` that field selectors may name.
    pub fn selectable(&self) -> Vec<&str> {
        match &self.custom {
            Some(custom) => custom.selectable().collect(),
            None => self.rules.selectable.to_vec(),
        }
    }

    /// The value of a selectable field as text.
    pub fn select(&self, object: &Map, field: &str) -> Text {
        match &self.custom {
            Some(custom) => custom.select(object, field),
            None => (self.rules.select)(object, field),
        }
    }

    /// Whether a field selector may name this field, or the text that says that it may not.
    pub fn check_selectable(&self, field: &str) -> Result<(), String> {
        if let Some(custom) = &self.custom {
            return custom.check_selectable(self.namespaced, field);
        }
        // Cluster-scoped kinds with selectors of their own do not know a namespace.
        let namespace = self.namespaced || self.rules.selectable.is_empty();
        let everywhere = field == "metadata.name" || (field == "metadata.namespace" && namespace);
        if everywhere || self.rules.selectable.contains(&field) {
            return Ok(());
        }
        Err((self.rules.unselectable)(field))
    }

    /// Reads the tree of a body as an object of this kind: types, defaults, and what is printed
    /// even when it is absent.
    ///
    /// # Errors
    /// A value has the wrong type.
    pub fn read(&self, mut object: Map, unknown: Unknown) -> Result<Reading, TypeError> {
        object.insert("kind", Value::String(self.kind.clone()));
        object.insert("apiVersion", Value::String(self.api_version()));
        if let Some(custom) = &self.custom {
            let (object, unknown) = custom.read(object, unknown)?;
            return Ok(Reading {
                object,
                unknown,
                has_blanks: false,
            });
        }
        let (value, unknown) =
            schema::decode::decode(&self.types, self.root, Value::Object(object), unknown)?;
        let Value::Object(mut object) = value else {
            unreachable!("a kind is a struct")
        };
        if let Some(message) = (self.rules.unreadable)(&object) {
            let fields = Vec::new();
            return Err(TypeError::Malformed { fields, message });
        }
        self.apply_defaults(&mut object);
        let has_blanks = self.complete(&mut object);
        Ok(Reading {
            object,
            unknown,
            has_blanks,
        })
    }

    /// Gives an object that was stored in this version, perhaps under an older schema, the form
    /// that the version has today.
    pub fn read_stored(&self, object: &mut Map) {
        if let Some(custom) = &self.custom {
            custom.read_stored(object);
        }
    }

    /// Gives an object that was converted to this version its form. Nothing is filled in: that was
    /// done in the version that it came from.
    pub fn read_converted(&self, object: &mut Map) {
        if let Some(custom) = &self.custom {
            custom.read_converted(object);
        }
    }

    /// Drops nulls that no type takes or refuses. Reading a body drops more of them.
    pub fn drop_untyped_nulls(&self, object: &mut Map) {
        if let Some(custom) = &self.custom {
            custom.drop_untyped_nulls(object);
        }
    }

    /// Fills what a client left out.
    pub fn apply_defaults(&self, object: &mut Map) {
        match &self.custom {
            Some(custom) => custom.apply_defaults(object),
            None => (self.rules.defaults)(object),
        }
    }

    /// Shapes a new object before validation.
    pub fn prepare_create(&self, object: &mut Map) {
        match &self.custom {
            Some(custom) => custom.prepare_create(object),
            None => (self.rules.prepare_create)(object),
        }
    }

    /// Shapes a changed object before validation, given the stored one and the subresource (empty
    /// for the object itself).
    pub fn prepare_update(&self, new: &mut Map, old: &Map, subresource: &str) {
        match &self.custom {
            Some(custom) => custom.prepare_update(new, old, subresource),
            None => (self.rules.prepare_update)(new, old, subresource),
        }
    }

    /// Writes the times that the kind itself keeps.
    pub fn stamp(&self, new: &mut Map, old: Option<&Map>, subresource: &str, now: &str) {
        (self.rules.stamp)(new, old, subresource, now);
    }

    /// Reports every mistake of an object; `old` is the stored one when it is an update.
    pub fn validate(&self, new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
        match &self.custom {
            Some(custom) => {
                let errors = Vec::new();
                custom.validate(self, errors, new, old, subresource).0
            }
            None => (self.rules.validate)(new, old, subresource),
        }
    }

    /// Adds every mistake of an object to those of its metadata, and tells which mistakes are
    /// forgiven because they were there before; `old` is the stored one when it is an update.
    pub fn validate_after(
        &self,
        mut errors: Vec<FieldError>,
        new: &Map,
        old: Option<&Map>,
        subresource: &str,
    ) -> (Vec<FieldError>, Vec<String>) {
        match &self.custom {
            Some(custom) => custom.validate(self, errors, new, old, subresource),
            None => {
                let own = (self.rules.validate)(new, old, subresource);
                if old.is_none() && !own.is_empty() && validation::meta::is_checked_last(self) {
                    return (own, Vec::new());
                }
                errors.extend(own);
                (errors, Vec::new())
            }
        }
    }

    /// Advice about an object that is valid.
    pub fn warnings(&self, new: &Map, old: Option<&Map>) -> Vec<String> {
        match &self.custom {
            Some(_) => Custom::warnings(new, old),
            None => (self.rules.warnings)(new, old),
        }
    }

    /// Paths that a write through this subresource (empty: the object itself) cannot change.
    pub fn reset_fields(&self, subresource: &str) -> &'static [&'static [&'static str]] {
        match &self.custom {
            Some(custom) => custom.reset_fields(subresource),
            None => (self.rules.reset_fields)(subresource),
        }
    }

    /// What the server says to whoever uses this version, if it is deprecated.
    pub fn deprecation(&self) -> Option<&str> {
        match &self.custom {
            Some(custom) => custom.deprecation.as_deref(),
            None => self.rules.deprecation,
        }
    }

    /// Adds what is printed even when it is absent to an object that is worked on. Tells whether it
    /// has blanks: lists or dictionaries without entries that will not be stored.
    pub fn complete(&self, object: &mut Map) -> bool {
        self.normalize(object, Blank::AsRead)
    }

    /// The JSON of an object that is worked on, which leaves out most blanks.
    pub fn show(&self, mut object: Map) -> Map {
        self.normalize(&mut object, Blank::AsShown);
        object
    }

    /// An object in the form in which the kind is stored and printed from then on, with what is
    /// printed even when it is absent and without blanks.
    pub fn print(&self, mut object: Map) -> Map {
        self.normalize(&mut object, Blank::AsStored);
        object
    }

    fn normalize(&self, object: &mut Map, blank: Blank) -> bool {
        if self.is_custom() {
            return false;
        }
        let mut value = Value::Object(std::mem::take(object));
        let has_blanks = schema::decode::normalize(&self.types, self.root, &mut value, blank);
        if let Value::Object(map) = value {
            *object = map;
        }
        has_blanks
    }

    /// What is stored of an object in which nothing is set.
    pub fn unwritten(&self) -> &Value {
        self.unwritten.0.get_or_init(|| {
            let mut object = Value::Object(Map::new());
            schema::decode::normalize(&self.types, self.root, &mut object, Blank::AsStored);
            object
        })
    }

    /// An object of this kind that holds nothing else.
    pub fn empty_object(&self) -> Map {
        let mut object = Map::with_capacity(4);
        object.insert("apiVersion", Value::String(self.api_version()));
        object.insert("kind", Value::String(self.kind.clone()));
        object
    }
}

fn compact(parts: &[&str]) -> Text {
    let mut out = Text::default();
    for part in parts {
        out.push_str(part);
    }
    out
}
