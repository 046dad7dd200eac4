//! Amounts of resources: which names they may have and which amounts.

use object::field::{FieldError, Path};
use object::quantity::Quantity;
use object::{Map, Value, names};

use super::check::{Errors, Report};
use super::read::{Read, maps};

const HUGE_PAGES: &str = "hugepages-";
const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
const STANDARD_FOR_QUOTA: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
const INTEGERS: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Checks the name of a resource.
pub(crate) fn resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let complaints = names::qualified_name(name);
    if !complaints.is_empty() {
        errors.each(path, name, complaints);
    } else if !name.contains('/') && !is_standard(name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.invalid(path, name, detail);
    }
}

/// Checks the name of a resource that containers ask for.
pub(crate) fn container_resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !name.contains('/') {
        let standard = ["cpu", "ephemeral-storage", "memory"].contains(&name);
        if !standard && !is_huge_page(name) {
            errors.invalid(path, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        let detail = "doesn't follow extended resource name standard";
        errors.invalid(path, name, detail);
    }
}

/// Checks the name of a resource that a pod as a whole asks for.
pub(crate) fn pod_resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let before = errors.len();
    resource_name(name, path, errors);
    if errors.len() == before && !["cpu", "memory"].contains(&name) && !is_huge_page(name) {
        errors.unsupported(path, name, &["cpu", "hugepages-", "memory"]);
    }
}

/// Checks the name of a resource that a quota counts.
pub(crate) fn quota_resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !name.contains('/') && !is_quota_standard(name) {
        errors.invalid(path, name, "must be a standard resource for quota");
    }
}

/// Checks that an amount is not negative, and whole where the resource is counted.
pub(crate) fn amount(name: &str, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let is_counted = INTEGERS.contains(&name) || is_extended(name);
    // An amount that begins with a digit is not negative, which spares reading most of them.
    let text = value.as_str().unwrap_or_default();
    if !is_counted && text.starts_with(|first: char| first.is_ascii_digit()) {
        return;
    }
    let Ok(quantity) = Quantity::from_value(value) else {
        return;
    };
    if quantity.sign() < 0 {
        let detail = "must be greater than or equal to 0";
        errors.invalid(path, quantity.to_string(), detail);
    }
    if is_counted && quantity.milli_value() % 1000 != 0 {
        errors.invalid(path, quantity.to_string(), "must be an integer");
    }
}

/// Checks that an amount is above zero; says whether it is.
pub(crate) fn positive(value: &Value, path: &Path<'_>, errors: &mut Errors) -> bool {
    match Quantity::from_value(value) {
        Ok(quantity) if quantity.sign() <= 0 => {
            errors.invalid(path, quantity.to_string(), "must be greater than zero");
            false
        }
        _ => true,
    }
}

/// Checks what containers ask for and may use.
pub(crate) fn requirements(
    requirements: &Map,
    name_rule: fn(&str, &Path<'_>, &mut Errors),
    claims: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let limits = requirements.object_or_empty("limits");
    let requests = requirements.object_or_empty("requests");
    let limits_path = path.field("limits");
    for (name, value) in limits.iter() {
        entry(name, value, name_rule, &limits_path.key(name), errors);
        huge_pages(name, value, &limits_path.key(name), errors);
    }
    let requests_path = path.field("requests");
    for (name, value) in requests.iter() {
        entry(name, value, name_rule, &requests_path.key(name), errors);
        request_within_limit(name, value, limits.get(name), path, errors);
        huge_pages(name, value, &requests_path.key(name), errors);
    }
    let all = || limits.keys().chain(requests.keys());
    let computes = |name: &str| name == "cpu" || name == "memory";
    if all().any(|name| is_huge_page(name)) && !all().any(|name| computes(name)) {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
    claim_names(
        requirements.list("claims"),
        claims,
        &path.field("claims"),
        errors,
    );
}

fn entry(
    name: &str,
    value: &Value,
    name_rule: fn(&str, &Path<'_>, &mut Errors),
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if !matches!(name, "cpu" | "memory") {
        name_rule(name, path, errors);
    }
    amount(name, value, path, errors);
}

fn request_within_limit(
    name: &str,
    request: &Value,
    limit: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let overcommits = is_native(name) && !is_huge_page(name);
    let Some(limit) = limit else {
        if !overcommits {
            let detail = "Limit must be set for non overcommitable resources";
            errors.required(&path.field("limits"), detail);
        }
        return;
    };
    if request == limit {
        return;
    }
    let (Ok(request), Ok(limit)) = (Quantity::from_value(request), Quantity::from_value(limit))
    else {
        return;
    };
    let relation = match request.cmp(&limit) {
        std::cmp::Ordering::Equal => return,
        _ if !overcommits => "equal to",
        std::cmp::Ordering::Less => return,
        std::cmp::Ordering::Greater => "less than or equal to",
    };
    let detail = format!("must be {relation} {name} limit of {limit}");
    errors.invalid(&path.field("requests"), request.to_string(), detail);
}

fn huge_pages(name: &str, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(size) = name.strip_prefix(HUGE_PAGES) else {
        return;
    };
    let Ok(quantity) = Quantity::from_value(value) else {
        return;
    };
    let divides = Quantity::parse(size).is_ok_and(|size| {
        size.sign() > 0 && size.milli_value() % 1000 == 0 && quantity.value() % size.value() == 0
    });
    if !divides {
        let detail = format!("{quantity} is not positive integer multiple of {name}");
        errors.invalid(path, quantity.to_string(), detail);
    }
}

fn claim_names(list: &[Value], known: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, claim) in maps(list) {
        let path = path.index(index);
        let (name, request) = (claim.text("name"), claim.text("request"));
        if name.is_empty() {
            errors.required(&path, "");
            continue;
        }
        if seen.contains(&(name, "")) {
            errors.duplicate(&path, name);
        } else {
            if !request.is_empty() {
                let complaints = names::dns1123_label(request);
                errors.each(&path.field("request"), request, complaints);
            }
            if seen.contains(&(name, request)) {
                errors.duplicate(&path, &format!("{name}/{request}"));
            } else if request.is_empty() && seen.iter().any(|(other, _)| *other == name) {
                errors.duplicate(&path, name);
            }
            seen.push((name, request));
        }
        if !known.contains(&name) {
            let mut error = FieldError::not_found(&path, &name.into());
            let mut sorted = known.to_vec();
            sorted.sort_unstable();
            error.detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
            error.detail.push_str(&if sorted.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", sorted.join(", "))
            });
            errors.push(error);
        }
    }
}

fn is_standard(name: &str) -> bool {
    STANDARD.contains(&name) || is_quota_huge_page(name)
}

/// Whether this is memory in huge pages.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_quota_huge_page(name: &str) -> bool {
    is_huge_page(name) || name.starts_with("requests.hugepages-")
}

/// Whether the resource is one of the platform's own.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether the resource is one that clusters add.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether quotas count the resource under its own name.
pub(crate) fn is_quota_standard(name: &str) -> bool {
    STANDARD_FOR_QUOTA.contains(&name) || is_quota_huge_page(name)
}
