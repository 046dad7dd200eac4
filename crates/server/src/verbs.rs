//! The verbs of the API: from a parsed request to `resources`, and back to an answer.

mod delete_options;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Response, StatusCode};
use kinds::Kind;
use resources::body::Body as RequestBody;
use resources::error::Subject;
use resources::options::{DeleteOptions, Verb, WriteOptions, manager_of_user_agent};
use resources::{
    Deleted, Error, PatchType, Request, Warnings, Written, WrittenObject, is_connection,
};

use crate::answer::{Details, Failure};
use crate::body::Body;
use crate::handle::Call;
use crate::negotiate::{self, Offer, Representation, Stream};
use crate::request::ResourcePath;
use crate::{connect, render, streams};

/// No body is larger than this.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Answers a request for a resource.
pub(crate) async fn answer(
    call: &mut Call,
    kind: &Arc<Kind>,
    verb: &str,
    path: &ResourcePath,
) -> Response<Body> {
    let warnings = Warnings::default();
    // A custom resource warns whatever is asked of it, a built-in one of what it offers.
    if kind.is_custom() {
        warn_of_deprecation(kind, &warnings);
    }
    let answered = dispatch(call, kind, verb, path, &warnings).await;
    let mut answer = answered.unwrap_or_else(|failure| call.fail(failure));
    add_warnings(&mut answer, &warnings.take());
    if let Some(trail) = &call.trail {
        trail.admitted(warnings.annotations());
    }
    answer
}

fn warn_of_deprecation(kind: &Kind, warnings: &Warnings) {
    if let Some(deprecation) = kind.deprecation() {
        warnings.add([deprecation.to_owned()]);
        warnings.annotate("k8s.io/deprecated".to_owned(), "true".to_owned());
    }
}

async fn dispatch(
    call: &mut Call,
    kind: &Arc<Kind>,
    verb: &str,
    path: &ResourcePath,
    warnings: &Warnings,
) -> Result<Response<Body>, Failure> {
    // The deprecated paths of watches lead to objects, not to parts of them.
    if path.watch_prefix && !path.subresource.is_empty() && !kind.is_custom() {
        return Err(Failure::no_such_resource());
    }
    if is_connection(kind, &path.subresource) {
        return Box::pin(connect::answer(call, kind, verb, path, warnings)).await;
    }
    check_namespace_name(kind, verb, path)?;
    let operation = if kind.is_custom() {
        custom_operation(kind, verb, path)?
    } else {
        let operation = operation(call, kind, verb, path)?;
        warn_of_deprecation(kind, warnings);
        operation
    };
    if operation == Operation::Patch && !kind.is_custom() {
        // What the path takes at all is looked at before anything that is said about the answer.
        check_patch_type(call)?;
    }
    let stream = match operation {
        Operation::Watch | Operation::List => Stream::Offered,
        _ => Stream::No,
    };
    let offer = Offer {
        tables: has_tables(kind, &path.subresource),
        metadata: true,
        plain_text: false,
        protobuf: !kind.is_custom(),
        router: !kind.is_custom(),
        stream,
    };
    let mut representation = negotiate::accept(call.header(header::ACCEPT), offer)?;
    let user_agent = call.header(header::USER_AGENT).unwrap_or_default();
    representation.pretty =
        negotiate::is_pretty(call.query.text("pretty"), representation.pretty, user_agent);
    // In boxes: what a write keeps is large, and would be copied at each level on the way up.
    match operation {
        Operation::Get => get(call, kind, path, representation).await,
        Operation::List => list(call, kind, path, representation).await,
        Operation::Watch => streams::watch(call, kind, path, representation).await,
        Operation::Create => Box::pin(create(call, kind, path, representation, warnings)).await,
        Operation::Update => Box::pin(update(call, kind, path, representation, warnings)).await,
        Operation::Patch => Box::pin(patch(call, kind, path, representation, warnings)).await,
        Operation::Delete => Box::pin(delete(call, kind, path, representation, warnings)).await,
        Operation::DeleteCollection => {
            Box::pin(delete_collection(
                call,
                kind,
                path,
                representation,
                warnings,
            ))
            .await
        }
    }
}

