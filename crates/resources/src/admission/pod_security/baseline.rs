//! Baseline: nothing that is known to lift a pod's privileges.
//!
//! Contract: the checks of `pod-security-admission/policy` at this level.

use std::collections::BTreeSet;

use object::{Map, Value};

use super::checks::{
    Finding, Pod, found, found_in, plural, quoted, quoted_set, security, setters, unless_own_users,
};

const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const SE_LINUX_TYPES: &[&str] = &[
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];
/// How many of [`SE_LINUX_TYPES`] were allowed before v1.31.
const SE_LINUX_TYPES_FIRST: usize = 4;
/// In the order in which they came to be allowed.
const SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// Whether the profile of a security context is one that confines.
fn is_confining(kind: &str) -> bool {
    matches!(kind, "RuntimeDefault" | "Localhost")
}

/// The type of a profile in a security context, if a profile is set.
pub(super) fn profile_type<'a>(holder: &'a Map, field: &str) -> Option<&'a str> {
    let profile = security(holder, field)?;
    Some(profile.str_at(&["type"]).unwrap_or_default())
}

/// Whether pod or container set a profile that does not confine, and which.
pub(super) fn loose_profile<'a>(holder: &'a Map, field: &str) -> Option<&'a str> {
    profile_type(holder, field).filter(|kind| !is_confining(kind))
}

pub(super) fn app_armor(pod: &Pod<'_>) -> Finding {
    const FIELD: &str = "appArmorProfile";
    let whole = loose_profile(pod.spec, FIELD);
    let containers = pod.containers_with(|it| loose_profile(it, FIELD).is_some());
    let own = pod.containers().filter_map(|it| loose_profile(it, FIELD));
    let values: BTreeSet<&str> = whole.into_iter().chain(own).collect();
    let is_allowed = |value: &str| {
        value.is_empty() || value == "runtime/default" || value.starts_with("localhost/")
    };
    let annotations = pod
        .annotations()
        .filter(|(key, value)| key.starts_with(APP_ARMOR_ANNOTATION) && !is_allowed(value));
    let annotations: Vec<String> = annotations
        .map(|(key, value)| format!("{key}={}", object::field::quote(value)))
        .collect();
    let mut setters = setters(whole.is_some(), &containers);
    if !annotations.is_empty() {
        setters.push(plural(annotations.len(), "annotation", "annotations").to_owned());
    }
    if setters.is_empty() {
        return None;
    }
    let mut values: Vec<String> = values.into_iter().map(str::to_owned).collect();
    values.extend(annotations);
    let reason = plural(
        values.len(),
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
    );
    let who = setters.join(" and ");
    let values = quoted(values);
    found(
        reason,
        format!("{who} must not set AppArmor profile type to {values}"),
    )
}

/// The capabilities that a container adds.
pub(super) fn added(container: &Map) -> impl Iterator<Item = &str> {
    let added = security(container, "capabilities").and_then(|it| it.get("add"));
    let added = added.and_then(Value::as_array).unwrap_or_default();
    added.iter().filter_map(Value::as_str)
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Finding {
    let is_other = |name: &&str| !CAPABILITIES.contains(name);
    let containers = pod.containers_with(|it| added(it).any(|name| is_other(&name)));
    let others: BTreeSet<&str> = pod.containers().flat_map(added).filter(is_other).collect();
    found_in(&containers, "non-default capabilities", |who| {
        let others = quoted_set(&others);
        format!("{who} must not include {others} in securityContext.capabilities.add")
    })
}

pub(super) fn host_namespaces(pod: &Pod<'_>) -> Finding {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| pod.spec.get(field).and_then(Value::as_bool) == Some(true))
        .map(|field| format!("{field}=true"))
        .collect();
    if shared.is_empty() {
        return None;
    }
    found("host namespaces", shared.join(", "))
}

/// The volumes of a pod.
pub(super) fn volumes<'a>(pod: &Pod<'a>) -> impl Iterator<Item = &'a Map> + use<'a> {
    crate::admission::amounts::containers(pod.spec, "volumes")
}

