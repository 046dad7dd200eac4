//! Ingresses, network policies and the networks of services.

use object::field::{FieldError, Path};
use object::{Map, Value, addresses, names};

use super::check::{self, Errors, Report};
use super::meta;
use super::print::{self, Field, Shape};
use super::read::{Read, maps, texts};

const PATH_TYPES: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];
const CONTROLLER_BYTES_MAX: usize = 250;
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Checks an ingress.
pub(crate) fn ingress(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if let (Some(old), "status") = (old, subresource) {
        ingress_status(new, old, &mut errors);
        return errors;
    }
    if old.is_some() {
        meta::again(new, true, &mut errors);
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    let rules = spec.list("rules");
    if rules.is_empty() && !spec.has("defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.invalid_value(&path, spec.value("rules"), detail);
    }
    if let Some(backend) = spec.object("defaultBackend") {
        ingress_backend(backend, &path.field("defaultBackend"), &mut errors);
    }
    ingress_rules(rules, &path.field("rules"), &mut errors);
    ingress_tls(spec.list("tls"), &path.field("tls"), &mut errors);
    let class = spec.text("ingressClassName");
    if spec.has("ingressClassName") {
        let complaints = names::dns1123_subdomain(class);
        errors.each(&path.field("ingressClassName"), class, complaints);
    }
    let annotations = new
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    if let (None, Some(annotation), true) = (
        old,
        annotations.get(CLASS_ANNOTATION),
        spec.has("ingressClassName"),
    ) && annotation.as_str() != Some(class)
    {
        let path = root.field("annotations");
        let detail = "must match `ingressClassName` when both are specified";
        errors.invalid_value(&path.field(CLASS_ANNOTATION), annotation, detail);
    }
    errors
}

fn ingress_rules(rules: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, rule) in maps(rules) {
        let path = path.index(index);
        let host = rule.text("host");
        if !host.is_empty() {
            if addresses::parse_sloppy(host).is_some() {
                let detail = "must be a DNS name, not an IP address";
                errors.invalid(&path.field("host"), host, detail);
            }
            errors.each(&path.field("host"), host, host_complaints(host));
        }
        let Some(http) = rule.object("http") else {
            continue;
        };
        let path = path.field("http");
        let path = path.field("paths");
        if http.list("paths").is_empty() {
            errors.required(&path, "");
        }
        for (index, entry) in maps(http.list("paths")) {
            ingress_path(entry, &path.index(index), errors);
        }
    }
}

fn host_complaints(host: &str) -> Vec<String> {
    if host.contains('*') {
        names::wildcard_dns1123_subdomain(host)
    } else {
        names::dns1123_subdomain(host)
    }
}

fn ingress_path(entry: &Map, path: &Path<'_>, errors: &mut Errors) {
    if !entry.has("pathType") {
        errors.required(&path.field("pathType"), "pathType must be specified");
        return;
    }
    let text = entry.text("path");
    let at = path.field("path");
    let kind = entry.text("pathType");
    match kind {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                errors.invalid(&at, text, "must be an absolute path");
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"] {
                if text.contains(bad) {
                    errors.invalid(&at, text, format!("must not contain '{bad}'"));
                }
            }
            for bad in ["/..", "/."] {
                if text.ends_with(bad) {
                    errors.invalid(&at, text, format!("cannot end with '{bad}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                errors.invalid(&at, text, "must be an absolute path");
            }
        }
        _ => errors.unsupported(&path.field("pathType"), kind, PATH_TYPES),
    }
    let backend = entry.object_or_empty("backend");
    ingress_backend(backend, &path.field("backend"), errors);
}

fn ingress_backend(backend: &Map, path: &Path<'_>, errors: &mut Errors) {
    let (resource, service) = match (backend.object("resource"), backend.object("service")) {
        (Some(_), Some(_)) => {
            errors.invalid(path, "", "cannot set both resource and service backends");
            return;
        }
        (None, None) => {
            errors.invalid(path, "", "resource or service backend is required");
            return;
        }
        found => found,
    };
    if let Some(resource) = resource {
        object_reference(resource, &path.field("resource"), errors);
    }
    let Some(service) = service else {
        return;
    };
    let at = path.field("service");
    check::label(service.text("name"), &at.field("name"), errors);
    let port = service.object_or_empty("port");
    let (name, number) = (port.text("name"), port.int("number").unwrap_or_default());
    let at = at.field("port");
    match (name.is_empty(), number) {
        (false, 0) => errors.each(&at.field("name"), name, names::port_name(name)),
        (true, 0) => errors.required(path, "port name or number is required"),
        (true, number) => check::port_number(number, &at.field("number"), errors),
        (false, _) => errors.invalid(path, "", "cannot set both port name & port number"),
    }
}

fn object_reference(reference: &Map, path: &Path<'_>, errors: &mut Errors) {
    if reference.has("apiGroup") {
        let group = reference.text("apiGroup");
        errors.each(
            &path.field("apiGroup"),
            group,
            names::dns1123_subdomain(group),
        );
    }
    for key in ["kind", "name"] {
        let text = reference.text(key);
        if text.is_empty() {
            errors.required(&path.field(key), "");
        } else {
            errors.each(&path.field(key), text, names::path_segment(text));
        }
    }
}

fn ingress_tls(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, entry) in maps(list) {
        let path = path.index(index);
        let hosts = path.field("hosts");
        for (index, host) in texts(entry.list("hosts")) {
            errors.each(&hosts.index(index), host, host_complaints(host));
        }
        check::optional_subdomain(entry.text("secretName"), &path.field("secretName"), errors);
    }
}

