//! Definitions in the style of well-known operators: accepted, served, filled in, checked.

use std::fmt::Write as _;

use object::{Map, Value, json, value, yaml};
use schema::decode::Unknown;
use windlass_kinds::{Catalogue, Generation, Kind, Reading, custom};

const CERTIFICATES: &str = include_str!("definitions/certificates.yaml");
const CLUSTERS: &str = include_str!("definitions/clusters.yaml");

fn map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        other => panic!("{other:?} is no map"),
    }
}

/// A definition as the server stores it.
fn stored(text: &str) -> Map {
    let kind = Catalogue::builtin()
        .by_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
        .expect("definitions are built in")
        .clone();
    let parsed = map(yaml::parse(text.as_bytes()).expect("a YAML text"));
    let read = kind.read(parsed, Unknown::Report).expect("a definition");
    assert!(read.unknown.is_empty(), "{:?}", read.unknown);
    let mut definition = read.object;
    kind.prepare_create(&mut definition);
    let errors = kind.validate(&definition, None, "");
    assert!(errors.is_empty(), "{errors:?}");
    let status = custom::status(&definition, &[], "2020-01-02T03:04:05Z");
    definition.insert("status", status.into());
    definition
}

fn kinds(text: &str) -> Vec<Kind> {
    custom::kinds(&stored(text), 0)
}

/// The object that a body makes, or what is said about it.
fn written(kind: &Kind, spec: Value) -> Result<Map, Vec<String>> {
    let body = map(value!({"metadata": {"name": "one", "namespace": "demo"}, "spec": spec}));
    let read = kind.read(body, Unknown::Report);
    let Reading {
        mut object,
        unknown,
        ..
    } = read.map_err(|error| vec![error.to_string()])?;
    kind.prepare_create(&mut object);
    let errors = kind.validate(&object, None, "");
    let texts: Vec<String> = errors
        .iter()
        .map(ToString::to_string)
        .chain(unknown)
        .collect();
    if texts.is_empty() {
        Ok(object)
    } else {
        Err(texts)
    }
}

fn spec_text(object: &Map) -> String {
    let spec = object.get("spec").expect("it has a spec");
    String::from_utf8(json::to_vec(spec)).expect("JSON is UTF-8")
}

#[test]
fn versions_of_a_definition_are_kinds() {
    let [old, new] = kinds(CERTIFICATES).try_into().ok().expect("two versions");
    let warning = "tls.example.com/v1alpha2 Certificate is deprecated; use tls.example.com/v1 \
                   Certificate";
    assert_eq!(old.deprecation(), Some(warning));
    assert_eq!(new.deprecation(), None);
    assert_eq!(old.storage_version, "v1");
    assert_eq!(new.collection, "/registry/tls.example.com/certificates/");
    assert_eq!(
        (new.singular.as_str(), new.list_kind.as_str()),
        ("certificate", "CertificateList")
    );
    assert_eq!(new.rules.generation, Generation::AllButStatus);
    assert_eq!(old.rules.generation, Generation::All);
    assert_eq!(new.selectable(), ["spec.issuerRef.name"]);
    assert!(new.check_selectable("spec.issuerRef.name").is_ok());
    let refusal = new.check_selectable("spec.secretName");
    assert_eq!(
        refusal,
        Err("field label not supported: spec.secretName".to_owned())
    );
    let object = map(value!({"spec": {"issuerRef": {"name": "ca"}}}));
    assert_eq!(new.select(&object, "spec.issuerRef.name"), "ca");
    let names: Vec<&str> = new.columns().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["Name", "Ready", "Secret", "Age"]);
    assert_eq!(new.reset_fields(""), [["status"]]);
}

#[test]
fn objects_are_filled_in_and_checked() {
    let kinds = kinds(CERTIFICATES);
    let kind = &kinds[1];
    let object = written(
        kind,
        value!({"secretName": "web", "issuerRef": {"name": "ca"}, "dnsNames": ["a.example"]}),
    );
    let expected = r#"{"dnsNames":["a.example"],"duration":"2160h","isCA":false,"issuerRef":{"group":"tls.example.com","kind":"Issuer","name":"ca"},"privateKey":{"algorithm":"RSA","rotationPolicy":"Always"},"secretName":"web","usages":["digital signature","key encipherment"]}"#;
    assert_eq!(spec_text(&object.expect("it is valid")), expected);
    let refused = written(
        kind,
        value!({
            "secretName": "Web", "dnsNames": ["a", "a"], "ipAddresses": ["x"],
            "privateKey": {"size": 1}, "keystores": {}, "more": 1,
        }),
    );
    let expected = [
        "spec.ipAddresses[0]: Invalid value: \"x\": spec.ipAddresses[0] in body must be of type ipv4: \"x\"",
        "<nil>: Invalid value: \"\": \"spec.keystores\" must validate one and only one schema (oneOf). Found none valid",
        "spec.keystores.jks: Required value",
        "spec.privateKey.size: Invalid value: 1: spec.privateKey.size in body should be greater than or equal to 256",
        "spec.secretName: Invalid value: \"Web\": spec.secretName in body must be of type k8s-long-name: \"Web\"",
        "spec.issuerRef: Required value",
        "spec.dnsNames[1]: Duplicate value: \"a\"",
        "unknown field \"spec.more\"",
    ];
    assert_eq!(refused.expect_err("it is invalid"), expected);
}

