//! The spec of a pod: the order of its checks, and the small ones.

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use super::{Context, affinity, containers, security, volumes};
use crate::validation::check::{self, Errors, Report};
use crate::validation::print::{self, Field, Shape};
use crate::validation::read::{Read, maps, texts};
use crate::validation::{meta, quantities};

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_BYTES_MAX: usize = 2048;
const HOSTNAME_BYTES_MAX: usize = 64;
const WINDOWS: &str = "cannot be set for a windows pod";
const CLAIM: Shape = Shape(&[
    Field::plain("name", "Name", "\"\""),
    Field::plain("resourceClaimName", "ResourceClaimName", "null"),
    Field::plain(
        "resourceClaimTemplateName",
        "ResourceClaimTemplateName",
        "null",
    ),
]);

/// Checks a spec; a pod has a name, a template has not.
pub(super) fn validate(spec: &Map, pod: Option<&str>, path: &Path<'_>, errors: &mut Errors) {
    let grace_period = spec.int("terminationGracePeriodSeconds");
    if grace_period.is_none() {
        errors.required(&path.field("terminationGracePeriodSeconds"), "");
    }
    let claims: Vec<&str> = maps(spec.list("resourceClaims"))
        .map(|(_, claim)| claim.text("name"))
        .filter(|name| !name.is_empty())
        .collect();
    let mut context = Context {
        is_pod: pod.is_some(),
        pod_name: pod.unwrap_or_default(),
        restart_policy: spec.text("restartPolicy"),
        grace_period,
        os: spec.object_or_empty("os").text("name"),
        host_users: spec.choice("hostUsers").unwrap_or(true),
        volumes: &[],
        claims: &claims,
    };
    let good = volumes::volumes(spec, &context, &path.field("volumes"), errors);
    context.volumes = &good;
    resource_claims(spec, &path.field("resourceClaims"), errors);
    containers::regular(spec, &context, path, errors);
    containers::init(spec, &context, path, errors);
    containers::ephemeral(spec, &context, path, errors);
    pod_resources(spec, &context, path, errors);
    host_network_ports(spec, context.is_pod, path, errors);
    placement(spec, path, errors);
    names_and_numbers(spec, path, errors);
    operating_system(spec, path, errors);
    file_keys(spec, path, errors);
}

