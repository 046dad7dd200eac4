//! What rules allow, to whom, and what reasons say.

use auth::{Aggregation, Binding, Change, Decision, Role, RoleRef, Rules, Subject, User};
use object::labels::LabelSelector;

use crate::{ask, binding, jane, jane_holds, role};

#[test]
fn what_each_rule_allows() {
    // A rule, what it allows, what it does not.
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "get,list core pods",
            &["get - pods a x", "list - pods a -", "get - pods - -"],
            &[
                "watch - pods a -",
                "get - pods/log a x",
                "get apps pods a x",
                "get /pods",
            ],
        ),
        (
            "get core pods/log",
            &["get - pods/log a x"],
            &[
                "get - pods a x",
                "get - pods/exec a x",
                "get - nodes/log a x",
            ],
        ),
        (
            "update * */scale",
            &[
                "update apps deployments/scale a x",
                "update x.io widgets/scale a x",
            ],
            &[
                "update apps deployments a x",
                "update apps deployments/status a x",
            ],
        ),
        (
            "* core *",
            &["anything - pods/log a x", "escalate - things - -"],
            &["get apps deployments a x", "get /healthz"],
        ),
        (
            "get * pods",
            &["get - pods a x", "get metrics.k8s.io pods a x"],
            &["get - nodes - x"],
        ),
        (
            "get,list,create core configmaps one,two",
            &["get - configmaps a one", "list - configmaps a two"],
            &[
                "get - configmaps a three",
                "list - configmaps a -",
                "create - configmaps a -",
            ],
        ),
        (
            "get /healthz,/apis/*,/logs*",
            &[
                "get /healthz",
                "get /apis/",
                "get /apis/apps/v1",
                "get /logs",
                "get /logs/x",
            ],
            &[
                "get /healthz/x",
                "get /apis",
                "post /healthz",
                "get - healthz - -",
            ],
        ),
        ("* *", &["get /", "post /anything"], &["get - pods a x"]),
        // A rule that lacks one of its lists allows nothing.
        ("get - pods", &[], &["get - pods a x"]),
        ("- core pods", &[], &["get - pods a x"]),
    ];
    for (words, allowed, refused) in table {
        let rules = jane_holds(&[words]);
        for question in *allowed {
            let decision = rules.authorize(&jane(), ask(question));
            assert_eq!(decision, Decision::Allow, "{words}: {question}");
        }
        for question in *refused {
            let decision = rules.authorize(&jane(), ask(question));
            assert_eq!(decision, Decision::Deny, "{words}: {question}");
        }
    }
}

/// A cluster binding and a binding in namespace `a` for each kind of subject.
fn subjects() -> Rules {
    let account = |namespace: &str| Subject::ServiceAccount {
        namespace: namespace.into(),
        name: "robot".into(),
    };
    let cluster = || RoleRef::ClusterRole("reader".into());
    let mut rules = Rules::new(Aggregation::Stored);
    rules.apply([
        role("", "reader", &["get core pods"]),
        role("a", "writer", &["update core pods"]),
        role("b", "writer", &["delete core pods"]),
        binding(
            "a",
            "user",
            RoleRef::Role("writer".into()),
            Subject::User("jane".into()),
        ),
        binding("a", "group", cluster(), Subject::Group("crew".into())),
        binding("a", "local", cluster(), account("")),
        binding("", "everywhere", cluster(), account("b")),
        binding("", "nowhere", cluster(), account("")),
    ]);
    rules
}

