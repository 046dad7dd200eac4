//! Claims of persistent volumes, by themselves and in templates.

use object::field::{FieldError, Path};
use object::quantity::Quantity;
use object::{Map, Value, names};

use super::check::{self, Errors, Report};
use super::read::{Read, texts};
use super::{internal, meta, quantities};

/// How volumes may be mounted.
pub(crate) const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
/// What a volume looks like inside a container.
pub(crate) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// How far the change of a volume's size has come.
const RESIZES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Checks a claim inside a pod's volume.
pub(crate) fn template(template: &Map, path: &Path<'_>, errors: &mut Errors) {
    template_metadata(template, path, errors);
    spec(
        template.object_or_empty("spec"),
        None,
        &path.field("spec"),
        errors,
    );
}

/// Checks the metadata of what is made from a template: it has labels and annotations alone.
pub(crate) fn template_metadata(template: &Map, path: &Path<'_>, errors: &mut Errors) {
    let metadata = template.object_or_empty("metadata");
    let at = path.field("metadata");
    meta::annotations(
        metadata.object("annotations"),
        &at.field("annotations"),
        errors,
    );
    meta::labels(metadata.object("labels"), &at.field("labels"), errors);
    for key in [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ] {
        if metadata.has(key) {
            let shown = if key == "uid" { "uID" } else { key };
            errors.forbidden(&at.field(shown), "cannot be set");
        }
    }
}

/// Checks the spec of a claim; `old` is the stored one when it is an update.
pub(crate) fn spec(spec: &Map, old: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    access_modes(
        spec,
        "at least 1 access mode is required",
        path,
        errors,
        |errors| {
            check::label_selector(spec.object("selector"), &path.field("selector"), errors);
        },
    );
    let requests = spec
        .object_or_empty("resources")
        .object_or_empty("requests");
    let resources = path.field("resources");
    let storage = resources.key("storage");
    match requests.get("storage") {
        None => errors.required(&storage, ""),
        Some(amount) => {
            quantities::positive(amount, &storage, errors);
        }
    }
    let class = spec.text("storageClassName");
    check::optional_subdomain(class, &path.field("storageClassName"), errors);
    if spec.has("volumeMode") {
        let mode = spec.text("volumeMode");
        check::choice_or_empty(mode, VOLUME_MODES, &path.field("volumeMode"), errors);
    }
    data_sources(spec, old, path, errors);
    let class = spec.text("volumeAttributesClassName");
    check::optional_subdomain(class, &path.field("volumeAttributesClassName"), errors);
}

fn data_sources(spec: &Map, old: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let sources = ["dataSource", "dataSourceRef"];
    // Groups were not always checked: where one is stored, any other may follow.
    let any_group = old.is_some_and(|old| {
        let mut stored = sources.iter().filter_map(|key| old.object(key));
        stored.any(|source| source.has("apiGroup"))
    });
    for key in sources {
        if let Some(source) = spec.object(key) {
            data_source(source, any_group, &path.field(key), errors);
        }
    }
    if let (Some(source), Some(reference)) =
        (spec.object("dataSource"), spec.object("dataSourceRef"))
    {
        let differs = ["apiGroup", "kind", "name"]
            .iter()
            .any(|key| source.value(key) != reference.value(key));
        let detail = if !reference.text("namespace").is_empty() {
            "may not be specified when dataSourceRef.namespace is specified"
        } else if differs {
            "must match dataSourceRef"
        } else {
            ""
        };
        if !detail.is_empty() {
            // Upstream prints the path as the value, whose fields are private.
            errors.push(super::print::invalid_text(path, "{}".to_owned(), detail));
        }
    }
}

/// Checks the access modes of a claim or a volume; `between` runs after the first check.
pub(crate) fn access_modes(
    spec: &Map,
    missing: &str,
    path: &Path<'_>,
    errors: &mut Errors,
    between: impl FnOnce(&mut Errors),
) {
    let modes = spec.list("accessModes");
    let at = path.field("accessModes");
    if modes.is_empty() {
        errors.required(&at, missing);
    }
    between(errors);
    for (_, mode) in texts(modes) {
        check::choice_or_empty(mode, ACCESS_MODES, &at, errors);
    }
    let alone = texts(modes).any(|(_, mode)| mode == "ReadWriteOncePod");
    let shared =
        texts(modes).any(|(_, mode)| mode != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode));
    if alone && shared {
        errors.forbidden(&at, "may not use ReadWriteOncePod with other access modes");
    }
}

fn data_source(source: &Map, any_group: bool, path: &Path<'_>, errors: &mut Errors) {
    check::require(source, &["name", "kind"], path, errors);
    let group = source.text("apiGroup");
    if group.is_empty() && source.text("kind") != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.invalid(path, source.text("kind"), detail);
    }
    if !any_group {
        check::optional_subdomain(group, &path.field("apiGroup"), errors);
    }
    let namespace = source.text("namespace");
    if !namespace.is_empty() {
        errors.each(
            &path.field("namespace"),
            namespace,
            names::dns1123_label(namespace),
        );
    }
}

/// Checks a claim.
pub(crate) fn validate(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    match (old, subresource) {
        (Some(old), "status") => status(new, old, &root.field("status"), &mut errors),
        (old, _) => {
            if old.is_some() {
                meta::again(new, true, &mut errors);
            }
            spec(
                new.object_or_empty("spec"),
                old.map(|old| old.object_or_empty("spec")),
                &root.field("spec"),
                &mut errors,
            );
            if let Some(old) = old {
                update(new, old, &root.field("spec"), &mut errors);
            }
        }
    }
    errors
}

