//! Endpoints of services, in the older list and in slices, and addresses that stand for themselves.

use std::net::IpAddr;

use object::field::{FieldError, Path};
use object::{Map, Value, addresses, names};

use super::check::{self, Errors, Report};
use super::meta;
use super::print::{self, Field, Shape};
use super::read::{Read, maps, texts};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const ENDPOINTS_MAX: usize = 1000;
const SLICE_PORTS_MAX: usize = 20000;
const ADDRESSES_MAX: usize = 100;
const HINTS_MAX: usize = 8;

/// Checks the older list of a service's endpoints.
pub(crate) fn validate(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if let Some(old) = old {
        meta::again(new, true, &mut errors);
        if check::same(new.value("subsets"), old.value("subsets")) {
            return errors;
        }
    }
    let root = Path::root();
    let path = root.field("subsets");
    for (index, subset) in maps(new.list("subsets")) {
        let path = path.index(index);
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|key| subset.list(key).is_empty()) {
            errors.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for key in lists {
            let path = path.field(key);
            for (index, address) in maps(subset.list(key)) {
                endpoint_address(address, &path.index(index), &mut errors);
            }
        }
        let list = subset.list("ports");
        let path = path.field("ports");
        for (index, port) in maps(list) {
            endpoint_port(port, list.len() > 1, &path.index(index), &mut errors);
        }
    }
    errors
}

fn endpoint_address(address: &Map, path: &Path<'_>, errors: &mut Errors) {
    let ip = address.text("ip");
    check::legacy_ip(ip, &[], &path.field("ip"), errors);
    let host = address.text("hostname");
    if !host.is_empty() {
        errors.each(&path.field("hostname"), host, names::dns1123_label(host));
    }
    if address.has("nodeName") {
        let node = address.text("nodeName");
        errors.each(
            &path.field("nodeName"),
            node,
            names::dns1123_subdomain(node),
        );
    }
    reachable_ip(ip, &path.field("ip"), errors);
}

fn endpoint_port(port: &Map, named: bool, path: &Path<'_>, errors: &mut Errors) {
    let name = port.text("name");
    if !name.is_empty() || named {
        check::label(name, &path.field("name"), errors);
    }
    let number = port.int("port").unwrap_or_default();
    check::port_number(number, &path.field("port"), errors);
    check::choice(
        port.text("protocol"),
        PROTOCOLS,
        &path.field("protocol"),
        errors,
    );
    application_protocol(port, path, errors);
}

/// Checks a slice of a service's endpoints.
pub(crate) fn slice(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() {
        meta::again(new, true, &mut errors);
    }
    let root = Path::root();
    let kind = new.text("addressType");
    check::choice(
        kind,
        &["FQDN", "IPv4", "IPv6"],
        &root.field("addressType"),
        &mut errors,
    );
    slice_ports(new.list("ports"), &root.field("ports"), &mut errors);
    if !old.is_some_and(|old| check::same(new.value("endpoints"), old.value("endpoints"))) {
        slice_endpoints(new, kind, &root.field("endpoints"), &mut errors);
    }
    if let Some(old) = old {
        check::unchanged(new, old, "addressType", &root, &mut errors);
    }
    errors
}

fn slice_endpoints(slice: &Map, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let list = slice.list("endpoints");
    if list.len() > ENDPOINTS_MAX {
        errors.push(FieldError::too_many(path, list.len(), ENDPOINTS_MAX));
        return;
    }
    for (index, endpoint) in maps(list) {
        let path = path.index(index);
        let addresses = path.field("addresses");
        let given = endpoint.list("addresses");
        if given.is_empty() {
            errors.required(&addresses, "must contain at least 1 address");
        } else if given.len() > ADDRESSES_MAX {
            errors.push(FieldError::too_many(&addresses, given.len(), ADDRESSES_MAX));
        }
        for (index, address) in texts(given) {
            slice_address(address, kind, &addresses, index, errors);
        }
        if endpoint.has("nodeName") {
            let node = endpoint.text("nodeName");
            errors.each(
                &path.field("nodeName"),
                node,
                names::dns1123_subdomain(node),
            );
        }
        let topology = endpoint.object("deprecatedTopology");
        meta::labels(topology, &path.field("deprecatedTopology"), errors);
        if endpoint.has("hostname") {
            let host = endpoint.text("hostname");
            errors.each(&path.field("hostname"), host, names::dns1123_label(host));
        }
        if let Some(hints) = endpoint.object("hints") {
            hint_list(hints, "forZones", &path.field("hints"), errors);
            hint_list(hints, "forNodes", &path.field("hints"), errors);
        }
    }
}