fn ingress_status(new: &Map, old: &Map, errors: &mut Errors) {
    let list = |object: &Map| {
        let status = object
            .object_or_empty("status")
            .object_or_empty("loadBalancer");
        status.list("ingress").to_vec()
    };
    let (list, stored) = (list(new), list(old));
    let known: Vec<&str> = maps(&stored).map(|(_, one)| one.text("ip")).collect();
    let root = Path::root();
    let path = root.field("status");
    let path = path.field("loadBalancer");
    let path = path.field("ingress");
    for (index, one) in maps(&list) {
        let path = path.index(index);
        let (ip, host) = (one.text("ip"), one.text("hostname"));
        if !ip.is_empty() {
            check::legacy_ip(ip, &known, &path.field("ip"), errors);
        }
        check::optional_subdomain(host, &path.field("hostname"), errors);
        if !host.is_empty() && addresses::parse_sloppy(host).is_some() {
            let detail = "must be a DNS name, not an IP address";
            errors.invalid(&path.field("hostname"), host, detail);
        }
    }
}

/// Checks a class of ingresses.
pub(crate) fn ingress_class(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    if let Some(old) = old {
        let stored = old.object_or_empty("spec");
        check::unchanged(spec, stored, "controller", &path, &mut errors);
        meta::again(new, false, &mut errors);
    }
    let controller = spec.text("controller");
    let at = path.field("controller");
    if controller.len() > CONTROLLER_BYTES_MAX {
        errors.push(FieldError::too_long(&at, CONTROLLER_BYTES_MAX));
    }
    errors.extend(names::domain_prefixed_path(&at, controller));
    if let Some(parameters) = spec.object("parameters") {
        let path = path.field("parameters");
        object_reference(parameters, &path, &mut errors);
        class_scope(parameters, &path, &mut errors);
    }
    errors
}

fn class_scope(parameters: &Map, path: &Path<'_>, errors: &mut Errors) {
    if !parameters.has("scope") {
        errors.required(&path.field("scope"), "");
    }
    let namespace = path.field("namespace");
    match (parameters.text("scope"), parameters.has("namespace")) {
        ("Namespace", false) => {
            errors.required(&namespace, "`parameters.scope` is set to 'Namespace'");
        }
        ("Namespace", true) => {
            let text = parameters.text("namespace");
            errors.each(&namespace, text, names::dns1123_label(text));
        }
        ("Cluster", true) => {
            errors.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'");
        }
        ("Cluster", false) => {}
        (other, _) => errors.unsupported(&path.field("scope"), other, &["Cluster", "Namespace"]),
    }
}

/// Checks a policy of what may talk to what.
pub(crate) fn network_policy(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    let known = old.map_or_else(Vec::new, |old| networks(old.object_or_empty("spec")));
    check::label_selector(
        spec.object("podSelector"),
        &path.field("podSelector"),
        &mut errors,
    );
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = path.field(list);
        for (index, rule) in maps(spec.list(list)) {
            let path = path.index(index);
            let ports = path.field("ports");
            for (index, port) in maps(rule.list("ports")) {
                policy_port(port, &ports.index(index), &mut errors);
            }
            let path = path.field(peers);
            for (index, peer) in maps(rule.list(peers)) {
                policy_peer(peer, &known, &path.index(index), &mut errors);
            }
        }
    }
    let types = spec.list("policyTypes");
    let path = path.field("policyTypes");
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.invalid_value(&path, spec.value("policyTypes"), detail);
    } else {
        for (index, kind) in texts(types) {
            let path = path.index(index);
            check::choice_or_empty(kind, &["Ingress", "Egress"], &path, &mut errors);
        }
    }
    errors
}

fn networks(spec: &Map) -> Vec<&str> {
    let mut known = Vec::new();
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        for (_, rule) in maps(spec.list(list)) {
            for (_, peer) in maps(rule.list(peers)) {
                if let Some(block) = peer.object("ipBlock") {
                    known.push(block.text("cidr"));
                    known.extend(texts(block.list("except")).map(|(_, network)| network));
                }
            }
        }
    }
    known
}

