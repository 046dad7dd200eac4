//! Rows of services and of their endpoints.

use object::Value;

use crate::table::row::{NONE, Row, UNKNOWN, cells, first_three, int, items, non_empty_or, text};

pub(super) fn service(row: &Row<'_>) -> Vec<Value> {
    let cluster_ip = match row.items(&["spec", "clusterIPs"]).first() {
        Some(address) => address.as_str().unwrap_or_default(),
        // Objects from before there were two families have only this.
        None => row.text_or(&["spec", "clusterIP"], NONE),
    };
    let ports: Vec<String> = row.items(&["spec", "ports"]).iter().map(port).collect();
    cells![
        row.name(),
        row.text(&["spec", "type"]),
        cluster_ip,
        external_ip(row),
        non_empty_or(&ports.join(","), NONE),
        row.age(),
        row.labels(&["spec", "selector"]),
    ]
}

fn external_ip(row: &Row<'_>) -> String {
    let external = row.joined(&["spec", "externalIPs"]);
    match row.text(&["spec", "type"]) {
        "ClusterIP" | "NodePort" => non_empty_or(&external, NONE).to_owned(),
        "LoadBalancer" => {
            let balancer = row.load_balancer();
            match (balancer.is_empty(), external.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (true, false) => external,
                (false, true) => balancer,
                (false, false) => format!("{balancer},{external}"),
            }
        }
        "ExternalName" => row.text(&["spec", "externalName"]).to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

fn port(port: &Value) -> String {
    let (number, protocol) = (int(port, &["port"]), text(port, &["protocol"]));
    match int(port, &["nodePort"]) {
        node_port if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

pub(super) fn endpoints(row: &Row<'_>) -> Vec<Value> {
    let subsets = row.items(&["subsets"]);
    let addresses = if subsets.is_empty() {
        NONE.to_owned()
    } else {
        first_three(subsets.iter().flat_map(subset).collect())
    };
    cells![row.name(), addresses, row.age()]
}

/// Every address with every port; a headless service may have no ports.
fn subset(subset: &Value) -> Vec<String> {
    let addresses = items(subset, &["addresses"]);
    let addresses: Vec<&str> = addresses.iter().map(|it| text(it, &["ip"])).collect();
    let ports = items(subset, &["ports"]);
    if ports.is_empty() {
        return addresses.into_iter().map(str::to_owned).collect();
    }
    let pairs = ports
        .iter()
        .flat_map(|port| addresses.iter().map(|ip| (*ip, int(port, &["port"]))));
    pairs
        .map(|(ip, port)| {
            if ip.contains(':') {
                format!("[{ip}]:{port}")
            } else {
                format!("{ip}:{port}")
            }
        })
        .collect()
}
