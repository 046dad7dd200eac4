//! Which requests a webhook, a policy or a binding is about.
//!
//! Contract: `apiserver/pkg/admission/plugin/webhook/predicates` and `policy/matching`.

use object::group::GroupVersionResource;
use object::labels::LabelSelector;
use object::{Map, Text, Value};

use crate::attributes::{Attributes, Operation, label};

/// Rules and selectors that a request must meet.
#[derive(Clone, Debug)]
pub struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Whether no rules at all means everything.
    any_resource: bool,
    equivalent: bool,
    namespaces: Result<LabelSelector, String>,
    objects: Result<LabelSelector, String>,
}

/// What is known about a request when criteria are asked.
pub struct Candidate<'a> {
    /// What it asks for.
    pub attributes: &'a Attributes<'a>,
    /// Other versions of the same resource.
    pub equivalents: &'a [GroupVersionResource],
    /// The object that it carries.
    pub object: Option<&'a Map>,
    /// The object that is stored.
    pub old: Option<&'a Map>,
    /// The namespace that it is in.
    pub namespace: Namespace<'a>,
}

/// The labels of a namespace.
#[derive(Clone, Copy)]
pub enum Namespace<'a> {
    /// There is none with this name.
    Missing,
    /// Those that this tells; also for what is in no namespace.
    Labelled(&'a dyn Fn(&str) -> Option<&'a str>),
}

/// In which form a request meets criteria.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matched {
    /// As it was sent.
    AsSent,
    /// As the equivalent at this place.
    As(usize),
}

/// Why it cannot be told whether a request meets criteria.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// The namespace is not there.
    #[error("namespaces {} not found", object::field::quote(.0))]
    NamespaceMissing(String),
    /// A selector cannot be read.
    #[error("{0}")]
    Selector(String),
}

impl Criteria {
    /// The criteria of a webhook.
    pub fn of_webhook(webhook: &Value) -> Criteria {
        Criteria {
            rules: read_rules(webhook.get("rules")),
            excluded: Vec::new(),
            any_resource: false,
            equivalent: webhook.str_at(&["matchPolicy"]) == Some("Equivalent"),
            namespaces: selector(webhook.get("namespaceSelector")),
            objects: selector(webhook.get("objectSelector")),
        }
    }

    /// The criteria of `matchConstraints` or `matchResources`.
    pub fn of_match_resources(resources: &Value) -> Criteria {
        Criteria {
            rules: read_rules(resources.get("resourceRules")),
            excluded: read_rules(resources.get("excludeResourceRules")),
            any_resource: true,
            equivalent: resources.str_at(&["matchPolicy"]) == Some("Equivalent"),
            namespaces: selector(resources.get("namespaceSelector")),
            objects: selector(resources.get("objectSelector")),
        }
    }

    /// Whether, and in which form, a request meets the criteria.
    pub fn matches(&self, candidate: &Candidate<'_>) -> Result<Option<Matched>, MatchError> {
        let namespace = self.matches_namespace(candidate);
        if namespace == Ok(false) {
            return Ok(None);
        }
        let object = self.matches_object(candidate);
        if object == Ok(false) || self.find(&self.excluded, candidate).is_some() {
            return Ok(None);
        }
        let found = if self.any_resource && self.rules.is_empty() {
            Some(Matched::AsSent)
        } else {
            self.find(&self.rules, candidate)
        };
        // What is wrong with selectors counts only where the rules apply.
        if found.is_some() {
            namespace?;
            object?;
        }
        Ok(found)
    }

    fn find(&self, rules: &[Rule], candidate: &Candidate<'_>) -> Option<Matched> {
        let attributes = candidate.attributes;
        let meets = |rule: &Rule, resource| rule.matches(attributes, resource);
        if rules.iter().any(|rule| meets(rule, &attributes.resource)) {
            return Some(Matched::AsSent);
        }
        if !self.equivalent {
            return None;
        }
        let mut found = rules.iter().flat_map(|rule| {
            let others = candidate.equivalents.iter().enumerate();
            others.filter(move |(_, other)| rule.matches(attributes, other))
        });
        found.next().map(|(place, _)| Matched::As(place))
    }

