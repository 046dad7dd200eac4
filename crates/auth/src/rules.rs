//! Roles and bindings, indexed by whom they are for.
//!
//! A lookup touches the bindings of the asking user and groups only, so that any number of other
//! people's roles costs nothing. Copies share what they can: taking a snapshot is one reference,
//! and a change after that copies one namespace's maps, not their contents.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use object::Text;
use object::field::{quote, summary};
use object::labels::LabelSelector;

use crate::User;
use crate::authorize::{Attributes, Authorizer, Deciding, Decision, Verdict};
use crate::rule::{Rule, missing, quote_all};

/// A Role or ClusterRole.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// The namespace; empty for a ClusterRole.
    pub namespace: Text,
    /// The name.
    pub name: Text,
    /// The rules as they are stored.
    pub rules: Vec<Rule>,
    /// The labels, by which other roles gather this one.
    pub labels: BTreeMap<Text, Text>,
    /// Which ClusterRoles this one gathers.
    pub gathers: Vec<LabelSelector>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The namespace; empty for a ClusterRoleBinding.
    pub namespace: Text,
    /// The name.
    pub name: Text,
    /// The role that it grants.
    pub role: RoleRef,
    /// To whom.
    pub subjects: Vec<Subject>,
}

/// The role that a binding names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleRef {
    /// A Role in the binding's namespace.
    Role(Text),
    /// A ClusterRole.
    ClusterRole(Text),
}

/// Someone a binding is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The user of this name.
    User(Text),
    /// Everyone in this group.
    Group(Text),
    /// A service account; without a namespace it is one of the binding's.
    ServiceAccount {
        /// Its namespace, or empty.
        namespace: Text,
        /// Its name.
        name: Text,
    },
}

/// A change of the stored roles and bindings.
#[derive(Clone, Debug)]
pub enum Change {
    /// A role is new or different.
    Role(Role),
    /// A role is gone.
    NoRole {
        /// Its namespace; empty for a ClusterRole.
        namespace: Text,
        /// Its name.
        name: Text,
    },
    /// A binding is new or different.
    Binding(Binding),
    /// A binding is gone.
    NoBinding {
        /// Its namespace; empty for a ClusterRoleBinding.
        namespace: Text,
        /// Its name.
        name: Text,
    },
}

/// Whether roles that gather others count with what is stored in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregation {
    /// They do: some controller writes their rules.
    #[default]
    Stored,
    /// Their rules are gathered here, as that controller would.
    Gathered,
}

/// All roles and bindings.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    aggregation: Aggregation,
    /// By namespace, then name; ClusterRoles have the empty namespace.
    roles: HashMap<Text, Arc<HashMap<Text, Arc<Role>>>>,
    /// The rules of ClusterRoles that gather others.
    gathered: HashMap<Text, Arc<Vec<Rule>>>,
    /// By namespace; ClusterRoleBindings have the empty one.
    bindings: HashMap<Text, Arc<Bindings>>,
}

/// The bindings of a namespace.
#[derive(Clone, Debug, Default)]
struct Bindings {
    all: HashMap<Text, Arc<Binding>>,
    /// Service accounts are among the users.
    users: Grants,
    groups: Grants,
}

/// By whom they are for, then by name.
type Grants = HashMap<Text, BTreeMap<Text, Arc<Binding>>>;

/// The rules of a user, and the roles that could not be found for them.
#[derive(Debug, Default)]
pub struct Held<'a> {
    /// The rules: of cluster bindings, then of the namespace's own, each by the binding's name.
    pub rules: Vec<&'a Rule>,
    /// Roles that bindings of the user name and that do not exist.
    pub absent: Vec<&'a RoleRef>,
}

impl Rules {
    /// No roles and no bindings yet.
    pub fn new(aggregation: Aggregation) -> Rules {
        Rules {
            aggregation,
            ..Rules::default()
        }
    }

