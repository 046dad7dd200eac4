//! PodSecurity: the labels of a namespace say how privileged its pods may be.
//!
//! Contract: `pod-security-admission/admission/admission.go` and `api/helpers.go`. There are no
//! exemptions, and without labels everything is allowed.

mod baseline;
mod checks;
mod restricted;

use std::collections::{BTreeMap, BTreeSet};

use object::field::{FieldError, Path, summary};
use object::{Map, Text, Value};

use super::forbidden;
use super::lookup::Place;
use crate::error::Error;
use crate::meta::{meta, meta_text};
use crate::record::Stored;
use crate::{Request, Resources, kind_subject, subject};

use checks::{Findings, Pod};

const NAMESPACES: Place = ("", "v1", "namespaces");
const PODS: Place = ("", "v1", "pods");
const LABELS: [&str; 6] = [
    "pod-security.kubernetes.io/enforce",
    "pod-security.kubernetes.io/enforce-version",
    "pod-security.kubernetes.io/audit",
    "pod-security.kubernetes.io/audit-version",
    "pod-security.kubernetes.io/warn",
    "pod-security.kubernetes.io/warn-version",
];
/// Subresources of pods that cannot change what a pod may do.
const HARMLESS: &[&str] = &[
    "exec",
    "attach",
    "binding",
    "eviction",
    "log",
    "portforward",
    "proxy",
    "status",
];
/// Existing pods that a change of a namespace's level looks at.
const PODS_CHECKED_MAX: usize = 3000;

/// How much a pod may do, the least restricted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// Which release's idea of a level counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    Minor(u64),
    Latest,
}

/// A level as some release understood it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standard {
    level: Level,
    version: Version,
}

impl std::fmt::Display for Standard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(out, "{level}:latest"),
            Version::Minor(minor) => write!(out, "{level}:v1.{minor}"),
        }
    }
}

/// What a namespace asks of its pods: what is refused, what the audit log tells, and what clients
/// are warned about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    enforce: Standard,
    audit: Standard,
    warn: Standard,
}

const ANYTHING: Standard = Standard {
    level: Level::Privileged,
    version: Version::Latest,
};

fn level(text: &str) -> Result<Level, String> {
    match text {
        "privileged" => Ok(Level::Privileged),
        "baseline" => Ok(Level::Baseline),
        "restricted" => Ok(Level::Restricted),
        _ => Err("must be one of privileged, baseline, restricted".to_owned()),
    }
}

fn version(text: &str) -> Result<Version, String> {
    let wrong = || r#"must be "latest" or "v1.x""#.to_owned();
    if text == "latest" {
        return Ok(Version::Latest);
    }
    let minor = text.strip_prefix("v1.").ok_or_else(wrong)?;
    let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || (minor.len() > 1 && minor.starts_with('0')) {
        return Err(wrong());
    }
    let minor: i64 = minor.parse().map_err(|_| wrong())?;
    Ok(Version::Minor(minor.unsigned_abs()))
}

impl Policy {
    /// Reads the labels of a namespace; what is wrong with them comes beside.
    fn read<'a>(label: impl Fn(&str) -> Option<&'a str>) -> (Policy, Vec<FieldError>) {
        let mut errors = Vec::new();
        let root = Path::root();
        let metadata = root.field("metadata");
        let labels = metadata.field("labels");
        let mut note = |key: &str, value: &str, complaint: &str| {
            errors.push(FieldError::invalid(
                &labels.key(key),
                &Value::from(value),
                complaint,
            ));
        };
        let mut read = |level_key: &str, version_key: &str, otherwise: Level| {
            let mut standard = ANYTHING;
            let mut has_level = false;
            if let Some(text) = label(level_key) {
                let read = level(text);
                has_level = read.is_ok();
                standard.level = read.unwrap_or_else(|complaint| {
                    note(level_key, text, &complaint);
                    otherwise
                });
            }
            if let Some(text) = label(version_key) {
                standard.version = version(text).unwrap_or_else(|complaint| {
                    note(version_key, text, &complaint);
                    Version::Latest
                });
            }
            (standard, has_level)
        };
        let [
            enforce,
            enforce_version,
            audit,
            audit_version,
            warn,
            warn_version,
        ] = LABELS;
        let (enforce, is_enforced) = read(enforce, enforce_version, Level::Restricted);
        let (audit, _) = read(audit, audit_version, Level::Privileged);
        let (mut warned, _) = read(warn, warn_version, Level::Privileged);
        // What is enforced is also warned about, for instance at workloads that make pods.
        if label(warn).is_none() && is_enforced && enforce.level > warned.level {
            warned.level = enforce.level;
            if label(warn_version).is_none() {
                warned.version = enforce.version;
            }
        }
        let policy = Policy {
            enforce,
            audit,
            warn: warned,
        };
        (policy, errors)
    }

    fn of_namespace(namespace: &Map) -> (Policy, Vec<FieldError>) {
        let labels = meta(namespace).get("labels").and_then(Value::as_object);
        Policy::read(|key| labels?.get(key)?.as_str())
    }

    /// Whether nothing can be found against a pod.
    fn is_open(&self) -> bool {
        self.enforce.level == Level::Privileged && self.is_silent()
    }

    /// Whether nothing can be said about a workload.
    fn is_silent(&self) -> bool {
        self.audit.level == Level::Privileged && self.warn.level == Level::Privileged
    }
}