fn policy_port(port: &Map, path: &Path<'_>, errors: &mut Errors) {
    if port.has("protocol") {
        let protocol = port.text("protocol");
        let path = path.field("protocol");
        check::choice_or_empty(protocol, &["TCP", "UDP", "SCTP"], &path, errors);
    }
    let end = port.int("endPort");
    let end_path = path.field("endPort");
    match (port.value("port"), end) {
        (Value::Int(number), end) => {
            check::port_number(*number, &path.field("port"), errors);
            let Some(end) = end else {
                return;
            };
            if end < *number {
                let detail = "must be greater than or equal to `port`";
                errors.invalid(&end_path, *number, detail);
            }
            check::port_number(end, &end_path, errors);
        }
        (Value::String(name), end) => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is non-numeric";
                errors.invalid(&end_path, end, detail);
            }
            errors.each(&path.field("port"), name, names::port_name(name));
        }
        (_, Some(end)) => {
            let detail = "may not be specified when `port` is not specified";
            errors.invalid(&end_path, end, detail);
        }
        _ => {}
    }
}

fn policy_peer(peer: &Map, known: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut count = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if peer.has(key) {
            count += 1;
            check::label_selector(peer.object(key), &path.field(key), errors);
        }
    }
    let block = peer.object("ipBlock");
    if let Some(block) = block {
        ip_block(block, known, &path.field("ipBlock"), errors);
    }
    match (count, block) {
        (0, None) => errors.required(path, "must specify a peer"),
        (0, Some(_)) | (_, None) => {}
        (_, Some(_)) => {
            errors.forbidden(path, "may not specify both ipBlock and another peer");
        }
    }
}

fn ip_block(block: &Map, known: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let cidr = block.text("cidr");
    if cidr.is_empty() {
        errors.required(&path.field("cidr"), "");
        return;
    }
    check::legacy_cidr(cidr, known, &path.field("cidr"), errors);
    let Some((address, length)) = addresses::parse_cidr_sloppy(cidr) else {
        return;
    };
    let excepts = path.field("except");
    for (index, except) in texts(block.list("except")) {
        let path = excepts.index(index);
        check::legacy_cidr(except, known, &path, errors);
        let Some((inner, inner_length)) = addresses::parse_cidr_sloppy(except) else {
            continue;
        };
        let within = inner.is_ipv4() == address.is_ipv4()
            && length < inner_length
            && addresses::network(inner, length) == addresses::network(address, length);
        if !within {
            errors.invalid(&path, except, "must be a strict subset of `cidr`");
        }
    }
}

const SERVICE_CIDR: Shape = Shape(&[Field::plain("cidrs", "CIDRs", "null")]);

/// Checks the networks that services get their addresses from.
pub(crate) fn service_cidr(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() && subresource == "status" {
        return errors;
    }
    let root = Path::root();
    let spec_path = root.field("spec");
    let path = spec_path.field("cidrs");
    let spec = new.object_or_empty("spec");
    let list = spec.list("cidrs");
    let Some(old) = old else {
        service_networks(new, spec, &path, &mut errors);
        return errors;
    };
    let stored = old.object_or_empty("spec").list("cidrs");
    match (stored.len(), list.len()) {
        (before, now) if before == now => {
            for (index, network) in list.iter().enumerate() {
                if *network != stored[index] {
                    errors.invalid_value(&path.index(index), network, check::IMMUTABLE);
                }
            }
        }
        (1, 2) => {
            if list[0] != stored[0] {
                errors.invalid_value(&path.index(0), &list[0], check::IMMUTABLE);
            }
            service_networks(new, spec, &path, &mut errors);
        }
        _ => errors.invalid_value(&path, spec.value("cidrs"), check::IMMUTABLE),
    }
    errors
}

fn service_networks(new: &Map, spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("cidrs");
    if list.is_empty() {
        errors.required(path, "at least one CIDR required");
        return;
    }
    if list.len() > 2 {
        let detail = "may only hold up to 2 values";
        errors.push(print::invalid(
            path,
            new.value("spec"),
            &SERVICE_CIDR,
            detail,
        ));
        return;
    }
    for (index, network) in texts(list) {
        errors.each(&path.index(index), network, addresses::cidr(network));
    }
    let families: Vec<bool> = texts(list)
        .filter_map(|(_, network)| addresses::parse_cidr_sloppy(network))
        .map(|(address, _)| address.is_ipv4())
        .collect();
    if matches!(families.as_slice(), [one, other] if one == other) {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                      2001:db8::/64";
        errors.invalid_value(path, spec.value("cidrs"), detail);
    }
}

#[cfg(test)]
mod tests;
