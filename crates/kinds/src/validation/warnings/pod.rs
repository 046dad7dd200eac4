//! Advice about pods and templates of pods.

use object::field::{Path, quote};
use object::{Map, names};

use super::{claim_spec, fraction};
use crate::validation::read::{Read, maps, texts};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const NODE_LABELS: [(&str, &str); 8] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
/// Sources of volumes that are going or gone, and the name they are shown under.
const VOLUMES: [(&str, &str, &str); 9] = [
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "flocker",
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "quobyte",
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "rbd",
        "rbd",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
];
const NO_POD: &str = "a null labelSelector results in matching no pod";

/// Advice about a pod, or about the template at `place`.
pub(super) fn warnings(pod: &Map, place: Option<&Path<'_>>, warnings: &mut Vec<String>) {
    let root = Path::root();
    let base = place.unwrap_or(&root);
    let spec = pod.object_or_empty("spec");
    let annotations = pod
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    let path = base.field("spec");
    placement(spec, &path, warnings);
    let metadata = base.field("metadata");
    let notes = metadata.field("annotations");
    for (key, message) in ANNOTATIONS {
        if annotations.contains_key(key) {
            warnings.push(format!("{}: {message}", notes.key(key)));
        }
    }
    volumes(spec, &path.field("volumes"), warnings);
    repeated_names(spec, &path, warnings);
    let overhead = spec.object_or_empty("overhead");
    for name in ["memory", "ephemeral-storage"] {
        fraction(
            overhead.get(name),
            &path.field("overhead").key(name),
            warnings,
        );
    }
    let context = spec.object_or_empty("securityContext");
    if !context.has("seccompProfile") && annotations.contains_key(SECCOMP_POD) {
        warnings.push(seccomp(&notes.key(SECCOMP_POD)));
    }
    each_container(spec, &path, |container, path| {
        container_notes(
            container,
            context,
            annotations,
            &notes,
            place.is_some(),
            warnings,
        );
        container_amounts(container, path, warnings);
        hidden_variables(container, &path.field("env"), warnings);
    });
    ports(spec, &path, warnings);
    if spec
        .int("terminationGracePeriodSeconds")
        .is_some_and(|seconds| seconds < 0)
    {
        let path = path.field("terminationGracePeriodSeconds");
        warnings.push(format!(
            "{path}: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    pod_affinity(spec, &path.field("affinity"), warnings);
    super::others::overlapping_paths(spec, warnings);
    let servers = path.field("dnsConfig");
    let servers = servers.field("nameservers");
    for (index, server) in texts(spec.object_or_empty("dnsConfig").list("nameservers")) {
        super::others::ip(server, &servers.index(index), warnings);
    }
    let aliases = path.field("hostAliases");
    for (index, alias) in maps(spec.list("hostAliases")) {
        let path = aliases.index(index);
        super::others::ip(alias.text("ip"), &path.field("ip"), warnings);
    }
}

/// What is said about a label of nodes that is no longer used.
pub(super) fn deprecated_label(key: &str) -> Option<&'static str> {
    NODE_LABELS
        .iter()
        .find(|(known, _)| *known == key)
        .map(|(_, message)| *message)
}

fn seccomp(path: &Path<'_>) -> String {
    format!("{path}: non-functional in v1.27+; use the \"seccompProfile\" field instead")
}

fn placement(spec: &Map, path: &Path<'_>, warnings: &mut Vec<String>) {
    let selector = path.field("nodeSelector");
    for key in spec.object_or_empty("nodeSelector").keys() {
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {message}", selector.key(key)));
        }
    }
    let nodes = spec
        .object_or_empty("affinity")
        .object_or_empty("nodeAffinity");
    let at = path.field("affinity");
    let at = at.field("nodeAffinity");
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms_path = at.field(required);
    let terms_path = terms_path.field("nodeSelectorTerms");
    let terms = nodes.object_or_empty(required).list("nodeSelectorTerms");
    for (index, term) in maps(terms) {
        node_term(term, false, &terms_path.index(index), warnings);
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let preferred_path = at.field(preferred);
    for (index, term) in maps(nodes.list(preferred)) {
        let path = preferred_path.index(index);
        node_term(
            term.object_or_empty("preference"),
            true,
            &path.field("preference"),
            warnings,
        );
    }
    let spread = path.field("topologySpreadConstraints");
    for (index, constraint) in maps(spec.list("topologySpreadConstraints")) {
        let path = spread.index(index);
        let key = constraint.text("topologyKey");
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {key} is {message}", path.field("topologyKey")));
        }
        if !constraint.has("labelSelector") {
            warnings.push(format!("{}: {NO_POD}", path.field("labelSelector")));
        }
    }
}

pub(super) fn node_term(
    term: &Map,
    check_values: bool,
    path: &Path<'_>,
    warnings: &mut Vec<String>,
) {
    let path = path.field("matchExpressions");
    for (index, expression) in maps(term.list("matchExpressions")) {
        let path = path.index(index);
        let key = expression.text("key");
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {key} is {message}", path.field("key")));
        }
        let values = path.field("values");
        for (index, value) in texts(expression.list("values")).filter(|_| check_values) {
            for complaint in names::label_value(value) {
                let path = values.index(index);
                warnings.push(format!("{path}: {value} is invalid, {complaint}"));
            }
        }
    }
}

