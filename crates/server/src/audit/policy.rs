//! What is recorded of which request: the policy file, read strictly and ready to be asked.
//!
//! Contract: `audit.k8s.io/v1` Policy and `audit/policy/checker.go` of the API server.

use auth::User;
use object::{Map, Text, Value, yaml};

use super::Error;
use crate::request::RequestInfo;

/// How much of a request is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    None,
    Metadata,
    Request,
    RequestResponse,
}

impl Level {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// When in the life of a request an event is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

const STAGES: [Stage; 4] = [
    Stage::RequestReceived,
    Stage::ResponseStarted,
    Stage::ResponseComplete,
    Stage::Panic,
];

impl Stage {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::RequestReceived => "RequestReceived",
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

/// Which requests are recorded, and how much of them.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    omit_stages: Vec<Stage>,
    omit_managed_fields: bool,
}

/// What holds for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub level: Level,
    pub omit_stages: Vec<Stage>,
    pub omit_managed_fields: bool,
}

#[derive(Clone, Debug)]
struct Rule {
    level: Level,
    users: Vec<Text>,
    groups: Vec<Text>,
    verbs: Vec<Text>,
    resources: Vec<Resources>,
    namespaces: Vec<Text>,
    paths: Vec<Text>,
    omit_stages: Vec<Stage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug)]
struct Resources {
    group: Text,
    resources: Vec<Text>,
    names: Vec<Text>,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// It is not YAML, not a Policy, has unknown fields or rules that mean nothing.
    pub fn parse(text: &[u8]) -> Result<Policy, Error> {
        let wrong = |detail: String| Error::Policy(detail);
        let value = yaml::parse(text).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(policy) = value else {
            return Err(wrong("it is empty".to_owned()));
        };
        known(
            &policy,
            "",
            &[
                "apiVersion",
                "kind",
                "metadata",
                "rules",
                "omitStages",
                "omitManagedFields",
            ],
        )?;
        let text = |name: &str| policy.get(name).and_then(Value::as_str).unwrap_or_default();
        if (text("apiVersion"), text("kind")) != ("audit.k8s.io/v1", "Policy") {
            return Err(wrong(format!(
                "it is a {} of {}, not a Policy of audit.k8s.io/v1",
                text("kind"),
                text("apiVersion")
            )));
        }
        let rules = policy.get("rules").and_then(Value::as_array);
        let rules = rules.unwrap_or_default().iter().enumerate();
        let rules: Vec<Rule> = rules
            .map(|(place, rule)| Rule::read(rule, &format!("rules[{place}]")))
            .collect::<Result<_, _>>()?;
        if rules.is_empty() {
            return Err(wrong("it has no rules".to_owned()));
        }
        Ok(Policy {
            rules,
            omit_stages: stages(policy.get("omitStages"), "omitStages")?,
            omit_managed_fields: flag(&policy, "omitManagedFields", "")?.unwrap_or(false),
        })
    }