fn update(new: &Map, old: &Map, path: &Path<'_>, errors: &mut Errors) {
    let (spec, stored) = (new.object_or_empty("spec"), old.object_or_empty("spec"));
    let (mut munged, mut before) = (spec.clone(), stored.clone());
    if stored.text("volumeName").is_empty() && spec.has("volumeName") {
        before.insert("volumeName", spec.value("volumeName").clone());
    }
    storage_class(new, old, &mut munged, errors);
    if new.object_or_empty("status").text("phase") == "Bound" {
        set_storage(&mut munged, stored);
        let class = "volumeAttributesClassName";
        match stored.get(class) {
            Some(value) => munged.insert(class, value.clone()),
            None => munged.remove(class),
        };
    }
    if !check::same(&munged.clone().into(), &before.clone().into()) {
        let difference = internal::difference(&before, &munged, "PersistentVolumeClaimSpec");
        let detail = format!(
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims\n{difference}"
        );
        errors.forbidden(path, detail);
    }
    let zero = Quantity::zero;
    let amount =
        |list: &Map| Quantity::from_value(list.value("storage")).unwrap_or_else(|_| zero());
    let requests = |spec: &Map| {
        amount(
            spec.object_or_empty("resources")
                .object_or_empty("requests"),
        )
    };
    let wanted = requests(spec);
    let capacity = amount(old.object_or_empty("status").object_or_empty("capacity"));
    if wanted < requests(stored) && wanted <= capacity {
        let path = path.field("resources");
        let detail = "field can not be less than status.capacity";
        errors.forbidden(&path.field("requests").field("storage"), detail);
    }
    check::unchanged(spec, stored, "volumeMode", &Path::root(), errors);
    attributes_class(spec, stored, old.object_or_empty("status"), path, errors);
}

/// A class may be named where none was; the older annotation for it stays as it is.
fn storage_class(new: &Map, old: &Map, munged: &mut Map, errors: &mut Errors) {
    let annotation = |object: &Map| {
        let metadata = object.object_or_empty("metadata");
        metadata
            .object_or_empty("annotations")
            .get(STORAGE_CLASS)
            .cloned()
    };
    let (given, known) = (annotation(new), annotation(old));
    let stored = old.object_or_empty("spec").get("storageClassName").cloned();
    let named = munged.get("storageClassName").cloned();
    let upgrades = stored.is_none() && known.is_some() && named == known;
    if upgrades && (given.is_none() || given == known) {
        munged.remove("storageClassName");
        return;
    }
    if given != known {
        let root = Path::root();
        let path = root.field("metadata");
        let path = path.field("annotations");
        let shown = given.unwrap_or_else(|| "".into());
        errors.invalid(&path.field(STORAGE_CLASS), shown, check::IMMUTABLE);
    }
    if stored.is_none() && named.is_some() && (known.is_none() || known == named) {
        munged.remove("storageClassName");
    }
}

fn attributes_class(spec: &Map, stored: &Map, status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let key = "volumeAttributesClassName";
    if spec.value(key) == stored.value(key) || !status.has("currentVolumeAttributesClassName") {
        return;
    }
    let what = match spec.get(key).and_then(Value::as_str) {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let detail = format!(
        "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    );
    errors.forbidden(&path.field(key), detail);
}

fn set_storage(spec: &mut Map, stored: &Map) {
    let before = stored
        .object_or_empty("resources")
        .object_or_empty("requests");
    let before = before.get("storage").cloned();
    let Some(requests) = spec
        .object_at("resources")
        .get_mut("requests")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    match before {
        Some(amount) => requests.insert("storage", amount),
        None => requests.remove("storage"),
    };
}

fn status(new: &Map, _: &Map, path: &Path<'_>, errors: &mut Errors) {
    let status = new.object_or_empty("status");
    let capacity = path.field("capacity");
    for (name, amount) in status.object_or_empty("capacity").iter() {
        basic_amount(amount, &capacity.key(name), errors);
    }
    let resizes = path.field("allocatedResourceStatuses");
    for (name, state) in status.object_or_empty("allocatedResourceStatuses").iter() {
        resource_key(name, &resizes, errors);
        // Upstream shows the resource, not its state.
        if !state.as_str().is_some_and(|state| RESIZES.contains(&state)) {
            errors.unsupported(&resizes, name, RESIZES);
        }
    }
    let allocated = path.field("allocatedResources");
    for (name, amount) in status.object_or_empty("allocatedResources").iter() {
        let known = errors.len();
        resource_key(name, &allocated, errors);
        if errors.len() > known {
            continue;
        }
        basic_amount(amount, &allocated.key(name), errors);
        if errors.len() == known {
            quantities::amount("storage", amount, &allocated.key(name), errors);
        }
    }
}

/// Checks the name of what a claim holds: storage, or something with a domain of its own.
fn resource_key(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let complaints = names::qualified_name(name);
    if !complaints.is_empty() {
        errors.each(path, name, complaints);
    } else if quantities::is_native(name) && name != "storage" {
        errors.unsupported(path, name, &["storage"]);
    }
}

/// Checks that an amount is not below zero, in the words of volumes.
pub(crate) fn basic_amount(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Ok(quantity) = Quantity::from_value(value)
        && quantity.value() < 0
    {
        errors.invalid(path, quantity.value(), "must be a valid resource quantity");
    }
}

#[cfg(test)]
mod tests;
