//! The documents: which there are, and their text.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use kinds::{Catalogue, Kind};
use object::{Map, Value, json, value};

use super::definitions::Definitions;
use super::known::Sharing;
use super::operations::{self, Answer, Body, Operation, PathItem, capital, group_word};
use super::parameters::Parameter;
use super::protobuf;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const MEDIA: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
const WATCH_MEDIA: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const PATCH_MEDIA: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

const VERSION_INFO: &str = "io.k8s.apimachinery.pkg.version.Info";
const JSON_MEDIA: &[&str] = &["application/json"];
const KEY_SET_MEDIA: &[&str] = &["application/jwk-set+json"];
const OPENID_CONFIGURATION: &str = ".well-known/openid-configuration";
const OPENID_KEYS: &str = "openid/v1/jwks";

const CUSTOM_MEDIA: &[&str] = &["application/json", "application/yaml"];
const CUSTOM_PATCH_MEDIA: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];

/// A version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Two,
    Three,
}

/// What a document of version 3 is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// `/api` or `/apis`.
    Root(&'static str),
    /// `/version`.
    ServerVersion,
    /// A document of OpenID.
    OpenId(&'static str),
    /// A group.
    Group(String),
    /// A group in one version.
    Version(String, String),
}

/// The documents of version 3; there may be such about OpenID.
pub(super) fn places(catalogue: &Catalogue, openid: bool) -> Vec<Place> {
    let mut places = vec![
        Place::Root("api"),
        Place::Root("apis"),
        Place::ServerVersion,
    ];
    if openid {
        places.extend([OPENID_CONFIGURATION, OPENID_KEYS].map(Place::OpenId));
    }
    let builtin = |name: &str| {
        let mut groups = Catalogue::builtin().groups().iter();
        groups.any(|group| group.name == name)
    };
    for group in catalogue.groups() {
        // The document of a custom group is about its kinds alone.
        if !group.name.is_empty() && builtin(&group.name) {
            places.push(Place::Group(group.name.to_string()));
        }
        let versions = group.versions.iter();
        places.extend(
            versions.map(|version| Place::Version(group.name.to_string(), version.to_string())),
        );
    }
    places
}

/// Writes the document of version 2, which is about everything.
pub(super) fn write_all<'p>(
    places: impl Iterator<Item = &'p Place>,
    catalogue: &Catalogue,
    definitions: &Definitions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let items = places.flat_map(|place| place.items(catalogue)).collect();
    write_document(items, definitions, Sharing::All, out)
}

/// Writes the document of version 2 in protobuf.
pub(super) fn write_all_protobuf<'p>(
    places: impl Iterator<Item = &'p Place>,
    catalogue: &Catalogue,
    definitions: &Definitions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut items: Vec<PathItem> = places.flat_map(|place| place.items(catalogue)).collect();
    items.sort_by(|left, right| left.path.cmp(&right.path));
    let head = value!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "security": [{"BearerToken": []}],
        "securityDefinitions": {
            "BearerToken": {"in": "header", "name": "authorization", "type": "apiKey"},
        },
    });
    protobuf::write_part(&head, out)?;
    for item in &items {
        protobuf::write_path(&item.path, &item_document(item, definitions), out)?;
    }
    for (name, schema) in definitions.closure(wanted(&items, definitions), Sharing::All) {
        let schema = json::parse(&schema).unwrap_or_default();
        let named = Map::from_entries(vec![(name.into(), schema)]);
        protobuf::write_part(&value!({"definitions": named}), out)?;
    }
    Ok(())
}

impl Place {
    /// Its path without the first slash.
    pub(super) fn name(&self) -> String {
        match self {
            Place::Root(name) | Place::OpenId(name) => (*name).to_owned(),
            Place::ServerVersion => "version".to_owned(),
            Place::Group(group) => format!("apis/{group}"),
            Place::Version(group, version) if group.is_empty() => format!("api/{version}"),
            Place::Version(group, version) => format!("apis/{group}/{version}"),
        }
    }

