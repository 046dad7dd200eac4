//! Nodes, and the classes of their runtimes.

use std::cmp::Ordering;

use object::addresses::{self, Reading};
use object::field::{FieldError, Path, quote};
use object::{Map, Value, names};

use super::check::{self, Errors, Report};
use super::print::{self, Field, Shape};
use super::read::{Read, maps, texts};
use super::{internal, meta, pod, quantities};

const FEATURE_BYTES_MAX: usize = 253;
const FEATURE: &str = "must start with an UpperCamelCase segment, with subsequent segments \
                       separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain \
                       only alphanumeric characters and slashes";
const ONCE_VALID: &str = "except from \"\" to valid";
const TAINT: Shape = Shape(&[
    Field::plain("key", "Key", "\"\""),
    Field::plain("value", "Value", "\"\""),
    Field::plain("effect", "Effect", "\"\""),
    Field::plain("timeAdded", "TimeAdded", "null"),
]);
const ADDRESS: Shape = Shape(&[
    Field::plain("type", "Type", "\"\""),
    Field::plain("address", "Address", "\"\""),
]);

/// Checks a node. A change of the node itself is checked as a new node and as a change.
pub(crate) fn validate(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let (spec_path, status_path) = (root.field("spec"), root.field("status"));
    let (spec, status) = (new.object_or_empty("spec"), new.object_or_empty("status"));
    // Upstream reports taints under the metadata.
    let taints_path = root.field("metadata");
    let taints_path = taints_path.field("taints");
    if old.is_some() && subresource.is_empty() {
        meta::again(new, false, &mut errors);
    }
    if old.is_none() || subresource.is_empty() {
        taints(spec.list("taints"), &taints_path, &mut errors);
        amounts(status, &status_path, &mut errors);
        features(status, &status_path, &mut errors);
        pod_networks(spec, &spec_path.field("podCIDRs"), &mut errors);
    }
    let Some(old) = old else {
        return errors;
    };
    amounts(status, &status_path, &mut errors);
    features(status, &status_path, &mut errors);
    addresses(
        status.list("addresses"),
        &status_path.field("addresses"),
        &mut errors,
    );
    let stored = old.object_or_empty("spec");
    let (now, before) = (spec.list("podCIDRs"), stored.list("podCIDRs"));
    let detail = format!("node updates may not change podCIDR {ONCE_VALID}");
    if !before.is_empty() && now.len() != before.len() {
        errors.forbidden(&spec_path.field("podCIDRs"), detail);
    } else {
        for _ in before.iter().zip(now).filter(|(before, now)| before != now) {
            errors.forbidden(&spec_path.field("podCIDRs"), detail.clone());
        }
    }
    let provider = stored.text("providerID");
    if !provider.is_empty() && provider != spec.text("providerID") {
        let detail = format!("node updates may not change providerID {ONCE_VALID}");
        errors.forbidden(&spec_path.field("providerID"), detail);
    }
    taints(spec.list("taints"), &taints_path, &mut errors);
    if spec.text("externalID") != stored.text("externalID") {
        errors.forbidden(&spec_path.field("externalID"), "may not be updated");
    }
    errors
}

fn amounts(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        let path = path.field(list);
        for (name, amount) in status.object_or_empty(list).iter() {
            quantities::amount(name, amount, &path.field(name), errors);
        }
    }
}

/// Checks what a node says it can do: names in order, each once.
fn features(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = status.list("declaredFeatures");
    let path = path.field("declaredFeatures");
    for (index, feature) in texts(list) {
        let complaint = if feature.len() > FEATURE_BYTES_MAX {
            Some(format!(
                "must be no more than {FEATURE_BYTES_MAX} characters"
            ))
        } else {
            (!is_feature(feature)).then(|| FEATURE.to_owned())
        };
        if let Some(complaint) = complaint {
            let detail = format!("invalid feature name {}: {complaint}", quote(feature));
            errors.invalid(&path.index(index), feature, detail);
        }
        let Some(next) = list.get(index + 1).and_then(Value::as_str) else {
            continue;
        };
        let next_path = path.index(index + 1);
        match feature.cmp(next) {
            Ordering::Equal => errors.duplicate(&next_path, next),
            Ordering::Greater => {
                errors.invalid(&next_path, next, "list must be sorted alphabetically");
            }
            Ordering::Less => {}
        }
    }
}

fn is_feature(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    text.starts_with(|first: char| first.is_ascii_uppercase()) && text.split('/').all(is_word)
}

fn taints(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, taint) in maps(list) {
        let path = path.index(index);
        let (key, value, effect) = (taint.text("key"), taint.text("value"), taint.text("effect"));
        errors.each(&path.field("key"), key, names::qualified_name(key));
        let complaints = names::label_value(value);
        if !complaints.is_empty() {
            errors.invalid(&path.field("value"), value, complaints.join(";"));
        }
        pod::taint_effect(effect, &path.field("effect"), errors);
        let twice = maps(&list[..index])
            .any(|(_, other)| other.text("key") == key && other.text("effect") == effect);
        if twice {
            let mut error = FieldError::duplicate(&path, &Value::Null);
            error.value = Some(print::print(&taint.clone().into(), Some(&TAINT)));
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
}

fn addresses(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, address) in list.iter().enumerate() {
        if list[..index].contains(address) {
            let mut error = FieldError::duplicate(&path.index(index), &Value::Null);
            error.value = Some(print::print(address, Some(&ADDRESS)));
            errors.push(error);
        }
    }
}

fn is_network(text: &str) -> bool {
    addresses::legacy_cidr(text, Reading::Sloppy).is_empty()
}

fn pod_networks(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("podCIDRs");
    for (index, network) in texts(list) {
        check::legacy_cidr(network, &[], &path.index(index), errors);
    }
    if list.len() > 1
        && let Some((index, network)) = texts(list).find(|(_, text)| !is_network(text))
    {
        let detail = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: \
             <nil> (invalid CIDR address: {network})"
        );
        errors.push(FieldError::internal(path, detail));
    }
    let sixes = texts(list)
        .filter(|(_, network)| network.contains(':'))
        .count();
    if list.len() > 2 || list.len() == 2 && sixes != 1 {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.invalid_value(path, spec.value("podCIDRs"), detail);
    }
}

/// Checks a class of runtimes.
pub(crate) fn runtime_class(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() {
        meta::again_plain(new, false, names::name_is_dns_subdomain, &mut errors);
    }
    let handler = new.text("handler");
    check::label(handler, &root.field("handler"), &mut errors);
    if let Some(overhead) = new.object("overhead") {
        let path = root.field("overhead");
        let fixed = Map::from_entries(vec![("limits".into(), overhead.value("podFixed").clone())]);
        let rule = quantities::container_resource_name;
        quantities::requirements(&fixed, rule, &[], &path, &mut errors);
    }
    if let Some(scheduling) = new.object("scheduling") {
        let path = root.field("scheduling");
        let selector = scheduling.object("nodeSelector");
        meta::labels(selector, &path.field("nodeSelector"), &mut errors);
        let list = scheduling.list("tolerations");
        let path = path.field("tolerations");
        pod::tolerations(list, &path, &mut errors);
        for (index, toleration) in list.iter().enumerate() {
            if list[..index].contains(toleration) {
                let mut error = FieldError::duplicate(&path.index(index), toleration);
                error.value = Some(internal::print(toleration, "Toleration"));
                errors.push(error);
            }
        }
    }
    if let Some(old) = old {
        check::unchanged(new, old, "handler", &root, &mut errors);
    }
    errors
}

#[cfg(test)]
mod tests;
