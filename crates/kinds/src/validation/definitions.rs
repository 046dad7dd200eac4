//! Definitions of custom resources, and the services behind aggregated APIs.
//!
//! Here are names, versions, subresources and conversion; what a schema may say is in `schema` and
//! the modules that it uses. Upstream lifts what all versions have in common to the top of the spec
//! before it checks, which shows in the paths. What was accepted once is not refused on an update:
//! see [`Demands`].
//!
//! Contract: `apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go`.

mod defaults;
mod expressions;
mod go_print;
mod lists;
mod schema;
mod selectable;
mod services;
mod structural;
mod warnings;

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use self::schema::Demands;
pub(crate) use self::services::api_service;
pub(crate) use self::structural::violations;
pub(crate) use self::warnings::definition as definition_warnings;
use super::admission::webhook;
use super::check::{self, Errors, Report};
use super::print;
use super::read::{Read, maps, texts};

const WARNING_CHARACTERS_MAX: usize = 256;
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
const APPROVAL: &str = "api-approved.kubernetes.io";
const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] = &[
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
const LIFTED: [&str; 4] = [
    "schema",
    "subresources",
    "additionalPrinterColumns",
    "selectableFields",
];

/// Checks a definition.
pub(crate) fn definition(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let spec = new.object_or_empty("spec");
    let status = new.object_or_empty("status");
    let path = root.field("spec");
    let status_path = root.field("status");
    let accepted = status.object_or_empty("acceptedNames");
    if old.is_some() && subresource == "status" {
        short_names(accepted, &status_path.field("acceptedNames"), &mut errors);
        return errors;
    }
    if old.is_none() {
        let names = spec.object_or_empty("names");
        let wanted = format!("{}.{}", names.text("plural"), spec.text("group"));
        let detail = "must be spec.names.plural+\".\"+spec.group";
        named_as(new, &wanted, detail, &mut errors);
    }
    definition_spec(spec, old, &path, &mut errors);
    if let Some(old) = old {
        definition_change(spec, old, &path, &mut errors);
    }
    short_names(accepted, &status_path.field("acceptedNames"), &mut errors);
    let stored = status_path.field("storedVersions");
    stored_versions(status, spec.list("versions"), &stored, &mut errors);
    approval(new, old, spec, &mut errors);
    let kept = old.is_some_and(|old| old.object_or_empty("spec").flag("preserveUnknownFields"));
    if spec.flag("preserveUnknownFields") && !kept {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.invalid(&path.field("preserveUnknownFields"), true, detail);
    }
    errors
}
/// Checks that an object is called what its spec says, and begins with that if its name is made.
fn named_as(object: &Map, wanted: &str, detail: &str, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("metadata");
    for key in ["generateName", "name"] {
        let name = object.object_or_empty("metadata").text(key);
        if !name.is_empty() && name != wanted {
            errors.invalid(&path.field(key), name, detail);
        }
    }
}

fn definition_spec(spec: &Map, old: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let demands = Demands::of(spec, old);
    let group = spec.text("group");
    let complaints = names::dns1123_subdomain(group);
    let at = path.field("group");
    if group.is_empty() {
        errors.required(&at, "");
    } else if !complaints.is_empty() {
        errors.invalid(&at, group, complaints.join(","));
    } else if !group.contains('.') {
        errors.invalid(&at, group, "should be a domain with at least one dot");
    }
    let scopes = ["Cluster", "Namespaced"];
    check::choice(spec.text("scope"), &scopes, &path.field("scope"), errors);
    versions(spec, &demands, path, errors);
    let names = spec.object_or_empty("names");
    let at = path.field("names");
    check::require(
        names,
        &["plural", "singular", "kind", "listKind"],
        &at,
        errors,
    );
    short_names(names, &at, errors);
    if let Some(version) = lifted(spec) {
        shared_by_all(spec, version, &demands, path, errors);
    }
    if let Some(conversion) = spec.object("conversion") {
        let at = path.field("conversion");
        if spec.flag("preserveUnknownFields") && conversion.text("strategy") != "None" {
            let detail = "must be None if spec.preserveUnknownFields is true";
            errors.invalid(&at.field("strategy"), conversion.text("strategy"), detail);
        }
        check_conversion(conversion, old, &at, errors);
    }
}

/// What all versions say alike stands at the top of the spec inside.
fn shared_by_all(
    spec: &Map,
    version: &Map,
    demands: &Demands<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if is_shared(spec, "schema") {
        let any_status = maps(spec.list("versions"))
            .any(|(_, version)| version.object_or_empty("subresources").has("status"));
        let at = path.field("validation");
        schema::validation(version, any_status, demands, &at, errors);
    }
    if is_shared(spec, "subresources") {
        subresources(version, &path.field("subresources"), errors);
    }
    if is_shared(spec, "additionalPrinterColumns") {
        columns(version, &path.field("additionalPrinterColumns"), errors);
    }
    if is_shared(spec, "selectableFields") && !version.list("selectableFields").is_empty() {
        let at = path.field("selectableFields");
        match is_shared(spec, "schema") && version.has("schema") {
            true => selectable::fields(version, demands, &at, errors),
            false => errors.invalid(
                &at,
                "",
                "may only be set when validations.schema is included",
            ),
        }
    }
}

/// The first version, if there is one, for what all versions share.
fn lifted(spec: &Map) -> Option<&Map> {
    spec.list("versions").first().and_then(Value::as_object)
}

/// Whether all versions say the same under this key.
fn is_shared(spec: &Map, key: &str) -> bool {
    let list = spec.list("versions");
    let first = lifted(spec).map_or(&Value::Null, |version| version.value(key));
    maps(list).all(|(_, version)| version.value(key) == first)
}

fn versions(spec: &Map, demands: &Demands<'_>, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("versions");
    let at = path.field("preserveUnknownFields");
    let first_path = path.field("version");
    let path = path.field("versions");
    for (index, version) in maps(list) {
        if demands.schemas && !version.object_or_empty("schema").has("openAPIV3Schema") {
            let path = path.index(index);
            errors.required(&path.field("schema").field("openAPIV3Schema"), "");
        }
    }
    if spec.flag("preserveUnknownFields") && schema::has_defaults(spec) {
        let detail = "must be false in order to use defaults in the schema";
        errors.invalid(&at, true, detail);
    }
    for (index, version) in maps(list) {
        let path = path.index(index);
        let name = version.text("name");
        let complaints = names::dns1035_label(name);
        if !complaints.is_empty() {
            errors.invalid(&path.field("name"), name, complaints.join(","));
        }
        deprecation_warning(version, &path.field("deprecationWarning"), errors);
        of_one_version(spec, version, demands, &path, errors);
    }
    let twice = maps(list).any(|(index, version)| {
        maps(&list[..index]).any(|(_, other)| other.text("name") == version.text("name"))
    });
    if twice {
        let detail = "must contain unique version names";
        errors.push(print::invalid_text(&path, shown_versions(spec), detail));
    }
    let stored = maps(list).filter(|(_, version)| version.flag("storage"));
    if stored.count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(print::invalid_text(&path, shown_versions(spec), detail));
    }
    // Inside, the first version has a place of its own.
    if let Some((_, first)) = maps(list).next() {
        let name = first.text("name");
        let complaints = names::dns1035_label(name);
        if !name.is_empty() && !complaints.is_empty() {
            errors.invalid(&first_path, name, complaints.join(","));
        }
    }
}

