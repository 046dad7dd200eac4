//! What is to be done about one object, and the doing of it.
//!
//! An object with a living owner stays and loses its other owners; one whose owners are all gone,
//! or all wait for their dependents, is deleted. An owner that waits goes when no dependent blocks
//! it; one that orphans goes when its dependents no longer name it.

use std::sync::Arc;

use kinds::Kind;
use object::{Map, Text, Value};
use tokio::task::JoinSet;
use tracing::debug;

use super::graph::{FOREGROUND, Facts, ORPHAN, Object, Reference};
use super::{Collector, Identity, WRITES_AT_A_TIME};
use crate::error::Error;
use crate::meta::{meta_mut, meta_text};
use crate::options::{DeleteOptions, Propagation};
use crate::read::store_name;
use crate::{Resources, Warnings};

/// A write.
pub(super) enum Job {
    /// Delete the object.
    Delete(DeleteOptions),
    /// Remove the owners with these uids.
    Disown(Vec<Text>),
    /// Let no owner wait for the object.
    Unblock,
    /// Take this finalizer off.
    Release(&'static str),
    /// Remove the object of this uid from its dependents, and then its finalizer.
    Orphan(Text, Vec<(Arc<Kind>, Arc<str>)>),
}

/// How an owner is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is there.
    Solid,
    /// It does not exist in the namespace of the dependent.
    Gone,
    /// It is being deleted and waits for its dependents.
    Waiting,
    /// It cannot be told: its kind is not served, or is no owner for this object.
    Unknown,
}

impl Collector {
    /// What is to be done about an object, as it is stored now.
    pub(super) async fn decide(&mut self, object: &Object) -> Result<Option<Job>, store::Error> {
        let kind = Arc::clone(&self.sources[object.kind as usize].kind);
        let found = self.resources.store.get(&kind.collection, &object.name);
        let Some(record) = found.await? else {
            return Ok(None);
        };
        let facts = Facts::read(&record.value);
        if facts.deleting {
            return if facts.orphans {
                let dependents = self.graph.dependents(&facts.uid);
                let place = |it: &Object| {
                    let kind = &self.sources[it.kind as usize].kind;
                    (Arc::clone(kind), Arc::clone(&it.name))
                };
                let dependents = dependents.map(place).collect();
                Ok(Some(Job::Orphan(facts.uid, dependents)))
            } else if facts.waits && !self.is_blocked(object, &facts.uid).await? {
                Ok(Some(Job::Release(FOREGROUND)))
            } else {
                Ok(None)
            };
        }
        self.decide_by_owners(object, &facts, record.revision).await
    }

    async fn decide_by_owners(
        &mut self,
        object: &Object,
        facts: &Facts,
        revision: store::Revision,
    ) -> Result<Option<Job>, store::Error> {
        if facts.owners.is_empty() {
            return Ok(None);
        }
        let (mut solid, mut waiting) = (false, false);
        let mut superfluous = Vec::new();
        for owner in &facts.owners {
            match self.standing(object, owner).await? {
                Standing::Unknown => return Ok(None),
                Standing::Solid => solid = true,
                Standing::Gone => superfluous.push(owner.uid.clone()),
                Standing::Waiting => {
                    waiting = true;
                    superfluous.push(owner.uid.clone());
                }
            }
        }
        if solid {
            return Ok((!superfluous.is_empty()).then_some(Job::Disown(superfluous)));
        }
        let mut dependents = self.graph.dependents(&facts.uid).peekable();
        let foreground = waiting && dependents.peek().is_some();
        if foreground && facts.owners.iter().any(|owner| owner.blocks) {
            let mut in_a_circle = false;
            for dependent in dependents {
                in_a_circle |= self.is_waiting(dependent).await?;
            }
            if in_a_circle {
                return Ok(Some(Job::Unblock));
            }
        }
        let propagation = match (foreground || facts.waits, facts.orphans) {
            (_, true) if !foreground => Propagation::Orphan,
            (true, _) => Propagation::Foreground,
            _ => Propagation::Background,
        };
        Ok(Some(Job::Delete(DeleteOptions {
            propagation: Some(propagation),
            uid: Some(facts.uid.clone()),
            resource_version: Some(revision.to_string().into()),
            ..DeleteOptions::default()
        })))
    }

    async fn standing(
        &mut self,
        object: &Object,
        owner: &Reference,
    ) -> Result<Standing, store::Error> {
        let (namespace, _) = object.name.rsplit_once('/').unwrap_or_default();
        let (group, version) = owner
            .api_version
            .split_once('/')
            .unwrap_or(("", &owner.api_version));
        let catalogue = self.resources.catalogue();
        let kind = catalogue.by_kind(group, version, &owner.kind);
        let Some(kind) = kind.filter(|kind| kind.verbs.iter().any(|verb| verb == "get")) else {
            self.unknown_kinds = true;
            return Ok(Standing::Unknown);
        };
        if kind.namespaced && namespace.is_empty() {
            let (object, owner) = (&object.name, &owner.name);
            debug!(%object, %owner, "an owner in a namespace is no owner");
            return Ok(Standing::Unknown);
        }
        let name = store_name(kind, namespace, &owner.name);
        let found = self.resources.store.get(&kind.collection, &name).await?;
        let Some(record) = found else {
            return Ok(Standing::Gone);
        };
        let found = Facts::read(&record.value);
        Ok(if found.uid != owner.uid {
            Standing::Gone
        } else if found.is_waiting() {
            Standing::Waiting
        } else {
            Standing::Solid
        })
    }

