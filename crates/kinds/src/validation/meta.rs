//! The metadata of every object.
//!
//! Contract: apimachinery `api/validation/objectmeta.go`, `apiserver/registry/rest` and the
//! finalizer rule of `core/validation`. The resource version is checked where it is compared.

use object::field::{FieldError, Path, is_printable, quote};
use object::{Map, Text, Value, group, names};

use super::print::{self, OWNER_REFERENCE};
use super::read::{Read, maps, texts};
use crate::kind::{Kind, NameRule};

const ANNOTATION_BYTES_MAX: usize = 256 * 1024;
const MANAGER_BYTES_MAX: usize = 128;
const SUBRESOURCE_BYTES_MAX: usize = 256;
const IMMUTABLE: &str = "field is immutable";
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Kinds whose own code does not look at how metadata changed.
const CHECKED_ONCE: [&str; 8] = [
    "CSINode",
    "EndpointSlice",
    "FlowSchema",
    "LimitRange",
    "PersistentVolume",
    "PodDisruptionBudget",
    "PriorityLevelConfiguration",
    "VolumeAttachment",
];

/// Kinds that look at the name of a new object and not at what it was made from.
const NAME_ALONE: [&str; 2] = ["DeviceClass", "ReplicationController"];

/// Whether mistakes in the metadata of a new object are told only if there are no others: the code
/// of the kind does not look there, so they are found later.
pub(crate) fn is_checked_last(kind: &Kind) -> bool {
    is_core_event(kind) || kind.kind == "PodDisruptionBudget"
}

fn is_core_event(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.kind == "Event"
}

/// Checks the metadata of a new object, whose name has been generated if it had to be.
///
/// What is never stored, such as a review, has no name, and its own code looks at its metadata.
pub fn validate_create(kind: &Kind, object: &Map) -> Vec<FieldError> {
    if !kind.verbs.iter().any(|verb| verb == "get") {
        return Vec::new();
    }
    let rule: names::NameRule = match kind.rules.name {
        NameRule::Subdomain => names::name_is_dns_subdomain,
        NameRule::Label => names::name_is_dns_label,
        NameRule::Label1035 => names::name_is_dns1035_label,
        NameRule::PathSegment => names::name_is_path_segment,
    };
    let mut errors = Vec::new();
    let metadata = object.object_or_empty("metadata");
    name(metadata, rule, &mut errors);
    if NAME_ALONE.contains(&kind.kind.as_str()) {
        errors.retain(|error| error.field != "metadata.generateName");
    }
    common(kind.namespaced, metadata, &mut errors);
    if asks_for_domains(kind) {
        finalizers_qualified(metadata, &mut errors);
    }
    errors
}

/// Whether finalizers of the kind need a domain; some groups never asked for one.
fn asks_for_domains(kind: &Kind) -> bool {
    let lenient = matches!(
        kind.group.as_str(),
        "admissionregistration.k8s.io"
            | "apiextensions.k8s.io"
            | "apiregistration.k8s.io"
            | "coordination.k8s.io"
            | "node.k8s.io"
            | "policy"
    );
    !kind.is_custom() && !lenient && !is_core_event(kind)
}

/// Checks the metadata of a changed object against the stored one.
///
/// Upstream checks every kind alike and then once more in the code of the kind, so most mistakes
/// are listed twice; clients see that.
pub fn validate_update(kind: &Kind, new: &Map, old: &Map, subresource: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = new.object_or_empty("metadata");
    let stored = old.object_or_empty("metadata");
    name(metadata, names::name_is_path_segment, &mut errors);
    common(kind.namespaced, metadata, &mut errors);
    change(metadata, stored, &mut errors);
    let once = match (kind.kind.as_str(), subresource) {
        ("CronJob", "status") => true,
        ("PersistentVolume", "status") => false,
        (name, _) => {
            CHECKED_ONCE.contains(&name)
                || kind.group == "admissionregistration.k8s.io"
                || is_core_event(kind)
        }
    };
    if kind.is_custom() || !once {
        change(metadata, stored, &mut errors);
    }
    if asks_for_domains(kind) && !once {
        finalizers_qualified(metadata, &mut errors);
    }
    errors
}

/// Checks the metadata of an object inside another; the path of each mistake begins there.
pub(crate) fn validate_embedded(metadata: &Map) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut named = metadata.clone();
    if named.text("name").is_empty() {
        named.insert("name", "nameless".into());
    }
    name(&named, names::name_is_path_segment, &mut errors);
    common(!named.text("namespace").is_empty(), &named, &mut errors);
    errors
}

/// What the kinds that check the whole object on every update check again.
pub(crate) fn again(new: &Map, namespaced: bool, errors: &mut Vec<FieldError>) {
    again_named(new, namespaced, names::name_is_dns_subdomain, errors);
}