/// What versions say differently is checked where each says it.
fn of_one_version(
    spec: &Map,
    version: &Map,
    demands: &Demands<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if !is_shared(spec, "schema") {
        let status = version.object_or_empty("subresources").has("status");
        schema::validation(version, status, demands, &path.field("schema"), errors);
    }
    if !is_shared(spec, "subresources") {
        subresources(version, &path.field("subresources"), errors);
    }
    if !is_shared(spec, "additionalPrinterColumns") {
        columns(version, &path.field("additionalPrinterColumns"), errors);
    }
    if !is_shared(spec, "selectableFields") && !version.list("selectableFields").is_empty() {
        let at = path.field("selectableFields");
        match is_shared(spec, "schema") {
            // Upstream looks for the schema where it was before it was lifted.
            true => errors.invalid(
                &at,
                "",
                "may only be set when `version.schema.openAPIV3Schema` is not included",
            ),
            false => selectable::fields(version, demands, &at, errors),
        }
    }
}

/// The versions as upstream prints them, without what was lifted.
fn shown_versions(spec: &Map) -> String {
    if !spec.has("versions") {
        return "null".to_owned();
    }
    let mut shown = spec.value("versions").clone();
    for version in shown.as_array_mut().into_iter().flatten() {
        if let Some(version) = version.as_object_mut() {
            version.retain(|key, _| !LIFTED.contains(&key) || !is_shared(spec, key));
        }
    }
    go_print::versions(&shown)
}