fn slice_address(address: &str, kind: &str, list: &Path<'_>, index: usize, errors: &mut Errors) {
    let path = list.index(index);
    let complaints = match kind {
        "IPv4" => addresses::legacy_ip(address, addresses::Reading::Strict),
        "IPv6" => addresses::ip(address),
        "FQDN" => {
            errors.extend(names::fully_qualified_domain_name(&path, address));
            return;
        }
        _ => return,
    };
    if !complaints.is_empty() {
        errors.each(&path, address, complaints);
        return;
    }
    if address.contains(':') != (kind == "IPv6") {
        errors.invalid(list, address, format!("must be an {kind} address"));
    }
    reachable_ip(address, &path, errors);
}

fn hint_list(hints: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    let list = hints.list(key);
    let path = path.field(key);
    if list.len() > HINTS_MAX {
        errors.push(FieldError::too_many(&path, list.len(), HINTS_MAX));
        return;
    }
    for (index, hint) in maps(list) {
        let name = hint.text("name");
        let path = path.index(index);
        let at = path.field("name");
        if maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
            errors.duplicate(&at, name);
        }
        let complaints = if key == "forZones" {
            names::label_value(name)
        } else {
            names::dns1123_subdomain(name)
        };
        errors.each(&at, name, complaints);
    }
}

fn slice_ports(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if list.len() > SLICE_PORTS_MAX {
        errors.push(FieldError::too_many(path, list.len(), SLICE_PORTS_MAX));
        return;
    }
    for (index, port) in maps(list) {
        let path = path.index(index);
        let name = port.text("name");
        if !name.is_empty() {
            errors.each(&path.field("name"), name, names::dns1123_label(name));
        }
        if maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
            errors.duplicate(&path.field("name"), name);
        }
        check::choice_of(port, "protocol", PROTOCOLS, &path, errors);
        application_protocol(port, &path, errors);
    }
}

/// Checks that an address can be that of an endpoint.
pub(crate) fn reachable_ip(text: &str, path: &Path<'_>, errors: &mut Errors) {
    let Some(ip) = addresses::parse_sloppy(text) else {
        errors.invalid(path, text, "must be a valid IP address");
        return;
    };
    let (local, local_multicast) = match ip.to_canonical() {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (
            ip.segments()[0] & 0xffc0 == 0xfe80,
            ip.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    if ip.to_canonical().is_unspecified() {
        errors.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if ip.to_canonical().is_loopback() {
        let detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        errors.invalid(path, text, detail);
    }
    if local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.invalid(path, text, detail);
    }
    if local_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.invalid(path, text, detail);
    }
}

/// Checks what is spoken on a port, if that is said.
pub(crate) fn application_protocol(port: &Map, path: &Path<'_>, errors: &mut Errors) {
    if port.has("appProtocol") {
        let text = port.text("appProtocol");
        errors.each(
            &path.field("appProtocol"),
            text,
            names::qualified_name(text),
        );
    }
}

/// Checks an address that stands for itself.
pub(crate) fn ip_address(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() {
        meta::again_unnamed(new, false, &mut errors);
    }
    let metadata = root.field("metadata");
    for key in ["generateName", "name"] {
        let name = new.object_or_empty("metadata").text(key);
        if !name.is_empty() {
            errors.each(&metadata.field(key), name, addresses::ip(name));
        }
    }
    let spec = root.field("spec");
    let path = spec.field("parentRef");
    let parent = new.object_or_empty("spec");
    match parent.object("parentRef") {
        None => errors.required(&path, ""),
        Some(parent) => parent_reference(parent, &path, &mut errors),
    }
    if let Some(old) = old {
        let now = parent.value("parentRef");
        if !check::same(now, old.object_or_empty("spec").value("parentRef")) {
            errors.push(print::invalid(&path, now, &PARENT, check::IMMUTABLE));
        }
    }
    errors
}

const PARENT: Shape = Shape(&[
    Field::plain("group", "Group", "\"\""),
    Field::plain("resource", "Resource", "\"\""),
    Field::plain("namespace", "Namespace", "\"\""),
    Field::plain("name", "Name", "\"\""),
]);

fn parent_reference(parent: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::optional_subdomain(parent.text("group"), &path.field("group"), errors);
    for key in ["resource", "name"] {
        let text = parent.text(key);
        if text.is_empty() {
            errors.required(&path.field(key), "");
        } else {
            errors.each(&path.field(key), text, names::path_segment(text));
        }
    }
    let namespace = parent.text("namespace");
    errors.each(
        &path.field("namespace"),
        namespace,
        names::path_segment(namespace),
    );
}

#[cfg(test)]
mod tests;