    /// The kinds that it is about.
    pub(super) fn kinds<'a>(
        &self,
        catalogue: &'a Catalogue,
    ) -> impl Iterator<Item = &'a Arc<Kind>> {
        let wanted = match self {
            Place::Version(group, version) => Some((group.clone(), version.clone())),
            _ => None,
        };
        catalogue.kinds().iter().filter(move |kind| {
            let wanted = wanted.as_ref();
            wanted.is_some_and(|(group, version)| kind.group == *group && kind.version == *version)
        })
    }

    /// Writes its document.
    pub(super) fn write(
        &self,
        catalogue: &Catalogue,
        definitions: &Definitions,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let sharing = match self {
            Place::Version(group, version) => match self.is_custom(catalogue) {
                true => Sharing::Custom,
                false => Sharing::Version(group, version),
            },
            _ => Sharing::All,
        };
        write_document(self.items(catalogue), definitions, sharing, out)
    }

    fn is_custom(&self, catalogue: &Catalogue) -> bool {
        self.kinds(catalogue).any(|kind| kind.is_custom())
    }

    fn items(&self, catalogue: &Catalogue) -> Vec<PathItem> {
        let path = format!("/{}/", self.name());
        let discovery = |id: String, tag: String, answer| PathItem {
            path: path.clone(),
            parameters: Vec::new(),
            operations: vec![Operation {
                method: "get",
                id,
                tag,
                action: "",
                target: None,
                parameters: Vec::new(),
                body: Body::Nothing,
                answer,
                codes: &[200],
                custom: false,
            }],
        };
        match self {
            Place::Root("api") => {
                let answer = Answer::Definition("APIVersions");
                vec![discovery(
                    "getCoreAPIVersions".into(),
                    "core".into(),
                    answer,
                )]
            }
            Place::Root(_) => {
                let answer = Answer::Definition("APIGroupList");
                vec![discovery("getAPIVersions".into(), "apis".into(), answer)]
            }
            Place::ServerVersion => {
                let answer = Answer::ServerVersion;
                vec![discovery("getCodeVersion".into(), "version".into(), answer)]
            }
            Place::OpenId(name) => {
                let (word, tag, media) = match *name {
                    OPENID_KEYS => ("Keyset", "openid", KEY_SET_MEDIA),
                    _ => ("Configuration", "WellKnown", JSON_MEDIA),
                };
                let id = format!("getServiceAccountIssuerOpenID{word}");
                vec![discovery(id, tag.into(), Answer::Text(media))]
            }
            Place::Group(group) => {
                let word = group_word(group);
                let id = format!("get{}APIGroup", capital(&word));
                vec![discovery(id, word, Answer::Definition("APIGroup"))]
            }
            Place::Version(group, version) => {
                let word = group_word(group);
                let id = format!("get{}{}APIResources", capital(&word), capital(version));
                let tag = format!("{word}_{version}");
                let mut items = Vec::new();
                if !self.is_custom(catalogue) {
                    items.push(discovery(id, tag, Answer::Definition("APIResourceList")));
                }
                let kinds = self.kinds(catalogue);
                items.extend(kinds.flat_map(|kind| operations::of_kind(kind)));
                items
            }
        }
    }
}

/// Writes a document piece by piece.
fn write_document(
    mut items: Vec<PathItem>,
    definitions: &Definitions,
    sharing: Sharing<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    items.sort_by(|left, right| left.path.cmp(&right.path));
    let wanted = wanted(&items, definitions);
    let (title, release) = match sharing {
        Sharing::Custom => ("Kubernetes CRD Swagger", "v0.1.0"),
        _ => ("Kubernetes", "1.36"),
    };
    let (head, before, after) = match definitions.version() {
        Version::Two => (
            r#""swagger":"2.0""#,
            r#""definitions":{"#,
            concat!(
                r#"},"security":[{"BearerToken":[]}],"securityDefinitions":{"BearerToken":"#,
                r#"{"in":"header","name":"authorization","type":"apiKey"}}}"#
            ),
        ),
        Version::Three => (
            r#""openapi":"3.0.0""#,
            r#""components":{"schemas":{"#,
            match sharing {
                Sharing::Custom => "}}}",
                _ => concat!(
                    r#"},"securitySchemes":{"BearerToken":"#,
                    r#"{"in":"header","name":"authorization","type":"apiKey"}}}}"#
                ),
            },
        ),
    };
    write!(
        out,
        r#"{{{head},"info":{{"title":"{title}","version":"{release}"}},"paths":{{"#
    )?;
    let mut text = Vec::new();
    for (at, item) in items.iter().enumerate() {
        text.clear();
        if at > 0 {
            text.push(b',');
        }
        json::write_string(&item.path, &mut text);
        text.push(b':');
        json::write(&item_document(item, definitions), &mut text);
        out.write_all(&text)?;
    }
    write!(out, "}},{before}")?;
    let closure = definitions.closure(wanted, sharing);
    for (at, (name, schema)) in closure.into_iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(out, r#"{comma}"{name}":"#)?;
        out.write_all(&schema)?;
    }
    out.write_all(after.as_bytes())
}

/// The definitions that paths name.
fn wanted(items: &[PathItem], definitions: &Definitions) -> BTreeSet<String> {
    let operations = items.iter().flat_map(|item| &item.operations);
    operations
        .flat_map(|operation| named_definitions(operation, definitions))
        .collect()
}

fn item_document(item: &PathItem, definitions: &Definitions) -> Value {
    let mut document = Map::new();
    for operation in &item.operations {
        document.insert(operation.method, operation_document(operation, definitions));
    }
    if !item.parameters.is_empty() {
        let parameters = parameter_documents(&item.parameters, definitions.version());
        document.insert("parameters", Value::Array(parameters));
    }
    Value::Object(document)
}