fn placement(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::choice(
        spec.text("restartPolicy"),
        &["Always", "OnFailure", "Never"],
        &path.field("restartPolicy"),
        errors,
    );
    check::choice(
        spec.text("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        &path.field("dnsPolicy"),
        errors,
    );
    meta::labels(
        spec.object("nodeSelector"),
        &path.field("nodeSelector"),
        errors,
    );
    security::pod(spec, &path.field("securityContext"), errors);
    only_name(spec, "imagePullSecrets", path, errors);
    if let Some(wishes) = spec.object("affinity") {
        affinity::affinity(wishes, &path.field("affinity"), errors);
    }
    dns_config(spec, &path.field("dnsConfig"), errors);
    let gates = path.field("readinessGates");
    for (index, gate) in maps(spec.list("readinessGates")) {
        let kind = gate.text("conditionType");
        let path = gates.index(index);
        errors.each(
            &path.field("conditionType"),
            kind,
            names::qualified_name(kind),
        );
    }
    scheduling_gates(
        spec.list("schedulingGates"),
        &path.field("schedulingGates"),
        errors,
    );
    let spread = spec.list("topologySpreadConstraints");
    affinity::topology_spread(spread, &path.field("topologySpreadConstraints"), errors);
    windows_host_process(spec, path, errors);
    host_users(spec, path, errors);
    hostname_override(spec, path, errors);
}

fn names_and_numbers(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    for key in ["serviceAccountName", "nodeName"] {
        check::optional_subdomain(spec.text(key), &path.field(key), errors);
    }
    if let Some(seconds) = spec.int("activeDeadlineSeconds") {
        for complaint in names::in_range(seconds, 1, i64::from(i32::MAX)) {
            errors.invalid(&path.field("activeDeadlineSeconds"), seconds, complaint);
        }
    }
    for key in ["hostname", "subdomain"] {
        let text = spec.text(key);
        if !text.is_empty() {
            errors.each(&path.field(key), text, names::dns1123_label(text));
        }
    }
    affinity::tolerations(spec.list("tolerations"), &path.field("tolerations"), errors);
    host_aliases(spec.list("hostAliases"), &path.field("hostAliases"), errors);
    check::optional_subdomain(
        spec.text("priorityClassName"),
        &path.field("priorityClassName"),
        errors,
    );
    if spec.has("runtimeClassName") {
        let name = spec.text("runtimeClassName");
        let complaints = names::dns1123_subdomain(name);
        errors.each(&path.field("runtimeClassName"), name, complaints);
    }
    if spec.has("preemptionPolicy") {
        check::choice(
            spec.text("preemptionPolicy"),
            &["PreemptLowerPriority", "Never"],
            &path.field("preemptionPolicy"),
            errors,
        );
    }
    if let Some(overhead) = spec.get("overhead").filter(|value| !value.is_null()) {
        let limits = Map::from_entries(vec![("limits".into(), overhead.clone())]);
        let name_rule = quantities::container_resource_name;
        quantities::requirements(&limits, name_rule, &[], &path.field("overhead"), errors);
    }
}

/// Checks references that may hold nothing but a name.
fn only_name(map: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field(key);
    for (index, reference) in maps(map.list(key)) {
        if reference
            .iter()
            .any(|(key, value)| key != "name" && !value.is_null())
        {
            let value = Value::Object(reference.clone());
            errors.invalid_value(&path.index(index), &value, "only name may be set");
        }
    }
}

fn resource_claims(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("resourceClaims");
    for (index, claim) in maps(list) {
        let path = path.index(index);
        let name = claim.text("name");
        if name.is_empty() {
            errors.required(&path.field("name"), "");
        } else if maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
            errors.duplicate(&path.field("name"), name);
        } else {
            errors.each(&path.field("name"), name, names::dns1123_label(name));
        }
        let detail = match (
            claim.has("resourceClaimName"),
            claim.has("resourceClaimTemplateName"),
        ) {
            (true, true) => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be \
                 specified"
            }
            (false, false) => {
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            }
            _ => "",
        };
        if !detail.is_empty() {
            let value = Value::Object(claim.clone());
            errors.push(print::invalid(&path, &value, &CLAIM, detail));
        }
        for key in ["resourceClaimName", "resourceClaimTemplateName"] {
            if claim.has(key) {
                let text = claim.text(key);
                errors.each(&path.field(key), text, names::dns1123_subdomain(text));
            }
        }
    }
}

fn pod_resources(spec: &Map, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let Some(resources) = spec.object("resources") else {
        return;
    };
    let path = path.field("resources");
    if context.os == "windows" {
        errors.forbidden(&path, "may not be set for a windows pod");
        return;
    }
    if resources.has("claims") {
        let detail = "claims may not be set for Resources at pod-level";
        errors.forbidden(&path.field("claims"), detail);
    }
    let name_rule = quantities::pod_resource_name;
    quantities::requirements(resources, name_rule, context.claims, &path, errors);
    super::totals::within_pod(spec, resources, &path, errors);
}

fn host_network_ports(spec: &Map, is_pod: bool, path: &Path<'_>, errors: &mut Errors) {
    if !spec.flag("hostNetwork") {
        return;
    }
    let path = path.field("containers");
    for (index, container) in maps(spec.list("containers")) {
        let path = path.index(index);
        let path = path.field("ports");
        for (position, port) in maps(container.list("ports")) {
            let host = port.int("hostPort").unwrap_or_default();
            let inside = port.int("containerPort").unwrap_or_default();
            if (is_pod || host != 0) && host != inside {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&path.index(position).field("hostPort"), host, detail);
            }
        }
    }
}