#[test]
fn who_is_meant_and_where() {
    let rules = subjects();
    let robot = |namespace: &str| format!("system:serviceaccount:{namespace}:robot");
    let table = [
        (
            "jane",
            "",
            "update - pods a x",
            "RoleBinding \"user/a\" of Role \"writer\" to User \"jane\"",
        ),
        ("jane", "", "update - pods b x", ""),
        ("jane", "", "update - pods - x", ""),
        ("jane", "", "delete - pods a x", ""),
        ("crew", "", "get - pods a x", ""),
        (
            "joe",
            "crew",
            "get - pods a x",
            "RoleBinding \"group/a\" of ClusterRole \"reader\" to Group \"crew\"",
        ),
        ("joe", "crew", "get - pods b x", ""),
        (
            &robot("a"),
            "",
            "get - pods a x",
            "RoleBinding \"local/a\" of ClusterRole \"reader\" to ServiceAccount \"robot/a\"",
        ),
        (&robot("a"), "", "get - pods b x", ""),
        (
            &robot("b"),
            "",
            "get - pods - x",
            "ClusterRoleBinding \"everywhere\" of ClusterRole \"reader\" to ServiceAccount \
             \"robot/b\"",
        ),
        (&robot(""), "", "get - pods - x", ""),
        (
            "root",
            "system:masters",
            "anything x.io things - -",
            "master",
        ),
    ];
    for (name, group, question, because) in table {
        let user = User::authenticated(name, "", &[group]);
        let verdict = rules.explain(&user, ask(question));
        let (decision, reason) = match because {
            "" => (Decision::Deny, String::new()),
            "master" => (Decision::Allow, String::new()),
            because => (Decision::Allow, format!("RBAC: allowed by {because}")),
        };
        assert_eq!(
            (verdict.decision, verdict.reason),
            (decision, reason),
            "{name}: {question}"
        );
        assert_eq!(
            rules.authorize(&user, ask(question)),
            decision,
            "{name}: {question}"
        );
    }
}

#[test]
fn a_role_that_is_missing_is_the_reason_of_a_refusal() {
    let mut rules = Rules::new(Aggregation::Stored);
    let to = || Subject::User("jane".into());
    rules.apply([
        binding("", "b", RoleRef::ClusterRole("gone".into()), to()),
        binding("a", "b", RoleRef::Role("gone".into()), to()),
    ]);
    let reason = |question| rules.explain(&jane(), ask(question)).reason;
    let cluster = "clusterrole.rbac.authorization.k8s.io \"gone\" not found";
    let both = format!("RBAC: [{cluster}, role.rbac.authorization.k8s.io \"gone\" not found]");
    assert_eq!(reason("get - pods - x"), format!("RBAC: {cluster}"));
    assert_eq!(reason("get - pods a x"), both);
}

#[test]
fn every_change_takes_effect_and_leaves_snapshots_alone() {
    let mut rules = jane_holds(&["get core pods"]);
    let asked = |rules: &Rules| rules.authorize(&jane(), ask("get - pods a x"));
    let before = rules.clone();
    let gone = || Change::NoRole {
        namespace: "".into(),
        name: "r".into(),
    };
    rules.apply([gone()]);
    assert_eq!(
        (asked(&before), asked(&rules)),
        (Decision::Allow, Decision::Deny)
    );
    rules.apply([role("", "r", &["* * *"])]);
    assert_eq!(asked(&rules), Decision::Allow);
    // The binding is now for somebody else, then for nobody at all.
    let to = Subject::Group("crew".into());
    rules.apply([binding("", "b", RoleRef::ClusterRole("r".into()), to)]);
    assert_eq!(asked(&rules), Decision::Deny);
    let crew = User::authenticated("joe", "", &["crew"]);
    assert_eq!(
        rules.authorize(&crew, ask("get - pods a x")),
        Decision::Allow
    );
    rules.apply([Change::NoBinding {
        namespace: "".into(),
        name: "b".into(),
    }]);
    assert_eq!(
        rules.authorize(&crew, ask("get - pods a x")),
        Decision::Deny
    );
}