    /// Whether a dependent keeps its owner, which waits, from going.
    async fn is_blocked(&self, owner: &Object, uid: &str) -> Result<bool, store::Error> {
        for dependent in self.graph.dependents(uid) {
            if dependent == owner {
                continue;
            }
            let facts = self.stored_facts(dependent).await?;
            let blocks = |facts: Facts| {
                let mut owners = facts.owners.iter();
                owners.any(|owner| owner.uid == uid && owner.blocks)
            };
            if facts.is_some_and(blocks) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn is_waiting(&self, object: &Object) -> Result<bool, store::Error> {
        let facts = self.stored_facts(object).await?;
        Ok(facts.is_some_and(|facts| facts.is_waiting()))
    }

    async fn stored_facts(&self, object: &Object) -> Result<Option<Facts>, store::Error> {
        let collection = &self.sources[object.kind as usize].kind.collection;
        let found = self.resources.store.get(collection, &object.name).await?;
        Ok(found.map(|record| Facts::read(&record.value)))
    }
}

impl Job {
    /// Does it to the object of a stored name.
    pub(super) async fn run(
        self,
        resources: &Resources,
        identity: &Identity,
        kind: &Arc<Kind>,
        name: &str,
    ) -> Result<(), Error> {
        let warnings = Warnings::default();
        let request = identity.request(kind, name, &warnings);
        match self {
            Job::Delete(options) => match resources.delete(&request, &options).await {
                Ok(_) | Err(Error::NotFound(_)) => Ok(()),
                Err(error) => Err(error),
            },
            Job::Disown(uids) => resources.edit(&request, |it| disown(it, &uids)).await,
            Job::Unblock => resources.edit(&request, unblock).await,
            Job::Release(finalizer) => {
                let change = |object: &mut Map| release(object, finalizer);
                resources.edit(&request, change).await
            }
            Job::Orphan(uid, dependents) => {
                disown_all(resources, identity, &uid, dependents).await?;
                let change =
                    |object: &mut Map| meta_text(object, "uid") == uid && release(object, ORPHAN);
                resources.edit(&request, change).await
            }
        }
    }
}

/// Removes an owner from all its dependents.
async fn disown_all(
    resources: &Resources,
    identity: &Identity,
    uid: &Text,
    dependents: Vec<(Arc<Kind>, Arc<str>)>,
) -> Result<(), Error> {
    let mut tasks: JoinSet<Result<(), Error>> = JoinSet::new();
    let mut outcome = Ok(());
    let mut take = |done: Option<Result<Result<(), Error>, _>>| {
        if let Some(Ok(Err(error))) = done {
            outcome = Err(error);
        }
    };
    for (kind, name) in dependents {
        while tasks.len() >= WRITES_AT_A_TIME {
            take(tasks.join_next().await);
        }
        let (resources, identity) = (resources.clone(), identity.clone());
        let uids = vec![uid.clone()];
        tasks.spawn(async move {
            let warnings = Warnings::default();
            let request = identity.request(&kind, &name, &warnings);
            resources.edit(&request, |it| disown(it, &uids)).await
        });
    }
    while !tasks.is_empty() {
        take(tasks.join_next().await);
    }
    outcome
}

fn disown(object: &mut Map, uids: &[Text]) -> bool {
    let named = |reference: &Value| {
        let uid = reference.str_at(&["uid"]).unwrap_or_default();
        uids.iter().any(|it| it == uid)
    };
    remove_from(object, "ownerReferences", named)
}

fn release(object: &mut Map, finalizer: &str) -> bool {
    remove_from(object, "finalizers", |it| it.as_str() == Some(finalizer))
}

/// Removes items of a list of the metadata, and the list with its last one.
fn remove_from(object: &mut Map, field: &str, is_removed: impl Fn(&Value) -> bool) -> bool {
    let metadata = meta_mut(object);
    let Some(list) = metadata.get_mut(field).and_then(Value::as_array_mut) else {
        return false;
    };
    let before = list.len();
    list.retain(|item| !is_removed(item));
    let (left, changed) = (list.len(), list.len() < before);
    if left == 0 {
        metadata.remove(field);
    }
    changed
}

fn unblock(object: &mut Map) -> bool {
    let references = meta_mut(object).get_mut("ownerReferences");
    let mut changed = false;
    for reference in references
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(reference) = reference.as_object_mut()
            && reference.get("blockOwnerDeletion") == Some(&Value::Bool(true))
        {
            reference.insert("blockOwnerDeletion", Value::Bool(false));
            changed = true;
        }
    }
    changed
}
