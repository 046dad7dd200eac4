//! The checks of each level, and since when each of them holds.
//!
//! A check has one form for each release that changed it. Restricted adds its own checks to those
//! of baseline, and some of its checks take the place of one of baseline's.

use std::collections::BTreeSet;

use object::{Map, Value};

use super::{Level, Standard, Version, baseline, restricted};
use crate::admission::amounts::containers;

/// What a check holds against a pod: the reason in short, and the details.
pub(super) type Finding = Option<(String, String)>;
pub(super) type Check = fn(&Pod<'_>) -> Finding;

/// One form of a check, the minor release since which it holds, and what of baseline it replaces.
struct Form {
    since: u64,
    check: Check,
    replaces: &'static str,
}

const fn form(since: u64, check: Check) -> Form {
    Form {
        since,
        check,
        replaces: "",
    }
}

const fn replacing(since: u64, check: Check, replaces: &'static str) -> Form {
    Form {
        since,
        check,
        replaces,
    }
}

/// The checks of baseline, in the order in which findings are listed.
const BASELINE: &[(&str, &[Form])] = &[
    ("appArmorProfile", &[form(0, baseline::app_armor)]),
    ("capabilities_baseline", &[form(0, baseline::capabilities)]),
    ("hostNamespaces", &[form(0, baseline::host_namespaces)]),
    ("hostPathVolumes", &[form(0, baseline::host_path_volumes)]),
    ("hostPorts", &[form(0, baseline::host_ports)]),
    (
        "hostProbesAndHostLifecycle",
        &[form(34, baseline::probe_hosts)],
    ),
    ("privileged", &[form(0, baseline::privileged)]),
    (
        "procMount",
        &[
            form(0, baseline::proc_mount),
            form(35, baseline::proc_mount_of_host_users),
        ],
    ),
    (
        "seLinuxOptions",
        &[
            form(0, baseline::se_linux),
            form(31, baseline::se_linux_1_31),
        ],
    ),
    (
        "seccompProfile_baseline",
        &[
            form(0, baseline::seccomp_annotations),
            form(19, baseline::seccomp),
        ],
    ),
    (
        "sysctls",
        &[
            form(0, baseline::sysctls),
            form(27, baseline::sysctls_1_27),
            form(29, baseline::sysctls_1_29),
            form(32, baseline::sysctls_1_32),
        ],
    ),
    (
        "windowsHostProcess",
        &[form(0, baseline::windows_host_process)],
    ),
];

/// What restricted adds.
const RESTRICTED: &[(&str, &[Form])] = &[
    (
        "allowPrivilegeEscalation",
        &[
            form(8, restricted::privilege_escalation),
            form(25, |pod| {
                unless_windows(pod, restricted::privilege_escalation)
            }),
        ],
    ),
    (
        "capabilities_restricted",
        &[
            replacing(22, restricted::capabilities, "capabilities_baseline"),
            replacing(
                25,
                |pod| unless_windows(pod, restricted::capabilities),
                "capabilities_baseline",
            ),
        ],
    ),
    (
        "procMount_restricted",
        &[replacing(35, baseline::proc_mount, "procMount")],
    ),
    (
        "restrictedVolumes",
        &[replacing(0, restricted::volumes_allowed, "hostPathVolumes")],
    ),
    (
        "runAsNonRoot",
        &[
            form(0, restricted::run_as_non_root),
            form(35, |pod| unless_own_users(pod, restricted::run_as_non_root)),
        ],
    ),
    (
        "runAsUser",
        &[
            form(23, restricted::run_as_user),
            form(35, |pod| unless_own_users(pod, restricted::run_as_user)),
        ],
    ),
    (
        "seccompProfile_restricted",
        &[
            replacing(19, restricted::seccomp, "seccompProfile_baseline"),
            replacing(
                25,
                |pod| unless_windows(pod, restricted::seccomp),
                "seccompProfile_baseline",
            ),
        ],
    ),
];

/// The form that holds at a version.
fn at(forms: &'static [Form], version: Version) -> Option<&'static Form> {
    let mut held = forms.iter().rev();
    held.find(|form| Version::Minor(form.since) <= version)
}

/// Everything that a standard holds against a pod.
pub(super) fn evaluate(standard: Standard, pod: &Pod<'_>) -> Findings {
    let mut findings = Findings(Vec::new());
    if standard.level == Level::Privileged {
        return findings;
    }
    let held = |(name, forms): &(&'static str, &'static [Form])| {
        Some((*name, at(forms, standard.version)?))
    };
    let strict: Vec<(&str, &Form)> = match standard.level {
        Level::Restricted => RESTRICTED.iter().filter_map(held).collect(),
        _ => Vec::new(),
    };
    let is_replaced = |name: &str| strict.iter().any(|(_, form)| form.replaces == name);
    let plain = BASELINE.iter().filter_map(held);
    let plain: Vec<(&str, &Form)> = plain.filter(|(name, _)| !is_replaced(name)).collect();
    for (_, form) in plain.iter().chain(&strict) {
        findings.0.extend((form.check)(pod));
    }
    findings
}

/// What was found, in order.
pub(super) struct Findings(Vec<(String, String)>);

impl Findings {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The reasons alone, for warnings about many pods.
    pub(super) fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|(reason, _)| reason.as_str()).collect();
        reasons.join(", ")
    }

    /// The reasons with their details.
    pub(super) fn details(&self) -> String {
        let texts = self.0.iter().map(|(reason, detail)| match detail.as_str() {
            "" => reason.clone(),
            detail => format!("{reason} ({detail})"),
        });
        texts.collect::<Vec<String>>().join(", ")
    }
}