    /// What to record of a request; the user is unknown if nobody could be made out.
    pub(crate) fn decide(&self, user: Option<&User>, info: &RequestInfo) -> Decision {
        let rule = self.rules.iter().find(|rule| rule.matches(user, info));
        let Some(rule) = rule else {
            return Decision {
                level: Level::None,
                omit_stages: Vec::new(),
                omit_managed_fields: false,
            };
        };
        let omit = self.omit_stages.iter().chain(&rule.omit_stages);
        Decision {
            level: rule.level,
            omit_stages: omit.copied().collect(),
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

impl Rule {
    fn read(rule: &Value, place: &str) -> Result<Rule, Error> {
        let Value::Object(rule) = rule else {
            return Err(Error::Policy(format!("{place} is no object")));
        };
        known(
            rule,
            place,
            &[
                "level",
                "users",
                "userGroups",
                "verbs",
                "resources",
                "namespaces",
                "nonResourceURLs",
                "omitStages",
                "omitManagedFields",
            ],
        )?;
        let list = |name: &str| texts(rule.get(name), &format!("{place}.{name}"));
        let level = match rule.get("level").and_then(Value::as_str) {
            Some("None") => Level::None,
            Some("Metadata") => Level::Metadata,
            Some("Request") => Level::Request,
            Some("RequestResponse") => Level::RequestResponse,
            other => {
                let other = other.unwrap_or_default();
                return Err(Error::Policy(format!(
                    "{place}.level is \"{other}\"; known are None, Metadata, Request and \
                     RequestResponse"
                )));
            }
        };
        let resources = rule.get("resources").and_then(Value::as_array);
        let resources = resources.unwrap_or_default().iter().enumerate();
        let resources: Vec<Resources> = resources
            .map(|(at, it)| Resources::read(it, &format!("{place}.resources[{at}]")))
            .collect::<Result<_, _>>()?;
        let (namespaces, paths) = (list("namespaces")?, list("nonResourceURLs")?);
        let is_about_resources = !resources.is_empty() || !namespaces.is_empty();
        if is_about_resources && !paths.is_empty() {
            return Err(Error::Policy(format!(
                "{place} cannot apply to both regular resources and non-resource URLs"
            )));
        }
        Ok(Rule {
            level,
            users: list("users")?,
            groups: list("userGroups")?,
            verbs: list("verbs")?,
            resources,
            namespaces,
            paths,
            omit_stages: stages(rule.get("omitStages"), place)?,
            omit_managed_fields: flag(rule, "omitManagedFields", place)?,
        })
    }

    fn matches(&self, user: Option<&User>, info: &RequestInfo) -> bool {
        let is =
            |list: &[Text], wanted: &str| list.is_empty() || list.iter().any(|own| own == wanted);
        let in_groups = self.groups.is_empty()
            || user.is_some_and(|user| self.groups.iter().any(|group| user.is_in(group)));
        let named = self.users.is_empty() || user.is_some_and(|user| is(&self.users, &user.name));
        if !named || !in_groups || !is(&self.verbs, info.verb) {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return info.resource.as_ref().is_some_and(|path| {
                is(&self.namespaces, &path.namespace)
                    && (self.resources.is_empty()
                        || self.resources.iter().any(|resources| {
                            let name = (path.resource.as_str(), path.subresource.as_str());
                            resources.hold(&path.group, name, &path.name)
                        }))
            });
        }
        if self.paths.is_empty() {
            return true;
        }
        info.resource.is_none()
            && self.paths.iter().any(|own| match own.strip_suffix('*') {
                Some(prefix) => info.path.starts_with(prefix.trim_end_matches('*')),
                None => *own == info.path,
            })
    }
}

impl Resources {
    fn read(resources: &Value, place: &str) -> Result<Resources, Error> {
        let Value::Object(resources) = resources else {
            return Err(Error::Policy(format!("{place} is no object")));
        };
        known(resources, place, &["group", "resources", "resourceNames"])?;
        let list = |name: &str| texts(resources.get(name), &format!("{place}.{name}"));
        let group = resources.get("group").and_then(Value::as_str);
        Ok(Resources {
            group: group.unwrap_or_default().into(),
            resources: list("resources")?,
            names: list("resourceNames")?,
        })
    }

    fn hold(&self, group: &str, (resource, subresource): (&str, &str), name: &str) -> bool {
        if self.group != "*" && self.group != group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        if !self.names.is_empty() && !self.names.iter().any(|own| own == name) {
            return false;
        }
        self.resources.iter().any(|own| match own.split_once('/') {
            _ if own == "*" => true,
            None => subresource.is_empty() && own == resource,
            Some(("*", rest)) => !subresource.is_empty() && rest == subresource,
            Some((main, "*")) => main == resource,
            Some((main, rest)) => main == resource && rest == subresource,
        })
    }
}

fn known(object: &Map, place: &str, names: &[&str]) -> Result<(), Error> {
    let odd = object.keys().find(|key| !names.contains(&key.as_str()));
    match odd {
        None => Ok(()),
        Some(key) => {
            let dot = if place.is_empty() { "" } else { "." };
            let known = names.join(", ");
            Err(Error::Policy(format!(
                "{place}{dot}{key} is unknown; known are {known}"
            )))
        }
    }
}

fn texts(list: Option<&Value>, place: &str) -> Result<Vec<Text>, Error> {
    let wrong = || Error::Policy(format!("{place} is no list of texts"));
    match list {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(Text::from).ok_or_else(wrong))
            .collect(),
        Some(_) => Err(wrong()),
    }
}

fn stages(list: Option<&Value>, place: &str) -> Result<Vec<Stage>, Error> {
    let named = texts(list, place)?;
    named
        .iter()
        .map(|name| {
            let stage = STAGES.into_iter().find(|stage| stage.name() == name);
            stage.ok_or_else(|| Error::Policy(format!("{place}: there is no stage {name}")))
        })
        .collect()
}

fn flag(object: &Map, name: &str, place: &str) -> Result<Option<bool>, Error> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(Error::Policy(format!(
            "{place} {name} is neither true nor false"
        ))),
    }
}

#[cfg(test)]
mod tests;
