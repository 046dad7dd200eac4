//! Acting as someone else.
//!
//! There are five ways to be allowed to, tried in this order until one works: four constrained
//! ones, which ask for a right to the identity and one to the request while wearing it, and the
//! old one, which asks for the identity alone. A refusal tells what the first way lacked; the way
//! that last worked for a user counts as their first, as it does upstream
//! (`apiserver/pkg/endpoints/filters/impersonation`).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use object::Text;
use object::field::{Path, quote, summary};
use object::names;

use crate::authorize::{Attributes, Authorizer, Decision, Refusal};
use crate::user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User, node, service_account,
};

/// Users whose last way is remembered; when there are more, all are forgotten, which costs them a
/// few lookups.
const REMEMBERED_USERS_MAX: usize = 10_000;
/// From this many groups or extra values on, a right to all of them is looked for first.
const MANY: usize = 4;
const GROUP: &str = "authentication.k8s.io";

/// Whom a request asks to act as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The user name.
    pub name: Text,
    /// The id, or empty.
    pub uid: Text,
    /// The groups, in order.
    pub groups: Vec<Text>,
    /// Extra values by lower-case key.
    pub extra: BTreeMap<Text, Vec<Text>>,
}

/// Groups, an id or extra values are wanted, but no user name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requested {0} without impersonating a user name")]
pub struct NoName(pub Wanted);

/// Whom a user has become for a request.
#[derive(Clone, Debug)]
pub struct Actor {
    /// The user that counts from here on.
    pub user: User,
    /// The verb of the constrained way that was open, if it was one.
    pub constraint: Option<&'static str>,
}

/// Who may act as whom, and by which way they last did.
#[derive(Debug, Default)]
pub struct Impersonation {
    last: Mutex<HashMap<Text, Way>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// The verb `impersonate`, whatever the request.
    Plain,
}

const WAYS: [Way; 5] = [
    Way::AssociatedNode,
    Way::ArbitraryNode,
    Way::ServiceAccount,
    Way::UserInfo,
    Way::Plain,
];

impl Impersonation {
    /// The user that `user` becomes for this request.
    ///
    /// # Errors
    /// What the first way lacks, if none is open.
    pub async fn act_as(
        &self,
        authorizer: &dyn Authorizer,
        user: &User,
        wanted: &Wanted,
        request: Attributes<'_>,
    ) -> Result<Actor, Refusal> {
        let last = self.lock().get(&user.name).copied();
        let others = WAYS.into_iter().filter(|way| Some(*way) != last);
        let mut refused = None;
        for way in last.into_iter().chain(others) {
            let attempt = Attempt {
                authorizer,
                user,
                wanted,
                way,
            };
            match attempt.check(request).await {
                Some(Ok(becomes)) => {
                    self.remember(user, way);
                    return Ok(Actor {
                        user: becomes,
                        constraint: way.is_constrained().then(|| way.verb()),
                    });
                }
                Some(Err(refusal)) => refused = refused.or(Some(refusal)),
                None => {}
            }
        }
        Err(refused.expect("the plain way is open to any name, so it was refused"))
    }

    fn remember(&self, user: &User, way: Way) {
        let mut last = self.lock();
        if last.len() >= REMEMBERED_USERS_MAX && !last.contains_key(&user.name) {
            last.clear();
        }
        last.insert(user.name.clone(), way);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Text, Way>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Way {
    fn verb(self) -> &'static str {
        match self {
            Way::AssociatedNode => "impersonate:associated-node",
            Way::ArbitraryNode => "impersonate:arbitrary-node",
            Way::ServiceAccount => "impersonate:serviceaccount",
            Way::UserInfo => "impersonate:user-info",
            Way::Plain => "impersonate",
        }
    }

    fn is_constrained(self) -> bool {
        self != Way::Plain
    }

    /// Whether this way is meant for such an identity.
    fn fits(self, user: &User, wanted: &Wanted) -> bool {
        let only_name =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        match self {
            Way::AssociatedNode => {
                let own = user.extra.get("authentication.kubernetes.io/node-name");
                let own = own.and_then(|names| match names.as_slice() {
                    [name] => Some(name.as_str()),
                    _ => None,
                });
                only_name
                    && own.is_some()
                    && own == node(&wanted.name)
                    && service_account(&user.name).is_some()
            }
            Way::ArbitraryNode => only_name && node(&wanted.name).is_some(),
            Way::ServiceAccount => only_name && service_account(&wanted.name).is_some(),
            Way::UserInfo => {
                node(&wanted.name).is_none() && service_account(&wanted.name).is_none()
            }
            Way::Plain => true,
        }
    }
}

/// One way, tried for one request.
struct Attempt<'a> {
    authorizer: &'a dyn Authorizer,
    user: &'a User,
    wanted: &'a Wanted,
    way: Way,
}

