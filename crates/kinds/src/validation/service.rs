//! Services.

use object::field::{FieldError, Path};
use object::{Map, Value, addresses, names};

use super::check::{self, Errors, Report};
use super::endpoints::{application_protocol, reachable_ip};
use super::meta;
use super::read::{Read, maps, texts};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const ONCE_SET: &str = "may not change once set";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL_NAME: &str = "may not be set for ExternalName services";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const AFFINITY_SECONDS_MAX: i64 = 86400;

/// Checks a service.
pub(crate) fn validate(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if let (Some(old), "status") = (old, subresource) {
        load_balancer_status(new, old, &mut errors);
        return errors;
    }
    let spec = new.object_or_empty("spec");
    let root = Path::root();
    let path = root.field("spec");
    if let Some(old) = old {
        let stored = old.object_or_empty("spec");
        cluster_ips_change(spec, stored, &path, &mut errors);
        families_change(spec, stored, &path, &mut errors);
        load_balancer_class(spec, Some(stored), &path, &mut errors);
        let both_check = needs_health_check(spec) && needs_health_check(stored);
        if both_check && spec.int("healthCheckNodePort") != stored.int("healthCheckNodePort") {
            errors.forbidden(&path.field("healthCheckNodePort"), check::IMMUTABLE);
        }
    }
    let stored = old.map(|old| old.object_or_empty("spec"));
    topology(new, &root, &mut errors);
    type_rules(spec, &path, &mut errors);
    ports(spec, &path.field("ports"), &mut errors);
    meta::labels(
        spec.object("selector"),
        &path.field("selector"),
        &mut errors,
    );
    session_affinity(spec, &path, &mut errors);
    cluster_ips(spec, stored, &path, &mut errors);
    external_ips(spec, stored, &path.field("externalIPs"), &mut errors);
    check::choice(spec.text("type"), TYPES, &path.field("type"), &mut errors);
    port_conflicts(spec, &path.field("ports"), &mut errors);
    source_ranges(new, old, &root, &mut errors);
    load_balancer(spec, &path, &root, &mut errors);
    load_balancer_class(spec, None, &path, &mut errors);
    traffic(spec, &path, &mut errors);
    errors
}

/// Checks the addresses and families that a service asks for; `stored` is the spec it has.
pub fn service_addresses(spec: &Map, stored: Option<&Map>) -> Vec<FieldError> {
    let mut errors = Errors::new();
    cluster_ips(spec, stored, &Path::root().field("spec"), &mut errors);
    errors
}

fn topology(service: &Map, root: &Path<'_>, errors: &mut Errors) {
    let annotations = service
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    let hints = "service.kubernetes.io/topology-aware-hints";
    let mode = "service.kubernetes.io/topology-mode";
    if let (Some(given), Some(older)) = (annotations.get(mode), annotations.get(hints))
        && given != older
    {
        let path = root.field("metadata");
        let path = path.field("annotations");
        let detail = format!("must match annotations[{hints}] when both are specified");
        errors.invalid_value(&path.key(mode), given, detail);
    }
}

fn is_headless(spec: &Map) -> bool {
    matches!(spec.list("clusterIPs"), [only] if only.as_str() == Some("None"))
}

fn type_rules(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let kind = spec.text("type");
    let headless = is_headless(spec);
    if spec.list("ports").is_empty() && !headless && kind != "ExternalName" {
        errors.required(&path.field("ports"), "");
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let path = path.field("clusterIPs");
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.invalid(&path.index(0), "None", detail);
        }
        "ExternalName" => {
            for key in ["clusterIPs", "ipFamilies"] {
                if !spec.list(key).is_empty() {
                    errors.forbidden(&path.field(key), NOT_EXTERNAL_NAME);
                }
            }
            if spec.has("ipFamilyPolicy") {
                errors.forbidden(&path.field("ipFamilyPolicy"), NOT_EXTERNAL_NAME);
            }
            let name = spec.text("externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            check::subdomain(name, &path.field("externalName"), errors);
        }
        _ => {}
    }
}

fn ports(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("ports");
    for (index, port) in maps(list) {
        let path = path.index(index);
        let name = port.text("name");
        if !name.is_empty() {
            errors.each(&path.field("name"), name, names::dns1123_label(name));
            if maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
                errors.duplicate(&path.field("name"), name);
            }
        } else if list.len() > 1 {
            errors.required(&path.field("name"), "");
        }
        let number = port.int("port").unwrap_or_default();
        check::port_number(number, &path.field("port"), errors);
        check::choice(
            port.text("protocol"),
            PROTOCOLS,
            &path.field("protocol"),
            errors,
        );
        check::port_number_or_name(port.value("targetPort"), &path.field("targetPort"), errors);
        application_protocol(port, &path, errors);
    }
}