/// Nothing can be looked for in a namespace with such a name. Writes find out that it is not there.
fn check_namespace_name(kind: &Kind, verb: &str, path: &ResourcePath) -> Result<(), Failure> {
    let is_dots = matches!(path.namespace.as_str(), "." | "..");
    if !kind.namespaced || !is_dots || matches!(verb, "create" | "update" | "patch") {
        return Ok(());
    }
    let mut key = format!("/{}/{}", kind.resource, path.namespace);
    if !path.name.is_empty() {
        key = format!("{key}/{}", path.name);
    }
    Err(Error::BadRequest(format!("invalid key: {key:?}")).into())
}

/// Whether an object or a part of it can be shown as a table. What is answered and never stored
/// cannot, and upstream has not taught every part.
fn has_tables(kind: &Kind, subresource: &str) -> bool {
    const STATUS_HAS_NONE: [&str; 3] =
        ["apiservices", "customresourcedefinitions", "resourceclaims"];
    match subresource {
        _ if kind.is_custom() => true,
        "" => kind.verbs.iter().any(|verb| verb != "create"),
        "status" => !STATUS_HAS_NONE.contains(&kind.resource.as_str()),
        _ => subresource == "scale",
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

/// What the method does on the path of a custom resource, which is stricter about verbs than about
/// paths: whoever names an object when creating another, or more than a subresource, is heard.
fn custom_operation(kind: &Kind, verb: &str, path: &ResourcePath) -> Result<Operation, Failure> {
    let mut subject = Subject {
        group: kind.group.clone(),
        resource: kind.resource.clone(),
        name: path.name.as_str().into(),
    };
    let nested = !path.subresource.is_empty();
    if nested && kind.subresource(&path.subresource).is_none() {
        return Err(Error::NotFound(subject).into());
    }
    match verb {
        "get" => Ok(Operation::Get),
        "update" if path.name.is_empty() => {
            Err(Error::BadRequest("name must be provided".to_owned()).into())
        }
        "update" => Ok(Operation::Update),
        "patch" => Ok(Operation::Patch),
        "list" if !nested => Ok(Operation::List),
        "watch" if !nested => Ok(Operation::Watch),
        "create" if !nested => Ok(Operation::Create),
        "delete" if !nested => Ok(Operation::Delete),
        "deletecollection" if !nested => Ok(Operation::DeleteCollection),
        other => {
            subject.name = Default::default();
            let whole = format!("{}.{}", kind.resource, kind.group);
            let text = format!("{other} is not supported on resources of kind \"{whole}\"");
            Err(Failure::new(405, "MethodNotAllowed", text).about(subject))
        }
    }
}

/// What the method does on this path, if the built-in resource offers it.
fn operation(
    call: &Call,
    kind: &Kind,
    verb: &str,
    path: &ResourcePath,
) -> Result<Operation, Failure> {
    let offered: &[object::Text] = if path.subresource.is_empty() {
        &kind.verbs
    } else {
        match kind.subresource(&path.subresource) {
            Some(nested) if path.rest.is_empty() => &nested.verbs,
            _ => return Err(Failure::no_such_resource()),
        }
    };
    // A path in a namespace names nothing cluster-scoped.
    let namespaced_path = !path.namespace.is_empty() && path.resource != "namespaces";
    if namespaced_path && !kind.namespaced {
        return Err(Failure::no_such_resource());
    }
    // Kinds that can only be created have no objects to name.
    let only_created = kind.verbs.iter().all(|verb| verb == "create");
    if only_created && !path.name.is_empty() && path.subresource.is_empty() {
        return Err(Failure::no_such_resource());
    }
    let all_namespaces = kind.namespaced && path.namespace.is_empty();
    if all_namespaces && (path.is_named || only_created) {
        return Err(Failure::no_such_resource());
    }
    let (operation, name) = match (verb, &call.method) {
        (_, &Method::HEAD) => return Err(Failure::method_not_allowed()),
        ("get", _) => (Operation::Get, "get"),
        ("list", _) => (Operation::List, "list"),
        ("watch", &Method::GET) => (Operation::Watch, "watch"),
        ("create", _) if path.name.is_empty() || !path.subresource.is_empty() => {
            (Operation::Create, "create")
        }
        ("update", _) if !path.name.is_empty() => (Operation::Update, "update"),
        ("patch", _) if !path.name.is_empty() => (Operation::Patch, "patch"),
        ("delete", _) => (Operation::Delete, "delete"),
        ("deletecollection", _) => (Operation::DeleteCollection, "deletecollection"),
        _ => return Err(Failure::method_not_allowed()),
    };
    let everywhere = matches!(operation, Operation::List | Operation::Watch);
    let is_offered = offered.iter().any(|offered| offered == name);
    if !is_offered || (all_namespaces && !everywhere) {
        return Err(Failure::method_not_allowed());
    }
    Ok(operation)
}

async fn get(
    call: &Call,
    kind: &Arc<Kind>,
    path: &ResourcePath,
    representation: Representation,
) -> Result<Response<Body>, Failure> {
    let resources = &call.state.resources;
    if call.query.flag("export") {
        let text = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Error::BadRequest(text.to_owned()).into());
    }
    let version = call.query.version()?;
    if path.subresource == "scale" {
        let scale = resources.scale(kind, &path.namespace, &path.name).await?;
        return render::virtual_object(call, kind, scale, representation);
    }
    let record = resources
        .get(kind, &path.namespace, &path.name, version)
        .await?;
    render::stored(
        call,
        kind,
        &record.value,
        Some(record.revision),
        representation,
    )
}

async fn list(
    call: &Call,
    kind: &Arc<Kind>,
    path: &ResourcePath,
    representation: Representation,
) -> Result<Response<Body>, Failure> {
    let options = call.query.list_options(kind)?;
    let listed = call
        .state
        .resources
        .list(kind, &path.namespace, &options)
        .await?;
    render::list(call, kind, listed, representation)
}

async fn create(
    call: &mut Call,
    kind: &Arc<Kind>,
    path: &ResourcePath,
    representation: Representation,
    warnings: &Warnings,
) -> Result<Response<Body>, Failure> {
    let body = read_body(call).await?;
    let options = write_options(call, Verb::Create)?;
    let mut request = request(call, kind, path, &options, warnings);
    if kind.is_custom() {
        // The new object is named by its body alone.
        request.name = "";
    }
    let written = call.state.resources.create(&request, &body).await?;
    respond_written(call, kind, written, representation)
}

async fn update(
    call: &mut Call,
    kind: &Arc<Kind>,
    path: &ResourcePath,
    representation: Representation,
    warnings: &Warnings,
) -> Result<Response<Body>, Failure> {
    let bytes = read_bytes(call).await?;
    // An update looks at its options before it looks at what its body is; a create does not.
    let options = write_options(call, Verb::Update)?;
    let media = negotiate::body_media(call.header(header::CONTENT_TYPE))?;
    let body = RequestBody { media, bytes };
    let request = request(call, kind, path, &options, warnings);
    let resources = &call.state.resources;
    let written = if path.subresource == "scale" {
        resources.update_scale(&request, &body).await?
    } else {
        resources.update(&request, &body).await?
    };
    respond_written(call, kind, written, representation)
}

async fn patch(
    call: &mut Call,
    kind: &Arc<Kind>,
    path: &ResourcePath,
    representation: Representation,
    warnings: &Warnings,
) -> Result<Response<Body>, Failure> {
    let patch_type = patch_type(
        patch_media(call),
        kind,
        call.state.resources.has_server_side_apply(),
    )?;
    if path.name.is_empty() {
        return Err(Error::BadRequest("name must be provided".to_owned()).into());
    }
    let bytes = read_bytes(call).await?;
    let body = RequestBody {
        media: resources::body::Media::Json,
        bytes,
    };
    let verb = if patch_type == PatchType::Apply {
        Verb::Apply
    } else {
        Verb::Patch
    };
    let options = write_options(call, verb)?;
    let request = request(call, kind, path, &options, warnings);
    let resources = &call.state.resources;
    let written = match (patch_type, path.subresource.as_str()) {
        (_, "scale") => resources.patch_scale(&request, patch_type, &body).await?,
        (PatchType::Apply, _) => resources.apply(&request, &body).await?,
        _ => resources.patch(&request, patch_type, &body).await?,
    };
    respond_written(call, kind, written, representation)
}

/// What a patch says it is.
fn patch_media(call: &Call) -> &str {
    let content_type = call.header(header::CONTENT_TYPE).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Refuses what no patch of a built-in kind can be.
fn check_patch_type(call: &Call) -> Result<(), Failure> {
    if PatchType::of_media_type(patch_media(call)).is_some() {
        return Ok(());
    }
    let failure = Failure::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
    Err(failure.about(Default::default()))
}

/// The patch type of a content type, if it is switched on and the kind takes it.
fn patch_type(
    content_type: &str,
    kind: &Kind,
    server_side_apply: bool,
) -> Result<PatchType, Failure> {
    let found = PatchType::of_media_type(content_type);
    let takes = |wanted| match wanted {
        PatchType::Apply => server_side_apply,
        PatchType::Strategic => !kind.is_custom(),
        PatchType::Json | PatchType::Merge => true,
    };
    match found {
        Some(patch_type) if takes(patch_type) => Ok(patch_type),
        _ => {
            let all = [
                PatchType::Json,
                PatchType::Merge,
                PatchType::Strategic,
                PatchType::Apply,
            ];
            let taken: Vec<&str> = all
                .into_iter()
                .filter(|it| takes(*it))
                .map(PatchType::media_type)
                .collect();
            let text = format!(
                "the body of the request was in an unknown format - accepted media types \
                 include: {}",
                taken.join(", ")
            );
            Err(Failure::new(415, "UnsupportedMediaType", text))
        }
    }
}

async fn delete(
    call: &mut Call,
    kind: &Arc<Kind>,
    path: &ResourcePath,
    representation: Representation,
    warnings: &Warnings,
) -> Result<Response<Body>, Failure> {
    let options = delete_options(call).await?;
    let write = WriteOptions {
        dry_run: options.dry_run,
        ..WriteOptions::default()
    };
    let request = request(call, kind, path, &write, warnings);
    match call.state.resources.delete(&request, &options).await? {
        Deleted::Object { object, remains } => {
            let WrittenObject::Stored { value, revision } = object else {
                return Err(Failure::new(
                    500,
                    "InternalError",
                    "a deletion shows stored objects",
                ));
            };
            let mut answer = render::stored(call, kind, &value, revision, representation)?;
            if remains && options.orphan_dependents == Some(false) {
                *answer.status_mut() = StatusCode::ACCEPTED;
            }
            Ok(answer)
        }
        Deleted::Gone { uid } => Ok(success(kind, &path.name, uid, representation)),
    }
}

/// The Status of a deletion.
fn success(kind: &Kind, name: &str, uid: String, representation: Representation) -> Response<Body> {
    let mut text = Vec::with_capacity(256);
    text.extend_from_slice(
        b"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\"",
    );
    let subject = resources::error::Subject {
        group: kind.group.clone(),
        resource: kind.resource.clone(),
        name: name.into(),
    };
    Details {
        subject,
        uid,
        causes: Vec::new(),
    }
    .write(0, &mut text);
    text.push(b'}');
    crate::answer::encode(text, representation)
}

async fn delete_collection(
    call: &mut Call,
    kind: &Arc<Kind>,
    path: &ResourcePath,
    representation: Representation,
    warnings: &Warnings,
) -> Result<Response<Body>, Failure> {
    let list = call.query.list_options(kind)?;
    let options = delete_options(call).await?;
    let write = WriteOptions {
        dry_run: options.dry_run,
        ..WriteOptions::default()
    };
    let request = request(call, kind, path, &write, warnings);
    let listed = call
        .state
        .resources
        .delete_collection(&request, &list, &options)
        .await?;
    render::list(call, kind, listed, representation)
}

pub(crate) fn request<'a>(
    call: &'a Call,
    kind: &'a Arc<Kind>,
    path: &'a ResourcePath,
    options: &'a WriteOptions,
    warnings: &'a Warnings,
) -> Request<'a> {
    // The path of a namespace carries its own name as the namespace, for permissions' sake.
    let namespace = if kind.namespaced {
        path.namespace.as_str()
    } else {
        ""
    };
    Request {
        kind,
        namespace,
        name: &path.name,
        subresource: &path.subresource,
        user: &call.user,
        options,
        warnings,
    }
}

