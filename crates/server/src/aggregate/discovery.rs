//! What other servers serve, as discovery tells it.

use std::collections::BTreeMap;

use kinds::groups::api_priority;
use object::{Map, Value, value};

use super::{Remote, Table};

/// The priority of groups that say nothing about it.
const CUSTOM_GROUP: i64 = 1000;

impl Remote {
    /// Its version of a group, in the form that tells everything at once.
    fn aggregated_version(&self) -> Value {
        let resources = self
            .resources
            .as_ref()
            .and_then(|list| list.get("resources"));
        let resources = resources.and_then(Value::as_array).unwrap_or_default();
        let freshness = if self.api.available {
            "Current"
        } else {
            "Stale"
        };
        value!({
            "version": (self.api.version.as_str()),
            "resources": (aggregated_resources(resources, self)),
            "freshness": freshness,
        })
    }
}

/// Adds the groups and versions of other servers to a list of groups, each in its place.
pub(crate) fn add_groups(table: &Table, groups: &mut Vec<Value>, form: Form) {
    let mut by_group: BTreeMap<&str, Vec<&Remote>> = BTreeMap::new();
    for remote in table.values() {
        by_group.entry(&remote.api.group).or_default().push(remote);
    }
    for (name, mut remotes) in by_group {
        remotes.sort_by_key(|remote| std::cmp::Reverse(remote.api.priorities.1));
        let versions = remotes.iter().map(|remote| form.version(remote));
        let known = groups.iter_mut().find(|group| form.name(group) == name);
        if let Some(known) = known {
            if let Some(Value::Array(list)) = known.get_mut("versions") {
                list.extend(versions);
            }
            continue;
        }
        let priority = remotes.iter().map(|remote| remote.api.priorities.0).max();
        let priority = priority.unwrap_or(CUSTOM_GROUP);
        let place = groups.iter().position(|group| {
            let name = form.name(group);
            let other = api_priority(name, "v1").map_or(CUSTOM_GROUP, |(place, _)| place);
            other < priority && name != "apiregistration.k8s.io"
        });
        let group = form.group(name, versions.collect());
        groups.insert(place.unwrap_or(groups.len()), group);
    }
}

/// How groups are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One group at a time.
    Legacy,
    /// Everything at once.
    Aggregated,
}

impl Form {
    fn name(self, group: &Value) -> &str {
        let name = match self {
            Form::Legacy => group.str_at(&["name"]),
            Form::Aggregated => group.str_at(&["metadata", "name"]),
        };
        name.unwrap_or_default()
    }

    fn version(self, remote: &Remote) -> Value {
        let (group, version) = (&remote.api.group, &remote.api.version);
        match self {
            Form::Legacy => value!({
                "groupVersion": (format!("{group}/{version}")),
                "version": (version.as_str()),
            }),
            Form::Aggregated => remote.aggregated_version(),
        }
    }

    fn group(self, name: &str, versions: Vec<Value>) -> Value {
        match self {
            Form::Legacy => {
                let preferred = versions.first().cloned().unwrap_or_default();
                value!({"name": name, "versions": versions, "preferredVersion": preferred})
            }
            Form::Aggregated => value!({"metadata": {"name": name}, "versions": versions}),
        }
    }
}

fn aggregated_resources(resources: &[Value], remote: &Remote) -> Vec<Value> {
    let name = |resource: &Value| resource.str_at(&["name"]).unwrap_or_default().to_owned();
    let mut all = Vec::new();
    for resource in resources.iter().filter(|it| !name(it).contains('/')) {
        let own = name(resource);
        let scope = match resource.get("namespaced").and_then(Value::as_bool) {
            Some(true) => "Namespaced",
            _ => "Cluster",
        };
        let mut document = Map::new();
        document.insert("resource", own.as_str().into());
        document.insert("responseKind", response_kind(resource, remote));
        document.insert("scope", scope.into());
        let singular = resource.str_at(&["singularName"]).unwrap_or_default();
        document.insert("singularResource", singular.into());
        for field in ["verbs", "shortNames", "categories"] {
            if let Some(list) = resource.get(field) {
                document.insert(field, list.clone());
            }
        }
        let nested: Vec<Value> = resources
            .iter()
            .filter_map(|it| {
                let full = name(it);
                let (parent, nested) = full.split_once('/')?;
                (parent == own).then(|| {
                    value!({
                        "subresource": nested,
                        "responseKind": (response_kind(it, remote)),
                        "verbs": (it.get("verbs").cloned().unwrap_or_default()),
                    })
                })
            })
            .collect();
        if !nested.is_empty() {
            document.insert("subresources", nested.into());
        }
        all.push(document.into());
    }
    all
}

fn response_kind(resource: &Value, remote: &Remote) -> Value {
    let text = |field, default: &str| {
        let text = resource.str_at(&[field]).filter(|text| !text.is_empty());
        Value::from(text.unwrap_or(default))
    };
    value!({
        "group": (text("group", &remote.api.group)),
        "version": (text("version", &remote.api.version)),
        "kind": (text("kind", "")),
    })
}
