//! The documents are whole: every reference leads somewhere, every operation has its own name.

use std::collections::BTreeSet;

use object::Value;

use super::*;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

fn openapi() -> Documents {
    let chain = resources::admission::Chain::new(&[], &[]).expect("no plugin is unknown");
    let clock = Arc::new(store::SystemClock);
    let store = store::Store::memory(store::Options::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let source = Source {
        resources: Resources::new(store, clock, chain),
        runtime: runtime.expect("a runtime starts").handle().clone(),
    };
    Documents::new(Catalogue::builtin(), source, None)
}

#[test]
fn what_clients_of_version_2_cannot_read_is_left_out_of_a_custom_schema() {
    let schema = r#"{"type":"object","required":["size","any"],"oneOf":[{"required":["size"]}],
        "properties":{
            "size":{"type":"integer","nullable":true,"default":1,"minimum":0},
            "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
                   "properties":{"x":{"type":"string"}}},
            "list":{"type":"array","items":{"type":"string"}}}}"#;
    let Ok(Value::Object(schema)) = json::parse(schema.as_bytes()) else {
        panic!("a schema is an object")
    };
    let kind = Catalogue::builtin().resource("", "v1", "configmaps");
    let [(name, object), _] =
        custom::definitions(kind.expect("it is built in"), schema, Version::Two);
    assert_eq!(name, ".v1.ConfigMap");
    let properties = object.get("properties").expect("there are some");
    let expected = [
        ("size", r#"{"minimum":0}"#),
        ("any", r#"{"x-kubernetes-preserve-unknown-fields":true}"#),
        ("list", r#"{"items":{"type":"string"},"type":"array"}"#),
    ];
    for (field, text) in expected {
        let found = properties.get(field).expect("the field stays");
        assert_eq!(json::to_vec(found), text.as_bytes(), "{field}");
    }
    assert_eq!(object.get("required"), Some(&value!(["any"])));
    assert_eq!(object.get("oneOf"), None);
}

fn text_of(packed: &Packed) -> Value {
    json::parse(&unpack(packed)).expect("documents are JSON")
}

fn version3(openapi: &Documents, name: &str) -> Value {
    let document = openapi.document(&format!("/openapi/v3/{name}"));
    text_of(openapi.packed(document.expect("it is served")))
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let map = value.as_object().into_iter();
    map.flat_map(|map| map.iter().map(|(key, value)| (key.as_str(), value)))
}

/// Every operation with its path and method.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document.get("paths").expect("a document has paths");
    entries(paths)
        .flat_map(|(path, item)| entries(item).map(move |(method, it)| (path, method, it)))
        .filter(|(_, method, _)| *method != "parameters")
        .collect()
}

fn references<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
    found.extend(value.str_at(&["$ref"]));
    entries(value).for_each(|(_, inner)| references(inner, found));
    for item in value.as_array().unwrap_or_default() {
        references(item, found);
    }
}

/// Checks what holds for every document; `prefix` is where its definitions are.
fn check_whole(name: &str, document: &Value, prefix: &str, definitions: &[&str]) {
    let definitions = document
        .at(definitions)
        .expect("a document has definitions");
    let mut found = BTreeSet::new();
    references(document, &mut found);
    for reference in &found {
        let target = reference
            .strip_prefix(prefix)
            .expect("references stay inside");
        assert!(
            definitions.get(target).is_some(),
            "{name}: {reference} leads nowhere"
        );
    }
    let named: BTreeSet<String> = found
        .iter()
        .map(|it| it[prefix.len()..].to_owned())
        .collect();
    let defined: BTreeSet<String> = entries(definitions)
        .map(|(key, _)| key.to_owned())
        .collect();
    assert_eq!(named, defined, "{name}: definitions that nothing names");
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(document) {
        let id = operation
            .str_at(&["operationId"])
            .expect("operations have names");
        assert!(
            ids.insert(id.to_owned()),
            "{name}: {method} {path}: {id} twice"
        );
        assert!(operation.at(&["responses", "401"]).is_some());
        let variables = path.matches('{').count();
        let item = document.at(&["paths", path, "parameters"]);
        let in_path = |it: &&Value| it.str_at(&["in"]) == Some("path");
        let declared = item.and_then(Value::as_array).unwrap_or_default();
        assert_eq!(
            declared.iter().filter(in_path).count(),
            variables,
            "{name}: {path}"
        );
    }
}

#[test]
fn every_document_is_whole() {
    let openapi = openapi();
    for document in &openapi.documents {
        let name = document.place.name();
        let text = text_of(openapi.packed(document));
        check_whole(
            &name,
            &text,
            "#/components/schemas/",
            &["components", "schemas"],
        );
    }
    let all = text_of(openapi.version2());
    check_whole("version 2", &all, "#/definitions/", &["definitions"]);
}

