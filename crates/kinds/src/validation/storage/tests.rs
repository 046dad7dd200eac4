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