    /// Takes over changes, in order.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) {
        let mut cluster_roles = false;
        for change in changes {
            match change {
                Change::Role(role) => {
                    cluster_roles |= role.namespace.is_empty();
                    let roles = self.roles.entry(role.namespace.clone()).or_default();
                    Arc::make_mut(roles).insert(role.name.clone(), Arc::new(role));
                }
                Change::NoRole { namespace, name } => {
                    cluster_roles |= namespace.is_empty();
                    if let Some(roles) = self.roles.get_mut(&namespace) {
                        Arc::make_mut(roles).remove(&name);
                    }
                }
                Change::Binding(binding) => {
                    let bindings = self.bindings.entry(binding.namespace.clone()).or_default();
                    let bindings = Arc::make_mut(bindings);
                    bindings.remove(&binding.name);
                    bindings.add(Arc::new(binding));
                }
                Change::NoBinding { namespace, name } => {
                    if let Some(bindings) = self.bindings.get_mut(&namespace) {
                        Arc::make_mut(bindings).remove(&name);
                    }
                }
            }
        }
        self.roles.retain(|_, roles| !roles.is_empty());
        self.bindings.retain(|_, bindings| !bindings.all.is_empty());
        if cluster_roles && self.aggregation == Aggregation::Gathered {
            self.gather();
        }
    }

    /// Decides.
    pub fn authorize(&self, user: &User, attributes: Attributes<'_>) -> Decision {
        let allowed = user.is_master()
            || self
                .scopes(attributes.namespace())
                .any(|(bindings, namespace)| {
                    bindings.of(user).any(|binding| {
                        let rules = self
                            .role_rules(&binding.role, namespace)
                            .unwrap_or_default();
                        rules.iter().any(|rule| rule.allows(attributes))
                    })
                });
        if allowed {
            Decision::Allow
        } else {
            Decision::Deny
        }
    }

    /// Decides, and says why.
    pub fn explain(&self, user: &User, attributes: Attributes<'_>) -> Verdict {
        let allow = |reason| Verdict {
            decision: Decision::Allow,
            reason,
        };
        if user.is_master() {
            return allow(String::new());
        }
        let mut absent = Vec::new();
        for (bindings, namespace) in self.scopes(attributes.namespace()) {
            for binding in bindings.sorted(user) {
                match self.role_rules(&binding.role, namespace) {
                    Some(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                        return allow(format!("RBAC: allowed by {}", binding.describe(user)));
                    }
                    Some(_) => {}
                    None => absent.push(&binding.role),
                }
            }
        }
        let reason = match absent.as_slice() {
            [] => String::new(),
            absent => format!("RBAC: {}", tell_absent(absent)),
        };
        Verdict {
            decision: Decision::Deny,
            reason,
        }
    }

    /// Every rule of a user in a namespace; without one, those for the whole cluster.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Held<'_> {
        let mut held = Held::default();
        for (bindings, namespace) in self.scopes(namespace) {
            for binding in bindings.sorted(user) {
                match self.role_rules(&binding.role, namespace) {
                    Some(rules) => held.rules.extend(rules),
                    None => held.absent.push(&binding.role),
                }
            }
        }
        held
    }

    /// The rules of a role that a binding in `namespace` names; `None` if there is no such role.
    pub fn role_rules(&self, role: &RoleRef, namespace: &str) -> Option<&[Rule]> {
        let (namespace, name) = match role {
            RoleRef::Role(_) if namespace.is_empty() => return None,
            RoleRef::Role(name) => (namespace, name),
            RoleRef::ClusterRole(name) => ("", name),
        };
        if namespace.is_empty()
            && let Some(rules) = self.gathered.get(name)
        {
            return Some(rules);
        }
        Some(&self.roles.get(namespace)?.get(name)?.rules)
    }

    /// Checks that a user holds all of these rules, as who grants them must.
    ///
    /// # Errors
    /// What is missing. `resource` is the resource of the request, which the text names.
    pub fn check_grant(
        &self,
        user: &User,
        namespace: &str,
        rules: &[Rule],
        resource: &str,
    ) -> Result<(), String> {
        let held = self.rules_for(user, namespace);
        let missing = missing(&held.rules, rules);
        if missing.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = missing.into_iter().collect();
        let mut text = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            quote(&user.name),
            quote_all(&user.groups),
            lines.join("\n"),
        );
        if !held.absent.is_empty() {
            let texts = held.absent.iter().map(|role| {
                let (RoleRef::Role(name) | RoleRef::ClusterRole(name)) = role;
                format!("{resource} {} not found", quote(name))
            });
            let problems = summary(&texts.collect::<Vec<String>>());
            text.push_str(&format!("; resolution errors: [{problems}]"));
        }
        Err(text)
    }

    /// The bindings that count in a namespace, cluster first, with the namespace of each.
    fn scopes<'a, 'b>(
        &'a self,
        namespace: &'b str,
    ) -> impl Iterator<Item = (&'a Bindings, &'b str)> {
        let own = if namespace.is_empty() {
            None
        } else {
            self.bindings.get(namespace)
        };
        let cluster = self.bindings.get("").map(|bindings| (&**bindings, ""));
        cluster
            .into_iter()
            .chain(own.map(|bindings| (&**bindings, namespace)))
    }

    /// Gathers the rules of ClusterRoles that are made of others, which may gather themselves.
    fn gather(&mut self) {
        self.gathered.clear();
        let Some(roles) = self.roles.get("") else {
            return;
        };
        let sorted: BTreeMap<&Text, &Arc<Role>> = roles.iter().collect();
        let gathering: Vec<&Arc<Role>> = sorted
            .values()
            .filter(|role| !role.gathers.is_empty())
            .copied()
            .collect();
        let mut gathered: HashMap<Text, Arc<Vec<Rule>>> = HashMap::new();
        // Each pass carries rules one step further; a chain has at most as many steps as roles.
        for _ in 0..gathering.len() {
            let mut changed = false;
            for role in &gathering {
                let mut rules: Vec<Rule> = Vec::new();
                for other in sorted.values().filter(|other| other.is_gathered_by(role)) {
                    let theirs = gathered
                        .get(&other.name)
                        .map_or(&other.rules, |rules| rules);
                    for rule in theirs {
                        if !rules.contains(rule) {
                            rules.push(rule.clone());
                        }
                    }
                }
                if gathered
                    .get(&role.name)
                    .is_none_or(|before| **before != rules)
                {
                    gathered.insert(role.name.clone(), Arc::new(rules));
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        self.gathered = gathered;
    }
}

impl Authorizer for Rules {
    fn decide<'a>(&'a self, user: &'a User, attributes: Attributes<'a>) -> Deciding<'a> {
        Box::pin(std::future::ready(self.explain(user, attributes)))
    }
}

