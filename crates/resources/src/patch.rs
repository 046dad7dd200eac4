//! The patches besides apply: read once, applied as often as a write is retried.

use apply::patch::json_patch::JsonPatch;
use apply::patch::{PatchError, go_text, merge_patch, strategic};
use kinds::{Catalogue, Kind};
use object::field::{FieldError, Path};
use object::{Map, Value, json};
use schema::decode::{TypeError, conversion_error};
use schema::{TypeId, Types};

use crate::Request;
use crate::body::{self, Parsed, Wanted};
use crate::error::{Error, Subject};
use crate::meta::meta_mut;
use crate::options::FieldValidation;
use crate::write::Live;

/// The types of `PATCH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Upstream's own merge, which knows list keys.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// The patch of this media type.
    pub fn of_media_type(media_type: &str) -> Option<PatchType> {
        match media_type {
            "application/json-patch+json" => Some(PatchType::Json),
            "application/merge-patch+json" => Some(PatchType::Merge),
            "application/strategic-merge-patch+json" => Some(PatchType::Strategic),
            "application/apply-patch+yaml" => Some(PatchType::Apply),
            _ => None,
        }
    }

    /// The media type of this patch.
    pub fn media_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }

    /// Reads a patch of this type.
    pub(crate) fn read(self, bytes: &[u8]) -> Result<Patch, Error> {
        let undecodable = |detail: String| match self {
            PatchType::Strategic => Error::BadRequest(detail),
            _ => Error::BadRequest(format!("error decoding patch: {detail}")),
        };
        let (value, twice) =
            json::parse_strict(bytes).map_err(|error| undecodable(error.to_string()))?;
        let mut strange: Vec<String> = twice
            .into_iter()
            .map(|path| format!("duplicate field \"{path}\""))
            .collect();
        let content = match self {
            PatchType::Json => {
                strange = strange
                    .into_iter()
                    .map(|text| format!("json patch {text}"))
                    .collect();
                let patch = JsonPatch::read(value).map_err(patch_error)?;
                strange.extend(patch.unknown_fields().iter().cloned());
                Content::Json(patch)
            }
            PatchType::Merge => {
                merge_patch::check(&value).map_err(patch_error)?;
                match value {
                    Value::Object(patch) => Content::Merge(patch),
                    _ => Content::Merge(Map::new()),
                }
            }
            PatchType::Strategic | PatchType::Apply => Content::Strategic(value),
        };
        Ok(Patch::new(content, bytes, strange))
    }
}

/// A patch that has been read.
pub(crate) struct Patch {
    content: Content,
    /// Whether the managed fields must be in the document that the patch is applied to.
    sees_managed_fields: bool,
    /// Fields of the patch itself that mean nothing or stand twice.
    strange: Vec<String>,
    /// Whether a document without a version is one of the kind nevertheless.
    fills_version: bool,
}

enum Content {
    Json(JsonPatch),
    Merge(Map),
    Strategic(Value),
}

impl Patch {
    fn new(content: Content, bytes: &[u8], strange: Vec<String>) -> Patch {
        // Ownership is only laid out as a tree for patches that can reach it. A JSON patch reaches
        // it through a parent as well, and escapes may hide its name.
        let contains = |needle: &[u8]| bytes.windows(needle.len()).any(|part| part == needle);
        let sees_managed_fields = contains(b"managedFields")
            || contains(b"\\u")
            || (matches!(content, Content::Json(_))
                && (contains(b"\"/metadata\"") || contains(b"\"\"")));
        Patch {
            content,
            sees_managed_fields,
            strange,
            fills_version: false,
        }
    }

    /// The patch of a document that can have one version only.
    pub(crate) fn filling_version(self) -> Patch {
        Patch {
            fills_version: true,
            ..self
        }
    }

    /// What the patch makes of a document that is not stored in this form.
    pub(crate) fn apply_plain(
        &self,
        types: &Types,
        root: TypeId,
        document: Value,
    ) -> Result<Value, Error> {
        match &self.content {
            Content::Json(patch) => patch.apply(document).map_err(patch_error),
            Content::Merge(patch) => Ok(merge_patch::apply(document, patch)),
            Content::Strategic(patch) => {
                strategic::apply(types, root, document, patch).map_err(patch_error)
            }
        }
    }