fn operation_document(operation: &Operation, definitions: &Definitions) -> Value {
    let version = definitions.version();
    let mut document = Map::new();
    document.insert("operationId", operation.id.as_str().into());
    document.insert("tags", value!([(operation.tag.as_str())]));
    if !operation.action.is_empty() {
        document.insert("x-kubernetes-action", operation.action.into());
    }
    if let Some(target) = &operation.target {
        let kind = value!({
            "group": (target.group.as_str()),
            "version": (target.version.as_str()),
            "kind": (target.kind.as_str()),
        });
        document.insert("x-kubernetes-group-version-kind", kind);
    }
    let mut parameters = parameter_documents(&operation.parameters, version);
    let body = body_definition(&operation.body, definitions);
    let (produced, consumed) = (produced_media(operation), consumed_media(operation));
    match version {
        Version::Two => {
            document.insert("produces", texts(produced));
            if !consumed.is_empty() {
                document.insert("consumes", texts(consumed));
            }
            document.insert("schemes", value!(["https"]));
            if let Some(name) = body {
                let schema = definitions.reference(&name);
                let required = !matches!(operation.body, Body::DeleteOptions);
                let mut body = value!({"name": "body", "in": "body", "schema": schema});
                if let (true, Some(map)) = (required, body.as_object_mut()) {
                    map.insert("required", true.into());
                }
                parameters.insert(0, body);
            }
        }
        Version::Three => {
            if let Some(name) = body {
                let content = content(consumed, &definitions.reference(&name));
                let mut body = value!({"content": content});
                let required = matches!(operation.body, Body::Object(_) | Body::Patch);
                if let (true, Some(map)) = (required, body.as_object_mut()) {
                    map.insert("required", true.into());
                }
                document.insert("requestBody", body);
            }
        }
    }
    if !parameters.is_empty() {
        document.insert("parameters", Value::Array(parameters));
    }
    document.insert("responses", responses(operation, produced, definitions));
    Value::Object(document)
}

fn responses(operation: &Operation, produced: &[&str], definitions: &Definitions) -> Value {
    let schema = match &operation.answer {
        Answer::Text(_) => Some(value!({"type": "string"})),
        answer => answer_definition(answer, definitions).map(|name| definitions.reference(&name)),
    };
    let mut responses = Map::new();
    for code in operation.codes {
        let reason = match code {
            201 => "Created",
            202 => "Accepted",
            _ => "OK",
        };
        let mut response = Map::new();
        response.insert("description", reason.into());
        match (&schema, definitions.version()) {
            (Some(schema), Version::Two) => {
                response.insert("schema", schema.clone());
            }
            (Some(schema), Version::Three) => {
                response.insert("content", content(produced, schema));
            }
            (None, _) => {}
        }
        responses.insert(code.to_string(), Value::Object(response));
    }
    responses.insert("401", value!({"description": "Unauthorized"}));
    Value::Object(responses)
}

fn content(media: &[&str], schema: &Value) -> Value {
    let entry = |media: &&str| ((*media).into(), value!({"schema": (schema.clone())}));
    Value::Object(media.iter().map(entry).collect())
}

fn produced_media(operation: &Operation) -> &'static [&'static str] {
    if operation.custom {
        return CUSTOM_MEDIA;
    }
    match operation.answer {
        Answer::Text(media) => media,
        Answer::ServerVersion => JSON_MEDIA,
        Answer::List(_) | Answer::WatchEvent => WATCH_MEDIA,
        Answer::Object(_) | Answer::Status | Answer::Definition(_) => MEDIA,
    }
}

fn consumed_media(operation: &Operation) -> &'static [&'static str] {
    match (&operation.body, &operation.answer) {
        (Body::Patch, _) if operation.custom => CUSTOM_PATCH_MEDIA,
        (Body::Patch, _) => PATCH_MEDIA,
        _ if operation.custom => CUSTOM_MEDIA,
        (_, Answer::Definition(_)) => MEDIA,
        (_, Answer::ServerVersion) => JSON_MEDIA,
        (_, Answer::Text(_)) if operation.action.is_empty() => &[],
        _ => &["*/*"],
    }
}

/// The definitions that an operation names.
fn named_definitions(
    operation: &Operation,
    definitions: &Definitions,
) -> impl Iterator<Item = String> {
    let body = body_definition(&operation.body, definitions);
    let answer = answer_definition(&operation.answer, definitions);
    body.into_iter().chain(answer)
}

fn body_definition(body: &Body, definitions: &Definitions) -> Option<String> {
    match body {
        Body::Nothing => None,
        Body::Object(target) => definitions.of_kind(target).map(str::to_owned),
        Body::Patch => Some(format!("{META}.Patch")),
        Body::DeleteOptions => Some(format!("{META}.DeleteOptions")),
    }
}

fn answer_definition(answer: &Answer, definitions: &Definitions) -> Option<String> {
    match answer {
        Answer::Text(_) => None,
        Answer::ServerVersion => Some(VERSION_INFO.to_owned()),
        Answer::Object(target) | Answer::List(target) => {
            definitions.of_kind(target).map(str::to_owned)
        }
        Answer::Status => Some(format!("{META}.Status")),
        Answer::WatchEvent => Some(format!("{META}.WatchEvent")),
        Answer::Definition(name) => Some(format!("{META}.{name}")),
    }
}

fn parameter_documents(parameters: &[Parameter], version: Version) -> Vec<Value> {
    let documents = parameters.iter().map(|it| it.document(version));
    documents.collect()
}

fn texts(list: &[&str]) -> Value {
    Value::Array(list.iter().map(|text| Value::from(*text)).collect())
}
