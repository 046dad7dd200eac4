//! One rule of a role: what it allows, what it covers, how messages print it.
//!
//! Contract: the evaluation helpers and the policy comparator of upstream's RBAC, texts included.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use object::Text;
use object::field::quote;

use crate::Attributes;

/// Breaking a rule into its smallest parts multiplies its lists; beyond this many parts it is not
/// broken down, and counts as missing unless one held rule covers it whole.
const PARTS_MAX: usize = 100_000;

/// What a role allows: verbs on resources, or verbs on paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// The API groups; `*` for all.
    pub groups: Vec<Text>,
    /// The resources: `pods`, `pods/log`, `*/scale` or `*`.
    pub resources: Vec<Text>,
    /// Paths outside of the API; a `*` may end one.
    pub paths: Vec<Text>,
    /// The only objects that the rule is about; empty for any.
    pub names: Vec<Text>,
    /// The verbs; `*` for all.
    pub verbs: Vec<Text>,
}

impl Rule {
    /// Whether the rule allows what is asked for.
    pub fn allows(&self, attributes: Attributes<'_>) -> bool {
        match attributes {
            Attributes::Resource {
                verb,
                group,
                resource,
                name,
                ..
            } => {
                has_or_all(&self.verbs, verb)
                    && has_or_all(&self.groups, group)
                    && names_resource(&self.resources, resource)
                    && (self.names.is_empty() || has(&self.names, name))
            }
            Attributes::Path { verb, path } => {
                has_or_all(&self.verbs, verb) && self.paths.iter().any(|own| path_covers(own, path))
            }
        }
    }

    /// Whether everything that `other` allows is allowed by this rule alone.
    fn covers(&self, other: &Rule) -> bool {
        let names = match other.names.is_empty() {
            true => self.names.is_empty(),
            false => self.names.is_empty() || other.names.iter().all(|it| has(&self.names, it)),
        };
        names
            && other.verbs.iter().all(|it| has_or_all(&self.verbs, it))
            && other.groups.iter().all(|it| has_or_all(&self.groups, it))
            && other
                .resources
                .iter()
                .all(|it| names_resource(&self.resources, it))
            && other
                .paths
                .iter()
                .all(|path| self.paths.iter().any(|own| path_covers(own, path)))
    }

    /// The rule as rules of one verb on one resource (and name) or path each.
    fn parts(&self) -> Vec<Rule> {
        let names = self.names.len().max(1);
        let count = [self.groups.len(), self.resources.len(), names]
            .into_iter()
            .try_fold(1, usize::checked_mul)
            .and_then(|count| count.checked_add(self.paths.len()))
            .and_then(|count| count.checked_mul(self.verbs.len()));
        if count.is_none_or(|count| count > PARTS_MAX) {
            return vec![self.clone()];
        }
        let mut parts = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Rule {
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        verbs: vec![verb.clone()],
                        ..Rule::default()
                    };
                    let named = self.names.iter().map(|name| Rule {
                        names: vec![name.clone()],
                        ..part.clone()
                    });
                    parts.extend(named);
                    if self.names.is_empty() {
                        parts.push(part);
                    }
                }
            }
        }
        for path in &self.paths {
            parts.extend(self.verbs.iter().map(|verb| Rule {
                paths: vec![path.clone()],
                verbs: vec![verb.clone()],
                ..Rule::default()
            }));
        }
        parts
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let filled = lists.iter().filter(|(_, list)| !list.is_empty());
        let texts: Vec<String> = filled
            .map(|(name, list)| format!("{name}:{}", quote_all(list)))
            .collect();
        write!(out, "{{{}}}", texts.join(", "))
    }
}

/// What of `wanted` is not among `held`, as lines of a message; empty if nothing is missing.
pub(crate) fn missing(held: &[&Rule], wanted: &[Rule]) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    // Parts that differ in nothing but the verb are told as one rule.
    let mut together: BTreeMap<(Text, Text, Option<Text>), Rule> = BTreeMap::new();
    for rule in wanted
        .iter()
        .filter(|rule| !held.iter().any(|own| own.covers(rule)))
    {
        for part in rule.parts() {
            if held.iter().any(|own| own.covers(&part)) {
                continue;
            }
            let key = match (part.groups.as_slice(), part.resources.as_slice()) {
                ([group], [resource]) if part.names.len() <= 1 && part.paths.is_empty() => {
                    (group.clone(), resource.clone(), part.names.first().cloned())
                }
                _ => {
                    lines.insert(part.to_string());
                    continue;
                }
            };
            match together.get_mut(&key) {
                Some(rule) => rule.verbs.extend(part.verbs),
                None => {
                    together.insert(key, part);
                }
            }
        }
    }
    lines.extend(together.values().map(Rule::to_string));
    lines
}

/// Prints texts as Go's `%q` prints a slice.
pub(crate) fn quote_all(texts: &[Text]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

fn has(list: &[Text], text: &str) -> bool {
    list.iter().any(|own| own == text)
}

fn has_or_all(list: &[Text], text: &str) -> bool {
    list.iter().any(|own| own == "*" || own == text)
}

fn names_resource(own: &[Text], resource: &str) -> bool {
    let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
    own.iter().any(|own| {
        own == "*"
            || own == resource
            || (subresource.is_some() && own.strip_prefix("*/") == subresource)
    })
}

fn path_covers(own: &str, path: &str) -> bool {
    own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}
