//! Acting as someone else: what each way needs, and what a refusal says.

use auth::{Impersonation, Rules, User, Wanted};

use crate::{ask, at_once, jane, jane_holds};

fn wanted(name: &str) -> Wanted {
    Wanted {
        name: name.into(),
        ..Wanted::default()
    }
}

fn in_groups(name: &str, groups: &[&str]) -> Wanted {
    let groups = groups.iter().map(|group| (*group).into()).collect();
    Wanted {
        groups,
        ..wanted(name)
    }
}

fn with_extra(name: &str, key: &str, value: &str) -> Wanted {
    Wanted {
        extra: [(key.into(), vec![value.into()])].into(),
        ..wanted(name)
    }
}

/// What becomes of Jane's wish to get the pods of a namespace as someone else.
fn act(rules: &Rules, wanted: &Wanted) -> Result<User, String> {
    act_with(&Impersonation::default(), rules, wanted)
}

fn act_with(by: &Impersonation, rules: &Rules, wanted: &Wanted) -> Result<User, String> {
    let acted = at_once(by.act_as(rules, &jane(), wanted, ask("list - pods a -")));
    acted.map(|it| it.user).map_err(|it| it.to_string())
}

#[test]
fn what_each_identity_needs() {
    const ON_USER: &str = "impersonate-on:user-info:list core pods";
    const USER: &str = "impersonate:user-info authentication.k8s.io users joe";
    // The rules, whom they open.
    let table: &[(&[&str], Wanted)] = &[
        (&["impersonate core users joe"], wanted("joe")),
        (
            &["impersonate core users", "impersonate core groups crew"],
            in_groups("joe", &["crew"]),
        ),
        (
            &[
                "impersonate core users",
                "impersonate authentication.k8s.io userextras/dept x",
            ],
            with_extra("joe", "dept", "x"),
        ),
        (
            &["impersonate core serviceaccounts robot"],
            wanted("system:serviceaccount:a:robot"),
        ),
        (
            &["impersonate core users,groups"],
            in_groups("joe", &["system:masters"]),
        ),
        (&[ON_USER, USER], wanted("joe")),
        (
            &[
                ON_USER,
                USER,
                "impersonate:user-info authentication.k8s.io userextras/x.io/dept",
            ],
            with_extra("joe", "x.io/dept", "x"),
        ),
        (
            &[
                "impersonate-on:serviceaccount:list core pods",
                "impersonate:serviceaccount authentication.k8s.io serviceaccounts",
            ],
            wanted("system:serviceaccount:a:robot"),
        ),
        (
            &[
                "impersonate-on:arbitrary-node:list core pods",
                "impersonate:arbitrary-node authentication.k8s.io nodes n1",
            ],
            wanted("system:node:n1"),
        ),
    ];
    for (held, wanted) in table {
        assert!(act(&jane_holds(held), wanted).is_ok(), "{held:?}: {wanted}");
        for missing in 0..held.len() {
            let mut less = held.to_vec();
            less.remove(missing);
            assert!(
                act(&jane_holds(&less), wanted).is_err(),
                "{less:?}: {wanted}"
            );
        }
    }
}

#[test]
fn which_groups_come_along() {
    let rules = jane_holds(&["* * *"]);
    let groups = |wanted: &Wanted| {
        let user = act(&rules, wanted).unwrap();
        user.groups
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let everyone = "system:authenticated";
    assert_eq!(groups(&wanted("joe")), [everyone]);
    assert_eq!(groups(&in_groups("joe", &["crew"])), ["crew", everyone]);
    assert_eq!(groups(&in_groups("joe", &[everyone])), [everyone]);
    let outside = "system:unauthenticated";
    assert_eq!(groups(&in_groups("joe", &[outside])), [outside]);
    assert_eq!(groups(&wanted("system:anonymous")), [outside]);
    assert_eq!(
        groups(&wanted("system:serviceaccount:a:robot")),
        [
            "system:serviceaccounts",
            "system:serviceaccounts:a",
            everyone
        ]
    );
    assert_eq!(
        groups(&in_groups("system:serviceaccount:a:robot", &["x"])),
        ["x", everyone]
    );
    assert_eq!(
        groups(&wanted("system:node:n1")),
        ["system:nodes", everyone]
    );
}

#[test]
fn a_refusal_tells_what_the_first_way_lacks() {
    let plain = "is forbidden: User \"jane\" cannot impersonate";
    let cases: &[(&[&str], Wanted, String)] = &[
        (
            &[],
            wanted("joe"),
            format!(
                "pods {plain}-on:user-info:list resource \"pods\" in API group \"\" in the \
                     namespace \"a\""
            ),
        ),
        (
            &[],
            in_groups("system:serviceaccount:a:robot", &["x"]),
            format!(
                "serviceaccounts \"robot\" {plain} resource \"serviceaccounts\" in API group \
                     \"\" in the namespace \"a\""
            ),
        ),
        (
            &["impersonate-on:user-info:list core pods"],
            wanted("joe"),
            format!(
                "users.authentication.k8s.io \"joe\" {plain}:user-info resource \"users\" in \
                     API group \"authentication.k8s.io\" at the cluster scope"
            ),
        ),
        (
            &[
                "impersonate-on:user-info:list core pods",
                "impersonate:user-info authentication.k8s.io users",
            ],
            in_groups("joe", &["system:masters"]),
            format!(
                "groups.authentication.k8s.io \"system:masters\" {plain}:user-info resource \
                     \"groups\" in API group \"authentication.k8s.io\" at the cluster scope: \
                     impersonating the system:masters group is not allowed"
            ),
        ),
    ];
    for (held, wanted, text) in cases {
        assert_eq!(act(&jane_holds(held), wanted).unwrap_err(), *text);
    }
}

#[test]
fn the_way_that_worked_is_the_first_to_be_tried_again() {
    let by = Impersonation::default();
    let rules = jane_holds(&["impersonate core users joe"]);
    let refused = |by: &Impersonation| act_with(by, &rules, &wanted("other")).unwrap_err();
    assert!(
        refused(&by).starts_with("pods is forbidden"),
        "{}",
        refused(&by)
    );
    act_with(&by, &rules, &wanted("joe")).unwrap();
    let text = "users \"other\" is forbidden: User \"jane\" cannot impersonate resource \"users\" \
                in API group \"\" at the cluster scope";
    assert_eq!(refused(&by), text);
}

#[test]
fn an_account_may_be_the_node_it_runs_on() {
    let mut robot = User::authenticated("system:serviceaccount:a:robot", "", &["robots"]);
    let on = "authentication.kubernetes.io/node-name";
    robot.extra.insert(on.into(), vec!["n1".into()]);
    let mut rules = jane_holds(&[
        "impersonate-on:associated-node:list core pods",
        "impersonate:associated-node authentication.k8s.io nodes",
    ]);
    rules.apply([crate::binding(
        "",
        "robots",
        auth::RoleRef::ClusterRole("r".into()),
        auth::Subject::Group("robots".into()),
    )]);
    let by = Impersonation::default();
    let act =
        |name| at_once(by.act_as(&rules, &robot, &wanted(name), ask("list - pods a -"))).is_ok();
    assert!(act("system:node:n1"));
    assert!(!act("system:node:n2"));
    assert!(!act("joe"));
}
