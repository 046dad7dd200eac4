//! `resource.k8s.io`: devices and the claims on them.

use std::collections::HashSet;

use object::{Map, Value};

use super::strategy::{keep_status_or_rest, no_status, select_text, status_or_rest};
use crate::defaults::cluster;
use crate::defaults::fill::{at, each, is_true, is_unset, items, list, object, text, within};
use crate::{Generation, Rules};

/// The field that asks for a device although others hold it.
const ADMIN: &str = "adminAccess";

pub(super) fn rules(kind: &str) -> Rules {
    let base = Rules {
        returns_deleted: true,
        ..Rules::default()
    };
    match kind {
        "DeviceClass" => Rules {
            generation: Generation::Spec,
            ..base
        },
        "ResourceClaim" => Rules {
            defaults: cluster::resource_claim,
            prepare_create: no_status,
            prepare_update: claim_update,
            asks_for_admin: |new, old, subresource| match (old, subresource) {
                (None, _) => admin_request(new, &["spec", "devices"]),
                (Some(old), "status") => admin_result(new).filter(|_| admin_result(old).is_none()),
                _ => None,
            },
            reset_fields: status_or_rest,
            ..base
        },
        "ResourceClaimTemplate" => Rules {
            defaults: cluster::resource_claim_template,
            asks_for_admin: |new, old, _| match old {
                None => admin_request(new, &["spec", "spec", "devices"]),
                Some(_) => None,
            },
            ..base
        },
        "ResourceSlice" => Rules {
            defaults: cluster::resource_slice,
            prepare_create: |new| drop_disabled(new, None),
            prepare_update: |new, old, _| drop_disabled(new, Some(old)),
            stamp: stamp_taints,
            generation: Generation::Spec,
            selectable: &["spec.nodeName", "spec.driver"],
            select: select_text,
            unselectable: |field| {
                format!(
                    "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}"
                )
            },
            ..base
        },
        _ => base,
    }
}

/// Where a claim first asks for devices that others hold.
fn admin_request(new: &Map, devices: &[&str]) -> Option<String> {
    let devices = at(new, devices)?.as_object()?;
    let wants = |request: &Map| object(request, "exactly").is_some_and(|it| is_true(it, ADMIN));
    let index = items(devices, "requests").position(wants)?;
    // Upstream names a template's field as a claim's.
    Some(format!("spec.devices.requests[{index}].{ADMIN}"))
}

/// Where a claim was first given such a device.
fn admin_result(claim: &Map) -> Option<String> {
    let devices = at(claim, &["status", "allocation", "devices"])?.as_object()?;
    let index = items(devices, "results").position(|result| is_true(result, ADMIN))?;
    Some(format!(
        "status.allocation.devices.results[{index}].{ADMIN}"
    ))
}

fn claim_update(new: &mut Map, old: &Map, subresource: &str) {
    keep_status_or_rest(new, old, subresource);
    if subresource == "status" {
        drop_deallocated(new, old);
    }
}

/// What identifies a device, or one share of it.
type DeviceKey = [String; 4];

fn device_key(device: &Map) -> DeviceKey {
    ["driver", "pool", "device", "shareID"].map(|key| text(device, key).to_owned())
}

fn allocated(claim: &Map) -> HashSet<DeviceKey> {
    at(claim, &["status", "allocation", "devices"])
        .and_then(Value::as_object)
        .map(|devices| items(devices, "results").map(device_key).collect())
        .unwrap_or_default()
}

/// The status of a device goes when the device is given back.
fn drop_deallocated(new: &mut Map, old: &Map) {
    let still = allocated(new);
    let gone: HashSet<DeviceKey> = allocated(old)
        .into_iter()
        .filter(|device| !still.contains(device))
        .collect();
    within(new, "status", |status| {
        if let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) {
            devices.retain(|device| {
                device
                    .as_object()
                    .is_none_or(|device| !gone.contains(&device_key(device)))
            });
        }
        if list(status, "devices").is_empty() {
            status.remove("devices");
        }
    });
}

/// Fields of devices behind gates that are closed by default.
fn drop_disabled(new: &mut Map, old: Option<&Map>) {
    const LISTS: [&str; 4] = ["bools", "ints", "strings", "versions"];
    let old = old.and_then(|old| object(old, "spec"));
    let uses =
        |used: &dyn Fn(&Map) -> bool| old.is_some_and(|spec| items(spec, "devices").any(used));
    let keeps_mappings = uses(&|device| !is_unset(device, "nodeAllocatableResourceMappings"));
    let keeps_lists = uses(&|device| {
        object(device, "attributes").is_some_and(|attributes| {
            attributes
                .iter()
                .filter_map(|(_, value)| value.as_object())
                .any(|attribute| LISTS.iter().any(|key| !is_unset(attribute, key)))
        })
    });
    within(new, "spec", |spec| {
        each(spec, "devices", |device| {
            if !keeps_mappings {
                device.remove("nodeAllocatableResourceMappings");
            }
            if !keeps_lists {
                within(device, "attributes", |attributes| {
                    for attribute in attributes
                        .iter_mut()
                        .filter_map(|(_, value)| value.as_object_mut())
                    {
                        attribute.retain(|key, _| !LISTS.contains(&key));
                    }
                });
            }
        });
    });
}

/// Says when each taint was added.
fn stamp_taints(new: &mut Map, _old: Option<&Map>, _subresource: &str, now: &str) {
    within(new, "spec", |spec| {
        each(spec, "devices", |device| {
            each(device, "taints", |taint| {
                if is_unset(taint, "timeAdded") {
                    taint.insert("timeAdded", now.into());
                }
            });
        });
    });
}