#[test]
fn the_index_names_every_document_by_the_hash_of_its_text() {
    let openapi = openapi();
    let index = json::parse(&openapi.index().text).expect("the index is JSON");
    let paths = index.get("paths").expect("the index has paths");
    assert_eq!(entries(paths).count(), openapi.documents.len());
    for document in &openapi.documents {
        let (name, hash) = (document.place.name(), &openapi.packed(document).hash);
        let url = paths.str_at(&[&name, "serverRelativeURL"]);
        assert_eq!(url, Some(&*format!("/openapi/v3/{name}?hash={hash}")));
        assert_eq!(hash.len(), 128);
    }
}

#[test]
fn operations_have_the_names_that_clients_are_generated_with() {
    let openapi = openapi();
    let cases: &[(&str, &str, &str, &str, &str)] = &[
        ("api/v1", "get", "/api/v1/", "getCoreV1APIResources", ""),
        (
            "api/v1",
            "get",
            "/api/v1/pods",
            "listCoreV1PodForAllNamespaces",
            "list",
        ),
        (
            "api/v1",
            "get",
            "/api/v1/namespaces/{namespace}/pods",
            "listCoreV1NamespacedPod",
            "list",
        ),
        (
            "api/v1",
            "delete",
            "/api/v1/namespaces/{namespace}/pods",
            "deleteCoreV1CollectionNamespacedPod",
            "deletecollection",
        ),
        (
            "api/v1",
            "put",
            "/api/v1/namespaces/{namespace}/pods/{name}/status",
            "replaceCoreV1NamespacedPodStatus",
            "put",
        ),
        (
            "api/v1",
            "post",
            "/api/v1/namespaces/{namespace}/pods/{name}/exec",
            "connectCoreV1PostNamespacedPodExec",
            "connect",
        ),
        (
            "api/v1",
            "get",
            "/api/v1/nodes/{name}/proxy/{path}",
            "connectCoreV1GetNodeProxyWithPath",
            "connect",
        ),
        (
            "api/v1",
            "post",
            "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            "createCoreV1NamespacedServiceAccountToken",
            "post",
        ),
        (
            "api/v1",
            "get",
            "/api/v1/watch/namespaces/{namespace}/pods",
            "watchCoreV1NamespacedPodList",
            "watchlist",
        ),
        (
            "apis/apps/v1",
            "patch",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            "patchAppsV1NamespacedDeploymentScale",
            "patch",
        ),
        (
            "apis/rbac.authorization.k8s.io/v1",
            "get",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}",
            "readRbacAuthorizationV1ClusterRole",
            "get",
        ),
        ("apis/apps", "get", "/apis/apps/", "getAppsAPIGroup", ""),
    ];
    for (name, method, path, id, action) in cases {
        let document = version3(&openapi, name);
        let operation = document.at(&["paths", path, method]).expect(path);
        assert_eq!(operation.str_at(&["operationId"]), Some(*id));
        let said = operation
            .str_at(&["x-kubernetes-action"])
            .unwrap_or_default();
        assert_eq!(said, *action, "{path}");
    }
}

#[test]
fn a_patch_says_what_kubectl_looks_for() {
    let document = version3(&openapi(), "apis/apps/v1");
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = document
        .at(&["paths", path, "patch"])
        .expect("it is served");
    let parameters = patch
        .get("parameters")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let names: Vec<&str> = parameters
        .iter()
        .filter_map(|it| it.str_at(&["name"]))
        .collect();
    assert_eq!(
        names,
        ["dryRun", "fieldManager", "fieldValidation", "force"]
    );
    let kind = value!({"group": "apps", "version": "v1", "kind": "Deployment"});
    assert_eq!(patch.get("x-kubernetes-group-version-kind"), Some(&kind));
    let name = "io.k8s.api.apps.v1.Deployment";
    let kinds = [
        "components",
        "schemas",
        name,
        "x-kubernetes-group-version-kind",
    ];
    assert_eq!(document.at(&kinds), Some(&value!([kind])));
}

#[test]
fn parameters_of_all_operations_stand_with_the_path() {
    let core = version3(&openapi(), "api/v1");
    let paths = core.get("paths").expect("a document has paths");
    let names = |value: Option<&Value>| -> Vec<String> {
        let parameters = value.and_then(|value| value.get("parameters"));
        let parameters = parameters.and_then(Value::as_array).unwrap_or_default();
        let name = |it: &Value| it.str_at(&["name"]).unwrap_or_default().to_owned();
        parameters.iter().map(name).collect()
    };
    let pods = "/api/v1/namespaces/{namespace}/pods";
    let cases: [(&str, &str, &[&str], &[&str]); 4] = [
        (
            "/finalize",
            "put",
            &[
                "dryRun",
                "fieldManager",
                "fieldValidation",
                "name",
                "pretty",
            ],
            &[],
        ),
        (
            "/{name}/exec",
            "get",
            &[
                "command",
                "container",
                "name",
                "namespace",
                "stderr",
                "stdin",
                "stdout",
                "tty",
            ],
            &[],
        ),
        (
            "/{name}/proxy/{path}",
            "head",
            &["name", "namespace", "path", "path"],
            &[],
        ),
        (
            "/{name}",
            "patch",
            &["name", "namespace", "pretty"],
            &["dryRun", "fieldManager", "fieldValidation", "force"],
        ),
    ];
    for (end, method, shared, own) in cases {
        let path = match end {
            "/finalize" => "/api/v1/namespaces/{name}/finalize".to_owned(),
            end => format!("{pods}{end}"),
        };
        let item = paths.get(&path);
        assert_eq!(names(item), shared, "{path}");
        assert_eq!(names(item.and_then(|item| item.get(method))), own, "{path}");
    }
}

