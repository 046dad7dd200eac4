//! Restricted: what a pod has to give up to follow best practice.
//!
//! Contract: the checks of `pod-security-admission/policy` at this level.

use std::collections::BTreeSet;

use object::{Map, Value};

use super::baseline::{added, loose_profile, profile_type, volumes};
use super::checks::{
    Finding, Pod, found, found_in, name, named_containers, plural, quoted, quoted_set, security,
    setters,
};

const VOLUMES: &[&str] = &[
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

pub(super) fn privilege_escalation(pod: &Pod<'_>) -> Finding {
    const FIELD: &str = "allowPrivilegeEscalation";
    let may = |it: &Map| security(it, FIELD) != Some(&Value::Bool(false));
    let containers = pod.containers_with(may);
    found_in(&containers, "allowPrivilegeEscalation != false", |who| {
        format!("{who} must set securityContext.allowPrivilegeEscalation=false")
    })
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Finding {
    const ALLOWED: &str = "NET_BIND_SERVICE";
    let drops_all = |container: &Map| {
        let dropped = security(container, "capabilities").and_then(|it| it.get("drop"));
        let dropped = dropped.and_then(Value::as_array).unwrap_or_default();
        dropped.iter().any(|it| it.as_str() == Some("ALL"))
    };
    let keeping = pod.containers_with(|it| !drops_all(it));
    let adding = pod.containers_with(|it| added(it).any(|name| name != ALLOWED));
    let others = pod.containers().flat_map(added);
    let others: BTreeSet<&str> = others.filter(|name| *name != ALLOWED).collect();
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let who = named_containers(&keeping);
        details.push(format!(
            "{who} must set securityContext.capabilities.drop=[\"ALL\"]"
        ));
    }
    if !adding.is_empty() {
        let (who, others) = (named_containers(&adding), quoted_set(&others));
        details.push(format!(
            "{who} must not include {others} in securityContext.capabilities.add"
        ));
    }
    if details.is_empty() {
        return None;
    }
    found("unrestricted capabilities", details.join("; "))
}

pub(super) fn volumes_allowed(pod: &Pod<'_>) -> Finding {
    let (mut names, mut kinds) = (Vec::new(), BTreeSet::new());
    for volume in volumes(pod) {
        let mut sources = volume
            .iter()
            .filter(|(key, value)| *key != "name" && !value.is_null())
            .map(|(key, _)| key.as_str());
        let source = sources.next().unwrap_or("unknown");
        if !VOLUMES.contains(&source) {
            names.push(name(volume));
            kinds.insert(source);
        }
    }
    if names.is_empty() {
        return None;
    }
    let what = plural(names.len(), "volume", "volumes");
    let use_ = plural(names.len(), "uses", "use");
    let kind = plural(
        kinds.len(),
        "restricted volume type",
        "restricted volume types",
    );
    let (names, kinds) = (quoted(&names), quoted_set(&kinds));
    found(
        "restricted volume types",
        format!("{what} {names} {use_} {kind} {kinds}"),
    )
}

pub(super) fn run_as_non_root(pod: &Pod<'_>) -> Finding {
    const REASON: &str = "runAsNonRoot != true";
    let stated = |holder: &Map| security(holder, "runAsNonRoot").and_then(Value::as_bool);
    let whole = stated(pod.spec);
    let explicit = pod.containers_with(|it| stated(it) == Some(false));
    let setters = setters(whole == Some(false), &explicit);
    if !setters.is_empty() {
        let who = setters.join(" and ");
        return found(
            REASON,
            format!("{who} must not set securityContext.runAsNonRoot=false"),
        );
    }
    let implicit = pod.containers_with(|it| stated(it).is_none() && whole != Some(true));
    found_in(&implicit, REASON, |who| {
        format!("pod or {who} must set securityContext.runAsNonRoot=true")
    })
}

pub(super) fn run_as_user(pod: &Pod<'_>) -> Finding {
    let is_root = |holder: &Map| security(holder, "runAsUser") == Some(&Value::Int(0));
    let containers = pod.containers_with(is_root);
    let setters = setters(is_root(pod.spec), &containers);
    if setters.is_empty() {
        return None;
    }
    let who = setters.join(" and ");
    found("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

pub(super) fn seccomp(pod: &Pod<'_>) -> Finding {
    const FIELD: &str = "seccompProfile";
    let loose = super::baseline::seccomp(pod);
    if loose.is_some() {
        return loose;
    }
    let whole = profile_type(pod.spec, FIELD).filter(|_| loose_profile(pod.spec, FIELD).is_none());
    let implicit = pod.containers_with(|it| profile_type(it, FIELD).is_none() && whole.is_none());
    found_in(&implicit, FIELD, |who| {
        format!(
            "pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
             \"Localhost\""
        )
    })
}
