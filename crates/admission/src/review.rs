//! The question that a webhook gets and what its answer means.
//!
//! Contract: `apiserver/pkg/admission/plugin/webhook/request/admissionreview.go`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use object::field::quote;
use object::group::{GroupVersionKind, GroupVersionResource};
use object::{Map, Text, Value, json, value};

use crate::attributes::Attributes;
use crate::client::{CallError, Review, json_type, read_object};
use crate::webhook::Role;

const KIND: &str = "AdmissionReview";
const REVIEW: Review = Review {
    kind: KIND,
    versions: ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"],
};

/// A version of AdmissionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `admission.k8s.io/v1`.
    V1,
    /// `admission.k8s.io/v1beta1`, which checks less.
    V1Beta1,
}

impl Version {
    pub(crate) fn read(text: &str) -> Option<Version> {
        match text {
            "v1" => Some(Version::V1),
            "v1beta1" => Some(Version::V1Beta1),
            _ => None,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Version::V1 => "admission.k8s.io/v1",
            Version::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// The objects that a webhook is asked about, in the version that it asked for.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Their kind.
    pub kind: &'a GroupVersionKind,
    /// Their resource.
    pub resource: &'a GroupVersionResource,
    /// The object of the request.
    pub object: Option<&'a Map>,
    /// The object that is stored.
    pub old: Option<&'a Map>,
}

/// Writes a review.
pub fn write(version: Version, uid: &str, request: &Attributes<'_>, shown: Shown<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(b"{\"kind\":\"AdmissionReview\",\"apiVersion\":");
    json::write_string(version.api_version(), &mut out);
    out.extend_from_slice(b",\"request\":{\"uid\":");
    json::write_string(uid, &mut out);
    let mut field = |name: &str, value: &Value| {
        out.push(b',');
        json::write_string(name, &mut out);
        out.push(b':');
        json::write(value, &mut out);
    };
    let head = request_head(request, shown.kind, shown.resource);
    for (name, value) in &head {
        field(name, value);
    }
    let mut object = |name: &str, object: Option<&Map>| {
        out.push(b',');
        json::write_string(name, &mut out);
        out.push(b':');
        match object {
            Some(object) => write_object(object, &mut out),
            None => out.extend_from_slice(b"null"),
        }
    };
    object("object", shown.object);
    object("oldObject", shown.old);
    let dry_run: &[u8] = if request.dry_run { b"true" } else { b"false" };
    out.extend_from_slice(b",\"dryRun\":");
    out.extend_from_slice(dry_run);
    out.extend_from_slice(b",\"options\":");
    json::write(&request.options, &mut out);
    out.extend_from_slice(b"}}");
    out
}

/// Writes an object in the order in which its kind prints it.
pub(crate) fn write_object(object: &Map, out: &mut Vec<u8>) {
    const FIRST: [&str; 3] = ["kind", "apiVersion", "metadata"];
    let first = FIRST
        .iter()
        .filter_map(|key| Some((*key, object.get(key)?)));
    let rest = object
        .iter()
        .filter(|(key, _)| !FIRST.contains(&key.as_str()));
    let rest = rest.map(|(key, value)| (key.as_str(), value));
    let mut separator = b'{';
    for (key, value) in first.chain(rest) {
        out.push(separator);
        separator = b',';
        json::write_string(key, out);
        out.push(b':');
        json::write(value, out);
    }
    if object.is_empty() {
        out.push(b'{');
    }
    out.push(b'}');
}

/// A request as expressions see it.
pub fn request_value(
    request: &Attributes<'_>,
    kind: &GroupVersionKind,
    resource: &GroupVersionResource,
) -> Value {
    let head = request_head(request, kind, resource).into_iter();
    let mut value: Map = head
        .map(|(name, value)| (Text::from(name), value))
        .collect();
    value.insert("dryRun", Value::Bool(request.dry_run));
    value.insert("options", request.options.clone());
    Value::Object(value)
}

/// Everything about a request but its uid and its objects, in the order of upstream.
pub(crate) fn request_head(
    request: &Attributes<'_>,
    kind: &GroupVersionKind,
    resource: &GroupVersionResource,
) -> Vec<(&'static str, Value)> {
    let mut head = vec![
        ("kind", kind_value(kind)),
        ("resource", resource_value(resource)),
    ];
    let text = |name, value: &str, head: &mut Vec<(&'static str, Value)>| {
        if !value.is_empty() {
            head.push((name, Value::from(value)));
        }
    };
    text("subResource", request.subresource, &mut head);
    head.push(("requestKind", kind_value(&request.kind)));
    head.push(("requestResource", resource_value(&request.resource)));
    text("requestSubResource", request.subresource, &mut head);
    text("name", request.name, &mut head);
    text("namespace", request.namespace, &mut head);
    head.push(("operation", Value::from(request.operation.as_str())));
    head.push(("userInfo", request.user.clone()));
    head
}

fn kind_value(kind: &GroupVersionKind) -> Value {
    value!({
        "group": (kind.group.clone()),
        "version": (kind.version.clone()),
        "kind": (kind.kind.clone()),
    })
}

fn resource_value(resource: &GroupVersionResource) -> Value {
    value!({
        "group": (resource.group.clone()),
        "version": (resource.version.clone()),
        "resource": (resource.resource.clone()),
    })
}

/// What a webhook decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Whether the request may go on.
    pub allowed: bool,
    /// What to change about the object: a JSON patch, not parsed yet.
    pub patch: Vec<u8>,
    /// Why not, and how to say so.
    pub status: Option<Map>,
    /// Advice for the client.
    pub warnings: Vec<String>,
    /// Notes for the audit log.
    pub annotations: Vec<(Text, Text)>,
}

/// Why an answer is no verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is no review.
    #[error("failed to call webhook: {0}")]
    Call(#[from] CallError),
    /// It is a review that contradicts itself or the question.
    #[error("received invalid webhook response: {0}")]
    Invalid(String),
    /// It changes the object in a way that is not known.
    #[error("unsupported patch type {}", quote(.0))]
    PatchType(String),
}

/// Reads the answer to the review `uid`.
pub fn read(version: Version, uid: &str, role: Role, body: &[u8]) -> Result<Verdict, ReadError> {
    let review = read_object(body, REVIEW)?;
    let text = |field: &str| {
        review
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let invalid = |text: String| Err(ReadError::Invalid(text));
    let mut versions = [Version::V1, Version::V1Beta1].into_iter();
    if let Some(other) = versions.find(|it| *it != version && it.api_version() == api_version) {
        let [from, to] =
            [other, version].map(|it| it.api_version().replace("admission.k8s.io/", ""));
        return Err(CallError::Unreadable(format!(
            "converting ({from}.{KIND}) to ({to}.{KIND}): unknown conversion"
        ))
        .into());
    }
    let response = match review.get("response") {
        Some(response @ Value::Object(_)) => response,
        None | Some(Value::Null) => return invalid("webhook response was absent".to_owned()),
        Some(other) => return Err(mismatch("", other, "v1.AdmissionResponse").into()),
    };
    let answer = Response(response);
    let patch = answer.bytes("patch")?;
    let patch_type = answer.text("patchType")?;
    if version == Version::V1 {
        let found = answer.text("uid")?.unwrap_or_default();
        if found != uid {
            let (uid, found) = (quote(uid), quote(found));
            return invalid(format!("expected response.uid={uid}, got {found}"));
        }
        if (kind, api_version) != (KIND, version.api_version()) {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            return invalid(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got \
                 {group}/{version}, Kind={kind}"
            ));
        }
        check_patch(role, &patch, patch_type).map_err(ReadError::Invalid)?;
    }
    if let (Role::Mutating, Some(other)) = (role, patch_type.filter(|it| *it != "JSONPatch"))
        && changes_anything(&patch)
    {
        return Err(ReadError::PatchType(other.to_owned()));
    }
    Ok(Verdict {
        allowed: answer.flag("allowed")?,
        patch: if role == Role::Mutating {
            patch
        } else {
            Vec::new()
        },
        status: answer.map("status")?,
        warnings: answer.texts("warnings")?,
        annotations: answer.pairs("auditAnnotations")?,
    })
}

/// Whether a patch has steps; what is none is found out when it is applied.
fn changes_anything(patch: &[u8]) -> bool {
    match object::json::parse(patch) {
        Ok(Value::Array(steps)) => !steps.is_empty(),
        _ => false,
    }
}

fn check_patch(role: Role, patch: &[u8], patch_type: Option<&str>) -> Result<(), String> {
    let text = match (role, patch.is_empty(), patch_type) {
        (Role::Validating, false, _) => "validating webhook may not return response.patch",
        (Role::Validating, true, Some(_)) => "validating webhook may not return response.patchType",
        (Role::Mutating, false, None) => {
            "webhook returned response.patch but not response.patchType"
        }
        (Role::Mutating, true, Some(_)) => {
            "webhook returned response.patchType but not response.patch"
        }
        (Role::Mutating, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        _ => return Ok(()),
    };
    Err(text.to_owned())
}

/// The `response` of a review, whose fields may be of any type.
struct Response<'a>(&'a Value);

fn mismatch(field: &str, found: &Value, wanted: &str) -> CallError {
    let found = json_type(found);
    let place = match field {
        "" => "AdmissionReview.response".to_owned(),
        field => format!("AdmissionResponse.response.{field}"),
    };
    CallError::Unreadable(format!(
        "json: cannot unmarshal {found} into Go struct field {place} of type {wanted}"
    ))
}

impl<'a> Response<'a> {
    fn field(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn flag(&self, name: &str) -> Result<bool, CallError> {
        match self.field(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| mismatch(name, value, "bool")),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, CallError> {
        let Some(value) = self.field(name) else {
            return Ok(None);
        };
        let text = value
            .as_str()
            .ok_or_else(|| mismatch(name, value, "string"))?;
        Ok(Some(text))
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, CallError> {
        let text = self.text(name)?.unwrap_or_default();
        STANDARD
            .decode(text)
            .map_err(|error| CallError::Unreadable(format!("illegal base64 data: {error}")))
    }

    fn map(&self, name: &str) -> Result<Option<Map>, CallError> {
        match self.field(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map.clone())),
            Some(other) => Err(mismatch(name, other, "v1.Status")),
        }
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, CallError> {
        let Some(value) = self.field(name) else {
            return Ok(Vec::new());
        };
        let list = value.as_array();
        let list = list.ok_or_else(|| mismatch(name, value, "[]string"))?;
        let texts = list.iter().map(|item| match item.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(mismatch(name, item, "string")),
        });
        texts.collect()
    }

    fn pairs(&self, name: &str) -> Result<Vec<(Text, Text)>, CallError> {
        let Some(value) = self.field(name) else {
            return Ok(Vec::new());
        };
        let map = value.as_object();
        let map = map.ok_or_else(|| mismatch(name, value, "map[string]string"))?;
        let pairs = map.iter().map(|(key, value)| match value.as_str() {
            Some(text) => Ok((key.clone(), text.into())),
            None => Err(mismatch(name, value, "string")),
        });
        pairs.collect()
    }
}

/// The Status that a refusal is answered with.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    /// The status code that the webhook chose; zero for the one that goes with the reason.
    pub code: i64,
    /// The machine-readable reason, if it gave one.
    pub reason: Text,
    /// The message.
    pub message: String,
    /// What else it says.
    pub details: Option<Value>,
}

impl Denial {
    /// The refusal by the webhook `name`, given the status that it answered with.
    pub fn by_webhook(name: &str, status: Option<Map>) -> Denial {
        const LOWEST: i64 = 400;
        let status = status.unwrap_or_default();
        let text = |field: &str| {
            status
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let denied = format!("admission webhook {} denied the request", quote(name));
        let reason = Text::from(text("reason"));
        let message = match (text("message"), reason.as_str()) {
            ("", "") => format!("{denied} without explanation"),
            ("", reason) => format!("{denied}: {reason}"),
            (message, _) => format!("{denied}: {message}"),
        };
        let code = status.get("code").and_then(Value::as_int).unwrap_or(0);
        let details = status.get("details").filter(|details| !details.is_null());
        Denial {
            code: code.max(LOWEST),
            reason,
            message,
            details: details.cloned(),
        }
    }
}

#[cfg(test)]
mod tests;