#[test]
fn options_of_deletion_belong_to_the_group_of_a_document() {
    let openapi = openapi();
    let groups = |document: &Value, schemas: &[&str]| -> Vec<String> {
        let definition = format!("{META}.DeleteOptions");
        let mut value = document;
        for key in schemas.iter().chain([&definition.as_str()]) {
            value = value.get(key).expect("it is there");
        }
        let kinds = value.get("x-kubernetes-group-version-kind");
        let kinds = kinds.and_then(Value::as_array).unwrap_or_default();
        let group = |it: &Value| it.str_at(&["group"]).unwrap_or_default().to_owned();
        kinds.iter().map(group).collect()
    };
    let schemas = ["components", "schemas"];
    assert_eq!(groups(&version3(&openapi, "api/v1"), &schemas), [""]);
    assert_eq!(
        groups(&version3(&openapi, "apis/apps/v1"), &schemas),
        ["", "apps"]
    );
    let all = groups(&text_of(openapi.version2()), &["definitions"]);
    assert_eq!(all.len(), 60, "{all:?}");
}

#[test]
fn a_reference_with_something_beside_it_is_wrapped() {
    let openapi = openapi();
    let networking = version3(&openapi, "apis/networking.k8s.io/v1");
    let property = |definition: &str, field: &str| {
        let schemas = networking
            .get("components")
            .and_then(|it| it.get("schemas"));
        let definition =
            schemas.and_then(|it| it.get(&format!("io.k8s.api.networking.v1.{definition}")));
        let properties = definition.and_then(|it| it.get("properties"));
        let property = properties
            .and_then(|it| it.get(field))
            .expect("it is there");
        (
            property.get("$ref").is_some(),
            property.get("allOf").is_some(),
        )
    };
    assert_eq!(property("IngressRule", "http"), (true, false));
    assert_eq!(property("IngressSpec", "defaultBackend"), (false, true));
}

#[test]
fn version_2_has_only_what_version_2_can_say() {
    let document = text_of(openapi().version2());
    let definitions = document.get("definitions").expect("it has definitions");
    let quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
    assert_eq!(definitions.get(quantity), Some(&value!({"type": "string"})));
    let pod = definitions
        .get("io.k8s.api.core.v1.Pod")
        .expect("pods are defined");
    let spec = value!({"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"});
    assert_eq!(pod.at(&["properties", "spec"]), Some(&spec));
    // A field may be called as a keyword is.
    let schema = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let schema = definitions.get(schema).expect("schemas are defined");
    assert!(schema.at(&["properties", "default"]).is_some());
    assert!(
        schema
            .at(&["properties", "oneOf", "items", "$ref"])
            .is_some()
    );
    let path = "/api/v1/namespaces/{namespace}/pods";
    let body = document.at(&["paths", path, "post", "parameters"]);
    let body = body.and_then(Value::as_array).and_then(<[Value]>::first);
    assert_eq!(body.and_then(|body| body.str_at(&["in"])), Some("body"));
}

#[test]
fn which_clients_take_json() {
    for (accept, expected) in [
        ("*/*", true),
        ("application/json", true),
        ("text/html, application/json;q=0.5", true),
        (
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
            false,
        ),
        ("text/html", false),
    ] {
        assert_eq!(
            negotiate(accept, Version::Three).is_some(),
            expected,
            "{accept}"
        );
    }
}

#[test]
fn how_http_writes_a_date() {
    assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(http_date(1_798_761_599), "Thu, 31 Dec 2026 23:59:59 GMT");
}

#[test]
fn which_form_of_a_document_is_sent() {
    let old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let new = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    for (accept, expected) in [
        ("*/*", Some(Form::Json)),
        ("application/json", Some(Form::Json)),
        (old, Some(Form::Protobuf)),
        (new, Some(Form::Protobuf)),
        ("*/*, application/json;q=0.5", Some(Form::Json)),
        (
            &format!("application/json;q=0.5, {old}"),
            Some(Form::Protobuf),
        ),
        ("text/html", None),
    ] {
        assert_eq!(negotiate(accept, Version::Two), expected, "{accept}");
    }
    assert_eq!(negotiate(old, Version::Three), None);
}