/// A pod, or the template of one.
pub(super) struct Pod<'a> {
    pub object: &'a Map,
    pub spec: &'a Map,
}

impl<'a> Pod<'a> {
    pub(super) fn new(object: &'a Map) -> Option<Pod<'a>> {
        let spec = object.get("spec")?.as_object()?;
        Some(Pod { object, spec })
    }

    /// All containers: those that start the pod, its own, and guests.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'a Map> + use<'a> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(|list| containers(spec, list))
    }

    /// The security context of the pod as a whole.
    pub(super) fn security(&self, field: &str) -> Option<&'a Value> {
        security(self.spec, field)
    }

    /// The names of the containers that a condition holds for.
    pub(super) fn containers_with(&self, condition: impl Fn(&Map) -> bool) -> Vec<&'a str> {
        let found = self.containers().filter(|container| condition(container));
        found.map(name).collect()
    }

    /// Annotations, in order.
    pub(super) fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let metadata = self.object.get("metadata");
        let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
        let annotations = annotations.and_then(Value::as_object).into_iter();
        annotations
            .flat_map(Map::iter)
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }
}

/// A field of the security context of a pod or container.
pub(super) fn security<'a>(holder: &'a Map, field: &str) -> Option<&'a Value> {
    let context = holder.get("securityContext")?;
    context.get(field).filter(|value| !value.is_null())
}

pub(super) fn name(container: &Map) -> &str {
    let name = container.get("name").and_then(Value::as_str);
    name.unwrap_or_default()
}

/// Texts in quotes, with commas.
pub(super) fn quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let quoted = items.into_iter().map(|it| format!("\"{}\"", it.as_ref()));
    quoted.collect::<Vec<String>>().join(", ")
}

/// `container "a"` or `containers "a", "b"`.
pub(super) fn named_containers(names: &[&str]) -> String {
    let what = plural(names.len(), "container", "containers");
    format!("{what} {}", quoted(names))
}

pub(super) fn plural<'a>(number: usize, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

/// Who sets what must not be set: the pod itself, and some of its containers.
pub(super) fn setters(pod: bool, containers: &[&str]) -> Vec<String> {
    let mut setters = Vec::new();
    if pod {
        setters.push("pod".to_owned());
    }
    if !containers.is_empty() {
        setters.push(named_containers(containers));
    }
    setters
}

/// A finding.
pub(super) fn found(reason: &str, detail: String) -> Finding {
    Some((reason.to_owned(), detail))
}

/// A finding if there is something to say.
pub(super) fn found_in(
    containers: &[&str],
    reason: &str,
    detail: impl FnOnce(String) -> String,
) -> Finding {
    if containers.is_empty() {
        return None;
    }
    found(reason, detail(named_containers(containers)))
}

/// The values of a set in quotes.
pub(super) fn quoted_set(values: &BTreeSet<&str>) -> String {
    quoted(values)
}

fn unless_windows(pod: &Pod<'_>, check: Check) -> Finding {
    let system = pod.spec.get("os").and_then(|os| os.str_at(&["name"]));
    if system == Some("windows") {
        return None;
    }
    check(pod)
}

/// A pod with users of its own is not root on its node, whatever it is inside.
pub(super) fn unless_own_users(pod: &Pod<'_>, check: Check) -> Finding {
    if pod.spec.get("hostUsers").and_then(Value::as_bool) == Some(false) {
        return None;
    }
    check(pod)
}