    fn matches_namespace(&self, candidate: &Candidate<'_>) -> Result<bool, MatchError> {
        let attributes = candidate.attributes;
        if attributes.namespace.is_empty() && attributes.resource.resource != "namespaces" {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref();
        let selector = selector.map_err(|error| MatchError::Selector(error.clone()))?;
        if selector.is_everything() {
            return Ok(true);
        }
        // A namespace that is being written is not stored yet as it will be.
        let writes_namespace = attributes.is_namespace()
            && attributes.subresource.is_empty()
            && matches!(attributes.operation, Operation::Create | Operation::Update);
        if writes_namespace {
            let object = candidate.object;
            return Ok(selector.matches(|key| label(object?, key)));
        }
        match candidate.namespace {
            Namespace::Missing => Err(MatchError::NamespaceMissing(
                attributes.namespace.to_owned(),
            )),
            Namespace::Labelled(labels) => Ok(selector.matches(labels)),
        }
    }

    fn matches_object(&self, candidate: &Candidate<'_>) -> Result<bool, MatchError> {
        let selector = self.objects.as_ref();
        let selector = selector.map_err(|error| MatchError::Selector(error.clone()))?;
        if selector.is_everything() {
            return Ok(true);
        }
        let meets = |object: &Map| selector.matches(|key| label(object, key));
        Ok([candidate.object, candidate.old]
            .into_iter()
            .flatten()
            .any(meets))
    }
}

/// A selector that is left out selects everything.
fn selector(selector: Option<&Value>) -> Result<LabelSelector, String> {
    match selector {
        None | Some(Value::Null) => Ok(LabelSelector::everything()),
        Some(selector) => LabelSelector::from_label_selector_value(selector),
    }
}

#[derive(Clone, Debug)]
struct Rule {
    operations: Vec<Text>,
    groups: Vec<Text>,
    versions: Vec<Text>,
    /// Resource and subresource.
    resources: Vec<(Text, Text)>,
    scope: Scope,
    /// The objects that are meant; all of them if empty.
    names: Vec<Text>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Any,
    Namespaced,
    Cluster,
    /// One that nobody knows.
    Other,
}

fn read_rules(rules: Option<&Value>) -> Vec<Rule> {
    let rules = rules.and_then(Value::as_array).unwrap_or_default();
    rules.iter().map(Rule::read).collect()
}

impl Rule {
    fn read(rule: &Value) -> Rule {
        let texts = |field: &str| -> Vec<Text> {
            let list = rule.get(field).and_then(Value::as_array);
            let texts = list.unwrap_or_default().iter().filter_map(Value::as_str);
            texts.map(Text::from).collect()
        };
        let split = |text: &Text| match text.split_once('/') {
            Some((resource, nested)) => (resource.into(), nested.into()),
            None => (text.clone(), Text::default()),
        };
        Rule {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").iter().map(split).collect(),
            scope: match rule.str_at(&["scope"]) {
                None | Some("*") => Scope::Any,
                Some("Namespaced") => Scope::Namespaced,
                Some("Cluster") => Scope::Cluster,
                Some(_) => Scope::Other,
            },
            names: texts("resourceNames"),
        }
    }

    fn matches(&self, attributes: &Attributes<'_>, resource: &GroupVersionResource) -> bool {
        let nested = attributes.subresource;
        let meets = |(wanted, wanted_nested): &(Text, Text)| {
            (wanted == "*" || *wanted == resource.resource)
                && (wanted_nested == "*" || wanted_nested == nested)
        };
        has(&self.operations, attributes.operation.as_str())
            && has(&self.groups, &resource.group)
            && has(&self.versions, &resource.version)
            && self.resources.iter().any(meets)
            && self.matches_scope(attributes, resource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == attributes.name))
    }

    fn matches_scope(&self, attributes: &Attributes<'_>, resource: &GroupVersionResource) -> bool {
        // A Namespace is in no namespace, though requests about it name one.
        let is_namespace = resource.group.is_empty()
            && resource.version == "v1"
            && resource.resource == "namespaces";
        let cluster = is_namespace || attributes.namespace.is_empty();
        match self.scope {
            Scope::Any => true,
            Scope::Namespaced => !cluster,
            Scope::Cluster => cluster,
            Scope::Other => false,
        }
    }
}

