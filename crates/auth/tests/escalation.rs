//! Who grants rules must hold them, and is told exactly what is missing.

use auth::{RoleRef, Subject};

use crate::{binding, jane, jane_holds, rule};

/// What Jane is told when she holds `held` and grants `granted`: the lines of missing rules.
fn missing(held: &[&str], granted: &[&str]) -> Vec<String> {
    let rules = jane_holds(held);
    let granted: Vec<_> = granted.iter().map(|words| rule(words)).collect();
    match rules.check_grant(
        &jane(),
        "",
        &granted,
        "clusterroles.rbac.authorization.k8s.io",
    ) {
        Ok(()) => Vec::new(),
        Err(text) => text.lines().skip(1).map(str::to_owned).collect(),
    }
}

#[test]
fn what_is_missing_is_told_rule_by_rule() {
    let table: &[(&[&str], &[&str], &[&str])] = &[
        (&["get,list core pods"], &["get core pods"], &[]),
        (
            &["get core pods", "list core pods"],
            &["get,list core pods"],
            &[],
        ),
        (
            &["* * *"],
            &["get,list core,apps pods,deployments/scale x"],
            &[],
        ),
        (&["* *"], &["get /anything"], &[]),
        (&["get core */log"], &["get core pods/log"], &[]),
        (&["get core pods"], &["get core pods x"], &[]),
        (&["get /api*"], &["get /api,/apis/*"], &[]),
        (
            &["get core pods x"],
            &["get core pods"],
            &["{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}"],
        ),
        (
            &["get core pods"],
            &["get,list,watch core pods,nodes"],
            &[
                "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\" \"watch\"]}",
                "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\" \"watch\"]}",
            ],
        ),
        (
            &["get core pods"],
            &["get,delete core secrets a,b"],
            &[
                "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"a\"], \
                 Verbs:[\"get\" \"delete\"]}",
                "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"b\"], \
                 Verbs:[\"get\" \"delete\"]}",
            ],
        ),
        (
            &["get core pods"],
            &["get,post /metrics"],
            &[
                "{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}",
                "{NonResourceURLs:[\"/metrics\"], Verbs:[\"post\"]}",
            ],
        ),
        (
            &["get core pods"],
            &["* * *"],
            &["{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}"],
        ),
    ];
    for (held, granted, expected) in table {
        assert_eq!(
            missing(held, granted),
            *expected,
            "{held:?} grants {granted:?}"
        );
    }
}

#[test]
fn the_text_names_the_user_and_roles_that_could_not_be_found() {
    let mut rules = jane_holds(&["get core pods"]);
    let to = Subject::Group("system:authenticated".into());
    rules.apply([binding("a", "b", RoleRef::Role("gone".into()), to)]);
    let granted = [rule("list core pods")];
    let resource = "roles.rbac.authorization.k8s.io";
    let text = rules
        .check_grant(&jane(), "a", &granted, resource)
        .unwrap_err();
    assert_eq!(
        text,
        "user \"jane\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC \
         permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\"]}; resolution errors: \
         [roles.rbac.authorization.k8s.io \"gone\" not found]"
    );
}

#[test]
fn a_rule_too_large_to_take_apart_is_refused_quickly() {
    let many = |prefix: &str| {
        let names: Vec<String> = (0..400).map(|number| format!("{prefix}{number}")).collect();
        names.join(",")
    };
    let large = format!("{} {} {} {}", many("v"), many("g"), many("r"), many("n"));
    assert_eq!(missing(&["* * *"], &[&large]).len(), 0);
    assert_eq!(missing(&["get core pods"], &[&large]).len(), 1);
}
