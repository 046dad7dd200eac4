//! Whether a body is about the object that the path names: name, namespace, version and uid.

use kinds::Kind;
use object::field::{FieldError, Path};
use object::{Map, Value};

use super::Live;
use crate::error::Error;
use crate::meta::{meta_mut, meta_text};
use crate::read::store_name;
use crate::{Request, subject};

/// Checks that a body is about the object of the path: first its namespace, then its name.
pub(crate) fn check_place(request: &Request<'_>, object: &mut Map) -> Result<(), Error> {
    check_namespace(request, object)?;
    check_name(request, object)
}

/// Checks the name of a body against the path.
pub(crate) fn check_name(request: &Request<'_>, object: &Map) -> Result<(), Error> {
    let found = meta_text(object, "name");
    if found.is_empty() {
        return Err(Error::BadRequest(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            request.name
        )));
    }
    if found != request.name {
        return Err(Error::BadRequest(format!(
            "the name of the object ({found}) does not match the name on the URL ({})",
            request.name
        )));
    }
    Ok(())
}

/// Checks the namespace of a body against the path, and fills it in.
pub(crate) fn check_namespace(request: &Request<'_>, object: &mut Map) -> Result<(), Error> {
    if !request.kind.namespaced {
        meta_mut(object).remove("namespace");
        return Ok(());
    }
    let found = meta_text(object, "namespace");
    if found.is_empty() {
        let namespace = Value::from(request.namespace);
        meta_mut(object).insert("namespace", namespace);
    } else if found != request.namespace {
        let text =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Error::BadRequest(text.to_owned()));
    }
    Ok(())
}

/// Whether the client named the version that it wants to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Version,
    Nothing,
}

/// Checks the version that a body names.
pub(crate) fn check_version(kind: &Kind, object: &Map, live: &Live) -> Result<Given, Error> {
    let name = meta_text(live.map(), "name");
    let version = named_version(object)?;
    if version == 0 {
        if !kind.rules.unconditional_update {
            let root = Path::root();
            let metadata = root.field("metadata");
            let detail = "must be specified for an update";
            let error =
                FieldError::invalid(&metadata.field("resourceVersion"), &Value::Int(0), detail);
            return Err(Error::Invalid {
                subject: subject(kind, name),
                errors: vec![error],
            });
        }
        return Ok(Given::Nothing);
    }
    if version != live.record.revision.0 {
        return Err(Error::modified(subject(kind, name)));
    }
    Ok(Given::Version)
}

/// The version that a body names; zero if it names none.
fn named_version(object: &Map) -> Result<u64, Error> {
    let found = meta_text(object, "resourceVersion");
    if found.is_empty() {
        return Ok(0);
    }
    found.parse().map_err(|_| {
        let quoted = object::field::quote(found);
        Error::BadRequest(format!(
            "strconv.ParseUint: parsing {quoted}: invalid syntax"
        ))
    })
}

/// Checks that a body for an object that is not there names neither an identity nor a version
/// that cannot be read.
pub(crate) fn check_absent(request: &Request<'_>, object: &Map) -> Result<(), Error> {
    match meta_text(object, "uid") {
        "" => named_version(object).map(|_| ()),
        found => {
            let key = store_name(request.kind, request.namespace, request.name);
            Err(another_uid(request, &key, (found, "")))
        }
    }
}

/// Takes the version out of a body that makes an object. What a dry run was given is shown.
pub(crate) fn drop_version(request: &Request<'_>, object: &mut Map) -> Result<(), Error> {
    named_version(object)?;
    if !request.options.dry_run {
        meta_mut(object).remove("resourceVersion");
    }
    Ok(())
}

pub(crate) fn check_uid(request: &Request<'_>, object: &Map, live: &Live) -> Result<(), Error> {
    let (found, stored) = (meta_text(object, "uid"), meta_text(live.map(), "uid"));
    if found.is_empty() || found == stored {
        return Ok(());
    }
    Err(another_uid(request, &live.record.name, (found, stored)))
}

fn another_uid(request: &Request<'_>, key: &str, (found, stored): (&str, &str)) -> Error {
    // A dry run does not get to the storage that puts all keys below one root.
    let collection = match request.kind.collection.strip_prefix("/registry") {
        Some(below) if request.options.dry_run => below,
        _ => &request.kind.collection,
    };
    Error::Conflict {
        subject: subject(request.kind, request.name),
        detail: format!(
            "StorageError: invalid object, Code: 4, Key: {collection}{key}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {found}, UID in object \
             meta: {stored}"
        ),
    }
}