#[test]
fn rules_of_a_user_come_cluster_first_and_each_binding_once() {
    let mut rules = subjects();
    let both = vec![
        Subject::User("jane".into()),
        Subject::Group("system:authenticated".into()),
    ];
    rules.apply([Change::Binding(Binding {
        namespace: "".into(),
        name: "twice".into(),
        role: RoleRef::ClusterRole("reader".into()),
        subjects: both,
    })]);
    let verbs = |namespace| {
        let user = jane();
        let held = rules.rules_for(&user, namespace);
        assert_eq!(held.problems(), None);
        held.rules
            .iter()
            .map(|rule| rule.verbs.join(","))
            .collect::<Vec<_>>()
    };
    assert_eq!(verbs("a"), ["get", "update"]);
    assert_eq!(verbs("b"), ["get"]);
    assert_eq!(verbs(""), ["get"]);
}

#[test]
fn gathered_roles_hold_what_they_gather_only_if_asked_to() {
    let selector = |label: &str| vec![LabelSelector::parse(label).unwrap()];
    let gathering = |name: &str, from: &str, label: &str| {
        Change::Role(Role {
            name: name.into(),
            labels: [(label.into(), "true".into())].into(),
            gathers: selector(from),
            ..Role::default()
        })
    };
    for (aggregation, expected) in [
        (Aggregation::Stored, Decision::Deny),
        (Aggregation::Gathered, Decision::Allow),
    ] {
        let mut rules = Rules::new(aggregation);
        let Change::Role(mut part) = role("", "part", &["get core pods"]) else {
            unreachable!()
        };
        part.labels = [("to-edit".into(), "true".into())].into();
        rules.apply([
            // `admin` gathers `edit`, which gathers `part`; they also gather each other.
            gathering("admin", "to-admin", "to-edit"),
            gathering("edit", "to-edit", "to-admin"),
            Change::Role(part),
            binding(
                "",
                "b",
                RoleRef::ClusterRole("admin".into()),
                Subject::User("jane".into()),
            ),
        ]);
        assert_eq!(
            rules.authorize(&jane(), ask("get - pods a x")),
            expected,
            "{aggregation:?}"
        );
        rules.apply([Change::NoRole {
            namespace: "".into(),
            name: "part".into(),
        }]);
        assert_eq!(
            rules.authorize(&jane(), ask("get - pods a x")),
            Decision::Deny
        );
    }
}

#[test]
fn nobody_without_rights_gets_anywhere() {
    let mut rules = subjects();
    // Rights of others, in every form that could leak.
    rules.apply([
        role("", "all", &["* * *", "* *"]),
        binding(
            "",
            "all",
            RoleRef::ClusterRole("all".into()),
            Subject::User("root".into()),
        ),
        binding(
            "a",
            "all",
            RoleRef::ClusterRole("all".into()),
            Subject::Group("".into()),
        ),
        binding(
            "",
            "none",
            RoleRef::ClusterRole("all".into()),
            Subject::User("".into()),
        ),
    ]);
    let nobody = User::authenticated("nobody", "", &[]);
    let verbs = [
        "get",
        "list",
        "watch",
        "create",
        "update",
        "patch",
        "delete",
        "deletecollection",
        "*",
        "",
        "impersonate",
        "escalate",
        "bind",
    ];
    for verb in verbs {
        for group in ["", "apps", "*"] {
            for resource in ["pods", "pods/log", "*", "*/scale", "namespaces", ""] {
                for (namespace, name) in [("", ""), ("a", ""), ("a", "x"), ("*", "*"), ("", "x")] {
                    let asked = auth::Attributes::Resource {
                        verb,
                        group,
                        resource,
                        namespace,
                        name,
                    };
                    assert_eq!(rules.authorize(&nobody, asked), Decision::Deny, "{asked:?}");
                    assert_eq!(
                        rules.explain(&nobody, asked).decision,
                        Decision::Deny,
                        "{asked:?}"
                    );
                }
            }
        }
        for path in ["/", "", "*", "/api", "/healthz", "/metrics"] {
            let asked = auth::Attributes::Path { verb, path };
            assert_eq!(rules.authorize(&nobody, asked), Decision::Deny, "{asked:?}");
        }
    }
}