/// Refuses pods that may do too much, and warns about them.
pub(super) async fn validate(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let kind = request.kind;
    match (kind.group.as_str(), kind.resource.as_str()) {
        ("", "namespaces") if request.subresource.is_empty() => {
            validate_namespace(resources, request, object, old).await
        }
        ("", "pods") if !HARMLESS.contains(&request.subresource) => {
            validate_pod(resources, request, object, old).await
        }
        place if request.subresource.is_empty() => match template(place, object) {
            Some(template) => validate_template(resources, request, template).await,
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The template of the pods that a workload makes.
fn template<'a>((group, resource): (&str, &str), object: &'a Map) -> Option<&'a Map> {
    let path: &[&str] = match (group, resource) {
        ("", "podtemplates") => return object.get("template")?.as_object(),
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => &["template"],
        ("batch", "cronjobs") => &["jobTemplate", "spec", "template"],
        _ => return None,
    };
    object.get("spec")?.at(path)?.as_object()
}

impl Resources {
    /// What the namespace of a request asks of its pods; labels are read without parsing.
    async fn pod_security(&self, namespace: &str) -> Result<(Policy, Vec<FieldError>), Error> {
        let kind = self.built_in(NAMESPACES)?;
        let found = self.store.get(&kind.collection, namespace).await;
        let found = found.map_err(|error| Error::from_store(error, || subject(kind, namespace)))?;
        let Some(record) = found else {
            let text = format!("failed to lookup namespace \"{namespace}\"");
            return Err(Error::Internal(text));
        };
        let stored = Stored::new(&record.value);
        let stored = stored.map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Policy::read(|key| stored.label(key)))
    }
}

async fn validate_pod(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let (policy, errors) = resources.pod_security(request.namespace).await?;
    if errors.is_empty() && policy.is_open() {
        note(request, "enforce-policy", ANYTHING.to_string());
        return Ok(());
    }
    if old.is_some_and(|old| !is_significant(object, old)) {
        return Ok(());
    }
    let Some(pod) = Pod::new(object) else {
        return Ok(());
    };
    note(request, "enforce-policy", policy.enforce.to_string());
    audit(request, &policy, &errors, &pod);
    let found = checks::evaluate(policy.enforce, &pod);
    if !found.is_empty() {
        let (standard, details) = (policy.enforce, found.details());
        let detail = format!("violates PodSecurity \"{standard}\": {details}");
        return Err(forbidden(request, object, detail));
    }
    request.warnings.add(complaint(policy.warn, &pod));
    Ok(())
}

/// Workloads are never refused: the pods that they make are.
async fn validate_template(
    resources: &Resources,
    request: &Request<'_>,
    template: &Map,
) -> Result<(), Error> {
    let (policy, errors) = resources.pod_security(request.namespace).await?;
    if errors.is_empty() && policy.is_silent() {
        return Ok(());
    }
    if let Some(pod) = Pod::new(template) {
        audit(request, &policy, &errors, &pod);
        request.warnings.add(complaint(policy.warn, &pod));
    }
    Ok(())
}

/// Tells the audit log what a pod violates, and why the labels of its namespace cannot be read.
fn audit(request: &Request<'_>, policy: &Policy, errors: &[FieldError], pod: &Pod<'_>) {
    if !errors.is_empty() {
        let text = format!("Failed to parse policy: {}", summary(errors));
        note(request, "error", text);
    }
    if let Some(text) = complaint(policy.audit, pod) {
        note(request, "audit-violations", text);
    }
}

