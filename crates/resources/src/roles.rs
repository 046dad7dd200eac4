//! The rules in force: roles and bindings as they are stored, kept ready for decisions.
//!
//! Nothing runs in the background. A decision first takes in what was committed since the last
//! one, so a change is in force for every request that begins after its answer.

use std::sync::{Arc, Mutex, PoisonError};

use auth::{
    Aggregation, Binding, Change, Impersonation, Refusal, Role, RoleRef, Rule, Rules,
    Subject as For,
};
use kinds::Catalogue;
use object::labels::LabelSelector;
use object::{Map, Text, Value};
use store::{Range, Record, Revision, Store, Watch};

use crate::Resources;
use crate::error::{Error, Subject};
use crate::meta::{meta, meta_text};
use crate::record::Stored;

/// The API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
const RESOURCES: [&str; 4] = [
    "clusterroles",
    "roles",
    "clusterrolebindings",
    "rolebindings",
];

/// What decisions are made of.
#[derive(Default)]
pub(crate) struct Roles {
    aggregation: Aggregation,
    /// `None` until the first decision, and after falling too far behind.
    feed: Mutex<Option<Feed>>,
    pub(crate) impersonation: Impersonation,
}

/// The rules and where to learn of their changes.
struct Feed {
    rules: Arc<Rules>,
    /// Everything up to here is in `rules`.
    seen: Revision,
    watches: Vec<(&'static str, Watch)>,
}

impl Resources {
    /// The rules as they are now.
    pub async fn rules(&self) -> Result<Arc<Rules>, Error> {
        let newest = self.store.revision();
        if let Some(rules) = self.roles.catch_up(newest) {
            return Ok(rules);
        }
        let feed = self.read_rules().await?;
        let rules = Arc::clone(&feed.rules);
        *self.roles.lock() = Some(feed);
        Ok(rules)
    }

    /// Gathers the rules of aggregated roles here instead of waiting for a controller.
    pub fn with_role_aggregation(self, aggregation: Aggregation) -> Resources {
        let roles = Arc::new(Roles {
            aggregation,
            ..Roles::default()
        });
        Resources { roles, ..self }
    }

