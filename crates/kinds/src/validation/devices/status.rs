//! The status of claims: what was allocated, for whom, and how it fares.

use object::field::{FieldError, Path, quote};
use object::{Map, addresses};

use super::claim::{reference, references};
use super::slices::pool_name;
use super::{
    CONFIGURATIONS_MAX, REQUESTS_MAX, binding, configuration, name, named_set, raw, within_limit,
};
use crate::validation::check::{self, Errors, Report};
use crate::validation::read::{Read, maps, texts};
use crate::validation::{conditions, internal, pod, print};

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
            let mut error = FieldError::duplicate(&path, &object::Value::Null);
            error.value = Some(identity(device));
            errors.push(error);
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

/// What tells devices, and shares of them, apart; as upstream prints it.
fn identity(device: &Map) -> String {
    let part = |key: &str| quote(device.text(key));
    format!(
        r#"{{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}}"#,
        part("driver"),
        part("pool"),
        part("device"),
        part("shareID")
    )
}

/// Checks the id of a share of a device.
fn share(holder: &Map, path: &Path<'_>, errors: &mut Errors) {
    if !holder.has("shareID") {
        return;
    }
    let text = holder.text("shareID");
    let path = path.field("shareID");
    if let Err(complaint) = uuid(text) {
        let detail = format!("error validating uid: {complaint}");
        errors.invalid(&path, text, detail);
    } else if text.len() != 36 || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let detail = "uid must be in RFC 4122 normalized form, \
                      `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";
        errors.invalid(&path, text, detail);
    }
}

/// Reads an id in any of the forms that are in use.
fn uuid(text: &str) -> Result<(), String> {
    let format = || "invalid UUID format".to_owned();
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let text = match text.len() {
        36 => text,
        45 => match text.split_at_checked(9) {
            Some((start, rest)) if start.eq_ignore_ascii_case("urn:uuid:") => rest,
            Some((start, _)) => return Err(format!("invalid urn prefix: {}", quote(start))),
            None => return Err(format()),
        },
        38 => text
            .strip_prefix('{')
            .and_then(|it| it.strip_suffix('}'))
            .ok_or("invalid bracketed UUID format")?,
        32 if is_hex(text) => return Ok(()),
        32 => return Err(format()),
        length => return Err(format!("invalid UUID length: {length}")),
    };
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    if lengths == [8, 4, 4, 4, 12] && parts.into_iter().all(is_hex) {
        Ok(())
    } else {
        Err(format())
    }
}

fn consumers(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = status.list("reservedFor");
    named_set(
        list,
        ("uid", RESERVED_MAX),
        path,
        errors,
        |one, path, errors| {
            check::require(one, &["resource", "name", "uid"], path, errors);
        },
    );
}

fn device_status(device: &Map, results: &[object::Value], path: &Path<'_>, errors: &mut Errors) {
    pod::csi_driver_name(device.text("driver"), &path.field("driver"), errors);
    pool_name(device.text("pool"), &path.field("pool"), errors);
    name(device.text("device"), &path.field("device"), errors);
    share(device, path, errors);
    if !maps(results).any(|(_, it)| identity(it) == identity(device)) {
        let detail = "must be an allocated device in the claim";
        errors.push(print::invalid_text(path, identity(device), detail));
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
        return;
    }
    for (index, address) in texts(list) {
        let complaints = addresses::interface_address(address);
        errors.each(&path.index(index), address, complaints);
    }
    for (index, address) in texts(list) {
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
    for (index, result) in within_limit(devices.list("results"), REQUESTS_MAX, &results, errors) {
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
        binding::check(result, &path, errors);
        share(result, &path, errors);
    }
    let at = at.field("config");
    let list = devices.list("config");
    for (index, config) in within_limit(list, 2 * CONFIGURATIONS_MAX, &at, errors) {
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
        configuration(config, &path, errors);
    }
    if let Some(selector) = allocation.object("nodeSelector") {
        pod::node_selector(selector, &path.field("nodeSelector"), errors);
    }
}