fn volumes(spec: &Map, path: &Path<'_>, warnings: &mut Vec<String>) {
    for (index, volume) in maps(spec.list("volumes")) {
        let path = path.index(index);
        for (key, shown, message) in VOLUMES {
            if volume.has(key) {
                warnings.push(format!("{}: {message}", path.field(shown)));
            }
        }
        let claim = volume
            .object_or_empty("ephemeral")
            .object_or_empty("volumeClaimTemplate");
        if !claim.is_empty() {
            let path = path.field("ephemeral");
            let path = path.field("volumeClaimTemplate");
            claim_spec(claim.object_or_empty("spec"), &path.field("spec"), warnings);
        }
    }
}

fn repeated_names(spec: &Map, path: &Path<'_>, warnings: &mut Vec<String>) {
    for (list, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let path = path.field(list);
        let items = spec.list(list);
        for (index, item) in maps(items) {
            let text = item.text(key);
            if maps(&items[..index]).any(|(_, other)| other.text(key) == text) {
                let path = path.index(index);
                warnings.push(format!(
                    "{}: duplicate {key} {}",
                    path.field(key),
                    quote(text)
                ));
            }
        }
    }
    let path = path.field("imagePullSecrets");
    for (index, _) in
        maps(spec.list("imagePullSecrets")).filter(|(_, it)| it.text("name").is_empty())
    {
        warnings.push(format!(
            "{}: invalid empty name \"\"",
            path.index(index).field("name")
        ));
    }
}

fn each_container(spec: &Map, path: &Path<'_>, mut visit: impl FnMut(&Map, &Path<'_>)) {
    for key in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.field(key);
        for (index, container) in maps(spec.list(key)) {
            visit(container, &path.index(index));
        }
    }
}

fn container_notes(
    container: &Map,
    pod: &Map,
    annotations: &Map,
    path: &Path<'_>,
    is_template: bool,
    warnings: &mut Vec<String>,
) {
    if annotations.is_empty() {
        return;
    }
    let own = container.object_or_empty("securityContext");
    let key = format!("{SECCOMP_CONTAINER}{}", container.text("name"));
    if !own.has("seccompProfile") && annotations.contains_key(&key) {
        warnings.push(seccomp(&path.key(&key)));
    }
    let key = format!("{APP_ARMOR}{}", container.text("name"));
    let said = own.has("appArmorProfile") || pod.has("appArmorProfile");
    if is_template && !said && annotations.contains_key(&key) {
        warnings.push(app_armor_text(&path.key(&key)));
    }
}

fn app_armor_text(path: &Path<'_>) -> String {
    format!("{path}: deprecated since v1.30; use the \"appArmorProfile\" field instead")
}

/// Pods still take profiles from annotations, but say so.
pub(super) fn app_armor(pod: &Map, warnings: &mut Vec<String>) {
    let annotations = pod
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    let spec = pod.object_or_empty("spec");
    let whole = spec
        .object_or_empty("securityContext")
        .has("appArmorProfile");
    let root = Path::root();
    let path = root.field("metadata");
    let path = path.field("annotations");
    for key in ["initContainers", "containers", "ephemeralContainers"] {
        for (_, container) in maps(spec.list(key)) {
            let key = format!("{APP_ARMOR}{}", container.text("name"));
            if !whole && annotations.contains_key(&key) {
                warnings.push(app_armor_text(&path.key(&key)));
            }
        }
    }
}

