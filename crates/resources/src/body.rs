//! Bodies: from bytes to an object of the kind that an endpoint serves.

use bytes::Bytes;
use kinds::{Catalogue, Kind, Reading};
use object::field::{FieldError, Path};
use object::{Map, Text, Value, json, yaml};
use schema::TypeId;
use schema::decode::{self, TypeError, Unknown};
use schema::protobuf::read_envelope;

use crate::Request;
use crate::error::{Error, Subject};
use crate::options::FieldValidation;

/// The form of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
    /// Protobuf in upstream's envelope.
    Protobuf,
}

/// A request's body.
#[derive(Clone, Debug)]
pub struct Body {
    /// Its form.
    pub media: Media,
    /// Its bytes.
    pub bytes: Bytes,
}

/// How much of a body that cannot be read is shown.
const SUMMARY_BYTES: usize = 30;

/// A body that has been read.
pub(crate) struct Parsed {
    /// What it asks for.
    pub wanted: Wanted,
    /// What is wrong if a custom object says that it is of another kind. That is for later: first
    /// its name and its version have to be right.
    pub wrong_type: Option<Error>,
}

/// What somebody wants an object to be.
#[derive(Clone)]
pub(crate) struct Wanted {
    /// The object, without managed fields.
    pub object: Map,
    /// What the client says about managed fields.
    pub managed_fields: Option<Value>,
    /// Whether the object has blanks, as [`kinds::Reading`] says.
    pub has_blanks: bool,
}

impl Wanted {
    /// An object that the server itself wants.
    pub(crate) fn by_server(object: Map) -> Wanted {
        Wanted {
            object,
            managed_fields: None,
            has_blanks: false,
        }
    }

    /// Lets somebody look at the object as its JSON shows it, where nobody can own a blank.
    pub(crate) fn as_shown<T>(&mut self, kind: &Kind, look: impl FnOnce(&Value) -> T) -> T {
        if self.has_blanks {
            return look(&Value::Object(kind.show(self.object.clone())));
        }
        let object = Value::Object(std::mem::take(&mut self.object));
        let seen = look(&object);
        if let Value::Object(object) = object {
            self.object = object;
        }
        seen
    }
}

/// Reads a body as an object of the endpoint's kind, with defaults filled in.
pub(crate) fn read(
    catalogue: &Catalogue,
    request: &Request<'_>,
    body: &Body,
) -> Result<Parsed, Error> {
    let (kind, validation) = (request.kind, request.options.validation);
    let unreadable = |detail: String| {
        Error::BadRequest(format!(
            "the object provided is unrecognized (must be of type {}): {detail} ({})",
            kind.kind,
            summary(&body.bytes)
        ))
    };
    let (mut value, strange) = parse(body, &kind.kind, kind.root).map_err(unreadable)?;
    // Nothing at all is an object of which everything is left out.
    if value.is_null() {
        value = Value::Object(Map::new());
    }
    let Value::Object(object) = value else {
        let found = json_type(&value);
        let text = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go \
             value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
             string \"json:\\\"kind,omitempty\\\"\" }}"
        );
        return Err(unreadable(text));
    };
    let refused = |detail: String| cannot_be_handled(&kind.kind, &kind.version, kind, &detail);
    named_type(kind, &object).map_err(unreadable)?;
    if lacks_kind(kind, &object) {
        let detail = missing_kind(&String::from_utf8_lossy(&body.bytes));
        // Only a reader that is not strict knows by then what it was to read.
        return Err(match validation {
            FieldValidation::Ignore => refused(detail),
            FieldValidation::Warn | FieldValidation::Strict => unreadable(detail),
        });
    }
    check_type(catalogue, kind, &object)?;
    let wrong_type = custom_type_error(request, &object);
    let (wanted, mut unknown) =
        into_shape(kind, object, validation).map_err(|error| refused(error.to_string()))?;
    if kind.is_custom() {
        // These are sorted, and come after what the reader of the document noticed.
        unknown.splice(0..0, strange);
    } else {
        // What is not known is not looked at, so that it stands twice goes unnoticed.
        let is_known = |twice: &String| match twice.strip_prefix("duplicate ") {
            Some(field) => !unknown
                .iter()
                .any(|it| it.strip_prefix("unknown ") == Some(field)),
            None => true,
        };
        let strange: Vec<String> = strange.into_iter().filter(is_known).collect();
        unknown.extend(strange);
        if body.media == Media::Json && unknown.len() > 1 {
            unknown = decode::in_document_order(&body.bytes, unknown);
        }
    }
    if wrong_type.is_some() {
        unknown.clear();
    }
    if validation == FieldValidation::Strict && !unknown.is_empty() {
        let mut detail = format!("strict decoding error: {}", unknown.join(", "));
        if body.media == Media::Yaml && unknown.iter().any(|text| text.starts_with("line ")) {
            detail = format!("strict decoding error: {}", in_yaml(&unknown));
        }
        return Err(refused(detail));
    }
    if validation == FieldValidation::Warn {
        request.warnings.add(unknown);
    }
    Ok(Parsed { wanted, wrong_type })
}

