//! Cases: volumes and classes of storage, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_volume_has_a_size_a_mode_and_one_source() {
    let new = map(
        value!({"spec": {"accessModes": ["ReadWriteOnce", "Sometimes"], "capacity": {},
        "hostPath": {"path": "/a"}, "nfs": {"server": "s", "path": "/p"}}}),
    );
    assert_eq!(
        printed(volume(&new, None, "")),
        [
            "spec.accessModes: Unsupported value: \"Sometimes\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
            "spec.capacity: Required value",
            "spec.capacity: Unsupported value: {}: supported values: \"storage\"",
            "spec.nfs: Forbidden: may not specify more than 1 volume type",
        ]
    );
}

#[test]
fn a_class_stays_as_it_was() {
    let with = |provisioner: &str| {
        map(
            value!({"metadata": {"name": "c"}, "provisioner": provisioner, "volumeBindingMode": "Immediate"}),
        )
    };
    assert!(class(&with("a.example/b"), None, "").is_empty());
    assert_eq!(
        printed(class(&with("c.example/d"), Some(&with("a.example/b")), "")),
        ["provisioner: Invalid value: \"c.example/d\": field is immutable"]
    );
}

#[test]
fn old_sources_of_volumes_are_looked_at_as_closely_as_new_ones() {
    let cases = [
        (
            value!({"iscsi": {"targetPortal": "p", "iqn": "iqn.2001-04.com.example:disk",
                "initiatorName": "eui.0123456789abcdef"}}),
            vec![],
        ),
        (
            value!({"iscsi": {"targetPortal": "p", "iqn": "iqn.2001-04.com.example:a,b",
                "initiatorName": "me", "secretRef": {}}}),
            vec![
                "spec.iscsi.iqn: Invalid value: \"iqn.2001-04.com.example:a,b\": must be valid format",
                "spec.iscsi.secretRef.name: Required value",
                "spec.iscsi.initiatorname: Invalid value: \"me\": must be valid format",
            ],
        ),
        (
            value!({"storageos": {"volumeName": "v", "secretRef": {"name": "Any Name"}}}),
            vec!["spec.storageos.secretRef.namespace: Required value"],
        ),
        (
            value!({"glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": ""}}),
            vec![
                "spec.glusterfs.endpointsNamespace: Invalid value: \"\": if the endpointnamespace is set, it must be a valid namespace name",
            ],
        ),
        (
            value!({"hostPath": {"type": "Nothing"}}),
            vec!["spec.hostPath.path: Required value"],
        ),
    ];
    for (source, expected) in cases {
        let mut spec = map(value!({"accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Retain"}));
        for (key, value) in map(source) {
            spec.insert(key, value);
        }
        let new = map(value!({"metadata": {"name": "v"}, "spec": spec}));
        assert_eq!(printed(volume(&new, None, "")), expected);
    }
}
