//! Flow schemas and priority levels, read out of their objects and ready to match requests.
//!
//! Contract: `match.go` of the API server's `flowcontrol`, and the order of schemas: by
//! precedence, then by name.

use auth::User;
use hyper::header::HeaderValue;
use object::{Map, Text, Value};

use super::level::Queuing;
use crate::request::RequestInfo;

/// Which requests a schema is about, and which level they belong to.
#[derive(Debug)]
pub(crate) struct Schema {
    pub name: Text,
    pub uid: HeaderValue,
    pub precedence: i64,
    pub level: Text,
    pub distinguisher: Distinguisher,
    rules: Vec<Rule>,
}

/// What tells the flows of a schema apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distinguisher {
    Nothing,
    User,
    Namespace,
}

/// A priority level as it is written down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LevelPlan {
    pub name: Text,
    pub uid: HeaderValue,
    pub exempt: bool,
    pub shares: u32,
    pub lendable_percent: u32,
    pub borrowing_percent: Option<u32>,
    pub queuing: Queuing,
}

#[derive(Debug)]
struct Rule {
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

#[derive(Debug)]
enum Subject {
    Everyone,
    User(Text),
    Group(Text),
    /// A whole user name, or with `None` as the name everything in the namespace.
    ServiceAccount {
        namespace: Text,
        name: Option<Text>,
    },
}

#[derive(Debug)]
struct ResourceRule {
    verbs: Names,
    groups: Names,
    resources: Names,
    namespaces: Names,
    cluster_scope: bool,
}

#[derive(Debug)]
struct PathRule {
    verbs: Names,
    paths: Vec<Text>,
}

/// A list of names in which a lone `*` stands for all.
#[derive(Debug)]
enum Names {
    All,
    These(Vec<Text>),
}

impl Names {
    fn new(list: Option<&Value>) -> Names {
        let names = texts(list);
        match names.as_slice() {
            [only] if only == "*" => Names::All,
            _ => Names::These(names),
        }
    }

    fn hold(&self, name: &str) -> bool {
        match self {
            Names::All => true,
            Names::These(names) => names.iter().any(|own| own == name),
        }
    }
}

impl Schema {
    /// Reads a FlowSchema.
    pub(crate) fn read(object: &Map) -> Option<Schema> {
        let spec = object.get("spec")?;
        let distinguisher = match spec.str_at(&["distinguisherMethod", "type"]) {
            Some("ByUser") => Distinguisher::User,
            Some("ByNamespace") => Distinguisher::Namespace,
            _ => Distinguisher::Nothing,
        };
        let rules = spec.get("rules").and_then(Value::as_array);
        Some(Schema {
            name: object.get("metadata")?.str_at(&["name"])?.into(),
            uid: uid(object)?,
            precedence: spec.get("matchingPrecedence").and_then(Value::as_int)?,
            level: spec.str_at(&["priorityLevelConfiguration", "name"])?.into(),
            distinguisher,
            rules: rules.unwrap_or_default().iter().map(Rule::read).collect(),
        })
    }

    /// Whether a request is one of this schema's.
    pub(crate) fn matches(&self, user: &User, info: &RequestInfo) -> bool {
        self.rules.iter().any(|rule| rule.matches(user, info))
    }