fn session_affinity(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let affinity = spec.text("sessionAffinity");
    check::choice(
        affinity,
        &["ClientIP", "None"],
        &path.field("sessionAffinity"),
        errors,
    );
    let path = path.field("sessionAffinityConfig");
    let config = spec.object("sessionAffinityConfig");
    if affinity == "None" && config.is_some() {
        errors.forbidden(&path, "must not be set when session affinity is None");
    }
    if affinity != "ClientIP" {
        return;
    }
    let detail = "when session affinity type is ClientIP";
    let Some(config) = config else {
        errors.required(&path, detail);
        return;
    };
    let path = path.field("clientIP");
    let Some(client) = config.object("clientIP") else {
        errors.required(&path, detail);
        return;
    };
    let path = path.field("timeoutSeconds");
    match client.int("timeoutSeconds") {
        None => errors.required(&path, detail),
        Some(seconds) if !(1..=AFFINITY_SECONDS_MAX).contains(&seconds) => {
            let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
            errors.invalid(&path, seconds, detail);
        }
        Some(_) => {}
    }
}

fn cluster_ips(spec: &Map, stored: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    if spec.text("type") == "ExternalName" {
        return;
    }
    let all = spec.value("clusterIPs");
    let list = spec.list("clusterIPs");
    let (ips, families_path) = (path.field("clusterIPs"), path.field("ipFamilies"));
    let first = spec.text("clusterIP");
    match (first.is_empty(), list.first()) {
        (false, None) => errors.required(&ips, ""),
        (false, Some(other)) if other.as_str() != Some(first) => {
            errors.invalid_value(&ips, all, "first value must match `clusterIP`");
        }
        (true, Some(_)) => {
            errors.invalid_value(&ips, all, "must be empty when `clusterIP` is not specified");
        }
        _ => {}
    }
    let families = spec.list("ipFamilies");
    for (index, family) in texts(families) {
        let path = families_path.index(index);
        check::choice_or_empty(family, &["IPv4", "IPv6"], &path, errors);
        if texts(&families[..index]).any(|(_, other)| other == family) {
            errors.duplicate(&path, family);
        }
    }
    if spec.has("ipFamilyPolicy") {
        let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        let policy = spec.text("ipFamilyPolicy");
        check::choice_or_empty(policy, &policies, &path.field("ipFamilyPolicy"), errors);
    }
    let known: Vec<&str> = stored
        .map(|stored| texts(stored.list("clusterIPs")).map(|(_, ip)| ip).collect())
        .unwrap_or_default();
    let mut bad = false;
    for (index, ip) in texts(list) {
        if index == 0 && ip == "None" {
            if list.len() > 1 {
                bad = true;
                errors.invalid_value(&ips, all, "'None' must be the first and only value");
            }
            continue;
        }
        let before = errors.len();
        check::legacy_ip(ip, &known, &ips.index(index), errors);
        bad |= errors.len() > before;
    }
    if list.len() > 2 {
        errors.invalid_value(&ips, all, "may only hold up to 2 values");
    }
    if !bad {
        families_match(list, families, all, &ips, errors);
    }
}

fn families_match(
    list: &[Value],
    families: &[Value],
    all: &Value,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let is_six = |ip: &str| ip.contains(':');
    if list.len() > 1 {
        let sixes = texts(list).filter(|(_, ip)| is_six(ip)).count();
        if sixes == 0 || sixes == list.len() {
            let detail = "may specify no more than one IP for each IP family";
            errors.invalid_value(path, all, detail);
        }
    }
    for ((index, ip), (_, family)) in texts(list).zip(texts(families)) {
        if ip == "None" {
            continue;
        }
        if (family == "IPv4" && is_six(ip)) || (family == "IPv6" && !is_six(ip)) {
            let detail =
                format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.invalid(&path.index(index), ip, detail);
        }
    }
}

fn external_ips(spec: &Map, stored: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let known: Vec<&str> = stored
        .map(|stored| {
            texts(stored.list("externalIPs"))
                .map(|(_, ip)| ip)
                .collect()
        })
        .unwrap_or_default();
    for (index, ip) in texts(spec.list("externalIPs")) {
        let before = errors.len();
        check::legacy_ip(ip, &known, &path.index(index), errors);
        if errors.len() == before {
            reachable_ip(ip, &path.index(index), errors);
        }
    }
}

