//! Rows of the `rbac.authorization.k8s.io` group. Roles have no columns of their own.

use object::Value;

use super::Printer;
use super::row::{Row, cells, text};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    match kind {
        "ClusterRoleBinding" | "RoleBinding" => Some(binding),
        _ => None,
    }
}

fn binding(row: &Row<'_>) -> Vec<Value> {
    let role = format!(
        "{}/{}",
        row.text(&["roleRef", "kind"]),
        row.text(&["roleRef", "name"])
    );
    let (mut users, mut groups, mut accounts) = (Vec::new(), Vec::new(), Vec::new());
    for subject in row.items(&["subjects"]) {
        let name = text(subject, &["name"]);
        match text(subject, &["kind"]) {
            "User" => users.push(name),
            "Group" => groups.push(name),
            "ServiceAccount" => {
                accounts.push(format!("{}/{name}", text(subject, &["namespace"])));
            }
            _ => {}
        }
    }
    cells![
        row.name(),
        role,
        row.age(),
        users.join(", "),
        groups.join(", "),
        accounts.join(", "),
    ]
}
