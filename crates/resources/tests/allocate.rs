//! Addresses and node ports of services.

use object::{Value, value};

use crate::fixture::{Ask, refusal, server};

fn service(name: &str, spec: Value) -> Value {
    value!({"metadata": {"name": name}, "spec": spec})
}

fn address(service: &Value) -> &str {
    service.str_at(&["spec", "clusterIP"]).unwrap_or_default()
}

fn node_port(service: &Value, place: usize) -> Option<i64> {
    let ports = service
        .at(&["spec", "ports"])
        .and_then(Value::as_array)
        .unwrap();
    ports[place].get("nodePort").and_then(Value::as_int)
}

#[tokio::test]
async fn a_service_keeps_its_address_until_it_is_gone() {
    let resources = server().await;
    let services = Ask::new(&resources, "", "services");
    let created = services
        .create(service("one", value!({"ports": [{"port": 80}]})))
        .await
        .unwrap();
    let given = address(&created).to_owned();
    assert!(given.starts_with("10.0.0."), "{given}");
    assert_eq!(
        created.at(&["spec", "clusterIPs"]),
        Some(&value!([(given.as_str())]))
    );
    assert_eq!(created.at(&["spec", "ipFamilies"]), Some(&value!(["IPv4"])));
    assert_eq!(
        created.str_at(&["spec", "ipFamilyPolicy"]),
        Some("SingleStack")
    );

    let one = Ask::new(&resources, "", "services").named("one");
    let left_out = service("one", value!({"ports": [{"port": 81}]}));
    let updated = one.update(left_out).await.unwrap();
    assert_eq!(address(&updated), given);

    // The list of addresses follows the one that a client changes.
    let none = service("one", value!({"clusterIP": "None"}));
    assert_eq!(
        refusal(one.update(none).await),
        "Service \"one\" is invalid: spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change \
         once set"
    );

    let same = value!({"ports": [{"port": 80}], "clusterIP": (given.as_str())});
    let refused = refusal(services.create(service("two", same.clone())).await);
    assert_eq!(
        refused,
        format!(
            "Service \"two\" is invalid: spec.clusterIPs: Invalid value: [\"{given}\"]: failed to \
             allocate IP {given}: provided IP is already allocated"
        )
    );
    one.delete().await.unwrap();
    let created = services.create(service("two", same)).await.unwrap();
    assert_eq!(address(&created), given);
}

#[tokio::test]
async fn which_addresses_cannot_be_had() {
    let resources = server().await;
    let services = Ask::new(&resources, "", "services");
    let cases = [
        (
            value!({"clusterIP": "10.0.0.1"}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: failed to allocate IP 10.0.0.1: provided \
             IP is already allocated",
        ),
        (
            value!({"clusterIP": "192.168.1.1"}),
            "spec.clusterIPs: Invalid value: [\"192.168.1.1\"]: failed to allocate IP 192.168.1.1: \
             the provided network does not match the current range",
        ),
        (
            value!({"ipFamilyPolicy": "RequireDualStack"}),
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not \
             configured for dual-stack services",
        ),
        (
            value!({"ipFamilies": ["IPv6"]}),
            "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
        ),
        (
            value!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}),
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The \
             range of valid ports is 30000-32767",
        ),
    ];
    for (mut spec, wanted) in cases {
        let map = spec.as_object_mut().unwrap();
        map.get_or_insert_with("ports", || value!([{"port": 80}]));
        let refused = refusal(services.create(service("one", spec)).await);
        assert_eq!(refused, format!("Service \"one\" is invalid: {wanted}"));
    }
}

