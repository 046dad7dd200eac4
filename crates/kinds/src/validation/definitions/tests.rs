//! Cases: definitions of custom resources, and what is said about them.

use object::{Map, Value, value};

use super::*;

fn map(value: Value) -> Map {
    value.as_object().expect("an object is a map").clone()
}

fn printed(errors: Vec<FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn crd(name: &str, changed: Value) -> Map {
    let mut spec = map(value!({"group": "demo.example", "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "conversion": {"strategy": "None"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}));
    for (key, value) in map(changed) {
        match value {
            Value::Null => spec.remove(&key),
            value => spec.insert(key, value),
        };
    }
    map(value!({"metadata": {"name": name}, "spec": spec, "status": {"storedVersions": ["v1"]}}))
}

#[test]
fn names_and_versions_are_checked() {
    let cases: Vec<(&str, Value, &[&str])> = vec![
        ("things.demo.example", value!({}), &[]),
        (
            "others.demo.example",
            value!({}),
            &[
                "metadata.name: Invalid value: \"others.demo.example\": must be spec.names.plural+\".\"+spec.group",
            ],
        ),
        (
            "things.demo.example",
            value!({"versions": null}),
            &[
                "spec.versions: Invalid value: null: must have exactly one version marked as storage version",
                "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
            ],
        ),
        (
            "things.demo.example",
            value!({"scope": null}),
            &["spec.scope: Required value"],
        ),
        (
            "things.demo.example",
            value!({"scope": "Global"}),
            &[
                "spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\"",
            ],
        ),
        (
            "things.demo.example",
            value!({"preserveUnknownFields": true}),
            &[
                "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
            ],
        ),
        (
            "things.demo.example",
            value!({"versions": [{"name": "v1", "served": true, "storage": false,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}},
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
                "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}]}),
            &[
                "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":{\"Status\":{},\"Scale\":{\"SpecReplicasPath\":\".spec.a\",\"StatusReplicasPath\":\".status.a\",\"LabelSelectorPath\":null}},\"AdditionalPrinterColumns\":[{\"Name\":\"A\",\"Type\":\"string\",\"Format\":\"\",\"Description\":\"\",\"Priority\":0,\"JSONPath\":\".spec.a\"}],\"SelectableFields\":null},{\"Name\":\"v2\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must have exactly one version marked as storage version",
            ],
        ),
        (
            "things.demo.example",
            value!({"versions": [{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}]}),
            &[
                "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must have exactly one version marked as storage version",
            ],
        ),
        (
            "things.demo.example",
            value!({"versions": [{"name": "v1", "served": true, "storage": true}]}),
            &["spec.versions[0].schema.openAPIV3Schema: Required value"],
        ),
        (
            "things.demo.example",
            value!({"versions": [{"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}),
            &[
                "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2",
                "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
            ],
        ),
    ];
    for (name, changed, expected) in cases {
        assert_eq!(printed(definition(&crd(name, changed), None, "")), expected);
    }
}

#[test]
fn protected_groups_need_approval() {
    let given = crd("things.demo.k8s.io", value!({"group": "demo.k8s.io"}));
    assert_eq!(
        printed(definition(&given, None, "")),
        [
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        ]
    );
}

/// A definition whose one version has this schema, and what is said about the schema.
fn check_schema(schema: Value, expected: &[&str]) {
    let version = value!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": (schema.clone())}});
    let new = crd("things.demo.example", value!({"versions": [version]}));
    let prefix = "spec.validation.openAPIV3Schema";
    let errors = printed(definition(&new, None, ""));
    let errors: Vec<&str> = errors
        .iter()
        .map(|error| error.strip_prefix(prefix).unwrap_or(error))
        .collect();
    let schema = object::json::to_vec(&schema);
    assert_eq!(errors, expected, "{}", String::from_utf8_lossy(&schema));
}

/// The same for one field of the spec.
fn check_field(field: Value, expected: &[&str]) {
    let at = ".properties[spec].properties[a]";
    let expected: Vec<String> = expected.iter().map(|it| format!("{at}{it}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let schema = value!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"a": field}}}});
    check_schema(schema, &expected);
}

#[test]
fn a_schema_must_be_structural() {
    check_schema(
        value!({}),
        &[".type: Required value: must not be empty at the root"],
    );
    check_schema(
        value!({"type": "object", "nullable": true, "additionalProperties": {"type": "string"}}),
        &[
            ".nullable: Forbidden: nullable cannot be true at the root",
            ".additionalProperties: Forbidden: must not be used at the root",
        ],
    );
    check_schema(
        value!({"type": "object", "properties": {"a": {"type": "string"}},
            "allOf": [{"properties": {"y": {"minLength": 1}}}]}),
        &[".properties[y]: Required value: because it is defined in \
            spec.validation.openAPIV3Schema.allOf[0].properties[y]"],
    );
    check_field(
        value!({}),
        &[".type: Required value: must not be empty for specified object fields"],
    );
    check_field(
        value!({"type": "array"}),
        &[".items: Required value: must be specified"],
    );
    check_field(
        value!({"type": "object", "anyOf": [{"type": "object", "default": {}, "nullable": true}]}),
        &[
            ".anyOf[0].default: Forbidden: must be undefined to be structural",
            ".anyOf[0].nullable: Forbidden: must be false to be structural",
            ".anyOf[0].type: Forbidden: must be empty to be structural",
        ],
    );
    check_field(
        value!({"x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        &[],
    );
    check_field(
        value!({"type": "string", "pattern": "("}),
        &[
            ".pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: \
            error parsing regexp: missing closing ): `(`",
        ],
    );
}

#[test]
fn keywords_that_no_schema_may_have() {
    check_field(
        value!({"type": "string", "$ref": "#/x", "uniqueItems": true}),
        &[
            ".$ref: Forbidden: $ref is not supported",
            ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime \
             complexity becomes quadratic",
        ],
    );
    check_field(
        value!({"type": "object", "properties": {"x": {"type": "string"}},
            "additionalProperties": {"type": "string"}}),
        &[
            ".additionalProperties: Forbidden: additionalProperties and properties are mutual \
            exclusive",
        ],
    );
    check_schema(
        value!({"type": "object", "properties": {"metadata": {"type": "object",
            "properties": {"labels": {"type": "object"}}}}}),
        &[
            ".properties[metadata]: Forbidden: must not specify anything other than name and \
            generateName, but metadata is implicitly specified",
        ],
    );
}

#[test]
fn marks_of_lists_fit_their_schemas() {
    check_field(
        value!({"type": "array", "items": {"type": "object", "nullable": true, "properties":
            {"a": {"type": "string", "nullable": true}}},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        &[
            ".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map",
            ".items.properties[a].default: Required value: this property is in \
             x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ".items.properties[a].nullable: Forbidden: this property is in \
             x-kubernetes-list-map-keys, so it cannot be nullable",
        ],
    );
    check_field(
        value!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
        &[
            ".items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list \
            with x-kubernetes-list-type=set",
        ],
    );
}

#[test]
fn defaults_are_valid_values() {
    check_field(
        value!({"type": "string", "default": 1}),
        &[".default: Invalid value: \"integer\":  in body must be of type string: \"integer\""],
    );
    check_field(
        value!({"type": "object", "default": {"x": "y", "z": 1}, "properties": {"x": {"type": "string"}}}),
        &[".default: Invalid value: {\"x\":\"y\",\"z\":1}: must not have unknown fields"],
    );
    check_field(
        value!({"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"kind": {"type": "string", "default": "bad kind"}}}),
        &[
            ".properties[kind].default: Invalid value: \"bad kind\": must result in valid \
            metadata: kind: Invalid value: \"bad kind\": may have mixed case, but should \
            otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters \
            or '-', start with an alphabetic character, and end with an alphanumeric character \
            (e.g. 'my-name',  or 'abc-123', regex used for validation is \
            '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ],
    );
}

#[test]
fn what_was_accepted_is_not_refused_later() {
    let schema = value!({"type": "object", "properties": {"spec": {"type": "array",
        "items": {"type": "object"}, "x-kubernetes-list-type": "set"}}});
    let version = value!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    let object = crd("things.demo.example", value!({"versions": [version]}));
    assert_eq!(definition(&object, None, "").len(), 1);
    assert_eq!(definition(&object, Some(&object), "").len(), 0);
}

#[test]
fn selectable_fields_lead_to_scalars() {
    let version = value!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
            "properties": {"a": {"type": "string"}, "o": {"type": "object"}}}}}},
        "selectableFields": [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.o"},
            {"jsonPath": ".spec.q"}, {"jsonPath": ".spec['a']"}, {"jsonPath": ".spec.a"}]});
    let new = crd("things.demo.example", value!({"versions": [version]}));
    let expected = [
        "spec.selectableFields[1].jsonPath: Invalid value: \".spec.o\": must point to a field of \
         type string, boolean or integer. Enum string fields and strings with formats are allowed.",
        "spec.selectableFields[2].jsonPath: Invalid value: \".spec.q\": is an invalid path: does \
         not refer to a valid field",
        "spec.selectableFields[3].jsonPath: Invalid value: \".spec['a']\": is an invalid path: \
         array notation is not allowed",
        "spec.selectableFields[4].jsonPath: Duplicate value: \".spec.a\"",
    ];
    assert_eq!(printed(definition(&new, None, "")), expected);
}

#[test]
fn formats_that_ask_nothing_are_told() {
    let version = value!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "a": {"type": "string", "format": "zork"}, "b": {"type": "string", "format": "date"}}}}});
    let new = crd("things.demo.example", value!({"versions": [version]}));
    assert_eq!(
        definition_warnings(&new, None),
        ["unrecognized format \"zork\""]
    );
    assert!(definition_warnings(&new, Some(&new)).is_empty());
}