/// Reads an object as its kind, as [`into_kind`] does, and takes its managed fields out: what
/// clients say about them is judged elsewhere. Tells which fields the kind does not know.
pub(crate) fn into_shape(
    kind: &Kind,
    object: Map,
    validation: FieldValidation,
) -> Result<(Wanted, Vec<String>), TypeError> {
    let Reading {
        mut object,
        unknown,
        has_blanks,
    } = into_kind(kind, object, validation)?;
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let managed_fields = metadata.and_then(|metadata| metadata.remove("managedFields"));
    let wanted = Wanted {
        object,
        managed_fields,
        has_blanks,
    };
    Ok((wanted, unknown))
}

/// Gives an object the types and defaults of its kind.
pub(crate) fn into_kind(
    kind: &Kind,
    object: Map,
    validation: FieldValidation,
) -> Result<Reading, TypeError> {
    let unknown = match validation {
        FieldValidation::Ignore => Unknown::Drop,
        FieldValidation::Warn | FieldValidation::Strict => Unknown::Report,
    };
    kind.read(object, unknown)
}

/// Reads a body of the published definition `name`, whose kind is checked elsewhere.
pub(crate) fn parse_plain(body: &Body, name: &str) -> Result<Value, Error> {
    match body.media {
        Media::Protobuf => read_message(&body.bytes, name),
        Media::Json => {
            json::parse(&body.bytes).map_err(|error| Error::BadRequest(json_error(error)))
        }
        Media::Yaml => {
            yaml::parse(&body.bytes).map_err(|error| Error::BadRequest(error.to_string()))
        }
    }
}

/// Reads a protobuf body as the published definition `name`.
pub fn read_message(bytes: &[u8], name: &str) -> Result<Value, Error> {
    let catalogue = Catalogue::builtin();
    let root = catalogue.definition(name);
    let root = root.ok_or_else(|| Error::Internal(format!("{name} is not defined")))?;
    let kind = name.rsplit('.').next().unwrap_or_default();
    parse_protobuf(bytes, kind, root).map_err(Error::BadRequest)
}

/// Checks that the fields of `value` have the types that the published definition `name` gives
/// them. Fields that it does not know may be anything.
pub fn check_message(value: Value, name: &str) -> Result<(), Error> {
    let catalogue = Catalogue::builtin();
    let root = catalogue.definition(name);
    let root = root.ok_or_else(|| Error::Internal(format!("{name} is not defined")))?;
    decode::decode(catalogue.types(), root, value, Unknown::Drop)
        .map(|_| ())
        .map_err(|error| Error::BadRequest(error.to_string()))
}

/// A message of another kind than `kind` comes back as nothing but what it says that it is.
fn parse_protobuf(bytes: &[u8], kind: &str, root: TypeId) -> Result<Value, String> {
    let envelope = read_envelope(bytes).map_err(|error| error.to_string())?;
    let mut value = if envelope.kind == kind || envelope.kind.is_empty() {
        let types = Catalogue::builtin().types();
        schema::protobuf::decode(types, root, envelope.raw).map_err(|error| error.to_string())?
    } else {
        Value::Object(Map::new())
    };
    if let Value::Object(object) = &mut value {
        object.insert("apiVersion", Value::String(envelope.api_version));
        object.insert("kind", Value::String(envelope.kind));
    }
    Ok(value)
}

fn parse(body: &Body, kind: &str, root: TypeId) -> Result<(Value, Vec<String>), String> {
    match body.media {
        Media::Json => {
            let (value, twice) = json::parse_merging(&body.bytes).map_err(json_error)?;
            let twice = twice
                .into_iter()
                .map(|path| format!("duplicate field \"{path}\""));
            Ok((value, twice.collect()))
        }
        Media::Yaml => yaml::parse_strict(&body.bytes).map_err(|error| error.to_string()),
        Media::Protobuf => parse_protobuf(&body.bytes, kind, root).map(|value| (value, Vec::new())),
    }
}