    /// What tells this request's flow from others of the schema.
    pub(crate) fn distinguish<'a>(&self, user: &'a User, info: &'a RequestInfo) -> &'a str {
        match self.distinguisher {
            Distinguisher::Nothing => "",
            Distinguisher::User => &user.name,
            Distinguisher::Namespace => info
                .resource
                .as_ref()
                .map_or("", |path| path.namespace.as_str()),
        }
    }
}

impl LevelPlan {
    /// Reads a PriorityLevelConfiguration.
    pub(crate) fn read(object: &Map) -> Option<LevelPlan> {
        let spec = object.get("spec")?;
        let exempt = spec.str_at(&["type"]) == Some("Exempt");
        let common = spec.get(if exempt { "exempt" } else { "limited" });
        let number = |name: &str| {
            let number = common.and_then(|common| common.get(name));
            number
                .and_then(Value::as_int)
                .map(|number| u32::try_from(number).unwrap_or(0))
        };
        let response = common.and_then(|common| common.get("limitResponse"));
        let queuing = response.and_then(|response| response.get("queuing"));
        let size = |name: &str| {
            let size = queuing.and_then(|queuing| queuing.get(name));
            let size = size.and_then(Value::as_int).unwrap_or(0);
            usize::try_from(size).unwrap_or(0)
        };
        let waits = response.and_then(|it| it.str_at(&["type"])) == Some("Queue");
        let queuing = Queuing {
            queues: size("queues"),
            hand: size("handSize").max(1),
            length_max: size("queueLengthLimit"),
        };
        Some(LevelPlan {
            name: object.get("metadata")?.str_at(&["name"])?.into(),
            uid: uid(object)?,
            exempt,
            shares: number("nominalConcurrencyShares").unwrap_or(if exempt { 0 } else { 30 }),
            lendable_percent: number("lendablePercent").unwrap_or(0).min(100),
            borrowing_percent: number("borrowingLimitPercent"),
            queuing: if waits && !exempt {
                queuing
            } else {
                Queuing::NONE
            },
        })
    }
}

impl Rule {
    fn read(rule: &Value) -> Rule {
        let list = |name: &str| rule.get(name).and_then(Value::as_array).unwrap_or_default();
        Rule {
            subjects: list("subjects").iter().filter_map(Subject::read).collect(),
            resources: list("resourceRules")
                .iter()
                .map(|rule| ResourceRule {
                    verbs: Names::new(rule.get("verbs")),
                    groups: Names::new(rule.get("apiGroups")),
                    resources: Names::new(rule.get("resources")),
                    namespaces: Names::new(rule.get("namespaces")),
                    cluster_scope: rule.get("clusterScope").and_then(Value::as_bool) == Some(true),
                })
                .collect(),
            paths: list("nonResourceRules")
                .iter()
                .map(|rule| PathRule {
                    verbs: Names::new(rule.get("verbs")),
                    paths: texts(rule.get("nonResourceURLs")),
                })
                .collect(),
        }
    }

    fn matches(&self, user: &User, info: &RequestInfo) -> bool {
        if !self.subjects.iter().any(|subject| subject.is(user)) {
            return false;
        }
        let Some(path) = &info.resource else {
            return self.paths.iter().any(|rule| {
                rule.verbs.hold(info.verb) && rule.paths.iter().any(|own| covers(own, &info.path))
            });
        };
        self.resources.iter().any(|rule| {
            rule.verbs.hold(info.verb)
                && rule.groups.hold(&path.group)
                && match &rule.resources {
                    Names::All => true,
                    Names::These(names) => names
                        .iter()
                        .any(|name| is_resource(name, &path.resource, &path.subresource)),
                }
                && if path.namespace.is_empty() {
                    rule.cluster_scope
                } else {
                    rule.namespaces.hold(&path.namespace)
                }
        })
    }
}

/// Whether a rule's name is `resource` or, with a subresource, `resource/subresource`.
fn is_resource(name: &str, resource: &str, subresource: &str) -> bool {
    match name.strip_prefix(resource) {
        Some("") => subresource.is_empty(),
        Some(rest) => rest.strip_prefix('/') == Some(subresource) && !subresource.is_empty(),
        None => false,
    }
}

/// Whether a rule's path is the request's or stands above it.
fn covers(rule: &str, path: &str) -> bool {
    if rule == "*" || rule == path {
        return true;
    }
    let above = rule.strip_suffix('*').unwrap_or(rule);
    match path.strip_prefix(above) {
        Some(rest) => above.ends_with('/') || rest.starts_with('/'),
        None => false,
    }
}

impl Subject {
    fn read(subject: &Value) -> Option<Subject> {
        let name = |part: &str| subject.str_at(&[part, "name"]);
        match subject.str_at(&["kind"])? {
            "User" => Some(match name("user")? {
                "*" => Subject::Everyone,
                name => Subject::User(name.into()),
            }),
            "Group" => Some(match name("group")? {
                "*" => Subject::Everyone,
                name => Subject::Group(name.into()),
            }),
            "ServiceAccount" => Some(Subject::ServiceAccount {
                namespace: subject.str_at(&["serviceAccount", "namespace"])?.into(),
                name: Some(name("serviceAccount")?)
                    .filter(|name| *name != "*")
                    .map(Text::from),
            }),
            _ => None,
        }
    }