fn container_amounts(container: &Map, path: &Path<'_>, warnings: &mut Vec<String>) {
    let resources = container.object_or_empty("resources");
    let path = path.field("resources");
    for name in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            let amounts = resources.object_or_empty(list);
            fraction(amounts.get(name), &path.field(list).key(name), warnings);
        }
    }
}

fn hidden_variables(container: &Map, path: &Path<'_>, warnings: &mut Vec<String>) {
    let list = container.list("env");
    for (index, variable) in maps(list) {
        let name = variable.text("name");
        if !maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = variable.text("value");
        let extends = value != reference && value.contains(&reference);
        if variable.has("valueFrom") || !extends {
            let path = path.index(index);
            warnings.push(format!(
                "{path}: hides previous definition of {}, which may be dropped when using apply",
                quote(name)
            ));
        }
    }
}

/// A port that was seen, and where.
struct Seen<'a> {
    port: &'a Map,
    place: String,
}

fn ports(spec: &Map, path: &Path<'_>, warnings: &mut Vec<String>) {
    let mut seen: Vec<Seen<'_>> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for key in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.field(key);
        for (index, container) in maps(spec.list(key)) {
            let path = path.index(index);
            let path = path.field("ports");
            for (index, port) in maps(container.list("ports")) {
                let place = path.index(index).to_string();
                if !port.text("hostIP").is_empty() && port.int("hostPort").unwrap_or_default() == 0
                {
                    warnings.push(format!(
                        "{place}: hostIP set without hostPort: {{Name:{} HostPort:0 \
                         ContainerPort:{} Protocol:{} HostIP:{}}}",
                        port.text("name"),
                        port.int("containerPort").unwrap_or_default(),
                        port.text("protocol"),
                        port.text("hostIP")
                    ));
                }
                for other in seen.iter().filter(|other| same_inside(other.port, port)) {
                    if let Some(relation) = relation(port, other.port) {
                        let other = &other.place;
                        warnings.push(format!("{place}: {relation} port definition with {other}"));
                    }
                }
                let name = port.text("name");
                let first = seen.iter().find(|other| other.port.text("name") == name);
                if let (false, Some(first)) = (name.is_empty(), first) {
                    let first = &first.place;
                    names.push(format!(
                        "{place}: duplicate port name {} with {first}, services and probes that \
                         select ports by name will use {first}",
                        quote(name)
                    ));
                }
                seen.push(Seen { port, place });
            }
        }
    }
    warnings.append(&mut names);
}

fn same_inside(one: &Map, other: &Map) -> bool {
    one.int("containerPort") == other.int("containerPort")
        && one.text("protocol") == other.text("protocol")
}

fn relation(one: &Map, other: &Map) -> Option<&'static str> {
    let host = |port: &Map| port.int("hostPort").unwrap_or_default();
    let (ip, other_ip) = (one.text("hostIP"), other.text("hostIP"));
    if ip == other_ip && host(one) == host(other) {
        Some("duplicate")
    } else if host(one) == 0 || host(other) == 0 {
        Some("overlapping")
    } else if host(one) == host(other) && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn pod_affinity(spec: &Map, path: &Path<'_>, warnings: &mut Vec<String>) {
    let affinity = spec.object_or_empty("affinity");
    for key in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.object_or_empty(key);
        let path = path.field(key);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let at = path.field(required);
        for (index, term) in maps(pods.list(required)) {
            if !term.has("labelSelector") {
                warnings.push(format!(
                    "{}: {NO_POD}",
                    at.index(index).field("labelSelector")
                ));
            }
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        let at = path.field(preferred);
        for (index, term) in maps(pods.list(preferred)) {
            if !term.object_or_empty("podAffinityTerm").has("labelSelector") {
                let path = at.index(index);
                let path = path.field("podAffinityTerm");
                warnings.push(format!("{}: {NO_POD}", path.field("labelSelector")));
            }
        }
    }
}
