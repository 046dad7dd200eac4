//! Cases: claims of volumes, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn claim(size: &str, class: &str) -> Map {
    map(
        value!({"metadata": {"name": "c", "namespace": "n"}, "status": {"phase": "Pending"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": size}}}}),
    )
}

#[test]
fn a_claim_asks_for_something() {
    assert!(validate(&claim("1Gi", "fast"), None, "").is_empty());
    assert_eq!(
        printed(validate(&claim("0", "fast"), None, "")),
        ["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"]
    );
}

#[test]
fn a_claim_that_is_not_bound_does_not_change() {
    let expected = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n@@ -10,7 +10,7 @@\n   }\n  },\n  \"VolumeName\": \"\",\n- \"StorageClassName\": \"fast\",\n+ \"StorageClassName\": \"slow\",\n  \"VolumeMode\": null,\n  \"DataSource\": null,\n  \"DataSourceRef\": null,\n";
    assert_eq!(
        printed(validate(
            &claim("1Gi", "slow"),
            Some(&claim("1Gi", "fast")),
            ""
        )),
        [expected]
    );
}

#[test]
fn the_status_of_a_claim_names_storage_and_how_it_grows() {
    let cases = [
        (
            value!({"allocatedResourceStatuses": {"storage": "NodeResizePending"},
                "allocatedResources": {"storage": "1Gi", "example.com/x": "1"}}),
            vec![],
        ),
        (
            value!({"allocatedResourceStatuses": {"storage": "Growing"},
                "allocatedResources": {"cpu": "1", "storage": "-1"}}),
            vec![
                "status.allocatedResourceStatuses: Unsupported value: \"storage\": supported values: \"ControllerResizeInProgress\", \"ControllerResizeInfeasible\", \"NodeResizeInProgress\", \"NodeResizeInfeasible\", \"NodeResizePending\"",
                "status.allocatedResources: Unsupported value: \"cpu\": supported values: \"storage\"",
                "status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity",
            ],
        ),
    ];
    let old = claim("1Gi", "fast");
    for (status, expected) in cases {
        let mut new = old.clone();
        new.insert("status", status);
        assert_eq!(printed(validate(&new, Some(&old), "status")), expected);
    }
}