    /// What the patch makes of an object.
    pub(crate) fn apply(
        &self,
        catalogue: &Catalogue,
        request: &Request<'_>,
        live: &Live,
    ) -> Result<Parsed, Error> {
        let (kind, validation) = (request.kind, request.options.validation);
        let mut document = live.object.clone();
        if self.sees_managed_fields
            && let (Some(fields), Value::Object(document)) = (live.owners.0.encode(), &mut document)
        {
            meta_mut(document).insert("managedFields", fields);
        }
        let patched = self.apply_plain(&kind.types, kind.root, document)?;
        let refused = |detail: String| refused(&self.shown(kind, live), detail);
        let Value::Object(object) = patched else {
            let found = body::json_type(&patched);
            let text = format!("json: cannot unmarshal {found} into a {}", kind.kind);
            return Err(refused(text));
        };
        let version = object.get("apiVersion").and_then(Value::as_str);
        match &self.content {
            // Whether it is of this kind is asked once its name and version are known to be right.
            _ if kind.is_custom() => {
                body::check_texts(&object).map_err(refused)?;
                if body::lacks_kind(kind, &object) {
                    return Err(refused(body::missing_kind(&self.shown(kind, live))));
                }
                if let Some(text) = version.filter(|text| text.matches('/').count() > 1) {
                    return Err(refused(format!("unexpected GroupVersion string: {text}")));
                }
            }
            // Its types are those of the object, whatever it says that they are.
            Content::Strategic(_) => {}
            _ => body::check_patched_type(catalogue, kind, &object).map_err(refused)?,
        }
        let is_versioned = self.fills_version || version.is_some_and(|text| !text.is_empty());
        if !is_versioned && !kind.is_custom() && !matches!(self.content, Content::Strategic(_)) {
            return self.unversioned(&object, request, refused);
        }
        let wrong_type = if is_versioned || !kind.is_custom() {
            body::custom_type_error(request, &object)
        } else {
            // Upstream answers 500, but it is the patch that takes the version away.
            let text = "Internal error occurred: Object 'apiVersion' is missing in 'object has no \
                        apiVersion field'";
            Some(Error::BadRequest(text.to_owned()))
        };
        let (wanted, mut unknown) = body::into_shape(kind, object, validation)
            .map_err(|error| refused(self.misfit(kind, live, &error)))?;
        unknown.splice(0..0, self.strange.iter().cloned());
        if wrong_type.is_some() {
            unknown.clear();
        }
        report_unknown(request, unknown, refused)?;
        Ok(Parsed { wanted, wrong_type })
    }

    /// What upstream reads of a built-in object without a version: it takes the form in which it
    /// works on objects itself, and that knows none of the fields by these names.
    fn unversioned(
        &self,
        object: &Map,
        request: &Request<'_>,
        refused: impl Fn(String) -> Error,
    ) -> Result<Parsed, Error> {
        let fields = object.iter().map(|(key, _)| key);
        let fields = fields.filter(|key| !matches!(key.as_str(), "apiVersion" | "kind"));
        let unknown = fields.map(|key| format!("unknown field {}", object::field::quote(key)));
        let unknown = self.strange.iter().cloned().chain(unknown).collect();
        report_unknown(request, unknown, refused)?;
        Ok(Parsed {
            wanted: Wanted::by_server(Map::new()),
            wrong_type: None,
        })
    }

    /// What is said of a patched document that does not fit its kind.
    fn misfit(&self, kind: &Kind, live: &Live, error: &TypeError) -> String {
        let Content::Strategic(_) = self.content else {
            return error.to_string();
        };
        let patched = self.patched(kind, live);
        let told = conversion_error(&kind.types, kind.root, &patched);
        told.unwrap_or_else(|| error.to_string())
    }

    /// What an error shows: a strategic patch itself, or the whole patched document.
    fn shown(&self, kind: &Kind, live: &Live) -> String {
        if let Content::Strategic(patch) = &self.content {
            return go_text(patch);
        }
        String::from_utf8_lossy(&json::to_vec(&self.patched(kind, live))).into_owned()
    }

    /// The whole patched document, made again because hardly any patch fails.
    fn patched(&self, kind: &Kind, live: &Live) -> Value {
        let mut document = live.object.clone();
        if let (Some(fields), Value::Object(document)) = (live.owners.0.encode(), &mut document) {
            meta_mut(document).insert("managedFields", fields);
        }
        let patched = self.apply_plain(&kind.types, kind.root, document);
        patched.unwrap_or_default()
    }
}

/// Says which fields of a patched document are not known, or refuses it for them.
fn report_unknown(
    request: &Request<'_>,
    unknown: Vec<String>,
    refused: impl Fn(String) -> Error,
) -> Result<(), Error> {
    match request.options.validation {
        FieldValidation::Strict if !unknown.is_empty() => {
            let detail = format!("strict decoding error: {}", unknown.join(", "));
            Err(refused(detail))
        }
        FieldValidation::Warn => {
            request.warnings.add(unknown);
            Ok(())
        }
        FieldValidation::Strict | FieldValidation::Ignore => Ok(()),
    }
}

/// The patched document is no object of the kind.
fn refused(shown: &str, detail: String) -> Error {
    let root = Path::root();
    let error = FieldError::invalid(&root.field("patch"), &Value::from(shown), detail);
    Error::Invalid {
        subject: Subject::default(),
        errors: vec![error],
    }
}

fn patch_error(error: PatchError) -> Error {
    match error {
        PatchError::Undecodable(text) => Error::BadRequest(text),
        PatchError::BadFormat(text) => Error::BadRequest(text.to_owned()),
        error @ PatchError::TooManyOperations { .. } => Error::TooLarge(error.to_string()),
        PatchError::NotApplicable(_) => Error::Unprocessable,
        PatchError::Misfit(text) => Error::BadRequest(text),
    }
}