/// The same, for kinds whose names are no subdomains.
pub(crate) fn again_named(
    new: &Map,
    namespaced: bool,
    rule: names::NameRule,
    errors: &mut Vec<FieldError>,
) {
    again_plain(new, namespaced, rule, errors);
    finalizers_qualified(new.object_or_empty("metadata"), errors);
}

/// The same, for the groups that let finalizers be without a domain.
pub(crate) fn again_plain(
    new: &Map,
    namespaced: bool,
    rule: names::NameRule,
    errors: &mut Vec<FieldError>,
) {
    let metadata = new.object_or_empty("metadata");
    name(metadata, rule, errors);
    common(namespaced, metadata, errors);
}

/// The same, for kinds that look at names in a way of their own.
pub(crate) fn again_unnamed(new: &Map, namespaced: bool, errors: &mut Vec<FieldError>) {
    let metadata = new.object_or_empty("metadata");
    common(namespaced, metadata, errors);
    finalizers_qualified(metadata, errors);
}

fn name(metadata: &Map, rule: names::NameRule, errors: &mut Vec<FieldError>) {
    let root = Path::root();
    let path = root.field("metadata");
    for (key, prefix) in [("generateName", true), ("name", false)] {
        let text = metadata.text(key);
        if text.is_empty() {
            if !prefix {
                let detail = "name or generateName is required";
                errors.push(FieldError::required(&path.field(key), detail));
            }
            continue;
        }
        for complaint in rule(text, prefix) {
            let error = FieldError::invalid(&path.field(key), &text.into(), complaint);
            errors.push(error);
        }
    }
}

fn common(namespaced: bool, metadata: &Map, errors: &mut Vec<FieldError>) {
    let root = Path::root();
    let path = root.field("metadata");
    namespace(namespaced, metadata.text("namespace"), &path, errors);
    if let Some(generation) = metadata.int("generation").filter(|it| *it < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            &path.field("generation"),
            &generation.into(),
            detail,
        ));
    }
    labels(metadata.object("labels"), &path.field("labels"), errors);
    annotations(
        metadata.object("annotations"),
        &path.field("annotations"),
        errors,
    );
    owner_references(metadata, &path, errors);
    finalizers(metadata, &path, errors);
    managed_fields(metadata, &path, errors);
}

fn namespace(namespaced: bool, text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("namespace");
    match (namespaced, text.is_empty()) {
        (true, true) => errors.push(FieldError::required(&path, "")),
        (true, false) => errors.extend(
            names::name_is_dns_label(text, false)
                .into_iter()
                .map(|complaint| FieldError::invalid(&path, &text.into(), complaint)),
        ),
        (false, true) => {}
        (false, false) => errors.push(FieldError::forbidden(&path, "not allowed on this type")),
    }
}

/// Checks the keys and values of labels, or of a selector's `matchLabels`.
pub(crate) fn labels(labels: Option<&Map>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.into_iter().flat_map(Map::iter) {
        if !is_plain_name(key) {
            for complaint in names::qualified_name(key) {
                errors.push(FieldError::invalid(path, &key.as_str().into(), complaint));
            }
        }
        let value = value.as_str().unwrap_or_default();
        for complaint in names::label_value(value) {
            errors.push(FieldError::invalid(path, &value.into(), complaint));
        }
    }
}