fn has(wanted: &[Text], found: &str) -> bool {
    wanted.iter().any(|wanted| wanted == "*" || wanted == found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::group::GroupVersionKind;
    use object::value;

    fn attributes<'a>(
        operation: Operation,
        (group, resource, subresource): (&str, &str, &'a str),
        namespace: &'a str,
    ) -> Attributes<'a> {
        Attributes {
            operation,
            kind: GroupVersionKind::new(group, "v1", "Thing"),
            resource: GroupVersionResource::new(group, "v1", resource),
            subresource,
            name: "one",
            namespace,
            dry_run: false,
            user: Value::Null,
            options: Value::Null,
        }
    }

    fn webhook(rule: Value, more: Value) -> Criteria {
        let Value::Object(mut webhook) = more else {
            panic!("a webhook is a map")
        };
        webhook.insert("rules", Value::Array(vec![rule]));
        Criteria::of_webhook(&Value::Object(webhook))
    }

    fn meets(criteria: &Criteria, attributes: &Attributes<'_>) -> Option<Matched> {
        let equivalents = [GroupVersionResource::new("", "v2", "pods")];
        let candidate = Candidate {
            attributes,
            equivalents: &equivalents,
            object: None,
            old: None,
            namespace: Namespace::Labelled(&|key| (key == "team").then_some("a")),
        };
        criteria.matches(&candidate).unwrap()
    }

    #[test]
    fn which_requests_a_rule_covers() {
        let rule = |operations: Value, resources: Value, scope: &str| {
            let rule = value!({
                "apiGroups": [""], "apiVersions": ["v1"], "scope": scope,
                "operations": operations, "resources": resources,
            });
            webhook(rule, value!({}))
        };
        let cases = [
            (rule(value!(["CREATE"]), value!(["pods"]), "*"), true),
            (rule(value!(["*"]), value!(["*"]), "Namespaced"), true),
            (rule(value!(["*"]), value!(["*/*"]), "*"), true),
            (rule(value!(["UPDATE"]), value!(["pods"]), "*"), false),
            (rule(value!(["*"]), value!(["pods/status"]), "*"), false),
            (rule(value!(["*"]), value!(["pods"]), "Cluster"), false),
            (rule(value!(["*"]), value!(["secrets"]), "*"), false),
        ];
        let create = attributes(Operation::Create, ("", "pods", ""), "space");
        for (criteria, expected) in cases {
            assert_eq!(
                meets(&criteria, &create).is_some(),
                expected,
                "{criteria:?}"
            );
        }
    }

    #[test]
    fn a_subresource_must_be_named() {
        let rule = |resource: &str| {
            value!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
                    "resources": [resource]})
        };
        let scale = attributes(Operation::Update, ("", "pods", "scale"), "space");
        for (resource, expected) in [
            ("pods", false),
            ("*", false),
            ("pods/scale", true),
            ("pods/*", true),
            ("*/scale", true),
        ] {
            let criteria = webhook(rule(resource), value!({}));
            assert_eq!(meets(&criteria, &scale).is_some(), expected, "{resource}");
        }
    }

    #[test]
    fn an_equivalent_version_counts_only_if_asked_for() {
        let rule = value!({"apiGroups": [""], "apiVersions": ["v2"], "operations": ["*"],
                           "resources": ["pods"]});
        let create = attributes(Operation::Create, ("", "pods", ""), "space");
        let exact = webhook(rule.clone(), value!({"matchPolicy": "Exact"}));
        assert_eq!(meets(&exact, &create), None);
        let equivalent = webhook(rule, value!({"matchPolicy": "Equivalent"}));
        assert_eq!(meets(&equivalent, &create), Some(Matched::As(0)));
    }

    #[test]
    fn namespaces_are_selected_and_what_is_in_none_always_is() {
        let rule = value!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
                           "resources": ["*"]});
        let of = |team: &str| {
            let selector = value!({"namespaceSelector": {"matchLabels": {"team": team}}});
            webhook(rule.clone(), selector)
        };
        let inside = attributes(Operation::Create, ("", "pods", ""), "space");
        let outside = attributes(Operation::Create, ("", "nodes", ""), "");
        assert!(meets(&of("a"), &inside).is_some());
        assert!(meets(&of("b"), &inside).is_none());
        assert!(meets(&of("b"), &outside).is_some());
    }

    #[test]
    fn a_missing_namespace_matters_only_to_what_the_rules_cover() {
        let rule = |resource: &str| {
            let rule = value!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
                               "resources": [resource]});
            webhook(
                rule,
                value!({"namespaceSelector": {"matchLabels": {"a": "b"}}}),
            )
        };
        let create = attributes(Operation::Create, ("", "pods", ""), "gone");
        let candidate = Candidate {
            attributes: &create,
            equivalents: &[],
            object: None,
            old: None,
            namespace: Namespace::Missing,
        };
        let missing = Err(MatchError::NamespaceMissing("gone".to_owned()));
        assert_eq!(rule("pods").matches(&candidate), missing);
        assert_eq!(rule("secrets").matches(&candidate), Ok(None));
    }

    #[test]
    fn an_object_that_loses_its_label_is_still_selected() {
        let rule = value!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
                           "resources": ["*"]});
        let criteria = webhook(
            rule,
            value!({"objectSelector": {"matchLabels": {"a": "b"}}}),
        );
        let update = attributes(Operation::Update, ("", "pods", ""), "space");
        let (plain, labelled) = (value!({}), value!({"metadata": {"labels": {"a": "b"}}}));
        let matches = |object: &Value, old: &Value| {
            let candidate = Candidate {
                attributes: &update,
                equivalents: &[],
                object: object.as_object(),
                old: old.as_object(),
                namespace: Namespace::Labelled(&|_| None),
            };
            criteria.matches(&candidate).unwrap().is_some()
        };
        assert!(matches(&plain, &labelled));
        assert!(matches(&labelled, &plain));
        assert!(!matches(&plain, &plain));
    }

    #[test]
    fn excluded_names_are_left_alone() {
        let rule = |extra: Value| {
            let mut rule = value!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
                                   "resources": ["pods"]});
            if let (Value::Object(rule), Value::Object(extra)) = (&mut rule, extra) {
                for (key, value) in extra {
                    rule.insert(key, value);
                }
            }
            rule
        };
        let policy = |names: Value| {
            let excluded = rule(value!({"resourceNames": names}));
            Criteria::of_match_resources(&value!({
                "resourceRules": [(rule(value!({})))],
                "excludeResourceRules": [excluded],
            }))
        };
        let create = attributes(Operation::Create, ("", "pods", ""), "space");
        assert_eq!(meets(&policy(value!(["one"])), &create), None);
        assert_eq!(
            meets(&policy(value!(["two"])), &create),
            Some(Matched::AsSent)
        );
    }
}
