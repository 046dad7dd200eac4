//! Cases: slices of endpoints, and what is said about them.

use object::value;

use super::*;

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn slices_hold_addresses_of_their_type() {
    let slice = value!({"addressType": "IPv4", "endpoints": [{"addresses": []}, {"addresses": ["127.0.0.1"]}, {"addresses": ["2001:db8::1"]}],
        "ports": [{"name": "a", "port": 1, "protocol": "TCP"}, {"name": "a", "port": 2, "protocol": "TCP"}]});
    let slice = slice.as_object().expect("it is a map");
    assert_eq!(
        printed(super::slice(slice, None, "")),
        [
            "ports[1].name: Duplicate value: \"a\"",
            "endpoints[0].addresses: Required value: must contain at least 1 address",
            "endpoints[1].addresses[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
            "endpoints[2].addresses: Invalid value: \"2001:db8::1\": must be an IPv4 address",
        ]
    );
}

#[test]
fn an_address_is_named_by_itself() {
    let ip = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    let cases = [
        (value!({"name": "10.9.8.7"}), vec![]),
        (value!({}), vec![]),
        (
            value!({"generateName": "a", "name": "ab"}),
            vec![
                format!("metadata.generateName: Invalid value: \"a\": {ip}"),
                format!("metadata.name: Invalid value: \"ab\": {ip}"),
            ],
        ),
    ];
    for (metadata, expected) in cases {
        let object = value!({"metadata": (metadata), "spec": {"parentRef": {
            "resource": "services", "namespace": "n", "name": "s"}}});
        let object = object.as_object().expect("it is a map");
        assert_eq!(printed(ip_address(object, None, "")), expected);
    }
}