impl Attempt<'_> {
    /// The user this leads to; `None` if the way is not for such an identity.
    async fn check(&self, request: Attributes<'_>) -> Option<Result<User, Refusal>> {
        if !self.way.fits(self.user, self.wanted) {
            return None;
        }
        if let Err(refusal) = self.check_request(request).await {
            return Some(Err(refusal));
        }
        Some(self.check_identity().await)
    }

    async fn check_request(&self, request: Attributes<'_>) -> Result<(), Refusal> {
        let Some(way) = self.way.verb().strip_prefix("impersonate:") else {
            return Ok(());
        };
        let verb = format!("impersonate-on:{way}:{}", request.verb());
        self.need(request.with_verb(&verb)).await
    }

    async fn check_identity(&self) -> Result<User, Refusal> {
        let groups = self.check_name().await?;
        if !self.wanted.uid.is_empty() {
            self.need(self.identity(GROUP, "uids", &self.wanted.uid))
                .await?;
        }
        self.check_groups().await?;
        self.check_extra().await?;
        let mut user = User {
            name: self.wanted.name.clone(),
            uid: self.wanted.uid.clone(),
            groups,
            extra: self.wanted.extra.clone(),
        };
        let everyone = if user.name == ANONYMOUS {
            UNAUTHENTICATED
        } else {
            AUTHENTICATED
        };
        if !user.is_in(everyone) && !user.is_in(UNAUTHENTICATED) {
            user.groups.push(everyone.into());
        }
        Ok(user)
    }

    /// Checks the name, and tells the groups that come with it.
    async fn check_name(&self) -> Result<Vec<Text>, Refusal> {
        let name = self.wanted.name.as_str();
        let mut groups = self.wanted.groups.clone();
        if let Some((namespace, name)) = service_account(name) {
            if groups.is_empty() {
                groups.push("system:serviceaccounts".into());
                groups.push(format!("system:serviceaccounts:{namespace}").into());
            }
            self.need(Attributes::Resource {
                verb: self.way.verb(),
                group: self.own_group(),
                resource: "serviceaccounts",
                namespace,
                name,
            })
            .await?;
            return Ok(groups);
        }
        match node(name).filter(|_| self.way.is_constrained()) {
            Some(node) => {
                // The right to be the node one runs on is the same right for every node.
                let name = if self.way == Way::AssociatedNode {
                    "*"
                } else {
                    node
                };
                self.need(self.identity(GROUP, "nodes", name)).await?;
                Ok(vec!["system:nodes".into()])
            }
            None => {
                self.need(self.identity(self.own_group(), "users", name))
                    .await?;
                Ok(groups)
            }
        }
    }

    async fn check_groups(&self) -> Result<(), Refusal> {
        let groups = &self.wanted.groups;
        let about = |name| self.identity(self.own_group(), "groups", name);
        if self.way.is_constrained() {
            if groups.iter().any(|group| group.is_empty()) {
                let reason = "impersonating the empty string group is not allowed";
                return Err(Refusal::new(self.user, about(""), reason));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let reason = "impersonating the system:masters group is not allowed";
                return Err(Refusal::new(self.user, about(MASTERS), reason));
            }
            if groups.len() >= MANY && self.need(about("*")).await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            self.need(about(group)).await?;
        }
        Ok(())
    }

    async fn check_extra(&self) -> Result<(), Refusal> {
        let extra = &self.wanted.extra;
        if self.way.is_constrained() && !extra.is_empty() {
            if let Err(reason) = validate_extra(extra) {
                let about = self.identity(GROUP, "userextras", "");
                return Err(Refusal::new(self.user, about, &reason));
            }
            let values: usize = extra.values().map(Vec::len).sum();
            let all = self.identity(GROUP, "userextras/*", "*");
            if (extra.len() >= MANY || values >= MANY) && self.need(all).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            let resource = format!("userextras/{key}");
            for value in values {
                self.need(self.identity(GROUP, &resource, value)).await?;
            }
        }
        Ok(())
    }

    /// The API group in which this way looks for users, groups and service accounts.
    fn own_group(&self) -> &'static str {
        if self.way.is_constrained() { GROUP } else { "" }
    }

    fn identity<'a>(&self, group: &'a str, resource: &'a str, name: &'a str) -> Attributes<'a> {
        Attributes::Resource {
            verb: self.way.verb(),
            group,
            resource,
            namespace: "",
            name,
        }
    }

    async fn need(&self, attributes: Attributes<'_>) -> Result<(), Refusal> {
        let verdict = self.authorizer.decide(self.user, attributes).await;
        if verdict.decision == Decision::Allow {
            return Ok(());
        }
        Err(Refusal::new(self.user, attributes, &verdict.reason))
    }
}

fn validate_extra(extra: &BTreeMap<Text, Vec<Text>>) -> Result<(), String> {
    let root = Path::root();
    let path = root.field("extra");
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let errors = names::domain_prefixed_path(&path.field("key"), key);
        if !errors.is_empty() {
            let text = summary(&errors);
            return Err(format!(
                "impersonating an invalid key in extra is not allowed: {text}"
            ));
        }
        if key.chars().any(char::is_uppercase) {
            let key = quote(key);
            let text = "impersonating a non-lowercase key in extra is not allowed";
            return Err(format!("{text}: {key}"));
        }
        if values.iter().any(|value| value.is_empty()) {
            let text = "impersonating the empty string value in extra is not allowed";
            return Err(text.to_owned());
        }
    }
    Ok(())
}

/// Prints as Go's `%#v` prints upstream's struct: clients see it in the answer.
impl fmt::Display for Wanted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |texts: &[Text]| {
            let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
            format!("[]string{{{}}}", quoted.join(", "))
        };
        let groups = match self.groups.as_slice() {
            [] => "[]string(nil)".to_owned(),
            groups => list(groups),
        };
        let extra = if self.extra.is_empty() {
            "map[string][]string(nil)".to_owned()
        } else {
            let entries: Vec<String> = self
                .extra
                .iter()
                .map(|(key, values)| format!("{}:{}", quote(key), list(values)))
                .collect();
            format!("map[string][]string{{{}}}", entries.join(", "))
        };
        write!(
            out,
            "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
            quote(&self.name),
            quote(&self.uid),
        )
    }
}
