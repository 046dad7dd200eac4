//! Rows of the `networking.k8s.io` group.

use object::Value;

use super::Printer;
use super::row::{NONE, Row, cells, text};

/// The annotation of the class that ingresses without a class get.
const DEFAULT_CLASS_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "IPAddress" => ip_address,
        "Ingress" => ingress,
        "IngressClass" => ingress_class,
        "NetworkPolicy" => network_policy,
        "ServiceCIDR" => service_cidr,
        _ => return None,
    })
}

fn ip_address(row: &Row<'_>) -> Vec<Value> {
    let parent = row.at(&["spec", "parentRef"]);
    let parent = parent.map_or_else(|| NONE.to_owned(), parent_name);
    cells![row.name(), parent, row.age()]
}

/// Resource and group, the namespace if there is one, and the name.
fn parent_name(parent: &Value) -> String {
    let mut name = text(parent, &["resource"]).to_owned();
    let group = text(parent, &["group"]);
    if !group.is_empty() {
        name = format!("{name}.{group}");
    }
    name = name.to_lowercase();
    let namespace = text(parent, &["namespace"]);
    if !namespace.is_empty() {
        name = format!("{name}/{namespace}");
    }
    format!("{name}/{}", text(parent, &["name"]))
}

fn ingress(row: &Row<'_>) -> Vec<Value> {
    let class = row
        .at(&["spec", "ingressClassName"])
        .and_then(Value::as_str);
    let ports = if row.items(&["spec", "tls"]).is_empty() {
        "80"
    } else {
        "80, 443"
    };
    cells![
        row.name(),
        class.unwrap_or(NONE),
        hosts(row.items(&["spec", "rules"])),
        row.load_balancer(),
        ports,
        row.age(),
    ]
}

/// The first three hosts. Every rule after the third host counts as one more, also without host.
fn hosts(rules: &[Value]) -> String {
    const SHOWN_MAX: usize = 3;
    let mut shown: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        if shown.len() == SHOWN_MAX {
            more = true;
            break;
        }
        let host = text(rule, &["host"]);
        if !host.is_empty() {
            shown.push(host);
        }
    }
    match shown.join(",") {
        hosts if more => format!("{hosts} + {} more...", rules.len() - SHOWN_MAX),
        hosts if hosts.is_empty() => "*".to_owned(),
        hosts => hosts,
    }
}

fn ingress_class(row: &Row<'_>) -> Vec<Value> {
    let mut name = row.name().to_owned();
    if row.annotated(DEFAULT_CLASS_ANNOTATION) {
        name.push_str(" (default)");
    }
    let parameters = match row.at(&["spec", "parameters"]) {
        None => NONE.to_owned(),
        Some(parameters) => {
            let kind = text(parameters, &["kind"]);
            let name = text(parameters, &["name"]);
            match parameters.str_at(&["apiGroup"]) {
                Some(group) => format!("{kind}.{group}/{name}"),
                None => format!("{kind}/{name}"),
            }
        }
    };
    cells![
        name,
        row.text(&["spec", "controller"]),
        parameters,
        row.age()
    ]
}

fn network_policy(row: &Row<'_>) -> Vec<Value> {
    cells![
        row.name(),
        row.selector(&["spec", "podSelector"]),
        row.age()
    ]
}

fn service_cidr(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.joined(&["spec", "cidrs"]), row.age()]
}