fn port_conflicts(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("ports");
    let node_port = |port: &Map| port.int("nodePort").unwrap_or_default();
    if spec.text("type") == "ClusterIP" {
        for (index, _) in maps(list).filter(|(_, port)| node_port(port) != 0) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.forbidden(&path.index(index).field("nodePort"), detail);
        }
    }
    for (index, port) in maps(list).filter(|(_, port)| node_port(port) != 0) {
        let taken = maps(&list[..index]).any(|(_, other)| {
            node_port(other) == node_port(port) && other.text("protocol") == port.text("protocol")
        });
        if taken {
            let path = path.index(index);
            let error = FieldError::duplicate(&path.field("nodePort"), &node_port(port).into());
            errors.push(error);
        }
    }
    for (index, port) in maps(list) {
        let taken = maps(&list[..index]).any(|(_, other)| {
            other.int("port") == port.int("port") && other.text("protocol") == port.text("protocol")
        });
        if taken {
            let mut error = FieldError::duplicate(&path.index(index), &Value::Null);
            error.value = Some(format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\
                 \"TargetPort\":0,\"NodePort\":0}}",
                object::field::quote(port.text("protocol")),
                port.int("port").unwrap_or_default(),
            ));
            errors.push(error);
        }
    }
}

fn source_ranges(new: &Map, old: Option<&Map>, root: &Path<'_>, errors: &mut Errors) {
    let spec = new.object_or_empty("spec");
    let ranges = spec.list("loadBalancerSourceRanges");
    let balances = spec.text("type") == "LoadBalancer";
    if !ranges.is_empty() {
        let path = root.field("spec");
        let path = path.field("LoadBalancerSourceRanges");
        if !balances {
            errors.forbidden(&path, ONLY_LOAD_BALANCER);
        }
        let known: Vec<&str> = old
            .map(|old| texts(old.object_or_empty("spec").list("loadBalancerSourceRanges")))
            .into_iter()
            .flatten()
            .map(|(_, range)| range.trim())
            .collect();
        for (index, range) in texts(ranges) {
            check::legacy_cidr(range.trim(), &known, &path.index(index), errors);
        }
        return;
    }
    let annotation = |object: &Map| {
        let metadata = object.object_or_empty("metadata");
        metadata
            .object_or_empty("annotations")
            .get(SOURCE_RANGES)
            .cloned()
    };
    let Some(given) = annotation(new) else {
        return;
    };
    let path = root.field("metadata");
    let path = path.field("annotations");
    let path = path.key(SOURCE_RANGES);
    if !balances {
        errors.forbidden(&path, ONLY_LOAD_BALANCER);
    }
    if old.and_then(annotation).as_ref() == Some(&given) {
        return;
    }
    let given = given.as_str().unwrap_or_default().trim();
    for range in given.split(',').filter(|_| !given.is_empty()) {
        check::legacy_cidr(range.trim(), &[], &path, errors);
    }
}

fn load_balancer(spec: &Map, path: &Path<'_>, root: &Path<'_>, errors: &mut Errors) {
    let key = "allocateLoadBalancerNodePorts";
    match (spec.text("type") == "LoadBalancer", spec.has(key)) {
        (false, true) => errors.forbidden(&path.field(key), ONLY_LOAD_BALANCER),
        (true, false) => errors.required(&root.field(key), ""),
        _ => {}
    }
}

fn load_balancer_class(spec: &Map, stored: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("loadBalancerClass");
    let balances = |spec: &Map| spec.text("type") == "LoadBalancer";
    let class = spec.value("loadBalancerClass");
    if let Some(stored) = stored
        && balances(spec)
        && balances(stored)
        && class != stored.value("loadBalancerClass")
    {
        errors.invalid_value(&path, class, ONCE_SET);
    }
    if class.is_null() {
        return;
    }
    if balances(spec) {
        let text = spec.text("loadBalancerClass");
        errors.each(&path, text, names::qualified_name(text));
    } else {
        errors.forbidden(&path, ONLY_LOAD_BALANCER);
    }
}

fn needs_health_check(spec: &Map) -> bool {
    spec.text("type") == "LoadBalancer" && spec.text("externalTrafficPolicy") == "Local"
}

fn traffic(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let kind = spec.text("type");
    let accessible = matches!(kind, "LoadBalancer" | "NodePort")
        || kind == "ClusterIP" && !spec.list("externalIPs").is_empty();
    let policy = spec.text("externalTrafficPolicy");
    let policy_path = path.field("externalTrafficPolicy");
    if accessible {
        check::choice(policy, &["Cluster", "Local"], &policy_path, errors);
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.invalid(&policy_path, policy, detail);
    }
    let port = spec.int("healthCheckNodePort").unwrap_or_default();
    let port_path = path.field("healthCheckNodePort");
    match (needs_health_check(spec), port) {
        (false, 0) => {}
        (false, _) => {
            let detail = "may only be set when `type` is 'LoadBalancer' and \
                          `externalTrafficPolicy` is 'Local'";
            errors.invalid(&port_path, port, detail);
        }
        (true, 0) => errors.required(&port_path, ""),
        (true, _) => check::port_number(port, &port_path, errors),
    }
    let inside = path.field("internalTrafficPolicy");
    if spec.has("internalTrafficPolicy") {
        let policy = spec.text("internalTrafficPolicy");
        check::choice_or_empty(policy, &["Cluster", "Local"], &inside, errors);
    } else if matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
        errors.required(&inside, "");
    }
    if spec.has("trafficDistribution") {
        let supported = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        let text = spec.text("trafficDistribution");
        check::choice_or_empty(text, &supported, &path.field("trafficDistribution"), errors);
    }
}