fn json_error(error: json::Error) -> String {
    format!("couldn't get version/kind; json parse error: {error}")
}

/// What a body says it is, where that is not the endpoint's kind.
struct Stranger<'a> {
    kind: &'a str,
    api_version: &'a str,
    /// The kind, if there is one of that name.
    known: Option<&'a Kind>,
    /// The version of a type that is no kind of its own, such as a list.
    other: Option<&'a str>,
}

impl<'a> Stranger<'a> {
    /// `None` if the body says that it is of the endpoint's kind, or does not say.
    fn of(
        catalogue: &'a Catalogue,
        kind: &'a Kind,
        api_version: &'a str,
        object: &'a Map,
    ) -> Option<Stranger<'a>> {
        let text = |name, default: &'a str| match object.get(name).and_then(Value::as_str) {
            None | Some("") => default,
            Some(text) => text,
        };
        let found = (text("kind", &kind.kind), text("apiVersion", api_version));
        if found == (kind.kind.as_str(), api_version) {
            return None;
        }
        let (group, version) = found.1.split_once('/').unwrap_or(("", found.1));
        // Definitions and API services are read by servers of their own, which know nothing else.
        let is_read_here = scheme(&kind.group) == scheme(group);
        let known = catalogue
            .by_kind(group, version, found.0)
            .filter(|_| is_read_here)
            .map(|known| &**known);
        Some(Stranger {
            kind: found.0,
            api_version: found.1,
            known,
            other: other_type(catalogue, group, version, found.0).filter(|_| is_read_here),
        })
    }

    /// Why it cannot be read as `kind`.
    fn reason(&self, kind: &Kind) -> String {
        let version = self
            .known
            .map(|known| known.version.as_str())
            .or(self.other);
        match version {
            Some(version) => unknown_conversion(version, self.kind, kind),
            None => format!(
                "no kind \"{}\" is registered for version \"{}\" in scheme \"{}\"",
                self.kind,
                self.api_version,
                scheme(&kind.group)
            ),
        }
    }
}

/// Where upstream keeps the types that the server of a group reads.
fn scheme(group: &str) -> &'static str {
    match group {
        "apiextensions.k8s.io" => "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
        "apiregistration.k8s.io" => "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
        _ => "pkg/api/legacyscheme/scheme.go:30",
    }
}

/// The version of a type that can be named in bodies though nothing of it is ever stored.
fn other_type<'a>(
    catalogue: &Catalogue,
    group: &str,
    version: &'a str,
    kind: &str,
) -> Option<&'a str> {
    let mut served = catalogue
        .kinds()
        .iter()
        .filter(|known| known.group == group && known.version == version && !known.is_custom());
    match kind {
        "DeleteOptions" | "ListOptions" | "GetOptions" | "CreateOptions" | "UpdateOptions"
        | "PatchOptions" => served.next().map(|_| "v1"),
        "List" | "Status" | "APIVersions" | "APIGroup" | "APIGroupList" | "APIResourceList" => {
            (group.is_empty() && version == "v1").then_some("v1")
        }
        _ => served
            .find(|known| known.list_kind == kind)
            .map(|_| version),
    }
}

/// Mistakes of a YAML document: those of its text are told as one.
fn in_yaml(mistakes: &[String]) -> String {
    let (lines, others): (Vec<&String>, Vec<&String>) =
        mistakes.iter().partition(|text| text.starts_with("line "));
    let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
    let mut all = vec![format!("yaml: unmarshal errors:{lines}")];
    all.extend(others.into_iter().cloned());
    all.join(", ")
}

/// Checks that what a body says it is can be read at all.
fn named_type(kind: &Kind, object: &Map) -> Result<(), String> {
    check_texts(object)?;
    if !kind.is_custom()
        && let Some(version) = object.get("apiVersion").and_then(Value::as_str)
        && version.matches('/').count() > 1
    {
        return Err(format!("unexpected GroupVersion string: {version}"));
    }
    Ok(())
}

/// Whether an object does not say what it is, as those of custom kinds must.
pub(crate) fn lacks_kind(kind: &Kind, object: &Map) -> bool {
    let said = object.get("kind").and_then(Value::as_str);
    kind.is_custom() && said.is_none_or(str::is_empty)
}

/// What is wrong with a document that does not say what it is.
pub(crate) fn missing_kind(document: &str) -> String {
    format!("Object 'Kind' is missing in '{document}'")
}