fn dns_config(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let config = spec.object("dnsConfig");
    if spec.text("dnsPolicy") == "None" {
        let Some(config) = config else {
            errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        };
        if config.list("nameservers").is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.required(&path.field("nameservers"), detail);
            return;
        }
    }
    let Some(config) = config else {
        return;
    };
    let nameservers = path.field("nameservers");
    if config.list("nameservers").len() > NAMESERVERS_MAX {
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.invalid_value(&nameservers, config.value("nameservers"), detail);
    }
    for (index, address) in texts(config.list("nameservers")) {
        check::legacy_ip(address, &[], &nameservers.index(index), errors);
    }
    searches(config, &path.field("searches"), errors);
    let options = path.field("options");
    for (index, option) in maps(config.list("options")) {
        if option.text("name").is_empty() {
            errors.required(&options.index(index), "must not be empty");
        }
    }
}

fn searches(config: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = config.list("searches");
    if list.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.invalid_value(path, config.value("searches"), detail);
    }
    let bytes: usize = texts(list).map(|(_, text)| text.len() + 1).sum();
    if bytes.saturating_sub(1) > SEARCH_BYTES_MAX {
        let detail = format!(
            "must not have more than {SEARCH_BYTES_MAX} characters (including spaces) in the \
             search list"
        );
        errors.invalid_value(path, config.value("searches"), detail);
    }
    for (index, search) in texts(list).filter(|(_, text)| *text != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        let complaints = names::dns1123_subdomain_with_underscore(search);
        errors.each(&path.index(index), search, complaints);
    }
}

fn scheduling_gates(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, gate) in maps(list) {
        let name = gate.text("name");
        errors.each(&path.index(index), name, names::qualified_name(name));
        if maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
            errors.duplicate(&path.index(index), name);
        }
    }
}

fn host_aliases(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, alias) in maps(list) {
        let path = path.index(index);
        check::legacy_ip(alias.text("ip"), &[], &path.field("ip"), errors);
        let hostnames = path.field("hostnames");
        for (position, name) in texts(alias.list("hostnames")) {
            let complaints = names::dns1123_subdomain(name);
            errors.each(&hostnames.index(position), name, complaints);
        }
    }
}

fn host_users(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    if spec.choice("hostUsers") != Some(false) {
        return;
    }
    for (key, shown) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.flag(key) {
            errors.forbidden(&path.field(shown), "when `hostUsers` is false");
        }
    }
    each_container(spec, path, |container, path| {
        if !container.list("volumeDevices").is_empty() {
            errors.forbidden(&path.field("volumeDevices"), "when `hostUsers` is false");
        }
    });
}

fn hostname_override(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    if !spec.has("hostnameOverride") {
        return;
    }
    let path = path.field("hostnameOverride");
    for key in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.flag(key) {
            errors.forbidden(&path, format!("may not be specified when {key} is true"));
        }
    }
    let name = spec.text("hostnameOverride");
    if name.len() > HOSTNAME_BYTES_MAX {
        errors.push(FieldError::too_long(&path, HOSTNAME_BYTES_MAX));
    }
    errors.each(&path, name, names::dns1123_subdomain(name));
}

/// Visits every container in upstream's order: init, regular, ephemeral.
pub(super) fn each_container(spec: &Map, path: &Path<'_>, mut visit: impl FnMut(&Map, &Path<'_>)) {
    for key in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.field(key);
        for (index, container) in maps(spec.list(key)) {
            visit(container, &path.index(index));
        }
    }
}

fn windows_host_process(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let of = |map: &Map| {
        map.object_or_empty("securityContext")
            .object_or_empty("windowsOptions")
            .choice("hostProcess")
    };
    let whole = of(spec);
    let (mut count, mut processes) = (0, 0);
    each_container(spec, path, |container, path| {
        count += 1;
        let own = of(container);
        if let (Some(whole), Some(own)) = (whole, own)
            && whole != own
        {
            let path = path.field("securityContext");
            let path = path.field("windowsOptions");
            let detail = format!(
                "pod hostProcess value must be identical if both are specified, was {whole}"
            );
            errors.invalid(&path.field("hostProcess"), own, detail);
        }
        processes += u32::from(own.or(whole).unwrap_or_default());
    });
    if processes == 0 {
        return;
    }
    if processes != count {
        let detail = "If pod contains any hostProcess containers then all containers must be \
                      HostProcess containers";
        errors.invalid(path, "", detail);
    }
    if !spec.flag("hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&path.field("hostNetwork"), false, detail);
    }
    if !super::security::privileged_allowed() {
        let detail = "hostProcess containers are disallowed by cluster policy";
        errors.forbidden(path, detail);
    }
}

