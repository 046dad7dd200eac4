//! What the server itself writes into a definition: accepted names and conditions.
//!
//! Pure: the definition and its neighbours go in, the status comes out. Contract: the naming,
//! establishing, approval and finalizing controllers below
//! `apiextensions-apiserver/pkg/controller`.

use std::collections::BTreeSet;

use object::field::{FieldError, Path, summary};
use object::{Map, Value, value};

use super::definition::has_condition;
use crate::validation::definitions;
use crate::validation::read::{Read, maps, texts};

/// What holds a definition until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

const APPROVAL: &str = "api-approved.kubernetes.io";
const DISCUSSION: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// Whether every name that a definition asks for is its own.
pub fn names_accepted(definition: &Map) -> bool {
    has_condition(definition, "NamesAccepted")
}

/// The status that a definition should have, given every other definition.
pub fn status(definition: &Map, others: &[&Map], now: &str) -> Map {
    let mut status = definition.object_or_empty("status").clone();
    let (accepted, conflict) = accept_names(definition, others);
    status.insert("acceptedNames", accepted.into());
    let names_accepted = match &conflict {
        None => condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => condition("NamesAccepted", "False", reason, message),
    };
    set_condition(&mut status, names_accepted, now);
    if !has_condition(definition, "Established") {
        let established = if conflict.is_none() && has_bad_bundle(definition) {
            let message = "The conversion webhook CABundle is invalid";
            condition("Established", "False", "InvalidCABundle", message)
        } else if conflict.is_none() {
            let message = "the initial names have been accepted";
            condition("Established", "True", "InitialNamesAccepted", message)
        } else {
            let message = "not all names are accepted";
            condition("Established", "False", "NotAccepted", message)
        };
        set_condition(&mut status, established, now);
    }
    match violations(definition) {
        Some(message) => {
            let violations = condition("NonStructuralSchema", "True", "Violations", &message);
            set_condition(&mut status, violations, now);
        }
        None => remove_condition(&mut status, "NonStructuralSchema"),
    }
    if let Some(approval) = approval(definition) {
        set_condition(&mut status, approval, now);
    }
    status
}

fn has_bad_bundle(definition: &Map) -> bool {
    let hook = definition
        .object_or_empty("spec")
        .object_or_empty("conversion")
        .object_or_empty("webhook");
    definitions::is_bad_bundle(hook.object_or_empty("clientConfig").text("caBundle"))
}

/// Where the schemas of a definition that was stored long ago are not structural.
///
/// Validation lets no new one in, so only those are judged that are known to be of that time: to
/// judge costs as much as to validate.
fn violations(definition: &Map) -> Option<String> {
    let spec = definition.object_or_empty("spec");
    let is_old =
        spec.flag("preserveUnknownFields") || has_condition(definition, "NonStructuralSchema");
    if !is_old {
        return None;
    }
    let root = Path::root();
    let path = root.field("spec");
    let mut errors = Vec::new();
    if spec.flag("preserveUnknownFields") {
        let at = path.field("preserveUnknownFields");
        errors.push(FieldError::invalid(&at, &true.into(), "must be false"));
    }
    let path = path.field("versions");
    for (index, version) in maps(spec.list("versions")) {
        let parent = version.object_or_empty("schema");
        if let Some(schema) = parent.object("openAPIV3Schema") {
            let at = path.index(index);
            let at = at.field("schema");
            errors.extend(definitions::violations(
                schema,
                &at.field("openAPIV3Schema"),
            ));
        }
    }
    (!errors.is_empty()).then(|| summary(&errors))
}

/// The first phase of a deletion: nothing new can be made from here on.
pub(crate) fn mark_deleting(definition: &mut Map) {
    let metadata = definition.object_at("metadata");
    if !matches!(metadata.get("finalizers"), Some(Value::Array(_))) {
        metadata.insert("finalizers", Value::Array(Vec::new()));
    }
    if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers")
        && !finalizers
            .iter()
            .any(|it| it.as_str() == Some(CLEANUP_FINALIZER))
    {
        finalizers.push(CLEANUP_FINALIZER.into());
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                   begin soon";
    let pending = condition("Terminating", "True", "InstanceDeletionPending", message);
    // The time of the deletion is the time of the change.
    let now = metadata_time(definition);
    set_condition(definition.object_at("status"), pending, &now);
}

/// The state of a definition whose objects are being deleted.
pub fn begin_deletion(definition: &mut Map, now: &str) {
    let message = "CustomResource deletion is in progress";
    let reason = "InstanceDeletionInProgress";
    let condition = condition("Terminating", "True", reason, message);
    set_condition(definition.object_at("status"), condition, now);
}

/// The last state of a definition whose objects are gone.
pub fn finish_deletion(definition: &mut Map, now: &str) {
    let (reason, message) = if has_condition(definition, "Established") {
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("NeverEstablished", "resource was never established")
    };
    let done = condition("Terminating", "False", reason, message);
    set_condition(definition.object_at("status"), done, now);
}

/// Lets a definition go whose objects are gone.
pub fn remove_finalizer(definition: &mut Map) {
    let metadata = definition.object_at("metadata");
    if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
        finalizers.retain(|it| it.as_str() != Some(CLEANUP_FINALIZER));
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }
}