fn deprecation_warning(version: &Map, path: &Path<'_>, errors: &mut Errors) {
    if !version.has("deprecationWarning") {
        return;
    }
    let text = version.text("deprecationWarning");
    // The value is a pointer inside, and those print as JSON.
    let shown = print::print(version.value("deprecationWarning"), None);
    let mut complain = |detail: String| {
        errors.push(print::invalid_text(path, shown.clone(), detail));
    };
    if !version.flag("deprecated") {
        complain("can only be set for deprecated versions".to_owned());
        return;
    }
    if text.len() > WARNING_CHARACTERS_MAX {
        complain("must be <= 256 characters long".to_owned());
    }
    if text.is_empty() {
        complain("must not be an empty string".to_owned());
    }
    let odd = text
        .char_indices()
        .find(|(_, it)| !object::field::is_printable(*it));
    if let Some((index, _)) = odd {
        complain(format!(
            "must only contain printable UTF-8 characters; non-printable character found at \
             index {index}"
        ));
    }
}

fn short_names(given: &Map, path: &Path<'_>, errors: &mut Errors) {
    for (key, prefix) in [
        ("plural", ""),
        ("singular", ""),
        ("kind", "may have mixed case, but should otherwise match: "),
        (
            "listKind",
            "may have mixed case, but should otherwise match: ",
        ),
    ] {
        let text = given.text(key);
        let complaints = if prefix.is_empty() {
            names::dns1035_label(text)
        } else {
            names::dns1035_label(&text.to_lowercase())
        };
        if !text.is_empty() && !complaints.is_empty() {
            let detail = format!("{prefix}{}", complaints.join(","));
            errors.invalid(&path.field(key), text, detail);
        }
    }
    let each = |key: &str, errors: &mut Errors| {
        let path = path.field(key);
        for (index, text) in texts(given.list(key)) {
            let complaints = names::dns1035_label(text);
            if !complaints.is_empty() {
                errors.invalid(&path.index(index), text, complaints.join(","));
            }
        }
    };
    each("shortNames", errors);
    let kind = given.text("kind");
    if !kind.is_empty() && kind == given.text("listKind") {
        let detail = "kind and listKind may not be the same";
        errors.invalid(&path.field("listKind"), kind, detail);
    }
    each("categories", errors);
}

