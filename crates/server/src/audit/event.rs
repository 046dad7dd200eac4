//! An audit event as text. Contract: `audit.k8s.io/v1` Event.

use auth::User;
use hyper::StatusCode;
use object::{Map, Value, json, value};

use super::policy::{Level, Stage};
use super::{Notes, Trail};
use crate::request::ResourcePath;

/// What an answer adds to an event.
#[derive(Default)]
pub(crate) struct Answered {
    pub code: u16,
    /// The Status that was answered, if it was one.
    pub status: Option<Map>,
    pub object: Option<Value>,
}

impl Answered {
    pub(crate) fn new(code: StatusCode) -> Answered {
        Answered {
            code: code.as_u16(),
            ..Answered::default()
        }
    }
}

/// The event of a stage, in one line without its end.
pub(crate) fn write(
    trail: &Trail,
    notes: &Notes,
    stage: Stage,
    now: &str,
    answered: Option<&Answered>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(b"{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\"");
    text("level", trail.decision.level.name(), &mut out);
    text("auditID", &trail.id, &mut out);
    text("stage", stage.name(), &mut out);
    text("requestURI", &trail.uri, &mut out);
    text("verb", trail.verb, &mut out);
    field("user", &user(trail.user.as_deref()), &mut out);
    if let Some(impersonated) = &notes.impersonated {
        field("impersonatedUser", &user(Some(impersonated)), &mut out);
    }
    if let Some(constraint) = notes.impersonation_constraint {
        let metadata = value!({"impersonationConstraint": constraint});
        field("authenticationMetadata", &metadata, &mut out);
    }
    let addresses: Vec<Value> = trail
        .addresses
        .iter()
        .map(|it| it.as_str().into())
        .collect();
    field("sourceIPs", &addresses.into(), &mut out);
    if !trail.user_agent.is_empty() {
        text("userAgent", &trail.user_agent, &mut out);
    }
    let request = notes.request.as_ref();
    if let Some(path) = &trail.path {
        let named = request.filter(|_| stage != Stage::RequestReceived);
        object_reference(path, named, &mut out);
    }
    if let Some(answered) = answered {
        let mut status = answered.status.clone().unwrap_or_default();
        status.remove("kind");
        status.remove("apiVersion");
        status.get_or_insert_with("metadata", || Map::new().into());
        status.insert("code", i64::from(answered.code).into());
        field("responseStatus", &status.into(), &mut out);
    }
    if stage != Stage::RequestReceived
        && trail.shows_request()
        && let Some(request) = request
    {
        field("requestObject", request, &mut out);
    }
    if let Some(object) = answered.and_then(|answered| answered.object.as_ref())
        && trail.decision.level == Level::RequestResponse
    {
        field("responseObject", object, &mut out);
    }
    text("requestReceivedTimestamp", &trail.received, &mut out);
    text("stageTimestamp", now, &mut out);
    if !notes.annotations.is_empty() {
        let mut annotations = Map::with_capacity(notes.annotations.len());
        for (name, value) in &notes.annotations {
            annotations.insert(name.as_ref(), value.as_str().into());
        }
        field("annotations", &annotations.into(), &mut out);
    }
    out.push(b'}');
    out
}

fn text(name: &str, value: &str, out: &mut Vec<u8>) {
    open(name, out);
    json::write_string(value, out);
}

fn field(name: &str, value: &Value, out: &mut Vec<u8>) {
    open(name, out);
    json::write(value, out);
}

fn open(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn user(user: Option<&User>) -> Value {
    let mut out = Map::new();
    let Some(user) = user else { return out.into() };
    out.insert("username", user.name.clone().into());
    if !user.uid.is_empty() {
        out.insert("uid", user.uid.clone().into());
    }
    let texts = |list: &[object::Text]| -> Value {
        let list: Vec<Value> = list.iter().map(|text| text.clone().into()).collect();
        list.into()
    };
    if !user.groups.is_empty() {
        out.insert("groups", texts(&user.groups));
    }
    if !user.extra.is_empty() {
        let mut extra = Map::new();
        for (key, values) in &user.extra {
            extra.insert(key.clone(), texts(values));
        }
        out.insert("extra", extra.into());
    }
    out.into()
}

/// What the path names, and what the body adds to it.
fn object_reference(path: &ResourcePath, request: Option<&Value>, out: &mut Vec<u8>) {
    let meta = |name: &str| {
        let value = request.and_then(|request| request.str_at(&["metadata", name]));
        value.unwrap_or_default()
    };
    let or = |own: &'_ str, name: &str| match own {
        "" => meta(name).to_owned(),
        own => own.to_owned(),
    };
    let fields = [
        ("resource", path.resource.clone()),
        ("namespace", or(&path.namespace, "namespace")),
        ("name", or(&path.name, "name")),
        ("uid", meta("uid").to_owned()),
        ("apiGroup", path.group.clone()),
        ("apiVersion", path.version.clone()),
        ("resourceVersion", meta("resourceVersion").to_owned()),
        ("subresource", path.subresource.clone()),
    ];
    open("objectRef", out);
    let mut separator = b'{';
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        out.push(separator);
        separator = b',';
        json::write_string(name, out);
        out.push(b':');
        json::write_string(value, out);
    }
    out.push(b'}');
}
