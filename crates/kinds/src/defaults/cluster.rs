//! Defaults of the kinds that describe the cluster: its networks, storage, devices and priorities.

use object::{Map, Value, value};

use super::fill::{each, fill, fill_number, fill_text, is_unset, list, text, within};
use super::volumes::persistent_volume_spec;

/// Fills a slice of endpoints.
pub(crate) fn endpoint_slice(slice: &mut Map) {
    each(slice, "ports", |port| {
        fill(port, "name", "");
        fill(port, "protocol", "TCP");
    });
}

/// Fills a network policy.
pub(crate) fn network_policy(policy: &mut Map) {
    let spec = policy.object_at("spec");
    if list(spec, "policyTypes").is_empty() {
        let types = if list(spec, "egress").is_empty() {
            value!(["Ingress"])
        } else {
            value!(["Ingress", "Egress"])
        };
        spec.insert("policyTypes", types);
    }
    for rules in ["ingress", "egress"] {
        each(spec, rules, |rule| {
            each(rule, "ports", |port| fill(port, "protocol", "TCP"))
        });
    }
}

/// Fills a class of ingresses.
pub(crate) fn ingress_class(class: &mut Map) {
    within(class, "spec", |spec| {
        within(spec, "parameters", |parameters| {
            fill(parameters, "scope", "Cluster")
        });
    });
}

/// Fills a priority class.
pub(crate) fn priority_class(class: &mut Map) {
    fill(class, "preemptionPolicy", "PreemptLowerPriority");
}

/// Fills a storage class.
pub(crate) fn storage_class(class: &mut Map) {
    fill(class, "reclaimPolicy", "Delete");
    fill(class, "volumeBindingMode", "Immediate");
}

/// Fills a storage driver.
pub(crate) fn storage_driver(driver: &mut Map) {
    let spec = driver.object_at("spec");
    fill(spec, "attachRequired", true);
    fill(spec, "podInfoOnMount", false);
    fill(spec, "storageCapacity", false);
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if list(spec, "volumeLifecycleModes").is_empty() {
        spec.insert("volumeLifecycleModes", value!(["Persistent"]));
    }
    fill(spec, "requiresRepublish", false);
    fill(spec, "seLinuxMount", false);
}

/// Fills the attachment of a volume.
pub(crate) fn volume_attachment(attachment: &mut Map) {
    within(attachment, "spec", |spec| {
        within(spec, "source", |source| {
            within(source, "inlineVolumeSpec", persistent_volume_spec);
        });
    });
}

/// Fills a claim on devices.
pub(crate) fn resource_claim(claim: &mut Map) {
    within(claim, "spec", claim_spec);
    within(claim, "status", |status| {
        within(status, "allocation", |allocation| {
            within(allocation, "devices", |devices| {
                each(devices, "results", tolerations)
            });
        });
    });
}

/// Fills a template of claims on devices.
pub(crate) fn resource_claim_template(template: &mut Map) {
    within(template, "spec", |spec| within(spec, "spec", claim_spec));
}

fn claim_spec(spec: &mut Map) {
    within(spec, "devices", |devices| {
        each(devices, "requests", |request| {
            within(request, "exactly", device_request);
            each(request, "firstAvailable", device_request);
        });
    });
}

fn device_request(request: &mut Map) {
    fill_text(request, "allocationMode", "ExactCount");
    if text(request, "allocationMode") == "ExactCount" {
        fill_number(request, "count", 1);
    }
    tolerations(request);
}

fn tolerations(owner: &mut Map) {
    each(owner, "tolerations", |toleration| {
        fill_text(toleration, "operator", "Equal")
    });
}

/// Fills a slice of devices; when a taint was added is stamped elsewhere, where there is a clock.
pub(crate) fn resource_slice(slice: &mut Map) {
    within(slice, "spec", |spec| {
        each(spec, "devices", |device| {
            within(device, "nodeAllocatableResourceMappings", |mappings| {
                for (_, mapping) in mappings.iter_mut() {
                    if let Value::Object(mapping) = mapping
                        && is_unset(mapping, "allocationMultiplier")
                    {
                        mapping.insert("allocationMultiplier", "1".into());
                    }
                }
            });
        });
    });
}