fn operating_system(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let Some(os) = spec.object("os") else {
        return;
    };
    match os.text("name") {
        "" => errors.required(&path.field("os").field("name"), ""),
        "linux" => {
            let detail = "windows options cannot be set for a linux pod";
            let mut check = |map: &Map, path: &Path<'_>| {
                if map.object_or_empty("securityContext").has("windowsOptions") {
                    let path = path.field("securityContext");
                    errors.forbidden(&path.field("windowsOptions"), detail);
                }
            };
            check(spec, path);
            each_container(spec, path, check);
        }
        "windows" => windows(spec, path, errors),
        other => errors.unsupported(&path.field("os"), other, &["linux", "windows"]),
    }
}

fn windows(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let context = spec.object_or_empty("securityContext");
    let inner = path.field("securityContext");
    let own = |key: &str| context.has(key) && !(key == "sysctls" && context.list(key).is_empty());
    let order: [(&str, bool, bool); 15] = [
        ("appArmorProfile", true, own("appArmorProfile")),
        ("seLinuxOptions", true, own("seLinuxOptions")),
        ("hostUsers", false, spec.has("hostUsers")),
        ("hostPID", false, spec.flag("hostPID")),
        ("hostIPC", false, spec.flag("hostIPC")),
        ("seccompProfile", true, own("seccompProfile")),
        ("fsGroup", true, own("fsGroup")),
        ("fsGroupChangePolicy", true, own("fsGroupChangePolicy")),
        ("sysctls", true, own("sysctls")),
        (
            "shareProcessNamespace",
            false,
            spec.has("shareProcessNamespace"),
        ),
        ("runAsUser", true, own("runAsUser")),
        ("runAsGroup", true, own("runAsGroup")),
        ("supplementalGroups", true, own("supplementalGroups")),
        (
            "supplementalGroupsPolicy",
            true,
            own("supplementalGroupsPolicy"),
        ),
        ("seLinuxChangePolicy", true, own("seLinuxChangePolicy")),
    ];
    for (key, inside, set) in order {
        if set {
            let path = if inside { &inner } else { path };
            errors.forbidden(&path.field(key), WINDOWS);
        }
    }
    each_container(spec, path, |container, path| {
        let context = container.object_or_empty("securityContext");
        let path = path.field("securityContext");
        for key in [
            "appArmorProfile",
            "seLinuxOptions",
            "seccompProfile",
            "capabilities",
            "readOnlyRootFilesystem",
            "privileged",
            "allowPrivilegeEscalation",
            "procMount",
            "runAsUser",
            "runAsGroup",
        ] {
            if context.has(key) {
                errors.forbidden(&path.field(key), WINDOWS);
            }
        }
    });
}

/// Files that hold variables lie in volumes that live as long as the pod.
fn file_keys(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    each_container(spec, path, |container, path| {
        let path = path.field("env");
        for (index, variable) in maps(container.list("env")) {
            let source = variable.object_or_empty("valueFrom");
            let Some(reference) = source.object("fileKeyRef") else {
                continue;
            };
            let path = path.index(index);
            let path = path.field("valueFrom");
            let path = path.field("fileKeyRef");
            let name = reference.text("volumeName");
            let volume = maps(spec.list("volumes")).find(|(_, one)| one.text("name") == name);
            match volume {
                None => errors.not_found(&path.field("volumeName"), name),
                Some((_, volume)) if !volume.has("emptyDir") => {
                    let detail = "referenced volume must be of type emptyDir";
                    errors.invalid(&path.field("volumeName"), name, detail);
                }
                Some(_) => {}
            }
        }
    });
}
