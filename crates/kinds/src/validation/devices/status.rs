//! The status of claims: what was allocated, for whom, and how it fares.

use object::field::{FieldError, Path};
use object::{Map, addresses};

use super::claim::{reference, references};
use super::slices::pool_name;
use super::{configurations, name, raw};
use crate::validation::check::{self, Errors, Report};
use crate::validation::read::{Read, maps, texts};
use crate::validation::{conditions, internal, pod};

const RESERVED_MAX: usize = 256;
const CONDITIONS_MAX: usize = 8;
const ADDRESSES_MAX: usize = 16;
const INTERFACE_BYTES_MAX: usize = 256;
const HARDWARE_BYTES_MAX: usize = 128;

/// Checks a change of a claim's status.
pub(super) fn changed(new: &Map, old: &Map, errors: &mut Errors) {
    let (status, stored) = (new.object_or_empty("status"), old.object_or_empty("status"));
    let root = Path::root();
    let path = root.field("status");
    consumers(status, &path.field("reservedFor"), errors);
    let allocation = status.object("allocation");
    let results = allocation.map_or(&[][..], |it| it.object_or_empty("devices").list("results"));
    let at = path.field("devices");
    let list = status.list("devices");
    for (index, device) in maps(list) {
        let path = at.index(index);
        device_status(device, results, &path, errors);
        let same = |other: &Map| identity(other) == identity(device);
        if maps(&list[..index]).any(|(_, other)| same(other)) {
            errors.duplicate(&path, &identity(device));
        }
    }
    let reserved = status.list("reservedFor");
    if !reserved.is_empty() {
        let path = path.field("reservedFor");
        let kept = stored.list("reservedFor");
        if allocation.is_none() {
            let detail = "may not be specified when `allocated` is not set";
            errors.forbidden(&path, detail);
        } else if new.object_or_empty("metadata").has("deletionTimestamp")
            && reserved.iter().any(|it| !kept.contains(it))
        {
            let detail = "new entries may not be added while `deallocationRequested` or \
                          `deletionTimestamp` are set";
            errors.forbidden(&path, detail);
        }
    }
    match (allocation, stored.has("allocation")) {
        (Some(_), true) => {
            let (now, before) = (status.value("allocation"), stored.value("allocation"));
            if !check::same(now, before) {
                let path = path.field("allocation");
                let structure = "AllocationResult";
                errors.push(internal::invalid(&path, now, structure, check::IMMUTABLE));
            }
        }
        (Some(allocation), false) => {
            let devices = new.object_or_empty("spec").object_or_empty("devices");
            allocated(allocation, devices, &path.field("allocation"), errors);
        }
        _ => {}
    }
}

fn identity(device: &Map) -> String {
    ["driver", "pool", "device"]
        .map(|key| device.text(key))
        .join("/")
}

fn consumers(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = status.list("reservedFor");
    if list.len() > RESERVED_MAX {
        errors.push(FieldError::too_many(path, list.len(), RESERVED_MAX));
    }
    for (index, consumer) in maps(list) {
        let path = path.index(index);
        check::require(consumer, &["resource", "name", "uid"], &path, errors);
        let id = consumer.text("uid");
        if maps(&list[..index]).any(|(_, other)| other.text("uid") == id) {
            errors.duplicate(&path, id);
        }
    }
}

fn device_status(device: &Map, results: &[object::Value], path: &Path<'_>, errors: &mut Errors) {
    pod::csi_driver_name(device.text("driver"), &path.field("driver"), errors);
    pool_name(device.text("pool"), &path.field("pool"), errors);
    name(device.text("device"), &path.field("device"), errors);
    if !maps(results).any(|(_, it)| identity(it) == identity(device)) {
        let detail = "must be an allocated device in the claim";
        errors.invalid(path, identity(device), detail);
    }
    let list = device.list("conditions");
    let at = path.field("conditions");
    if list.len() > CONDITIONS_MAX {
        errors.push(FieldError::too_many(&at, list.len(), CONDITIONS_MAX));
    }
    conditions::validate(device, &at, errors);
    if device.has("data") {
        raw(device.value("data"), &path.field("data"), errors);
    }
    if let Some(network) = device.object("networkData") {
        network_data(network, &path.field("networkData"), errors);
    }
}

fn network_data(network: &Map, path: &Path<'_>, errors: &mut Errors) {
    for (key, limit) in [
        ("interfaceName", INTERFACE_BYTES_MAX),
        ("hardwareAddress", HARDWARE_BYTES_MAX),
    ] {
        if network.text(key).len() > limit {
            errors.push(FieldError::too_long(&path.field(key), limit));
        }
    }
    let list = network.list("ips");
    let path = path.field("ips");
    if list.len() > ADDRESSES_MAX {
        errors.push(FieldError::too_many(&path, list.len(), ADDRESSES_MAX));
    }
    for (index, address) in texts(list) {
        let complaints = addresses::interface_address(address);
        errors.each(&path.index(index), address, complaints);
        if texts(&list[..index]).any(|(_, other)| other == address) {
            errors.duplicate(&path.index(index), address);
        }
    }
}

fn allocated(allocation: &Map, claimed: &Map, path: &Path<'_>, errors: &mut Errors) {
    let requests = claimed.list("requests");
    let devices = allocation.object_or_empty("devices");
    let at = path.field("devices");
    let results = at.field("results");
    for (index, result) in maps(devices.list("results")) {
        let path = results.index(index);
        reference(
            result.text("request"),
            requests,
            &path.field("request"),
            errors,
        );
        pod::csi_driver_name(result.text("driver"), &path.field("driver"), errors);
        pool_name(result.text("pool"), &path.field("pool"), errors);
        name(result.text("device"), &path.field("device"), errors);
    }
    let at = at.field("config");
    for (index, config) in maps(devices.list("config")) {
        let path = at.index(index);
        let sources = ["FromClaim", "FromClass"];
        check::choice(
            config.text("source"),
            &sources,
            &path.field("source"),
            errors,
        );
        references(
            config.list("requests"),
            requests,
            &path.field("requests"),
            errors,
        );
    }
    configurations(devices.list("config"), &at, errors);
    if let Some(selector) = allocation.object("nodeSelector") {
        pod::node_selector(selector, &path.field("nodeSelector"), errors);
    }
}