/// Checks that kind and version are texts.
pub fn check_texts(object: &Map) -> Result<(), String> {
    for key in ["apiVersion", "kind"] {
        match object.get(key) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                return Err(format!(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into \
                     Go struct field .{key} of type string",
                    json_type(other)
                ));
            }
        }
    }
    Ok(())
}

/// Checks that the body says it is of the endpoint's kind, or does not say.
fn check_type(catalogue: &Catalogue, kind: &Kind, object: &Map) -> Result<(), Error> {
    let expected = kind.api_version();
    if kind.is_custom() {
        let found = object.get("apiVersion").and_then(Value::as_str);
        let found = found.unwrap_or_default();
        if found == expected {
            return Ok(());
        }
        return Err(Error::BadRequest(format!(
            "the API version in the data ({found}) does not match the expected API version \
             ({expected})"
        )));
    }
    let Some(stranger) = Stranger::of(catalogue, kind, &expected, object) else {
        return Ok(());
    };
    let found = stranger.api_version;
    if stranger.known.is_some_and(|known| known.kind == kind.kind) {
        return Err(Error::BadRequest(format!(
            "the API version in the data ({found}) does not match the expected API version \
             ({expected})"
        )));
    }
    let version = found.rsplit('/').next().unwrap_or_default();
    Err(cannot_be_handled(
        stranger.kind,
        version,
        kind,
        &stranger.reason(kind),
    ))
}

/// What is wrong with an object for the endpoint of a custom kind that says it is of another: it
/// is an invalid object of its own kind. A status is taken from whatever it stands in.
pub(crate) fn custom_type_error(request: &Request<'_>, object: &Map) -> Option<Error> {
    let kind = request.kind;
    if !kind.is_custom() || request.subresource == "status" {
        return None;
    }
    let text = |value: Option<&Value>| -> Text {
        value.and_then(Value::as_str).unwrap_or_default().into()
    };
    let (found_kind, found_version) = (text(object.get("kind")), text(object.get("apiVersion")));
    let root = Path::root();
    let mut errors = Vec::new();
    for (key, found, wanted) in [
        ("kind", &found_kind, &kind.kind),
        ("apiVersion", &found_version, &kind.api_version()),
    ] {
        if found != wanted {
            let value = Value::String(found.clone());
            let detail = format!("must be {wanted}");
            errors.push(FieldError::invalid(&root.field(key), &value, detail));
        }
    }
    if errors.is_empty() {
        return None;
    }
    let name = object.get("metadata").and_then(|meta| meta.get("name"));
    let group = found_version.split_once('/').map_or("", |(group, _)| group);
    Some(Error::Invalid {
        subject: Subject {
            group: group.into(),
            resource: found_kind,
            name: text(name),
        },
        errors,
    })
}

/// Checks that a patch did not make another kind of the object.
pub(crate) fn check_patched_type(
    catalogue: &Catalogue,
    kind: &Kind,
    object: &Map,
) -> Result<(), String> {
    check_texts(object)?;
    let expected = kind.api_version();
    let stranger = Stranger::of(catalogue, kind, &expected, object);
    stranger.map_or(Ok(()), |stranger| Err(stranger.reason(kind)))
}

fn cannot_be_handled(found: &str, version: &str, kind: &Kind, detail: &str) -> Error {
    Error::BadRequest(format!(
        "{found} in version \"{version}\" cannot be handled as a {}: {detail}",
        kind.kind
    ))
}

/// Why one kind cannot be read as another.
fn unknown_conversion(version: &str, kind: &str, to: &Kind) -> String {
    format!(
        "converting ({version}.{kind}) to ({}.{}): unknown conversion",
        package(&to.group),
        to.kind
    )
}

/// What upstream calls the types of a group, which some messages show.
pub fn package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        _ => group.split('.').next().unwrap_or_default(),
    }
}

fn summary(bytes: &[u8]) -> String {
    match bytes {
        [] => "<empty>".to_owned(),
        [b'{', ..] => {
            let shown = &bytes[..bytes.len().min(SUMMARY_BYTES)];
            let dots = if bytes.len() > SUMMARY_BYTES {
                " ..."
            } else {
                ""
            };
            format!("{}{dots}", String::from_utf8_lossy(shown))
        }
        _ => {
            let shown = bytes.iter().take(SUMMARY_BYTES);
            let mut text: String = shown.map(|byte| format!("{byte:02x}")).collect();
            if bytes.len() > SUMMARY_BYTES {
                text.push_str(" ...");
            }
            text
        }
    }
}

/// What Go's decoder calls a value.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