fn subresources(version: &Map, path: &Path<'_>, errors: &mut Errors) {
    let Some(scale) = version.object_or_empty("subresources").object("scale") else {
        return;
    };
    for (key, start) in [
        ("specReplicasPath", ".spec."),
        ("statusReplicasPath", ".status."),
    ] {
        let shown = format!("scale.{key}");
        let at = path.field(&shown);
        let text = scale.text(key);
        if text.is_empty() {
            errors.required(&at, "");
        } else if !text.starts_with('.') {
            errors.invalid(&at, text, "must be a simple json path starting with .");
        } else if !text.starts_with(start) {
            let under = start.trim_end_matches('.');
            errors.invalid(&at, text, format!("should be a json path under {under}"));
        }
    }
    let text = scale.text("labelSelectorPath");
    let at = path.field("scale.labelSelectorPath");
    if text.is_empty() {
        return;
    }
    if !text.starts_with('.') {
        errors.invalid(&at, text, "must be a simple json path starting with .");
    } else if !text.starts_with(".spec.") && !text.starts_with(".status.") {
        errors.invalid(
            &at,
            text,
            "should be a json path under either .spec or .status",
        );
    }
}

fn columns(version: &Map, path: &Path<'_>, errors: &mut Errors) {
    for (index, column) in maps(version.list("additionalPrinterColumns")) {
        let path = path.index(index);
        check::require(column, &["name"], &path, errors);
        let kind = column.text("type");
        let kinds = format!("must be one of {}", COLUMN_TYPES.join(","));
        if kind.is_empty() {
            errors.required(&path.field("type"), &kinds);
        } else if !COLUMN_TYPES.contains(&kind) {
            errors.invalid(&path.field("type"), kind, kinds);
        }
        let format = column.text("format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.invalid(&path.field("format"), format, detail);
        }
        let json_path = column.text("jsonPath");
        if json_path.is_empty() {
            errors.required(&path.field("JSONPath"), "");
        } else if !json_path.starts_with('.') {
            let detail = "must be a simple json path starting with .";
            errors.invalid(&path.field("JSONPath"), json_path, detail);
        }
    }
}

/// Inside, the webhook's parts lie beside the strategy.
fn check_conversion(conversion: &Map, old: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let strategy = conversion.text("strategy");
    check::choice(
        strategy,
        &["None", "Webhook"],
        &path.field("strategy"),
        errors,
    );
    let hook = conversion.object("webhook");
    let at = path.field("webhookClientConfig");
    let versions_path = path.field("conversionReviewVersions");
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if hook.is_some_and(|hook| hook.has("clientConfig")) {
            errors.forbidden(&at, detail);
        }
        if hook.is_some_and(|hook| !hook.list("conversionReviewVersions").is_empty()) {
            errors.forbidden(&versions_path, detail);
        }
        return;
    }
    let empty = Map::new();
    let hook = hook.unwrap_or(&empty);
    match hook.object("clientConfig") {
        None => errors.required(&at, "required when strategy is set to Webhook"),
        Some(config) => {
            webhook::client_config(config, &at, errors);
            let bundle = config.text("caBundle");
            if is_bad_bundle(bundle) && old.is_some_and(asks_for_good_bundle) {
                let detail = "unable to load root certificates: unable to parse bytes as PEM block";
                errors.invalid(&at.field("caBundle"), bundle, detail);
            }
        }
    }
    let list = hook.list("conversionReviewVersions");
    if list.is_empty() {
        errors.required(&versions_path, "");
        return;
    }
    webhook::review_versions(list, &versions_path, errors);
    let known = |list: &[Value]| {
        list.is_empty() || texts(list).any(|(_, version)| matches!(version, "v1" | "v1beta1"))
    };
    let before = old.map(|old| hook_of(old).list("conversionReviewVersions"));
    if !known(list) && before.is_none_or(known) {
        let detail = "must include at least one of v1, v1beta1";
        errors.invalid_value(
            &versions_path,
            hook.value("conversionReviewVersions"),
            detail,
        );
    }
}

fn hook_of(definition: &Map) -> &Map {
    definition
        .object_or_empty("spec")
        .object_or_empty("conversion")
        .object_or_empty("webhook")
}