    fn is(&self, user: &User) -> bool {
        match self {
            Subject::Everyone => true,
            Subject::User(name) => user.name == *name,
            Subject::Group(name) => user.is_in(name),
            Subject::ServiceAccount { namespace, name } => {
                let account = user.name.strip_prefix("system:serviceaccount:");
                let account = account.and_then(|rest| rest.strip_prefix(namespace.as_str()));
                let account = account.and_then(|rest| rest.strip_prefix(':'));
                match (account, name) {
                    (Some(account), Some(name)) => account == name.as_str(),
                    (Some(_), None) => true,
                    (None, _) => false,
                }
            }
        }
    }
}

fn uid(object: &Map) -> Option<HeaderValue> {
    let uid = object.get("metadata")?.str_at(&["uid"])?;
    HeaderValue::from_str(uid).ok()
}

fn texts(list: Option<&Value>) -> Vec<Text> {
    let list = list.and_then(Value::as_array).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(Text::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use hyper::Method;
    use object::value;

    use super::*;
    use crate::query::Query;

    fn schema(rules: Value) -> Schema {
        let object = value!({
            "metadata": {"name": "s", "uid": "u"},
            "spec": {
                "priorityLevelConfiguration": {"name": "l"},
                "matchingPrecedence": 5,
                "distinguisherMethod": {"type": "ByNamespace"},
                "rules": (rules),
            },
        });
        Schema::read(object.as_object().unwrap()).unwrap()
    }

    fn asked(method: Method, path: &str) -> RequestInfo {
        RequestInfo::new(&method, path, &Query::parse("")).unwrap()
    }

    fn user(name: &str, group: &str) -> User {
        User::authenticated(name, "", &[group])
    }

    #[test]
    fn whom_a_schema_is_about() {
        let everything = value!([{
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
            "clusterScope": true,
        }]);
        let subject = |kind: &str, field: &str, name: Value| {
            let mut subject = Map::new();
            subject.insert("kind", kind.into());
            subject.insert(field, name);
            let (subject, rules) = (Value::Object(subject), everything.clone());
            schema(value!([{"subjects": [(subject)], "resourceRules": (rules)}]))
        };
        let account = value!({"namespace": "a", "name": "*"});
        let cases = [
            (
                subject("User", "user", value!({"name": "ann"})),
                vec!["ann"],
            ),
            (
                subject("Group", "group", value!({"name": "g"})),
                vec!["ann"],
            ),
            (
                subject("User", "user", value!({"name": "*"})),
                vec![
                    "ann",
                    "bob",
                    "system:serviceaccount:a:b",
                    "system:serviceaccount:ab:c",
                ],
            ),
            (
                subject("ServiceAccount", "serviceAccount", account),
                vec!["system:serviceaccount:a:b"],
            ),
        ];
        let users = [
            user("ann", "g"),
            user("bob", "h"),
            user("system:serviceaccount:a:b", "system:serviceaccounts"),
            user("system:serviceaccount:ab:c", "system:serviceaccounts"),
        ];
        let info = asked(Method::GET, "/api/v1/namespaces/x/pods");
        for (schema, expected) in cases {
            let found = users.iter().filter(|user| schema.matches(user, &info));
            let found: Vec<&str> = found.map(|user| user.name.as_str()).collect();
            assert_eq!(found, expected, "{schema:?}");
        }
    }

    #[test]
    fn what_a_schema_is_about() {
        let everyone = value!([{"kind": "User", "user": {"name": "*"}}]);
        let rules = value!([{
            "subjects": (everyone),
            "resourceRules": [{
                "verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/log"],
                "namespaces": ["a"],
            }],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/m/*"]}],
        }]);
        let schema = schema(rules);
        let cases = [
            (Method::GET, "/api/v1/namespaces/a/pods/p", true),
            (Method::GET, "/api/v1/namespaces/a/pods/p/log", true),
            (Method::GET, "/api/v1/namespaces/a/pods/p/status", false),
            (Method::PUT, "/api/v1/namespaces/a/pods/p", false),
            (Method::GET, "/api/v1/namespaces/b/pods/p", false),
            (Method::GET, "/api/v1/nodes/p", false),
            (Method::GET, "/healthz", true),
            (Method::GET, "/healthz/ping", true),
            (Method::GET, "/healthzz", false),
            (Method::GET, "/m/x", true),
            (Method::GET, "/m", false),
        ];
        for (method, path, expected) in cases {
            let info = asked(method, path);
            assert_eq!(schema.matches(&user("u", "g"), &info), expected, "{path}");
        }
        let info = asked(Method::GET, "/api/v1/namespaces/a/pods/p");
        assert_eq!(schema.distinguish(&user("u", "g"), &info), "a");
    }
}