impl Held<'_> {
    /// What could not be found, as one text; `None` if everything was.
    pub fn problems(&self) -> Option<String> {
        (!self.absent.is_empty()).then(|| tell_absent(&self.absent))
    }
}

impl Role {
    fn is_gathered_by(&self, other: &Role) -> bool {
        let label = |key: &str| self.labels.get(key).map(Text::as_str);
        self.name != other.name && other.gathers.iter().any(|selector| selector.matches(label))
    }
}

impl Bindings {
    fn add(&mut self, binding: Arc<Binding>) {
        for subject in &binding.subjects {
            if let Some((list, who)) = self.list_of(subject, &binding.namespace) {
                list.entry(who)
                    .or_default()
                    .insert(binding.name.clone(), Arc::clone(&binding));
            }
        }
        self.all.insert(binding.name.clone(), binding);
    }

    fn remove(&mut self, name: &str) {
        let Some(binding) = self.all.remove(name) else {
            return;
        };
        for subject in &binding.subjects {
            if let Some((list, who)) = self.list_of(subject, &binding.namespace)
                && let Some(bindings) = list.get_mut(&who)
            {
                bindings.remove(name);
                if bindings.is_empty() {
                    list.remove(&who);
                }
            }
        }
    }

    fn list_of(&mut self, subject: &Subject, namespace: &str) -> Option<(&mut Grants, Text)> {
        match subject {
            Subject::Group(name) => Some((&mut self.groups, name.clone())),
            subject => Some((&mut self.users, subject.user_name(namespace)?)),
        }
    }

    /// The bindings for a user; one may come several times.
    fn of<'a>(&'a self, user: &User) -> impl Iterator<Item = &'a Arc<Binding>> {
        let own = self.users.get(&user.name).into_iter();
        let groups = user
            .groups
            .iter()
            .filter_map(|group| self.groups.get(group));
        own.chain(groups).flat_map(BTreeMap::values)
    }

    /// The bindings for a user, each once, by name.
    fn sorted<'a>(&'a self, user: &User) -> impl Iterator<Item = &'a Arc<Binding>> {
        let sorted: BTreeMap<&Text, &Arc<Binding>> = self
            .of(user)
            .map(|binding| (&binding.name, binding))
            .collect();
        sorted.into_values()
    }
}

impl Binding {
    /// The binding as reasons name it: what it grants and to which subject.
    fn describe(&self, user: &User) -> String {
        let (kind, role) = match &self.role {
            RoleRef::Role(name) => ("Role", name),
            RoleRef::ClusterRole(name) => ("ClusterRole", name),
        };
        let place = match self.namespace.as_str() {
            "" => format!("ClusterRoleBinding {}", quote(&self.name)),
            namespace => format!(
                "RoleBinding {}",
                quote(&format!("{}/{namespace}", self.name))
            ),
        };
        let subject = self.subjects.iter().find(|subject| match subject {
            Subject::Group(group) => user.is_in(group),
            subject => subject.user_name(&self.namespace).as_ref() == Some(&user.name),
        });
        let to = match subject {
            Some(Subject::User(name)) => format!("User {}", quote(name)),
            Some(Subject::Group(name)) => format!("Group {}", quote(name)),
            Some(Subject::ServiceAccount { namespace, name }) => {
                let namespace = if namespace.is_empty() {
                    &self.namespace
                } else {
                    namespace
                };
                format!("ServiceAccount {}", quote(&format!("{name}/{namespace}")))
            }
            None => String::new(),
        };
        format!("{place} of {kind} {} to {to}", quote(role))
    }
}

impl Subject {
    /// The name of the user that the subject means, if it means one.
    fn user_name(&self, binding_namespace: &str) -> Option<Text> {
        match self {
            Subject::User(name) => Some(name.clone()),
            Subject::Group(_) => None,
            Subject::ServiceAccount { namespace, name } => {
                let namespace = if namespace.is_empty() {
                    binding_namespace
                } else {
                    namespace.as_str()
                };
                let known = !namespace.is_empty();
                known.then(|| format!("system:serviceaccount:{namespace}:{name}").into())
            }
        }
    }
}

fn tell_absent(absent: &[&RoleRef]) -> String {
    let texts = absent.iter().map(|role| match role {
        RoleRef::Role(name) => {
            format!("role.rbac.authorization.k8s.io {} not found", quote(name))
        }
        RoleRef::ClusterRole(name) => {
            format!(
                "clusterrole.rbac.authorization.k8s.io {} not found",
                quote(name)
            )
        }
    });
    summary(&texts.collect::<Vec<String>>())
}
