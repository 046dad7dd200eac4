//! Reading the objects that plugins and actions depend on.

use std::sync::Arc;

use kinds::{Catalogue, Kind};
use object::labels::LabelSelector;
use object::{Map, Text, Value, fields::FieldSelector};
use store::Range;

use crate::Resources;
use crate::error::{Error, Subject};
use crate::options::{ListOptions, Selection};

/// Group, version and resource of a built-in collection.
pub(crate) type Place = (&'static str, &'static str, &'static str);

impl Resources {
    /// The kind that a built-in collection holds.
    pub(crate) fn built_in(&self, (group, version, resource): Place) -> Result<&Arc<Kind>, Error> {
        let kind = Catalogue::builtin().resource(group, version, resource);
        kind.ok_or_else(|| Error::Internal(format!("{resource} are not served")))
    }

    /// An object, if it exists.
    pub(crate) async fn find(
        &self,
        place: Place,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Map>, Error> {
        let kind = self.built_in(place)?;
        match self.get(kind, namespace, name, None).await {
            Ok(record) => self.tree(kind, record).map(Some),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// An object and its version, if it exists.
    pub(crate) async fn find_version(
        &self,
        place: Place,
        namespace: &str,
        name: &str,
    ) -> Result<Option<(store::Revision, Map)>, Error> {
        let kind = self.built_in(place)?;
        match self.get(kind, namespace, name, None).await {
            Ok(record) => {
                let revision = record.revision;
                self.tree(kind, record)
                    .map(|object| Some((revision, object)))
            }
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every object of a collection, or of the part of it in `namespace`.
    pub(crate) async fn find_all(&self, place: Place, namespace: &str) -> Result<Vec<Map>, Error> {
        let kind = self.built_in(place)?;
        let everything = ListOptions {
            selection: Selection {
                labels: LabelSelector::everything(),
                fields: FieldSelector::everything(),
            },
            limit: 0,
            continue_token: None,
            version: None,
            version_match: None,
        };
        let listed = self.list(kind, namespace, &everything).await?;
        listed
            .records
            .into_iter()
            .map(|record| self.tree(kind, record))
            .collect()
    }

    /// The records of a collection in one namespace.
    pub(crate) async fn records_in(
        &self,
        kind: &Kind,
        namespace: &str,
    ) -> Result<Vec<store::Record>, Error> {
        let mut prefix = Text::from(namespace);
        prefix.push('/');
        let range = Range {
            prefix: &prefix,
            ..Range::default()
        };
        let page = self.store.range(&kind.collection, range).await;
        let page = page.map_err(|error| Error::from_store(error, Subject::default))?;
        Ok(page.records)
    }

    pub(crate) fn tree(&self, kind: &Arc<Kind>, record: store::Record) -> Result<Map, Error> {
        match self.take_apart(kind, record)?.object {
            Value::Object(object) => Ok(object),
            _ => Ok(Map::new()),
        }
    }
}