pub(super) fn host_path_volumes(pod: &Pod<'_>) -> Finding {
    let names: Vec<&str> = volumes(pod)
        .filter(|volume| volume.get("hostPath").is_some_and(|it| !it.is_null()))
        .map(super::checks::name)
        .collect();
    if names.is_empty() {
        return None;
    }
    let what = plural(names.len(), "volume", "volumes");
    found("hostPath volumes", format!("{what} {}", quoted(&names)))
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Finding {
    fn ports(container: &Map) -> impl Iterator<Item = i64> {
        let ports = container.get("ports").and_then(Value::as_array);
        let ports = ports.unwrap_or_default().iter();
        ports
            .filter_map(|port| port.get("hostPort").and_then(Value::as_int))
            .filter(|port| *port != 0)
    }
    let containers = pod.containers_with(|it| ports(it).next().is_some());
    // Sorted as texts.
    let all = pod
        .containers()
        .flat_map(ports)
        .map(|port| port.to_string());
    let all: BTreeSet<String> = all.collect();
    found_in(&containers, "hostPort", |who| {
        let use_ = plural(containers.len(), "uses", "use");
        let what = plural(all.len(), "hostPort", "hostPorts");
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        format!("{who} {use_} {what} {}", all.join(", "))
    })
}

pub(super) fn probe_hosts(pod: &Pod<'_>) -> Finding {
    const HANDLERS: &[&[&str]] = &[
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    fn hosts(container: &Map) -> impl Iterator<Item = &str> {
        let handlers = HANDLERS.iter().filter_map(|path| {
            let (first, rest) = path.split_first()?;
            container.get(first)?.at(rest)
        });
        handlers.flat_map(|handler| {
            let hosts = ["httpGet", "tcpSocket"].map(|kind| handler.str_at(&[kind, "host"]));
            hosts.into_iter().flatten().filter(|host| !host.is_empty())
        })
    }
    let containers = pod.containers_with(|it| hosts(it).next().is_some());
    let containers: BTreeSet<&str> = containers.into_iter().collect();
    let containers: Vec<&str> = containers.into_iter().collect();
    let all: BTreeSet<&str> = pod.containers().flat_map(hosts).collect();
    found_in(&containers, "probe or lifecycle host", |who| {
        let use_ = plural(containers.len(), "uses", "use");
        let what = plural(
            all.len(),
            "probe or lifecycle host",
            "probe or lifecycle hosts",
        );
        format!("{who} {use_} {what} {}", quoted_set(&all))
    })
}

pub(super) fn privileged(pod: &Pod<'_>) -> Finding {
    let is_privileged = |it: &Map| security(it, "privileged") == Some(&Value::Bool(true));
    let containers = pod.containers_with(is_privileged);
    found_in(&containers, "privileged", |who| {
        format!("{who} must not set securityContext.privileged=true")
    })
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Finding {
    fn unmasked(container: &Map) -> Option<&str> {
        let mount = security(container, "procMount")?.as_str()?;
        (mount != "Default").then_some(mount)
    }
    let containers = pod.containers_with(|it| unmasked(it).is_some());
    let kinds: BTreeSet<&str> = pod.containers().filter_map(unmasked).collect();
    found_in(&containers, "procMount", |who| {
        let kinds = quoted_set(&kinds);
        format!("{who} must not set securityContext.procMount to {kinds}")
    })
}

pub(super) fn proc_mount_of_host_users(pod: &Pod<'_>) -> Finding {
    unless_own_users(pod, proc_mount)
}

pub(super) fn se_linux(pod: &Pod<'_>) -> Finding {
    se_linux_of(pod, &SE_LINUX_TYPES[..SE_LINUX_TYPES_FIRST])
}

pub(super) fn se_linux_1_31(pod: &Pod<'_>) -> Finding {
    se_linux_of(pod, SE_LINUX_TYPES)
}

fn se_linux_of(pod: &Pod<'_>, allowed: &[&str]) -> Finding {
    fn option<'a>(holder: &'a Map, field: &str) -> &'a str {
        let options = security(holder, "seLinuxOptions");
        options
            .and_then(|it| it.str_at(&[field]))
            .unwrap_or_default()
    }
    let is_bad = |holder: &Map| {
        !allowed.contains(&option(holder, "type"))
            || !option(holder, "user").is_empty()
            || !option(holder, "role").is_empty()
    };
    let containers = pod.containers_with(is_bad);
    let setters = setters(is_bad(pod.spec), &containers);
    if setters.is_empty() {
        return None;
    }
    let holders: Vec<&Map> = std::iter::once(pod.spec).chain(pod.containers()).collect();
    let types = holders.iter().map(|holder| option(holder, "type"));
    let types: BTreeSet<&str> = types.filter(|kind| !allowed.contains(kind)).collect();
    let mut complaints = Vec::new();
    if !types.is_empty() {
        let what = plural(types.len(), "type", "types");
        complaints.push(format!("{what} {}", quoted_set(&types)));
    }
    for field in ["user", "role"] {
        if holders
            .iter()
            .any(|holder| !option(holder, field).is_empty())
        {
            complaints.push(format!("{field} may not be set"));
        }
    }
    let who = setters.join(" and ");
    let complaints = complaints.join("; ");
    found(
        "seLinuxOptions",
        format!("{who} set forbidden securityContext.seLinuxOptions: {complaints}"),
    )
}

/// Before v1.19 annotations said what profile a container has.
pub(super) fn seccomp_annotations(pod: &Pod<'_>) -> Finding {
    let is_allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let containers: Vec<&str> = pod.containers().map(super::checks::name).collect();
    let is_ours = |key: &str| {
        let container = key.strip_prefix(SECCOMP_CONTAINER);
        key == SECCOMP_POD || container.is_some_and(|name| containers.contains(&name))
    };
    let wrong: BTreeSet<String> = pod
        .annotations()
        .filter(|(key, value)| is_ours(key) && !is_allowed(value))
        .map(|(key, value)| format!("{key}={}", object::field::quote(value)))
        .collect();
    if wrong.is_empty() {
        return None;
    }
    let what = plural(wrong.len(), "annotation", "annotations");
    let wrong: Vec<String> = wrong.into_iter().collect();
    found(
        "seccompProfile",
        format!("forbidden {what} {}", wrong.join(", ")),
    )
}

pub(super) fn seccomp(pod: &Pod<'_>) -> Finding {
    const FIELD: &str = "seccompProfile";
    let whole = loose_profile(pod.spec, FIELD);
    let containers = pod.containers_with(|it| loose_profile(it, FIELD).is_some());
    let setters = setters(whole.is_some(), &containers);
    if setters.is_empty() {
        return None;
    }
    let own = pod.containers().filter_map(|it| loose_profile(it, FIELD));
    let values: BTreeSet<&str> = whole.into_iter().chain(own).collect();
    let (who, values) = (setters.join(" and "), quoted_set(&values));
    found(
        FIELD,
        format!("{who} must not set securityContext.seccompProfile.type to {values}"),
    )
}

pub(super) fn sysctls(pod: &Pod<'_>) -> Finding {
    sysctls_of(pod, 5)
}

pub(super) fn sysctls_1_27(pod: &Pod<'_>) -> Finding {
    sysctls_of(pod, 6)
}

pub(super) fn sysctls_1_29(pod: &Pod<'_>) -> Finding {
    sysctls_of(pod, 10)
}

pub(super) fn sysctls_1_32(pod: &Pod<'_>) -> Finding {
    sysctls_of(pod, 12)
}

/// `allowed` is how many of [`SYSCTLS`] are allowed.
fn sysctls_of(pod: &Pod<'_>, allowed: usize) -> Finding {
    let set = pod.security("sysctls").and_then(Value::as_array);
    let names = set.unwrap_or_default().iter();
    let names = names.filter_map(|it| it.str_at(&["name"]));
    let wrong: Vec<&str> = names
        .filter(|name| !SYSCTLS[..allowed].contains(name))
        .collect();
    if wrong.is_empty() {
        return None;
    }
    found("forbidden sysctls", wrong.join(", "))
}

pub(super) fn windows_host_process(pod: &Pod<'_>) -> Finding {
    let is_host = |holder: &Map| {
        let options = security(holder, "windowsOptions");
        options.and_then(|it| it.get("hostProcess")) == Some(&Value::Bool(true))
    };
    let containers = pod.containers_with(is_host);
    let setters = setters(is_host(pod.spec), &containers);
    if setters.is_empty() {
        return None;
    }
    let who = setters.join(" and ");
    found(
        "hostProcess",
        format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}
