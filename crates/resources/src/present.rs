//! Stored custom resources in the form in which a version of their kind shows them.
//!
//! A record of a custom resource carries a tag: the version that it was written in and a digest of
//! that version's schema. While the tag is that of the kind which is asked for, the record's bytes
//! are the answer. Otherwise the object is converted, pruned and defaulted anew, and encoded as a
//! record of the kind that is asked for, so that nobody else needs to know.

use std::sync::{Arc, OnceLock};

use kinds::Kind;
use kinds::custom::Conversion;
use object::{Map, Value, json};
use store::{Event, Record};

use crate::error::Error;
use crate::meta::meta_mut;
use crate::record::{self, Stored};
use crate::write::damaged;
use crate::{Resources, conversion};

impl Resources {
    /// A record as `kind` shows it.
    pub(crate) async fn presented(
        &self,
        kind: &Arc<Kind>,
        record: Record,
    ) -> Result<Record, Error> {
        if kind.custom.is_none() {
            return Ok(record);
        }
        let mut records = vec![record];
        self.present(kind, &mut records).await?;
        Ok(records.pop().expect("there was one"))
    }

    /// Gives records the form in which `kind` shows them.
    pub(crate) async fn present(
        &self,
        kind: &Arc<Kind>,
        records: &mut [Record],
    ) -> Result<(), Error> {
        let Some(custom) = &kind.custom else {
            return Ok(());
        };
        let mut stale = Vec::new();
        for (place, record) in records.iter().enumerate() {
            let stored = Stored::new(&record.value).map_err(|_| damaged(kind, record))?;
            if stored.tag() == custom.tag.as_str() {
                continue;
            }
            let mut tree = stored.tree(None).map_err(|_| damaged(kind, record))?;
            if let Ok(owners @ Value::Array(_)) = json::parse(stored.managed_fields()) {
                meta_mut(&mut tree).insert("managedFields", owners);
            }
            let version = version_of(stored.tag());
            stale.push((place, version.to_owned(), tree));
        }
        if stale.is_empty() {
            return Ok(());
        }
        let places: Vec<usize> = stale.iter().map(|(place, ..)| *place).collect();
        let catalogue = self.catalogue();
        let forms: Vec<&Arc<Kind>> = catalogue.forms(&kind.collection).collect();
        let objects = stale.into_iter().map(|(_, version, mut tree)| {
            tree.insert("kind", Value::String(kind.kind.clone()));
            let api_version = format!("{}/{version}", kind.group);
            tree.insert("apiVersion", Value::from(api_version));
            // What the schema of the stored version fills in is converted with the rest.
            if let Some(stored) = forms.iter().find(|form| form.version == version) {
                stored.read_stored(&mut tree);
            }
            tree
        });
        let objects = self.convert_custom(kind, objects.collect()).await?;
        for (place, mut object) in places.into_iter().zip(objects) {
            meta_mut(&mut object).remove("managedFields");
            kind.read_converted(&mut object);
            let record = &mut records[place];
            let stored = Stored::new(&record.value).map_err(|_| damaged(kind, record))?;
            record.value = record::encode(kind, &object, stored.managed_fields());
        }
        Ok(())
    }

    /// An event in the form in which `kind` shows it.
    pub(crate) async fn present_event(
        &self,
        kind: &Arc<Kind>,
        event: Arc<Event>,
    ) -> Result<Arc<Event>, Error> {
        if is_presented(kind, &event) {
            return Ok(event);
        }
        let record = self.presented(kind, event.record.clone()).await?;
        let previous = match event.previous.clone() {
            Some(previous) => Some(self.presented(kind, previous).await?),
            None => None,
        };
        Ok(Arc::new(Event {
            record,
            previous,
            deleted: event.deleted,
            frames: OnceLock::new(),
        }))
    }

    /// Converts objects to the version of `kind`.
    pub(crate) async fn convert_custom(
        &self,
        kind: &Arc<Kind>,
        mut objects: Vec<Map>,
    ) -> Result<Vec<Map>, Error> {
        let wanted = kind.api_version();
        let foreign =
            |object: &Map| object.get("apiVersion").and_then(Value::as_str) != Some(&wanted);
        if let Some(Conversion::Webhook(webhook)) =
            kind.custom.as_ref().map(|custom| &custom.conversion)
            && objects.iter().any(foreign)
        {
            // In a box: few conversions ask anyone, and every read and write would carry the room.
            return Box::pin(conversion::convert(self, kind, webhook, objects)).await;
        }
        for object in &mut objects {
            object.insert("apiVersion", Value::String(wanted.clone()));
        }
        Ok(objects)
    }
}

/// Whether an event can be told as it is.
pub(crate) fn is_presented(kind: &Kind, event: &Event) -> bool {
    let Some(custom) = &kind.custom else {
        return true;
    };
    let mut records = std::iter::once(&event.record).chain(&event.previous);
    records.all(|record| {
        Stored::new(&record.value).is_ok_and(|stored| stored.tag() == custom.tag.as_str())
    })
}

/// The version that a record was written in.
fn version_of(tag: &str) -> &str {
    tag.split_once('/').map_or(tag, |(version, _)| version)
}
