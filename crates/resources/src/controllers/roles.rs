//! Aggregated cluster roles: their rules are those of the roles that their selectors choose.
//!
//! Contract: upstream's `pkg/controller/clusterroleaggregation`. The rules are applied, so that
//! the controller owns them and nothing else of the role.

use std::sync::Arc;

use kinds::{Catalogue, Kind};
use object::labels::LabelSelector;
use object::{Map, Value, json, value};
use store::{Range, Record};
use tracing::{debug, warn};

use super::{Identity, again_and_again};
use crate::body::{Body, Media};
use crate::error::Error;
use crate::record::Stored;
use crate::{Resources, Warnings};

const GROUP: &str = "rbac.authorization.k8s.io";
const NAME: &str = "clusterrole-aggregation-controller";

/// Aggregates until the store is closed.
pub(super) async fn run(resources: Resources) {
    let Some(kind) = Catalogue::builtin().resource(GROUP, "v1", "clusterroles") else {
        return warn!("cluster roles are not aggregated: they are not served");
    };
    let mut identity = Identity::new(NAME);
    identity.options.force = true;
    let roles = Roles {
        kind: Arc::clone(kind),
        identity,
        resources: resources.clone(),
    };
    again_and_again(NAME, || roles.run()).await;
}

struct Roles {
    resources: Resources,
    kind: Arc<Kind>,
    identity: Identity,
}

impl Roles {
    async fn run(&self) -> Result<(), store::Error> {
        let store = self.resources.store();
        loop {
            let page = store.range(&self.kind.collection, Range::default()).await?;
            for record in &page.records {
                // Whatever is refused is tried again with the next change of any role.
                if let Err(error) = self.aggregate(record, &page.records).await {
                    debug!(role = %record.name, %error, "a cluster role is not aggregated");
                }
            }
            let mut watch = store.watch(&self.kind.collection, page.revision).await?;
            watch.next().await?;
        }
    }

    async fn aggregate(&self, record: &Record, all: &[Record]) -> Result<(), Error> {
        let Some(role) = tree(record) else {
            return Ok(());
        };
        let Some(selectors) = role
            .get("aggregationRule")
            .and_then(|rule| rule.get("clusterRoleSelectors"))
            .and_then(Value::as_array)
        else {
            return Ok(());
        };
        let mut rules: Vec<Value> = Vec::new();
        for selector in selectors {
            let selector = LabelSelector::from_label_selector_value(selector);
            let selector = selector.map_err(Error::BadRequest)?;
            for chosen in all.iter().filter(|chosen| chosen.name != record.name) {
                add_rules(&selector, chosen, &mut rules);
            }
        }
        let current = role.get("rules").and_then(Value::as_array);
        if current.unwrap_or_default() == rules {
            return Ok(());
        }
        self.write(&record.name, rules).await
    }

    async fn write(&self, name: &str, rules: Vec<Value>) -> Result<(), Error> {
        let warnings = Warnings::default();
        let request = self.identity.request(&self.kind, name, &warnings);
        if !self.resources.has_server_side_apply() {
            let change = |role: &mut Map| {
                role.insert("rules", Value::Array(rules.clone()));
                true
            };
            return self.resources.edit(&request, change).await;
        }
        let mut role = value!({
            "apiVersion": (self.kind.api_version().as_str()),
            "kind": (self.kind.kind.as_str()),
            "metadata": {"name": name},
        });
        if let (Some(role), false) = (role.as_object_mut(), rules.is_empty()) {
            role.insert("rules", Value::Array(rules));
        }
        let body = Body {
            media: Media::Json,
            bytes: json::to_vec(&role).into(),
        };
        self.resources.apply(&request, &body).await.map(|_| ())
    }
}

/// Adds the rules of a role that the selector chooses, each once.
fn add_rules(selector: &LabelSelector, record: &Record, rules: &mut Vec<Value>) {
    let Ok(stored) = Stored::new(&record.value) else {
        return;
    };
    if !selector.matches(|key| stored.label(key)) {
        return;
    }
    let role = stored.tree(None).unwrap_or_default();
    let own = role.get("rules").and_then(Value::as_array);
    for rule in own.unwrap_or_default() {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
}

fn tree(record: &Record) -> Option<Map> {
    Stored::new(&record.value).ok()?.tree(None).ok()
}
