//! Rules, requests and identities as tables.

extern crate windlass_auth as auth;

mod escalation;
mod impersonation;
mod rules;

use auth::{Aggregation, Attributes, Binding, Change, Role, RoleRef, Rule, Rules, Subject, User};
use object::Text;

/// A rule from words: `verbs groups resources names`, lists joined by commas, `-` for an empty one
/// and `core` for the core group. `get /path` is a rule for a path.
pub(crate) fn rule(words: &str) -> Rule {
    let list = |word: &str| -> Vec<Text> {
        let one = |text: &str| Text::from(if text == "core" { "" } else { text });
        if word == "-" {
            Vec::new()
        } else {
            word.split(',').map(one).collect()
        }
    };
    match words.split(' ').collect::<Vec<_>>().as_slice() {
        [verbs, paths] => Rule {
            verbs: list(verbs),
            paths: list(paths),
            ..Rule::default()
        },
        [verbs, groups, resources] => Rule {
            verbs: list(verbs),
            groups: list(groups),
            resources: list(resources),
            ..Rule::default()
        },
        [verbs, groups, resources, names] => Rule {
            verbs: list(verbs),
            groups: list(groups),
            resources: list(resources),
            names: list(names),
            ..Rule::default()
        },
        _ => panic!("not a rule: {words}"),
    }
}

pub(crate) fn role(namespace: &str, name: &str, rules: &[&str]) -> Change {
    Change::Role(Role {
        namespace: namespace.into(),
        name: name.into(),
        rules: rules.iter().map(|words| rule(words)).collect(),
        ..Role::default()
    })
}

pub(crate) fn binding(namespace: &str, name: &str, role: RoleRef, subject: Subject) -> Change {
    Change::Binding(Binding {
        namespace: namespace.into(),
        name: name.into(),
        role,
        subjects: vec![subject],
    })
}

/// Jane holds these rules in the whole cluster.
pub(crate) fn jane_holds(rules: &[&str]) -> Rules {
    let mut index = Rules::new(Aggregation::Stored);
    let to = Subject::User("jane".into());
    index.apply([
        role("", "r", rules),
        binding("", "b", RoleRef::ClusterRole("r".into()), to),
    ]);
    index
}

pub(crate) fn jane() -> User {
    User::authenticated("jane", "", &[])
}

/// A question from words: `verb group resource namespace name`, `-` for empty; or `verb /path`.
pub(crate) fn ask(words: &str) -> Attributes<'_> {
    let empty = |text| if text == "-" { "" } else { text };
    match words.split(' ').collect::<Vec<_>>().as_slice() {
        [verb, path] => Attributes::Path { verb, path },
        [verb, group, resource, namespace, name] => Attributes::Resource {
            verb,
            group: empty(group),
            resource,
            namespace: empty(namespace),
            name: empty(name),
        },
        _ => panic!("not a question: {words}"),
    }
}

/// What a future gives that need not wait.
fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("rules in memory need not wait"),
    }
}