fn metadata_time(definition: &Map) -> String {
    let metadata = definition.object_or_empty("metadata");
    metadata.text("deletionTimestamp").to_owned()
}

/// The names that a definition gets, and why it does not get all of them.
fn accept_names(definition: &Map, others: &[&Map]) -> (Map, Option<(&'static str, String)>) {
    let spec = definition.object_or_empty("spec");
    let (taken, kinds) = taken_names(spec.text("group"), others);
    let wanted = spec.object_or_empty("names");
    let status = definition.object_or_empty("status");
    let mut accepted = status.object_or_empty("acceptedNames").clone();
    let mut conflict = None;
    let checks = [
        ("plural", &taken, "PluralConflict"),
        ("singular", &taken, "SingularConflict"),
        ("shortNames", &taken, "ShortNamesConflict"),
        ("kind", &kinds, "KindConflict"),
        ("listKind", &kinds, "ListKindConflict"),
    ];
    for (field, taken, reason) in checks {
        let mut refused = Vec::new();
        let mine: Vec<String> = names_in(&accepted, field);
        for name in names_in(wanted, field) {
            if taken.contains(name.as_str()) && !mine.contains(&name) {
                refused.push(format!("\"{name}\" is already in use"));
            }
        }
        if refused.is_empty() {
            copy(wanted, field, &mut accepted);
        } else if let [only] = refused.as_slice() {
            conflict = Some((reason, only.clone()));
        } else {
            conflict = Some((reason, format!("[{}]", refused.join(", "))));
        }
    }
    copy(wanted, "categories", &mut accepted);
    (accepted, conflict)
}

fn copy(from: &Map, field: &str, to: &mut Map) {
    match from.get(field) {
        Some(value) => to.insert(field, value.clone()),
        None => to.remove(field),
    };
}

/// The names that the other definitions of a group have: of resources and of kinds.
fn taken_names<'a>(group: &str, others: &[&'a Map]) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in others {
        if other.object_or_empty("spec").text("group") != group {
            continue;
        }
        let accepted = other
            .object_or_empty("status")
            .object_or_empty("acceptedNames");
        resources.extend([accepted.text("plural"), accepted.text("singular")]);
        resources.extend(texts(accepted.list("shortNames")).map(|(_, name)| name));
        kinds.extend([accepted.text("kind"), accepted.text("listKind")]);
    }
    resources.remove("");
    kinds.remove("");
    (resources, kinds)
}

fn names_in(names: &Map, field: &str) -> Vec<String> {
    match names.get(field) {
        Some(Value::Array(list)) => texts(list).map(|(_, name)| name.to_owned()).collect(),
        _ => vec![names.text(field).to_owned()],
    }
}

/// Whether a group of the project's own may have this definition.
fn approval(definition: &Map) -> Option<Map> {
    let group = definition.object_or_empty("spec").text("group");
    let protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if !protected {
        return None;
    }
    let metadata = definition.object_or_empty("metadata");
    let given = metadata.object_or_empty("annotations").text(APPROVAL);
    let (status, reason, message) = if given.is_empty() {
        let text = format!("protected groups must have approval annotation \"{APPROVAL}\"");
        (
            "False",
            "MissingAnnotation",
            format!("{text}, {DISCUSSION}"),
        )
    } else if given.starts_with("unapproved") {
        let quoted = object::field::quote(given);
        (
            "False",
            "UnapprovedAnnotation",
            format!("not approved: {quoted}"),
        )
    } else if is_url(given) {
        ("True", "ApprovedAnnotation", format!("approved in {given}"))
    } else {
        let text = format!(
            "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a \
             reason starting with \"unapproved\""
        );
        (
            "False",
            "InvalidAnnotation",
            format!("{text}, {DISCUSSION}"),
        )
    };
    let kind = "KubernetesAPIApprovalPolicyConformant";
    Some(condition(kind, status, reason, &message))
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !scheme.is_empty()
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !host.is_empty()
            && !text.contains(' ')
    })
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Map {
    match value!({"type": kind, "status": status, "reason": reason, "message": message}) {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn remove_condition(status: &mut Map, kind: &str) {
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.retain(|known| known.str_at(&["type"]) != Some(kind));
    }
}

/// Sets a condition; its time moves only if its status does.
fn set_condition(status: &mut Map, mut condition: Map, now: &str) {
    if !matches!(status.get("conditions"), Some(Value::Array(_))) {
        status.insert("conditions", Value::Array(Vec::new()));
    }
    let Some(Value::Array(conditions)) = status.get_mut("conditions") else {
        return;
    };
    let place = maps(conditions)
        .find(|(_, known)| known.text("type") == condition.text("type"))
        .map(|(place, _)| place);
    let old = place.and_then(|place| conditions[place].as_object());
    let since = old
        .filter(|old| old.text("status") == condition.text("status"))
        .map_or("", |old| old.text("lastTransitionTime"));
    let since = if since.is_empty() { now } else { since };
    condition.insert("lastTransitionTime", since.into());
    match place {
        Some(place) => conditions[place] = condition.into(),
        None => conditions.push(condition.into()),
    }
}