    /// Reads everything, and begins to follow what changes.
    async fn read_rules(&self) -> Result<Feed, Error> {
        let failed = |error| Error::from_store(error, Subject::default);
        let mut rules = Rules::new(self.roles.aggregation);
        let mut watches = Vec::new();
        let mut changes = Vec::new();
        let mut seen = Revision(u64::MAX);
        for resource in RESOURCES {
            let kind = Catalogue::builtin().resource(GROUP, "v1", resource);
            let collection = &kind.expect("roles and bindings are built in").collection;
            let store: &Store = &self.store;
            let page = store
                .range(collection, Range::default())
                .await
                .map_err(failed)?;
            for record in &page.records {
                changes.push(set(resource, record)?);
            }
            let watch = store
                .watch(collection, page.revision)
                .await
                .map_err(failed)?;
            seen = seen.min(page.revision);
            watches.push((resource, watch));
        }
        rules.apply(changes);
        Ok(Feed {
            rules: Arc::new(rules),
            seen,
            watches,
        })
    }
}

impl Roles {
    /// The rules as of `newest` or later; `None` if they have to be read anew.
    fn catch_up(&self, newest: Revision) -> Option<Arc<Rules>> {
        let mut feed = self.lock();
        let followed = feed.as_mut()?.follow(newest);
        if followed.is_none() {
            *feed = None;
        }
        feed.as_ref().map(|feed| Arc::clone(&feed.rules))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Feed>> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    /// Takes in what happened up to `newest`; `None` if memory no longer knows all of it.
    fn follow(&mut self, newest: Revision) -> Option<()> {
        if self.seen >= newest {
            return Some(());
        }
        let mut changes = Vec::new();
        for (resource, watch) in &mut self.watches {
            while let Some(event) = watch.try_next().ok()? {
                changes.push(if event.deleted {
                    unset(resource, &event.record).ok()?
                } else {
                    set(resource, &event.record).ok()?
                });
            }
            if watch.position() < newest {
                return None;
            }
        }
        if !changes.is_empty() {
            Arc::make_mut(&mut self.rules).apply(changes);
        }
        self.seen = newest;
        Some(())
    }
}

/// A refusal as an error of this room.
pub(crate) fn refused(refusal: Refusal) -> Error {
    Error::Forbidden {
        subject: Subject {
            group: refusal.group,
            resource: refusal.resource,
            name: refusal.name,
        },
        detail: refusal.detail,
        causes: Vec::new(),
    }
}

/// The rules of a role object.
pub(crate) fn rules_of(object: &Map) -> Vec<Rule> {
    let rules = object
        .get("rules")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let rule = |rule: &Value| Rule {
        groups: texts(rule.get("apiGroups")),
        resources: texts(rule.get("resources")),
        paths: texts(rule.get("nonResourceURLs")),
        names: texts(rule.get("resourceNames")),
        verbs: texts(rule.get("verbs")),
    };
    rules.iter().map(rule).collect()
}

/// The role that a binding object names; `None` for a kind that validation refuses.
pub(crate) fn role_of(object: &Map) -> Option<RoleRef> {
    let role = object.get("roleRef")?;
    let name = Text::from(role.str_at(&["name"])?);
    match role.str_at(&["kind"])? {
        "Role" => Some(RoleRef::Role(name)),
        "ClusterRole" => Some(RoleRef::ClusterRole(name)),
        _ => None,
    }
}

fn set(resource: &str, record: &Record) -> Result<Change, Error> {
    let object = tree(record)?;
    let text = |field| Text::from(meta_text(&object, field));
    let (namespace, name) = (text("namespace"), text("name"));
    if matches!(resource, "roles" | "clusterroles") {
        let (labels, gathers) = (labels(&object), gathers(&object));
        let rules = rules_of(&object);
        return Ok(Change::Role(Role {
            namespace,
            name,
            rules,
            labels,
            gathers,
        }));
    }
    let Some(role) = role_of(&object) else {
        return Ok(Change::NoBinding { namespace, name });
    };
    let subjects = object
        .get("subjects")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let subjects = subjects.iter().filter_map(subject_of).collect();
    Ok(Change::Binding(Binding {
        namespace,
        name,
        role,
        subjects,
    }))
}

fn unset(resource: &str, record: &Record) -> Result<Change, Error> {
    let object = tree(record)?;
    let text = |field| Text::from(meta_text(&object, field));
    let (namespace, name) = (text("namespace"), text("name"));
    Ok(match resource {
        "roles" | "clusterroles" => Change::NoRole { namespace, name },
        _ => Change::NoBinding { namespace, name },
    })
}

fn tree(record: &Record) -> Result<Map, Error> {
    let stored = Stored::new(&record.value).and_then(|stored| stored.tree(None));
    stored.map_err(|_| {
        let name = &record.name;
        Error::Internal(format!(
            "the record {name} of a role or binding cannot be read"
        ))
    })
}

fn subject_of(subject: &Value) -> Option<For> {
    let name = Text::from(subject.str_at(&["name"])?);
    match subject.str_at(&["kind"])? {
        "User" => Some(For::User(name)),
        "Group" => Some(For::Group(name)),
        "ServiceAccount" => {
            let namespace = subject.str_at(&["namespace"]).unwrap_or_default().into();
            Some(For::ServiceAccount { namespace, name })
        }
        _ => None,
    }
}

fn labels(object: &Map) -> std::collections::BTreeMap<Text, Text> {
    let labels = meta(object).get("labels").and_then(Value::as_object);
    let pairs = labels.into_iter().flat_map(Map::iter);
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.into())))
        .collect()
}

fn gathers(object: &Map) -> Vec<LabelSelector> {
    let rule = object.get("aggregationRule");
    let selectors = rule.and_then(|rule| rule.get("clusterRoleSelectors"));
    let selectors = selectors
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter();
    selectors
        .filter_map(|it| LabelSelector::from_label_selector_value(it).ok())
        .collect()
}

fn texts(list: Option<&Value>) -> Vec<Text> {
    let list = list.and_then(Value::as_array).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(Text::from)
        .collect()
}