/// Whether a key is a short word without a prefix, as most are; such a key is good.
fn is_plain_name(key: &str) -> bool {
    (1..=63).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Checks the keys of annotations and how much they weigh together.
pub(crate) fn annotations(map: Option<&Map>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in map.into_iter().flat_map(Map::iter) {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        let complaints = if key.chars().any(char::is_uppercase) {
            names::qualified_name(&key.to_lowercase())
        } else {
            names::qualified_name(key)
        };
        for complaint in complaints {
            errors.push(FieldError::invalid(path, &key.as_str().into(), complaint));
        }
    }
    if bytes > ANNOTATION_BYTES_MAX {
        errors.push(FieldError::too_long(path, ANNOTATION_BYTES_MAX));
    }
}

fn owner_references(metadata: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("ownerReferences");
    let mut controller: Option<&Map> = None;
    for (_, owner) in maps(metadata.list("ownerReferences")) {
        owner_reference(owner, &path, errors);
        if !owner.flag("controller") {
            continue;
        }
        let Some(first) = controller else {
            controller = Some(owner);
            continue;
        };
        let detail = format!(
            "Only one reference can have Controller set to true. \
             Found \"true\" in references for {}/{} and {}/{}",
            first.text("kind"),
            first.text("name"),
            owner.text("kind"),
            owner.text("name"),
        );
        let all = metadata.value("ownerReferences");
        errors.push(print::invalid(&path, all, &OWNER_REFERENCE, detail));
    }
}

fn owner_reference(owner: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let api_version = owner.text("apiVersion");
    // A text with two slashes names neither group nor version.
    let (group, version) = group::parse_api_version(api_version).unwrap_or_default();
    if version.is_empty() {
        errors.push(FieldError::invalid(
            &path.field("apiVersion"),
            &api_version.into(),
            "version must not be empty",
        ));
    }
    for key in ["kind", "name", "uid"] {
        if owner.text(key).is_empty() {
            let empty = Value::String(Text::default());
            let error = FieldError::invalid(&path.field(key), &empty, "must not be empty");
            errors.push(error);
        }
    }
    if group.is_empty() && version == "v1" && owner.text("kind") == "Event" {
        errors.push(print::invalid(
            path,
            &owner.clone().into(),
            &OWNER_REFERENCE,
            "/v1, Kind=Event is disallowed from being an owner",
        ));
    }
}

fn finalizers(metadata: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("finalizers");
    let list = metadata.list("finalizers");
    for (_, finalizer) in texts(list) {
        for complaint in names::qualified_name(finalizer) {
            errors.push(FieldError::invalid(&path, &finalizer.into(), complaint));
        }
    }
    let stands = |wanted: &str| texts(list).any(|(_, finalizer)| finalizer == wanted);
    if stands("orphan") && stands("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        let all = metadata.value("finalizers");
        errors.push(FieldError::invalid(&path, all, detail));
    }
}

fn finalizers_qualified(metadata: &Map, errors: &mut Vec<FieldError>) {
    let root = Path::root();
    let metadata_path = root.field("metadata");
    let path = metadata_path.field("finalizers");
    for (index, finalizer) in texts(metadata.list("finalizers")) {
        qualified_finalizer(finalizer, &path.index(index), errors);
    }
}

/// Checks that a finalizer of a built-in kind is a standard one or belongs to a domain.
pub(crate) fn qualified_finalizer(text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if text.contains('/') || STANDARD_FINALIZERS.contains(&text) {
        return;
    }
    let detail = "name is neither a standard finalizer name nor is it fully qualified";
    errors.push(FieldError::invalid(path, &text.into(), detail));
}

fn change(metadata: &Map, stored: &Map, errors: &mut Vec<FieldError>) {
    let root = Path::root();
    let path = root.field("metadata");
    if stored.has("deletionTimestamp") {
        no_new_finalizers(metadata, stored, &path, errors);
    }
    let generation = metadata.int("generation").unwrap_or_default();
    if generation < stored.int("generation").unwrap_or_default() {
        let detail = "must not be decremented";
        let error = FieldError::invalid(&path.field("generation"), &generation.into(), detail);
        errors.push(error);
    }
    for key in ["name", "namespace", "uid"] {
        if metadata.text(key) != stored.text(key) {
            let value = metadata.text(key).into();
            errors.push(FieldError::invalid(&path.field(key), &value, IMMUTABLE));
        }
    }
    for key in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if metadata.value(key) != stored.value(key) {
            let value = metadata.value(key);
            errors.push(FieldError::invalid(&path.field(key), value, IMMUTABLE));
        }
    }
    labels(metadata.object("labels"), &path.field("labels"), errors);
    annotations(
        metadata.object("annotations"),
        &path.field("annotations"),
        errors,
    );
    owner_references(metadata, &path, errors);
    managed_fields(metadata, &path, errors);
}

/// Checks who is said to own fields, where the tree still holds that.
fn managed_fields(metadata: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("managedFields");
    for (index, entry) in maps(metadata.list("managedFields")) {
        let path = path.index(index);
        let operation = entry.text("operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            let error = FieldError::invalid(&path.field("operation"), &operation.into(), detail);
            errors.push(error);
        }
        let kind = entry.text("fieldsType");
        if !matches!(kind, "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            let error = FieldError::invalid(&path.field("fieldsType"), &kind.into(), detail);
            errors.push(error);
        }
        manager(entry.text("manager"), &path.field("manager"), errors);
        if entry.text("subresource").len() > SUBRESOURCE_BYTES_MAX {
            let path = path.field("subresource");
            errors.push(FieldError::too_long(&path, SUBRESOURCE_BYTES_MAX));
        }
    }
}

fn manager(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if name.len() > MANAGER_BYTES_MAX {
        errors.push(FieldError::too_long(path, MANAGER_BYTES_MAX));
    }
    for (position, character) in name.char_indices().filter(|(_, it)| !is_printable(*it)) {
        let code = character as u32;
        let detail = format!("invalid character U+{code:04X} (at position {position})");
        errors.push(FieldError::invalid(path, &name.into(), detail));
    }
}

fn no_new_finalizers(metadata: &Map, stored: &Map, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let known = stored.list("finalizers");
    let mut extra: Vec<&str> = metadata
        .list("finalizers")
        .iter()
        .filter(|finalizer| !known.contains(finalizer))
        .filter_map(Value::as_str)
        .collect();
    if extra.is_empty() {
        return;
    }
    extra.sort_unstable();
    extra.dedup();
    let quoted: Vec<String> = extra.into_iter().map(quote).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, \
         found new finalizers []string{{{}}}",
        quoted.join(", ")
    );
    errors.push(FieldError::forbidden(&path.field("finalizers"), detail));
}

#[cfg(test)]
mod tests;