#[tokio::test]
async fn headless_services_have_no_address() {
    let resources = server().await;
    let services = Ask::new(&resources, "", "services");
    let spec = value!({"clusterIP": "None", "ports": [{"port": 80}], "selector": {"app": "a"}});
    let created = services.create(service("one", spec)).await.unwrap();
    assert_eq!(created.at(&["spec", "clusterIPs"]), Some(&value!(["None"])));
    assert_eq!(created.at(&["spec", "ipFamilies"]), Some(&value!(["IPv4"])));
    let spec = value!({"clusterIP": "None", "ports": [{"port": 80}]});
    let created = services.create(service("two", spec)).await.unwrap();
    assert_eq!(
        created.at(&["spec", "ipFamilies"]),
        Some(&value!(["IPv4", "IPv6"]))
    );
    assert_eq!(
        created.str_at(&["spec", "ipFamilyPolicy"]),
        Some("RequireDualStack")
    );
}

#[tokio::test]
async fn a_type_change_takes_and_releases() {
    let resources = server().await;
    let services = Ask::new(&resources, "", "services");
    let one = Ask::new(&resources, "", "services").named("one");
    let created = services
        .create(service("one", value!({"ports": [{"port": 80}]})))
        .await
        .unwrap();
    let given = address(&created).to_owned();
    assert_eq!(node_port(&created, 0), None);
    let changed = one
        .merge(value!({"spec": {"type": "NodePort"}}))
        .await
        .unwrap();
    let port = node_port(&changed, 0).unwrap();
    assert!((30_000..=32_767).contains(&port), "{port}");
    assert_eq!(address(&changed), given);

    let wanted = value!({"type": "NodePort", "ports": [{"port": 1, "nodePort": port}]});
    let refused = refusal(services.create(service("two", wanted.clone())).await);
    assert_eq!(
        refused,
        format!(
            "Service \"two\" is invalid: spec.ports[0].nodePort: Invalid value: {port}: provided \
             port is already allocated"
        )
    );
    let external = value!({"spec": {"type": "ExternalName", "externalName": "a.example"}});
    let changed = one.merge(external).await.unwrap();
    assert_eq!((address(&changed), node_port(&changed, 0)), ("", None));
    let created = services.create(service("two", wanted)).await.unwrap();
    assert_eq!(node_port(&created, 0), Some(port));
}

#[tokio::test]
async fn a_dry_run_and_a_refused_create_take_nothing() {
    let resources = server().await;
    let chosen = value!({"clusterIP": "10.0.0.9", "ports": [{"port": 80}]});
    let dry = Ask::new(&resources, "", "services").dry();
    let shown = dry.create(service("one", chosen.clone())).await.unwrap();
    assert_eq!(address(&shown), "10.0.0.9");
    let services = Ask::new(&resources, "", "services");
    let refused = refusal(services.create(service("Not a name", chosen.clone())).await);
    assert!(refused.contains("metadata.name"), "{refused}");
    services.create(service("one", chosen)).await.unwrap();
}

#[tokio::test]
async fn one_node_port_serves_a_port_in_two_protocols() {
    let resources = server().await;
    let services = Ask::new(&resources, "", "services");
    let ports = value!([
        {"name": "a", "port": 53, "protocol": "TCP"},
        {"name": "b", "port": 53, "protocol": "UDP"},
        {"name": "c", "port": 80, "protocol": "TCP"},
    ]);
    let spec = value!({"type": "NodePort", "ports": ports});
    let created = services.create(service("one", spec)).await.unwrap();
    assert_eq!(node_port(&created, 0), node_port(&created, 1));
    assert_ne!(node_port(&created, 0), node_port(&created, 2));
}

#[tokio::test]
async fn services_made_at_once_share_no_address() {
    let resources = server().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..100 {
        let resources = resources.clone();
        tasks.spawn(async move {
            let wanted = service(&format!("s{number}"), value!({"ports": [{"port": 80}]}));
            let created = Ask::new(&resources, "", "services")
                .create(wanted)
                .await
                .unwrap();
            address(&created).to_owned()
        });
    }
    let given: std::collections::BTreeSet<String> = tasks.join_all().await.into_iter().collect();
    assert_eq!(given.len(), 100);
}
