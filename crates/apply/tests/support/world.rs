//! A kind with versions, one object of it, and the writes that change it.

use std::collections::BTreeMap;

use apply::{
    Applied, ApplyError, ConvertError, FieldFilter, FieldSet, ManagedFields, OnConflict, Operation,
    Typing, Versions, Writer,
};
use object::{Map, Text, Value};

use super::types::Schema;

/// Versions by name. Objects of different versions differ in the suffix of their top field names
/// only if `renamed`, else not at all.
#[derive(Default)]
pub(crate) struct Kind {
    pub(crate) versions: BTreeMap<Text, Schema>,
    pub(crate) filters: BTreeMap<Text, FieldFilter>,
    /// For each version, old and new names of map keys and fields, at any depth.
    pub(crate) names: BTreeMap<Text, Vec<(Text, Text)>>,
}

impl Versions for Kind {
    fn typing(&self, api_version: &str) -> Option<Typing<'_>> {
        self.versions.get(api_version).map(Schema::typing)
    }

    fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, ConvertError> {
        let none = Vec::new();
        let from = self.names.get(from).unwrap_or(&none);
        let to = self.names.get(to).unwrap_or(&none);
        let hub = rename(object, &|name| {
            from.iter()
                .find(|(_, there)| there == name)
                .map(|(here, _)| here.clone())
        });
        Ok(rename(&hub, &|name| {
            to.iter()
                .find(|(here, _)| here == name)
                .map(|(_, there)| there.clone())
        }))
    }

    fn reset_fields(&self, api_version: &str) -> Option<&FieldFilter> {
        self.filters.get(api_version)
    }
}

fn rename(value: &Value, names: &dyn Fn(&str) -> Option<Text>) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| {
                    (
                        names(key).unwrap_or_else(|| key.clone()),
                        rename(value, names),
                    )
                })
                .collect::<Map>(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(|item| rename(item, names)).collect()),
        scalar => scalar.clone(),
    }
}

/// One object and its managers.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) kind: Kind,
    pub(crate) live: Option<Value>,
    /// The version in which `live` is written.
    pub(crate) version: Text,
    pub(crate) managers: ManagedFields,
    pub(crate) now: i64,
}

impl World {
    pub(crate) fn new(version: &str, schema: Schema) -> World {
        let mut world = World {
            version: version.into(),
            ..World::default()
        };
        world.kind.versions.insert(version.into(), schema);
        world
    }

    fn live_in(&self, version: &str) -> Option<Value> {
        let live = self.live.as_ref()?;
        if self.version == version {
            return Some(live.clone());
        }
        Some(
            self.kind
                .convert(live, &self.version, version)
                .expect("tests convert"),
        )
    }

    pub(crate) fn apply(
        &mut self,
        by: Writer<'_>,
        object: &Value,
        on_conflict: OnConflict,
    ) -> Result<Applied, ApplyError> {
        let live = self.live_in(by.api_version);
        self.now += 1;
        let applied = apply::apply(
            live.as_ref(),
            object.clone(),
            self.managers.clone(),
            by,
            self.now,
            on_conflict,
            &self.kind,
        )?;
        if let Some(object) = &applied.object {
            self.live = Some(object.clone());
            self.version = by.api_version.into();
        }
        self.managers = applied.managers.clone();
        Ok(applied)
    }

    pub(crate) fn update(&mut self, by: Writer<'_>, object: &Value) {
        let live = self.live_in(by.api_version);
        self.now += 1;
        let managers = std::mem::take(&mut self.managers);
        self.managers = apply::update(live.as_ref(), object, managers, by, self.now, &self.kind);
        self.live = Some(object.clone());
        self.version = by.api_version.into();
    }

    /// The set of a manager: `name` for an applier, `name/update` for an updater.
    pub(crate) fn set_of(&self, name: &str) -> Option<&FieldSet> {
        let (name, operation) = match name.strip_suffix("/update") {
            Some(name) => (name, Operation::Update),
            None => (name, Operation::Apply),
        };
        let mut managers = self.managers.managers().iter();
        managers
            .find(|manager| manager.name == name && manager.operation == operation)
            .map(|manager| &manager.set)
    }
}