/// Whether certificates must be readable: until the resource is served they need not be, and those
/// that never were may stay.
fn asks_for_good_bundle(old: &Map) -> bool {
    let bundle = hook_of(old)
        .object_or_empty("clientConfig")
        .text("caBundle");
    crate::custom::is_established(old) && !is_bad_bundle(bundle)
}

/// Whether a bundle of certificates holds none.
pub(crate) fn is_bad_bundle(bundle: &str) -> bool {
    let decoded = ::schema::decode::decode_base64(bundle).unwrap_or_default();
    !bundle.is_empty() && !String::from_utf8_lossy(&decoded).contains(CERTIFICATE)
}

fn definition_change(spec: &Map, old: &Map, path: &Path<'_>, errors: &mut Errors) {
    let stored = old.object_or_empty("spec");
    let conditions = old.object_or_empty("status").list("conditions");
    let established = maps(conditions)
        .any(|(_, it)| it.text("type") == "Established" && it.text("status") == "True");
    let (names, stored_names) = (
        spec.object_or_empty("names"),
        stored.object_or_empty("names"),
    );
    let names_path = path.field("names");
    if established {
        check::unchanged(spec, stored, "scope", path, errors);
        check::unchanged(names, stored_names, "kind", &names_path, errors);
    }
    check::unchanged(spec, stored, "group", path, errors);
    check::unchanged(names, stored_names, "plural", &names_path, errors);
}

fn stored_versions(status: &Map, versions: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let stored = status.list("storedVersions");
    let all = status.value("storedVersions");
    if stored.is_empty() {
        errors.invalid_value(path, all, "must have at least one stored version");
        return;
    }
    for (index, version) in maps(versions).filter(|(_, version)| version.flag("storage")) {
        let name = version.text("name");
        // Upstream crosses off a name when it meets it first.
        let met = maps(&versions[..index]).any(|(_, other)| other.text("name") == name);
        if met || !texts(stored).any(|(_, it)| it == name) {
            errors.invalid_value(path, all, format!("must have the storage version {name}"));
        }
    }
    for (index, name) in texts(stored) {
        if maps(versions).any(|(_, version)| version.text("name") == name) {
            continue;
        }
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must \
             remain in spec.versions until a storage migration ensures no data remains persisted \
             in {name} and removes {name} from status.storedVersions"
        );
        errors.invalid(&path.index(index), name, detail);
    }
}

/// Whether a definition in a protected group says who approved it.
#[derive(PartialEq, Eq)]
enum Approval {
    Given,
    Missing,
    Wrong,
}

fn approval_of(object: &Map) -> Approval {
    let text = object
        .object_or_empty("metadata")
        .object_or_empty("annotations")
        .text(APPROVAL);
    let is_url = text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/')
    });
    match text {
        "" => Approval::Missing,
        _ if text.starts_with("unapproved") || is_url => Approval::Given,
        _ => Approval::Wrong,
    }
}

fn approval(new: &Map, old: Option<&Map>, spec: &Map, errors: &mut Errors) {
    let group = spec.text("group");
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let state = approval_of(new);
    if !is_protected || old.is_some_and(|old| approval_of(old) == state) {
        return;
    }
    let root = Path::root();
    let path = root.field("metadata");
    let path = path.field("annotations");
    let path = path.key(APPROVAL);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state {
        Approval::Given => {}
        Approval::Missing => {
            let detail =
                format!("protected groups must have approval annotation \"{APPROVAL}\", {see}");
            errors.required(&path, &detail);
        }
        Approval::Wrong => {
            let annotations = new
                .object_or_empty("metadata")
                .object_or_empty("annotations");
            let detail = format!(
                "protected groups must have approval annotation \"{APPROVAL}\" with either a URL \
                 or a reason starting with \"unapproved\", {see}"
            );
            errors.invalid(&path, annotations.text(APPROVAL), detail);
        }
    }
}

#[cfg(test)]
mod tests;