fn write_options(call: &Call, verb: Verb) -> Result<WriteOptions, Error> {
    let manager = manager_of_user_agent(call.header(header::USER_AGENT).unwrap_or_default());
    call.query.write_options().check(verb, &manager)
}

fn respond_written(
    call: &Call,
    kind: &Arc<Kind>,
    written: Written,
    representation: Representation,
) -> Result<Response<Body>, Failure> {
    let mut answer = match written.object {
        WrittenObject::Stored { value, revision } => {
            render::stored(call, kind, &value, revision, representation)?
        }
        WrittenObject::Virtual(object) => {
            render::virtual_object(call, kind, object, representation)?
        }
    };
    if written.created {
        *answer.status_mut() = StatusCode::CREATED;
    }
    Ok(answer)
}

async fn read_body(call: &mut Call) -> Result<RequestBody, Failure> {
    let media = negotiate::body_media(call.header(header::CONTENT_TYPE))?;
    Ok(RequestBody {
        media,
        bytes: read_bytes(call).await?,
    })
}

async fn read_bytes(call: &mut Call) -> Result<Bytes, Failure> {
    let Some(incoming) = call.incoming.take() else {
        return Ok(Bytes::new());
    };
    let too_large = || Failure::from(Error::TooLarge(format!("limit is {BODY_BYTES_MAX}")));
    match Limited::new(incoming, BODY_BYTES_MAX).collect().await {
        Ok(collected) => {
            let bytes = collected.to_bytes();
            call.note_body(&bytes);
            Ok(bytes)
        }
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => {
            let text = format!("the body of the request could not be read: {error}");
            Err(Error::BadRequest(text).into())
        }
    }
}