fn cluster_ips_change(spec: &Map, stored: &Map, path: &Path<'_>, errors: &mut Errors) {
    let external = |spec: &Map| spec.text("type") == "ExternalName";
    if external(spec) || external(stored) || is_headless(spec) && is_headless(stored) {
        return;
    }
    let all = spec.value("clusterIPs");
    let (new, old) = (spec.list("clusterIPs"), stored.list("clusterIPs"));
    let ips = path.field("clusterIPs");
    let readable = |ip: &Value| {
        let text = ip.as_str().unwrap_or_default();
        text.is_empty() || text == "None" || addresses::parse_sloppy(text).is_some()
    };
    if !new.iter().all(readable) {
        // What they are is reported; that they changed goes without saying.
        return;
    }
    if new.len() == old.len() {
        for (index, _) in old
            .iter()
            .enumerate()
            .filter(|(index, ip)| new[*index] != **ip)
        {
            errors.invalid_value(&ips.index(index), all, ONCE_SET);
        }
        return;
    }
    if new.is_empty() {
        errors.invalid_value(&ips.index(0), all, "primary clusterIP can not be unset");
    } else if old.first().is_some_and(|first| *first != new[0]) {
        errors.invalid_value(&ips.index(0), all, ONCE_SET);
    }
    if old.len() > new.len() && new.len() == 1 && spec.text("ipFamilyPolicy") != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        let policy = spec.value("ipFamilyPolicy");
        errors.invalid_value(&path.field("ipFamilyPolicy"), policy, detail);
    }
}

fn families_change(spec: &Map, stored: &Map, path: &Path<'_>, errors: &mut Errors) {
    let external = |spec: &Map| spec.text("type") == "ExternalName";
    if external(spec) || external(stored) || is_headless(spec) || is_headless(stored) {
        return;
    }
    let (new, old) = (spec.list("ipFamilies"), stored.list("ipFamilies"));
    let families = path.field("ipFamilies");
    let families = families.index(0);
    if new.len() == old.len() {
        for _ in old.iter().zip(new).filter(|(old, new)| old != new) {
            errors.invalid_value(&families, spec.value("ipFamilies"), ONCE_SET);
        }
        return;
    }
    if old.len() > new.len() && spec.list("clusterIPs").is_empty() {
        let detail = "primary ipFamily can not be unset";
        errors.invalid_value(&families, spec.value("ipFamilies"), detail);
    }
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && new != old
    {
        errors.invalid_value(&families, spec.value("clusterIPs"), ONCE_SET);
    }
    if old.len() > new.len() && new.len() == 1 && spec.text("ipFamilyPolicy") != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        let policy = spec.value("ipFamilyPolicy");
        errors.invalid_value(&path.field("ipFamilyPolicy"), policy, detail);
    }
}

fn load_balancer_status(new: &Map, old: &Map, errors: &mut Errors) {
    let ingress = |object: &Map| {
        let status = object
            .object_or_empty("status")
            .object_or_empty("loadBalancer");
        status.list("ingress").to_vec()
    };
    let (list, stored) = (ingress(new), ingress(old));
    let root = Path::root();
    let path = root.field("status");
    let path = path.field("loadBalancer");
    let path = path.field("ingress");
    let balances = new.object_or_empty("spec").text("type") == "LoadBalancer";
    if !balances && !list.is_empty() {
        errors.forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    let known: Vec<&str> = maps(&stored).map(|(_, one)| one.text("ip")).collect();
    for (index, one) in maps(&list) {
        let path = path.index(index);
        let (ip, host) = (one.text("ip"), one.text("hostname"));
        if !ip.is_empty() {
            check::legacy_ip(ip, &known, &path.field("ip"), errors);
        }
        let mode_path = path.field("ipMode");
        match (one.has("ipMode"), ip.is_empty()) {
            (false, false) => errors.required(&mode_path, "must be specified when `ip` is set"),
            (true, true) => {
                errors.forbidden(&mode_path, "may not be specified when `ip` is not set");
            }
            (true, false) => {
                check::choice_or_empty(one.text("ipMode"), &["Proxy", "VIP"], &mode_path, errors);
            }
            (false, true) => {}
        }
        check::optional_subdomain(host, &path.field("hostname"), errors);
        if !host.is_empty() && addresses::parse_sloppy(host).is_some() {
            let detail = "must be a DNS name, not an IP address";
            errors.invalid(&path.field("hostname"), host, detail);
        }
    }
}

#[cfg(test)]
mod tests;