#[test]
fn nested_list_maps_and_embedded_resources_are_checked() {
    let kinds = kinds(CLUSTERS);
    let kind = &kinds[0];
    let object = written(
        kind,
        value!({
            "storage": {"size": "10Gi", "className": null},
            "ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}],
            "parameters": {"any": {"thing": [1]}},
            "podTemplate": {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "p", "labels": {"a": "b"}, "creationTimestamp": null},
                "spec": {"nodeName": "n"}},
            "backups": [{"name": "daily", "schedule": "0 3 * * *",
                "targets": [{"bucket": "one", "endpoint": "https://s3.example/"}]}],
        }),
    );
    let expected = r#"{"backups":[{"keep":7,"name":"daily","schedule":"0 3 * * *","targets":[{"bucket":"one","endpoint":"https://s3.example/"}]}],"instances":1,"maxUnavailable":"25%","parameters":{"any":{"thing":[1]}},"podTemplate":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"},"name":"p"},"spec":{"nodeName":"n"}},"ports":[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"}],"storage":{"className":null,"size":"10Gi"}}"#;
    assert_eq!(spec_text(&object.expect("it is valid")), expected);
    let refused = written(
        kind,
        value!({
            "instances": (-1), "storage": {"size": "big"},
            "ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}],
            "podTemplate": {"kind": "Pod", "metadata": {"labels": {"bad key!": "x"}, "odd": 1}},
        }),
    );
    let errors = refused.expect_err("it is invalid");
    let fields: Vec<&str> = errors
        .iter()
        .map(|it| it.split(": ").next().unwrap_or(it))
        .collect();
    let expected = [
        "spec.instances",
        "spec.storage.size",
        ".spec.instances",
        "spec.podTemplate.apiVersion",
        "spec.podTemplate.metadata.labels",
        "spec.ports[1]",
        "unknown field \"spec.podTemplate.metadata.odd\"",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_wrong_type_in_metadata_is_refused_in_the_words_of_go() {
    let kinds = kinds(CLUSTERS);
    let cases = [
        (
            value!({"metadata": {"name": 1}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
        ),
        (
            value!({"metadata": []}),
            "json: cannot unmarshal array into Go value of type v1.ObjectMeta",
        ),
        (
            value!({"spec": {"podTemplate": {"apiVersion": 1}}}),
            "spec.podTemplate.apiVersion: Invalid value: 1: must be a string",
        ),
    ];
    for (body, expected) in cases {
        let error = kinds[0]
            .read(map(body), Unknown::Drop)
            .expect_err("it is refused");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_status_of_its_own_is_kept_and_checked_alone() {
    let kinds = kinds(CLUSTERS);
    let kind = &kinds[0];
    let old = map(
        value!({"apiVersion": "database.example.com/v1beta1", "kind": "Cluster",
        "metadata": {"name": "one"}, "spec": {"instances": 500}, "status": {"phase": "old"}}),
    );
    let mut new = old.clone();
    new.insert("status", value!({"phase": "new"}));
    let mut main = new.clone();
    kind.prepare_update(&mut main, &old, "");
    assert_eq!(main.get("status"), old.get("status"));
    new.insert("spec", value!({"instances": 2}));
    kind.prepare_update(&mut new, &old, "status");
    assert_eq!(new.get("spec"), old.get("spec"));
    assert_eq!(new.get("status"), Some(&value!({"phase": "new"})));
    assert!(kind.validate(&new, Some(&old), "status").is_empty());
    new.insert("status", value!({"instances": "x"}));
    let errors = kind.validate(&new, Some(&old), "status");
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let expected = [
        "status.instances: Invalid value: \"string\": instances in body must be of type integer: \"string\"",
        ".status.instances: Invalid value: 0: .status.instances accessor error: x is of the type string, expected int64",
    ];
    assert_eq!(texts, expected);
}

/// A definition of about 30 KB: wide, deep, with descriptions.
fn large_definition() -> String {
    let mut text = String::from(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
         metadata: {name: larges.big.example.com}\nspec:\n  group: big.example.com\n  \
         scope: Cluster\n  names: {plural: larges, kind: Large}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        \
         type: object\n        properties:\n          spec:\n            type: object\n            \
         properties:\n",
    );
    for section in 0..12 {
        let _ = writeln!(text, "              section{section}:");
        let _ = writeln!(
            text,
            "                type: object\n                properties:"
        );
        for field in 0..20 {
            let _ = writeln!(
                text,
                "                  field{field}: {{type: string, maxLength: 253, pattern: \
                 '^[a-z]([-a-z0-9]*[a-z0-9])?$', description: 'The field number {field}, as the \
                 documentation tells.'}}"
            );
        }
    }
    text
}

#[test]
fn a_large_definition_is_small_in_memory() {
    let text = large_definition();
    assert!(text.len() > 30_000, "{}", text.len());
    let kinds = kinds(&text);
    fn nodes(schema: &schema::structural::Structural) -> usize {
        1 + schema.children().map(nodes).sum::<usize>()
    }
    let custom = kinds[0].custom.as_ref().expect("a custom kind");
    let count = nodes(&custom.schema);
    let checks = size_of::<schema::structural::Checks>();
    let bytes = count * (size_of::<schema::structural::Structural>() + checks + 64);
    assert!(bytes < 300_000, "{count} nodes take {bytes} bytes");
    // Scalars are kept once, so the graph that merging works on is far smaller than the schema.
    assert!(kinds[0].types.len() < 120, "{}", kinds[0].types.len());
}