/// The options of a deletion: the body, or the query if the body is empty.
async fn delete_options(call: &mut Call) -> Result<DeleteOptions, Failure> {
    let bytes = read_bytes(call).await?;
    if bytes.is_empty() {
        return Ok(call.query.delete_options()?);
    }
    let media = negotiate::body_media(call.header(header::CONTENT_TYPE))?;
    Ok(delete_options::read(media, &bytes)?)
}

/// Warnings are at most this long in all; then each is cut, and what does not fit is left out.
const WARNINGS_CHARS_MAX: usize = 4096;
const WARNING_CHARS_CUT: usize = 256;

/// Adds one `Warning` header per text.
pub(crate) fn add_warnings(answer: &mut Response<Body>, warnings: &[String]) {
    let mut seen: Vec<&str> = Vec::new();
    for warning in warnings {
        if !warning.is_empty() && !seen.contains(&warning.as_str()) {
            seen.push(warning);
        }
    }
    let total: usize = seen.iter().map(|text| text.chars().count()).sum();
    let limit = if total > WARNINGS_CHARS_MAX {
        WARNING_CHARS_CUT
    } else {
        WARNINGS_CHARS_MAX
    };
    let mut used = 0;
    for text in seen {
        let text: String = text.chars().take(limit).collect();
        used += text.chars().count();
        if used > WARNINGS_CHARS_MAX || text.chars().any(char::is_control) {
            continue;
        }
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        let line = format!("299 - \"{quoted}\"");
        if let Ok(value) = HeaderValue::from_bytes(line.as_bytes()) {
            answer.headers_mut().append(header::WARNING, value);
        }
    }
}