fn note(request: &Request<'_>, key: &str, value: String) {
    let key = format!("pod-security.kubernetes.io/{key}");
    request.warnings.annotate(key, value);
}

/// What a standard that is not enforced holds against a pod.
fn complaint(standard: Standard, pod: &Pod<'_>) -> Option<String> {
    let found = checks::evaluate(standard, pod);
    let details = found.details();
    (!found.is_empty()).then(|| format!("would violate PodSecurity \"{standard}\": {details}"))
}

/// Of what can change in a pod, only images and new containers matter.
fn is_significant(pod: &Map, old: &Map) -> bool {
    let list = |object: &Map, list: &str| {
        let items = object.get("spec").and_then(|spec| spec.get(list));
        let items = items.and_then(Value::as_array).unwrap_or_default();
        let text =
            |item: &Value, field: &str| Text::from(item.str_at(&[field]).unwrap_or_default());
        let images = items.iter().map(|it| (text(it, "name"), text(it, "image")));
        images.collect::<Vec<(Text, Text)>>()
    };
    let images = |object: &Map, name: &str| {
        let all = list(object, name).into_iter();
        all.map(|(_, image)| image).collect::<Vec<Text>>()
    };
    let plain = ["containers", "initContainers"];
    if plain
        .into_iter()
        .any(|name| images(pod, name) != images(old, name))
    {
        return true;
    }
    let known = list(old, "ephemeralContainers");
    let guests = list(pod, "ephemeralContainers");
    guests.iter().any(|guest| !known.contains(guest))
}

async fn validate_namespace(
    resources: &Resources,
    request: &Request<'_>,
    namespace: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let (policy, errors) = Policy::of_namespace(namespace);
    let before = old.map(Policy::of_namespace);
    let name = meta_text(namespace, "name");
    let is_known = before.as_ref().is_some_and(|(_, known)| *known == errors);
    if !errors.is_empty() && !is_known {
        let subject = kind_subject(request.kind, name);
        return Err(Error::Invalid { subject, errors });
    }
    let Some((before, _)) = before else {
        return Ok(());
    };
    let (new, old) = (policy.enforce, before.enforce);
    let is_relaxed = new.version == old.version && new.level <= old.level;
    if new == old || new.level == Level::Privileged || is_relaxed {
        return Ok(());
    }
    let warnings = check_existing(resources, name, new).await?;
    request.warnings.add(warnings);
    Ok(())
}

/// What pods that exist have against a new level.
async fn check_existing(
    resources: &Resources,
    namespace: &str,
    standard: Standard,
) -> Result<Vec<String>, Error> {
    let pods = one_of_each_controller(resources.find_all(PODS, namespace).await?);
    let checked = pods.len().min(PODS_CHECKED_MAX);
    // For each finding the first pod by name, and how many there are.
    let mut found: BTreeMap<String, (Text, usize)> = BTreeMap::new();
    for object in &pods[..checked] {
        let Some(pod) = Pod::new(object) else {
            continue;
        };
        let findings: Findings = checks::evaluate(standard, &pod);
        if findings.is_empty() {
            continue;
        }
        let name = Text::from(meta_text(object, "name"));
        let entry = found
            .entry(findings.reasons())
            .or_insert_with(|| (name.clone(), 0));
        entry.0 = name.min(entry.0.clone());
        entry.1 += 1;
    }
    let mut warnings = Vec::new();
    if checked < pods.len() {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {} existing \
             pods",
            pods.len()
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \
             \"{standard}\""
        ));
    }
    let mut lines: Vec<String> = found
        .into_iter()
        .map(|(reasons, (name, pods))| match pods {
            1 => format!("{name}: {reasons}"),
            2 => format!("{name} (and 1 other pod): {reasons}"),
            _ => format!("{name} (and {} other pods): {reasons}", pods - 1),
        })
        .collect();
    lines.sort();
    warnings.extend(lines);
    Ok(warnings)
}

/// Pods that a controller made alike come last.
fn one_of_each_controller(pods: Vec<Map>) -> Vec<Map> {
    let mut seen: BTreeSet<Text> = BTreeSet::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for pod in pods {
        let owners = meta(&pod).get("ownerReferences").and_then(Value::as_array);
        let controller = owners
            .unwrap_or_default()
            .iter()
            .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
        let uid = controller.and_then(|owner| owner.str_at(&["uid"]));
        match uid {
            Some(uid) if !seen.insert(uid.into()) => others.push(pod),
            _ => first.push(pod),
        }
    }
    first.append(&mut others);
    first
}

#[cfg(test)]
mod tests;
